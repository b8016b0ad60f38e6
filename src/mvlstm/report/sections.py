"""The sections of a report, in the order in which a reader asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from mvlstm import plot
from mvlstm.report.data import Block, Page, Panel, ReportData, Section, Table, View, records
from mvlstm.report.encode import interval_text, number
from mvlstm.report.explorer import explained_rows, explorer
from mvlstm.report.summary import CAVEAT, PERSISTENCE, cards, summary
from mvlstm.report.trust import trust_section
from mvlstm.report.words import all_steps, heat_alt
from mvlstm.results import IMPORTANCE_COLUMNS, VERDICTS, Explanation

LATEST = 200  # rows of the first view
TOP_LAGS = 15  # of all variables, in the table of lags
LAG_COLUMNS = ("variable", "lag", "contribution", "low", "high", "share")
NARROW_COLUMNS, WIDE_COLUMNS = 2, 4
SCORES = (
    "RMSE: root of the mean squared error of the mean forecast. MAE: mean absolute error of the "
    "median. CRPS: continuous ranked probability score, the error of the whole predictive "
    "distribution. Less is better for these three."
)
ATTENTION = ("prior", "posterior")
PARTS = {  # of an explanation, in words
    "new": "unseen",
    "calibration": "validation",
    "calibration and new": "validation and unseen",
}


def report_page(data: ReportData, *, title: str | None = None) -> Page:
    """Lay out a report.

    Parameters
    ----------
    data : ReportData
        Everything it shows.
    title : str, optional
        Heading; by default the target's name.
    """
    explained = explained_rows(data)
    return Page(
        title=title or _title(data),
        subtitle=_subtitle(data),
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


def _title(data: ReportData) -> str:
    first = "what comes next" if data.is_ahead else "how it is forecast"
    return f"{data.target}: {first}, and what drives it"


def _subtitle(data: ReportData) -> str:
    rows = data.facts.get("Rows", f"{len(data.forecast):,} rows")
    return f"{data.model}, {data.facts.get('Period', '')} ({rows})"


# --------------------------------------------------------------------------------------- sections


def _next(data: ReportData, explained: pd.DataFrame) -> Section:
    times = list(explained["time"]) if len(explained) else []
    past = [t for t, last in zip(times, explained.get("latest", ()), strict=True) if not last]
    drawn = plot.forecast_table(data.forecast, keep=past)
    figure = plot.forecast(data.forecast, future=data.future, explained=past)
    count, total = int((drawn["step"] == 1).sum()), len(data.forecast)
    caption = "Forecasts one step ahead with their 90 % interval, against what happened."
    if count < total:
        caption += (
            f" Drawn, and in the data below, are {count:,} of {total:,} rows: the latest ones in "
            "full, of the earlier ones the lowest and highest of each stretch. Calling predict "
            "gives all."
        )
    caption += _without_forecast(data, int((drawn["step"] != 1).sum()))
    if times:
        caption += " Choose a ringed point to see what that forecast is made of."
    blocks: list[Panel | Table | Block] = [
        Panel(
            key="forecast",
            title=f"Forecast and what happened{data.of_series}",
            caption=caption,
            alt=_forecast_alt(data),
            figure=figure,
            table=drawn,
            wide=True,
            views=_views(data, drawn),
        )
    ]
    if times:
        blocks.append(Block("explorer", "What one forecast is made of"))
    future = plot.future_table(data.future) if data.next_values is None else data.next_values
    blocks.append(
        Table(
            "next-values",
            "Next values" if data.is_ahead else "Last values",
            "Quantiles of the predictive distribution: with 5 % probability the value lies below "
            "q05, with 95 % below q95, and so on.",
            future,
        )
    )
    lead = "The forecast after the last row, and those before it."
    if not data.is_ahead:
        lead = "Forecasts up to the last row; what is known ahead of it was not given."
    if data.series:
        lead += f" The figure shows series {data.series}; scores and importance are of all series."
    question = "What will happen next?" if data.is_ahead else "What happened last?"
    return Section("next", question, lead, blocks, "Next" if data.is_ahead else "Last")


def _without_forecast(data: ReportData, count: int) -> str:
    """Say why the forecasts end before what happened does, where they do."""
    if not count:
        return ""
    rows = "row has" if count == 1 else f"{count:,} rows have"
    return (
        f" The last {rows} no such forecast: all {data.forecast.horizon} steps of a forecast must "
        "lie within the table."
    )


def _quality(data: ReportData) -> Section:
    scores = data.evaluation.scores.rename_axis("method").reset_index()
    rows = scores.rename(columns={"index": "method"})
    panel = Panel(
        key="methods",
        title="Error beside simple rivals",
        caption=f"RMSE on the same rows; the dotted line is persistence ({PERSISTENCE}).",
        alt="RMSE of each method: "
        + "; ".join(f"{r['method']} {number(float(r['rmse']), 4)}" for r in records(rows)),
        figure=plot.comparison(rows),
        table=plot.comparison_table(rows),
    )
    residual = plot.residuals_table(data.forecast)
    total = len(plot.residuals_table(data.forecast, limit=10**9))
    series: list[Table] = []
    if data.evaluation.by_series is not None:
        caption = (
            f"Of the same {data.scored_on} rows, one series at a time; skill is against "
            "persistence."
        )
        table = data.evaluation.by_series
        if table["skill"].isna().any():
            caption += " There is none where persistence makes no error."
        series = [Table("series-scores", "Scores of each series", caption, table)]
    steps: list[Table] = []
    if data.evaluation.by_step is not None:
        caption = (
            f"Of the same {data.scored_on} rows, one step ahead at a time; skill is against "
            "persistence as many steps ahead."
        )
        steps = [
            Table("step-scores", "Scores of each step ahead", caption, data.evaluation.by_step)
        ]
    return Section(
        "quality",
        _quality_question(data),
        f"Scores on {data.scored_on} rows{data.of_all}, {data.span(data.evaluation.period)}"
        f"{all_steps(data)}. Skill is the share of persistence's error that is removed; coverage "
        "is that of the 90 % interval.",
        [
            Table("scores", "Scores", SCORES, scores),
            *steps,
            *series,
            panel,
            Panel(
                key="residuals",
                title=f"Residuals over time{data.shown_only}",
                caption="Value minus forecast; a cloud without shape around zero is good."
                + _thinned(len(residual), total),
                alt=f"Residuals of {len(residual):,} drawn rows around zero{data.shown_only}.",
                figure=plot.residuals(data.forecast),
                table=residual,
            ),
        ],
    )


def _thinned(count: int, total: int) -> str:
    """Say which residuals are drawn, where these are not all."""
    if count == total:
        return ""
    return (
        f" Drawn, and in the data below, are {count:,} of {total:,}: the lowest and highest of "
        "each stretch, so the cloud looks wider than it is."
    )


def _quality_question(data: ReportData) -> str:
    """Ask how good it is, on the rows there are scores of."""
    if data.scored_on == "unseen":
        return "How good is it on rows it has not seen?"
    return f"How good is it on {data.scored_on} rows?"


def _by_series(explanation: Explanation) -> list[Table]:
    """Return the importance of the variables in each series, a row a series."""
    if explanation.by_series is None:
        return []
    wide = explanation.by_series.pivot(index="series", columns="variable", values="importance")
    wide = wide[list(explanation.importance["variable"])].reset_index()
    caption = "Share of the rise in error when a variable is scrambled, one series at a time."
    return [Table("series-importance", "Importance in each series", caption, wide)]


def _drivers(data: ReportData) -> Section:
    explanation = data.explanation
    table = _given(explanation.importance)
    figure = plot.variable_importance(explanation)
    drawn = len(figure.data[0].y)
    blocks: list[Panel | Table | Block] = [
        Panel(
            key="importance",
            title="Importance of each variable",
            caption="Bars: share of the rise in error when the variable is scrambled, with its "
            f"90 % interval.{_circles(table)}{_cautious(table)}{_first(drawn, len(table))}",
            alt="Importance: "
            + "; ".join(
                f"{r['variable']} {number(float(r['importance']))} ({r['verdict']})"
                for r in records(table.head(12))
            ),
            figure=figure,
            table=table,
            wide=True,
        ),
        *_exogenous(data),
        Table(
            "importance-table",
            "The numbers",
            f"Measured on {explanation.n_windows:,} {_part(explanation)} windows, effort "
            f"{explanation.effort}.",
            table[[name for name in IMPORTANCE_COLUMNS if name in table]],
        ),
        *_by_series(explanation),
        *_attention(data),
        *_groups(explanation),
    ]
    return Section(
        "drivers",
        "What drives it, and how sure is that?",
        "What the error rises by when a variable is scrambled, so far as this can be told from "
        f"noise. {CAVEAT}",
        blocks,
    )


def _attention(data: ReportData) -> Iterator[Panel]:
    """Show how attention is distributed, for models that have it."""
    explanation = data.explanation
    if explanation.prior is None:
        return
    yield Panel(
        key="attention",
        title=f"{_attention_title(explanation)}{data.of_series}",
        caption=_attention_caption(explanation),
        alt=f"Histograms of {_kinds(explanation)} attention for each variable{data.of_series}.",
        figure=plot.attention_histograms(explanation, columns=WIDE_COLUMNS),
        narrow=plot.attention_histograms(explanation, columns=NARROW_COLUMNS),
        table=plot.attention_table(explanation),
        wide=True,
    )


def _groups(explanation: Explanation) -> Iterator[Table]:
    """List the variables that were scrambled together, where there are such."""
    if explanation.groups is None or not len(explanation.groups):
        return
    caption = "Rise in error when they are scrambled together."
    yield Table("groups", "Variables that move together", caption, explanation.groups)


def _added_up(explanation: Explanation, drawn: int) -> str:
    """Say that small shares are added up, where fewer bars are drawn than there are variables."""
    if drawn == len(explanation.variables):
        return ""
    return " Those with the least are added up; the data below have all."


def _first(drawn: int, total: int) -> str:
    """Say how many variables are drawn, where these are not all."""
    return f" Drawn are the first {drawn} of {total:,}." if drawn < total else ""


def _idle_lags(lags: pd.DataFrame, importance: pd.DataFrame) -> str:
    """Say that lags may move a forecast without making it better, where some here may."""
    noise = importance.loc[importance["verdict"] == VERDICTS[2], "variable"]
    if not lags["variable"].isin(noise).any():
        return ""
    return (
        " To move the forecast is not to help it: some of these variables cannot be told from "
        "noise."
    )


def _cautious(importance: pd.DataFrame) -> str:
    """Explain verdicts that doubt what an interval keeps away from zero."""
    doubted = importance["verdict"] == VERDICTS[2]
    if not (doubted & (importance["error_increase_low"] > 0)).any():
        return ""
    return (
        " Some are within noise although their interval leaves zero out: the test behind the "
        "verdict is stricter, for it allows for few independent stretches of time and for several "
        "variables."
    )


def _circles(importance: pd.DataFrame) -> str:
    """Explain the marks of attention, where there are any."""
    if "posterior" in importance:
        return " Circles: attention before (open) and after (filled) seeing the value."
    return " Circles: attention." if "prior" in importance else ""


def _kinds(explanation: Explanation) -> str:
    return "prior" if explanation.posterior is None else "prior and posterior"


def _attention_title(explanation: Explanation) -> str:
    after = "" if explanation.posterior is None else " before and after seeing the value"
    return f"Attention{after}"


def _attention_caption(explanation: Explanation) -> str:
    text = "How often each variable got how much attention"
    if explanation.posterior is None:
        return f"{text}. That is no measure of importance; the share of the rise in error is."
    return (
        f"{text}: grey before (prior), coloured after (posterior). A posterior to the right of the "
        "prior: the model leans more on this variable once the value is known. That is no measure "
        "of importance; the share of the rise in error is."
    )


def _given(importance: pd.DataFrame) -> pd.DataFrame:
    """Leave out the columns of attention where a model has none."""
    empty = [name for name in ATTENTION if name in importance and importance[name].isna().all()]
    return importance.drop(columns=empty)


def _exogenous(data: ReportData) -> Iterator[Panel]:
    """Show the other variables by themselves where the target's own past dwarfs them."""
    table = _given(data.explanation.importance)
    others = table[table["variable"] != data.target]
    if not len(others) or float(others["importance"].max()) > 0.15:
        return
    yield Panel(
        key="others",
        title=f"The other variables, without the own past of {data.target}",
        caption="Rise in squared error when the variable is scrambled, with its 90 % interval.",
        alt="Rise in squared error: "
        + "; ".join(
            f"{r['variable']} {number(float(r['error_increase']))}"
            for r in records(others.head(12))
        ),
        figure=plot.error_increase(data.explanation),
        table=others,
        wide=True,
    )


def _when(data: ReportData) -> Section:
    blocks: list[Panel | Table | Block] = [*_lags(data), *_attention_in_time(data)]
    if not blocks:
        blocks.append(Block("text", content="This model has no lags or attention to show."))
    return Section(
        "when",
        "When does it matter?",
        "Which lags the forecast looks at, and in which periods.",
        blocks,
    )


def _lags(data: ReportData) -> Iterator[Panel | Table]:
    """Show the lags by the size of their contributions, where forecasts were taken apart."""
    explanation = data.explanation
    if explanation.contribution is not None and len(explanation.contribution):
        lags = plot.lag_table(explanation, mean=True)
        yield Panel(
            key="lags",
            title="Which lags move the forecast",
            caption="Mean size of the contributions over the forecasts explained"
            f"{all_steps(data)}, in units of {data.target}.{_early_lags(lags)}",
            alt=heat_alt(lags),
            figure=plot.contribution_lags(explanation, mean=True),
            table=lags.rename_axis("variable").reset_index(),
            wide=True,
        )
    if explanation.lags is not None and "contribution" in explanation.lags:
        lags = explanation.lags.nlargest(TOP_LAGS, "contribution")[list(LAG_COLUMNS)]
        yield Table(
            key="lag-intervals",
            title="The lags that matter most",
            caption="Mean size of a lag's contributions with its 90 % interval over members "
            f"and forecasts{all_steps(data)}, in units of {data.target}; the largest "
            f"{TOP_LAGS}. Share: of the sizes of all lags of the same variable."
            f"{_idle_lags(lags, explanation.importance)}",
            frame=lags,
        )


def _attention_in_time(data: ReportData) -> Iterator[Panel]:
    """Show where in the past, and in which periods, attention lies; for models that have it."""
    explanation = data.explanation
    if explanation.temporal is not None:
        yield Panel(
            key="temporal",
            title="Attention over the past",
            caption="Mean temporal attention of each variable; a row adds up to one. The last "
            "time known enters directly and has no weight here.",
            alt=heat_alt(explanation.temporal),
            figure=plot.temporal_importance(explanation),
            table=explanation.temporal.rename_axis("variable").reset_index(),
            wide=True,
        )
    if explanation.prior is not None:
        figure = plot.attention_over_time(explanation)
        yield Panel(
            key="attention-over-time",
            title=f"Attention over time{data.shown_only}",
            caption=f"Mean {_kinds(explanation).split()[-1]} attention in stretches of the "
            f"{_part(explanation)} rows.{_added_up(explanation, len(figure.data))}",
            alt=f"Share of attention of each variable over time, stacked to one{data.shown_only}.",
            figure=figure,
            table=plot.attention_over_time_table(explanation),
            wide=True,
        )


def _making(data: ReportData) -> Section:
    settings = {k: _setting(v) for k, v in data.settings.items()}
    blocks: list[Panel | Table | Block] = [
        Block("facts", "Data and versions", dict(data.facts)),
        Block("facts", "Settings", settings),
    ]
    if data.profile is not None:
        caption = "Values in the rows used, each variable in its own unit."
        table = Table("variables", "The variables", caption, data.profile, by_row=True)
        blocks.append(table)
    if data.command:
        blocks.append(Block("code", "To repeat it", data.command))
    return Section("making", "How was it made?", "Enough to do it again.", blocks)


# ------------------------------------------------------------------------------------- inner parts


def _views(data: ReportData, drawn: pd.DataFrame) -> tuple[View, ...]:
    """Return the latest rows, the unseen ones and everything as ranges of the figure."""
    future = plot.future_table(data.future)
    last = future["time"].iloc[-1]
    columns = ["q05", "q95", "actual", "mean"]
    ahead = (float(future["q05"].min()), float(future["q95"].max()))

    def view(name: str, rows: pd.DataFrame) -> View:
        values = rows[columns].to_numpy(dtype=np.float64)
        low, high = min(float(np.nanmin(values)), ahead[0]), max(float(np.nanmax(values)), ahead[1])
        margin = 0.05 * (high - low)
        start = rows["time"].iloc[0]
        pad = (last - start) * 0.015
        return View(name, (start, last + pad), (low - margin, high + margin))

    views = [view("Latest", drawn.tail(LATEST))]
    unseen = drawn[drawn["part"] == "new"]
    if len(unseen) > LATEST:
        views.append(view("All unseen", unseen))
    if len(drawn) > max(LATEST, len(unseen)):
        views.append(view("Everything", drawn))
    return tuple(views)


def _forecast_alt(data: ReportData) -> str:
    own = data.own
    mean, low, high = interval_text(data.headline)
    return (
        f"Line chart of {data.target}{data.of_series}, forecast and actual, "
        f"{len(data.forecast):,} rows. RMSE on {data.scored_on} rows{data.of_all} "
        f"{number(float(own['rmse']))}. {'Next' if data.is_ahead else 'Last'} forecast {mean}, "
        f"90 % interval {low} to {high}."
    )


def _part(explanation: Explanation) -> str:
    return PARTS.get(explanation.part, explanation.part)


def _early_lags(lags: pd.DataFrame) -> str:
    """Explain lags below one, where a variable known ahead has them."""
    if not (lags.columns.to_numpy() < 1).any():
        return ""
    return " Lag 0 and below: rows of the times forecast, known ahead."


def _setting(value: Any) -> str:
    return "none" if value is None else str(value)
