"""From a fitted forecaster and a table to a `ReportData`: everything computed once."""

from __future__ import annotations

import platform
import time as clock
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from mvlstm._version import __version__
from mvlstm.errors import DataError, MVLSTMError, check_time_limit, warn
from mvlstm.model.decomposition import count_apart
from mvlstm.model.explaining import explain
from mvlstm.model.fitted import Fitted
from mvlstm.model.fitting import fit
from mvlstm.model.method import AbstractMethod
from mvlstm.model.predicting import forecast as forecast_next
from mvlstm.model.predicting import predict
from mvlstm.model.registry import forecaster_class, is_registered
from mvlstm.model.scoring import forecast_unseen, score_unseen
from mvlstm.plot import future_table
from mvlstm.problem.part_times import PartTimes
from mvlstm.problem.problem import Run
from mvlstm.progress import Advance, show_tasks
from mvlstm.report import ReportData, check_libraries, render_report
from mvlstm.report.command import repeat_commands
from mvlstm.report.encode import are_days, time_text
from mvlstm.results import Evaluation, Forecast
from mvlstm.storage import check_place, write_atomic
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.spacing import describe_time
from mvlstm.types import BoolArray

CONTRIBUTIONS = 48  # forecasts taken apart, of several steps fewer
PAGE_SHARE = 0.85  # of a time limit until the page is drawn
RIVALS: dict[str, dict[str, Any]] = {"AR": {}, "GBT": {"grid": "quick", "max_rounds": 40}}
GROWN = 20_000_000  # rows x inputs x steps that trees are grown from, about 30 s of one core
LONGEST = 60.0  # seconds that the fit of a rival may take
FEWEST_ROWS = 300  # that trees can learn from
KEPT = ("missing", "gaps", "fill_limit", "duplicates")  # settings that rivals share
RIVAL_SHARE = 0.25  # of a time limit
SLOW_START = 1  # trees of the first step wait for libraries to load
LATE = "the time limit of this report left no room for it."
SLOW = f"fitting it would take more than {LONGEST:.0f} s."
MOST_SERIES = 12  # that can be chosen from
LIBRARIES = ("torch", "numpy", "pandas", "scikit-learn")


def write_report(
    method: AbstractMethod,
    fitted: Fitted,
    table: Any,
    path: str | Path | None,
    *,
    future: pd.DataFrame | None,
    effort: Literal["quick", "default", "full"],
    title: str | None,
    time_limit: float | None = None,
) -> ReportData:
    """Gather everything and write the page, if there is a path; see `model.report`."""
    check_libraries()
    if path is not None:
        check_place(path)  # before all the work
    told: dict[str, Any] = {"effort": effort, "time_limit": time_limit}
    data = gather_report(method, fitted, table, future=future, **told)
    if path is not None:
        write_atomic(path, render_report(data, title=title))
    return data


def gather_report(
    method: AbstractMethod,
    fitted: Fitted,
    table: Any,
    *,
    future: pd.DataFrame | None = None,
    effort: Literal["quick", "default", "full"] = "default",
    time_limit: float | None = None,
) -> ReportData:
    """Forecast, score and explain with a fitted model; see `AbstractForecaster.report`."""
    started, limit = clock.monotonic(), check_time_limit(time_limit)
    given = future is not None
    if future is not None:
        table = fitted.joined(table, future)
    frame = fitted.read(table, "report")  # checked once: what follows takes the frame
    with show_tasks(method.verbose, "report", 2) as advance:
        forecast = predict(fitted, frame)
        advance("rows forecast")
        scores = score_unseen(fitted, forecast, fitted.prepare(frame))
        advance("forecasts scored")
    time = (limit, started + RIVAL_SHARE * limit)
    rivals, notes = _rivals(method, fitted, scores, frame, time)
    evaluation = replace(scores, scores=pd.concat([scores.scores, *rivals]).astype({"n": int}))
    ahead, next_notes = _next(fitted, frame, forecast)
    count = min(CONTRIBUTIONS, count_apart("default", fitted.horizon))
    left = PAGE_SHARE * limit - (clock.monotonic() - started)
    explanation = explain(
        fitted,
        frame,
        effort=effort,
        contributions=count if frame.panel is None else 0,
        time_limit=None if time_limit is None else max(left, 1.0),
        verbose=method.verbose,
    )
    shown, values, others = "", None, {}
    if explanation.by_series is not None:  # the figures of forecasts show one series at a time
        shown, values = str(explanation.by_series["series"].iloc[0]), future_table(ahead)
        one = explanation.of_series(shown)
        explanation = replace(one, importance=explanation.importance, notes=explanation.notes)
        others = {
            name: (_one_series(forecast, name), _one_series(ahead, name))
            for name in _selected(evaluation, shown)
        }
        forecast, ahead = _one_series(forecast, shown), _one_series(ahead, shown)
        next_notes = (*next_notes, _series_note(evaluation, shown))
    return ReportData(
        model=fitted.name,
        forecast=forecast,
        future=ahead,
        evaluation=evaluation,
        explanation=explanation,
        history=fitted.history,
        settings={k: v for k, v in method.get_params().items() if k != "verbose"},
        facts=_facts(method, fitted, frame),
        profile=_profile(frame),
        command=repeat_command(method, fitted, frame, future=given),
        notes=(*fitted.notes, *frame.notes, *notes, *next_notes),
        series=shown,
        next_values=values,
        others=others,
    )


def _next(
    fitted: Fitted, frame: SeriesFrame, forecast: Forecast
) -> tuple[Forecast, tuple[str, ...]]:
    """Forecast what comes next; where that cannot be forecast, return the last forecasts."""
    if frame.layout.known and frame.future is None:
        note = (
            f"The table has no rows after {describe_time(frame.clock[-1])} with "
            f"{', '.join(frame.layout.known)}, known ahead: there is no look ahead, and the "
            "forecasts shown at the end are of its last rows. Add these rows, or pass them as "
            "future=...."
        )
    else:
        try:
            return forecast_next(fitted, frame), ()
        except DataError as error:
            note = (
                "There is no look ahead, and the forecasts shown at the end are of the last rows "
                f"that have one. {error}"
            )
    warn(note)
    names = np.zeros(len(forecast)) if forecast.series is None else forecast.series
    last = np.append(names[1:] != names[:-1], True)  # of each series
    return forecast.take(last), (note,)


def _one_series(forecast: Forecast, name: str) -> Forecast:
    assert forecast.series is not None
    return replace(forecast.take(np.asarray(forecast.series == name)), series=None)


def _selected(evaluation: Evaluation, shown: str) -> list[str]:
    """Return other series to choose from: of very many, from the worst to the best forecast."""
    assert evaluation.by_series is not None
    ranked = evaluation.by_series.sort_values("skill")["series"].astype(str)
    names = ranked[ranked != shown].tolist()
    if len(names) >= MOST_SERIES:
        places = np.linspace(0, len(names) - 1, MOST_SERIES - 1).round().astype(int)
        names = [names[place] for place in places]
    return sorted(names)


def _series_note(evaluation: Evaluation, shown: str) -> str:
    """Say which series the figures show, and how well the others fare."""
    table = evaluation.by_series
    assert table is not None
    text = (
        f"The figures of forecasts show series '{shown}', one of the {len(table):,} that could be "
        "scored; scores and importance are of all of them."
    )
    ranked = table.dropna(subset="skill").sort_values("skill")  # none where persistence is exact
    if ranked.empty:
        return text
    worst, best = ranked.iloc[0], ranked.iloc[-1]
    return (
        f"{text} The skill lies between {worst['skill']:.2f} ('{worst['series']}') and "
        f"{best['skill']:.2f} ('{best['series']}')."
    )


class _TooSlow(MVLSTMError):
    """A rival is not done in the time that it has."""


def _rivals(
    method: AbstractMethod,
    fitted: Fitted,
    evaluation: Evaluation,
    frame: SeriesFrame,
    time: tuple[float, float],
) -> tuple[list[pd.DataFrame], list[str]]:
    """Score a linear autoregression and boosted trees, fitted to the same rows as the model.

    ``time`` is the limit of the report, and until when they have to be done.
    """
    tables, notes = [], []
    for name in [name for name in RIVALS if name != fitted.name]:
        scores: pd.DataFrame | str
        try:
            scores = _rival_scores(name, method, fitted, frame, time)
        except _TooSlow:
            scores = SLOW if time[0] == np.inf else LATE
        except MVLSTMError as error:
            scores = f"it could not be fitted: {error}"
        if isinstance(scores, str):
            notes.append(f"{name} is not compared: {scores}")
        elif scores["n"].iloc[0] != evaluation.scores["n"].iloc[0]:
            notes.append(f"{name} is not compared: it forecasts other rows.")
        else:
            tables.append(scores)
    return tables, notes


def _rival_scores(
    name: str,
    method: AbstractMethod,
    fitted: Fitted,
    frame: SeriesFrame,
    time: tuple[float, float],
) -> pd.DataFrame | str:
    """Return a rival's scores, or why it has none."""
    limit, deadline = time
    if clock.monotonic() > deadline:
        raise _TooSlow
    valid, test = part_sizes(fitted.parts, frame)
    if frame.clock[0] != fitted.parts.start or not valid:
        return "the table does not hold the rows the model was fitted to."
    most = GROWN * min(1.0, RIVAL_SHARE * limit / 30.0) if name == "GBT" else np.inf
    rows = most / (fitted.window * len(frame.columns) * fitted.horizon)
    if (few := _latest(frame, rows, valid + test)) is None:
        full = GROWN / (fitted.window * len(frame.columns) * fitted.horizon)
        if _latest(frame, full, valid + test) is not None:
            return LATE
        return "there are too many columns and steps ahead to grow trees in a moment."
    transform = fitted.preparation.transform
    rival: AbstractMethod = forecaster_class(name)(
        window=fitted.window,
        horizon=fitted.horizon,
        calendar=fitted.layout.calendar or "none",
        **{name: getattr(method, name) for name in KEPT},
        transform=transform.name,
        bounds=transform.bounds,
        verbose=0,
        **RIVALS[name],
    )
    with (
        show_tasks(method.verbose, f"report, {name} to compare with", 1) as advance,
        threadpool_limits(1, "openmp"),  # threads of trees wait for one another on busy cores
    ):
        run = Run(advance=_until(min(deadline, clock.monotonic() + LONGEST), advance))
        found, _ = fit(rival, few, test=test, valid=valid, run=run)
        prepared, made = forecast_unseen(found, few)
        return score_unseen(found, made, prepared).scores.loc[[name]]


def _until(deadline: float, advance: Advance) -> Advance:
    """Tell of progress until what is done at this pace, but for a slow start, would be late."""
    start, done = clock.monotonic(), 0

    def told(text: str, *, steps: int = 1, of: int | None = None) -> None:
        nonlocal start, done
        done, now = done + steps, clock.monotonic()
        if done == SLOW_START:
            start = now
        each = (now - start) / (done - SLOW_START) if done > SLOW_START else 0.0
        if done < (of or done) and now + each * ((of or done) - done) > deadline:
            raise _TooSlow
        advance(text, steps=steps, of=of)

    return told


def _latest(frame: SeriesFrame, rows: float, kept: int) -> SeriesFrame | None:
    """Return the latest times with about this many rows before the last ``kept`` times."""
    each = max(1, len(frame.last_rows()) if frame.panel is not None else 1)
    times = len(frame.clock) - kept
    if rows >= times * each:
        return frame
    if rows < FEWEST_ROWS:
        return None
    return frame.rows(frame.order >= times - int(rows / each))


def part_sizes(parts: PartTimes, frame: SeriesFrame) -> tuple[int, int]:
    """Return how many times of ``frame`` are validation and how many come after it."""
    valid, after = _parts(parts, frame)
    return int(valid.sum()), int(after.sum())


def _parts(parts: PartTimes, frame: SeriesFrame) -> tuple[BoolArray, BoolArray]:
    """Say which times of ``frame`` are validation and which come after it."""
    names = parts.names(np.asarray(frame.clock)[:, None])[:, 0]
    return names == "validation", np.asarray(frame.clock > parts.calibration)


def repeat_command(
    method: AbstractMethod, fitted: Fitted, frame: SeriesFrame, *, future: bool = False
) -> str:
    """Return the commands that fit the same model to the same rows and report it again.

    With ``future`` the report reads what is known ahead from a file. There are no commands, and
    the text is empty, for what the command line does not fit: other forecasters, updated models,
    and those without validation rows.
    """
    valid, test = part_sizes(fitted.parts, frame)
    ours = fitted.name == "MVLSTM" and is_registered(type(method))
    if not ours or fitted.updates or not valid:
        return ""
    layout, params, defaults = fitted.layout, method.get_params(), type(method)().get_params()
    time = list(layout.time)
    if not time and isinstance(frame.times, pd.DatetimeIndex):
        time = [str(frame.times.name or "time")]  # the index, as a file would hold it
    options = {
        "target": frame.target,
        "time": time,
        "series": layout.series,
        "variables": layout.variables or (),
        "known": layout.known,
        "categorical": layout.categories,
        "test": test,
        "valid": valid,
    }
    always = ("window", "members", "seed")
    options |= {
        name: value
        for name, value in params.items()
        if name not in ("verbose", *always) and not np.array_equal(value, defaults[name])
    }
    options |= {name: params[name] for name in always}
    return repeat_commands(options, future=future)


def _facts(method: AbstractMethod, fitted: Fitted, frame: SeriesFrame) -> dict[str, str]:
    parts = fitted.parts
    valid, test = (int(part[frame.order].sum()) for part in _parts(parts, frame))  # rows
    days = are_days(frame.clock)
    ends = (frame.clock[0], frame.clock[-1], parts.start, parts.train, parts.calibration)
    first, last, start, train, calibration = (time_text(t, days=days) for t in ends)
    numbered = not isinstance(frame.times, pd.DatetimeIndex) and frame.times.name is None
    unit = "rows " if numbered else ""
    transform, life = fitted.preparation.transform, {}
    if transform:
        life["Modelled as"] = transform.scale_name(frame.target)
    if fitted.updates:
        life["Updates"] = f"{len(fitted.updates)}, the last {fitted.updates[-1].when}"
    series = "" if frame.panel is None else f", {len(frame.last_rows()):,} series"
    facts = {
        "Target": frame.target,
        "Period": f"{unit}{first} to {last}",
        "Rows": f"{frame.n_rows:,} rows, {frame.n_variables} variables{series}",
        "Trained on": f"{unit}{start} to {train}",
        "Validation": f"to {'row ' if numbered else ''}{calibration}, {valid:,} rows",
        "Unseen": f"{test:,} rows",
        "Fit took": f"{fitted.seconds:.0f} s",
        **life,
        "Seed": str(getattr(method, "seed", "none")),
        "mvlstm": __version__,
        "Python": platform.python_version(),
    }
    for name in LIBRARIES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            continue
    return facts


def _profile(frame: SeriesFrame) -> pd.DataFrame:
    """Return one row per variable: range and spread of numbers, levels of categories."""
    kept = np.flatnonzero(frame.layout.measured)
    values = frame.values[:, kept]
    columns = {
        "variable": [frame.columns[place] for place in kept],
        "lowest": values.min(axis=0),
        "median": np.median(values, axis=0),
        "highest": values.max(axis=0),
        "sd": [frame.values[:, place].std() for place in kept],  # as exact as of one column
    }
    found, categories = pd.DataFrame(columns), pd.DataFrame(_categories(frame))
    if categories.empty:
        return found
    joined = pd.concat([found.iloc[:-1], categories, found.iloc[-1:]], ignore_index=True)
    return joined.fillna({"levels": ""})


def _categories(frame: SeriesFrame) -> list[dict[str, Any]]:
    """Return one row per categorical variable: its number of levels, and the most frequent one."""
    rows = []
    for name, levels in frame.layout.levels:
        group = frame.layout.names.index(name)
        columns = [c for c, n in enumerate(frame.layout.groups) if n == group]
        counts = frame.values[:, columns].sum(axis=0)
        most = levels[int(counts.argmax())]
        rows.append({"variable": name, "levels": f"{len(levels):,}, most often {most}"})
    return rows
