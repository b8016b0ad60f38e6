"""The section of a report on trust: checks, calibration, stability, training and notes."""

from __future__ import annotations

from collections.abc import Iterator

from mvlstm import plot
from mvlstm._words import counted, number
from mvlstm.report.checks import checks
from mvlstm.report.data import ReportData
from mvlstm.report.page import AnyBlock, Block, FigureBlock
from mvlstm.report.words import even, heat_alt, listed, panel
from mvlstm.results.coverage import coverage_in_words

PERIODS, ENOUGH = 3, 300  # of the histogram by period, and the values that it takes


def trust_blocks(data: ReportData) -> list[AnyBlock]:
    """Return what answers "Can I trust it?"."""
    parts = (data, data.forecast, data.evaluation, data.explanation, data.history)
    notes = dict.fromkeys(note for part in parts for note in part.notes)
    return [
        Block("checks", "Checks", checks(data)),
        *even([*_calibration(data), *_agreement(data)]),
        Block("notes", "Notes on data and method", list(notes)),
    ]


def _calibration(data: ReportData) -> Iterator[FigureBlock]:
    coverage = plot.calibration_table(data.forecast)
    n, scored = int(coverage["n"].iloc[0]), int(data.own["n"])
    periods = PERIODS if n >= ENOUGH else 1
    others = "" if n == scored else f"; the scores are of {scored:,} values{data.of_all}"
    yield panel(
        "calibration",
        f"Coverage of the intervals{data.of_series}",
        "Observed against promised coverage; the dotted line is perfect. Of "
        f"{n:,} {data.scored_on} values{data.of_series}{data.all_steps}{others}.",
        plot.calibration(data.forecast),
        coverage,
        alt=listed(coverage.iloc[1::4], "level", "observed", 2),
    )
    yield panel(
        "pit",
        f"Where values fell in their distribution{data.of_series}",
        "Flat is calibrated; a hump means that intervals are too wide, a valley that they are too "
        "narrow." + (" The later the period, the stronger its line." if periods > 1 else ""),
        plot.pit_histogram(data.forecast, periods=periods),
        plot.pit_table(data.forecast, periods=periods),
    )
    rolling = plot.coverage_over_time_table(data.forecast)
    if len(rolling):
        yield panel(
            "coverage",
            f"Coverage over time{data.of_series}",
            f"{coverage_in_words(rolling)} Within the band the difference may be chance.",
            plot.coverage_over_time(data.forecast),
            rolling,
        )
    yield panel(
        "autocorrelation",
        f"Autocorrelation of the residuals{data.shown_only}",
        "Bars inside the band may be noise; where one lies outside it, something is left to learn.",
        plot.residual_autocorrelation(data.forecast),
        plot.autocorrelation_table(data.forecast),
    )


def _agreement(data: ReportData) -> Iterator[FigureBlock]:
    explanation, history = data.explanation, data.history
    if data.forecast.members.shape[0] > 1:
        yield panel(
            "members",
            f"Forecasts of the members{data.shown_only}",
            "Each member's forecast of the latest rows, minus their mean.",
            plot.members(data.forecast),
            plot.members_table(data.forecast),
        )
    stable = plot.stability_table(explanation)
    if stable["kendall_tau"].notna().any():
        yield panel(
            "stability",
            "Stability of the ranking",
            "Agreement of rankings of the variables, mean over pairs; 1 is the same order. "
            "Variables without effect are ranked by chance, so the overlap of the leading ones "
            "says more.",
            plot.stability(explanation),
            stable,
            alt=listed(stable, "ranking", "kendall_tau", 2),
        )
    if history.members:
        scale = f"units of {data.forecast.transform.scale_name(data.target)}"
        scale = "standard deviations of each series" if data.series else scale
        best, epochs = history.best_rmse, history.best_epoch
        yield panel(
            "training",
            "Training",
            f"Validation error of each member, in {scale}; the ringed epoch was kept.",
            plot.training_curves(history, scale=scale.removesuffix(" of each series")),
            history.to_frame(),
            alt=f"Validation RMSE over the epochs, in {scale}, of "
            f"{counted(history.members, 'member')}: at best {number(float(best.min()))} to "
            f"{number(float(best.max()))}, kept at epochs {epochs.min()} to {epochs.max()}.",
        )
    if explanation.leakage is not None:
        yield panel(
            "leakage",
            "What each expert reacts to",
            "Share of an expert's sensitivity (row) that goes to each variable (column). The "
            "smaller the share of its own variable, the less attention says about variables.",
            plot.leakage(explanation),
            explanation.leakage.rename_axis("expert").reset_index(),
            alt=heat_alt(explanation.leakage),
        )
