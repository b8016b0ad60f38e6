"""Forecasts and scores of all series of a dataset, block by block, in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mvlstm._words import counted, name_list
from mvlstm.errors import DataError
from mvlstm.many.running import Failure, Job, Running, Summary, Treated, run
from mvlstm.model.fitted import Fitted
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.scoring import score_unseen, unseen_origins
from mvlstm.problem.preparation import Prepared
from mvlstm.settings import expanded
from mvlstm.table.frame import SeriesFrame

KINDS = ("scores", "forecasts")


@expanded(running=Running)
def forecast(
    model: AbstractForecaster | str | Path,
    path: str | Path,
    out: str | Path,
    *,
    quantiles: Sequence[float] = (),
    scores: bool = True,
    running: Running,
) -> Summary:
    """Forecast the next steps of every series of a dataset, and score the unseen rows.

    Each series is scaled by its own training rows, whether or not it was among those learned from.
    What fails is recorded, series by series, and the rest goes on; a second run into the same
    folder does what is missing, and what failed in parts that have been changed since.

    Parameters
    ----------
    model : AbstractForecaster or path
        A fitted model of several series.
    path : path
        The dataset, as for `fit`. With an engine of other machines, they must see the same path.
    out : path
        Folder for the files ``forecasts/*.parquet``, ``scores/*.parquet`` and
        ``failures/*.parquet``.
    quantiles : sequence of float
        Further quantiles.
    scores : bool
        Whether to score the rows that the model has not seen, next to naive forecasts.

    Returns
    -------
    Summary
        Its ``scores`` are means over the series that have unseen rows, each series counting alike.
    """
    settings = {"quantiles": list(quantiles), "scores": scores}
    job = Job("forecasts", KINDS, forecast_series, settings)
    found = run(model, path, out, job, running)
    return replace(found, scores=mean_scores(found.folder)) if scores else found


def mean_scores(folder: Path) -> pd.Series[float] | None:
    """Return the mean of each score over all series, file by file; None where there are none."""
    sums = counts = pd.Series(dtype=np.float64)
    for file in sorted((folder / KINDS[0]).glob("*.parquet")):
        own = pd.read_parquet(file).drop(columns="series")
        sums, counts = sums.add(own.sum(), fill_value=0), counts.add(own.count(), fill_value=0)
        order = own.columns
    if not len(sums):
        return None
    means = (sums / counts)[order]
    means["n"] = sums["n"]
    return means


def forecast_series(fitted: Fitted, table: pd.DataFrame, settings: Mapping[str, Any]) -> Treated:
    """Forecast the last rows of series that have enough of them, and tell which have not."""
    frame = fitted.read(table, "forecast")
    own, prepared = scaled_alone(fitted, frame)
    assert frame.panel is not None
    last = frame.last_rows()
    ready = np.isin(last, prepared.origins(own.window, 0))
    short = [
        Failure(frame.panel.name(row), None, _too_short(fitted, frame.panel, row))
        for row in last[~ready]
    ]
    if not ready.any():
        if len(last) == 1:
            raise DataError(short[0].reason)
        raise DataError("no series is long enough")
    made = own.forecast_last(prepared, last[ready]).to_frame(settings["quantiles"])
    tables = {"forecasts": made.drop(columns=["part", "actual"], errors="ignore")}
    scores = _scores(own, prepared) if settings["scores"] else None
    return Treated(tables if scores is None else {"scores": scores, **tables}, short)


def scaled_alone(fitted: Fitted, frame: SeriesFrame) -> tuple[Fitted, Prepared]:
    """Return the model with each series of a table scaled by its own training rows."""
    train = ~fitted.parts.after(np.asarray(frame.times), fitted.parts.train)
    least = fitted.window + fitted.horizon
    own = replace(fitted, preparation=fitted.preparation.of_others(frame, train, least))
    return own, own.prepare(frame)


def _too_short(fitted: Fitted, panel: Any, row: int) -> str:
    rows, window = int((panel.codes == panel.codes[row]).sum()), fitted.window
    if rows >= window and fitted.layout.known:
        return (
            f"Series '{panel.name(row)}' does not go on for {counted(fitted.horizon, 'row')} after "
            f"its last target, with {name_list(fitted.layout.known)} known in advance. Add these "
            "rows, the target empty."
        )
    return (
        f"Series '{panel.name(row)}' has {counted(rows, 'row')}; a forecast needs {window} "
        "without a gap. Supply more, or fit with a shorter window."
    )


def _scores(fitted: Fitted, prepared: Prepared) -> pd.DataFrame | None:
    """Score the unseen rows of each series; None where there are none."""
    try:
        origins, _, _ = unseen_origins(fitted, prepared)
        forecast = fitted.forecast(prepared, origins)
        return score_unseen(fitted, forecast, prepared, paths=False).by_series
    except DataError:
        return None
