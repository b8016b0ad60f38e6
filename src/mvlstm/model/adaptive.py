"""Intervals that follow the data: what `mvlstm.recalibration` does, on a `Forecast`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm import metrics
from mvlstm.problem.part_times import PartTimes
from mvlstm.recalibration import FAR, SCORES, WIDE, Arrivals, ScoreMap, recalibrate, track
from mvlstm.results import Forecast
from mvlstm.results.distribution import Later
from mvlstm.types import BoolArray, FloatArray, IntArray

INTERVAL = list(WIDE)
CARRIED = 0.5  # of the way from the former shape to the latest; from a quarter to the whole, the
# interval score after weekly refits is within 1 %
MOST_TIED = 0.95  # share: joint paths keep some of the dependence that the fit found
TINY = np.finfo(np.float64).tiny


def adapted(forecast: Forecast, parts: PartTimes) -> Forecast:
    """Recalibrate every forecast by the outcomes since the fit that were known at its origin.

    The work is done when its distribution is first asked for; that of joint paths, with these.
    """
    return _following(forecast, usable_outcomes(forecast, parts))


def adapted_stream(forecasts: Sequence[Forecast]) -> Forecast:
    """Join forecasts of models that took turns; recalibrate all by the outcomes known by then.

    Every model's forecasts are of rows it did not know, so that errors of one before it count.
    """
    joined = Forecast.join([replace(one, knots=None, tied=None) for one in forecasts])
    new = (joined.part == "new").all(axis=1)
    return _following(joined, new[:, None] & np.isfinite(joined.actual))


def carried_shape(forecast: Forecast, parts: PartTimes, shape: FloatArray) -> FloatArray:
    """Return the shape (H, L) that a model goes on from, once the outcomes of a forecast are known.

    It lies between the former one and where they have led the levels, the mean over series.
    """
    static, usable = replace(forecast, knots=None, tied=None), usable_outcomes(forecast, parts)
    if not usable.any():
        return shape
    order, arrivals = arrivals_of(static)
    ends, sizes = arrivals.starts[1:], np.diff(arrivals.starts)
    now = Arrivals(  # with a row more for each series, at which all is known
        arrivals.starts + np.arange(len(arrivals.starts)),
        np.insert(arrivals.times, ends, arrivals.times.max() + 1),
        np.insert(arrivals.known, ends, sizes[:, None], axis=0),
    )
    scores = np.insert(static_scores_of(static, usable)[order], ends, np.nan, axis=0)
    latest = recalibrate(scores, now, shape)[now.starts[1:] - 1].values.mean(axis=0)
    return np.asarray(shape + CARRIED * (latest - shape))


def _following(forecast: Forecast, usable: BoolArray) -> Forecast:
    """Let the intervals follow usable outcomes (M, H)."""
    if not usable.any():
        return forecast
    found = replace(forecast, knots=Later(partial(_knots, forecast, usable)))
    if forecast.dependence is None:
        return found
    return replace(found, tied=Later(partial(_ties, found, forecast.dependence, usable)))


def _knots(forecast: Forecast, usable: BoolArray) -> ScoreMap:
    """Return where each of `LEVELS` lies among static normal scores, for (M, H).

    Forecasts that were calibrated apart have knots: scores are then those under these.
    """
    order, arrivals = arrivals_of(forecast)
    shape = forecast.shape if forecast.knots is None else None
    scores = static_scores_of(forecast, usable)
    if (np.diff(order) == 1).all():  # of one series: no need to put rows in order
        found = recalibrate(scores, arrivals, shape)
    else:
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        found = recalibrate(scores[order], arrivals, shape)[back]
    return found if forecast.knots is None else forecast.distribution.after(found)


def _ties(forecast: Forecast, dependence: FloatArray, usable: BoolArray) -> FloatArray:
    """Return by what share steps go together, or apart, more than ``dependence`` says, (M,).

    The sum of a forecast's calibrated scores says so: the width of its 90 % interval is followed as
    that of a single step is.
    """
    H, variance = len(dependence), dependence.sum()  # of the sum, by what the fit found
    whole, sums = np.asarray(usable.all(axis=1)), np.full(len(usable), np.nan)
    few = forecast.take(whole)
    scores = np.clip(few.distribution.score(few.actual), -FAR, FAR)
    sums[whole] = scores.sum(axis=1) / np.sqrt(variance)
    order, arrivals = arrivals_of(forecast)
    last = replace(arrivals, known=arrivals.known[:, -1:])
    place, quantiles = track(sums[order, None], last)
    low, high = quantiles[INTERVAL][:, place[:, 0]]
    wider = ((high - low) / np.diff(SCORES[INTERVAL])) ** 2 - 1.0  # the variance, by this share
    room = np.where(wider > 0, H**2 - variance, variance - H)  # were all alike, or none
    shares = np.empty(len(order))
    shares[order] = wider * variance / np.maximum(room, TINY)
    return np.clip(shares, -MOST_TIED, MOST_TIED)


def usable_outcomes(forecast: Forecast, parts: PartTimes) -> BoolArray:
    """Say which outcomes (M, H) were measured, of forecasts of rows unknown to the model."""
    new = (forecast.part == "new") & ~parts.before(forecast.time)
    return np.asarray(new.all(axis=1)[:, None] & np.isfinite(forecast.actual))


def static_scores_of(forecast: Forecast, usable: BoolArray) -> FloatArray:
    """Return normal scores (M, H) of usable outcomes under the distribution of the fit, or NaN."""
    scores = np.full(usable.shape, np.nan)
    some = np.flatnonzero(usable.any(axis=1))
    rows = slice(some[0], some[-1] + 1)  # without a copy
    few = forecast.take(rows)
    if few.knots is None:
        mixture = few.weights, few.means, few.variances
        scores[rows] = metrics.mixture_score(*mixture, few.transform.forward(few.actual))
    else:
        scores[rows] = few.distribution.score(few.actual)
    scores[~usable] = np.nan
    return scores


def arrivals_of(forecast: Forecast) -> tuple[IntArray, Arrivals]:
    """Order the origins by series and time; say which outcomes were known at each."""
    M, H = forecast.time.shape
    origin, time = _ticks(np.asarray(forecast.origin)), _ticks(forecast.time)
    series = np.zeros(M) if forecast.series is None else pd.factorize(forecast.series)[0]
    order = np.lexsort((origin, series))
    origin, time, series = origin[order], time[order], series[order]
    starts = np.flatnonzero(np.diff(series, prepend=-1.0, append=np.inf))
    known = np.empty((M, H), dtype=np.int64)
    for start, end in pairwise(starts):
        for h in range(H):
            known[start:end, h] = _counts(time[start:end, h], origin[start:end], h + 1)
    return order, Arrivals(starts, pd.factorize(origin, sort=True)[0], known)


def _counts(times: IntArray, origins: IntArray, step: int) -> IntArray:
    """Return how many of a series' forecast times have come by each of its origins."""
    if step < len(times) and np.array_equal(times[:-step], origins[step:]):  # no row is missing
        return np.maximum(np.arange(len(times)) - (step - 1), 0)
    return np.asarray(times.searchsorted(origins, side="right"))


def _ticks(times: NDArray[Any]) -> IntArray:
    """Return times as whole numbers that compare as they do."""
    if times.dtype.kind not in "OM":
        return times.astype(np.int64)
    dates = pd.DatetimeIndex(pd.to_datetime(times.reshape(-1), utc=True))
    return np.asarray(dates.as_unit("us").asi8).reshape(times.shape)
