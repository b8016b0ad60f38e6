"""From CSV, Parquet or a DataFrame to a checked `SeriesFrame`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mvlstm.table.files import read_table, write_table
    from mvlstm.table.frame import build_frame, rebuild_frame
    from mvlstm.table.layout import Layout
    from mvlstm.table.series_frame import SeriesFrame

__all__ = [
    "Layout",
    "SeriesFrame",
    "build_frame",
    "read_table",
    "rebuild_frame",
    "write_table",
]

_MODULES = {  # imported when first used, so that the settings alone come without pandas
    "Layout": "layout",
    "SeriesFrame": "series_frame",
    "build_frame": "frame",
    "read_table": "files",
    "rebuild_frame": "frame",
    "write_table": "files",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'mvlstm.table' has no attribute {name!r}")
    return getattr(import_module(f"mvlstm.table.{_MODULES[name]}"), name)
