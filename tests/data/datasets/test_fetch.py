import hashlib
import http.server
import shutil
import threading

import pooch
import psutil
import pytest

from memohop.data.datasets import fetch
from memohop.errors import DataError, UsageError

PATH = "made/folder/one.bin"
CONTENT = bytes(range(256)) * 4096
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Sends the content of its server, with the length of the whole file; None is no file."""

    def do_GET(self) -> None:
        self.server.requests += 1
        if self.server.content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(self.server.content)

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
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.content, running.requests = CONTENT, 0
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        address = f"http://127.0.0.1:{running.server_port}/"
        monkeypatch.setattr(fetch, "ADDRESSES", {"made/": address})
        yield running
        running.shutdown()
        thread.join()


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_downloads_once_and_keeps_progress_off_standard_output(server, cache, capsys):
    for _ in range(2):
        assert fetch.locate([PATH], progress=True) == cache
        assert (cache / PATH).read_bytes() == CONTENT
    assert server.requests == 1
    assert files_in(cache) == [cache / PATH]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("damaged", [CONTENT[:1000], b"", CONTENT[::-1]])
def test_a_damaged_file_in_the_cache_is_downloaded_anew(server, cache, damaged):
    (cache / PATH).parent.mkdir(parents=True)
    (cache / PATH).write_bytes(damaged)
    fetch.locate([PATH])
    assert (cache / PATH).read_bytes() == CONTENT
    assert server.requests == 1


@pytest.mark.parametrize("sent", [CONTENT[:1000], CONTENT[::-1], None])
def test_a_failed_download_leaves_nothing_and_the_next_one_works(server, cache, sent):
    server.content = sent
    with pytest.raises(DataError, match=rf"{PATH}.*127\.0\.0\.1.*--data.*MEMOHOP_DATA") as refusal:
        fetch.locate([PATH])
    if sent == CONTENT[::-1]:
        assert DIGEST in str(refusal.value)
        assert hashlib.sha256(sent).hexdigest() in str(refusal.value)
    assert files_in(cache) == []
    ends = [connection.raddr for connection in psutil.Process().net_connections()]
    assert server.server_port not in {end.port for end in ends if end}
    server.content = CONTENT
    fetch.locate([PATH])
    assert (cache / PATH).read_bytes() == CONTENT


def test_no_network_and_a_cache_that_cannot_be_written(cache):
    with pytest.raises(DataError, match=rf"cannot download {PATH}.*network.*MEMOHOP_DATA"):
        fetch.locate([PATH])
    assert files_in(cache) == []
    shutil.rmtree(cache)
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


def test_a_local_folder_is_used_instead_of_the_network(local, cache, monkeypatch):
    assert fetch.locate([PATH], root=local) == local
    assert fetch.locate([PATH], root=str(local)) == local
    monkeypatch.setenv("MEMOHOP_DATA", str(local))
    assert fetch.locate([PATH]) == local
    monkeypatch.setenv("MEMOHOP_DATA", str(local / "elsewhere"))
    assert fetch.locate([PATH], root=local) == local  # the argument comes first
    with pytest.raises(DataError, match="elsewhere"):
        fetch.locate([PATH])
    with pytest.raises(UsageError, match="root=3"):
        fetch.locate([PATH], root=3)
    assert not cache.exists()


@pytest.mark.parametrize("damaged", [CONTENT[:-1], b"", CONTENT[::-1]])
def test_a_damaged_local_file_is_named_with_both_digests(local, damaged):
    (local / PATH).write_bytes(damaged)
    digest = hashlib.sha256(damaged).hexdigest()
    with pytest.raises(DataError, match=f"{PATH}.*{digest}.*{DIGEST}.*http"):
        fetch.locate([PATH], root=local)
    assert (local / PATH).read_bytes() == damaged
    (local / PATH).unlink()
    with pytest.raises(DataError, match=f"no readable {PATH}.*--data"):
        fetch.locate([PATH], root=local)


def test_the_listed_digests_are_those_of_the_files(data_root):
    paths = [path for path in fetch.known_digests() if "structural_neighborhood" in path]
    assert fetch.locate([*paths, "platonov/tolokers.npz"], root=data_root) == data_root
