"""From CSV, Parquet or a DataFrame to a checked `SeriesFrame`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mvlstm.table.files import read_table, write_table
    from mvlstm.table.frame import build_frame, rebuild_frame
    from mvlstm.table.layout import Layout
    from mvlstm.table.series_frame import SeriesFrame

__all__ = ["Layout", "SeriesFrame", "build_frame", "read_table", "rebuild_frame", "write_table"]


def __getattr__(name: str) -> object:  # so that the settings alone come without pandas
    for module in ("frame", "files"):
        if name in __all__ and hasattr(found := import_module(f"mvlstm.table.{module}"), name):
            return getattr(found, name)
    raise AttributeError(f"module 'mvlstm.table' has no attribute {name!r}")
