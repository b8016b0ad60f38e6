"""The sections of a report, in the order in which a reader asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from mvlstm import plot
from mvlstm.report.data import ReportData
from mvlstm.report.encode import interval_text
from mvlstm.report.explorer import explained_rows, explorer
from mvlstm.report.page import AnyBlock, Block, Choice, FigureBlock, Page, Section, TableBlock, View
from mvlstm.report.summary import CAVEAT, cards, summary
from mvlstm.report.trust import trust_blocks
from mvlstm.report.words import even, heat_alt, listed, panel, told
from mvlstm.results import IMPORTANCE_COLUMNS, Forecast

LATEST = 200  # rows of the first view
TOP_LAGS = 15  # of all variables, in the table of lags
DWARFED = 0.15  # importance of the largest other variable, up to which the others get a figure
LAG_COLUMNS = ["variable", "lag", "contribution", "low", "high", "share"]
PARTS = {  # of an explanation, in words
    "new": "unseen",
    "calibration": "validation",
    "calibration and new": "validation and unseen",
}
QUANTILES = (
    "Quantiles of the predictive distribution: the value lies below q05 with 5 % probability, "
    "below q95 with 95 %, and so on."
)
SCORES = (
    "RMSE and mae mean: root mean squared and mean absolute error of the mean forecast. MAE: mean "
    "absolute error of the median. CRPS: error of the whole predictive distribution. RMSSE: RMSE "
    "in the usual change from row to row, of each series its own. Less is better for these. Skill: "
    "the share of error that is removed, compared with the better of persistence (the last value "
    "again) and seasonal (the last cycle again). Coverage: of the 90 % interval."
)
SHOWN = ("rmse", "mae", "mae_mean", "crps", "rmsse", "coverage", "skill", "n")
LEADS = 4  # lead times to choose from
OTHER_ROWS = 500  # of a figure chosen in place of the first


def report_page(data: ReportData, *, title: str | None = None) -> Page:
    """Lay out a report; the title is by default made from the target's name."""
    explained = explained_rows(data)
    first = "what comes next" if data.is_ahead else "how it is forecast"
    rows = data.facts.get("Rows", f"{len(data.forecast):,} rows")
    scored = "rows it has not seen" if data.scored_on == "unseen" else f"{data.scored_on} rows"
    return Page(
        title=title or f"{data.target}: {first}, and what drives it",
        subtitle=f"{data.model}, {data.facts.get('Period', '')} ({rows})",
        summary=summary(data),
        cards=cards(data),
        caveat=CAVEAT,
        sections=[
            Section(
                "next",
                "What will happen next?" if data.is_ahead else "What happened last?",
                _next_lead(data),
                [*_next(data, explained)],
                "Next" if data.is_ahead else "Last",
            ),
            Section(
                "quality",
                f"How good is it on {scored}?",
                f"Scores on {data.scored_on} rows{data.of_all} "
                f"({data.span(data.evaluation.period)}){data.all_steps}.",
                [*_quality(data)],
            ),
            Section(
                "drivers",
                "What drives it, and how sure is that?",
                f"How much the error rises without a variable while all others are known. {CAVEAT}",
                [*_drivers(data), *_other_tables(data)],
            ),
            Section(
                "when",
                "When does it matter?",
                "Which lags the forecast uses, and in which periods.",
                [*_lags(data), *_attention_in_time(data)]
                or [Block("text", content="This model has no lags or attention to show.")],
            ),
            Section(
                "trust",
                "Can I trust it?",
                "Checks computed from the numbers, calibration, stability, and notes on the data.",
                trust_blocks(data),
            ),
            Section(
                "making", "How was it made?", "Everything needed to repeat it.", [*_making(data)]
            ),
        ],
        explorer=explorer(data, explained),
        footer=f"Made with mvlstm {data.facts.get('mvlstm', '')}".strip(),
    )


# --------------------------------------------------------------------------- what comes, how good


def _next_lead(data: ReportData) -> str:
    return told(
        "The forecast after the last row, and the forecasts before it."
        if data.is_ahead
        else "Forecasts up to the last row; there is no look ahead.",
        bool(data.series)
        and f"The figure begins with series {data.series}; scores and importance are of all.",
    )


def _next(data: ReportData, explained: pd.DataFrame) -> Iterator[AnyBlock]:
    past = list(explained.loc[~explained["latest"], "time"]) if len(explained) else []
    drawn = plot.forecast_table(data.forecast, keep=past)
    forecasts, total = int((drawn["step"] == 1).sum()), len(data.forecast)
    mean, low, high = interval_text(data.headline)
    word, choices = "Next" if data.is_ahead else "Last", _choices(data)
    yield panel(
        "forecast",
        "Forecast and actual values"
        if data.others
        else f"Forecast and actual values{data.of_series}",
        told(
            "Forecasts one step ahead with their 90 % interval, and the actual values.",
            data.future.horizon > 1
            and data.is_ahead
            and f"The {data.future.horizon} steps to come are a band, with {plot.PATHS} paths that "
            "are as likely as one another.",
            bool(choices) and "Choose another " + ("series" if data.others else "lead time") + ".",
            forecasts < total
            and f"The figure and its data have {forecasts:,} of {total:,} rows: all of the "
            "latest, and the lowest and highest of each earlier stretch.",
            len(explained) > 0 and "Choose a ringed point to take that forecast apart.",
        ),
        plot.forecast(data.forecast, future=data.future, explained=past),
        drawn,
        alt=f"{word} forecast {mean}, 90 % interval {low} to {high}.",
        wide=True,
        views=_views(data.future, drawn),
        choices=choices,
    )
    if len(explained):
        yield Block("explorer", "One forecast taken apart")
    every = data.next_values
    values = plot.future_table(data.future) if every is None else every
    yield TableBlock("next-values", f"{word} values", QUANTILES, values)


def _choices(data: ReportData) -> tuple[Choice, ...]:
    """Return the same figure of other series, or, of one series, of other lead times."""
    few: dict[str, Any] = {"limit": OTHER_ROWS, "recent": OTHER_ROWS // 2}
    made = []
    for name, (past, ahead) in data.others.items():
        drawn = plot.forecast_table(past, **few)
        figure = plot.forecast(past, future=ahead, **few)
        made.append(Choice(name, figure, _views(ahead, drawn)))
    if made:
        return Choice(data.series), *made
    horizon = data.forecast.horizon
    for step in np.unique(np.linspace(1, horizon, LEADS).astype(int))[1:].tolist():
        figure = plot.forecast(data.forecast, step=step, future=data.future, **few)
        drawn = plot.forecast_table(data.forecast, step=step, **few)
        made.append(Choice(f"{step} steps ahead", figure, _views(data.future, drawn)))
    return (Choice("1 step ahead"), *made) if made else ()


def _views(ahead: Forecast, drawn: pd.DataFrame) -> tuple[View, ...]:
    """Return the latest rows, the unseen ones and everything as ranges of the figure."""
    future = plot.future_table(ahead)
    last = future["time"].iloc[-1]
    ends = future[["q05", "q95"]].to_numpy(dtype=np.float64)

    def view(name: str, rows: pd.DataFrame) -> View:
        past = rows[["q05", "q95", "actual", "mean"]].to_numpy(dtype=np.float64)
        values = np.append(past, ends)
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        margin, start = 0.05 * (high - low), rows["time"].iloc[0]
        return View(name, (start, last + (last - start) * 0.015), (low - margin, high + margin))

    unseen = drawn[drawn["part"] == "new"]
    views = [view("Latest", drawn.tail(LATEST))]
    if len(unseen) > LATEST:
        views.append(view("All unseen", unseen))
    if len(drawn) > max(LATEST, len(unseen)):
        views.append(view("Everything", drawn))
    return tuple(views)


def _quality(data: ReportData) -> Iterator[AnyBlock]:
    found = data.evaluation
    scores = found.scores.rename_axis("method").reset_index()
    yield TableBlock("scores", "Scores", SCORES, scores[_present(scores, "method")])
    if found.by_series is not None:
        words = (
            "Skill is compared with the better naive method within the series, and empty where "
            "that makes no error."
        )
        table = found.by_series[_present(found.by_series, "series")]
        yield TableBlock("series-scores", "Scores of each series", words, table)
    figures = [
        panel(
            "methods",
            "This model and its rivals",
            f"{data.measure.upper()} on the same rows; the dotted line is persistence, for which "
            "the next value equals the last.",
            plot.comparison(scores, score=data.measure),
            plot.comparison_table(scores, score=data.measure),
            alt=listed(scores, "method", data.measure, 4),
        )
    ]
    if found.by_step is not None:
        figures.append(
            panel(
                "step-scores",
                "Error at each step ahead",
                "Compared with repeating the last value (persistence) or the last cycle.",
                plot.error_by_step(found.by_step, score=data.measure),
                found.by_step,
                alt=listed(found.by_step, "step", data.measure, 4),
            )
        )
    yield from even([*figures, *_residuals(data)])


def _present(table: pd.DataFrame, first: str) -> list[str]:
    """Return the columns to show that a table has."""
    return [name for name in (first, *SHOWN) if name in table]


def _residuals(data: ReportData) -> Iterator[FigureBlock]:
    residuals = plot.residuals_table(data.forecast)
    total = len(plot.residuals_table(data.forecast, limit=10**9))
    yield panel(
        "residuals",
        f"Residuals over time{data.shown_only}",
        told(
            "Actual value minus forecast; those of a good forecast scatter around zero without a "
            "pattern.",
            len(residuals) < total
            and f"The figure and its data have {len(residuals):,} of {total:,} residuals, the "
            "lowest and highest of each stretch.",
        ),
        plot.residuals(data.forecast),
        residuals,
    )


# ------------------------------------------------------------------------------ what drives it


def _drivers(data: ReportData) -> Iterator[AnyBlock]:
    explanation = data.explanation
    table = explanation.importance
    figure = plot.variable_importance(explanation)
    drawn = len(figure.data[0].y)
    yield panel(
        "importance",
        "Importance of each variable",
        told(
            "Bars: share of the rise in error, with its 90 % interval. The test behind a verdict "
            "is stricter than the interval.",
            drawn < len(table) and f"The figure has the first {drawn} of {len(table):,}.",
        ),
        figure,
        table,
        alt=listed(table, "variable", "importance"),
        wide=True,
    )
    if explanation.by_step is not None and explanation.by_step["importance"].notna().any():
        steps = plot.importance_by_step_table(explanation)
        yield panel(
            "importance-by-step",
            "Importance at each step ahead",
            "Share of the rise in error at that step; every column adds up to one.",
            plot.importance_by_step(explanation),
            steps,
            alt=heat_alt(steps.set_index("variable")),
            wide=True,
        )
    others = table[table["variable"] != data.target]
    if len(others) and float(others["importance"].max()) <= DWARFED:
        yield panel(
            "others",
            f"The other variables, without {data.target}'s own past",
            "Rise in squared error without the variable, with its 90 % interval.",
            plot.error_increase(explanation),
            others,
            alt=listed(others, "variable", "error_increase"),
            wide=True,
        )
    yield TableBlock(
        "importance-table",
        "Importance in numbers",
        told(
            f"Measured on {explanation.n_windows:,} {PARTS[explanation.part]} windows, effort "
            f"{explanation.effort}.",
            explanation.sensitivity,
        ),
        table[[name for name in IMPORTANCE_COLUMNS if table[name].notna().any()]],
    )


def _other_tables(data: ReportData) -> Iterator[TableBlock]:
    """Show importance in each series, and what correlated variables add together."""
    explanation = data.explanation
    if explanation.by_series is not None:
        wide = explanation.by_series.pivot(index="series", columns="variable", values="importance")
        wide = wide[list(explanation.importance["variable"])].reset_index()
        caption = "Share of the rise in error within the series."
        yield TableBlock("series-importance", "Importance in each series", caption, wide)
    if explanation.groups is not None and len(explanation.groups):
        caption = "They are correlated above 0.9; this is what they add together."
        yield TableBlock("groups", "Variables that move together", caption, explanation.groups)


# ------------------------------------------------------------------------------- when it matters


def _lags(data: ReportData) -> Iterator[AnyBlock]:
    """Show the lags by the size of their contributions, where forecasts were taken apart."""
    explanation = data.explanation
    size = f"Mean size of the contributions{data.all_steps}, in units of {data.target}"
    if explanation.contribution is not None and len(explanation.contribution):
        lags = plot.lag_table(explanation, mean=True)
        yield panel(
            "lags",
            "Which lags move the forecast",
            told(
                f"{size}.",
                bool((lags.columns.to_numpy() < 1).any())
                and "Lags 0 and below are the times forecast, for variables known ahead.",
            ),
            plot.contribution_lags(explanation, mean=True),
            lags.rename_axis("variable").reset_index(),
            alt=heat_alt(lags),
            wide=True,
        )
    if explanation.lags is not None and "contribution" in explanation.lags:
        yield TableBlock(
            "lag-intervals",
            "The lags that matter most",
            f"{size}, with a 90 % interval over members and forecasts; the largest {TOP_LAGS}. "
            "Share: among the lags of the same variable. A lag can move the forecast without "
            "improving it.",
            explanation.lags.nlargest(TOP_LAGS, "contribution")[LAG_COLUMNS],
        )


def _attention_in_time(data: ReportData) -> Iterator[FigureBlock]:
    """Show where in the past, and in which periods, attention lies; for models that have it."""
    explanation = data.explanation
    if explanation.temporal is not None and explanation.contribution is None:
        yield panel(
            "temporal",
            "Attention over the past",
            "Mean temporal attention of each variable; every row adds up to one. The last known "
            "time enters directly and has no weight here.",
            plot.temporal_importance(explanation),
            explanation.temporal.rename_axis("variable").reset_index(),
            alt=heat_alt(explanation.temporal),
            wide=True,
        )
    if explanation.prior is not None:
        figure = plot.attention_over_time(explanation)
        kind = "prior" if explanation.posterior is None else "posterior"
        yield panel(
            "attention-over-time",
            f"Attention over time{data.shown_only}",
            told(
                f"Mean {kind} attention in stretches of the {PARTS[explanation.part]} rows. "
                "Attention is no measure of importance.",
                len(figure.data) < len(explanation.variables)
                and "The variables with the least are added up; the data below have all.",
            ),
            figure,
            plot.attention_over_time_table(explanation),
            wide=True,
        )


# -------------------------------------------------------------------------------- how it was made


def _making(data: ReportData) -> Iterator[AnyBlock]:
    settings = {k: "none" if v is None else str(v) for k, v in data.settings.items()}
    yield Block("facts", "Data and versions", dict(data.facts))
    yield Block("facts", "Settings", settings)
    if data.profile is not None:
        caption = "Values in the rows used, each variable in its own unit."
        yield TableBlock("variables", "The variables", caption, data.profile, by_row=True)
    if data.command:
        yield Block("code", "To repeat it", data.command)
