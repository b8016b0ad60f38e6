"""From a fitted forecaster and a table to a `ReportData`: everything computed once."""

from __future__ import annotations

import platform
import shlex
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from mvlstm._version import __version__
from mvlstm.data.frame import SeriesFrame
from mvlstm.errors import MVLSTMError
from mvlstm.forecasters.registry import FORECASTERS, forecaster_class
from mvlstm.forecasters.scoring import score_unseen
from mvlstm.results import Evaluation

if TYPE_CHECKING:
    from mvlstm.forecasters.base import AbstractForecaster
    from mvlstm.report import ReportData

CONTRIBUTIONS = 48  # forecasts taken apart
RIVAL = "AR"
LIBRARIES = ("torch", "numpy", "pandas", "scikit-learn")


def gather_report(
    model: AbstractForecaster,
    table: pd.DataFrame,
    *,
    effort: Literal["quick", "default", "full"] = "default",
    contributions: int = CONTRIBUTIONS,
) -> ReportData:
    """Forecast, score and explain; see `AbstractForecaster.report`.

    Parameters
    ----------
    model : AbstractForecaster
        Fitted.
    table : DataFrame
        With the columns of the fit.
    effort : {"quick", "default", "full"}
        How thoroughly to measure importance.
    contributions : int
        Forecasts to take apart.
    """
    from mvlstm.report import ReportData

    frame = model._read(table, "report")
    forecast = model.predict(table)
    evaluation, notes = _with_rival(model, score_unseen(model, forecast, table), table)
    return ReportData(
        model=type(model).__name__,
        forecast=forecast,
        future=model.forecast(table),
        evaluation=evaluation,
        explanation=model.explain(table, effort=effort, contributions=contributions),
        history=model.history_,
        settings={k: v for k, v in model.get_params().items() if k != "verbose"},
        facts=_facts(model, frame),
        profile=_profile(frame),
        command=repeat_command(model, frame),
        notes=(*model.notes_, *frame.notes, *notes),
    )


def _with_rival(
    model: AbstractForecaster, evaluation: Evaluation, table: pd.DataFrame
) -> tuple[Evaluation, tuple[str, ...]]:
    """Put a linear autoregression, fitted to the same rows, beside the model."""
    if RIVAL not in FORECASTERS or type(model).__name__ == RIVAL:
        return evaluation, ()
    try:
        scores = _rival_scores(model, table)
    except MVLSTMError as error:
        return evaluation, (f"{RIVAL} could not be fitted for comparison: {error}",)
    if scores is None or scores["n"].iloc[0] != evaluation.scores["n"].iloc[0]:
        return evaluation, (
            f"{RIVAL} is not compared: the table does not hold the rows the model was fitted to.",
        )
    joined = pd.concat([evaluation.scores, scores])
    return (
        Evaluation(
            target=evaluation.target,
            scores=joined.astype({"n": int}),
            part=evaluation.part,
            period=evaluation.period,
            experts=evaluation.experts,
            notes=evaluation.notes,
        ),
        (),
    )


def _rival_scores(model: AbstractForecaster, table: pd.DataFrame) -> pd.DataFrame | None:
    frame = model._read(table, "report")
    valid, test = part_sizes(model, frame)
    if frame.times[0] != model.borders_.start or not valid:
        return None
    rival = forecaster_class(RIVAL)(
        window=model.window, horizon=model.horizon, missing=model.missing, gaps=model.gaps
    )
    layout = model.layout_
    rival.fit(
        table,
        layout.target,
        time=list(layout.time) or None,
        variables=[v for v in frame.variables if v != frame.target],
        test=test,
        valid=valid,
    )
    return rival.evaluate(table).scores.loc[[RIVAL]]


def part_sizes(model: AbstractForecaster, frame: SeriesFrame) -> tuple[int, int]:
    """Return how many rows of ``frame`` are validation and how many come after it."""
    parts = model.borders_.parts(np.asarray(frame.times)[:, None])[:, 0]
    after = np.asarray(frame.times > model.borders_.calibration)
    return int((parts == "validation").sum()), int(after.sum())


def repeat_command(model: AbstractForecaster, frame: SeriesFrame) -> str:
    """Return the commands that fit the same model to the same rows and report it again."""
    valid, test = part_sizes(model, frame)
    words = ["mvlstm", "fit", "DATA.csv", "--target", frame.target]
    time = list(model.layout_.time)
    if not time and isinstance(frame.times, pd.DatetimeIndex):
        time = [str(frame.times.name or "time")]  # the index, as a file would hold it
    if time:
        words += ["--time", ",".join(time)]
    others = [v for v in frame.variables if v != frame.target]
    for name in others:
        words += ["--variables", name]
    words += ["--test", str(test), "--valid", str(valid)]
    if type(model).__name__ == "MVLSTM":
        defaults = type(model)().get_params()
        changed = {k: v for k, v in model.get_params().items() if v != defaults[k]}
        for name, value in changed.items():
            if name in {"verbose", "window", "members", "seed"}:
                continue
            words += (
                [f"--{name.replace('_', '-')}", str(value)]
                if value is not True
                else [f"--{name.replace('_', '-')}"]
            )
        for name in ("window", "members", "seed"):
            words += [f"--{name}", str(getattr(model, name))]
    fit = " ".join(shlex.quote(w) for w in [*words, "--out", "model.safetensors"])
    return f"{fit}\nmvlstm report model.safetensors DATA.csv --out report.html"


def _facts(model: AbstractForecaster, frame: SeriesFrame) -> dict[str, str]:
    from mvlstm.report.encode import time_text

    borders = model.borders_
    valid, test = part_sizes(model, frame)
    facts = {
        "Target": frame.target,
        "Period": f"{time_text(frame.times[0])} to {time_text(frame.times[-1])}",
        "Rows": f"{frame.n_rows:,} rows, {frame.n_variables} variables",
        "Trained on": f"{time_text(borders.start)} to {time_text(borders.train)}",
        "Validation": f"to {time_text(borders.calibration)}, {valid:,} rows",
        "Unseen": f"{test:,} rows",
        "Fit took": _seconds(getattr(model, "fit_seconds_", None)),
        "Seed": str(getattr(model, "seed", "none")),
        "mvlstm": __version__,
        "Python": platform.python_version(),
    }
    for name in LIBRARIES:
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            continue
    return facts


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f} s"


def _profile(frame: SeriesFrame) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    for place, name in enumerate(frame.columns):
        values = frame.values[:, place]
        rows.append(
            {
                "variable": name,
                "lowest": values.min(),
                "median": float(np.median(values)),
                "highest": values.max(),
                "sd": values.std(),
            }
        )
    return pd.DataFrame(rows)
