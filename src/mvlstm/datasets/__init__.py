"""The data sets of the paper by name, and made-up series whose drivers are known."""

from mvlstm.datasets.catalogue import DatasetInfo
from mvlstm.datasets.download import fetch
from mvlstm.datasets.loading import (
    Dataset,
    available,
    check_options,
    data_folder,
    describe,
    is_present,
    load,
    verify,
)

__all__ = [
    "Dataset",
    "DatasetInfo",
    "available",
    "check_options",
    "data_folder",
    "describe",
    "fetch",
    "is_present",
    "load",
    "verify",
]
