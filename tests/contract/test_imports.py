"""Who may import whom: every arrow between modules points downwards, heavy libraries load late."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import mvlstm

ROOT = Path(mvlstm.__file__).parent

# room: what it may import besides itself and what anyone may
ANYONE = {"errors", "types", "settings", "_version", "_words"}
EVERYTHING = {"*"}
ALLOWED: dict[str, set[str]] = {
    **{name: set() for name in ANYONE},
    "progress": set(),
    "storage": set(),
    "engine": {"storage"},  # tasks and Ray: it knows nothing of what they do
    "metrics": set(),
    "recalibration": set(),  # numpy alone, for `runtime`
    "nn": set(),
    "transforms": {"metrics"},
    "table": {"storage"},
    "datasets": {"table", "storage"},
    "train": {"nn", "storage", "progress", "engine"},  # members as tasks
    # of train the settings of a member, of progress what is told of a fit
    "problem": {"table", "transforms", "storage", "train", "progress"},
    "results": {"metrics", "transforms", "recalibration"},
    "explain": {"results", "metrics"},
    "model": {
        *("problem", "table", "explain", "results", "metrics", "transforms", "storage"),
        *("progress", "train", "recalibration", "engine"),
    },
    "methods": {
        *("model", "problem", "table", "nn", "train", "explain", "results", "metrics"),
        *("progress", "engine"),
    },
    "evaluate": {
        *("explain", "model", "problem", "table", "results", "metrics", "progress", "engine"),
    },
    # series that stay on disk, a block at a time through the same models
    "many": {"model", "explain", "problem", "table", "storage", "progress", "engine"},
    "bench": {
        *("evaluate", "methods", "model", "problem", "explain", "datasets", "table", "results"),
        *("metrics", "train", "storage", "progress", "engine"),
    },
    "plot": {"results"},
    "report": {"plot", "results", "model", "problem", "table", "storage", "progress"},
    "testing": {"model", "table", "results", "datasets"},
    # a fitted model in the form of another tool: `adapters/onnx` writes out networks and scaling
    "adapters": {
        *("model", "nn", "problem", "table", "transforms", "storage", "methods", "results"),
    },
    # forecasts of an exported model where neither torch nor pandas need be installed
    "runtime": {"recalibration"},
    "demo": {"methods", "datasets", "table", "storage", "report", "results"},
    "cli": EVERYTHING,
    "__main__": {"cli"},
    "__init__": EVERYTHING,  # names the public modules; at run time it imports them when asked
}
# The only imports that point up, each inside a method that users expect on the estimator:
# (module, room) -> why
UPWARD = {
    ("model/forecaster.py", "report"): "model.report(table, path)",
    ("model/forecaster.py", "adapters"): "model.export(path)",
}
# What is drawn of the report knows no model: only the gathering of its contents does.
NO_MODEL = {"report": "gather.py"}

LIGHT_LAYERS = {"cli", "__init__", "errors", "settings"}
TORCH_LAYERS = {"nn", "train", "methods", "model"}
FORBIDDEN_LIBRARIES = {"nn": {"pandas", "sklearn", "rich", "safetensors"}}
LATE_LIBRARIES = {
    *("plotly", "jinja2", "ray", "xgboost", "statsmodels", "pyarrow", "onnx", "onnxruntime"),
    *("starlette", "uvicorn", "anyio", "polars", "shap"),
}
HEAVY_LIBRARIES = {"torch", "pandas", "numpy", "scipy", "sklearn", "safetensors"} | LATE_LIBRARIES


@dataclass(frozen=True)
class Import:
    """One imported module, where it stands, and whether it runs when the file is imported."""

    module: str
    line: int
    at_import: bool


def _python_files() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def _layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def _package(path: Path) -> list[str]:
    return ["mvlstm", *path.relative_to(ROOT).parts[:-1]]


def _imports(path: Path) -> Iterator[Import]:
    """Yield what a file imports, inside functions and for annotations too."""
    late: set[ast.AST] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        typing_only = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        if typing_only or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            late.update(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, node not in late)
        elif isinstance(node, ast.ImportFrom):
            base = _package(path)[: len(_package(path)) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield Import(f"{module}.{alias.name}", node.lineno, node not in late)


def _inner_layer(name: str) -> str | None:
    """Layer of ours that ``name`` belongs to; None if it is not ours."""
    parts = name.split(".")
    if parts[0] != "mvlstm":
        return None
    if len(parts) == 1:
        return "__init__"
    public = {**mvlstm._NAMES, **mvlstm._MODULES}
    if len(parts) == 2 and parts[1] in public:
        return public[parts[1]].split(".")[1]
    return "_version" if parts[1] == "__version__" else parts[1]


@pytest.mark.parametrize("path", _python_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_arrows_point_down(path: Path) -> None:
    layer = _layer(path)
    assert layer in ALLOWED, f"add the layer '{layer}' to the table in this test"
    allowed = ALLOWED[layer] | ANYONE | {layer}
    name = path.relative_to(ROOT).as_posix()
    wrong = [
        f"line {found.line}: {layer} imports {found.module}"
        for found in _imports(path)
        if (inner := _inner_layer(found.module)) is not None
        and inner not in allowed
        and allowed.isdisjoint(EVERYTHING)
        and (found.at_import or (name, inner) not in UPWARD)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_exception_is_used() -> None:
    for name, room in UPWARD:
        layers = {_inner_layer(found.module) for found in _imports(ROOT / name)}
        assert room in layers, f"{name} no longer imports {room}: strike it from UPWARD"


def test_only_gathering_knows_the_model() -> None:
    for room, gathering in NO_MODEL.items():
        for path in (ROOT / room).glob("*.py"):
            layers = {_inner_layer(found.module) for found in _imports(path)}
            assert path.name == gathering or layers.isdisjoint({"model", "methods"}), path.name


def _module(path: Path) -> str:
    parts = ("mvlstm", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def test_no_cycle_between_modules() -> None:
    """Imports inside functions and for annotations count; those of a package's __init__ do not."""
    known = {_module(path): path for path in _python_files()}

    def owner(name: str) -> str | None:
        while name and name not in known:
            name = name.rpartition(".")[0]
        return name or None

    graph = {
        module: {
            found
            for one in _imports(path)
            if (found := owner(one.module)) not in (None, module)
            and not module.startswith(f"{found}.")
        }
        for module, path in known.items()
    }
    done: set[str] = set()

    def walk(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join((*trail[trail.index(module) :], module))
        if module in done:
            return
        for other in sorted(graph[module]):
            walk(other, (*trail, module))
        done.add(module)

    for module in sorted(graph):
        walk(module, ())


@pytest.mark.parametrize("path", _python_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_libraries_stay_in_their_layers(path: Path) -> None:
    layer = _layer(path)
    forbidden = set(FORBIDDEN_LIBRARIES.get(layer, ()))
    if layer not in TORCH_LAYERS:
        forbidden.add("torch")
    found = list(_imports(path))
    wrong = [f"line {i.line}: {i.module}" for i in found if i.module.split(".")[0] in forbidden]
    early = LATE_LIBRARIES | (HEAVY_LIBRARIES if layer in LIGHT_LAYERS else set())
    wrong += [
        f"line {i.line}: {i.module} must be imported inside the function that needs it"
        for i in found
        if i.at_import and i.module.split(".")[0] in early
    ]
    assert not wrong, "\n".join(wrong)


def _loaded_after(code: str) -> set[str]:
    script = f"{code}\nimport json, sys\nsys.stderr.write(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=6000
    )
    return {name.split(".")[0] for name in json.loads(done.stderr)}


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = _loaded_after("import mvlstm")
    assert loaded.isdisjoint(HEAVY_LIBRARIES | {"typer", "rich"})


def test_help_loads_nothing_heavy() -> None:
    code = "from mvlstm.cli.app import app\napp(['{}', '--help'], standalone_mode=False)"
    for command in ("fit", "demo"):
        loaded = _loaded_after(code.format(command))
        assert "typer" in loaded
        assert loaded.isdisjoint(HEAVY_LIBRARIES)


def test_results_need_no_torch() -> None:
    code = "import mvlstm as mv\nmv.Forecast, mv.Explanation, mv.datasets"
    assert "torch" not in _loaded_after(code)
