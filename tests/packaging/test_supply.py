"""What is installed is pinned, with checksums, and told in the bill of materials."""

from __future__ import annotations

import email
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
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


def built(folder: Path, moment: int, project: str = ".") -> Path:
    """Build a wheel from a copy of the sources, whose files are as old as this moment."""
    source = folder / "source"
    names = ("pyproject.toml", "README.md", "LICENSE", "src", "supply")
    for name in names:
        path = PROJECT / name
        copy = shutil.copytree if path.is_dir() else shutil.copy
        source.mkdir(exist_ok=True)
        copy(path, source / name)
    for path in source.rglob("*"):
        os.utime(path, (moment, moment))
        path.chmod(0o755 if path.is_dir() else (0o600, 0o664)[moment % 2])
    words = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(words, cwd=source / project, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.mark.parametrize("project", [".", "supply/runtime"])
@pytest.mark.parametrize("epoch", [None, "1767225600"])
def test_the_wheel_is_the_same_to_the_byte(
    epoch: str | None, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    if epoch:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    folders = [tmp_path / "one", tmp_path / "another"]
    for folder in folders:
        folder.mkdir()
    first, second = (built(f, 1_500_000_001 + k, project) for k, f in enumerate(folders))
    assert first.read_bytes() == second.read_bytes()
    year = zipfile.ZipFile(first).infolist()[0].date_time[0]
    assert year == (2026 if epoch else 2020)  # of hatchling, where nothing is said


def test_the_metadata_name_every_supported_python(tmp_path: Path) -> None:
    wheel = zipfile.ZipFile(built(tmp_path, 1_500_000_000))
    (name,) = (n for n in wheel.namelist() if n.endswith("METADATA"))
    told = email.message_from_bytes(wheel.read(name))
    assert told["Requires-Python"] == ">=3.11"
    versions = {c.split(" :: ")[-1] for c in told.get_all("Classifier") if "Python :: 3." in c}
    assert versions == {"3.11", "3.12", "3.13"}
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(told.get_all("Provides-Extra")) == set(extras["project"]["optional-dependencies"])
    needed = [line for line in told.get_all("Requires-Dist") if "extra ==" not in line]
    assert len(needed) == len(extras["project"]["dependencies"])


def test_the_runner_is_the_same_package_with_fewer_needs(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "another"]
    for folder in folders:
        folder.mkdir()
    whole = zipfile.ZipFile(built(folders[0], 1_500_000_000))
    runner = zipfile.ZipFile(built(folders[1], 1_500_000_000, "supply/runtime"))
    files = [
        {n: w.read(n) for n in w.namelist() if n.startswith("mvlstm/")} for w in (whole, runner)
    ]
    assert files[0] == files[1]
    assert any(name.endswith("licenses/LICENSE") for name in runner.namelist())

    def needs(name: str) -> set[str]:
        project = tomllib.loads((PROJECT / name).read_text(encoding="utf-8"))["project"]
        extras = project["optional-dependencies"]
        return {*project["dependencies"], *extras.get("runtime", ()), *extras["serve"]}

    own = needs("supply/runtime/pyproject.toml")
    assert own < needs("pyproject.toml") and not any(need.startswith("torch") for need in own)
