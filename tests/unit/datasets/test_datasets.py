"""Data sets by name: the built-in ones always, the real ones where their files are."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mvlstm import datasets
from mvlstm.datasets.loading import data_folder
from mvlstm.errors import DataError, ParameterError
from mvlstm.problem.splits import split_windows
from mvlstm.problem.windows import origin_rows
from mvlstm.table.frame import build_frame

BESIDE = Path(__file__).resolve().parents[4] / "shared" / "data"


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the data folder at the real files, or skip."""
    if not datasets.is_present("pm25") and (BESIDE / "pm25").is_dir():
        monkeypatch.setenv("MVLSTM_DATA", str(BESIDE))
    if not datasets.is_present("pm25"):
        pytest.skip("the real data sets are not in the data folder (set MVLSTM_DATA)")
    return data_folder()


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("MVLSTM_DATA", str(tmp_path))
    return tmp_path


# Built in -----------------------------------------------------------------------------------


def test_names_and_facts() -> None:
    prices = tuple(f"epf_{market}" for market in ("np", "pjm", "be", "fr", "de"))
    paper = ("synthetic", "lorenz96", "pm25", "energy", "sml2010", "plant")
    names = (*paper, *prices, "etth1", "etth2")
    assert datasets.available() == names
    for name in names:
        info = datasets.describe(name)
        assert info.rows > 0 and info.licence and info.citation and info.oddities
        assert info.target == info.variables[-1]
        assert info.builtin == (name in ("synthetic", "lorenz96"))


@pytest.mark.parametrize("name", ["synthetic", "lorenz96"])
def test_built_in_sets_need_no_file(name: str, no_data: Path) -> None:
    data = datasets.load(name, n=300)
    assert datasets.is_present(name)
    assert tuple(data.frame) == data.info.variables and data.truth is not None
    frame = build_frame(data.frame, **data.frame_options)
    assert frame.n_rows == 300 and frame.target == data.target
    assert set(data.truth.drivers) < set(frame.variables[:-1])


def test_options_reach_the_recipe() -> None:
    first = datasets.load("synthetic", n=50, seed=1).frame
    assert not first.equals(datasets.load("synthetic", n=50, seed=2).frame)
    assert datasets.load("lorenz96", n=20, p=12).target == "x11"
    with pytest.raises(ParameterError, match="'synthetic' has no option 'sede'; it takes n, seed"):
        datasets.load("synthetic", sede=1)
    with pytest.raises(ParameterError, match="'energy' has no option 'n'; it takes none"):
        datasets.load("energy", n=1)


def test_unknown_names_suggest_the_near_one() -> None:
    with pytest.raises(ParameterError, match=r"no data set 'pm2\.5'.*Did you mean 'pm25'"):
        datasets.load("pm2.5")
    with pytest.raises(ParameterError, match="choose one of synthetic"):
        datasets.load("zzz")


# The folder ---------------------------------------------------------------------------------


def test_the_folder_is_the_variable_or_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MVLSTM_DATA", "/some/where")
    assert data_folder() == Path("/some/where")
    monkeypatch.delenv("MVLSTM_DATA")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert data_folder() == Path("/cache/mvlstm")


@pytest.mark.parametrize("name", ["pm25", "energy", "sml2010", "plant"])
def test_a_missing_file_is_named_with_the_remedy(name: str, no_data: Path) -> None:
    assert not datasets.is_present(name)
    with pytest.raises(DataError) as caught:
        datasets.load(name)
    message = str(caught.value)
    assert str(no_data) in message and "Set MVLSTM_DATA" in message


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"No,year,month,day,hour\n1,2010,1,1,0\n", "lacks"),
        (b"", "cannot be read"),
        (b"\xff\xfe\x00broken", "pm25"),
        (
            b"year,month,day,hour,pm2.5,DEWP,TEMP,PRES,Iws,Is,Ir\n2010,1,1,0,5,1,1,1,1,1,1\n",
            "1 rows",
        ),
    ],
)
def test_a_damaged_file_gives_one_message(content: bytes, match: str, no_data: Path) -> None:
    path = no_data / next(iter(datasets.describe("pm25").files))
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(DataError, match=match):
        datasets.load("pm25")


# Real ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "rows", "windows", "step"),
    [
        ("pm25", 41_757, 41_727, pd.Timedelta(hours=1)),
        ("energy", 19_735, 19_705, pd.Timedelta(minutes=10)),
        ("sml2010", 4_137, 4_107, pd.Timedelta(minutes=15)),
        ("plant", 6_954, 6_924, pd.Timedelta(hours=1)),
    ],
)
def test_rows_and_windows_are_the_published_ones(
    name: str, rows: int, windows: int, step: pd.Timedelta, real_data: Path
) -> None:
    data = datasets.load(name)
    assert tuple(data.frame) == data.info.variables and len(data.frame) == data.info.rows
    frame = build_frame(data.frame, **data.frame_options)
    assert frame.n_rows == rows and frame.step == step
    assert len(origin_rows(frame, 30)) == windows
    assert frame.columns[-1] == data.target == data.info.target


def test_pm25_respecting_gaps_has_fewer_windows(real_data: Path) -> None:
    data = datasets.load("pm25")
    frame = build_frame(data.frame, target="pm2.5", missing="drop", gaps="respect")
    assert len(origin_rows(frame, 30)) == 36_763


@pytest.mark.parametrize(
    ("name", "rmse", "mae"),
    [("pm25", 22.10, 11.87), ("energy", 66.44, 26.65), ("sml2010", 0.1305, 0.1145)],
)
def test_persistence_on_the_last_fifth_is_the_known_one(
    name: str, rmse: float, mae: float, real_data: Path
) -> None:
    data = datasets.load(name)
    frame = build_frame(data.frame, **data.frame_options)
    _, windows = split_windows(frame, window=30, test=0.2)
    error = frame.target_values[windows["new"] + 1] - frame.target_values[windows["new"]]
    digits = 4 if rmse < 1 else 2
    assert round(float(np.sqrt(np.mean(error**2))), digits) == rmse
    assert round(float(np.mean(np.abs(error))), digits) == mae


def test_pm25_from_the_raw_file_is_the_same_frame(real_data: Path) -> None:
    raw = pd.read_csv(real_data / next(iter(datasets.describe("pm25").files)))
    frame = build_frame(
        raw,
        target="pm2.5",
        time=["year", "month", "day", "hour"],
        exclude=["No", "cbwd"],
        missing="drop",
        gaps="close",
    )
    data = datasets.load("pm25")
    same = build_frame(data.frame, **data.frame_options)
    assert frame.columns == same.columns
    np.testing.assert_array_equal(frame.values, same.values)
    assert list(frame.times[:3]) == list(same.times[:3])


def test_pm25_with_wind_direction(real_data: Path) -> None:
    data = datasets.load("pm25", with_wind=True)
    wind = [name for name in data.frame if name.startswith("cbwd_")]
    assert wind == ["cbwd_NE", "cbwd_NW", "cbwd_SE", "cbwd_cv"]
    assert data.frame.columns[-1] == "pm2.5"
    assert (data.frame[wind].sum(axis=1) == 1).all()


def test_files_match_their_checksums(real_data: Path) -> None:
    for name in datasets.available():
        if datasets.is_present(name):
            for file, checksum in datasets.describe(name).files.items():
                if not checksum:
                    continue
                content = (real_data / file).read_bytes()
                assert hashlib.sha256(content).hexdigest() == checksum, file


@pytest.mark.parametrize(
    ("name", "first"),
    [("epf_np", [42497.0, 2798.0, 31.05]), ("epf_pjm", [85049.0, 11509.0, 25.464211])],
)
def test_prices_with_what_is_known_ahead(real_data: Path, name: str, first: list[float]) -> None:
    if not datasets.is_present(name):
        pytest.skip(f"{name} is not in the data folder")
    data = datasets.load(name)
    assert list(data.frame.iloc[0]) == first and data.target == "price"
    assert data.info.known == tuple(data.frame.columns[:2])
    frame = build_frame(data.frame, known=data.info.known, **data.frame_options)
    assert frame.n_rows == 52_416 and len(np.unique(frame.segments)) == 1


def test_a_file_of_another_shape_is_refused(no_data: Path) -> None:
    (no_data / "ett").mkdir()
    (no_data / "ett" / "ETTh1.csv").write_text("date,OT\n2016-07-01 00:00:00,1.0\n")
    with pytest.raises(DataError, match=r"ETTh1.csv.*has 2 columns"):
        datasets.load("etth1")
