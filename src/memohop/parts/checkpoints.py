"""The state of a run after every so many epochs, from which it can be continued."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from memohop.errors import DataError
from memohop.outputs import check_writable, whole_file
from memohop.version import __version__


class Checkpoints:
    """The latest snapshot of each population of a run: in RAM, and in a file if there is a folder.

    The file is named after the run's digest, so that a folder may have those of several runs, and
    a run with other data, members or options starts anew.

    Args:
        run: the digest of the run.
        folder: the folder of the file; None for no file.

    Attributes:
        snapshots: by the number of the population.
        size: the members of a population, which a resumed run keeps; None before the first one.
    """

    def __init__(self, run: str, folder: Path | None = None) -> None:
        self.run, self.file = run, None
        self.snapshots: dict[int, Mapping[str, Tensor]] = {}
        self.size: int | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            check_writable(folder, f"checkpoints={folder}")
            self.file = folder / f"{run[:16]}.safetensors"
            if self.file.exists():
                self._read(self.file)

    @property
    def done(self) -> int:
        """The epochs that all populations have behind them."""
        return sum(int(snapshot["epoch"]) for snapshot in self.snapshots.values())

    def keep(self, chunk: int, snapshot: Mapping[str, Tensor], size: int) -> None:
        """Keep a population's snapshot in place of its earlier one."""
        self.snapshots[chunk], self.size = snapshot, size
        if self.file is None:
            return
        tensors = {
            f"{number}:{name}": value
            for number, kept in self.snapshots.items()
            for name, value in kept.items()
        }
        about = {"run": self.run, "size": str(size), "memohop": __version__}
        with whole_file(self.file) as part:
            save_file(tensors, part, metadata=about)

    def _read(self, file: Path) -> None:
        remedy = "remove it, and the run starts anew"
        try:
            with safe_open(file, framework="pt") as opened:
                about = opened.metadata() or {}
                for key in opened.keys():  # noqa: SIM118  # not a dictionary
                    number, _, name = key.partition(":")
                    kept = dict(self.snapshots.get(int(number), {}))
                    self.snapshots[int(number)] = kept | {name: opened.get_tensor(key)}
            self.size = int(about["size"])
        except (SafetensorError, OSError, KeyError, ValueError) as error:
            raise DataError(f"{file} is no checkpoint of a run ({error}); {remedy}") from None
        if about["run"] != self.run or about.get("memohop") != __version__:
            raise DataError(
                f"{file} was written by another run or by memohop {about.get('memohop')}, and this "
                f"is {__version__}; {remedy}"
            )
