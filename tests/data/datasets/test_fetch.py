from __future__ import annotations

import hashlib
import http.server
import subprocess
import sys
import threading
import time

import pooch
import pytest

from memohop.data.datasets import fetch
from memohop.errors import DataError, UsageError

PATH = "made/folder/one.bin"
CONTENT = bytes(range(256)) * 4096
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves `CONTENT` on the loopback: whole, cut off, garbled, or halted half-way."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.manner = "whole"
        self.requests = 0
        self.half_sent = threading.Event()
        self.release = threading.Event()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.requests += 1
        if self.server.manner == "missing":
            self.send_error(404)
            return
        content = CONTENT[::-1] if self.server.manner == "garbled" else CONTENT
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        self.wfile.flush()
        self.server.half_sent.set()
        if self.server.manner == "halted":
            self.server.release.wait(300)
        elif self.server.manner != "cut":
            self.wfile.write(content[len(content) // 2 :])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache folder, one known file, and no local data folder."""
    folder = tmp_path / "cache"
    monkeypatch.delenv(fetch.ENVIRONMENT, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(pooch, "os_cache", lambda name: folder / name)
    monkeypatch.setattr(fetch, "known_digests", lambda: {PATH: DIGEST})
    monkeypatch.setattr(fetch, "ADDRESSES", {"made/": "http://127.0.0.1:9/"})
    return folder / "memohop"


@pytest.fixture
def server(cache, monkeypatch):
    """A server for the one file of these tests, with the module pointed at it."""
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setattr(
            fetch, "ADDRESSES", {"made/": f"http://127.0.0.1:{running.server_port}/"}
        )
        yield running
        running.release.set()
        running.shutdown()
        thread.join()


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_downloads_once(server, cache):
    for _ in range(2):
        assert fetch.locate([PATH]) == cache
        assert (cache / PATH).read_bytes() == CONTENT
    assert server.requests == 1
    assert files_in(cache) == [cache / PATH]


def test_progress_stays_off_standard_output(server, cache, capsys):
    fetch.locate([PATH], progress=True)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("damaged", [CONTENT[:1000], b"", CONTENT[::-1]])
def test_a_damaged_file_in_the_cache_is_downloaded_anew(server, cache, damaged):
    (cache / PATH).parent.mkdir(parents=True)
    (cache / PATH).write_bytes(damaged)
    fetch.locate([PATH])
    assert (cache / PATH).read_bytes() == CONTENT
    assert server.requests == 1


@pytest.mark.parametrize("manner", ["cut", "garbled", "missing"])
def test_a_failed_download_leaves_nothing_and_the_next_one_works(server, cache, manner):
    server.manner = manner
    with pytest.raises(DataError, match=rf"{PATH}.*127\.0\.0\.1.*--data.*MEMOHOP_DATA"):
        fetch.locate([PATH])
    assert files_in(cache) == []
    server.manner = "whole"
    fetch.locate([PATH])
    assert (cache / PATH).read_bytes() == CONTENT


def test_a_wrong_download_names_both_digests(server, cache):
    server.manner = "garbled"
    found = hashlib.sha256(CONTENT[::-1]).hexdigest()
    with pytest.raises(DataError, match=f"(?s){DIGEST}.*{found}"):
        fetch.locate([PATH])


def test_a_killed_download_leaves_nothing_that_passes_for_the_file(server, cache):
    server.manner = "halted"
    code = (
        "import pathlib, pooch, memohop.data.datasets.fetch as fetch\n"
        f"pooch.os_cache = lambda name: pathlib.Path({str(cache)!r})\n"
        f"fetch.known_digests = lambda: {{{PATH!r}: {DIGEST!r}}}\n"
        f"fetch.ADDRESSES = {fetch.ADDRESSES!r}\n"
        f"fetch.locate([{PATH!r}])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code])
    try:
        assert server.half_sent.wait(300)
        deadline = time.monotonic() + 300
        while not any(path.stat().st_size for path in files_in(cache)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert not (cache / PATH).exists()
    server.manner = "whole"
    fetch.locate([PATH])
    assert (cache / PATH).read_bytes() == CONTENT


def test_no_network(cache):
    with pytest.raises(DataError, match=rf"cannot download {PATH}.*network.*MEMOHOP_DATA"):
        fetch.locate([PATH])
    assert files_in(cache) == []


def test_a_cache_that_cannot_be_written(cache):
    cache.parent.mkdir()
    cache.write_text("a file where a folder should be")
    with pytest.raises(DataError, match=PATH):
        fetch.locate([PATH])


@pytest.fixture
def local(cache, tmp_path):
    """A local folder that holds the one file, whole."""
    folder = tmp_path / "local"
    (folder / PATH).parent.mkdir(parents=True)
    (folder / PATH).write_bytes(CONTENT)
    return folder


def test_a_local_folder_is_used_instead_of_the_network(local, cache):
    assert fetch.locate([PATH], root=local) == local
    assert fetch.locate([PATH], root=str(local)) == local
    assert not cache.exists()


def test_the_environment_names_a_local_folder_and_the_argument_comes_first(local, monkeypatch):
    monkeypatch.setenv("MEMOHOP_DATA", str(local))
    assert fetch.locate([PATH]) == local
    monkeypatch.setenv("MEMOHOP_DATA", str(local / "elsewhere"))
    assert fetch.locate([PATH], root=local) == local
    with pytest.raises(DataError, match="elsewhere"):
        fetch.locate([PATH])


@pytest.mark.parametrize("damaged", [CONTENT[:-1], b"", CONTENT[::-1]])
def test_a_damaged_local_file_is_named_with_both_digests(local, damaged):
    (local / PATH).write_bytes(damaged)
    found = hashlib.sha256(damaged).hexdigest()
    with pytest.raises(DataError, match=f"{PATH}.*{found}.*{DIGEST}.*http"):
        fetch.locate([PATH], root=local)
    assert (local / PATH).read_bytes() == damaged


def test_a_missing_local_file_is_named(local):
    (local / PATH).unlink()
    with pytest.raises(DataError, match=f"no readable {PATH}.*--data"):
        fetch.locate([PATH], root=local)


def test_a_file_without_a_known_digest_is_never_downloaded(server, cache):
    told = (
        r"made/other\.bin is not downloaded.*SHA-256.*http\S+/other\.bin to FOLDER/made/other\.bin"
    )
    with pytest.raises(DataError, match=told + r".*--data.*MEMOHOP_DATA"):
        fetch.locate([PATH, "made/other.bin"])
    assert server.requests == 0
    (cache / "made").mkdir(parents=True)
    (cache / "made/other.bin").write_bytes(CONTENT)  # the cache is for checked files
    with pytest.raises(DataError, match="is not downloaded"):
        fetch.locate(["made/other.bin"])


def test_a_file_without_a_known_digest_is_taken_from_a_local_folder(local):
    with pytest.raises(DataError, match=r"no readable made/other\.bin.*http\S+other\.bin$"):
        fetch.locate([PATH, "made/other.bin"], root=local)
    (local / "made/other.bin").write_bytes(b"anything")
    assert fetch.locate([PATH, "made/other.bin"], root=local) == local


def test_a_root_that_is_no_path():
    with pytest.raises(UsageError, match="root=3"):
        fetch.locate([PATH], root=3)


def test_the_listed_digests_are_those_of_the_files(data_root):
    paths = [path for path in fetch.known_digests() if "structural_neighborhood" in path]
    assert fetch.locate([*paths, "platonov/tolokers.npz"], root=data_root) == data_root
