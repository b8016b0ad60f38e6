"""The data sets of the paper by name: two built in, four read from the data folder."""

from __future__ import annotations

import difflib
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from mvlstm.data.synthetic import Truth, lorenz96, synthetic
from mvlstm.errors import DataError, ParameterError


@dataclass(frozen=True)
class DatasetInfo:
    """Facts about a data set.

    Parameters
    ----------
    name, title : str
    rows : int
        Rows before cleaning (for made-up sets: by default).
    variables : tuple of str
        Columns in order, target last.
    licence, citation : str
    oddities : str
        What to know before trusting it.
    files : dict
        File in the data folder: its SHA-256. Empty for sets that are made up.
    url : str
        Where to get it.
    """

    name: str
    title: str
    rows: int
    variables: tuple[str, ...]
    licence: str
    citation: str
    oddities: str
    files: dict[str, str] = field(default_factory=dict)
    url: str = ""

    @property
    def target(self) -> str:
        """Name of the column to forecast."""
        return self.variables[-1]

    @property
    def builtin(self) -> bool:
        """Whether it needs no file."""
        return not self.files


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table ready to fit, with what is known about it.

    Parameters
    ----------
    name : str
    frame : DataFrame
        The variables in order with the target last; the index is the time.
    target : str
    info : DatasetInfo
    truth : Truth or None
        The true drivers, for made-up sets.
    missing, gaps : str
        How missing values and gaps are to be handled, as constructor arguments of a forecaster.

    Examples
    --------
    >>> data = load("synthetic", n=200)
    >>> data.target, data.frame.shape, data.truth.drivers
    ('y', (200, 11), ('x2', 'x3'))
    """

    name: str
    frame: pd.DataFrame
    target: str
    info: DatasetInfo
    truth: Truth | None = None
    missing: str = "error"
    gaps: str = "error"

    @property
    def fit_options(self) -> dict[str, Any]:
        """Arguments of ``fit`` besides table and target; none, the frame is ready as it is."""
        return {}

    @property
    def model_options(self) -> dict[str, str]:
        """Arguments of a forecaster's constructor that suit this set."""
        return {"missing": self.missing, "gaps": self.gaps}

    @property
    def frame_options(self) -> dict[str, Any]:
        """Arguments of `mvlstm.data.build_frame` besides the table."""
        return {"target": self.target, **self.fit_options, **self.model_options}


_UCI = "UCI Machine Learning Repository"
_PM25_FILE = "pm25/PRSA_data_2010.1.1-2014.12.31.csv"
_ENERGY_FILE = "energy/energydata_complete.csv"
_SML_FILES = ("sml2010/NEW-DATA-1.T15.txt", "sml2010/NEW-DATA-2.T15.txt")
_PLANT_FILES = {
    "plant_temperature": "plant/plant-temperature.csv",
    "cloud_cover": "plant/weather-cloudcover.csv",
    "dew_point": "plant/weather-dewpoint.csv",
    "humidity": "plant/weather-humidity.csv",
    "temperature": "plant/weather-temperature.csv",
    "wind_bearing": "plant/weather-windbearing.csv",
    "wind_speed": "plant/weather-windspeed.csv",
    "power": "plant/plant-power.csv",
}
_WIND = ("NE", "NW", "SE", "cv")

_INFO = {
    info.name: info
    for info in (
        DatasetInfo(
            name="synthetic",
            title="Ten ARMA series, two of which drive the target",
            rows=10_000,
            variables=(*(f"x{i}" for i in range(10)), "y"),
            licence="made by this package",
            citation="After Guo and Lin (2018), whose own recipe is one sentence",
            oddities="Made up; the best possible forecast has RMSE 1.",
        ),
        DatasetInfo(
            name="lorenz96",
            title="Lorenz-96 system, ten coupled variables seen through noise",
            rows=20_000,
            variables=tuple(f"x{i}" for i in range(10)),
            licence="made by this package",
            citation="Lorenz (1996), Predictability: a problem partly solved",
            oddities="Made up and chaotic; drivers of the target are its neighbours.",
        ),
        DatasetInfo(
            name="pm25",
            title="Beijing PM2.5, hourly, 2010 to 2014",
            rows=43_824,
            variables=("DEWP", "TEMP", "PRES", "Iws", "Is", "Ir", "pm2.5"),
            licence="CC BY 4.0",
            citation=f"Chen (2015), Beijing PM2.5, {_UCI}, doi 10.24432/C5JS49",
            oddities=(
                "2,067 rows lack the target; they are dropped and the gaps closed, as in the "
                "paper. Wind direction (cbwd) is left out unless with_wind=True."
            ),
            files={
                _PM25_FILE: "4127f868775e31b3956522adc0ec75af8937dde6a3896e8beed3a376c6d27f1c"
            },
            url="https://archive.ics.uci.edu/dataset/381/beijing+pm2+5+data",
        ),
        DatasetInfo(
            name="energy",
            title="Appliances energy use of a house, every 10 minutes, 2016",
            rows=19_735,
            variables=(
                *(f"T{i}" for i in range(1, 10)),
                *("T_out", "Windspeed", "RH_out", "Tdewpoint", "Appliances"),
            ),
            licence="see the page of the data set",
            citation=(
                "Candanedo, Feldheim and Deramaix (2017), Data driven prediction models of "
                f"energy use of appliances in a low-energy house; {_UCI}"
            ),
            oddities="Lights, humidities of the rooms and the two noise columns are left out.",
            files={
                _ENERGY_FILE: "2820bf712ad0275cb18b85a05250926100d8e65ebb9f4d2d016ca91ea152a25d"
            },
            url="https://archive.ics.uci.edu/dataset/374/appliances+energy+prediction",
        ),
        DatasetInfo(
            name="sml2010",
            title="Room temperature of a house in Valencia, every 15 minutes, 2012",
            rows=4_137,
            variables=(
                "Temperature_Habitacion_Sensor",
                "Weather_Temperature",
                "CO2_Comedor_Sensor",
                "CO2_Habitacion_Sensor",
                "Humedad_Comedor_Sensor",
                "Humedad_Habitacion_Sensor",
                "Lighting_Comedor_Sensor",
                "Lighting_Habitacion_Sensor",
                "Precipitacion",
                "Meteo_Exterior_Crepusculo",
                "Meteo_Exterior_Viento",
                "Meteo_Exterior_Sol_Oest",
                "Meteo_Exterior_Sol_Est",
                "Meteo_Exterior_Sol_Sud",
                "Meteo_Exterior_Piranometro",
                "Temperature_Exterior_Sensor",
                "Humedad_Exterior_Sensor",
                "Temperature_Comedor_Sensor",
            ),
            licence="see the page of the data set",
            citation=f"Zamora-Martinez et al. (2014), SML2010; {_UCI}",
            oddities=(
                "Two files with a week between them, so windows do not cross that gap. Smooth "
                "and drifting: plain persistence and linear models are very good here."
            ),
            files={
                _SML_FILES[0]: "bd5a4c4f1f6a0652258179c9963fb5c90885eedee4a981617898c18d6b5c4541",
                _SML_FILES[1]: "1c008643381903a51557a0599cbd7706ae71b07f2d449d165b17f13b6e12a97e",
            },
            url="https://archive.ics.uci.edu/dataset/274/sml2010",
        ),
        DatasetInfo(
            name="plant",
            title="Photovoltaic plant 1 of the ECML-PKDD 2017 challenge, 2012, hours 2 to 20",
            rows=6_954,
            variables=tuple(_PLANT_FILES),
            licence="unknown; for evaluation only, do not redistribute",
            citation="ECML-PKDD 2017 Discovery Challenge, multi-plant photovoltaic forecasting",
            oddities=(
                "From 2012-09-12 on, and on 1 to 5 January, the hours within a day are out of "
                "order; plant temperature is 0 from 26 January to 23 February; two fifths of "
                "the weather temperature are 0 or -1. Fit to replicate the paper, not for claims."
            ),
            files={
                _PLANT_FILES["power"]: (
                    "05d836ef10da49b967fa1bec3ad7e33feabf8cc6b958bc8dbe3e101befde3874"
                ),
                _PLANT_FILES["plant_temperature"]: (
                    "65bb671ea06aabea405d8dd33f9a9b0bf19c000c4f4024340a0b858e77eb772f"
                ),
                _PLANT_FILES["cloud_cover"]: (
                    "f75efca621cae8e3143e1be8fa08a5b4ffdcb296e68aa60871254a4171fe3413"
                ),
                _PLANT_FILES["dew_point"]: (
                    "3e2316b57c9efd58312e0bf7154964d00266dde7bc4f56c875b6f9e77c4d1f76"
                ),
                _PLANT_FILES["humidity"]: (
                    "23b5f125dc1c26cefb3496267409e35708a179d1d8699e7d639cebec39fea49d"
                ),
                _PLANT_FILES["temperature"]: (
                    "7950e22c16553417fe44d29ef48427047a24057c8bb08b24b8dc961df51c036d"
                ),
                _PLANT_FILES["wind_bearing"]: (
                    "29316ac561a4ebd67d361753f30e40323a095e8c019136efbfc317b3b8c7fcb9"
                ),
                _PLANT_FILES["wind_speed"]: (
                    "67ca4bcc7923107f93f37c567908b7992fb2471da0d9bc3f004fbfcbb988bc1f"
                ),
            },
        ),
    )
}


def available() -> tuple[str, ...]:
    """Names of the data sets that `load` knows, present or not."""
    return tuple(_INFO)


def describe(name: str) -> DatasetInfo:
    """Facts about one data set: rows, variables, licence, citation, oddities."""
    if name not in _INFO:
        near = difflib.get_close_matches(str(name), _INFO, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else "See `mvlstm data list`."
        raise ParameterError(
            f"There is no data set '{name}'; choose one of {', '.join(_INFO)}. {hint}"
        )
    return _INFO[name]


def is_present(name: str) -> bool:
    """Whether a data set can be loaded now: it is built in, or its files are in the folder."""
    return all((data_folder() / file).is_file() for file in describe(name).files)


def data_folder() -> Path:
    """Folder of the real data sets: ``MVLSTM_DATA`` if set, else one in the user's cache."""
    chosen = os.environ.get("MVLSTM_DATA", "").strip()
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "mvlstm"


def load(name: str, **options: Any) -> Dataset:
    """Load a data set by name.

    Parameters
    ----------
    name : str
        One of `available()`.
    **options
        For ``synthetic``: ``n, seed, snr, lin``; for ``lorenz96``: ``n, p, forcing, noise, seed``;
        for ``pm25``: ``with_wind`` (wind direction as four 0/1 columns). Others take none.

    Returns
    -------
    Dataset

    Raises
    ------
    DataError
        If its files are not in the data folder or cannot be read.

    Examples
    --------
    >>> load("lorenz96", n=50).truth.drivers
    ('x0', 'x7', 'x8')
    """
    info = describe(name)
    loader = _LOADERS[name]
    allowed = [key for key in inspect.signature(loader).parameters if key != "info"]
    for key in options:
        if key not in allowed:
            takes = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
            raise ParameterError(f"Data set '{name}' has no option '{key}'; {takes}.")
    return loader(info, **options)


def _path(info: DatasetInfo, file: str) -> Path:
    """Find one file of a data set, or say where it was looked for."""
    path = data_folder() / file
    if path.is_file():
        return path
    source = f" It comes from {info.url}." if info.url else ""
    raise DataError(
        f"Data set '{info.name}' needs the file '{path}', which is not there.{source} Set "
        f"MVLSTM_DATA to the folder that holds '{file}', or put the file there."
    )


def _read_csv(info: DatasetInfo, file: str, **options: Any) -> pd.DataFrame:
    """Read one file of a data set, turning every fault into one message."""
    path = _path(info, file)
    try:
        table = pd.read_csv(path, **options)
    except (OSError, ValueError, UnicodeError) as error:
        raise DataError(
            f"The file '{path}' of data set '{info.name}' cannot be read: {error}. "
            "Replace it with a fresh copy."
        ) from error
    assert isinstance(table, pd.DataFrame)
    return table


def _take(info: DatasetInfo, table: pd.DataFrame, rows: int, file: str) -> pd.DataFrame:
    """Take the set's columns as floats, checking that the file holds what it should."""
    absent = [name for name in info.variables if name not in table]
    if absent or len(table) != rows:
        what = f"lacks {absent}" if absent else f"gives {len(table):,} rows, not {rows:,}"
        raise DataError(
            f"The file '{data_folder() / file}' of data set '{info.name}' {what}. "
            "Replace it with a fresh copy."
        )
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
    raw = _read_csv(info, _PM25_FILE)
    frame = _take(info, raw, info.rows, _PM25_FILE)
    frame.index = pd.DatetimeIndex(pd.to_datetime(raw[["year", "month", "day", "hour"]]))
    frame.index.name = "time"
    if with_wind:
        for place, level in enumerate(_WIND):
            frame.insert(6 + place, f"cbwd_{level}", (raw["cbwd"] == level).to_numpy(float))
    return Dataset(info.name, frame, info.target, info, missing="drop", gaps="close")


def _load_energy(info: DatasetInfo) -> Dataset:
    raw = _read_csv(info, _ENERGY_FILE, parse_dates=["date"], skipinitialspace=True)
    frame = _take(info, raw, info.rows, _ENERGY_FILE)
    frame.index = pd.DatetimeIndex(raw["date"], name="time")
    return Dataset(info.name, frame, info.target, info)


def _load_sml2010(info: DatasetInfo) -> Dataset:
    parts = []
    for file in _SML_FILES:
        with open(_path(info, file), encoding="utf-8") as stream:
            header = stream.readline().lstrip("#").split()
        names = [entry.split(":", 1)[-1] for entry in header]
        parts.append(_read_csv(info, file, sep=r"\s+", skiprows=1, names=names, index_col=False))
    raw = pd.concat(parts, ignore_index=True)
    frame = _take(info, raw, info.rows, _SML_FILES[0])
    times = pd.to_datetime(raw["Date"] + " " + raw["Time"], format="%d/%m/%Y %H:%M")
    frame.index = pd.DatetimeIndex(times, name="time")
    return Dataset(info.name, frame, info.target, info, gaps="respect")


def _load_plant(info: DatasetInfo) -> Dataset:
    columns = {}
    index: pd.DatetimeIndex | None = None
    hours = list(range(2, 21))
    for name, file in _PLANT_FILES.items():
        raw = _read_csv(
            info, file, sep=";", skiprows=1, header=None, names=["plant", "day", *hours]
        )
        raw = raw[raw["plant"] == 1]
        days = pd.to_datetime(raw["day"], format="%d/%m/%Y")
        times = pd.DatetimeIndex(
            [day + pd.Timedelta(hours=hour) for day in days for hour in hours], name="time"
        )
        columns[name] = pd.Series(raw[hours].to_numpy(float).ravel(), index=times)
        index = times if index is None else index
    frame = _take(info, pd.DataFrame(columns), info.rows, _PLANT_FILES["power"])
    return Dataset(info.name, frame, info.target, info, gaps="close")


_LOADERS: dict[str, Callable[..., Dataset]] = {
    "synthetic": _load_synthetic,
    "lorenz96": _load_lorenz96,
    "pm25": _load_pm25,
    "energy": _load_energy,
    "sml2010": _load_sml2010,
    "plant": _load_plant,
}
