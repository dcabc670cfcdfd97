"""Downloads the published files and checks them by their SHA-256."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from memohop.errors import DataError, UsageError

ENVIRONMENT = "MEMOHOP_DATA"

_GEOM_GCN = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn"
_PLANETOID = "https://raw.githubusercontent.com/kimiyoung/planetoid"
_PLATONOV = "https://raw.githubusercontent.com/yandex-research/heterophilous-graphs"
# Pinned to commits, so that a later file of the same name cannot slip in.
# The first prefix that fits a path counts.
ADDRESSES = {
    "geom-gcn/legacy/": f"{_GEOM_GCN}/1c4c04f93fa6ada91976cda8d7577eec0e3e5cce/new_data/",
    "geom-gcn/": f"{_GEOM_GCN}/1124af17444d7fd09686504ec46caa3f39f4f632/",
    "planetoid/": f"{_PLANETOID}/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/",
    "platonov/": f"{_PLATONOV}/a431395582e929d88271309716bea4fe24ce6318/data/",
}


def locate(
    paths: Iterable[str], *, root: str | os.PathLike[str] | None = None, progress: bool = False
) -> Path:
    """The folder that holds all ``paths``, each one whole.

    A local folder, ``root`` or else the environment variable ``MEMOHOP_DATA``, is used as it is
    and never written to. Without one, missing or damaged files are downloaded into the user's
    cache folder. The digests are checked either way, and a failure is a :class:`DataError`.

    Args:
        paths: Paths below the data folder, as listed in :attr:`DatasetInfo.files`.
        root: A local folder with these files; nothing is downloaded.
        progress: Show a progress bar on standard error while downloading.
    """
    if root is not None and not isinstance(root, str | os.PathLike):
        raise UsageError(f"root={root!r} is no folder; give its path")
    local, expected = root or os.environ.get(ENVIRONMENT), {p: known_digests()[p] for p in paths}
    if not local:
        return _download(expected, progress=progress)
    folder = Path(local).expanduser()
    for path, digest in expected.items():
        _check(folder, path, digest)
    return folder


@cache
def known_digests() -> dict[str, str]:
    """The SHA-256 of every file, by its path below the data folder."""
    text = Path(__file__).with_name("files.txt").read_text(encoding="utf-8")
    entries = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return dict(entry for entry in entries if entry)


def address(path: str) -> str:
    """The public address of a file, from its path below the data folder."""
    prefix = next(prefix for prefix in ADDRESSES if path.startswith(prefix))
    return ADDRESSES[prefix] + path.removeprefix(prefix)


def _check(folder: Path, path: str, digest: str) -> None:
    remedy = (
        f"copy it from {address(path)}, or leave out the local folder (--data, root= and "
        f"{ENVIRONMENT}) to have it downloaded"
    )
    try:
        content = (folder / path).read_bytes()
    except OSError as error:
        raise DataError(
            f"the data folder {folder} has no readable {path} ({error.strerror}); {remedy}"
        ) from error
    held = hashlib.sha256(content).hexdigest()
    if held != digest:
        raise DataError(
            f"{folder / path} is not the published file: its SHA-256 is {held} "
            f"({len(content)} bytes) and not {digest}; {remedy}"
        )


def _download(expected: dict[str, str], *, progress: bool) -> Path:
    # Imported here because a machine with a local data folder needs none of them.
    import pooch
    from rich.console import Console
    from rich.progress import track

    pooch.get_logger().setLevel("WARNING")  # it announces every file, around the progress bar
    folder, console = Path(pooch.os_cache("memohop")), Console(stderr=True)
    whole = pooch.HTTPDownloader(stream=False)  # of a stream, pooch leaves a refusal open
    for path in track(
        expected, "Downloading", console=console, transient=True, disable=not progress
    ):
        url = address(path)
        try:
            # pooch makes this folder too, but fails when another process is quicker.
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            # It renames a temporary file once the digest is right: the final file is whole.
            pooch.retrieve(url, expected[path], fname=path, path=folder, downloader=whole)
        except (OSError, ValueError) as error:
            raise DataError(
                f"cannot download {path} from {url} to {folder}: {error}. "
                "Check the network and try again (complete files are kept), or name a local "
                f"folder that has the file with --data, root= or {ENVIRONMENT}"
            ) from error
    return folder
