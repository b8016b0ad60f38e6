"""From predicted labels to a `Forecast`: calibrated, in units, with dates and names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvlstm._words import counted
from mvlstm.errors import DataError
from mvlstm.model.calibration import Calibration
from mvlstm.model.table_warnings import category_warnings, range_warnings
from mvlstm.problem.part_times import PartTimes
from mvlstm.problem.predictive import Predictive, numbered
from mvlstm.problem.preparation import Preparation, Prepared
from mvlstm.problem.windows import gather_labels, measured_labels
from mvlstm.results import Forecast
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.spacing import describe_time
from mvlstm.types import FloatArray, IntArray

LARGEST = 1e150  # of a forecast: the squares of larger ones are not finite


def dated_forecast(
    prepared: Prepared,
    origins: IntArray,
    pieces: Iterable[Predictive],
    calibration: Calibration,
    parts: PartTimes,
    window: int,
) -> Forecast:
    """Put units, intervals, dates and names to what a method predicts, piece by piece."""
    frame, M, (K, H) = prepared.frame, len(origins), calibration.spread.shape
    members, mixture = np.empty((K, 0, H)), [np.empty((0, H, 0))] * 3
    with np.errstate(over="ignore", invalid="ignore"):  # checked next
        for rows, one in numbered(pieces):
            own, *mixed = _in_units(prepared, origins[rows], one, calibration)
            if own.shape[1] == M:  # one piece
                members, mixture = own, mixed
                break
            if not rows.start:
                members = np.empty((K, M, H))
                mixture = [np.empty((M, *part.shape[1:])) for part in mixed]
            members[:, rows] = own
            for whole, part in zip(mixture, mixed, strict=True):
                whole[rows] = part
    require_finite(members, frame, origins, mixture)
    weights, means, variances = mixture
    times, actual = frame.future_times(origins, H), gather_labels(frame, origins, H)
    series = frame.names_of(origins)
    names = part_names(parts, prepared.preparation, times, series)
    names[np.isnan(actual)] = "new"
    return Forecast(
        origin=frame.times[origins],
        time=times,
        target=frame.target,
        weights=weights,
        means=means,
        variances=variances,
        members=members,
        part=names,
        actual=np.where(measured_labels(frame, origins, H), actual, np.nan),
        notes=frame.notes,
        warnings=(
            *calibration.warnings,
            *range_warnings(prepared, origins, window),
            *category_warnings(prepared, origins, window),
        ),
        transform=prepared.preparation.transform,
        series=series,
        dependence=calibration.dependence,
        shared=calibration.shared,
        shape=calibration.shape,
    )


def _in_units(
    prepared: Prepared, origins: IntArray, predictive: Predictive, calibration: Calibration
) -> tuple[FloatArray, ...]:
    """Return members (K, m, H) in units of the target, and the calibrated mixture (m, H, J)."""
    scale = prepared.scale(origins, predictive.members.shape[2])
    labels = predictive.with_spread(calibration.spread).widened(calibration.factors)
    mixture = scale.mixture(labels)
    members = scale.members(predictive.members, mixture, calibration.mean_factor)
    return scale.transform.clip(members), *mixture.joined


def part_names(
    parts: PartTimes, preparation: Preparation, times: NDArray[Any], series: NDArray[Any] | None
) -> NDArray[np.str_]:
    """Return "train", "validation" or "new" for times (M, H) of given series (M,).

    A series that training did not have is new at any time.
    """
    names = parts.names(times)
    if preparation.series is not None and series is not None:
        names[~np.isin(series.astype(str), preparation.series.names)] = "new"
    return names


def require_finite(
    members: FloatArray, frame: SeriesFrame, origins: IntArray, mixture: Iterable[FloatArray] = ()
) -> None:
    """Raise `DataError` if a forecast (K, M, H) made at an origin is not finite, or its square.

    Neither may weights, means and variances of its mixture be, (M, H, J) each.
    """
    sound = (np.abs(members) < LARGEST).all(axis=(0, 2))
    for part in mixture:
        sound &= np.isfinite(part).all(axis=(1, 2))
    if not sound.all():
        first = frame.times[origins[np.argmin(sound)]]
        raise DataError(
            f"{counted(int((~sound).sum()), 'forecast')} would not be finite, or lie beyond "
            f"{LARGEST:g}, the first from {describe_time(first)}: the model's weights are too "
            "large for this table. Look for extreme values in it, or fit the model anew."
        )
