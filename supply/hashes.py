"""Write ``hashes.txt``: the pinned packages with the checksums of their files.

``python supply/hashes.py > hashes.txt`` asks the index that PIP_INDEX_URL names, or pip's own.
torch is left out: its builds for CPUs and GPUs are different files of one version, and bring
packages of their own.
"""

from __future__ import annotations

import os
import re
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILDS = ("torch",)
FILES = re.compile(r"/([^/#\"]+)#sha256=(\w{64})\"")
WANTED = re.compile(
    r"(cp31[123]|abi3|py3|py2\.py3)-.*(any|manylinux\w*|macosx\w*|win_amd64)\.whl$|\.tar\.gz$"
)


def pins() -> list[tuple[str, str]]:
    """Return the names and versions of the pinned packages."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [tuple(line.split("==")) for line in lines if "==" in line]  # type: ignore[misc]


def checksums(index: str, name: str, version: str) -> list[str]:
    """Return the checksums of a version's wheels for supported Pythons, and of its source."""
    with urllib.request.urlopen(f"{index.rstrip('/')}/{name}/", timeout=60) as page:
        text = page.read().decode()
    stem = "[-_.]+".join(re.escape(word) for word in name.split("-"))
    start = re.compile(rf"{stem}-{re.escape(version)}[-.]", re.IGNORECASE)
    files = dict(FILES.findall(text))
    return sorted({s for f, s in files.items() if start.match(f) and WANTED.search(f)})


def main() -> None:
    """Print the file."""
    from pip._internal.models.index import PyPI

    index = os.environ.get("PIP_INDEX_URL") or PyPI.simple_url
    print("# Checksums of what constraints.txt pins; written by supply/hashes.py.")
    for name, version in pins():
        if name not in BUILDS:
            found = checksums(index, name, version)
            print(" \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{s}" for s in found)]))


if __name__ == "__main__":
    main()
