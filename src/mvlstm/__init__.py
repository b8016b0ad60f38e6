"""Forecast one series from many, and see which variables matter, at which lags, and how surely.

The public names below are resolved when first used, so that ``import mvlstm`` stays quick.

Examples
--------
>>> import mvlstm as mv
>>> table = mv.datasets.load("synthetic").frame
>>> list(table.columns[-3:])
['x8', 'x9', 'y']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mvlstm._version import __version__
from mvlstm.model.registry import FORECASTERS as _FORECASTERS

if TYPE_CHECKING:
    from mvlstm import datasets, errors, explain, many, metrics, plot, results, table, testing
    from mvlstm.bench.tune import Tuned, tune
    from mvlstm.errors import MVLSTMError, MVLSTMWarning
    from mvlstm.evaluate.backtest import backtest
    from mvlstm.evaluate.compare import compare
    from mvlstm.evaluate.graph import graph
    from mvlstm.methods.clstm import CLSTM
    from mvlstm.methods.dual import DUAL
    from mvlstm.methods.linear import AR, ENET
    from mvlstm.methods.lstm import LSTM
    from mvlstm.methods.mvlstm import MVLSTM
    from mvlstm.methods.naive import Persistence, SeasonalPersistence
    from mvlstm.methods.retain import RETAIN
    from mvlstm.methods.statespace import ARIMAX, STRX
    from mvlstm.methods.trees import GBT, RF, XGT
    from mvlstm.model.checking import check
    from mvlstm.model.forecaster import AbstractForecaster
    from mvlstm.model.loading import load
    from mvlstm.results import Check, Comparison, Evaluation, Explanation, Forecast, Graph, History
    from mvlstm.table.nixtla import from_nixtla

__all__ = [
    "AR",
    "ARIMAX",
    "CLSTM",
    "DUAL",
    "ENET",
    "GBT",
    "LSTM",
    "MVLSTM",
    "RETAIN",
    "RF",
    "STRX",
    "XGT",
    "AbstractForecaster",
    "Check",
    "Comparison",
    "Evaluation",
    "Explanation",
    "Forecast",
    "Graph",
    "History",
    "MVLSTMError",
    "MVLSTMWarning",
    "Persistence",
    "SeasonalPersistence",
    "Tuned",
    "__version__",
    "backtest",
    "check",
    "compare",
    "datasets",
    "errors",
    "explain",
    "from_nixtla",
    "graph",
    "load",
    "many",
    "metrics",
    "plot",
    "results",
    "table",
    "testing",
    "tune",
]

_ROOMS = (
    *("datasets", "errors", "explain", "many", "metrics", "plot", "results", "table", "testing"),
)
_MODULES = {name: f"mvlstm.{name}" for name in _ROOMS}
_RESULTS = ("Check", "Comparison", "Evaluation", "Explanation", "Forecast", "Graph", "History")
_NAMES = {
    **{name: entry.path for name, entry in _FORECASTERS.items()},
    "AbstractForecaster": "mvlstm.model.forecaster",
    "check": "mvlstm.model.checking",
    "load": "mvlstm.model.loading",
    "backtest": "mvlstm.evaluate.backtest",
    "compare": "mvlstm.evaluate.compare",
    "from_nixtla": "mvlstm.table.nixtla",
    "graph": "mvlstm.evaluate.graph",
    "tune": "mvlstm.bench.tune",
    "Tuned": "mvlstm.bench.tune",
    **dict.fromkeys(_RESULTS, "mvlstm.results"),
    "MVLSTMError": "mvlstm.errors",
    "MVLSTMWarning": "mvlstm.errors",
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value: object = import_module(_MODULES[name])
    elif name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    else:
        raise AttributeError(f"module 'mvlstm' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
