"""From what a model predicts to a `Forecast`: calibrated, in units, with dates and names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mvlstm.errors import DataError
from mvlstm.model.table_warnings import category_warnings, not_finite, range_warnings
from mvlstm.problem.predictive import Predictive, member_means
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.windows import gather_labels, measured_labels
from mvlstm.results import Forecast
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.spacing import describe_time
from mvlstm.types import FloatArray, IntArray

if TYPE_CHECKING:
    from mvlstm.model.forecaster import AbstractForecaster


def dated_forecast(
    model: AbstractForecaster,
    prepared: Prepared,
    origins: IntArray,
    predictive: Predictive | None = None,
) -> Forecast:
    """Put dates, names and units to what the model predicts, or has predicted already."""
    frame, T, H = prepared.frame, int(model.window), int(model.horizon)
    with np.errstate(over="ignore", invalid="ignore"):  # what comes of it is looked at next
        if predictive is None:
            pieces = prepared.pieces(origins, T)
            predictive = Predictive.join([model._predict_rows(prepared, p) for p in pieces])
        predictive = predictive.shifted(prepared.baseline(origins, H))
    _require_finite(predictive.members, frame, origins)
    weights, means, variances = predictive.mixture(model.spread_)
    variances = variances * model.calibration_[:, None]
    if prepared.units is not None:
        means = np.moveaxis(prepared.in_units(np.moveaxis(means, -1, 0), origins), 0, -1)
        variances = variances * (prepared.unit(origins) ** 2)[:, None, None]
    transform = model.preparation_.transform
    members = prepared.in_units(predictive.members, origins)
    if transform:
        corrected = variances * model.mean_factor_[:, None]
        members = member_means(transform, weights, means, corrected, len(members))
        _require_finite(members, frame, origins)
    times, labels = frame.future_times(origins, H), gather_labels(frame, origins, H)
    return Forecast(
        origin=frame.times[origins],
        time=times,
        target=frame.target,
        weights=weights,
        means=means,
        variances=variances,
        members=members,
        part=np.where(np.isnan(labels), "new", part_names(model, times, frame.names_of(origins))),
        actual=np.where(measured_labels(frame, origins, H), labels, np.nan),
        notes=frame.notes,
        warnings=(
            *range_warnings(prepared, origins, T),
            *category_warnings(prepared, origins, T),
        ),
        transform=transform,
        series=frame.names_of(origins),
    )


def part_names(
    model: AbstractForecaster, times: NDArray[Any], series: NDArray[Any] | None
) -> NDArray[np.str_]:
    """Return "train", "validation" or "new" for times (M, H) of given series (M,).

    A series that training did not have is new at any time.
    """
    names = model.borders_.parts(times)
    trained = model.preparation_.series
    if trained is not None and series is not None:
        names[~np.isin(series.astype(str), trained.names)] = "new"
    return names


def _require_finite(members: FloatArray, frame: SeriesFrame, origins: IntArray) -> None:
    bad = not_finite(members)
    if len(bad):
        raise DataError(
            f"{len(bad):,} forecasts are not finite, the first from "
            f"{describe_time(frame.times[origins[bad[0]]])}: values of the table are too far "
            "from those of the training rows. Correct them, or leave these rows out."
        )
