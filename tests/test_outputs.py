"""Outputs are checked before the work and written whole or not at all."""

import errno
import os
import tempfile
from pathlib import Path

import pytest

from memohop.data.prepared._folder import GRAPH_FOLDER
from memohop.errors import DataError, UsageError
from memohop.fit._keep import MODEL_FOLDER
from memohop.outputs import check_output, check_writable, whole_file, write_whole


def refused(output: Path, *endings: str, inputs: tuple[Path, ...] = ()) -> str:
    with pytest.raises(UsageError) as error:
        check_output(output, *endings, inputs=inputs)
    return str(error.value)


def fail_in_the_middle(output: Path, error: BaseException) -> None:
    with whole_file(output) as part:
        part.write_text("half")
        raise error


def test_what_cannot_be_written_is_refused_before(tmp_path: Path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "gone.csv")
    source = tmp_path / "nodes.csv"
    source.write_text("id\n")
    (tmp_path / "same.csv").symlink_to(source)
    assert "ends in .html or .svg" in refused(tmp_path / "x.txt", ".html", ".svg")
    assert "is a folder" in refused(tmp_path)
    assert "gone.csv, which does not exist" in refused(tmp_path / "link.csv")
    assert "there is no folder" in refused(tmp_path / "none" / "x.csv")
    assert "another name" in refused(source, inputs=(source,))
    assert "another name" in refused(tmp_path / "same.csv", inputs=(source,))
    assert "nothing can be written into /proc" in refused(Path("/proc/x.csv"))
    check_output(tmp_path / "other.csv", ".csv", inputs=(source,))
    check_output(Path(os.devnull))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.csv", "nodes.csv", "same.csv"]


def test_a_failed_write_leaves_the_older_file(tmp_path: Path):
    output = tmp_path / "page.html"
    write_whole(output, "older")
    with pytest.raises(KeyboardInterrupt):
        fail_in_the_middle(output, KeyboardInterrupt())
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(DataError, match=r"No space left.*as it was"):
        fail_in_the_middle(output, full)
    assert output.read_text() == "older"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path):
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    target.write_text("older")
    target.chmod(0o600)
    link.symlink_to(target)
    write_whole(link, "newer")
    assert link.is_symlink()
    assert target.read_text() == "newer"
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("layout", [MODEL_FOLDER, GRAPH_FOLDER])
def test_a_folder_that_could_not_be_made_is_refused(tmp_path: Path, layout):
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "file").write_text("mine")
    for name in ("link", "link/inside"):
        with pytest.raises(UsageError, match=r"link is a link to nowhere, which does not exist;"):
            layout.check_target(tmp_path / name)
    with pytest.raises(UsageError, match="file is a file; give the name of a folder"):
        layout.check_target(tmp_path / "file")
    with pytest.raises(UsageError, match=r"nothing can be written into .*file \(Not a directory\)"):
        layout.check_target(tmp_path / "file" / "inside")
    (tmp_path / "folder").mkdir()
    for name in ("folder", "new/folder"):
        layout.check_target(tmp_path / name)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "link"]


def test_a_check_leaves_no_name_that_another_process_could_meet(tmp_path: Path, monkeypatch):
    seen = []
    whole = tempfile.TemporaryFile

    def spy(*args, **options):
        file = whole(*args, **options)
        seen.extend(tmp_path.iterdir())
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", spy)
    check_writable(tmp_path, "-o .")
    assert seen == []
