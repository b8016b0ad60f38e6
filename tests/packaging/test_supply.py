"""What is installed is pinned, with checksums, and told in the bill of materials."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

from packaging.version import Version

PROJECT = Path(__file__).parents[2]
BUILDS = {"torch"}  # of CPU and GPU: different files of one version


def pinned(name: str) -> dict[str, str]:
    text = (PROJECT / name).read_text(encoding="utf-8")
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE))


def test_every_pinned_package_has_its_checksums() -> None:
    pins, hashed = pinned("constraints.txt"), pinned("hashes.txt")
    assert hashed == {k: v for k, v in pins.items() if k not in BUILDS}
    text = (PROJECT / "hashes.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if "==" in line]
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", line) for line in lines)


def script(name: str) -> Any:
    """Import a script of the folder ``supply``."""
    spec = importlib.util.spec_from_file_location(name, PROJECT / "supply" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_lowest_versions_are_below_the_pinned_ones() -> None:
    pins = pinned("constraints.txt")
    lowest = dict(line.split("==") for line in script("bounds").lowest())
    assert {"numpy", "pandas", "scikit-learn", "plotly"} <= set(lowest) and "torch" not in lowest
    assert all(Version(lowest[name]) <= Version(pins[name]) for name in set(lowest) & set(pins))


def test_the_bill_of_materials_names_what_the_wheel_needs() -> None:
    bill = script("sbom").bill()
    parts = {one["name"]: one for one in bill["components"]}
    assert {"torch", "numpy", "pandas", "pyarrow", "safetensors", "typer", "plotly"} <= set(parts)
    assert "pytest" not in parts and "ruff" not in parts
    pins = pinned("constraints.txt")
    for name in set(parts) & set(pins) - BUILDS:
        assert parts[name]["version"] == pins[name] and parts[name]["hashes"]
