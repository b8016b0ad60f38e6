"""What the numbers say, in plain sentences: the summary, the cards on top, and the checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mvlstm import plot
from mvlstm.report.data import Card, Check, ReportData, records
from mvlstm.report.encode import MINUS, interval_text, number, percent
from mvlstm.results import VERDICTS, Explanation, Forecast

CAVEAT = (
    "Predictive, not causal: importance says what this model's forecasts rest on, not what would "
    "happen if a variable were changed."
)
PLAINEST = "persistence"  # the rival that every model has to beat
PERSISTENCE = "the next value equals the last"
COVERAGE, TOLERANCE = 0.9, 0.03
SMALL = 0.1  # bias in RMSEs, and correlation of residuals, that may be let pass
WARNED = "A warning from the data"
STEADY = 1.25  # ratio of errors early and late


def summary(data: ReportData) -> list[str]:
    """Return the report in a few sentences."""
    return [_next(data), _quality(data), _drivers(data), _doubts(data)]


def cards(data: ReportData) -> list[Card]:
    """Return the four figures to see first."""
    first, own = data.headline, data.own
    leaders = _leaders(data.explanation)
    mean, low, high = interval_text(first)
    return [
        Card(
            f"{'Next' if data.is_ahead else 'Last'} {_target(data)}",
            mean,
            f"{data.when(first['time'])}; 90 %: {low} to {high}{_happened(first, ', it was ')}",
        ),
        Card(
            f"Error on {data.scored_on} rows{data.of_all}",
            number(float(own["rmse"])),
            f"RMSE, {_beside_persistence(float(own['skill']))}{_of_shown(data, '; ')}",
        ),
        Card(
            "90 % intervals held",
            percent(float(own["coverage"]), 1),
            f"of {int(own['n']):,} values{data.of_all}{', too few' if _too_narrow(data) else ''}",
        ),
        Card(
            "Rests mostly on",
            _short_name(leaders[0], data.target) if leaders else "nothing certain",
            _others(leaders, data.target),
        ),
    ]


def checks(data: ReportData) -> list[Check]:
    """Return what was asked of the numbers, and the answers."""
    return [
        *(Check("warn", WARNED, text) for text in _warnings(data)),
        *_score_checks(data),
        *_residual_checks(data),
        *_ranking_checks(data.explanation),
        *_contribution_checks(data),
    ]


# ------------------------------------------------------------------------------------ the summary


def _next(data: ReportData) -> str:
    rows, first = data.ahead, data.headline
    value = f"value of {_target(data)}, at {data.when(first['time'])},"
    before = f", {len(rows)} steps before," if len(rows) > 1 else ""
    text = (
        f"The next {value} is expected to be "
        if data.is_ahead
        else f"What is known ahead ends with the table, so this is no look ahead: the last {value} "
        f"was expected{before} to be "
    )
    mean, low, high = interval_text(first)
    text += f"{mean}; with 90 % probability "
    text += f"it lies between {low} and {high}" if data.is_ahead else f"between {low} and {high}"
    if _too_narrow(data):
        text += ", says the model, whose intervals have been too narrow"
    text += f"{_happened(first, '; it was ')}."
    if len(rows) > 1 and data.is_ahead:
        mean, low, high = interval_text(rows[-1])
        text += (
            f" {len(rows)} steps ahead, at {data.when(rows[-1]['time'])}, {mean} is expected "
            f"({low} to {high})."
        )
    if data.next_values is not None:
        count = data.next_values["series"].nunique()
        which = "next" if data.is_ahead else "last"
        text += f" The {which} values of all {count:,} series are in a table below."
    return text


def _happened(row: Mapping[str, Any], words: str) -> str:
    """Return the words and what happened, where that is known."""
    actual = float(row.get("actual", np.nan))
    width = float(row["q95"]) - float(row["q05"])
    return f"{words}{number(actual, 3, width)}" if np.isfinite(actual) else ""


def _target(data: ReportData) -> str:
    """Return what is forecast, with the series it is shown for."""
    return f"{data.target} in {data.series}" if data.series else data.target


def _quality(data: ReportData) -> str:
    own = data.own
    rivals = [
        _against(name, float(own["rmse"]), float(row["rmse"]))
        for name, row in data.scores.items()
        if name != data.model
    ]
    text = (
        f"On {int(own['n']):,} {data.scored_on} values{data.of_all} "
        f"({data.span(data.evaluation.period)}) its typical error (RMSE) is "
        f"{number(float(own['rmse']))}{_of_shown(data, ' (', ' alone)')}"
    )
    if rivals:
        text += f": {_join(rivals)}"
    return f"{text}. Its 90 % intervals held {percent(float(own['coverage']), 1)} of the values."


def _of_shown(data: ReportData, before: str, after: str = "") -> str:
    """Return the error of the series shown, whose size may be another than that of the rest."""
    table = data.evaluation.by_series
    if not data.series or table is None:
        return ""
    found = table.loc[table["series"].astype(str) == data.series, "rmse"]
    return f"{before}{number(float(found.iloc[0]))} in {data.series}{after}" if len(found) else ""


def _against(name: str, own: float, other: float) -> str:
    """Say how much less or more an error is than that of another method."""
    known = f" ({PERSISTENCE})" if name == PLAINEST else ""
    if not other:
        return f"{'as large as' if own == other else 'MORE than'} {name}'s{known}, which is 0"
    if _alike(own / other):
        return f"as large as {name}'s{known}"
    size = percent(abs(1.0 - own / other), 1)
    return f"{size} {'less' if own < other else 'MORE'} than {name}{known}"


def _alike(ratio: float) -> bool:
    """Whether two errors of this ratio differ by nothing that would be written."""
    return percent(abs(1.0 - ratio), 1) == percent(0.0, 1)


def _beside_persistence(skill: float) -> str:
    """Say how much less or more than persistence's the error is; it has no skill where that is 0.

    Examples
    --------
    >>> _beside_persistence(0.25), _beside_persistence(float("nan"))
    ('25.0 % below persistence', "persistence's is 0")
    """
    if not np.isfinite(skill):
        return "persistence's is 0"
    if _alike(1.0 - skill):
        return "as large as persistence's"
    size = percent(abs(skill), 1)
    return f"{size} {'below' if skill >= 0 else 'above'} persistence"


def _drivers(data: ReportData) -> str:
    explanation = data.explanation
    table = records(explanation.importance)
    leaders = _leaders(explanation)
    if not leaders:
        return "No variable can be told from noise: the forecast rests on none of them surely."
    top, groups = leaders[0], explanation.together
    rows = [row for row in table if str(row["variable"]) == top]
    subject = f"The forecasts{data.of_all} rest" if data.series else "The forecast rests"
    share = ", which move together" if top in groups else f" ({_share(rows[0])})"
    text = f"{subject} mostly on {_own(top, explanation)}{share}"
    if len(leaders) > 1:
        text += f", then on {_join([_own(v, explanation) for v in leaders[1:5]])}"
    noise = [_own(str(r["variable"]), explanation) for r in table if r["verdict"] == VERDICTS[2]]
    if noise:
        alone = " alone" if groups else ""
        text += f"; {_join(noise[:6], len(noise))} cannot be told from noise{alone}"
    return text + "."


def _share(row: Mapping[str, Any]) -> str:
    """Write a share of the importance and its interval, in decimals that keep them apart.

    Examples
    --------
    >>> _share({"importance": 0.75, "low": 0.68, "high": 0.82})
    '75 % of the importance, between 68 % and 82 %'
    >>> _share({"importance": 0.9991, "low": 0.9972, "high": 1.0})
    '99.9 % of the importance, between 99.7 % and 100.0 %'
    """
    values = [float(row[name]) for name in ("importance", "low", "high")]
    for places in range(3):
        share, low, high = (percent(value, places) for value in values)
        full = percent(1.0, places)
        if low != high and (share != full or values[0] == 1.0):
            return f"{share} of the importance, between {low} and {high}"
    if values[0] == 1.0 or percent(values[0]) != percent(1.0):
        return f"{percent(values[0])} of the importance"
    return "over 99 % of the importance"


def _doubts(data: ReportData) -> str:
    titles = Counter(check.title for check in checks(data) if check.state == "warn")
    doubts = [
        f"{count} warnings from the data" if count > 1 and title == WARNED else _lower(title)
        for title, count in titles.items()
    ]
    if not doubts:
        return "All checks of calibration, residuals and stability passed."
    return f"To be careful about: {_join(doubts)}."


def _lower(title: str) -> str:
    return f"{title[:1].lower()}{title[1:]}"


def _leaders(explanation: Explanation) -> list[str]:
    """Return what is told from noise, the largest rise in error first.

    Variables, and groups that move together of which none is told alone.
    """
    table, groups = explanation.importance, explanation.together
    sure = table.loc[table["verdict"].isin(VERDICTS[:2])]
    names = [str(v) for v in sure["variable"]]
    if not groups:
        return names
    assert explanation.groups is not None
    rises = dict(zip(names, sure["error_increase"], strict=True))
    joint = explanation.groups.set_index("group")["error_increase"]
    rises |= {group: joint[group] for group in groups}
    return sorted(rises, key=lambda name: -float(rises[name]))


def _own(variable: str, explanation: Explanation) -> str:
    return f"the own past of {variable}" if variable == explanation.target else variable


def _short_name(variable: str, target: str) -> str:
    return "its own past" if variable == target else variable


def _others(leaders: Sequence[str], target: str) -> str:
    """Say what comes after the first of the variables that are certain."""
    if not leaders:
        return "no variable can be told from noise"
    if len(leaders) < 2:
        return "no other variable is certain"
    return f"then {_join([_short_name(v, target) for v in leaders[1:4]])}"


def _join(words: Sequence[str], total: int | None = None) -> str:
    """Join with commas and a final "and"; say how many more there are.

    Examples
    --------
    >>> _join(["a", "b", "c"]), _join(["a"], 3)
    ('a, b and c', 'a and 2 more')
    """
    shown = list(words)
    if total is not None and total > len(shown):
        shown.append(f"{total - len(shown)} more")
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


# ------------------------------------------------------------------------------------- the checks


def _warnings(data: ReportData) -> list[str]:
    return list(dict.fromkeys([*data.future.warnings, *data.forecast.warnings]))


def _score_checks(data: ReportData) -> Iterator[Check]:
    own = data.own
    if data.evaluation.part != "new":
        yield Check(
            "warn",
            "No unseen rows",
            "Scores are from the rows the intervals were calibrated on, which flatters them.",
        )
    for name, row in data.scores.items():
        if name == data.model:
            continue
        error, other = float(own["rmse"]), float(row["rmse"])
        text = f"RMSE {number(error, 4)} against {number(other, 4)}."
        alike = other > 0 and _alike(error / other)
        if alike and name != PLAINEST:
            yield Check("info", f"As good as {name}", f"{text} That is no difference to speak of.")
            continue
        better = error < other and not alike
        title = f"Better than {name}" if better else f"Not better than {name}"
        yield Check("pass" if better else "warn", title, text)
    coverage, n = float(own["coverage"]), int(own["n"])
    allowed = _allowed(n)
    kept, by_chance = abs(coverage - COVERAGE) <= allowed, allowed > TOLERANCE
    if kept and data.evaluation.part != "new":
        yield Check(
            "info",
            "Intervals have not been tested",
            f"The 90 % interval held {percent(coverage, 1)} of the values, as it was made to "
            "on these rows. Hold rows back at the fit (--test 0.2), or wait for new ones.",
        )
        return
    wrong = "wider than they need be" if coverage > COVERAGE else "too narrow"
    yield Check(
        "pass" if kept else "warn",
        "Intervals keep their promise" if kept else f"Intervals are {wrong}",
        f"The 90 % interval held {percent(coverage, 1)} of the values; within "
        f"{100 * allowed:.2g} percentage points of 90 % counts as kept"
        + (
            f"; by chance alone {n:,} values may stray that far, hardly further."
            if by_chance
            else "."
        ),
    )


def _allowed(n: int) -> float:
    """Return how far from its promise the coverage of ``n`` values may be."""
    return max(TOLERANCE, 2.0 * float(np.sqrt(COVERAGE * (1.0 - COVERAGE) / max(n, 1))))


def _too_narrow(data: ReportData) -> bool:
    """Whether the intervals held fewer values than they promise."""
    return float(data.own["coverage"]) < COVERAGE - _allowed(int(data.own["n"]))


def _residual_checks(data: ReportData) -> Iterator[Check]:
    forecast, only = data.forecast, data.shown_only.strip(" ,")
    only = f" ({only})" if only else ""
    table = plot.residuals_table(forecast, limit=10**9)
    residual = table["residual"].to_numpy(dtype=np.float64)
    if len(residual) < 20:
        return
    size = float(np.sqrt(np.mean(residual**2))) or 1.0
    bias = float(residual.mean())
    allowed = max(SMALL, 2.0 / float(np.sqrt(len(residual))))  # as far as chance alone goes
    small = abs(bias) <= allowed * size
    yield Check(
        "pass" if small else "warn",
        f"{'No bias' if small else 'Forecasts are biased'}{only}",
        f"On average the value is {number(abs(bias))} "
        f"{'above' if bias >= 0 else 'below'} the forecast, "
        f"{percent(abs(bias) / size)} of the RMSE; up to {percent(allowed)} counts as none.",
    )
    half = len(residual) // 2
    early, late = (float(np.sqrt(np.mean(r**2))) for r in (residual[:half], residual[half:]))
    grows, falls = late > STEADY * early, early > STEADY * late
    course = "grows over time" if grows else "falls over time" if falls else "is steady"
    yield Check(
        "warn" if grows else "info" if falls else "pass",
        f"Error {course}{only}",
        f"RMSE {number(early)} in the first half of these rows, {number(late)} in the second.",
    )
    lags = plot.autocorrelation_table(forecast)
    if len(lags):
        first, bound = (float(lags[name].iloc[0]) for name in ("autocorrelation", "bound"))
        allowed = max(SMALL, bound)
        white = abs(first) <= allowed
        yield Check(
            "pass" if white else "warn",
            f"{'Little is left to learn' if white else 'Something is left to learn'}{only}",
            f"Residuals of neighbouring times have correlation {_signed(first)}; 0 means nothing "
            f"simple was missed, and up to {allowed:.2f} counts as nothing.",
        )


def _ranking_checks(explanation: Explanation) -> Iterator[Check]:
    found = explanation.stability
    tau = _value(found.get("error_increase_kendall_tau"))
    overlap = _value(found.get("error_increase_top_overlap"))
    if np.isfinite(overlap):
        stable = overlap >= 0.7
        yield Check(
            "pass" if stable else "warn",
            "Members agree on what matters" if stable else "Members disagree on what matters",
            f"Two members have {percent(overlap)} of the leading variables in common (Kendall's "
            f"tau {_signed(tau)} over all variables).",
        )
    if found.get("order_settled") is not None:
        settled, pairs = bool(found["order_settled"]), list(found.get("unsettled", ()))
        yield Check(
            "pass" if settled else "info",
            "The order is settled" if settled else "The order is not settled",
            "Among the important variables no neighbours in the ranking would change places."
            if settled
            else f"{_join(pairs[:4], len(pairs))}: other times or members could change their "
            "places.",
        )
    table = explanation.importance[["importance", "posterior"]].dropna()
    if len(table) > 2:
        together = float(table["importance"].rank().corr(table["posterior"].rank()))
        agrees = together >= 0.5
        yield Check(
            "pass" if agrees else "info",
            "Attention agrees with importance" if agrees else "Attention tells another story",
            f"Rank correlation {_signed(together)} between posterior attention and importance; "
            "where they differ, importance is what was tested on the error.",
        )
    if explanation.leakage is not None:
        own = float(np.mean(np.diag(explanation.leakage.to_numpy(dtype=np.float64))))
        yield Check(
            "info",
            "Experts look across" if own < 0.7 else "Experts keep to their variable",
            f"On average {percent(own)} of an expert's sensitivity goes to its own variable; the "
            "less it is, the less attention alone says about variables.",
        )
    if explanation.agreement is not None:
        doubted = explanation.agreement[explanation.agreement["disagreement"] != ""]
        yield Check(
            "pass" if doubted.empty else "info",
            "Other measures agree" if doubted.empty else "Other measures disagree in part",
            "Drop-and-refit, shadow variables and Granger's tests bear the verdicts out."
            if doubted.empty
            else "; ".join(f"{r['variable']}: {r['disagreement']}" for r in records(doubted)) + ".",
        )
    if explanation.groups is not None and len(explanation.groups):
        names = [str(g) for g in explanation.groups["group"]]
        yield Check(
            "info",
            "Some variables move together",
            f"{_join(names[:4], len(names))}: correlated above 0.9, so they share importance.",
        )


def _contribution_checks(data: ReportData) -> Iterator[Check]:
    gap = contribution_gap(data)
    if gap is None:
        return
    exact = gap <= 0.01
    yield Check(
        "pass" if exact else "warn",
        "Contributions add up" if exact else "Contributions do not quite add up",
        f"The largest difference between a forecast and the sum of its parts is "
        f"{percent(gap, 2)} of the RMSE.",
    )


def contribution_gap(data: ReportData) -> float | None:
    """Return the largest miss of the contributions' sums, in RMSEs; None without contributions."""
    table = data.explanation.contribution
    if table is None or not len(table):
        return None
    sums = plot.contribution_sums(data.explanation)
    means = pd.concat([_by_origin(data.forecast), _by_origin(data.future)])
    means = means[~means.index.duplicated(keep="last")]
    known = sums.index.intersection(means.index)
    if not len(known):
        return None
    rmse = float(data.own["rmse"]) or 1.0
    return float((sums.loc[known] - means.loc[known]).abs().max()) / rmse


def _by_origin(forecast: Forecast) -> pd.Series[float]:
    table = forecast.to_frame()
    keys = pd.MultiIndex.from_arrays([table["origin"], table["step"]], names=["origin", "step"])
    return pd.Series(table["mean"].to_numpy(), index=keys)


def _signed(value: float) -> str:
    """Write a correlation: two decimals, a true minus."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", MINUS)


def _value(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")
