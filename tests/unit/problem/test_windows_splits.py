"""Windows as row numbers, and the parts they belong to."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mvlstm.errors import DataError, ParameterError
from mvlstm.problem.splits import origins_by_part, split_windows
from mvlstm.problem.windows import (
    gather_labels,
    gather_windows,
    iterate_windows,
    origin_rows,
    origins_in,
)
from mvlstm.table.frame import build_frame
from mvlstm.table.parts import Parts, chronological
from mvlstm.table.series_frame import SeriesFrame


def make_frame(rows: int = 60, gap_after: int | None = None) -> SeriesFrame:
    values = np.arange(rows * 3, dtype=float).reshape(rows, 3) ** 1.5
    times = np.arange(rows)
    if gap_after is not None:
        times[gap_after + 1 :] += 100
    table = pd.DataFrame(values, columns=["a", "b", "y"], index=times)
    return build_frame(table, target="y", gaps="respect")


def test_windows_hold_the_rows_up_to_their_origin() -> None:
    frame = make_frame()
    origins = origin_rows(frame, 5, 2)
    assert origins.tolist() == list(range(4, 58))
    windows = gather_windows(frame.values, origins, 5)
    labels = gather_labels(frame, origins, 2)
    assert windows.shape == (54, 5, 3) and labels.shape == (54, 2)
    for m in (0, 20, 53):
        i = origins[m]
        np.testing.assert_array_equal(windows[m], frame.values[i - 4 : i + 1])
        np.testing.assert_array_equal(labels[m], frame.target_values[i + 1 : i + 3])


def test_unlabelled_origins_reach_to_the_last_row() -> None:
    frame = make_frame()
    assert origins_in(frame.segments, 5, 0).tolist() == list(range(4, 60))
    labels = gather_labels(frame, np.array([57, 59]), 3)
    np.testing.assert_array_equal(np.isnan(labels), [[False, False, True], [True] * 3])


def test_no_window_or_label_crosses_a_gap() -> None:
    frame = make_frame(gap_after=29)
    assert origin_rows(frame, 5, 2).tolist() == [*range(4, 28), *range(34, 58)]
    assert origins_in(frame.segments, 5, 0).tolist() == [*range(4, 30), *range(34, 60)]
    assert np.isnan(gather_labels(frame, np.array([29]), 1)).all()


def test_too_short_a_frame_has_no_origins() -> None:
    frame = make_frame(6)
    assert len(origin_rows(frame, 6, 1)) == 0
    assert len(origins_in(frame.segments, 6, 0)) == 1
    assert len(origin_rows(frame, 30)) == 0
    assert gather_windows(frame.values, origin_rows(frame, 30), 30).shape == (0, 30, 3)


@pytest.mark.parametrize(("window", "horizon"), [(1, 1), (0, 1), (2.0, 1), (True, 1), (5, 0)])
def test_window_and_horizon_are_checked(window: int, horizon: int) -> None:
    with pytest.raises(ParameterError, match="must be a whole number"):
        origin_rows(make_frame(), window, horizon)
    assert len(origin_rows(make_frame(), 2)) == 58


def test_chunks_together_are_all_windows() -> None:
    frame = make_frame()
    origins = origin_rows(frame, 7)
    chunks = list(iterate_windows(frame.values, origins, 7, chunk=10))
    assert len(chunks) == 6
    np.testing.assert_array_equal(np.concatenate([part for part, _ in chunks]), origins)
    np.testing.assert_array_equal(
        np.concatenate([windows for _, windows in chunks]),
        gather_windows(frame.values, origins, 7),
    )


def test_only_the_windows_asked_for_are_copied() -> None:
    values = np.random.default_rng(0).normal(size=(100_000, 10))
    tracemalloc.start()
    gather_windows(values, np.arange(1000, 1064), 30)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


# Splits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [10, 41_757, 19_735, 4_137, 999_999, 1_000_003])
def test_borders_are_exact(n: int) -> None:
    parts = chronological(n, test=0.2, valid=0.1)
    assert (parts.a, parts.b, parts.n) == (7 * n // 10, 8 * n // 10, n)
    assert parts.m == (parts.a + parts.b) // 2
    assert chronological(n).b == n and chronological(n).a == 9 * n // 10


def test_rows_can_be_counted_instead() -> None:
    assert chronological(1000, test=100, valid=50) == Parts(a=850, m=875, b=900, n=1000)
    assert chronological(1000, test=100.0, valid=0.1) == Parts(a=800, m=850, b=900, n=1000)


@pytest.mark.parametrize(
    "options",
    [
        {"test": -0.1},
        {"test": 1.5},
        {"test": float("nan")},
        {"test": "0.2"},
        {"valid": True},
        {"test": 0.95},
        {"test": 600, "valid": 500},
    ],
)
def test_impossible_shares_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=r"test=|valid="):
        chronological(1000, **options)


def test_windows_belong_where_their_labels_lie() -> None:
    frame = make_frame(100)
    parts, windows = split_windows(frame, window=10, horizon=3, test=0.2, valid=0.2)
    assert (parts.a, parts.m, parts.b) == (60, 70, 80)
    assert windows["train"].tolist() == list(range(9, 57))
    assert windows["stop"].tolist() == list(range(59, 67))
    assert windows["calibration"].tolist() == list(range(69, 77))
    assert windows["new"].tolist() == list(range(79, 97))


def test_too_few_rows_name_the_number_that_works() -> None:
    with pytest.raises(DataError) as caught:
        split_windows(make_frame(40), window=48, horizon=6, test=0.2)
    message = str(caught.value)
    assert message.startswith(
        "40 rows are too few: window=48 with horizon=6, test=0.2 and valid=0.1"
    )
    least = int(message.split("at least ")[1].split(".")[0].replace(",", ""))
    split_windows(make_frame(least), window=48, horizon=6, test=0.2)
    with pytest.raises(DataError, match="too few"):
        split_windows(make_frame(least - 1), window=48, horizon=6, test=0.2)


@pytest.mark.parametrize(
    ("settings", "words", "others"),
    [
        (
            {"horizon": 24},
            ("validation rows the earlier half has 20", "valid=..."),
            ("window=...",),
        ),
        ({"horizon": 24, "valid": 0.3, "test": 0.01}, ("unseen there are 4", "test=..."), ()),
        ({"window": 500}, ("Shorten window=500 or",), ("valid=...", "horizon=...")),
        ({"window": 390, "horizon": 24}, ("valid=...", "horizon=...", "window=..."), ()),
    ],
)
def test_the_part_that_is_too_short_is_named(
    settings: dict[str, Any], words: tuple[str, ...], others: tuple[str, ...]
) -> None:
    with pytest.raises(DataError) as caught:
        split_windows(make_frame(400), **{"window": 2, **settings})
    message = str(caught.value)
    assert all(word in message for word in words)
    assert not any(word in message for word in others)


def test_a_hopeless_share_still_answers_at_once() -> None:
    with pytest.raises(DataError, match="too few"):
        split_windows(make_frame(40), window=5, test=0.9 - 1e-12)


def test_gaps_that_leave_no_window_are_the_reason_given() -> None:
    frame = make_frame(100)
    times = np.arange(100) + 10 * (np.arange(100) // 8)
    table = pd.DataFrame(frame.values, columns=["a", "b", "y"], index=times)
    gappy = build_frame(table, target="y", gaps="respect")
    with pytest.raises(DataError) as caught:
        split_windows(gappy, window=10)
    assert "longest stretch that ends in them has 8" in str(caught.value)
    assert "gaps='close'" in str(caught.value)


def test_series_shorter_than_a_window_are_the_reason_given() -> None:
    """As where a column of numbers was taken for the names of series."""
    frame = make_frame(100)
    table = pd.DataFrame(frame.values, columns=["a", "b", "y"]).assign(day=range(100))
    many = build_frame(table, target="y", series="a", time="day")
    with pytest.raises(DataError) as caught:
        split_windows(many, window=10)
    assert "the longest of the 100 series that column 'a' names has 1." in str(caught.value)
    assert "gaps" not in str(caught.value)


def test_parts_not_asked_for_may_be_empty() -> None:
    parts, windows = split_windows(make_frame(20), window=5, valid=0.0)
    assert parts.a == parts.b == parts.n == 20
    assert len(windows["train"]) == 15
    assert not len(windows["stop"]) and not len(windows["new"])


def test_origins_by_part_accepts_no_origins() -> None:
    parts = chronological(10)
    assert not len(origins_by_part(np.empty(0, dtype=np.int64), 1, parts)["train"])
