"""The importance suite: whether a measure of importance finds what is known to be true.

Data sets with known drivers, null controls without any, and methods that rank variables. A job is
a plain dictionary of settings and gives a plain record; `jobs` lists those of a stage. Measures
and settings are chosen on the generator seeds of the stage "choice" and confirmed on others; the
stage "faithful" tries trainings that might make attention faithful.
"""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from experiments.candidates import CANDIDATES, build_candidate
from experiments.controls import CONTROLS, NULL_CONTROLS, make_control
from experiments.faithfulness import faithfulness_areas, faithfulness_curves
from experiments.granger_tests import difference, granger_tests
from experiments.ranking import auprc, auroc
from mvlstm import datasets
from mvlstm.bench.spec import Job
from mvlstm.datasets.synthetic import Truth
from mvlstm.errors import check_option
from mvlstm.evaluate.methods import find_method
from mvlstm.metrics import kendall_tau
from mvlstm.model.explaining import examine
from mvlstm.model.forecaster import AbstractForecaster, require_whole
from mvlstm.problem.stationarity import choose_differencing
from mvlstm.results import VERDICTS, Explanation

Settings = dict[str, Any]
Record = dict[str, Any]
Build = Callable[..., AbstractForecaster]
CANDIDATE = "candidate: "

STAGES = ("choice", "confirm")
FIRST_SEED = {"choice": 0, "confirm": 2_000}
REPEATS = 20
ROWS, WINDOW = 10_000, 30
LORENZ_WINDOW = 2  # the state, and one row before it; best on the seeds of choice
SNRS = (0.25, 1.0, 2.0, 4.0)
METHODS: dict[str, tuple[str, Settings]] = {  # name: (method of `find_method`, its settings)
    "mvlstm": ("mvlstm", {}),
    "paper": ("paper", {"members": 5}),
    "free+mse": ("mvlstm", {"loss": "mse", "sigma": "calibrated", "link": "none"}),
    "indep": ("indep", {"members": 5}),
    "lstm": ("lstm", {}),
    "gbt": ("gbt", {"grid": "quick"}),
    "dual": ("dual", {}),
    "retain": ("retain", {}),
    "clstm": ("clstm", {}),
}
RIVALS = ("paper", "free+mse", "indep", "lstm", "gbt", "dual", "retain", "clstm", "granger")


def jobs(stage: str, *, repeats: int = REPEATS) -> Iterator[Settings]:
    """Yield the jobs of a stage, those that matter most first.

    Parameters
    ----------
    stage : {"choice", "confirm"}
    repeats : int
        Data sets of the synthetic recipe and of each null control; others have fewer.
    """
    check_option("stage", stage, STAGES)
    seeds = range(FIRST_SEED[stage], FIRST_SEED[stage] + repeats)
    some, few = seeds[: max(1, repeats // 2)], seeds[: max(1, repeats // 4)]

    def job(case: str, seed: int, method: str = "mvlstm", **more: Any) -> Settings:
        return {"stage": stage, "case": case, "seed": seed, "method": method, "rows": ROWS} | more

    yield from (job("synthetic", seed, snr=2.0) for seed in seeds)
    lorenz: list[Settings] = [
        {"rows": rows, "p": p, "forcing": forcing, "window": LORENZ_WINDOW}
        for p, forcing in ((10, 10.0), (20, 10.0), (10, 40.0), (20, 40.0))
        for rows in (1_000, 10_000, 500, 250)
    ]
    yield from (job("lorenz96", seed, **shape) for shape in lorenz[:2] for seed in few)
    yield from (job("synthetic", seed, snr=0.0) for seed in seeds)
    for name in NULL_CONTROLS:
        yield from (job(name, seed) for seed in seeds)
    yield from (job("lags", seed, contributions=100) for seed in some)
    for method in ("members", "thirds"):
        yield from (job(name, FIRST_SEED[stage], method) for name in ("pm25", "energy"))
    beside = ("clstm", "granger")
    yield from (job("lorenz96", s, m, **shape) for m in beside for shape in lorenz[:2] for s in few)
    yield from (job("lorenz96", seed, **shape) for shape in lorenz[2:] for seed in few)
    for name in ("var", "correlated", "duplicated"):
        yield from (job(name, seed, curves=True) for seed in few)
    yield from (job("synthetic", seed, snr=snr) for snr in SNRS if snr != 2.0 for seed in few)
    yield from (job("synthetic", seed, snr=2.0, curves=True, window=10) for seed in few)
    yield from (job("lorenz96", seed, curves=True, **lorenz[1]) for seed in few)
    for method in RIVALS:
        if method not in beside:
            yield from (
                job("lorenz96", seed, method, **shape) for shape in lorenz[:2] for seed in few
            )
        yield from (job("synthetic", seed, method, snr=2.0, window=10) for seed in few)
    for method in RIVALS:
        for name in ("var", "correlated", "noise", "walks", "cycle", "shifted"):
            yield from (job(name, seed, method, window=10) for seed in few)
    yield from (job("lorenz96", seed, "clstm", **lorenz[6]) for seed in few)
    yield from (job("lorenz96", seed, "granger", **lorenz[6]) for seed in few)


def faithful_jobs(repeats: int) -> Iterator[Settings]:
    """Yield the trials of trainings that might make attention faithful."""
    shared: Settings = {"stage": "faithful", "effort": "quick"}
    lorenz = {"case": "lorenz96", "p": 10, "forcing": 10.0, "window": LORENZ_WINDOW}
    seeds = range(max(1, repeats // 5))
    cases: list[Settings] = [
        {**lorenz, "rows": rows, "seed": seed} for rows in (1_000, 10_000) for seed in seeds
    ]
    cases += [
        {"case": "synthetic", "snr": 2.0, "rows": ROWS, "window": 10, "seed": seed}
        for seed in seeds
    ]
    for case in cases:
        for name in CANDIDATES:
            yield {**shared, **case, "method": f"{CANDIDATE}{name}"}


def importance_jobs(
    stage: str, *, repeats: int | None = None, members: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield what the jobs of a stage, a part of the suite, differ in."""
    count = REPEATS if repeats is None else repeats
    for settings in faithful_jobs(count) if stage == "faithful" else jobs(stage, repeats=count):
        yield job_of(settings if members is None else settings | {"members": members})


def job_of(settings: Settings) -> dict[str, Any]:
    """Return the arguments of `Job` for settings."""
    return {
        "part": settings["stage"],
        "dataset": settings["case"],
        "data": {} if settings["case"] in datasets.available() else {"made": True},
        "method": settings["method"],
        "label": settings["method"],
        "window": settings.get("window", WINDOW),
        "settings": settings,
        "seed": settings["seed"],
    }


def importance_record(job: Job, device: str = "auto") -> Record:
    """Run one job of the suite and return its record."""
    found = run_job(job.settings, device=device)
    return {"found": found, "timings": {"total": found["seconds"]}}


def run_job(settings: Settings, *, device: str = "auto", build: Build | None = None) -> Record:
    """Run one job.

    Parameters
    ----------
    settings : dict
        One of `jobs`: ``case``, ``seed``, ``method``, ``rows`` and options of the case.
    device : str
    build : callable, optional
        Makes the forecaster from ``settings`` and ``device``, in place of the method.
    """
    started = clock.monotonic()
    with warnings.catch_warnings(action="ignore"):
        if settings["method"] in ("members", "thirds"):
            found = _real(settings, device)
        else:
            found = _known(settings, device, build)
    return {**settings, **found, "seconds": round(clock.monotonic() - started, 2)}


def make_case(settings: Settings) -> tuple[pd.DataFrame, str, Truth]:
    """Return the table of a job, its target and what is known about it."""
    case, rows, seed = settings["case"], int(settings["rows"]), int(settings["seed"])
    if case in CONTROLS:
        table, truth = make_control(case, rows, seed=seed)
        return table, "y", truth
    names = ("snr",) if case == "synthetic" else ("p", "forcing")
    options = {name: settings[name] for name in names if name in settings}
    data = datasets.load(case, n=rows, seed=seed, **options)
    assert data.truth is not None
    return data.frame, data.target, data.truth


# ------------------------------------------------------------------------------------- inner parts


def _known(settings: Settings, device: str, build: Build | None) -> Record:
    table, target, truth = make_case(settings)
    drivers = () if settings.get("snr") == 0 else truth.drivers
    names = [str(name) for name in table.columns if name != target]
    facts: Record = {"drivers": list(drivers), "variables": names}
    if settings["method"] == "granger":
        return facts | _granger(table, names, drivers)
    model = (build or _build)(settings, device)
    begun = clock.monotonic()
    model.fit(table, target, test=0.2)
    require_whole(model.fitted_)
    fitted = clock.monotonic()
    effort = settings.get("effort", "default")
    explanation = model.explain(
        table, effort=effort, contributions=settings.get("contributions", 0)
    )
    explained = clock.monotonic()
    rows = explanation.importance.set_index("variable").loc[names]
    scores = model.evaluate(table).scores
    return facts | {
        **_ranked(rows, drivers),
        "importance": rows.reset_index().to_dict("records"),
        "called": [name for name in names if rows.loc[name, "verdict"] == VERDICTS[0]],
        "groups": None if explanation.groups is None else explanation.groups.to_dict("records"),
        "stability": dict(explanation.stability),
        "faithfulness": (
            _faithfulness(model, table, explanation, effort) if settings.get("curves") else None
        ),
        "lags": _lags(explanation, truth.parameters.get("planted", {})),
        "missed": [note for note in explanation.notes if "miss their total" in note],
        "rmse": float(scores["rmse"].iloc[0]),
        "persistence": float(scores["rmse"].iloc[-1]),
        "epochs": int(np.max(model.history_.best_epoch, initial=0)),
        "fit_seconds": round(fitted - begun, 2),
        "explain_seconds": round(explained - fitted, 2),
    }


def _faithfulness(
    model: AbstractForecaster, table: pd.DataFrame, explanation: Explanation, effort: str
) -> dict[str, float]:
    """Take variables away and give them back, in the order of importance and in others."""
    seen = examine(model.fitted_, table, effort)
    places = {name: place for place, name in enumerate(seen.prepared.frame.variables)}
    by_rise = explanation.importance.sort_values("error_increase", ascending=False, kind="stable")
    ranking = [places[name] for name in by_rise["variable"] if name != explanation.target]
    return faithfulness_areas(faithfulness_curves(seen.base, seen.held, seen.scrambled, ranking))


def _build(settings: Settings, device: str) -> AbstractForecaster:
    shared = {"window": settings.get("window", WINDOW), "device": device, "verbose": 0}
    if "members" in settings:
        shared["members"] = settings["members"]
    if settings["method"].startswith(CANDIDATE):
        return build_candidate(settings["method"].removeprefix(CANDIDATE), **shared)
    key, own = METHODS[settings["method"]]
    method = find_method(key)
    return method.create(own | method.known(shared))


def _ranked(rows: pd.DataFrame, drivers: tuple[str, ...]) -> Record:
    """Score every ranking of the exogenous variables against the truth."""
    truth = rows.index.isin(drivers)
    columns = {"headline": "error_increase", "posterior": "posterior", "prior": "prior"}
    columns["own"] = "own"
    found: Record = {}
    for name, column in columns.items():
        if column in rows and rows[column].notna().all():
            found[f"auroc_{name}"] = auroc(rows[column], truth)
            found[f"auprc_{name}"] = auprc(rows[column], truth)
    return found


def _granger(table: pd.DataFrame, names: list[str], drivers: tuple[str, ...]) -> Record:
    """Rank and test by a vector autoregression on the training rows.

    Series are differenced where their tests say so.
    """
    values = table.to_numpy(np.float64)[: int(0.7 * len(table))]
    series = difference(values, choose_differencing(values, list(table.columns)).orders)
    columns = granger_tests((series - series.mean(axis=0)) / series.std(axis=0))["columns"]
    truth = np.isin(names, drivers)
    gain = np.asarray(columns["gain"], dtype=np.float64)
    return {
        "auroc_own": auroc(gain, truth),
        "auprc_own": auprc(gain, truth),
        "called": [name for name, yes in zip(names, columns["conditional"], strict=True) if yes],
    }


def _lags(explanation: Explanation, planted: dict[str, list[int]]) -> Record:
    """Say for every driver at which lag its contributions, and its attention, are largest."""
    table = explanation.lags
    if table is None or not planted or "contribution" not in table:
        return {}
    found: Record = {}
    for name, true in planted.items():
        rows = table[table["variable"] == name].set_index("lag")
        found[name] = {
            "planted": true,
            "contribution": _largest(rows["contribution"]),
            "attention": _largest(rows["attention"]) if "attention" in rows else None,
        }
    return found


def _largest(by_lag: pd.Series[float]) -> int:
    return int(by_lag.index.to_numpy()[int(np.nanargmax(by_lag.to_numpy()))])


def _real(settings: Settings, device: str) -> Record:
    """Compare two models of one data set: other members, or other thirds of the rows."""
    data = datasets.load(settings["case"])
    options = {**data.model_options, "device": device, "verbose": 0}
    method = find_method("mvlstm")
    table = data.frame
    if settings["method"] == "members":
        tables = [table, table]
    else:
        third = len(table) // 3
        tables = [table.iloc[:third], table.iloc[third : 2 * third]]
    found = []
    for place, part in enumerate(tables):
        seed = settings["seed"] + place if settings["method"] == "members" else settings["seed"]
        model = method.create({"seed": seed, **options}).fit(part, data.target, test=0.2)
        require_whole(model.fitted_)
        found.append(model.explain(part, contributions=20).importance.set_index("variable"))
    return _agreement(found[0], found[1])


def _agreement(one: pd.DataFrame, other: pd.DataFrame) -> Record:
    """Kendall's tau between two rankings: of the variables both call important, either, all."""
    other = other.loc[one.index]
    first, second = one["verdict"] == VERDICTS[0], other["verdict"] == VERDICTS[0]
    among = {"both": first & second, "either": first | second, "all": first | True}
    return {
        **{
            f"tau_{k}": kendall_tau(one.error_increase[w], other.error_increase[w])
            for k, w in among.items()
        },
        "called": [list(one.index[first]), list(one.index[second])],
        "importance": [t.reset_index().to_dict("records") for t in (one, other)],
    }
