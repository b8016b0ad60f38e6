"""The section of a report on trust: checks, calibration, stability, training and notes."""

from __future__ import annotations

from collections.abc import Iterator

from mvlstm import plot
from mvlstm._words import counted
from mvlstm.report.data import Block, Panel, ReportData, Section, Table, records
from mvlstm.report.encode import number, percent
from mvlstm.report.summary import checks
from mvlstm.report.words import all_steps, even, heat_alt


def trust_section(data: ReportData) -> Section:
    """Return the section "Can I trust it?"."""
    return Section(
        "trust",
        "Can I trust it?",
        "Checks computed from the numbers, calibration, stability, and notes on the data.",
        [
            Block("checks", "Checks", checks(data)),
            *even([*_calibration(data), *_agreement(data)]),
            *_other_measures(data),
            Block("notes", "Notes on data and method", _notes(data)),
        ],
    )


def _other_measures(data: ReportData) -> Iterator[Table]:
    if data.explanation.agreement is not None:
        yield Table(
            key="agreement",
            title="Do other measures agree?",
            caption="Importance beside attention, gradients, models fitted without the variable, "
            "shadow variables and Granger's tests; the last column says what speaks against the "
            "verdict. Importance is here the share among these variables, without the own past of "
            f"{data.target}, and so not the number above.",
            frame=data.explanation.agreement,
        )


def _calibration(data: ReportData) -> Iterator[Panel]:
    coverage = plot.calibration_table(data.forecast)
    at90 = float(coverage.loc[coverage["level"] == 0.9, "observed"].iloc[0])
    yield Panel(
        key="calibration",
        title=_asked("Do intervals hold what they promise?", data.of_series),
        caption="Observed against promised coverage; on the dotted line is perfect. "
        + _judged(data, int(coverage["n"].iloc[0])),
        alt=f"Reliability{data.of_series}: the 90 % interval held {percent(at90, 1)} of the "
        f"{data.scored_on} values.",
        figure=plot.calibration(data.forecast),
        table=coverage,
    )
    yield Panel(
        key="pit",
        title=f"Where values fell in their distribution{data.of_series}",
        caption="Flat is calibrated; a hump means intervals too wide, a valley too narrow.",
        alt=f"Histogram of the probability integral transform{data.of_series}.",
        figure=plot.pit_histogram(data.forecast),
        table=plot.pit_table(data.forecast),
    )
    lags = plot.autocorrelation_table(data.forecast)
    yield Panel(
        key="autocorrelation",
        title=_asked("Is something left in the residuals?", data.shown_only),
        caption="Autocorrelation of the residuals; bars inside the band are as good as noise.",
        alt=f"Autocorrelation of the residuals by lag{data.shown_only}.",
        figure=plot.residual_autocorrelation(data.forecast),
        table=lags,
    )


def _agreement(data: ReportData) -> Iterator[Panel]:
    explanation = data.explanation
    if data.forecast.members.shape[0] > 1:
        yield Panel(
            key="members",
            title=_asked("Do the members agree?", data.shown_only),
            caption="Each member's forecast of the latest rows, around their mean.",
            alt=f"Forecasts of {data.forecast.members.shape[0]} members for the latest rows"
            f"{data.shown_only}.",
            figure=plot.members(data.forecast),
            table=plot.members_table(data.forecast),
        )
    stable = plot.stability_table(explanation)
    if len(stable) and stable["kendall_tau"].notna().any():
        yield Panel(
            key="stability",
            title="Is the ranking stable?",
            caption="Agreement of rankings of the variables, mean over pairs; 1 is the same order. "
            "Variables that do nothing are ranked by chance, so the overlap of the leading ones "
            "says more.",
            alt="; ".join(
                f"{r['ranking']}: tau {number(float(r['kendall_tau']), 2)}" for r in records(stable)
            ),
            figure=plot.stability(explanation),
            table=stable,
        )
    if data.history.members:
        yield Panel(
            key="training",
            title="How training went",
            caption=f"Validation error of each member, in {_scale(data)}; the ringed epoch was "
            "kept.",
            alt=_training_alt(data),
            figure=plot.training_curves(
                data.history, scale=_scale(data).removesuffix(" of each series")
            ),
            table=data.history.to_frame(),
        )
    if explanation.leakage is not None:
        yield Panel(
            key="leakage",
            title="Does each expert keep to its variable?",
            caption="Share of an expert's sensitivity (row) that goes to each variable (column).",
            alt=heat_alt(explanation.leakage),
            figure=plot.leakage(explanation),
            table=explanation.leakage.rename_axis("expert").reset_index(),
        )


def _asked(question: str, words: str) -> str:
    """Say in brackets what a question is asked of, if there are words for it."""
    return f"{question} ({words.strip(' ,')})" if words else question


def _judged(data: ReportData, n: int) -> str:
    """Say which values coverage is of, and whether the scores are of others."""
    scored = int(data.own["n"])
    text = f"Of {n:,} {data.scored_on} values{data.of_series}{all_steps(data)}"
    if n == scored:
        return f"{text}."
    return f"{text}; the scores are of {scored:,} values{data.of_all}."


def _scale(data: ReportData) -> str:
    """Name what the errors of training are measured in."""
    if data.series:
        return "standard deviations of each series"
    return f"units of {data.forecast.transform.scale_name(data.target)}"


def _training_alt(data: ReportData) -> str:
    history = data.history
    best, epochs = history.best_rmse, history.best_epoch
    return (
        f"Validation RMSE over the epochs, in {_scale(data)}, of "
        f"{counted(history.members, 'member')}: at best {number(float(best.min()))} to "
        f"{number(float(best.max()))}, kept at epochs {epochs.min()} to {epochs.max()}."
    )


def _notes(data: ReportData) -> list[str]:
    notes = (
        *data.notes,
        *data.forecast.notes,
        *data.evaluation.notes,
        *data.explanation.notes,
        *data.history.notes,
    )
    return list(dict.fromkeys(notes))
