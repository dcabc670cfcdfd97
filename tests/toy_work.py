"""What the processes of test_processes.py do; they import it by its name."""

import os
import signal
import sys
import time
from pathlib import Path

from memohop.errors import DataError


def log(folder):
    return Path(folder, "log")


def note(folder, words):
    with log(folder).open("a", encoding="utf-8") as file:
        print(words, file=file)


def unlucky(job):
    """The process of a job named doomed dies each time, that of a job named hurt once."""
    folder, name = job
    note(folder, f"{name} starts")
    again = log(folder).read_text(encoding="utf-8").splitlines().count(f"{name} starts") > 1
    if name == "doomed" or (name == "hurt" and not again):
        os.kill(os.getpid(), signal.SIGKILL)
    note(folder, f"{name} ends")
    return f"{name} is done"


def mistaken(job):
    """One waits for ever, another finds a mistake of the user's while it does."""
    folder, name = job
    busy = Path(folder, "busy")
    if name == "busy":
        busy.write_text(str(os.getpid()), encoding="utf-8")
        time.sleep(600)
    while not (busy.exists() and busy.read_text(encoding="utf-8")):
        time.sleep(0.01)
    raise DataError("there are no files") if name == "mistaken" else ZeroDivisionError("a slip")


def half_an_answer(job):
    """The process dies while it sends its answer, the first time."""
    folder, _ = job
    note(folder, "starts")
    if len(log(folder).read_text(encoding="utf-8").splitlines()) == 1:
        return Deadly()
    return "whole"


class Deadly:
    """Cannot be sent whole."""

    def __reduce__(self):
        frame = sys._getframe()
        while "connection" not in frame.f_locals:
            frame = frame.f_back
        connection = frame.f_locals["connection"]
        os.write(connection.fileno(), b"\0\0\1\0the first of 256 bytes")
        os.kill(os.getpid(), signal.SIGKILL)


def threads(job):
    import torch

    return torch.get_num_threads()


class Counting:
    """Counts the jobs that it has had, which its process keeps."""

    def __init__(self):
        self.jobs = 0

    def __call__(self, job):
        self.jobs += 1
        time.sleep(600 * (job == "endless"))
        return os.getpid(), self.jobs


class Walk:
    """A job for two in steps, which goes on from where it was told to be.

    Args:
        folder: Where the process of rank 1 notes that it has died at step 3.
    """

    def __init__(self, folder):
        self.folder, self.at = folder, 0

    def share(self, rank):
        return self.folder, self.at


def walk(job, where):
    folder, at = job
    while at < 5:
        if (where["rank"], at) == (1, 3) and not log(folder).exists():
            note(folder, "died")
            os.kill(os.getpid(), signal.SIGKILL)
        at += 1
        if (yield at) == "enough":
            return at
    if where["rank"] == 1:
        time.sleep(0.1)
    return f"{where['world_size']} walked to {at}"
