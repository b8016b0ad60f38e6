"""Thousands of series that stay on disk: one model for all, forecasts of all, in bounded memory.

`fit` learns one model from as many whole series of a Parquet dataset as memory holds; `forecast`
forecasts and scores every series, block by block, into files; `explain` says in the same way which
variables matter; `convert` makes a dataset of a CSV file.
"""

from mvlstm.many.dataset import convert
from mvlstm.many.explaining import explain
from mvlstm.many.fitting import fit
from mvlstm.many.forecasting import forecast
from mvlstm.many.running import Summary

__all__ = ["Summary", "convert", "explain", "fit", "forecast"]
