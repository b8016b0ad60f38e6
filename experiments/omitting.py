"""What `explain` says of a variable, next to a model that is fitted again without it.

A model is fitted to all columns, explained, and fitted again without each exogenous variable,
without each group of correlated ones, and without any. The Diebold-Mariano test says whether it
then errs more on the same unseen rows.
"""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.power import MODELS
from mvlstm import datasets
from mvlstm.bench.spec import Job
from mvlstm.evaluate.methods import find_method
from mvlstm.metrics import diebold_mariano
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.results import Explanation
from mvlstm.types import FloatArray

Settings = dict[str, Any]
SHARE = 0.2  # of the rows, left unseen
WINDOW = 24
YEAR = 8_760  # rows that a network is fitted to, the last ones
PER_SET = {"pm25": (1, 6, 24), "energy": (1, 6, 24), "etth2": (24,)}


def omitting_jobs(
    part: str, *, repeats: int | None = None, members: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield what the jobs differ in: data set, horizon, method; a network leaves out fewer."""
    for method in ("ar", "mvlstm"):
        for case, horizons in PER_SET.items():
            for horizon in horizons:
                settings = {"case": case, "rows": 0 if method == "ar" else YEAR}
                yield {
                    "part": part,
                    "dataset": case,
                    "method": method,
                    "label": method,
                    "window": WINDOW,
                    "horizon": horizon,
                    "settings": settings | {"singles": method == "ar" or case == "etth2"},
                }


def omitting_record(job: Job, device: str = "cpu") -> dict[str, Any]:
    """Run one job and return its record."""
    started, data = clock.process_time(), datasets.load(job.dataset)
    table = data.frame.tail(int(job.settings["rows"])) if job.settings["rows"] else data.frame
    options = {"window": job.window, "horizon": job.horizon, **data.model_options}
    with warnings.catch_warnings(action="ignore"):
        whole = _fitted(job.method, table, data.target, options, device)
        explained = whole.explain(table, contributions=0)
        plain = _errors(whole, table)
        without = [
            _without(job, table, data.target, options, list(names), plain, device)
            for names in _families(explained, bool(job.settings["singles"]))
        ]
    kept = ["variable", "error_increase", "error_increase_low", "error_increase_high"]
    rows = explained.importance[[*kept, "model_increase", "refit_increase", "leans_on", "verdict"]]
    return {
        "omitted": {
            "mse": float(np.mean(plain**2)),
            "whole": explained.whole,
            "importance": _plain(rows),
            "groups": [] if explained.groups is None else _plain(explained.groups),
            "without": without,
        },
        "timings": {"total": round(clock.process_time() - started, 1)},
    }


# ------------------------------------------------------------------------------------- inner parts


def _families(explained: Explanation, singles: bool) -> Iterator[tuple[str, ...]]:
    """Yield the sets of variables that are left out: all exogenous ones, groups, single ones."""
    names = [str(v) for v in explained.importance["variable"] if v != explained.target]
    yield tuple(names)
    if singles:
        if explained.groups is not None:
            yield from (tuple(str(group).split(" + ")) for group in explained.groups["group"])
        yield from ((name,) for name in names)


def _fitted(
    method: str, table: pd.DataFrame, target: str, options: Settings, device: str
) -> AbstractForecaster:
    name, settings = MODELS[method]
    found = find_method(name.lower())
    shared = found.known({**settings, **options, "device": device, "verbose": 0})
    return found.create(shared).fit(table, target, test=SHARE)


def _errors(model: AbstractForecaster, table: pd.DataFrame) -> FloatArray:
    """Return the errors (n, H) of the rows that the model has not seen."""
    forecast = model.predict(table)
    new = (forecast.part == "new").all(axis=1) & np.isfinite(forecast.actual).all(axis=1)
    return np.asarray((forecast.members.mean(axis=0) - forecast.actual)[new])


def _without(
    job: Job,
    table: pd.DataFrame,
    target: str,
    options: Settings,
    names: list[str],
    plain: FloatArray,
    device: str,
) -> dict[str, Any]:
    """Say by how much the model errs more that was fitted without these variables."""
    less = table.drop(columns=names)
    errors = _errors(_fitted(job.method, less, target, options, device), less)
    rms = [np.sqrt(np.mean(one**2, axis=1)) for one in (plain, errors)]
    tested = diebold_mariano(*rms, horizon=job.horizon)
    rise = float(np.mean(errors**2) - np.mean(plain**2))
    return {"without": names, "rise": rise, "p": float(f"{tested.p_value:.3g}")}


def _plain(rows: pd.DataFrame) -> Sequence[dict[str, Any]]:
    rounded = rows.map(lambda v: float(f"{v:.4g}") if isinstance(v, float) else v)
    return [{str(k): v for k, v in row.items()} for row in rounded.to_dict("records")]
