"""Workers of a Ray cluster that are lost; the cluster is made up."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from memohop.errors import DataError
from memohop.jobs.executor import Lost
from memohop.jobs.ray_workers import RayWorkers

ray = pytest.importorskip("ray", reason="Ray is not installed here: pip install memohop[ray]")


class Cluster:
    """Stands in for Ray: works at once, unless a worker is lost.

    Args:
        losses: By job, the errors of Ray's with which its workers are lost.
    """

    exceptions, cloudpickle = ray.exceptions, ray.cloudpickle
    put = staticmethod(lambda packed: packed)
    kill = staticmethod(lambda actor: None)

    def __init__(self, losses):
        self.losses, self.given = losses, []

    def remote(self, **_):
        return lambda kind: SimpleNamespace(remote=lambda packed: Actor(kind(packed)))

    def wait(self, asked, num_returns, timeout):
        return asked[:1], asked[1:]

    def get(self, call):
        method, given = call
        if method.__name__ == "begin":
            self.given.append(given[0])
            if self.losses.get(given[0]):
                raise self.losses[given[0]].pop(0)
        return method(*given)


class Actor:
    """An actor's methods, called when their results are asked for."""

    def __init__(self, worker):
        self.begin = SimpleNamespace(remote=lambda *given: (worker.begin, given))
        self.whereabouts = SimpleNamespace(remote=lambda: (whereabouts, ()))


def whereabouts():
    return "127.0.0.1", 1


def work(job):
    return job.upper()


def answers(cluster, jobs):
    pool = RayWorkers(None, "cpu", "again", count=2)
    pool.size, pool._ray, pool.connected = 2, cluster, nullcontext
    return dict(pool(work, jobs))


def test_a_job_whose_worker_is_lost_is_tried_again_after_the_others():
    errors = ray.exceptions
    node = errors.NodeDiedError("the node is gone\nand a page about that")
    cluster = Cluster({"a": [errors.WorkerCrashedError()], "b": [node, node, node]})
    expected = {"a": "A", "b": Lost("NodeDiedError: the node is gone"), "c": "C"}
    assert answers(cluster, "abc") == expected
    assert cluster.given[-3:] == ["a", "b", "b"]


@pytest.mark.parametrize("kind", [DataError, ValueError])
def test_what_the_work_raises_comes_back_as_it_was(kind):
    class FromWorker(kind, ray.exceptions.RayTaskError):
        """As Ray makes them of what a task raises."""

        def __init__(self, cause):
            self.cause = cause

    cluster = Cluster({"a": [FromWorker(kind("there are no files"))]})
    with pytest.raises(kind, match=r"^there are no files$") as told:
        answers(cluster, "a")
    assert type(told.value) is kind
