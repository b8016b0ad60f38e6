"""The sections of a report, in the order in which a reader asks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mvlstm import plot
from mvlstm.report.data import ReportData
from mvlstm.report.encode import interval_text
from mvlstm.report.explorer import explained_rows, explorer
from mvlstm.report.page import AnyBlock, Block, FigureBlock, Page, Section, TableBlock, View
from mvlstm.report.summary import CAVEAT, cards, summary
from mvlstm.report.trust import trust_blocks
from mvlstm.report.words import heat_alt, listed, panel, told
from mvlstm.results import IMPORTANCE_COLUMNS

LATEST = 200  # rows of the first view
TOP_LAGS = 15  # of all variables, in the table of lags
DWARFED = 0.15  # importance of the largest other variable, up to which the others get a figure
LAG_COLUMNS = ["variable", "lag", "contribution", "low", "high", "share"]
NARROW_COLUMNS, WIDE_COLUMNS = 2, 4
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
    "RMSE: root mean squared error of the mean forecast. MAE: mean absolute error of the median. "
    "CRPS: continuous ranked probability score, the error of the whole predictive distribution. "
    "Less is better for these three. Skill: the share of persistence's RMSE that is removed. "
    "Coverage: of the 90 % interval."
)


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
                f"How much the error rises without a variable, all others known. {CAVEAT}",
                [*_drivers(data), *_attention(data), *_other_tables(data)],
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
        and f"The figure shows series {data.series}; scores and importance are of all series.",
    )


def _next(data: ReportData, explained: pd.DataFrame) -> Iterator[AnyBlock]:
    past = list(explained.loc[~explained["latest"], "time"]) if len(explained) else []
    drawn = plot.forecast_table(data.forecast, keep=past)
    forecasts, total = int((drawn["step"] == 1).sum()), len(data.forecast)
    mean, low, high = interval_text(data.headline)
    word = "Next" if data.is_ahead else "Last"
    yield panel(
        "forecast",
        f"Forecast and actual values{data.of_series}",
        told(
            "Forecasts one step ahead with their 90 % interval, and the actual values.",
            forecasts < total
            and f"The figure and its data have {forecasts:,} of {total:,} rows: all of the "
            "latest, and the lowest and highest of each earlier stretch.",
            len(explained) > 0 and "Choose a ringed point to take that forecast apart.",
        ),
        plot.forecast(data.forecast, future=data.future, explained=past),
        drawn,
        alt=f"{word} forecast {mean}, 90 % interval {low} to {high}.",
        wide=True,
        views=_views(data, drawn),
    )
    if len(explained):
        yield Block("explorer", "One forecast taken apart")
    every = data.next_values
    values = plot.future_table(data.future) if every is None else every
    yield TableBlock("next-values", f"{word} values", QUANTILES, values)


def _views(data: ReportData, drawn: pd.DataFrame) -> tuple[View, ...]:
    """Return the latest rows, the unseen ones and everything as ranges of the figure."""
    future = plot.future_table(data.future)
    last = future["time"].iloc[-1]
    ahead = future[["q05", "q95"]].to_numpy(dtype=np.float64)

    def view(name: str, rows: pd.DataFrame) -> View:
        past = rows[["q05", "q95", "actual", "mean"]].to_numpy(dtype=np.float64)
        values = np.append(past, ahead)
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
    scores = data.evaluation.scores.rename_axis("method").reset_index()
    yield TableBlock("scores", "Scores", SCORES, scores)
    parts = {
        "step": ("Scores of each step ahead", "Skill is against persistence at that step."),
        "series": (
            "Scores of each series",
            "Skill is against persistence within the series, and empty where that makes no error.",
        ),
    }
    for name, words in parts.items():
        table = getattr(data.evaluation, f"by_{name}")
        if table is not None:
            yield TableBlock(f"{name}-scores", *words, table)
    yield panel(
        "methods",
        "Error of this model and of simple rivals",
        "RMSE on the same rows; the dotted line is persistence, for which the next value equals "
        "the last.",
        plot.comparison(scores),
        plot.comparison_table(scores),
        alt=listed(scores, "method", "rmse", 4),
    )
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
    without = [name for name in ("prior", "posterior") if table[name].isna().all()]
    table = table.drop(columns=without)  # the attention that the model does not have
    figure = plot.variable_importance(explanation)
    drawn = len(figure.data[0].y)
    yield panel(
        "importance",
        "Importance of each variable",
        told(
            "Bars: share of the rise in error, with its 90 % interval. The test behind a verdict "
            "is stricter than the interval.",
            "posterior" in table
            and "Circles: attention before (open) and after (filled) seeing the value.",
            "prior" in table and "posterior" not in table and "Circles: attention.",
            drawn < len(table) and f"The figure has the first {drawn} of {len(table):,}.",
        ),
        figure,
        table,
        alt=listed(table, "variable", "importance"),
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
        f"Measured on {explanation.n_windows:,} {PARTS[explanation.part]} windows, effort "
        f"{explanation.effort}.",
        table[[name for name in IMPORTANCE_COLUMNS if name in table]],
    )


def _attention(data: ReportData) -> Iterator[FigureBlock]:
    """Show how attention is distributed, for models that have it."""
    explanation = data.explanation
    if explanation.prior is None:
        return
    both = explanation.posterior is not None
    yield panel(
        "attention",
        f"Attention{' before and after seeing the value' if both else ''}{data.of_series}",
        told(
            "How often each variable got how much attention.",
            both
            and "Grey is before (prior), colour after (posterior); where the posterior lies to the "
            "right, the model leans more on this variable once the value is known.",
            "Attention is no measure of importance; the share of the rise in error is.",
        ),
        plot.attention_histograms(explanation, columns=WIDE_COLUMNS),
        plot.attention_table(explanation),
        narrow=plot.attention_histograms(explanation, columns=NARROW_COLUMNS),
        wide=True,
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
    if explanation.temporal is not None:
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
                f"Mean {kind} attention in stretches of the {PARTS[explanation.part]} rows.",
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
