"""Print constraints other than the pinned ones, for environments that try the ends of the ranges.

``python supply/bounds.py lowest`` gives the lowest version of every package that pyproject.toml
allows, ``newest`` no limit at all. torch is pinned in both: each of its builds takes gigabytes.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = ("torch",)
EXTRAS = ("baselines", "report")  # development tools may be of any version


def lowest() -> Iterator[str]:
    """Yield the lower end of each range."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for need in [*project["dependencies"], *(one for extra in EXTRAS for one in extras[extra])]:
        found = re.match(r"([\w-]+)>=([\w.]+)", need)
        if found and found[1] not in KEPT:
            yield f"{found[1]}=={found[2]}"


def main() -> None:
    """Print the lines of a constraints file."""
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    print(*(line for line in pins if line.split("==")[0] in KEPT), sep="\n")
    if sys.argv[1:] == ["lowest"]:
        print(*lowest(), sep="\n")


if __name__ == "__main__":
    main()
