"""One job from end to end: choose on validation, repeat, score, look inside, record."""

from __future__ import annotations

import time as clock
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mvlstm.bench.cells import Cell, build_cell
from mvlstm.bench.records import Arrays
from mvlstm.bench.scoring import Scored, average, forecast_cell, references, score
from mvlstm.bench.spec import Job, check_source
from mvlstm.bench.studies import load_study
from mvlstm.bench.tuning import build, fit_cell, is_batched, is_network, is_random, tune
from mvlstm.errors import DataError
from mvlstm.evaluate.methods import find_method
from mvlstm.methods.network.base import AbstractNetwork
from mvlstm.methods.network.members import (
    MEMBER_SETTINGS,
    refitted,
    take_members,
    with_all_rows,
    with_weights,
)
from mvlstm.model.forecaster import FREE_SETTINGS, AbstractForecaster
from mvlstm.problem.problem import Problem
from mvlstm.train.config import make_members

SCRAMBLED = ("importance", "error_increase", "error_increase_low", "error_increase_high", "verdict")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What a job found: a record without its circumstances, and the errors row by row."""

    record: dict[str, Any]
    arrays: Arrays


@dataclass(frozen=True, eq=False)
class Fits:
    """The fits of one job's chosen setting, a forecast for each repeat."""

    singles: list[Scored]
    ensembles: list[Scored]  # one of all repeats where an ensemble has one member
    shown: AbstractForecaster  # fitted, to look into; of several settings that of the best
    problem: Problem  # what it learned from
    choices: list[dict[str, Any]] = field(default_factory=list)  # of the fits, by repeat


def run_job(job: Job, *, device: str = "auto") -> Outcome:
    """Run one job; whatever goes wrong is raised."""
    check_source(job)
    with warnings.catch_warnings(action="ignore"):
        return (_search_job if job.kind == "search" else _forecast_job)(job, device)


def _search_job(job: Job, device: str) -> Outcome:
    """Try settings on validation rows; the test rows are not used."""
    started = clock.monotonic()
    cell = build_cell(job, local=find_method(job.base).kind.local)
    best, tried = tune(job, cell, device=device)
    record = {
        "target": cell.target,
        "settings": dict(job.settings),
        "chosen": best[0],
        "tuning": tried,
        "data": cell.facts,
        "timings": {"total": clock.monotonic() - started},
    }
    return Outcome(record, {})


def _forecast_job(job: Job, device: str) -> Outcome:
    started = clock.monotonic()
    cell = build_cell(job, local=find_method(job.base).kind.local)
    loaded = clock.monotonic()
    best_settings, tried = tune(job, cell, device=device)
    tuned = clock.monotonic()
    fits = _fit_all(job, cell, best_settings, device)
    fitted = clock.monotonic()
    best = (fits.ensembles or fits.singles)[0]
    record: dict[str, Any] = {
        "target": cell.target,
        "settings": _plain(fits.shown.get_params()),
        "chosen": best_settings[0],
        **({"blended": best_settings} if len(best_settings) > 1 else {}),
        "tuning": tried,
        **({"choices": fits.choices} if any(fits.choices) else {}),
        "windows": {part: len(rows) for part, rows in fits.problem.origins.items()},
        "n": len(best.rows),
        "single": _columns([score(one, cell) for one in fits.singles]),
        "ensemble": _columns([score(one, cell) for one in fits.ensembles]),
        **references(best, cell),
        "notes": list(fits.shown.notes_) + list(fits.shown.history_.notes),
        "data": cell.facts,
    }
    scored = clock.monotonic()
    record |= load_study(job.study).evidence(fits.shown, fits.problem)
    record["importance"] = _importance(fits.shown, cell, scramble=job.explain)
    record["timings"] = {
        "load": loaded - started,
        "tune": tuned - loaded,
        "fit": fitted - tuned,
        "score": scored - fitted,
        "explain": clock.monotonic() - scored,
        "total": clock.monotonic() - started,
    }
    arrays: Arrays = {"rows": best.rows.astype(np.int32)}
    for name, repeats in (("single", fits.singles), ("ensemble", fits.ensembles)):
        if repeats:
            arrays[name] = repeats[0].errors
        if len(repeats) > 1:  # of all of them, the root of their mean square
            squares = [np.square(one.errors) for one in repeats]
            arrays[f"{name}s"] = np.sqrt(np.mean(squares, axis=0))
    return Outcome(record, arrays)


def _fit_all(job: Job, cell: Cell, settings: list[dict[str, Any]], device: str) -> Fits:
    """Fit the best setting, or several with a share of the members each, and blend them."""
    n = len(settings)
    if n == 1:
        apart = is_network(job) and not is_batched(job) and job.members > 1
        fit = _fit_apart if apart else _fit_network if is_network(job) else _fit_each
        return fit(job, cell, settings[0], device)
    shares = [(job.members + i) // n for i in reversed(range(n))]  # of the members, best first
    each = [
        _fit_network(
            replace(job, members=share), cell, one, device, sum(shares[:place]), job.members
        )
        for place, (share, one) in enumerate(zip(shares, settings, strict=True))
    ]
    groups = [
        one.ensembles if share > 1 else one.singles for share, one in zip(shares, each, strict=True)
    ]
    blends = [average(parts) for parts in zip(*groups, strict=True)]
    return Fits(each[0].singles, blends, each[0].shown, each[0].problem)


def _fit_network(
    job: Job,
    cell: Cell,
    chosen: dict[str, Any],
    device: str,
    first: int = 0,
    ensemble: int | None = None,
) -> Fits:
    """Train all repeats and members as one batch, then take them apart.

    ``first`` is the place of the first member in its ensemble, from which its seed follows;
    ``ensemble`` how many that has in all, where these are a share of it. With the job's ``refit``
    the members are then trained again on all rows but those of the test; the intervals, and the
    forecasts of validation rows, are those of before.
    """
    R, K = job.repeats, job.members
    model = build(job, cell, device=device, **chosen, members=R * K)
    assert isinstance(model, AbstractNetwork)
    members = []
    if is_batched(job):
        same: dict[str, Any] = {name: getattr(model.training, name) for name in MEMBER_SETTINGS}
        members = [
            member
            for r in range(R)
            for member in make_members(job.seed + r, K, first=first, ensemble=r, **same)
        ]
    fitted, problem = fit_cell(model, cell, members, ensemble or K)
    again = refitted(model, fitted, problem) if job.refit else None

    def part(rows: slice) -> tuple[AbstractForecaster, Scored]:
        whole = rows.stop - rows.start == R * K
        few = before = fitted if whole else take_members(fitted, problem, rows)
        if again is not None:
            few = with_weights(before, again.trained.take(rows), with_all_rows(problem))
        shown = model.holding(few, members=rows.stop - rows.start)
        return shown, forecast_cell(few, problem, cell, before=before)

    firsts = [part(slice(r * K, r * K + 1)) for r in range(R)]
    if K > 1:
        groups = [part(slice(r * K, (r + 1) * K)) for r in range(R)]
    else:
        groups = [part(slice(0, R))] if R > 1 else []
    singles, ensembles = ([scored for _, scored in parts] for parts in (firsts, groups))
    shown, _ = (groups or firsts)[0]
    return Fits(singles, ensembles, shown, problem, [fitted.learned.choices()])


def _fit_apart(job: Job, cell: Cell, chosen: dict[str, Any], device: str) -> Fits:
    """Fit one ensemble after the other, each with a choice of variables by its own seed."""
    each = [
        _fit_network(replace(job, seed=job.seed + r, repeats=1), cell, chosen, device)
        for r in range(job.repeats)
    ]
    singles = [one for fits in each for one in fits.singles]
    ensembles = [one for fits in each for one in fits.ensembles]
    choices = [one for fits in each for one in fits.choices]
    return Fits(singles, ensembles, each[0].shown, each[0].problem, choices)


def _fit_each(job: Job, cell: Cell, chosen: dict[str, Any], device: str) -> Fits:
    """Fit once for every seed; the average of all is the ensemble.

    With the job's ``refit`` each is then fitted to all rows but those of the test, with what it
    chose; the intervals, and the forecasts of validation rows, are those of before.
    """
    singles: list[Scored] = []
    choices: list[dict[str, Any]] = []
    for repeat in range(job.repeats if is_random(job) else 1):
        own = {"members": job.members, "seed": job.seed + repeat}
        model = build(job, cell, device=device, **chosen, **own)
        before, problem = fit_cell(model, cell)
        choices.append(before.learned.choices())
        fitted = before
        if job.refit:
            again = model.learn_again(before.learned, with_all_rows(problem))
            fitted = before.with_learned(again)
        singles.append(forecast_cell(fitted, problem, cell, before=before))
        if repeat == 0:
            shown, its_problem = model.holding(fitted), problem
    ensembles = [average(singles)] if len(singles) > 1 else []
    return Fits(singles, ensembles, shown, its_problem, choices)


def _importance(
    model: AbstractForecaster, cell: Cell, *, scramble: bool
) -> list[dict[str, Any]] | None:
    """Return one row per variable: the method's own importance, and that of scrambling."""
    names = cell.frame.variables
    rows: dict[str, dict[str, Any]] = {name: {"variable": name} for name in names}
    own = model.fitted_.learned.own_importance(model.fitted_.layout.groups)
    if own is not None:
        for name, value in zip(names, own, strict=True):
            rows[name]["own"] = float(value)
    if scramble and not cell.apart:
        try:
            with warnings.catch_warnings(action="ignore"):
                table = model.explain(cell.table, effort="quick", contributions=0).importance
        except DataError:  # too few test rows to scramble; the scores stand all the same
            table = None
        if table is not None:
            for values in table.to_dict(orient="records"):
                rows[values["variable"]] |= {name: values[name] for name in SCRAMBLED}
    filled = [row for row in rows.values() if len(row) > 1]
    return filled or None


def _columns(scores: list[dict[str, Any]]) -> dict[str, list[Any]] | None:
    """Turn a list of scores into a list for each score."""
    if not scores:
        return None
    return {name: [one[name] for one in scores] for name in scores[0]}


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in sorted(settings.items())
        if name not in FREE_SETTINGS
    }
