"""The section of a report on trust: checks, calibration, stability, training and notes."""

from __future__ import annotations

from collections.abc import Iterator

from mvlstm import plot
from mvlstm._words import counted
from mvlstm.report.checks import checks
from mvlstm.report.data import ReportData, records
from mvlstm.report.encode import number, percent
from mvlstm.report.page import Block, FigureBlock, Section
from mvlstm.report.words import even, heat_alt


def trust_section(data: ReportData) -> Section:
    """Return the section "Can I trust it?"."""
    explanation = data.explanation
    parts = (data, data.forecast, data.evaluation, explanation, data.history)
    notes = dict.fromkeys(note for part in parts for note in part.notes)
    return Section(
        "trust",
        "Can I trust it?",
        "Checks computed from the numbers, calibration, stability, and notes on the data.",
        [
            Block("checks", "Checks", checks(data)),
            *even([*_calibration(data), *_agreement(data)]),
            Block("notes", "Notes on data and method", list(notes)),
        ],
    )


def _calibration(data: ReportData) -> Iterator[FigureBlock]:
    coverage = plot.calibration_table(data.forecast)
    at90 = float(coverage.loc[coverage["level"] == 0.9, "observed"].iloc[0])
    n, scored = int(coverage["n"].iloc[0]), int(data.own["n"])
    others = "" if n == scored else f"; the scores are of {scored:,} values{data.of_all}"
    yield FigureBlock(
        key="calibration",
        title=f"Coverage of the intervals{data.of_series}",
        caption="Observed against promised coverage; the dotted line is perfect. Of "
        f"{n:,} {data.scored_on} values{data.of_series}{data.all_steps}{others}.",
        alt=f"Reliability{data.of_series}: the 90 % interval held {percent(at90, 1)} of the "
        f"{data.scored_on} values.",
        figure=plot.calibration(data.forecast),
        table=coverage,
    )
    yield FigureBlock(
        key="pit",
        title=f"Where values fell in their distribution{data.of_series}",
        caption="Flat is calibrated; a hump means that intervals are too wide, a valley that they "
        "are too narrow.",
        alt=f"Histogram of the probability integral transform{data.of_series}.",
        figure=plot.pit_histogram(data.forecast),
        table=plot.pit_table(data.forecast),
    )
    yield FigureBlock(
        key="autocorrelation",
        title=f"Autocorrelation of the residuals{data.shown_only}",
        caption="Bars inside the band are as good as noise; outside it, something is left to "
        "learn.",
        alt=f"Autocorrelation of the residuals by lag{data.shown_only}.",
        figure=plot.residual_autocorrelation(data.forecast),
        table=plot.autocorrelation_table(data.forecast),
    )


def _agreement(data: ReportData) -> Iterator[FigureBlock]:
    explanation, history = data.explanation, data.history
    members = data.forecast.members.shape[0]
    if members > 1:
        yield FigureBlock(
            key="members",
            title=f"Forecasts of the members{data.shown_only}",
            caption="Each member's forecast of the latest rows, minus their mean.",
            alt=f"Forecasts of {members} members for the latest rows{data.shown_only}.",
            figure=plot.members(data.forecast),
            table=plot.members_table(data.forecast),
        )
    stable = plot.stability_table(explanation)
    if stable["kendall_tau"].notna().any():
        yield FigureBlock(
            key="stability",
            title="Stability of the ranking",
            caption="Agreement of rankings of the variables, mean over pairs; 1 is the same order. "
            "Variables without effect are ranked by chance, so the overlap of the leading ones "
            "says more.",
            alt="; ".join(
                f"{r['ranking']}: tau {number(float(r['kendall_tau']), 2)}" for r in records(stable)
            ),
            figure=plot.stability(explanation),
            table=stable,
        )
    if history.members:
        scale = f"units of {data.forecast.transform.scale_name(data.target)}"
        scale = "standard deviations of each series" if data.series else scale
        best, epochs = history.best_rmse, history.best_epoch
        yield FigureBlock(
            key="training",
            title="Training",
            caption=f"Validation error of each member, in {scale}; the ringed epoch was kept.",
            alt=f"Validation RMSE over the epochs, in {scale}, of "
            f"{counted(history.members, 'member')}: at best {number(float(best.min()))} to "
            f"{number(float(best.max()))}, kept at epochs {epochs.min()} to {epochs.max()}.",
            figure=plot.training_curves(history, scale=scale.removesuffix(" of each series")),
            table=history.to_frame(),
        )
    if explanation.leakage is not None:
        yield FigureBlock(
            key="leakage",
            title="What each expert reacts to",
            caption="Share of an expert's sensitivity (row) that goes to each variable (column). "
            "The less goes to its own, the less attention says about variables.",
            alt=heat_alt(explanation.leakage),
            figure=plot.leakage(explanation),
            table=explanation.leakage.rename_axis("expert").reset_index(),
        )
