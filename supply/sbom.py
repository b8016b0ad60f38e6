"""Write the bill of materials of the wheel: what it needs to run, as CycloneDX in JSON.

``python supply/sbom.py dist`` puts ``mvlstm-VERSION.cdx.json`` next to the wheel. Versions are
those that constraints.txt pins, checksums those of hashes.txt, licences what is installed says.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXTRAS = ("baselines", "report")


def requirements(name: str, extras: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the names of what an installed package needs on this system."""
    from packaging.requirements import Requirement

    for line in metadata.requires(name) or ():
        need = Requirement(line)
        wanted = [{"extra": extra} for extra in ("", *extras)]
        if need.marker is None or any(need.marker.evaluate(one) for one in wanted):
            yield re.sub(r"[-_.]+", "-", need.name).lower()


def closure(name: str) -> dict[str, list[str]]:
    """Return every package that this one needs, and what each of these needs."""
    graph: dict[str, list[str]] = {}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in graph:
            try:
                graph[one] = sorted(set(requirements(one, EXTRAS if one == name else ())))
            except metadata.PackageNotFoundError:  # a build of torch brings others
                graph[one] = []
            waiting += graph[one]
    return graph


def checksums() -> dict[str, list[str]]:
    """Return the checksums of hashes.txt by package."""
    text = (ROOT / "hashes.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if "==" in line]
    return {line.split("==")[0]: re.findall(r"sha256:(\w+)", line) for line in lines}


def component(name: str, sums: dict[str, list[str]]) -> dict[str, Any]:
    """Describe one package."""
    try:
        told = metadata.metadata(name)
        version = told["Version"].split("+")[0]
        licence = told.get("License-Expression") or told.get("License") or ""
    except metadata.PackageNotFoundError:
        version, licence = "", ""
    hashes = [{"alg": "SHA-256", "content": one} for one in sums.get(name, ())]
    named = [{"license": {"name": licence.splitlines()[0][:100]}}] if licence else []
    reference = f"pkg:pypi/{name}@{version}"
    found = {"type": "library", "bom-ref": reference, "purl": reference}
    found |= {"name": name, "version": version}
    return found | ({"licenses": named} if named else {}) | ({"hashes": hashes} if hashes else {})


def bill() -> dict[str, Any]:
    """Return the whole bill."""
    graph, sums = closure("mvlstm"), checksums()
    parts = {name: component(name, sums) for name in graph}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": parts["mvlstm"]},
        "components": [parts[name] for name in sorted(graph) if name != "mvlstm"],
        "dependencies": [
            {"ref": parts[name]["bom-ref"], "dependsOn": [parts[n]["bom-ref"] for n in needs]}
            for name, needs in sorted(graph.items())
        ],
    }


def main() -> None:
    """Write the file."""
    found = bill()
    version = found["metadata"]["component"]["version"]
    path = Path(sys.argv[1]) / f"mvlstm-{version}.cdx.json"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path}: {len(found['components'])} packages")


if __name__ == "__main__":
    main()
