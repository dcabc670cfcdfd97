"""Debian's packages as two tables with hidden labels, for ``tables.py``: graphs with odd columns.

    python benchmarks/debian_tables.py Packages -o folder
    python benchmarks/tables.py folder --seconds 300 -o outputs

``Packages`` is the unpacked index of a release, ``dists/bookworm/main/binary-amd64/Packages.xz`` on
any mirror. A package is a node, and an edge leads to each package that it needs.

debian-interface   programs and what they need; how one uses a program (by its debtags), from its
                   size, architecture and priority
debian-size        games, graphics, sound, science and mathematics; the decimal logarithm of the
                   installed size, from section, architecture, maintainer, description and host
debian-sections    all packages; the section, from sizes, architecture, priority and maintainer
debian-texts       packages of sections for users; the section, from description and maintainer
"""

from __future__ import annotations

import argparse
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from email.parser import HeaderParser
from pathlib import Path

import pyarrow as pa

from table_case import write

Package = dict[str, str]
Packages = dict[str, Package]

_INTERFACES = {
    "graphical": "graphical",
    "x11": "graphical",
    "daemon": "daemon",
    "commandline": "command line",
    "shell": "command line",
    "text-mode": "text mode",
    "web": "web",
}  # by debtag; the first that a program has counts
_SIZED = ("games", "graphics", "math", "science", "sound")
_FOR_USERS = (
    *("admin", "database", "editors", "education", "electronics", "games", "graphics", "hamradio"),
    *("mail", "math", "net", "science", "sound", "text", "utils", "video", "web", "x11"),
)
_SHARED = 5  # programs that need a package, for it to be among those with an interface
_COMMON = 50  # packages of a section, for it to be a class


def main() -> None:
    """Write the folders."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("index", type=Path, help="the unpacked index of a release")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    packages = {package["Package"]: package for package in read_index(arguments.index)}
    graphs = {
        "interface": by_interface,
        "size": by_size,
        "sections": by_section,
        "texts": by_description,
    }
    for name, make in graphs.items():
        folder = arguments.output / f"debian-{name}"
        nodes, edges = make(packages)
        write(folder, nodes, edges)
        print(f"{folder}: {len(nodes)} nodes, {len(edges)} edges", flush=True)


def read_index(path: Path) -> Iterator[Package]:
    """The fields of each package."""
    parser = HeaderParser()
    for paragraph in path.read_text(encoding="utf-8").strip().split("\n\n"):
        yield dict(parser.parsestr(paragraph).items())


def by_interface(packages: Packages) -> tuple[pa.Table, pa.Table]:
    """How one uses a program, without a column that names many things."""
    programs = {name for name, package in packages.items() if "role::program" in tags(package)}
    needed = Counter(other for name in programs for other in needs(packages, name))
    names = [name for name in packages if name in programs or needed[name] >= _SHARED]
    chosen = [packages[name] for name in names]
    nodes = {
        "id": names,
        "interface": [interface(packages[name]) if name in programs else None for name in names],
        "installed_size": [number(package, "Installed-Size") for package in chosen],
        "architecture": [package["Architecture"] for package in chosen],
        "priority": [package["Priority"] for package in chosen],
    }
    return pa.table(nodes), edges_among(packages, names)


def by_size(packages: Packages) -> tuple[pa.Table, pa.Table]:
    """The size of a package, from a text and columns with many values."""
    names = [
        name
        for name, package in packages.items()
        if package["Section"] in _SIZED and number(package, "Installed-Size")
    ]
    chosen = [packages[name] for name in names]
    nodes = {
        "id": names,
        "log_size": [round(math.log10(int(package["Installed-Size"])), 4) for package in chosen],
        "section": [package["Section"] for package in chosen],
        "architecture": [package["Architecture"] for package in chosen],
        "maintainer": [maintainer(package) for package in chosen],
        "description": [package["Description"] for package in chosen],
        "host": [package.get("Homepage", "//").split("/")[2] for package in chosen],
        "tags": [len(tags(package)) for package in chosen],
    }
    return pa.table(nodes), edges_among(packages, names, "Depends", "Recommends", "Suggests")


def by_section(packages: Packages) -> tuple[pa.Table, pa.Table]:
    """The section of a package, one of dozens; rare ones are left empty."""
    count = Counter(package["Section"] for package in packages.values())
    every = packages.values()
    nodes = {
        "id": [*packages],
        "section": [
            package["Section"] if count[package["Section"]] >= _COMMON else None
            for package in every
        ],
        "installed_size": [number(package, "Installed-Size") for package in every],
        "size": [number(package, "Size") for package in every],
        "priority": [package["Priority"] for package in every],
        "architecture": [package["Architecture"] for package in every],
        "multi_arch": [package.get("Multi-Arch") for package in every],
        "maintainer": [maintainer(package) for package in every],
        "description_length": [len(package["Description"]) for package in every],
    }
    return pa.table(nodes), edges_among(packages, packages, "Depends", "Pre-Depends")


def by_description(packages: Packages) -> tuple[pa.Table, pa.Table]:
    """The section of a package, one of eighteen, from texts above all."""
    names = [name for name, package in packages.items() if package["Section"] in _FOR_USERS]
    chosen = [packages[name] for name in names]
    nodes = {
        "id": names,
        "section": [package["Section"] for package in chosen],
        "description": [package["Description"] for package in chosen],
        "maintainer": [maintainer(package) for package in chosen],
        "size": [number(package, "Installed-Size") for package in chosen],
    }
    return pa.table(nodes), edges_among(packages, names, "Depends", "Recommends", "Suggests")


def edges_among(packages: Packages, names: Iterable[str], *fields: str) -> pa.Table:
    """The edges between some packages; by default what one depends on."""
    inside = dict.fromkeys(names)
    pairs = [
        (name, other)
        for name in inside
        for other in needs(packages, name, *fields)
        if other in inside
    ]
    package, other = zip(*pairs, strict=True)
    return pa.table({"package": package, "needs": other})


def needs(packages: Packages, name: str, *fields: str) -> list[str]:
    """The packages, alternatives among them, that some fields of a package name."""
    listed = ",".join(packages[name].get(field, "") for field in fields or ("Depends",))
    needed = [re.split("[ (:]", entry.strip())[0] for entry in re.split("[,|]", listed)]
    return [other for other in dict.fromkeys(needed) if other in packages and other != name]


def tags(package: Package) -> list[str]:
    """The debtags of a package."""
    return re.findall(r"[^\s,]+", package.get("Tag", ""))


def interface(package: Package) -> str | None:
    """How one uses a program; None if its debtags do not say."""
    debtags = tags(package)
    kinds = [kind for tag, kind in _INTERFACES.items() if f"interface::{tag}" in debtags]
    return kinds[0] if kinds else None


def maintainer(package: Package) -> str:
    """The name without the address."""
    return package["Maintainer"].partition(" <")[0]


def number(package: Package, field: str) -> int | None:
    """A field that holds a number; None if it is missing."""
    return int(package[field]) if field in package else None


if __name__ == "__main__":
    main()
