"""What the numbers say in a few sentences, and the cards on top."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mvlstm.report.checks import WARNED, checks
from mvlstm.report.data import ReportData, records
from mvlstm.report.encode import interval_text, number, percent
from mvlstm.report.page import Card
from mvlstm.report.words import PERSISTENCE, compared, joined, told
from mvlstm.results import VERDICTS, Explanation

CAVEAT = (
    "Predictive, not causal: importance says what this model's forecasts rest on, not what would "
    "happen if a variable were changed."
)
NEARLY_ALL = 0.995  # a share that would be written as 100 % though it is less


def summary(data: ReportData) -> list[str]:
    """Return the report in a few sentences."""
    return [_next(data), _quality(data), _drivers(data), _doubts(data)]


def cards(data: ReportData) -> list[Card]:
    """Return the four figures to see first."""
    first, own = data.headline, data.own
    leaders = ["its own past" if v == data.target else v for v in leading(data.explanation)]
    mean, low, high = interval_text(first)
    other = data.rivals.get(PERSISTENCE)
    versus = "" if other is None else f", {compared(own['rmse'], other, PERSISTENCE)}"
    return [
        Card(
            f"{'Next' if data.is_ahead else 'Last'} {_what(data)}",
            mean,
            f"{data.when(first['time'])}; 90 % interval {low} to {high}{_happened(first)}",
        ),
        Card(f"Error on {data.scored_on} rows{data.of_all}", number(own["rmse"]), f"RMSE{versus}"),
        Card(
            "90 % intervals held",
            percent(own["coverage"], 1),
            f"of {int(own['n']):,} values{data.of_all}",
        ),
        Card(
            "Rests mostly on",
            leaders[0] if leaders else "nothing certain",
            f"then {joined(leaders[1:4])}"
            if leaders[1:]
            else f"no {'other ' if leaders else ''}variable can be told from noise",
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


def _next(data: ReportData) -> str:
    first, steps = data.headline, data.future.horizon
    mean, low, high = interval_text(first)
    value = f"value of {_what(data)}, at {data.when(first['time'])},"
    last = records(data.future.to_frame())[-1]
    end, lowest, highest = interval_text(last)
    return told(
        data.is_ahead
        and f"The next {value} is expected to be {mean}, with 90 % probability between {low} and "
        f"{high}.",
        not data.is_ahead
        and f"There is no look ahead (the notes say why). The last {value} was forecast as {mean}, "
        f"with 90 % probability between {low} and {high}{_happened(first)}.",
        data.is_ahead
        and steps > 1
        and f"{steps} steps ahead, at {data.when(last['time'])}, {end} is expected ({lowest} to "
        f"{highest}).",
        data.next_values is not None and f"A table below has the values{data.of_all}.",
    )


def _happened(row: Mapping[str, Any]) -> str:
    """Say what happened, where that is known."""
    actual = float(row.get("actual", np.nan))
    width = float(row["q95"]) - float(row["q05"])
    return f"; it was {number(actual, 3, width)}" if np.isfinite(actual) else ""


def _what(data: ReportData) -> str:
    """Return what is forecast, with the series it is shown for."""
    return f"{data.target} in {data.series}" if data.series else data.target


def _quality(data: ReportData) -> str:
    own = data.own
    versus = [compared(own["rmse"], other, name) for name, other in data.rivals.items()]
    return (
        f"On {int(own['n']):,} {data.scored_on} values{data.of_all} "
        f"({data.span(data.evaluation.period)}), the typical error (RMSE) is "
        f"{number(own['rmse'])}{': ' if versus else ''}{joined(versus)}. The 90 % intervals held "
        f"{percent(own['coverage'], 1)} of the values."
    )


def _drivers(data: ReportData) -> str:
    explanation, leaders = data.explanation, leading(data.explanation)
    if not leaders:
        return (
            "No variable can be told from noise, so it is not certain what the forecasts rest on."
        )

    def named(variable: str) -> str:
        return f"{variable}'s own past" if variable == data.target else variable

    rows = {str(row["variable"]): row for row in records(explanation.importance)}
    noise = [named(v) for v, row in rows.items() if row["verdict"] == VERDICTS[2]]
    top = leaders[0]
    size = f" ({_share(rows[top])})" if top in rows else ", which move together"
    text = f"The forecasts{data.of_all} rest mostly on {named(top)}{size}"
    if leaders[1:]:
        text += f", then on {joined([named(v) for v in leaders[1:5]])}"
    if noise:
        alone = " alone" if explanation.together else ""
        text += f"; {joined(noise, 6)} cannot be told from noise{alone}"
    return f"{text}."


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
