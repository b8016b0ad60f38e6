"""From CSV, Parquet or a DataFrame to a checked `SeriesFrame`."""

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
