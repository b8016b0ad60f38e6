"""The sections of a report, in the order in which a reader asks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from mvlstm import plot
from mvlstm.report.data import ReportData, records
from mvlstm.report.encode import interval_text, number
from mvlstm.report.explorer import explained_rows, explorer
from mvlstm.report.page import AnyBlock, Block, FigureBlock, Page, Section, TableBlock, View
from mvlstm.report.summary import CAVEAT, cards, summary
from mvlstm.report.trust import trust_section
from mvlstm.report.words import heat_alt, told
from mvlstm.results import IMPORTANCE_COLUMNS, VERDICTS, Explanation

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


def report_page(data: ReportData, *, title: str | None = None) -> Page:
    """Lay out a report; the title is by default made from the target's name."""
    explained = explained_rows(data)
    first = "what comes next" if data.is_ahead else "how it is forecast"
    rows = data.facts.get("Rows", f"{len(data.forecast):,} rows")
    return Page(
        title=title or f"{data.target}: {first}, and what drives it",
        subtitle=f"{data.model}, {data.facts.get('Period', '')} ({rows})",
        summary=summary(data),
        cards=cards(data),
        caveat=CAVEAT,
        sections=[
            _next(data, explained),
            _quality(data),
            _drivers(data),
            _when(data),
            trust_section(data),
            _making(data),
        ],
        explorer=explorer(data, explained),
        footer=f"Made with mvlstm {data.facts.get('mvlstm', '')}".strip(),
    )


# --------------------------------------------------------------------------- what comes, how good


def _next(data: ReportData, explained: pd.DataFrame) -> Section:
    past = list(explained.loc[~explained["latest"], "time"]) if len(explained) else []
    drawn = plot.forecast_table(data.forecast, keep=past)
    forecasts, total = int((drawn["step"] == 1).sum()), len(data.forecast)
    mean, low, high = interval_text(data.headline)
    word = "Next" if data.is_ahead else "Last"
    blocks: list[AnyBlock] = [
        FigureBlock(
            key="forecast",
            title=f"Forecast and actual values{data.of_series}",
            caption=told(
                "Forecasts one step ahead with their 90 % interval, and the actual values.",
                forecasts < total
                and f"The figure and its data have {forecasts:,} of {total:,} rows: all of the "
                "latest, and the lowest and highest of each earlier stretch. Calling predict gives "
                "all.",
                forecasts < len(drawn)
                and f"The last rows have no such forecast, because all {data.forecast.horizon} "
                "steps of a forecast must lie within the table.",
                len(explained) > 0 and "Choose a ringed point to take that forecast apart.",
            ),
            alt=f"Line chart of {data.target}{data.of_series}, forecast and actual, {total:,} "
            f"rows. {word} forecast {mean}, 90 % interval {low} to {high}.",
            figure=plot.forecast(data.forecast, future=data.future, explained=past),
            table=drawn,
            wide=True,
            views=_views(data, drawn),
        )
    ]
    if len(explained):
        blocks.append(Block("explorer", "One forecast taken apart"))
    blocks.append(
        TableBlock(
            "next-values",
            f"{word} values",
            "Quantiles of the predictive distribution: the value lies below q05 with 5 % "
            "probability, below q95 with 95 %, and so on.",
            plot.future_table(data.future) if data.next_values is None else data.next_values,
        )
    )
    lead = told(
        "The forecast after the last row, and the forecasts before it."
        if data.is_ahead
        else "Forecasts up to the last row; there is no look ahead.",
        bool(data.series)
        and f"The figure shows series {data.series}; scores and importance are of all series.",
    )
    question = "What will happen next?" if data.is_ahead else "What happened last?"
    return Section("next", question, lead, blocks, word)


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


def _quality(data: ReportData) -> Section:
    evaluation = data.evaluation
    scores = evaluation.scores.rename_axis("method").reset_index()
    residuals = plot.residuals_table(data.forecast)
    total = len(plot.residuals_table(data.forecast, limit=10**9))
    blocks: list[AnyBlock] = [
        TableBlock(
            "scores",
            "Scores",
            "RMSE: root mean squared error of the mean forecast. MAE: mean absolute error of the "
            "median. CRPS: continuous ranked probability score, the error of the whole predictive "
            "distribution. Less is better for these three. Skill: the share of persistence's RMSE "
            "that is removed. Coverage: of the 90 % interval.",
            scores,
        )
    ]
    if evaluation.by_step is not None:
        title, caption = "Scores of each step ahead", "Skill is against persistence at that step."
        blocks.append(TableBlock("step-scores", title, caption, evaluation.by_step))
    if evaluation.by_series is not None:
        caption = told(
            "Skill is against persistence within the series.",
            bool(evaluation.by_series["skill"].isna().any())
            and "There is none where persistence makes no error.",
        )
        title = "Scores of each series"
        blocks.append(TableBlock("series-scores", title, caption, evaluation.by_series))
    blocks += [
        FigureBlock(
            key="methods",
            title="Error of this model and of simple rivals",
            caption="RMSE on the same rows; the dotted line is persistence, for which the next "
            "value equals the last.",
            alt="RMSE of each method: "
            + "; ".join(f"{r['method']} {number(float(r['rmse']), 4)}" for r in records(scores)),
            figure=plot.comparison(scores),
            table=plot.comparison_table(scores),
        ),
        FigureBlock(
            key="residuals",
            title=f"Residuals over time{data.shown_only}",
            caption=told(
                "Value minus forecast; good forecasts leave a cloud without shape around zero.",
                len(residuals) < total
                and f"The figure and its data have {len(residuals):,} of {total:,} residuals, the "
                "lowest and highest of each stretch, so the cloud looks wider than it is.",
            ),
            alt=f"Residuals of {len(residuals):,} rows around zero{data.shown_only}.",
            figure=plot.residuals(data.forecast),
            table=residuals,
        ),
    ]
    rows = "rows it has not seen" if data.scored_on == "unseen" else f"{data.scored_on} rows"
    return Section(
        "quality",
        f"How good is it on {rows}?",
        f"Scores on {data.scored_on} rows{data.of_all} ({data.span(evaluation.period)})"
        f"{data.all_steps}.",
        blocks,
    )


# ------------------------------------------------------------------------------ what drives it


def _drivers(data: ReportData) -> Section:
    explanation = data.explanation
    table = explanation.importance
    without = [name for name in ("prior", "posterior") if table[name].isna().all()]
    table = table.drop(columns=without)  # the attention that the model does not have
    figure = plot.variable_importance(explanation)
    drawn = len(figure.data[0].y)
    doubted = table["verdict"] == VERDICTS[2]
    return Section(
        "drivers",
        "What drives it, and how sure is that?",
        f"How much the error rises when a variable is scrambled. {CAVEAT}",
        [
            FigureBlock(
                key="importance",
                title="Importance of each variable",
                caption=told(
                    "Bars: share of the rise in error, with its 90 % interval.",
                    "posterior" in table
                    and "Circles: attention before (open) and after (filled) seeing the value.",
                    "prior" in table and "posterior" not in table and "Circles: attention.",
                    bool((doubted & (table["error_increase_low"] > 0)).any())
                    and "Some variables are within noise although their interval excludes zero: "
                    "the test behind the verdict is stricter, because it allows for few "
                    "independent stretches of time and for testing several variables.",
                    drawn < len(table) and f"The figure has the first {drawn} of {len(table):,}.",
                ),
                alt="Importance: "
                + "; ".join(
                    f"{r['variable']} {number(float(r['importance']))} ({r['verdict']})"
                    for r in records(table.head(12))
                ),
                figure=figure,
                table=table,
                wide=True,
            ),
            *_other_variables(data, table),
            TableBlock(
                "importance-table",
                "Importance in numbers",
                f"Measured on {explanation.n_windows:,} {PARTS[explanation.part]} windows, effort "
                f"{explanation.effort}.",
                table[[name for name in IMPORTANCE_COLUMNS if name in table]],
            ),
            *_attention(data),
            *_other_tables(explanation),
        ],
    )


def _other_variables(data: ReportData, table: pd.DataFrame) -> Iterator[FigureBlock]:
    """Show the other variables by themselves where the target's own past dwarfs them."""
    others = table[table["variable"] != data.target]
    if not len(others) or float(others["importance"].max()) > DWARFED:
        return
    rises = [
        f"{r['variable']} {number(float(r['error_increase']))}" for r in records(others.head(12))
    ]
    yield FigureBlock(
        key="others",
        title=f"The other variables, without {data.target}'s own past",
        caption="Rise in squared error when the variable is scrambled, with its 90 % interval.",
        alt=f"Rise in squared error: {'; '.join(rises)}",
        figure=plot.error_increase(data.explanation),
        table=others,
        wide=True,
    )


def _attention(data: ReportData) -> Iterator[FigureBlock]:
    """Show how attention is distributed, for models that have it."""
    explanation = data.explanation
    if explanation.prior is None:
        return
    both = explanation.posterior is not None
    yield FigureBlock(
        key="attention",
        title=f"Attention{' before and after seeing the value' if both else ''}{data.of_series}",
        caption=told(
            "How often each variable got how much attention.",
            both
            and "Grey is before (prior), colour after (posterior); where the posterior lies to the "
            "right, the model leans more on this variable once the value is known.",
            "Attention is no measure of importance; the share of the rise in error is.",
        ),
        alt=f"Histograms of attention for each variable{data.of_series}.",
        figure=plot.attention_histograms(explanation, columns=WIDE_COLUMNS),
        narrow=plot.attention_histograms(explanation, columns=NARROW_COLUMNS),
        table=plot.attention_table(explanation),
        wide=True,
    )


def _other_tables(explanation: Explanation) -> Iterator[TableBlock]:
    """Show importance in each series, and the variables that were scrambled together."""
    if explanation.by_series is not None:
        wide = explanation.by_series.pivot(index="series", columns="variable", values="importance")
        wide = wide[list(explanation.importance["variable"])].reset_index()
        caption = "Share of the rise in error within the series."
        yield TableBlock("series-importance", "Importance in each series", caption, wide)
    if explanation.groups is not None and len(explanation.groups):
        caption = "They are correlated above 0.9 and share importance; scrambled together here."
        yield TableBlock("groups", "Variables that move together", caption, explanation.groups)


# ------------------------------------------------------------------------------- when it matters


def _when(data: ReportData) -> Section:
    blocks: list[AnyBlock] = [*_lags(data), *_attention_in_time(data)]
    if not blocks:
        blocks.append(Block("text", content="This model has no lags or attention to show."))
    lead = "Which lags the forecast uses, and in which periods."
    return Section("when", "When does it matter?", lead, blocks)


def _lags(data: ReportData) -> Iterator[AnyBlock]:
    """Show the lags by the size of their contributions, where forecasts were taken apart."""
    explanation = data.explanation
    size = f"Mean size of the contributions{data.all_steps}, in units of {data.target}"
    if explanation.contribution is not None and len(explanation.contribution):
        lags = plot.lag_table(explanation, mean=True)
        yield FigureBlock(
            key="lags",
            title="Which lags move the forecast",
            caption=told(
                f"{size}.",
                bool((lags.columns.to_numpy() < 1).any())
                and "Lags 0 and below are the times forecast, for variables known ahead.",
            ),
            alt=heat_alt(lags),
            figure=plot.contribution_lags(explanation, mean=True),
            table=lags.rename_axis("variable").reset_index(),
            wide=True,
        )
    if explanation.lags is not None and "contribution" in explanation.lags:
        table = explanation.importance
        noise = table.loc[table["verdict"] == VERDICTS[2], "variable"]
        top = explanation.lags.nlargest(TOP_LAGS, "contribution")[LAG_COLUMNS]
        yield TableBlock(
            key="lag-intervals",
            title="The lags that matter most",
            caption=told(
                f"{size}, with a 90 % interval over members and forecasts; the largest {TOP_LAGS}.",
                "Share: among the lags of the same variable.",
                bool(top["variable"].isin(noise).any())
                and "A lag can move the forecast without improving it: some of these variables "
                "cannot be told from noise.",
            ),
            frame=top,
        )


def _attention_in_time(data: ReportData) -> Iterator[FigureBlock]:
    """Show where in the past, and in which periods, attention lies; for models that have it."""
    explanation = data.explanation
    if explanation.temporal is not None:
        yield FigureBlock(
            key="temporal",
            title="Attention over the past",
            caption="Mean temporal attention of each variable; every row adds up to one. The last "
            "known time enters directly and has no weight here.",
            alt=heat_alt(explanation.temporal),
            figure=plot.temporal_importance(explanation),
            table=explanation.temporal.rename_axis("variable").reset_index(),
            wide=True,
        )
    if explanation.prior is not None:
        figure = plot.attention_over_time(explanation)
        kind = "prior" if explanation.posterior is None else "posterior"
        yield FigureBlock(
            key="attention-over-time",
            title=f"Attention over time{data.shown_only}",
            caption=told(
                f"Mean {kind} attention in stretches of the {PARTS[explanation.part]} rows.",
                len(figure.data) < len(explanation.variables)
                and "The variables with the least are added up; the data below have all.",
            ),
            alt=f"Share of attention of each variable over time, stacked to one{data.shown_only}.",
            figure=figure,
            table=plot.attention_over_time_table(explanation),
            wide=True,
        )


# -------------------------------------------------------------------------------- how it was made


def _making(data: ReportData) -> Section:
    settings = {k: "none" if v is None else str(v) for k, v in data.settings.items()}
    blocks: list[AnyBlock] = [
        Block("facts", "Data and versions", dict(data.facts)),
        Block("facts", "Settings", settings),
    ]
    if data.profile is not None:
        caption = "Values in the rows used, each variable in its own unit."
        blocks.append(TableBlock("variables", "The variables", caption, data.profile, by_row=True))
    if data.command:
        blocks.append(Block("code", "To repeat it", data.command))
    return Section("making", "How was it made?", "Everything needed to repeat it.", blocks)
