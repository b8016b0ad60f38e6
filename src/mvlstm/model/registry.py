"""The forecasters by name, each loaded when first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mvlstm.errors import check_option

if TYPE_CHECKING:
    from mvlstm.model.forecaster import AbstractForecaster

FORECASTERS = {
    "AR": "mvlstm.methods.linear",
    "ARIMAX": "mvlstm.methods.statespace",
    "CLSTM": "mvlstm.methods.clstm",
    "DUAL": "mvlstm.methods.dual",
    "ENET": "mvlstm.methods.linear",
    "GBT": "mvlstm.methods.trees",
    "LSTM": "mvlstm.methods.lstm",
    "MVLSTM": "mvlstm.methods.mvlstm",
    "Persistence": "mvlstm.methods.naive",
    "RETAIN": "mvlstm.methods.retain",
    "RF": "mvlstm.methods.trees",
    "STRX": "mvlstm.methods.statespace",
    "SeasonalPersistence": "mvlstm.methods.naive",
    "XGT": "mvlstm.methods.trees",
}


def is_registered(kind: type[AbstractForecaster]) -> bool:
    """Say whether a class is one of the package's own, and no other of its name."""
    name = kind.__name__
    return name in FORECASTERS and forecaster_class(name) is kind


def forecaster_class(name: str) -> type[AbstractForecaster]:
    """Return the class of a forecaster by its public name."""
    check_option("method", name, FORECASTERS)
    found: type[AbstractForecaster] = getattr(import_module(FORECASTERS[name]), name)
    return found
