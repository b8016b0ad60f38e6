"""How wide intervals must be, from members' errors and coverage on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from mvlstm import metrics
from mvlstm._words import counted
from mvlstm.model.learned import Learned
from mvlstm.problem.inputs import Windows
from mvlstm.problem.moments import MOST_FORWARD, forward_errors
from mvlstm.problem.predictive import Mixture
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.problem import Problem
from mvlstm.problem.target_scale import mean_of_members
from mvlstm.problem.windows import gather_labels, measured_labels, spread_evenly
from mvlstm.recalibration import LEVELS, SCORES, static_scores
from mvlstm.results.reference import Reference
from mvlstm.table.parts import HELD_OUT
from mvlstm.transforms import Transform
from mvlstm.types import BoolArray, FloatArray, IntArray

LEVEL = 0.9  # the interval that is calibrated
CONFIDENT = 1.645  # standard errors that chance exceeds once in twenty times
MOST = 0.95  # of the rows that are to be covered, however few they are
FEWEST = 20  # rows that can tell how much they vary
ENOUGH = 40  # rows whose errors alone say how wide intervals must be
ENOUGH_WINDOWS = 10_000  # of either half: intervals gain nothing by more, only memory goes
PRIOR = 8.0  # rows that the errors of regressions on the training rows count for, with fewer
LEAST = 0.1  # of the variance that is each member's own, however far apart members are
FARTHEST = 4.0  # times as far, or as near, as a normal's, that an interval reaches at most
SURE = 2.0  # and for how many degrees of freedom: the method may be worse than a regression
MEAN_SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)  # of the variance, by which a mean may be corrected
CLEARLY, BY_FAR = 0.98, 0.75  # shares of the squared error that may be left, see `_clearly_best`
CHANCE = 0.05
TINY = float(np.finfo(np.float64).tiny)


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
    rows : int, optional
        Validation windows that all this rests on; None in files of old versions.
    shape, persistence_shape : (H, L), optional
        Where the normal scores of `LEVELS` lie among those of the calibrated mixture, and of
        persistence; None in files of old versions.
    shared : float
        Share of the variance of errors' normal scores that all series have in common at one time;
        1 with one series, and in files of old versions.
    """

    spread: FloatArray
    factors: FloatArray
    persistence: FloatArray
    mean_factor: FloatArray
    reference: Reference | None = None
    dependence: FloatArray | None = None
    rows: int | None = None
    shared: float = 1.0
    shape: FloatArray | None = None
    persistence_shape: FloatArray | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is doubtful about the intervals, where they rest on few rows."""
        if self.rows is None or self.rows >= FEWEST:
            return ()
        return (
            f"The intervals rest on {counted(self.rows, 'validation window')}: they are wider for "
            "it, and may still cover far from 90 %. More rows help, or a larger validation part "
            "(valid=0.3) of the fit.",
        )

    def scores_at(self, levels: Sequence[float]) -> FloatArray:
        """Return the normal scores (H, Q) that the mixture's quantiles of given levels have."""
        scores = ndtri(np.array(levels))
        if self.shape is None:
            return np.tile(scores, (len(self.factors), 1))
        return np.stack([static_scores(self.shape, score) for score in scores], axis=1)


def calibrate(learned: Learned, problem: Problem) -> tuple[Calibration, tuple[str, ...]]:
    """Find each member's spread, and the factor that makes the intervals cover; with notes.

    The factor is found on all validation rows. The earlier half is not new to the model, which
    stopped training by it and may have fitted a link to it; but the later half alone is a short
    stretch of time, and misjudged the rows after it more. How good the model is on the later half
    is kept, to see later whether it slips. Targets that were filled in do not count. Of very many
    rows, some are taken, spread evenly.
    """
    prepared, H = problem.prepared, problem.horizon
    stop, rows = (spread_evenly(problem.origins[part], ENOUGH_WINDOWS) for part in HELD_OUT)
    both = np.union1d(stop, rows)
    stopping = np.isin(both, stop)
    counts = _counting(prepared, both, stopping, H)
    predictive = learned.predict(Windows.at(prepared, both, problem.window))
    labels = np.where(counts, prepared.labels(both, H), np.nan)
    notes: tuple[str, ...] = ()
    errors = (predictive.members - labels)[:, stopping]
    spread = np.maximum(np.nanmean(errors**2, axis=1), _tiny(problem))  # (K, H)
    times = np.asarray(prepared.frame.times)[both]
    mixture = predictive.with_spread(spread)
    few = len(both) < ENOUGH
    prior = _regression_errors(problem) if few else None
    factors = cover_factors(mixture.joined, labels, times, prior)
    moved = np.where(counts, _moves(prepared, both, H), np.nan)
    variance = np.maximum(np.nanmean(moved[stopping] ** 2, axis=0), _tiny(problem))
    one = np.ones((len(both), H, 1))
    own = (one, 0 * one, np.broadcast_to(variance[:, None], one.shape))
    before = _moves(prepared, problem.origins["train"], H) if few else None
    moves = None if before is None else np.nanmean(before**2, axis=0)
    persistence = variance * cover_factors(own, moved, times, moves)
    later, scale = np.isin(both, rows), prepared.scale(rows, H)
    actual = np.where(
        measured_labels(prepared.frame, rows, H), gather_labels(prepared.frame, rows, H), np.nan
    )
    found = scale.mixture(mixture.take(later).widened(factors))
    mean_factor = np.ones(H)
    if scale.transform:
        whole = cover_factors(mixture.joined, labels, times, prior, margin=False) / factors
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
    panel = prepared.frame.panel
    shared = 1.0 if panel is None else shared_by_series(scores, panel.codes[both], times)
    shapes = score_shape(scores), score_shape(moved / np.sqrt(persistence))
    rest = (persistence, mean_factor, reference, together, len(both), shared, *shapes)
    calibration = Calibration(spread, factors, *rest)
    return calibration, (*notes, *calibration.warnings)


def dependence(scores: FloatArray) -> FloatArray | None:
    """Return the correlation (H, H) of the steps' normal scores (M, H), by their ranks.

    It is drawn towards independence as if by `FEWEST` forecasts. None without several steps.
    """
    H = scores.shape[1]
    whole, own = scores[np.isfinite(scores).all(axis=1)], np.eye(H)
    if H == 1 or len(whole) < 2:
        return None if H == 1 else own
    ranks = whole.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    normal = ndtri((ranks + 0.5) / len(whole))
    share = len(whole) / (len(whole) + FEWEST)
    found = np.corrcoef(normal, rowvar=False)
    return np.asarray(share * 0.5 * (found + found.T) + (1.0 - share) * own)


def score_shape(scores: FloatArray) -> FloatArray:
    """Return where the scores of `LEVELS` lie among the calibrated normal scores (M, H), (H, L).

    The 90 % interval stays, with its margin. Narrower ones reach as far as the errors themselves
    do, wider ones as much farther than the 90 % interval as these; all are drawn towards a normal's
    as if by `FEWEST` errors that do not overlap. Both sides are alike.
    """
    upper = SCORES[len(SCORES) // 2 + 1 :]  # the ends of these intervals
    levels = 2.0 * LEVELS[-len(upper) :] - 1.0
    place = int(np.abs(levels - LEVEL).argmin())
    found = []
    for h, column in enumerate(scores.T):
        sizes = np.abs(column[np.isfinite(column)])
        reach = np.quantile(sizes, levels) if sizes.any() else upper.copy()
        edge = max(reach[place], TINY)  # nothing where nine errors in ten are nil
        most = FARTHEST * upper[-1] / upper[place] * edge  # farther than is kept below
        reach[place:] = upper[place] * (np.clip(reach[place:], edge, most) / edge)
        reach[:place] = np.minimum(reach[:place], upper[place])
        reach = upper * np.clip(reach / upper, 1.0 / FARTHEST, FARTHEST)
        free = sizes.size / (h + 1)
        sides = upper * (reach / upper) ** (free / (free + FEWEST))
        found.append([*-sides[::-1], 0.0, *sides])
    return np.array(found)


def shared_by_series(scores: FloatArray, codes: IntArray, times: NDArray[Any]) -> float:
    """Return the mean correlation between series of their normal scores (M, H) at one time.

    It is drawn towards independence as if by `FEWEST` times, and not below it.
    """
    known = np.isfinite(scores)
    counts = [np.maximum(np.bincount(codes, one), 1)[codes] for one in known.T]
    z = np.where(known, scores, 0.0)
    z -= np.transpose([np.bincount(codes, x)[codes] / n for x, n in zip(z.T, counts, strict=True)])
    z *= known
    squares = [np.bincount(codes, x)[codes] / n for x, n in zip(z.T**2, counts, strict=True)]
    z /= np.sqrt(np.maximum(np.transpose(squares), TINY))
    _, place = np.unique(times, return_inverse=True)
    totals, own, several = (
        np.stack([np.bincount(place, x) for x in part.T]) for part in (z, z**2, known)
    )
    pairs = np.sum(several * (several - 1.0))
    if not pairs:
        return 0.0
    count = np.count_nonzero((several > 1).any(axis=0))
    found = float(np.sum(totals**2 - own) / pairs) * count / (count + FEWEST)
    return min(max(found, 0.0), 1.0)


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
    return float(max((1e-9 * scale) ** 2, TINY))


def _regression_errors(problem: Problem) -> FloatArray | None:
    """Return the squared error (H,) of regressions on earlier training rows, on later ones.

    Each stretch has the penalty that is best on the others: the best of all would look too good.
    """
    train, table = problem.in_time_order("train"), problem.prepared.table
    lags = max(1, min(problem.window, MOST_FORWARD // table.shape[1]))
    labels = problem.prepared.known_labels(train, problem.horizon)
    sums, count = forward_errors(table, lags, (train, labels), problem.inputs_read)
    if not count:
        return None
    best = (sums.sum(axis=0) - sums).argmin(axis=1)  # (stretches, H)
    return np.asarray(np.take_along_axis(sums, best[:, None], axis=1).sum(axis=(0, 1)) / count)


def cover_factors(
    mixture: tuple[FloatArray, FloatArray, FloatArray],
    y: FloatArray,
    times: NDArray[Any],
    prior: FloatArray | None = None,
    *,
    margin: bool = True,
) -> FloatArray:
    """Return for each step the factor on the variances that makes the 90 % interval cover.

    The rows are a sample: what covers 90 % of them may cover less of the rows to come. From 20 rows
    on, as many more are covered as their own chance asks for, to be 95 % confident; at most 95 %.
    Below `ENOUGH` rows, more and more of the answer is that of `_student_factor`.

    Parameters
    ----------
    mixture : weights, means, variances (M, H, J)
    y : (M, H), NaN where unknown
    times : (M,)
        Of the rows; those of several series at one time count as one.
    prior : (H,), optional
        Squared errors that training rows let expect.
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
        trust = min(1.0, np.count_nonzero(known) / ENOUGH)
        if 0.0 < trust < 1.0:
            expected = None if prior is None else float(prior[h])
            free = inside.size / (h + 1) if margin else np.inf  # errors of several steps overlap
            student = _student_factor(step, y[known, h], expected, free)
            factors[h] = factors[h] ** trust * student ** (1.0 - trust)
    return factors


def _student_factor(
    step: tuple[FloatArray, FloatArray, FloatArray], y: FloatArray, prior: float | None, free: float
) -> float:
    """Return the factor that makes an interval as wide as Student's t would have it.

    Its variance is the mean squared error, together with the ``prior`` counted as `PRIOR` rows;
    its degrees of freedom are the ``free`` errors and `SURE` more.
    """
    weights, means, variances = step
    errors = y - metrics.mixture_mean(weights, means)
    own = np.mean(np.sum(weights * variances, axis=-1))
    between = np.mean(metrics.mixture_variance(*step)) - own
    total, count = np.sum(errors**2), float(len(y))
    if prior is not None:
        total, count = total + PRIOR * prior, count + PRIOR
    tail = 0.5 + 0.5 * LEVEL
    wider = stdtrit(free + SURE, tail) / ndtri(tail) if np.isfinite(free) else 1.0
    needed = wider**2 * total / count
    return float(max(needed - between, LEAST * needed, TINY) / own)


def _by_time(values: NDArray[Any], times: NDArray[Any]) -> FloatArray:
    """Return the mean of the values of each time, in time order."""
    _, place, count = np.unique(times, return_inverse=True, return_counts=True)
    return np.asarray(np.bincount(place, values) / count)
