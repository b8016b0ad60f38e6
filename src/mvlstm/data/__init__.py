"""From a table of time series to validated arrays: frames, windows, splits, scaling, data sets."""

from mvlstm.data.datasets import Dataset, DatasetInfo, available, data_folder, describe, load
from mvlstm.data.frame import Layout, SeriesFrame, build_frame, rebuild_frame
from mvlstm.data.io import read_table, write_atomic, write_table
from mvlstm.data.scaling import Scaler
from mvlstm.data.splits import Parts, chronological, origins_by_part, split_windows
from mvlstm.data.synthetic import Truth, lorenz96, synthetic
from mvlstm.data.windows import gather_labels, gather_windows, iterate_windows, origin_rows

__all__ = [
    "Dataset",
    "DatasetInfo",
    "Layout",
    "Parts",
    "Scaler",
    "SeriesFrame",
    "Truth",
    "available",
    "build_frame",
    "chronological",
    "data_folder",
    "describe",
    "gather_labels",
    "gather_windows",
    "iterate_windows",
    "load",
    "lorenz96",
    "origin_rows",
    "origins_by_part",
    "read_table",
    "rebuild_frame",
    "split_windows",
    "synthetic",
    "write_atomic",
    "write_table",
]
