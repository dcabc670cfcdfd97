"""Tasks of a Ray cluster that lose their workers; the cluster is made up."""

from functools import partial
from types import SimpleNamespace

import pytest

from memohop.errors import DataError
from memohop.jobs.executor import Lost, keep_busy
from memohop.jobs.ray_tasks import RayPlaces

ray = pytest.importorskip("ray", reason="Ray is not installed here: pip install memohop[ray]")


class Cluster:
    """Stands in for Ray: works at once, unless a worker is lost.

    Args:
        losses: By job, the errors of Ray's with which its workers are lost.
    """

    exceptions = ray.exceptions
    put = staticmethod(lambda work: work)

    def __init__(self, losses):
        self.losses, self.given = losses, []

    def remote(self, **_):
        return lambda function: SimpleNamespace(remote=partial(partial, function))

    def wait(self, running, num_returns):
        return running[:1], running[1:]

    def get(self, ready):
        _, job = ready.args
        self.given.append(job)
        if self.losses.get(job):
            raise self.losses[job].pop(0)
        return ready()


def work(job, progress):
    return job.upper()


def test_a_job_whose_worker_is_lost_is_tried_again_after_the_others():
    errors = ray.exceptions
    node = errors.NodeDiedError("the node is gone\nand a page about that")
    cluster = Cluster({"a": [errors.WorkerCrashedError()], "b": [node, node, node]})
    found = dict(keep_busy(RayPlaces(cluster, work, "cpu", 2), iter("abc")))
    assert found == {"a": "A", "b": Lost("NodeDiedError: the node is gone"), "c": "C"}
    assert cluster.given == ["a", "b", "c", "a", "b", "b"]


@pytest.mark.parametrize("kind", [DataError, ValueError])
def test_what_the_work_raises_comes_back_as_it_was(kind):
    class FromWorker(kind, ray.exceptions.RayTaskError):
        """As Ray makes them of what a task raises."""

        def __init__(self, cause):
            self.cause = cause

    cluster = Cluster({"a": [FromWorker(kind("there are no files"))]})
    with pytest.raises(kind, match=r"^there are no files$") as told:
        list(keep_busy(RayPlaces(cluster, work, "cpu", 2), iter("a")))
    assert type(told.value) is kind
