"""The forecasters by name, each loaded when first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mvlstm.errors import check_option

if TYPE_CHECKING:
    from mvlstm.forecasters.base import AbstractForecaster

FORECASTERS = {
    "AR": "mvlstm.forecasters.linear",
    "ARIMAX": "mvlstm.forecasters.statespace",
    "CLSTM": "mvlstm.forecasters.clstm",
    "DUAL": "mvlstm.forecasters.dual",
    "ENET": "mvlstm.forecasters.linear",
    "GBT": "mvlstm.forecasters.trees",
    "LSTM": "mvlstm.forecasters.lstm",
    "MVLSTM": "mvlstm.forecasters.mvlstm",
    "Persistence": "mvlstm.forecasters.naive",
    "RETAIN": "mvlstm.forecasters.retain",
    "RF": "mvlstm.forecasters.trees",
    "STRX": "mvlstm.forecasters.statespace",
    "SeasonalPersistence": "mvlstm.forecasters.naive",
    "XGT": "mvlstm.forecasters.trees",
}


def is_registered(kind: type[AbstractForecaster]) -> bool:
    """Say whether a class is one of the package's own, and no other of its name."""
    name = kind.__name__
    return name in FORECASTERS and forecaster_class(name) is kind


def forecaster_class(name: str) -> type[AbstractForecaster]:
    """Return the class of a forecaster by its public name, or by FILE.py:CLASS or MODULE:CLASS."""
    if ":" in name:
        from mvlstm.forecasters.user_classes import own_class

        return own_class(name)
    check_option("method", name, FORECASTERS)
    found: type[AbstractForecaster] = getattr(import_module(FORECASTERS[name]), name)
    return found
