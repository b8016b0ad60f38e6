"""Data sets by name: two built in, the paper's and public yardsticks read from a folder."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mvlstm._words import did_you_mean
from mvlstm.datasets.catalogue import (
    CATALOGUE,
    ENERGY_FILE,
    PLANT_FILES,
    PM25_FILE,
    SML_FILES,
    WIND_LEVELS,
    DatasetInfo,
)
from mvlstm.datasets.synthetic import Truth, lorenz96, synthetic
from mvlstm.errors import DataError, ParameterError, reachable


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table ready to fit, with what is known about it.

    Examples
    --------
    >>> data = load("synthetic", n=200)
    >>> data.target, data.frame.shape, data.truth.drivers
    ('y', (200, 11), ('x2', 'x3'))
    """

    name: str
    frame: pd.DataFrame  # the variables in order with the target last; the index is the time
    target: str
    info: DatasetInfo
    truth: Truth | None = None  # the true drivers, for made-up sets
    missing: str = "error"  # how to handle missing values and gaps, as arguments of a forecaster
    gaps: str = "error"

    @property
    def model_options(self) -> dict[str, str]:
        """Arguments of a forecaster's constructor that suit this set."""
        return {"missing": self.missing, "gaps": self.gaps}

    @property
    def frame_options(self) -> dict[str, Any]:
        """Arguments of `mvlstm.table.build_frame` besides the table."""
        return {"target": self.target, **self.model_options}


def available() -> tuple[str, ...]:
    """Names of the data sets that `load` knows, present or not."""
    return tuple(CATALOGUE)


def describe(name: str) -> DatasetInfo:
    """Facts about one data set: rows, variables, licence, citation, oddities."""
    if name not in CATALOGUE:
        raise ParameterError(
            f"There is no data set '{name}'; choose one of {', '.join(CATALOGUE)}."
            f"{did_you_mean(str(name), CATALOGUE)}"
        )
    return CATALOGUE[name]


def is_present(name: str) -> bool:
    """Whether a data set can be loaded now: it is built in, or its files are in the folder."""
    return all((data_folder() / file).is_file() for file in describe(name).files)


def verify(name: str) -> None:
    """Raise `DataError` unless a data set's files hold what the package knows them to hold."""
    info = describe(name)
    get = f" with fetch('{name}', force=True)" if info.archive else ""
    for file, expected in info.files.items():
        path = _path(info, file)
        with open(path, "rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if expected and found != expected:
            raise DataError(
                f"The file '{path}' of data set '{name}' is not the published one: its SHA-256 is "
                f"{found[:12]}..., not {expected[:12]}.... Replace it{get}."
            )


def data_folder() -> Path:
    """Folder of the real data sets: ``MVLSTM_DATA`` if set, else one in the user's cache."""
    chosen = os.environ.get("MVLSTM_DATA", "").strip()
    if chosen:
        return reachable(Path(chosen).expanduser(), ParameterError)
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "mvlstm"


def load(name: str, **options: Any) -> Dataset:
    """Load a data set by name, one of `available()`.

    Options are, for ``synthetic``: ``n, seed, snr, lin``; for ``lorenz96``: ``n, p, forcing, noise,
    seed``; for ``pm25``: ``with_wind`` (wind direction as four 0/1 columns); for ``plant``:
    ``folder`` (where the challenge's CSV files lie). Others take none.

    Examples
    --------
    >>> load("lorenz96", n=50).truth.drivers
    ('x0', 'x7', 'x8')
    """
    info = describe(name)
    check_options(name, options)
    return _LOADERS[name](info, **options)


def check_options(name: str, options: Iterable[str]) -> None:
    """Raise `ParameterError` unless `load` takes such options for a data set."""
    allowed = [key for key in inspect.signature(_LOADERS[name]).parameters if key != "info"]
    for key in options:
        if key not in allowed:
            takes = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
            raise ParameterError(f"Data set '{name}' has no option '{key}'; {takes}.")


def _path(info: DatasetInfo, file: str, place: Path | None = None) -> Path:
    """Find one file of a data set, or say where it was looked for."""
    path = place or data_folder() / file
    if path.is_file():
        return path
    source = f" It comes from {info.url}." if info.url else ""
    get = f", or download it with mvlstm.datasets.fetch('{info.name}')" if info.archive else ""
    raise DataError(
        f"Data set '{info.name}' needs the file '{path}', which is not there.{source} Set "
        f"MVLSTM_DATA to the folder that holds '{file}', or put the file there{get}."
    )


def _damaged(info: DatasetInfo, path: Path, what: object) -> DataError:
    return DataError(
        f"The file '{path}' of data set '{info.name}' {what}. Replace it with a fresh copy."
    )


def _read_csv(
    info: DatasetInfo, file: str, *, place: Path | None = None, **options: Any
) -> pd.DataFrame:
    """Read one file of a data set, turning every fault into one message."""
    path = _path(info, file, place)
    try:
        table = pd.read_csv(path, **options)
    except (OSError, ValueError, UnicodeError) as error:
        raise _damaged(info, path, f"cannot be read: {error}") from error
    assert isinstance(table, pd.DataFrame)
    return table


def _take(info: DatasetInfo, table: pd.DataFrame, file: str) -> pd.DataFrame:
    """Take the set's columns as floats, checking that the file holds what it should."""
    absent = [name for name in info.variables if name not in table]
    if absent or len(table) != info.rows:
        what = f"lacks {absent}" if absent else f"gives {len(table):,} rows, not {info.rows:,}"
        raise _damaged(info, data_folder() / file, what)
    return table[list(info.variables)].astype("float64")


def _load_synthetic(
    info: DatasetInfo, n: int = 10_000, seed: int = 0, snr: float = 2.0, lin: float = 0.5
) -> Dataset:
    frame, truth = synthetic(n, seed=seed, snr=snr, lin=lin)
    return Dataset(info.name, frame, "y", info, truth)


def _load_lorenz96(
    info: DatasetInfo,
    n: int = 20_000,
    p: int = 10,
    forcing: float = 10.0,
    noise: float = 0.1,
    seed: int = 0,
) -> Dataset:
    frame, truth = lorenz96(n, p=p, forcing=forcing, noise=noise, seed=seed)
    return Dataset(info.name, frame, f"x{p - 1}", info, truth)


def _load_pm25(info: DatasetInfo, with_wind: bool = False) -> Dataset:
    raw = _read_csv(info, PM25_FILE)
    frame = _take(info, raw, PM25_FILE)
    frame.index = pd.DatetimeIndex(pd.to_datetime(raw[["year", "month", "day", "hour"]]))
    frame.index.name = "time"
    if with_wind:
        for place, level in enumerate(WIND_LEVELS):
            frame.insert(6 + place, f"cbwd_{level}", (raw["cbwd"] == level).to_numpy(float))
    return Dataset(info.name, frame, info.target, info, missing="drop", gaps="close")


def _load_energy(info: DatasetInfo) -> Dataset:
    raw = _read_csv(info, ENERGY_FILE, parse_dates=["date"], skipinitialspace=True)
    frame = _take(info, raw, ENERGY_FILE)
    frame.index = pd.DatetimeIndex(raw["date"], name="time")
    return Dataset(info.name, frame, info.target, info)


def _load_sml2010(info: DatasetInfo) -> Dataset:
    parts = []
    for file in SML_FILES:
        with open(_path(info, file), encoding="utf-8") as stream:
            header = stream.readline().lstrip("#").split()
        names = [entry.split(":", 1)[-1] for entry in header]
        parts.append(_read_csv(info, file, sep=r"\s+", skiprows=1, names=names, index_col=False))
    raw = pd.concat(parts, ignore_index=True)
    frame = _take(info, raw, SML_FILES[0])
    times = pd.to_datetime(raw["Date"] + " " + raw["Time"], format="%d/%m/%Y %H:%M")
    frame.index = pd.DatetimeIndex(times, name="time")
    return Dataset(info.name, frame, info.target, info, gaps="close")


def _load_plant(info: DatasetInfo, folder: str | Path | None = None) -> Dataset:
    hours = list(range(2, 21))
    clock = pd.to_timedelta(hours, unit="h").to_numpy()
    columns = {}
    for name, file in PLANT_FILES.items():
        place = None if folder is None else Path(folder).expanduser() / Path(file).name
        names = ["plant", "day", *hours]
        raw = _read_csv(info, file, place=place, sep=";", skiprows=1, header=None, names=names)
        raw = raw[raw["plant"] == 1]
        try:
            days = pd.to_datetime(raw["day"], format="%d/%m/%Y")
            values = raw[hours].to_numpy(float).ravel()
        except ValueError as error:
            path = place or data_folder() / file
            raise _damaged(info, path, f"cannot be read: {error}") from error
        times = (days.to_numpy()[:, None] + clock).ravel()
        columns[name] = pd.Series(values, index=pd.DatetimeIndex(times, name="time"))
    frame = _take(info, pd.DataFrame(columns), PLANT_FILES["power"])
    return Dataset(info.name, frame, info.target, info, gaps="close")


def _load_dated(info: DatasetInfo) -> Dataset:
    """Read a file of times and then the variables, in order, under whatever names it has."""
    (file,) = info.files
    raw = _read_csv(info, file)
    if raw.shape[1] != len(info.variables) + 1:
        raise _damaged(info, data_folder() / file, f"has {raw.shape[1]} columns")
    raw.columns = pd.Index(["date", *info.variables])
    frame = _take(info, raw, file)
    frame.index = pd.DatetimeIndex(pd.to_datetime(raw["date"]), name="time")
    return Dataset(info.name, frame, info.target, info)


_LOADERS: dict[str, Callable[..., Dataset]] = {
    "synthetic": _load_synthetic,
    "lorenz96": _load_lorenz96,
    "pm25": _load_pm25,
    "energy": _load_energy,
    "sml2010": _load_sml2010,
    "plant": _load_plant,
    **{f"epf_{market}": _load_dated for market in ("np", "pjm", "be", "fr", "de")},
    **{f"etth{number}": _load_dated for number in (1, 2)},
}
