"""Windows as methods receive them: in a table, of new series, scrambled, or made up."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from mvlstm.problem.inputs import Windows
from mvlstm.problem.preparation import Preparation, Prepared
from mvlstm.problem.windows import gather_windows
from mvlstm.table.frame import build_frame, rebuild_frame

T = 4


def prepared(order: int = 0, dtype: type = np.float64) -> Prepared:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 3)).cumsum(axis=0), columns=["a", "b", "y"])
    frame = build_frame(table, target="y")
    return Preparation.learn(frame.values, np.array([0, 0, order])).apply(frame, dtype)


def with_new_series() -> tuple[Prepared, pd.DataFrame]:
    """Return a table of an old and a new series, prepared by what the old ones taught."""
    rng = np.random.default_rng(1)
    parts = [
        pd.DataFrame({"t": range(30), "s": name, "x": rng.normal(size=30), "y": size * k})
        for name, size, k in (
            ("old", 3.0, rng.normal(size=30).cumsum()),
            ("older", 9.0, rng.normal(size=30).cumsum()),
            ("new", 50.0, rng.normal(size=30).cumsum()),
        )
    ]
    known = build_frame(pd.concat(parts[:2]), target="y", time="t", series="s")
    learned = Preparation.learn(known.values, np.zeros(2, dtype=np.int64))
    learned = learned.by_series(known, np.ones(known.n_rows, dtype=bool), T)
    both = pd.concat([parts[0], parts[2]])
    return learned.apply(rebuild_frame(both, known.layout), window=T), parts[2]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [0, 2])
def test_windows_at_origins_are_those_of_the_table(order: int, dtype: type) -> None:
    table = prepared(order, dtype)
    origins = table.origins(T, 1)[::3]
    found = Windows.at(table, origins, T)
    assert len(found) == len(origins) and not found.made_up
    np.testing.assert_array_equal(found.values, gather_windows(table.table, origins, T))
    by_hand = np.stack([table.table[row - T + 1 : row + 1] for row in origins])
    np.testing.assert_array_equal(found.values, by_hand)
    assert found.values.dtype == dtype
    assert found.prepared is table and found.origins is origins


def test_a_length_may_be_of_a_small_type() -> None:
    table = prepared()
    origins = table.origins(T, 1)
    found = Windows.at(table, origins, np.int8(T))
    assert type(found.length) is int
    np.testing.assert_array_equal(found.values, gather_windows(table.table, origins, T))


def test_windows_of_a_new_series_are_scaled_as_a_whole() -> None:
    table, new = with_new_series()
    origins = table.origins(T, 1)
    assert table.moving is not None
    moving = table.moving.moving[origins]
    assert moving.any() and not moving.all()
    for rows in (origins, origins[moving], origins[~moving]):
        found = Windows.at(table, rows, T)
        np.testing.assert_array_equal(found.values, gather_windows(found.table, found.ends, T))
    found = Windows.at(table, origins, T).values
    old = gather_windows(table.table, origins[~moving], T)
    np.testing.assert_array_equal(found[~moving], old)
    y = new["y"].to_numpy()
    for place in np.flatnonzero(moving):
        assert table.frame.panel is not None
        end = int(table.frame.times[origins[place]]) + 1
        wanted = (y[end - T : end] - y[:end].mean()) / y[:end].std()
        np.testing.assert_allclose(found[place, :, -1], wanted)


def test_pieces_are_the_windows_one_after_another() -> None:
    values = np.random.default_rng(4).normal(size=(5000, 2))
    found = Windows(values, np.arange(T - 1, 5000), T)
    pieces = list(found.pieces())
    assert len(pieces) > 1
    np.testing.assert_array_equal(
        np.concatenate(pieces), gather_windows(values, np.arange(T - 1, 5000), T)
    )


def test_made_up_windows_stand_in_no_table() -> None:
    values = np.random.default_rng(2).normal(size=(5, T, 3))
    found = Windows.of(values)
    assert found.made_up and found.origins is None and len(found) == 5
    np.testing.assert_array_equal(found.values, values)
    np.testing.assert_array_equal(gather_windows(found.table, found.ends, T), values)
    np.testing.assert_array_equal(np.concatenate(list(found.pieces())), values)


@pytest.mark.parametrize("made_up", [True, False])
def test_scrambled_windows_have_the_columns_of_others(made_up: bool) -> None:
    table = prepared()
    windows = Windows.at(table, table.origins(T, 1), T)
    if made_up:
        windows = Windows.of(windows.values.copy())
    before = windows.values.copy()
    donors = np.random.default_rng(3).permutation(len(windows))
    found = windows.scrambled(np.array([0, 2]), donors)
    assert found.made_up
    np.testing.assert_array_equal(found.values[..., [0, 2]], before[donors][..., [0, 2]])
    np.testing.assert_array_equal(found.values[..., 1], before[..., 1])
    np.testing.assert_array_equal(windows.values, before)  # they are left as they were
    same = windows.scrambled(np.array([1]), np.arange(len(windows)))
    np.testing.assert_array_equal(same.values, before)
