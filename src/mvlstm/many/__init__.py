"""Thousands of series that stay on disk: one model for all, forecasts of all, in bounded memory.

`fit` learns one model from as many whole series of a Parquet dataset as memory holds; `forecast`
forecasts and scores every series, block by block, into files; `explain` says which variables
matter; `convert` makes a dataset of a CSV file.
"""

from mvlstm.many.dataset import convert
from mvlstm.many.fitting import explain, fit
from mvlstm.many.forecasting import Summary, forecast

__all__ = ["Summary", "convert", "explain", "fit", "forecast"]
