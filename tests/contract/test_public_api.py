"""The public surface: names, docstrings, versions and the command line agree with each other."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import re
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest

import mvlstm

PROJECT = Path(__file__).parents[2]


def _public_objects() -> dict[str, object]:
    """Every public class and function, and the public methods of the classes."""
    found: dict[str, object] = {}
    for name in mvlstm.__all__:
        value = getattr(mvlstm, name)
        if isinstance(value, types.ModuleType | str):
            continue
        found[name] = value
        if inspect.isclass(value):
            found |= {
                f"{name}.{key}": getattr(value, key)
                for base in value.__mro__
                if base.__module__.startswith("mvlstm.")
                for key, member in vars(base).items()
                if not key.startswith("_")
                and (inspect.isfunction(member) or isinstance(member, classmethod))
            }
    return found


def _documented_parameters(docstring: str) -> list[str]:
    section = re.search(r"Parameters\n-+\n(.*?)(?:\n\n\S[^\n]*\n-+\n|\Z)", docstring, re.DOTALL)
    if section is None:
        return []
    heads = re.findall(r"^(\S[^\n:]*?)(?: :.*)?$", section.group(1), re.MULTILINE)
    return [part.strip().lstrip("*") for head in heads for part in head.split(",")]


def test_all_is_complete() -> None:
    lazy = {**mvlstm._NAMES, **mvlstm._MODULES}
    assert set(mvlstm.__all__) == {*lazy, "__version__"}
    assert set(mvlstm.__all__) <= set(dir(mvlstm))


@pytest.mark.parametrize("name", mvlstm.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(mvlstm, name) is getattr(mvlstm, name)


def test_the_reader_of_tables_is_there_in_a_fresh_session() -> None:
    code = "import mvlstm; print(mvlstm.table.read_table.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "read_table", done.stderr


def test_type_checkers_see_the_same_modules() -> None:
    tree = ast.parse(Path(mvlstm.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    modules = {name: path.rpartition(".")[0] for name, path in mvlstm._MODULES.items()}
    assert seen == {**mvlstm._NAMES, **modules}


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'MVLSMT'"):
        mvlstm.MVLSMT  # noqa: B018


@pytest.mark.parametrize("name", _public_objects())
def test_docstrings_describe_the_parameters(name: str) -> None:
    value = _public_objects()[name]
    docstring = inspect.getdoc(value)
    assert docstring, f"{name} has no docstring"
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]
    except ValueError:
        return
    documented = _documented_parameters(docstring)
    unknown = set(documented) - set(signature.parameters)
    assert not unknown, f"{name} documents {sorted(unknown)}, which it does not take"
    if documented:
        missing = [
            p
            for p in signature.parameters
            if p not in {*documented, "self", "cls"} and not p.startswith("_")
        ]
        assert not missing, f"{name} takes {missing}, which it does not document"


def test_version_stands_in_one_place() -> None:
    assert importlib.metadata.version("mvlstm") == mvlstm.__version__
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "version" in project["dynamic"]


def test_constraints_pin_every_requirement() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *(r for name in extras for r in extras[name])]
    names = {re.match(r"[\w-]+", r)[0].lower() for r in wanted}  # type: ignore[index]
    files = ("constraints-adapters.txt", "constraints.txt")
    lines = [one for name in files for one in (PROJECT / name).read_text("utf-8").splitlines()]
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert names - set(pins) <= {"mvlstm", "xgboost"}  # xgboost proper: macOS only
    assert pins["torch"] == "2.13.0"


def test_fit_options_mirror_the_constructor() -> None:
    from mvlstm.cli.fit import fit
    from mvlstm.cli.options import PRESETS

    options = set(inspect.signature(fit).parameters)
    columns = {"target", "time", "variables", "exclude", "test", "valid"}
    columns |= {"series", "known", "categorical", "na_values", "checkpoint", "time_limit"}
    columns |= {"engine"}
    command_only = {"data", "out", "sep", "decimal", "preset", "quiet", "as_json", "debug"}
    command_only |= {"resume", "memory"}
    constructor = set(inspect.signature(mvlstm.MVLSTM).parameters)
    assert options - columns - command_only == constructor - {"verbose"}
    assert columns <= set(inspect.signature(mvlstm.MVLSTM.fit).parameters)
    assert all(callable(getattr(mvlstm.MVLSTM, preset)) for preset in PRESETS[1:])


ARGUMENTS = inspect.signature(mvlstm.MVLSTM).parameters


def _differences() -> str:
    """Return the section on where the paper's model and ours differ."""
    text = (PROJECT / "docs" / "mathematics.md").read_text(encoding="utf-8")
    return text.split("## Where the paper's model and ours differ\n")[1].split("\n## ")[0]


def _rows() -> dict[str, tuple[str, str]]:
    """Name of the argument in the first cell: the paper's cell, and ours."""
    cells = [line.split("|")[1:4] for line in _differences().splitlines() if line.startswith("|")]
    rows = {first.strip().strip("`"): (paper, ours) for first, paper, ours in cells}
    return {name: both for name, both in rows.items() if name in ARGUMENTS}


def _says(cell: str, value: object) -> bool:
    """Say whether a cell has a value: text in quotes, numbers however they are written."""
    if isinstance(value, str):
        return f'"{value}"' in cell
    return value in [float(number) for number in re.findall(r"\d+(?:\.\d+)?", cell)]


@pytest.mark.parametrize("name", _rows())
def test_the_section_tells_the_defaults(name: str) -> None:
    papers, defaults = mvlstm.MVLSTM.paper().get_params(), mvlstm.MVLSTM().get_params()
    paper, ours = _rows()[name]
    for other in {name, *re.findall(r"`(\w+)`", ours)} & set(ARGUMENTS):
        assert _says(ours, defaults[other]), f"{other} is {defaults[other]!r} by default"
        assert _says(paper, papers[other]), f"{other} is {papers[other]!r} in the paper"


def test_the_section_names_every_difference() -> None:
    papers, defaults = mvlstm.MVLSTM.paper().get_params(), mvlstm.MVLSTM().get_params()
    differ = {name for name in ARGUMENTS if papers[name] != defaults[name]}
    assert differ == differ & set(re.findall(r"`(\w+)`", _differences()))
    assert len(_rows()) >= 9
