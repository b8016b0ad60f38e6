"""Write docs/api.md: every public name with the first sentence of its docstring.

Run it with ``python docs/make_api.py``.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path

import mvlstm
from mvlstm.model.registry import FORECASTERS

PAGES = {
    "automation": ("Life with a model", "automation.md"),
    "compare": ("Comparing methods", "compare.md"),
    "graph": ("The graph of a table", "graph.md"),
    "contributing": ("Contributing", "../CONTRIBUTING.md"),
    "dirty-table": ("A dirty table", "dirty-table.md"),
    "ecosystem": ("With the tools you have", "ecosystem.md"),
    "experiments": ("Experiments", "experiments.md"),
    "gallery": ("Gallery", "gallery.md"),
    "guide": ("Guide", "guide.md"),
    "importance": ("Importance", "importance.md"),
    "mathematics": ("Mathematics", "mathematics.md"),
    "reliability": ("Reliability", "reliability.md"),
    "scale": ("Many series, many machines", "scale.md"),
    "scikit-learn": ("With scikit-learn", "scikit-learn.md"),
    "serving": ("Serving", "serving.md"),
}
METHODS = "compare#the-methods"
# heading: name, and the page and section that tell more of it
GROUPS = {
    "The model": {
        "MVLSTM": "mathematics#the-network",
        "MVLSTM.paper": "mathematics#presets",
        "MVLSTM.indep": "mathematics#presets",
        "MVLSTM.fusion": "mathematics#presets",
        "MVLSTM.readable": "importance#attention-that-can-be-believed",
    },
    "What every forecaster does": {
        "MVLSTM.fit": "guide#from-table-to-windows",
        "MVLSTM.predict": "mathematics#predictive-distribution",
        "MVLSTM.forecast": "mathematics#predictive-distribution",
        "MVLSTM.evaluate": "guide#how-good-is-it",
        "MVLSTM.score": "scikit-learn",
        "MVLSTM.explain": "importance#how-to-read-it",
        "MVLSTM.report": "gallery#the-report",
        "MVLSTM.update": "automation#what-an-update-does",
        "MVLSTM.save": "reliability#files",
        "MVLSTM.export": "serving#the-file",
        "load": "reliability#files",
    },
    "Other forecasters": {name: METHODS for name in FORECASTERS if name != "MVLSTM"},
    "Many series": {
        "many": "scale",
        "many.fit": "scale#many-series",
        "many.forecast": "scale#many-series",
        "many.explain": "scale#many-series",
        "many.convert": "scale#many-series",
        "many.Summary": "scale#many-series",
    },
    "Comparing and tuning": {
        "compare": "compare",
        "graph": "graph",
        "backtest": "compare#rolling-origins",
        "tune": "experiments#tuning-on-ones-own-table",
        "metrics": "guide#how-good-is-it",
    },
    "Results": {
        "Check": "dirty-table",
        "Forecast": "mathematics#predictive-distribution",
        "Evaluation": "automation#when-a-model-has-slipped",
        "Explanation": "importance#how-to-read-it",
        "Comparison": "compare#how-to-read-the-rows",
        "Graph": "graph#how-to-read-it",
        "Tuned": "experiments#tuning-on-ones-own-table",
        "Forecast.to_nixtla": "ecosystem#nixtlas-long-format",
        "Explanation.to_shap": "ecosystem#shap",
        "History": "mathematics#the-network",
        "results": "gallery",
    },
    "Data": {
        "check": "dirty-table",
        "from_nixtla": "ecosystem#nixtlas-long-format",
        "table": "guide#real-tables",
        "datasets": "experiments#the-two-protocols",
    },
    "Explaining and drawing": {
        "explain": "importance",
        "plot": "gallery",
    },
    "A forecaster of one's own": {
        "AbstractForecaster": "contributing#add-a-forecaster",
        "testing": "contributing#add-a-forecaster",
    },
    "Errors and warnings": {
        "MVLSTMError": "contributing#where-things-go",
        "MVLSTMWarning": "automation#a-crontab",
        "errors": "contributing#where-things-go",
    },
    "Version": {"__version__": "contributing#install-and-test"},
}
HEAD = """\
# Public names

`import mvlstm as mv` makes these names available, as `mv.MVLSTM` and so on; they are loaded when
first used. `help(mv.MVLSTM)` shows a docstring in full, with all parameters; here are their names
and defaults. Every forecaster has the methods of `MVLSTM`, except for the presets of the paper.

*Made from the docstrings by [`make_api.py`](make_api.py).*
"""


def main() -> None:
    Path(__file__).with_name("api.md").write_text(page(), encoding="utf-8")


def page() -> str:
    """Return the whole page; every public name must be in a group."""
    shown = {name for group in GROUPS.values() for name in group if "." not in name}
    assert shown == set(mvlstm.__all__), f"to be put in a group: {shown ^ set(mvlstm.__all__)}"
    return "\n".join([HEAD, *(_group(title, names) for title, names in GROUPS.items())])


def _group(title: str, names: dict[str, str]) -> str:
    rows = [f"| `{name}` | {_sentence(name)} | {_link(more)} |" for name, more in names.items()]
    table = [f"## {title}\n", "| name | what it is | more |", "|---|---|---|", *rows, ""]
    signatures = [text for name in names if (text := _signature(name))]
    return "\n".join([*table, *(["```text", *signatures, "```", ""] if signatures else [])])


def _signature(name: str, width: int = 100) -> str:
    """Return a function's or class's call with its arguments and their defaults, on short lines."""
    value = _value(name)
    if not callable(value) or inspect.isabstract(value) or _is_exception(value):
        return ""
    arguments = [a for a in inspect.signature(value).parameters.values() if a.name != "self"]
    words: list[str] = []
    for before, one in zip([None, *arguments], arguments, strict=False):
        first = before is None or before.kind is not inspect.Parameter.KEYWORD_ONLY
        if one.kind is inspect.Parameter.KEYWORD_ONLY and first:
            words.append("*")
        text = str(one.replace(annotation=inspect.Parameter.empty)).replace(" = ", "=")
        words.append(text if len(text) < 60 else f"{one.name}=...")
    text = f"{name}({', '.join(words)})"
    return "\n".join(textwrap.wrap(text, width, subsequent_indent="    ", break_long_words=False))


def _is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def _sentence(name: str) -> str:
    """Return the first sentence of a docstring, on one line."""
    if name == "__version__":
        return "The version of the package, as text."
    value = _value(name)
    text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
    first = re.split(r"(?<=\.)\s+(?=[A-Z])", text)[0]  # "et al. (2017)" goes on
    return first.replace("``", "`").replace("|", r"\|")


def _value(name: str) -> object:
    value: object = mvlstm
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _link(more: str) -> str:
    key, _, section = more.partition("#")
    title, path = PAGES[key]
    return f"[{title}]({path}{'#' if section else ''}{section})"


if __name__ == "__main__":
    main()
