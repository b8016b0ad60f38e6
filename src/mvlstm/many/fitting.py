"""One model learned from whole series of a dataset, as many as memory holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from mvlstm.errors import DataError, check_whole
from mvlstm.many.dataset import Dataset, Span, chosen, described
from mvlstm.many.memory import Budget
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.window_choice import MOST_ROWS
from mvlstm.progress import show_tasks
from mvlstm.table.kinds import OnDemand

Model = TypeVar("Model", bound=AbstractForecaster)


def fit(
    model: Model,
    path: str | Path,
    target: str,
    *,
    series: str,
    memory: str | int = "4GB",
    rows: int | None = None,
    **told: Any,
) -> Model:
    """Fit one model to a dataset on disk, in bounded memory.

    If the dataset is larger than the budget holds, whole series are chosen at random, by their
    names and the model's seed; a note says from how many rows and series the model learned. All
    others are forecast as well: `forecast` finds the scaling of each series from its own training
    rows.

    Parameters
    ----------
    model : AbstractForecaster
        Fitted in place, and returned.
    path : path
        A Parquet file in which the rows of each series follow one another, or a folder of such
        files, or of folders ``series=name``.
    target : str
    series : str
        Column that says which series a row belongs to.
    memory : str or int
        Most memory that the fit may take, such as "4GB".
    rows : int, optional
        Most rows to learn from; by default as many as the budget holds.
    **told
        The other arguments of ``fit``.

    Examples
    --------
    >>> import pandas as pd, tempfile, pathlib, numpy as np, mvlstm as mv
    >>> values = np.random.default_rng(0).normal(size=600)
    >>> table = pd.DataFrame({"id": np.repeat(["a", "b", "c"], 200), "y": values})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "panel.parquet"
    ...     table.to_parquet(file)
    ...     model = mv.many.fit(mv.AR(window=3, verbose=0), file, "y", series="id", rows=450)
    >>> len(model.fitted_.preparation.series.names)
    2
    """
    dataset = Dataset.open(path, series)
    columns = _columns(dataset, target, told)
    model.check()
    spans, note = _sample(dataset, columns, _room(model, columns, memory, rows), memory, model)
    table = OnDemand(partial(dataset.read, spans, columns))  # so that nobody else holds the rows
    model.fit(table, target, series=series, **told)
    if note:
        model.fitted_ = replace(model.fitted_, notes=(*model.fitted_.notes, note))
    return model


def _columns(dataset: Dataset, target: str, told: dict[str, Any]) -> list[str]:
    """Return the columns that are read: those named, or all of the first part."""
    there = dataset.columns()
    named = [dataset.series, target]
    for name in ("time", "variables", "known", "categorical"):
        given = told.get(name)
        named += [given] if isinstance(given, str) else list(given or ())
    if told.get("variables") is None:
        left = told.get("exclude") or ()
        left = [left] if isinstance(left, str) else left
        named += [name for name in there if name not in left]
    return list(dict.fromkeys(named))


def _room(
    model: AbstractForecaster, columns: Sequence[str], memory: str | int, rows: int | None
) -> int:
    """Return how many rows may be learned from.

    A transform holds each value a second time, and marks of what is missing are values too.
    """
    values = len(columns) * (1 + (model.transform != "none") + (model.missing == "mask"))
    window = MOST_ROWS if model.window == "auto" else int(model.window)
    copied = window * len(columns) if model.copies_windows else 0
    most = Budget.of(memory).fit_rows(values, int(model.horizon), copied)
    if rows is None:
        return most
    check_whole("rows", rows, 1)
    return min(most, rows)


def _sample(
    dataset: Dataset,
    columns: Sequence[str],
    most: int,
    memory: str | int,
    model: AbstractForecaster,
) -> tuple[list[Span], str]:
    """Choose series of at most this many rows, and make a note if these are not all."""
    indices, free = [], Budget.of(memory).free
    with show_tasks(model.verbose, "series", len(dataset.parts)) as advance:
        for part in range(len(dataset.parts)):
            dataset.check(part, columns, free)
            indices.append(dataset.index(part))
            advance("parts read")
    spans, count, size = chosen(indices, most, getattr(model, "seed", 0))
    every = sum(len(one.names) for one in indices)
    total = sum(int(one.rows.sum()) for one in indices)
    if not spans:
        raise DataError(
            f"Not one of the {every:,} series has room in {most:,} rows. Give more: memory=... or "
            "rows=...."
        )
    whole = count == every
    note = f"Learned from {described(size, count)}, of {described(total, every)} in the dataset."
    return spans, "" if whole else note
