"""How wide intervals must be, from members' errors and coverage on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mvlstm import metrics
from mvlstm._words import counted
from mvlstm.model.learned import Learned
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Mixture
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.problem import Problem
from mvlstm.problem.target_scale import mean_of_members
from mvlstm.problem.windows import gather_labels, measured_labels
from mvlstm.results.reference import Reference
from mvlstm.transforms import Transform
from mvlstm.types import BoolArray, FloatArray, IntArray

LEVEL = 0.9  # the interval that is calibrated
CONFIDENT = 1.645  # standard errors that chance exceeds once in twenty times
MOST = 0.95  # of the rows that are to be covered, however few they are
FEWEST = 20  # rows that can tell how much they vary
MEAN_SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)  # of the variance, by which a mean may be corrected
CLEARLY, BY_FAR = 0.98, 0.75  # shares of the squared error that may be left, see `_clearly_best`
CHANCE = 0.05


@dataclass(frozen=True, eq=False)
class Calibration:
    """How sure forecasts are, found on held-out rows.

    Parameters
    ----------
    spread : (K, H)
        Squared error of each member on the stopping rows.
    factors : (H,)
        By which variances are multiplied so that intervals cover.
    persistence : (H,)
        Calibrated variance of persistence.
    mean_factor : (H,)
        Share of the variance that corrects the mean of a transformed target.
    reference : Reference, optional
        How good the model was on the later half of the validation rows.
    dependence : (H, H), optional
        How the errors of the steps go together: the correlation of their normal scores.
    """

    spread: FloatArray
    factors: FloatArray
    persistence: FloatArray
    mean_factor: FloatArray
    reference: Reference | None = None
    dependence: FloatArray | None = None


def calibrate(learned: Learned, problem: Problem) -> tuple[Calibration, tuple[str, ...]]:
    """Find each member's spread, and the factor that makes the intervals cover; with notes.

    The factor is found on all validation rows. The earlier half is not new to the model, which
    stopped training by it and may have fitted a link to it; but the later half alone is a short
    stretch of time, and misjudged the rows after it more. How good the model is on the later half
    is kept, to see later whether it slips. Targets that were filled in do not count.
    """
    prepared, H = problem.prepared, problem.horizon
    stop, rows = problem.origins["stop"], problem.origins["calibration"]
    both = np.union1d(stop, rows)
    stopping = np.isin(both, stop)
    counts = _counting(prepared, both, stopping, H)
    predictive = learned.predict(Windows.at(prepared, both, problem.window))
    labels = np.where(counts, prepared.labels(both, H), np.nan)
    notes: tuple[str, ...] = ()
    if len(both) < FEWEST:
        notes = (
            f"The intervals rest on {counted(len(both), 'validation window')} and may cover far "
            "from 90 %. A larger validation part (valid=0.3) or more rows help.",
        )
    errors = (predictive.members - labels)[:, stopping]
    spread = np.maximum(np.nanmean(errors**2, axis=1), _tiny(problem))  # (K, H)
    times = np.asarray(prepared.frame.times)[both]
    mixture = predictive.with_spread(spread)
    factors = cover_factors(mixture.joined, labels, times)
    moved = np.where(counts, _moves(prepared, both, H), np.nan)
    variance = np.maximum(np.nanmean(moved[stopping] ** 2, axis=0), _tiny(problem))
    one = np.ones((len(both), H, 1))
    own = (one, 0 * one, np.broadcast_to(variance[:, None], one.shape))
    persistence = variance * cover_factors(own, moved, times)
    later, scale = np.isin(both, rows), prepared.scale(rows, H)
    actual = np.where(
        measured_labels(prepared.frame, rows, H), gather_labels(prepared.frame, rows, H), np.nan
    )
    found = scale.mixture(mixture.take(later).widened(factors))
    mean_factor = np.ones(H)
    if scale.transform:
        whole = cover_factors(mixture.joined, labels, times, margin=False) / factors
        shares, members = _choose_shares(scale.transform, found, whole, actual)
        mean_factor = shares * whole
        if (shares < 1).any():
            notes = (
                *notes,
                f"The mean is corrected by {shares.min():.0%} of the variance found on the "
                "transformed scale: by all of it, it missed by more on the rows of calibration.",
            )
    else:
        members = scale.members(predictive.members[:, later], found, mean_factor)
    weights, means, variances = found.joined
    last = prepared.frame.target_values[rows][:, None]
    reference = Reference.measure_rows(
        np.asarray(prepared.frame.times[rows]),
        errors=members.mean(axis=0) - actual,
        moves=actual - last,
        at=metrics.mixture_cdf(weights, means, variances, scale.transform.forward(actual)),
    )
    scores = metrics.mixture_score(*mixture.widened(factors).joined, labels)
    together = dependence(scores)
    return Calibration(spread, factors, persistence, mean_factor, reference, together), notes


def dependence(scores: FloatArray, prior: FloatArray | None = None) -> FloatArray | None:
    """Return the correlation (H, H) of the steps' normal scores (M, H), by their ranks.

    It is drawn towards a ``prior``, or independence, as if by `FEWEST` forecasts. None without
    several steps.
    """
    H = scores.shape[1]
    whole = scores[np.isfinite(scores).all(axis=1)]
    own = np.eye(H) if prior is None else prior
    if H == 1 or len(whole) < 2:
        return None if H == 1 else own
    ranks = whole.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    normal = ndtri((ranks + 0.5) / len(whole))
    share = len(whole) / (len(whole) + FEWEST)
    found = np.corrcoef(normal, rowvar=False)
    return np.asarray(share * 0.5 * (found + found.T) + (1.0 - share) * own)


def _choose_shares(
    transform: Transform, mixture: Mixture, whole: FloatArray, actual: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Find how much of the variance the mean of a transformed target is corrected by.

    The mean of a log-normal lives in its upper tail, which errors that are not normal may belie.
    Less than the whole variance, which is a share (H,) of the intervals' with their margin, is
    taken where that lowers the squared error on the later half of the validation rows clearly.

    Returns
    -------
    shares : (H,)
    members : (K, M, H)
        Their means with these shares.
    """
    wide = mixture.widened(whole)
    tried = [
        mean_of_members(transform, replace(wide, variances=share * wide.variances))
        for share in MEAN_SHARES
    ]
    errors = np.array([found.mean(axis=0) - actual for found in tried])  # (shares, M, H)
    known = np.isfinite(actual)  # (M, H)
    best = [_clearly_best(errors[:, known[:, h], h], horizon=h + 1) for h in range(len(whole))]
    chosen = [tried[place][:, :, h] for h, place in enumerate(best)]
    return np.array(MEAN_SHARES)[best], np.stack(chosen, axis=-1)


def _clearly_best(errors: FloatArray, *, horizon: int) -> int:
    """Return the row of errors (shares, M) with the smallest squares, if they are clearly smaller.

    Clearly: by a quarter, or by a fiftieth and more than chance would have it. Else the first.
    """
    if errors.shape[1] <= max(3, horizon + 1):
        return 0
    squares = np.mean(errors**2, axis=1)
    best = int(squares.argmin())
    left = squares[best] / squares[0] if squares[0] > 0 else 1.0
    if left >= CLEARLY:
        return 0
    by_chance = metrics.diebold_mariano(errors[best], errors[0], horizon=horizon).p_value
    return best if left < BY_FAR or by_chance < CHANCE else 0


def _counting(
    prepared: Prepared, origins: IntArray, stopping: BoolArray, horizon: int
) -> BoolArray:
    """Say which labels (M, H) were measured; all of a step that has none among the stopping."""
    measured = measured_labels(prepared.frame, origins, horizon)
    return measured | ~measured[stopping].any(axis=0)


def _moves(prepared: Prepared, origins: IntArray, horizon: int) -> FloatArray:
    """Return how far the target goes from each origin, (M, H): persistence's errors."""
    return prepared.target_steps(origins, horizon) - prepared.target[origins][:, None]


def _tiny(problem: Problem) -> float:
    """Return the smallest variance worth the name, so that a perfect fit keeps an interval."""
    scale = problem.prepared.target.std()
    return float(max((1e-9 * scale) ** 2, np.finfo(np.float64).tiny))


def cover_factors(
    mixture: tuple[FloatArray, FloatArray, FloatArray],
    y: FloatArray,
    times: NDArray[Any],
    *,
    margin: bool = True,
) -> FloatArray:
    """Return for each step the factor on the variances that makes the 90 % interval cover.

    The rows are a sample: what covers 90 % of them may cover less of the rows to come. From 20 rows
    on, as many more are covered as their own chance asks for, to be 95 % confident; at most 95 %.

    Parameters
    ----------
    mixture : weights, means, variances (M, H, J)
    y : (M, H), NaN where unknown
    times : (M,)
        Of the rows; those of several series at one time count as one.
    margin : bool
        Whether to cover more than 90 % of them.
    """
    weights, means, variances = mixture
    factors = np.ones(y.shape[1])
    for h in range(y.shape[1]):
        known = np.isfinite(y[:, h])
        step = (weights[known, h], means[known, h], variances[known, h])
        factors[h] = metrics.calibrate_variance(*step, y[known, h], level=LEVEL)
        at = metrics.mixture_cdf(step[0], step[1], factors[h] * step[2], y[known, h])
        inside = _by_time(np.abs(at - 0.5) <= 0.5 * LEVEL, times[known])
        if margin and inside.size >= FEWEST:
            chance = metrics.variance_of_mean(inside, horizon=h + 1) ** 0.5
            share = min(LEVEL + CONFIDENT * chance, MOST)
            factors[h] = metrics.calibrate_variance(*step, y[known, h], level=LEVEL, share=share)
    return factors


def _by_time(values: NDArray[Any], times: NDArray[Any]) -> FloatArray:
    """Return the mean of the values of each time, in time order."""
    _, place, count = np.unique(times, return_inverse=True, return_counts=True)
    return np.asarray(np.bincount(place, values) / count)
