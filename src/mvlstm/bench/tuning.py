"""Building a job's forecaster, and choosing its settings on validation rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mvlstm.bench.cells import Cell
from mvlstm.bench.spec import Job
from mvlstm.errors import MVLSTMError, TrainingError
from mvlstm.evaluate.methods import find_method, quick_epochs
from mvlstm.methods.network.base import AbstractNetwork
from mvlstm.methods.network.members import MEMBER_SETTINGS, member_errors
from mvlstm.model.fitted import Fitted
from mvlstm.model.fitting import fit
from mvlstm.model.forecaster import AbstractForecaster, require_whole
from mvlstm.problem.problem import Problem
from mvlstm.train.config import Member, make_members

MOST_MEMBERS = 128  # trained as one batch


def is_batched(job: Job) -> bool:
    """Say whether a method's members may differ in their settings."""
    return is_network(job) and find_method(job.base).kind.members_differ


def is_network(job: Job) -> bool:
    """Say whether a method trains members with seeds of their own."""
    method = find_method(job.base)
    return method.kind.ensemble and "members" in method.parameters


def is_random(job: Job) -> bool:
    """Say whether repeats with other seeds give other results."""
    method = find_method(job.base)
    return "seed" in method.parameters and method.kind.seed_matters


def build(job: Job, cell: Cell, /, *, device: str, **changes: Any) -> AbstractForecaster:
    """Return a job's forecaster with its settings and some changes, not fitted."""
    method = find_method(job.base)
    given: dict[str, Any] = {
        **cell.options,
        "window": job.window,
        "horizon": job.horizon,
        "seed": job.seed,
        "device": device,
        "verbose": 0,
    }
    settings = method.known(given)
    if job.windows_seen and "max_epochs" in method.parameters:
        n_train = cell.frame.n_rows - cell.test - cell.valid
        n_train = n_train // (job.window + 1) if cell.apart else n_train
        most = {} if job.most_epochs is None else {"most": job.most_epochs}
        settings["max_epochs"] = quick_epochs(n_train, windows=job.windows_seen, **most)
    return method.create(settings | job.settings | method.known(changes))


def tune(job: Job, cell: Cell, *, device: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Try every setting of a job's grid; return the best, one or ``blend``, and what each came to.

    Settings of the training that may differ between members are one batch for each combination
    of the others. The best has the least error (the job's ``measure``) on the validation rows that
    stop training (``choose``), in the mean over its seeds. Where such settings are tried with
    several seeds, and an ensemble is to be fitted, the seeds are judged as one instead, on all
    validation rows. No
    more settings are returned than there are members to share, and one for a method whose members
    are all alike.
    """
    if not job.grid:
        return [{}], []
    inner = [name for name in job.grid if is_batched(job) and name in MEMBER_SETTINGS]
    outer = [name for name in job.grid if name not in inner]
    judged = f"valid_{job.measure}"
    tried: list[dict[str, Any]] = []
    for values in itertools.product(*(job.grid[name] for name in outer)):
        chosen = dict(zip(outer, values, strict=True))
        if is_batched(job):
            tried += _members(job, cell, chosen, inner, device)
        else:
            tried.append({**chosen, judged: _single(job, cell, chosen, device)})
    usable = [one for one in tried if np.isfinite(one[judged])]
    if not usable:
        raise TrainingError(
            f"None of the {len(tried)} settings of {job.label} could be trained; see its grid."
        )
    most = min(job.blend, job.members) if is_batched(job) else 1
    best = sorted(usable, key=lambda one: one[judged])[:most]
    return [{name: one[name] for name in job.grid} for one in best], tried


def _members(
    job: Job, cell: Cell, chosen: dict[str, Any], inner: list[str], device: str
) -> list[dict[str, Any]]:
    """Train every combination of the members' settings, with every seed, as one batch."""
    combinations = [
        dict(zip(inner, values, strict=True))
        for values in itertools.product(*(job.grid[name] for name in inner))
    ]
    seeds = job.tune_seeds
    model: Any = build(job, cell, device=device, **chosen)
    plain = vars(model.training)
    members: list[Member] = []
    for one in combinations:
        own: dict[str, Any] = {name: float((plain | one)[name]) for name in MEMBER_SETTINGS}
        members += make_members(job.seed, seeds, **own)
    together = seeds if job.members > 1 else 1
    at_once = max(1, MOST_MEMBERS // seeds) * seeds
    errors: list[float] = []
    for start in range(0, len(members), at_once):
        model = build(job, cell, device=device, **chosen)
        assert isinstance(model, AbstractNetwork)
        found = member_errors(
            model,
            cell.frame,
            members[start : start + at_once],
            test=cell.test,
            valid=cell.valid,
            preparation=cell.preparation,
            together=together,
            ensemble=job.members,
            measure=job.measure,
            choose=cell.choose,
        )
        errors += [float(error) for error in found]
    each = np.array(errors).reshape(len(combinations), -1)
    return [
        {**chosen, **one, f"valid_{job.measure}": float(row.mean())}
        for one, row in zip(combinations, each, strict=True)
    ]


def _single(job: Job, cell: Cell, chosen: dict[str, Any], device: str) -> float:
    """Fit one setting; return its error on the rows that select, infinite if it fails."""
    model = build(job, cell, device=device, **chosen, members=job.tune_seeds)
    try:
        fitted, problem = fit_cell(model, cell)
    except MVLSTMError:
        return float("inf")
    forecast = fitted.forecast(problem.prepared, problem.origins["stop"])
    return float(forecast.score(part="all")[job.measure])


def fit_cell(
    model: AbstractForecaster,
    cell: Cell,
    members: Sequence[Member] = (),
    ensemble: int | None = None,
) -> tuple[Fitted, Problem]:
    """Fit whole or not at all: Ctrl-C does not leave a model trained for less than others."""
    model.check()
    fitted, problem = fit(
        model,
        cell.frame,
        test=cell.test,
        valid=cell.valid,
        preparation=cell.preparation,
        members=members,
        ensemble=ensemble,
        choose=cell.choose,
    )
    require_whole(fitted)
    return fitted, problem
