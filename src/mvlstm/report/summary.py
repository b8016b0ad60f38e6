"""What the numbers say in a few sentences, and the cards on top."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mvlstm._words import number
from mvlstm.report.checks import WARNED, checks
from mvlstm.report.data import ReportData, records
from mvlstm.report.encode import interval_text, percent
from mvlstm.report.page import Card
from mvlstm.report.words import NAIVE, RIVALS, compared, joined, told
from mvlstm.results import VERDICTS, Explanation

CAVEAT = (
    "Predictive, not causal: importance says what a variable adds to forecasts, not what would "
    "happen if a variable were changed."
)
ENOUGH_MEMBERS = 10
NEARLY_ALL = 0.995  # a share that would be written as 100 % though it is less


def summary(data: ReportData) -> list[str]:
    """Return the report in a few paragraphs; the first warns of a method that is better."""
    warning = [_better(data)] if data.better else []
    return [*warning, _next(data), _quality(data), _drivers(data), _doubts(data)]


def cards(data: ReportData) -> list[Card]:
    """Return the four figures to see first."""
    own = data.own
    leaders = ["its own past" if v == data.target else v for v in leading(data.explanation)]
    time, mean, low, high, happened = _headline(data)
    naive = {name: error for name, error in data.rivals.items() if name in NAIVE}
    best = min(naive, key=lambda name: naive[name], default="")
    versus = f", {compared(data.error, naive[best], best)}" if best else ""
    certain = f"no {'other ' if leaders else ''}variable can be told from noise"
    if data.explanation.whole.get("verdict") in VERDICTS[:2] and {*leaders} <= {"its own past"}:
        certain = "the other variables matter together, none of them for certain"
    return [
        Card(
            f"{'Next' if data.is_ahead else 'Last'} {_what(data)}",
            mean,
            f"{time}; 90 % interval {low} to {high}{happened}",
        ),
        Card(
            f"Error on {data.scored_on} rows{data.of_all}",
            number(data.error),
            f"{data.measure.upper()}{versus}",
        ),
        Card(
            "Held by 90 % intervals",
            percent(own["coverage"], 1),
            f"of {int(own['n']):,} values{data.of_all}",
        ),
        Card(
            "Rests mostly on",
            leaders[0] if leaders else "nothing certain",
            f"then {joined(leaders[1:4])}" if leaders[1:] else certain,
        ),
    ]


def leading(explanation: Explanation) -> list[str]:
    """Return what can be told from noise, the largest rise in error first.

    These are variables, and groups that move together none of whose variables can be told alone.
    """
    table, groups = explanation.importance, explanation.together
    sure = table.loc[table["verdict"].isin(VERDICTS[:2])]
    rises = {str(r["variable"]): float(r["error_increase"]) for r in records(sure)}
    if groups and explanation.groups is not None:
        joint = explanation.groups.set_index("group")["error_increase"]
        rises |= {group: float(joint[group]) for group in groups}
        return sorted(rises, key=lambda name: -rises[name])
    return list(rises)


# ------------------------------------------------------------------------------------- inner parts


def _headline(data: ReportData) -> tuple[str, str, str, str, str]:
    """Return time, mean, interval of the forecast to see first, and what happened, if known."""
    row = data.headline
    actual, width = float(row.get("actual", np.nan)), float(row["q95"]) - float(row["q05"])
    happened = f"; it was {number(actual, 3, width)}" if np.isfinite(actual) else ""
    return data.when(row["time"]), *interval_text(row), happened


def _what(data: ReportData) -> str:
    """Return what is forecast, with the series it is shown for."""
    return f"{data.target} in {data.series}" if data.series else data.target


def _next(data: ReportData) -> str:
    time, mean, low, high, happened = _headline(data)
    value, held = f"value of {_what(data)}, at {time},", f"with 90 % probability between {low} and"
    last = records(data.future.to_frame())[-1]
    end, lowest, highest = interval_text(last)
    return told(
        f"The next {value} is expected to be {mean}, {held} {high}."
        if data.is_ahead
        else "There is no look ahead (the notes say why). The last "
        f"{value} was forecast as {mean}, {held} {high}{happened}.",
        data.is_ahead
        and data.future.horizon > 1
        and f"{data.future.horizon} steps ahead, at {data.when(last['time'])}, {end} is expected "
        f"({lowest} to {highest}).",
        data.next_values is not None
        and f"A table below has the values of all {data.next_values['series'].nunique():,} series.",
    )


def _quality(data: ReportData) -> str:
    own = data.own
    versus = [compared(data.error, other, name) for name, other in data.rivals.items()]
    measure = "RMSE" if data.measure == "rmse" else "RMSSE, in each series' usual change"
    return (
        f"On {int(own['n']):,} {data.scored_on} values{data.of_all} "
        f"({data.span(data.evaluation.period)}), the typical error ({measure}) is "
        f"{number(data.error)}{': ' if versus else ''}{joined(versus)}. The 90 % intervals held "
        f"{percent(own['coverage'], 1)} of the values."
    )


def _better(data: ReportData) -> str:
    """Say which method is better, by how much, and what to do."""
    best = data.rivals[data.better]
    name = RIVALS.get(data.better, data.better)
    less = percent(1.0 - best / data.error, 1)
    return (
        f"A simpler method forecasts better: the {data.measure.upper()} of {name} is {less} less "
        f"than that of this model ({number(best)} against {number(data.error)}). Before relying on "
        f"the model, {joined(_remedies(data), word='or')}; otherwise use the better method."
    )


def _remedies(data: ReportData) -> list[str]:
    """Return what might make the model better, by how it was fitted."""
    settings = data.settings
    members, window = settings.get("members"), settings.get("window")
    found = [
        (any("time limit" in note for note in data.history.notes), "fit it without a time limit"),
        (settings.get("effort") == "quick", 'let it train for longer (effort="default")'),
        (
            isinstance(members, int) and members < ENOUGH_MEMBERS,
            f"fit more members (members={ENOUGH_MEMBERS})",
        ),
        (window is not None, f"try another window (it is {window})"),
    ]
    return [text for holds, text in found if holds] or ["try other settings"]


def _drivers(data: ReportData) -> str:
    explanation, leaders = data.explanation, leading(data.explanation)
    if not leaders:
        return told(
            "No variable can be told from noise, so it is not certain what the forecasts rest on.",
            explanation.overall,
        )

    def named(variable: str) -> str:
        return f"{variable}'s own past" if variable == data.target else variable

    rows = {str(row["variable"]): row for row in records(explanation.importance)}
    noise = [named(v) for v, row in rows.items() if row["verdict"] == VERDICTS[2]]
    top, alone = leaders[0], " alone" if explanation.together else ""
    size = f" ({_share(rows[top])})" if top in rows else ", which move together"
    then = f", then on {joined([named(v) for v in leaders[1:5]])}" if leaders[1:] else ""
    unsure = f"; {joined(noise, 6)} cannot be told from noise{alone}" if noise else ""
    rest = f"The forecasts{data.of_all} rest mostly on {named(top)}{size}{then}{unsure}."
    return told(rest, explanation.overall)


def _share(row: Mapping[str, Any]) -> str:
    """Write a share of the importance with its interval.

    Examples
    --------
    >>> _share({"importance": 0.75, "low": 0.68, "high": 0.82})
    '75 % of the importance, between 68 % and 82 %'
    >>> _share({"importance": 0.9991, "low": 0.9972, "high": 1.0})
    'over 99 % of the importance'
    """
    share, low, high = (float(row[name]) for name in ("importance", "low", "high"))
    if NEARLY_ALL <= share < 1.0:
        return "over 99 % of the importance"
    between = "" if low == high else f", between {percent(low)} and {percent(high)}"
    return f"{percent(share)} of the importance{between}"


def _doubts(data: ReportData) -> str:
    titles = [check.title for check in checks(data) if check.state == "warn"]
    doubts = [f"{t[0].lower()}{t[1:]}" for t in titles if t != WARNED]
    if count := titles.count(WARNED):
        doubts.insert(0, "a warning from the data" if count == 1 else f"{count} data warnings")
    if not doubts:
        return "All checks of calibration, residuals and stability passed."
    return f"Points to watch: {joined(doubts)}."
