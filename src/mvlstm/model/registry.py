"""The forecasters of the package: one entry each, from which all lists of them derive.

The public names of `mvlstm`, model files, the methods of a comparison, the documentation and the
tests read `FORECASTERS`. A class is loaded when first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from mvlstm.errors import check_option

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """A forecaster of the package.

    Settings within a budget of a comparison come on top of those that all methods share.
    """

    module: str  # where its class stands, below `mvlstm.methods`
    key: str = ""  # its name in comparisons; by default that of the class in small letters
    presets: Mapping[str, str] = field(default_factory=dict)  # class methods, and their labels
    quick: Settings = field(default_factory=dict)  # within the quick budget
    full: Settings = field(default_factory=dict)  # within the full budget
    # what is chosen on validation rows within either or each budget, in words
    tuning: str | tuple[str, str] = "one setting, early stopping, at most {epochs} epochs"
    small: Settings = field(default_factory=dict)  # to learn a short table in a moment, for tests

    @property
    def path(self) -> str:
        """Its module in full."""
        return f"mvlstm.methods.{self.module}"

    def words(self, budget: str) -> str:
        """Return what is chosen within a budget, in words."""
        both = (self.tuning, self.tuning) if isinstance(self.tuning, str) else self.tuning
        return both[("quick", "full").index(budget)]


_NETWORK = {"hidden_size": 3, "members": 2, "max_epochs": 2, "batch_size": 32}
_FEW_ROWS = {"fit_rows": 3_000, "max_iterations": 30}

FORECASTERS: dict[str, Entry] = {
    "MVLSTM": Entry(
        "mvlstm",
        presets={
            "paper": "MV-LSTM (paper)",
            "indep": "MV-Indep",
            "fusion": "MV-Fusion",
            "readable": "MVLSTM, readable",
        },
        small=_NETWORK,
    ),
    "LSTM": Entry("lstm", small=_NETWORK),
    "DUAL": Entry("dual", small=_NETWORK),
    "RETAIN": Entry("retain", small=_NETWORK),
    "CLSTM": Entry(
        "clstm",
        quick={"penalties": (1.0, 0.37, 0.14, 0.052, 0.019)},
        tuning=(
            "5 penalties, early stopping, at most {epochs} epochs",
            "8 penalties, early stopping, at most {epochs} epochs",
        ),
        small=_NETWORK | {"penalties": (0.1,)},
    ),
    "STRX": Entry(
        "statespace",
        quick=_FEW_ROWS,
        tuning=(
            "likelihood on the last 3,000 training rows, 30 iterations",
            "likelihood on all training rows, 50 iterations",
        ),
        small={"max_iterations": 5},
    ),
    "ARIMAX": Entry(
        "statespace",
        quick=_FEW_ROWS,
        tuning=(
            "orders by ACF and PACF; likelihood on the last 3,000 rows, 30 iterations",
            "orders by ACF and PACF; likelihood on all training rows, 50 iterations",
        ),
        small={"max_iterations": 5, "order": (1, 0, 1)},
    ),
    "RF": Entry(
        "trees",
        quick={"grid": "quick"},
        full={"grid": "paper"},
        tuning=("2 depths x 6 sizes", "8 depths x 6 sizes"),
        small={"grid": "quick", "max_trees": 5, "n_jobs": 1},
    ),
    "XGT": Entry(
        "trees",
        quick={"grid": "quick"},
        full={"grid": "paper"},
        tuning=(
            "3 depths, 3 penalties, best of 200 rounds",
            "8 depths, 6 penalties, best of 200 rounds",
        ),
        small={"grid": "quick", "max_rounds": 5, "n_jobs": 1},
    ),
    "ENET": Entry(
        "linear",
        quick={"grid": "quick"},
        full={"grid": "extended"},
        tuning=("18 pairs of penalties", "144 pairs of penalties"),
        small={"grid": "quick"},
    ),
    "AR": Entry("linear", tuning="19 penalties"),
    "GBT": Entry(
        "trees",
        quick={"grid": "quick"},
        full={"grid": "default"},
        tuning=("2 settings, best of 300 rounds", "6 settings, best of 300 rounds"),
        small={"grid": "quick", "max_rounds": 10},
    ),
    "Persistence": Entry("naive", tuning="nothing to tune"),
    "SeasonalPersistence": Entry("naive", key="seasonal", tuning="the cycle, on training rows"),
}


def is_registered(kind: type) -> bool:
    """Say whether a class is one of the package's own, and no other of its name."""
    name = kind.__name__
    return name in FORECASTERS and forecaster_class(name) is kind


def forecaster_class(name: str) -> type[Any]:
    """Return the class of a forecaster by its public name."""
    check_option("method", name, FORECASTERS)
    found: type[Any] = getattr(import_module(FORECASTERS[name].path), name)
    return found
