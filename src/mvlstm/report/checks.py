"""What is asked of the numbers, and the answers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mvlstm import plot
from mvlstm._words import number
from mvlstm.report.data import CLEARLY, ReportData
from mvlstm.report.encode import percent
from mvlstm.report.page import Check
from mvlstm.report.words import NAIVE, RIVALS, alike, joined, signed
from mvlstm.results import Explanation

WARNED = "A warning from the data"
COVERAGE, TOLERANCE = 0.9, 0.03  # promised, and how far from it any number of values may be
SMALL = 0.1  # bias in RMSEs, and correlation of residuals, that may be let pass
STEADY = 1.25  # ratio of errors early and late
MOST_LAGS = 400  # of the residuals; a week of hours is among them
LINKS = ("auto", "linear")
LINKED = " The network adds nothing to the linear map it starts from (its link)."
FEWEST = 20  # residuals to judge
SHARED = 0.7  # of the leading variables, that members must have in common
TOLD_ALIKE = 0.5  # rank correlation of attention and importance


def checks(data: ReportData) -> list[Check]:
    """Return what was asked of the numbers, and the answers."""
    warnings = dict.fromkeys([*data.future.warnings, *data.forecast.warnings])
    return [
        *(Check("warn", WARNED, text) for text in warnings),
        *_score_checks(data),
        _coverage_check(data),
        *_residual_checks(data),
        *_ranking_checks(data.explanation),
    ]


def _check(good: bool, title: str, bad: str, text: str, *, warn: bool = True) -> Check:
    """Answer a question: under a title if it is good, else under another."""
    return Check("pass" if good else "warn" if warn else "info", title if good else bad, text)


def _score_checks(data: ReportData) -> Iterator[Check]:
    if data.evaluation.part != "new":
        yield Check(
            "warn",
            "No unseen rows",
            "The scores are from the rows that calibrated the intervals, which flatters them.",
        )
    own = data.error
    for rival, other in data.rivals.items():
        name = RIVALS.get(rival, rival)
        text = f"{data.measure.upper()} {number(own, 4)} against {number(other, 4)}."
        if rival not in NAIVE and abs(own - other) <= CLEARLY * other:
            linear = rival == "AR" and data.settings.get("link") in LINKS
            yield Check("info", f"As good as {name}", f"{text}{LINKED if linear else ''}")
        else:
            good = own < other and not alike(own, other)
            yield _check(good, f"Better than {name}", f"Not better than {name}", text)


def _coverage_check(data: ReportData) -> Check:
    coverage, n = data.own["coverage"], int(data.own["n"])
    allowed = max(TOLERANCE, 2.0 * float(np.sqrt(COVERAGE * (1.0 - COVERAGE) / max(n, 1))))
    kept = abs(coverage - COVERAGE) <= allowed
    held = f"The 90 % intervals held {percent(coverage, 1)} of the values"
    if kept and data.evaluation.part != "new":
        return Check(
            "info",
            "Intervals have not been tested",
            f"{held}, which they were made to do on these rows. Hold rows back when fitting "
            "(test=0.2), or wait for new ones.",
        )
    return _check(
        kept,
        "Intervals keep their promise",
        "Intervals are wider than needed" if coverage > COVERAGE else "Intervals are too narrow",
        f"{held}; with {n:,} values, anything from {percent(COVERAGE - allowed)} to "
        f"{percent(min(1.0, COVERAGE + allowed))} passes.",
    )


def _residual_checks(data: ReportData) -> Iterator[Check]:
    only = f" ({data.shown_only.strip(' ,')})" if data.shown_only else ""
    table = plot.residuals_table(data.forecast, limit=10**9)
    residual = table["residual"].to_numpy(dtype=np.float64)
    if len(residual) < FEWEST:
        return
    bias, size = float(residual.mean()), _rms(residual) or 1.0
    allowed = max(SMALL, 2.0 / float(np.sqrt(len(residual))))  # as far as chance alone goes
    yield _check(
        abs(bias) <= allowed * size,
        f"No bias{only}",
        f"Forecasts are biased{only}",
        f"On average the value is {number(abs(bias))} {'above' if bias >= 0 else 'below'} the "
        f"forecast, {percent(abs(bias) / size)} of the RMSE; up to {percent(allowed)} passes.",
    )
    early, late = map(_rms, np.split(residual, [len(residual) // 2]))
    falls = early > STEADY * late
    yield _check(
        max(early, late) <= STEADY * min(early, late),
        f"Error is steady{only}",
        f"Error {'falls' if falls else 'grows'} over time{only}",
        f"RMSE {number(early)} in the first half of these rows, {number(late)} in the second.",
        warn=not falls,
    )
    yield _left_to_learn(data, only)


def _left_to_learn(data: ReportData, only: str) -> Check:
    """Look at the correlation of errors with those just before, and with those of a cycle before.

    Of many lags the largest is large by chance, so that more passes at these.
    """
    table = plot.autocorrelation_table(data.forecast, lags=MOST_LAGS).set_index("lag")
    found, bound = table["autocorrelation"], float(table["bound"].iloc[0])
    widest = bound / 1.96 * float(np.sqrt(2.0 * np.log(20.0 * len(found))))
    allowed = pd.Series(max(SMALL, widest), index=found.index)
    allowed.iloc[0] = max(SMALL, bound)
    ratio = found.abs() / allowed
    first = ratio > 1.0 if (ratio > 1.0).any() else ratio == ratio.max()  # not its multiples
    lag = int(table.index[int(first.argmax())])
    where = "at neighbouring times" if lag == 1 else f"{lag} rows apart"
    return _check(
        abs(found[lag]) <= allowed[lag],
        f"Little is left to learn{only}",
        f"Something is left to learn{only}",
        f"Of the lags 1 to {len(found)}, errors {where} stand out: their correlation is "
        f"{signed(found[lag])}, and up to {allowed[lag]:.2f} passes.",
    )


def _ranking_checks(explanation: Explanation) -> Iterator[Check]:
    found = explanation.stability
    names = ("error_increase_top_overlap", "error_increase_kendall_tau")
    overlap, tau = (np.nan if found.get(name) is None else float(found[name]) for name in names)
    if np.isfinite(overlap):
        yield _check(
            overlap >= SHARED,
            "Members agree on what matters",
            "Members disagree on what matters",
            f"Two members have {percent(overlap)} of the leading variables in common (Kendall's "
            f"tau {signed(tau)} over all variables).",
        )
    settled, pairs = found.get("order_settled"), list(found.get("unsettled", ()))
    if settled is not None:
        yield _check(
            bool(settled),
            "The order is settled",
            "The order is not settled",
            f"{joined(pairs, 4)}: other times or members could swap them."
            if pairs
            else "No neighbours in the ranking of important variables would swap places.",
            warn=False,
        )
    both = explanation.importance[["importance", "posterior"]].dropna()
    if len(both) > 2:
        correlation = float(both["importance"].rank().corr(both["posterior"].rank()))
        yield _check(
            correlation >= TOLD_ALIKE,
            "Attention agrees with importance",
            "Attention disagrees with importance",
            f"Their rank correlation is {signed(correlation)}. Where they differ, trust "
            "importance, which is tested on the error.",
            warn=False,
        )


def _rms(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    return float(np.sqrt(np.mean(values**2)))
