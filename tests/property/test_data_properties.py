"""Properties of the data layer that must hold for every table, window and split."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mvlstm.errors import DataError, MVLSTMError
from mvlstm.problem.scaling import Scaler
from mvlstm.problem.splits import origins_by_part, split_windows
from mvlstm.problem.windows import gather_labels, gather_windows, origin_rows
from mvlstm.table.files import read_table
from mvlstm.table.frame import build_frame, rebuild_frame
from mvlstm.table.layout import Layout
from mvlstm.table.parts import chronological
from mvlstm.table.series_frame import SeriesFrame

FAST = settings(deadline=None, max_examples=60)


def frame_of(rows: int, breaks: set[int]) -> SeriesFrame:
    """A frame of the given length whose times jump before each row in ``breaks``."""
    steps = np.ones(rows, dtype=np.int64)
    steps[[row for row in breaks if 0 < row < rows]] = 7
    values = np.random.default_rng(rows).normal(size=(rows, 3))
    table = pd.DataFrame(values, columns=["a", "b", "y"], index=np.cumsum(steps))
    # Too many breaks can make 7 the median spacing; either way segments are well defined.
    return build_frame(table, target="y", gaps="respect")


FRAMES = st.builds(frame_of, st.integers(4, 120), st.sets(st.integers(1, 119), max_size=4))
SHARES = st.tuples(
    st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.333, 0.5]), st.sampled_from([0.0, 0.05, 0.1, 0.3])
)


# Times --------------------------------------------------------------------------------------


@FAST
@given(
    zone=st.sampled_from(["Europe/Berlin", "America/Santiago", "Africa/Cairo", "Asia/Tokyo"]),
    start=st.dates(pd.Timestamp("2023-06-01").date(), pd.Timestamp("2025-01-01").date()),
    minutes=st.integers(0, 1439),
    days=st.sampled_from([1, 2, 7]),
    rows=st.integers(12, 80),
)
def test_local_days_go_on_wherever_the_clock_changes(
    zone: str, start: Any, minutes: int, days: int, rows: int
) -> None:
    first = pd.Timestamp(start) + pd.Timedelta(minutes=minutes)
    wall = pd.date_range(first, periods=rows + 5, freq=f"{days}D")
    twice = np.ones(rows + 5, dtype=bool)
    every = wall.tz_localize(zone, nonexistent="shift_forward", ambiguous=twice)
    values = np.random.default_rng(rows).normal(size=(rows + 5, 2))
    table = pd.DataFrame(values, columns=["x", "y"], index=every)
    frame = build_frame(table.iloc[:rows], target="y")
    assert list(frame.future_times(np.array([rows - 1]), 5)[0]) == list(every[rows:])
    assert rebuild_frame(table, frame.layout).n_rows == rows + 5


# Windows and splits -------------------------------------------------------------------------


@FAST
@given(frame=FRAMES, window=st.integers(2, 12), horizon=st.integers(1, 5))
def test_windows_and_labels_stay_in_their_segment(
    frame: SeriesFrame, window: int, horizon: int
) -> None:
    origins = origin_rows(frame, window, horizon)
    expected = [
        i
        for i in range(window - 1, frame.n_rows - horizon)
        if len(set(frame.segments[i - window + 1 : i + horizon + 1])) == 1
    ]
    assert origins.tolist() == expected
    windows = gather_windows(frame.values, origins, window)
    labels = gather_labels(frame, origins, horizon)
    for m, i in enumerate(expected):
        assert (windows[m] == frame.values[i - window + 1 : i + 1]).all()
        assert (labels[m] == frame.target_values[i + 1 : i + horizon + 1]).all()


@FAST
@given(frame=FRAMES, window=st.integers(2, 12), horizon=st.integers(1, 5), shares=SHARES)
def test_every_label_is_in_exactly_one_part(
    frame: SeriesFrame, window: int, horizon: int, shares: tuple[float, float]
) -> None:
    test, valid = shares
    parts = chronological(frame.n_rows, test=test, valid=valid)
    windows = origins_by_part(origin_rows(frame, window, horizon), horizon, parts)
    seen: dict[int, str] = {}
    for name, origins in windows.items():
        rows = parts.rows(name)
        for origin in origins:
            for label in range(origin + 1, origin + horizon + 1):
                assert rows.start <= label < rows.stop
                assert seen.setdefault(label, name) == name
    if horizon == 1:
        labels = origin_rows(frame, window, 1) + 1
        assert sorted(seen) == labels.tolist()


@FAST
@given(frame=FRAMES, window=st.integers(2, 12), horizon=st.integers(1, 5), shares=SHARES)
def test_no_training_window_or_label_reaches_the_border(
    frame: SeriesFrame, window: int, horizon: int, shares: tuple[float, float]
) -> None:
    test, valid = shares
    parts = chronological(frame.n_rows, test=test, valid=valid)
    train = origins_by_part(origin_rows(frame, window, horizon), horizon, parts)["train"]
    before = gather_windows(frame.values, train, window).copy()
    labels = gather_labels(frame, train, horizon).copy()
    frame.values[parts.a :] = 1e9
    assert (gather_windows(frame.values, train, window) == before).all()
    assert (gather_labels(frame, train, horizon) == labels).all()


@FAST
@given(n=st.integers(1, 10**7), tenths=st.tuples(st.integers(0, 5), st.integers(0, 4)))
def test_borders_are_exact_floors(n: int, tenths: tuple[int, int]) -> None:
    test, valid = tenths
    parts = chronological(n, test=test / 10, valid=valid / 10)
    assert parts.a == (10 - test - valid) * n // 10
    assert parts.b == (10 - test) * n // 10
    assert 0 <= parts.a <= parts.m <= parts.b <= parts.n == n


@FAST
@given(
    rows=st.integers(4, 150), window=st.integers(2, 20), horizon=st.integers(1, 6), shares=SHARES
)
def test_a_split_gives_every_part_a_window_or_says_how_many_rows_would(
    rows: int, window: int, horizon: int, shares: tuple[float, float]
) -> None:
    test, valid = shares
    frame = frame_of(rows, set())
    options = {"window": window, "horizon": horizon, "test": test, "valid": valid}
    try:
        _, windows = split_windows(frame, **options)  # type: ignore[arg-type]
    except DataError as error:
        needed = int(str(error).split("at least ")[1].split(".")[0].replace(",", ""))
        assert needed > rows
        split_windows(frame_of(needed, set()), **options)  # type: ignore[arg-type]
    else:
        assert len(windows["train"])
        assert bool(test) == bool(len(windows["new"]))
        assert bool(valid) == bool(len(windows["stop"]) and len(windows["calibration"]))


@FAST
@given(frame=FRAMES, horizon=st.integers(1, 6))
def test_times_ahead_rise_and_agree_with_the_rows(frame: SeriesFrame, horizon: int) -> None:
    rows = np.arange(frame.n_rows)
    ahead = frame.future_times(rows, horizon)
    assert ahead.shape == (frame.n_rows, horizon)
    everything = np.column_stack([frame.times.to_numpy(), ahead])
    assert (np.diff(everything, axis=1) > 0).all()
    for i in rows[:-1]:
        if frame.segments[i] == frame.segments[i + 1]:
            assert ahead[i, 0] == frame.times[i + 1]


# Scaling ------------------------------------------------------------------------------------

NUMBERS = st.floats(-1e12, 1e12, allow_nan=False, width=64)


@FAST
@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=NUMBERS))
def test_scaling_inverts(values: np.ndarray) -> None:
    scaler = Scaler.fit(values)
    size = np.abs(values).max(axis=0)
    back = scaler.inverse(scaler.transform(values))
    assert (np.abs(back - values) <= 1e-12 * size + 1e-300).all()
    assert np.isfinite(scaler.transform(values)).all() and (scaler.scale > 0).all()


# Tables and files ---------------------------------------------------------------------------

CELLS: st.SearchStrategy[Any] = st.one_of(
    st.floats(),
    st.integers(-5, 5),
    st.booleans(),
    st.none(),
    st.text(string.printable, max_size=5),
    st.sampled_from(["2013-01-01", "01/02/2013", "1,5", pd.Timestamp("2013"), 10**400]),
)
COLUMNS = st.sampled_from(["floats", "floats", "integers", "integers", "dates", "text", "mixed"])


@st.composite
def tables(draw: st.DrawFn) -> pd.DataFrame:
    """Tables of any kind a person might hand in."""
    rows = draw(st.integers(0, 12))
    columns: dict[str, Any] = {}
    others = st.lists(st.sampled_from(["a", "b", "year", "month", "é"]), unique=True)
    names = draw(others.map(lambda names: [*names, "y"]))
    tame = draw(st.booleans())
    for name in names:
        kind = "tame" if tame else draw(COLUMNS)
        if kind == "tame":
            columns[name] = draw(hnp.arrays(np.int8, rows, unique=name == "y")) / 4
        elif kind == "floats":
            columns[name] = draw(hnp.arrays(np.float64, rows, unique=draw(st.booleans())))
        elif kind == "integers":
            columns[name] = np.sort(draw(hnp.arrays(np.int64, rows, unique=True)))
        elif kind == "dates":
            freq = draw(st.sampled_from(["h", "D", "MS"]))
            columns[name] = pd.date_range("2013", periods=rows, freq=freq)
        elif kind == "text":
            columns[name] = np.array(
                draw(st.lists(st.text(max_size=4), min_size=rows, max_size=rows)), dtype=object
            )
        else:
            cells = np.empty(rows, dtype=object)
            cells[:] = draw(st.lists(CELLS, min_size=rows, max_size=rows))
            columns[name] = cells
    hours = pd.date_range("2013", periods=rows, freq="h")
    odd = [] if tame else [np.arange(rows)[::-1], list("r" * rows)]
    gappy = pd.Index(np.cumsum(1 + (np.arange(rows) % 5 == 2)))
    index = draw(st.sampled_from([None, hours, gappy, *odd]))
    return pd.DataFrame(columns, index=index)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(
    table=tables(),
    time=st.sampled_from([None, "a", "b", ["year", "month"], ["a", "b"]]),
    missing=st.sampled_from(["error", "drop", "fill"]),
    gaps=st.sampled_from(["error", "close", "respect"]),
)
def test_any_table_gives_a_sound_frame_or_an_error_of_ours(
    table: pd.DataFrame, time: Any, missing: Any, gaps: Any
) -> None:
    before = table.copy(deep=True)
    try:
        frame = build_frame(table, target="y", time=time, missing=missing, gaps=gaps)
    except MVLSTMError as error:
        assert str(error) and not str(error).startswith("Traceback")
        return
    finally:
        pd.testing.assert_frame_equal(table, before)
    assert np.isfinite(frame.values).all() and frame.values.flags.c_contiguous
    assert frame.columns[-1] == "y" and len(frame.times) == len(frame.values) == len(frame.segments)
    assert frame.times.is_monotonic_increasing and frame.times.is_unique
    assert (np.diff(frame.segments) >= 0).all()
    layout = Layout.from_dict(json.loads(json.dumps(frame.layout.to_dict())))
    assert layout == frame.layout
    again = rebuild_frame(table[table.columns[::-1]], layout)
    assert (again.values == frame.values).all() and (again.segments == frame.segments).all()


@settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    content=st.one_of(
        st.binary(max_size=200),
        st.text("ab,;\"\n\r\t 1.5-e'#é|\x00", max_size=200).map(str.encode),
    )
)
def test_any_bytes_give_a_table_or_an_error_of_ours(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(content)
    try:
        table = read_table(path)
    except MVLSTMError as error:
        assert str(error)
        return
    assert isinstance(table, pd.DataFrame)
    assume(len(table.columns) > 0)
    try:
        build_frame(table, target=str(table.columns[-1]), missing="fill", gaps="close")
    except MVLSTMError as error:
        assert str(error)
