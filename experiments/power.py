"""The suite granger: links between columns against their truth, and verdicts where there is none.

Parts: ``files`` are public series with their true graphs, as papers on neural Granger causality use
them, read from the folder ``granger`` of the data folder; ``made`` are series of the same kinds
from generators here; ``null`` are tables in which nothing acts on the target; ``drivers`` and
``pairs`` have few that do. A record holds what was found, by `mvlstm.graph`, by forecasters'
``explain`` and by rivals.
"""

from __future__ import annotations

import time as clock
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import mvlstm as mv
from experiments.controls import NULL_CONTROLS, make_control
from experiments.granger_tests import difference, granger_tests
from experiments.ranking import auprc, auroc
from mvlstm.bench.spec import Job
from mvlstm.datasets.loading import data_folder
from mvlstm.errors import DataError, MissingExtraError
from mvlstm.metrics import holm
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.problem.stationarity import choose_differencing
from mvlstm.results import VERDICTS
from mvlstm.types import BoolArray, FloatArray

Settings = dict[str, Any]
Record = dict[str, Any]

FIRST_SEED = 7_000  # below, things were chosen
GRAPH_SEED = 8_000  # of null tables for the graph, which walks with lower seeds had a say in
TABLES, SOME, FEW = 40, 20, 5  # data sets of a null suite, of drivers and pairs, of others
ROWS = 1_000
LEVEL = 0.05
WINDOW = 10  # of models that explain one target
LAGS = 3  # that PCMCI+ looks back
SMALL: Settings = {"members": 2, "hidden_size": 6, "effort": "quick"}  # for two cores
MODELS: dict[str, tuple[str, Settings]] = {
    "ar": ("AR", {}),
    "mvlstm": ("MVLSTM", SMALL),
    "default": ("MVLSTM", {}),
}
RIVALS = ("linear", "pcmci", "clstm")


class Known(NamedTuple):
    """A table and its true graph."""

    table: pd.DataFrame
    links: BoolArray  # (p, p): whether the column of the second place acts on that of the first


class Links(NamedTuple):
    """What a method says of all links; a row per target."""

    score: FloatArray
    p: FloatArray | None  # adjusted over all of them
    important: BoolArray | None


# -------------------------------------------------------------------------------------------- jobs


def power_jobs(
    part: str, *, repeats: int | None = None, members: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield what the jobs of a part differ in; ``members`` has no meaning here."""
    made = {"files": _files, "made": _made, "null": _null, "drivers": _drivers, "pairs": _pairs}
    for method, settings in made[part](repeats):
        yield {
            "part": part,
            "dataset": settings["case"],
            "data": {"made": part != "files"},
            "method": method,
            "label": method,
            "window": WINDOW,
            "settings": settings,
            "seed": settings.get("seed", 0),
        }


def _files(repeats: int | None) -> Iterator[tuple[str, Settings]]:
    names = public_files()[:repeats]
    for method in ("graph", "linear", "pcmci"):
        yield from ((method, {"case": name}) for name in names)
    some = [name for name in names if "T500" in name and not name.endswith("-2")]
    for method in ("ar", "clstm", "mvlstm", "default"):
        yield from ((method, {"case": name}) for name in some)


def _made(repeats: int | None) -> Iterator[tuple[str, Settings]]:
    seeds = range(FIRST_SEED, FIRST_SEED + (repeats or FEW))
    shapes = [(10, forcing, rows) for forcing in (10.0, 40.0) for rows in (250, 500)]
    for p, forcing, rows in [*shapes, (20, 10.0, 500), (20, 40.0, 500)]:
        for seed in seeds:
            case = {"case": "lorenz96", "p": p, "forcing": forcing, "rows": rows, "seed": seed}
            yield from ((method, case) for method in ("graph", "linear"))
    for seed in seeds:
        for method in ("graph", "linear", "pcmci"):
            yield method, {"case": "var", "rows": 500, "seed": seed}


def _null(repeats: int | None) -> Iterator[tuple[str, Settings]]:
    for method in ("graph", "ar", "mvlstm", "default"):
        first = GRAPH_SEED if method == "graph" else FIRST_SEED
        for seed in range(first, first + (repeats or TABLES)):
            for case in (*NULL_CONTROLS, "snr 0"):
                yield method, {"case": case, "rows": ROWS // 2, "seed": seed}


def _drivers(repeats: int | None) -> Iterator[tuple[str, Settings]]:
    for seed in range(FIRST_SEED, FIRST_SEED + (repeats or SOME)):
        for rows in (1_000, 10_000):
            for method in ("graph", "ar", "mvlstm", "default"):
                yield method, {"case": "snr 0.25", "rows": rows, "seed": seed}


def _pairs(repeats: int | None) -> Iterator[tuple[str, Settings]]:
    for seed in range(FIRST_SEED, FIRST_SEED + (repeats or SOME)):
        for acting in ("one", "both", "none"):
            for method in ("ar", "mvlstm"):
                settings = {"case": "pairs", "acting": acting, "rows": ROWS, "seed": seed}
                yield method, settings


# ------------------------------------------------------------------------------------------ tables


def public_files() -> list[str]:
    """Return the names of the files with true graphs in the data folder, ``*.npz``."""
    return sorted(file.stem for file in (data_folder() / "granger").glob("*.npz"))


def read_known(file: Path) -> Known:
    """Read series ``X_np`` (p, T) and their graph ``Gref`` (p, p), a row per target."""
    with np.load(file, allow_pickle=False) as held:
        missing = {"X_np", "Gref"} - set(held.files)
        if missing:
            raise DataError(f"'{file}' lacks {sorted(missing)}; it has {held.files}.")
        values, links = np.asarray(held["X_np"], dtype=np.float64), np.asarray(held["Gref"]) != 0
    if values.ndim != 2 or links.shape != (len(values),) * 2:
        raise DataError(f"'{file}' has series {values.shape} but a graph {links.shape}.")
    return Known(_named(values.T), links)


def make_known(settings: Settings) -> Known:
    """Return the table of a job and its true graph."""
    case = settings["case"]
    if "rows" not in settings:
        return read_known(data_folder() / "granger" / f"{case}.npz")
    rows, seed = int(settings["rows"]), int(settings["seed"])
    if case == "lorenz96":
        p = int(settings["p"])
        made = mv.datasets.load(case, n=rows, seed=seed, p=p, forcing=settings["forcing"])
        return Known(made.frame, _ring(list(made.frame.columns)))
    if case.startswith("snr"):
        made = mv.datasets.load("synthetic", n=rows, seed=seed, snr=float(case[4:]))
        assert made.truth is not None
        return _of_target(made.frame, () if case == "snr 0" else made.truth.drivers)
    options = {"acting": settings["acting"]} if "acting" in settings else {}
    table, truth = make_control(case, rows, seed=seed, **options)
    if case == "var":
        return Known(table, np.array(truth.parameters["links"]))
    return _of_target(table, truth.drivers)


def _ring(names: list[str]) -> BoolArray:
    """Return the links of Lorenz-96: from two places before, one before, itself, one after."""
    place = np.array([int("".join(c for c in name if c.isdigit())) for name in names])
    apart = (place[None, :] - place[:, None]) % len(names)
    return np.isin(apart, [0, 1, len(names) - 1, len(names) - 2])


def _of_target(table: pd.DataFrame, drivers: tuple[str, ...]) -> Known:
    links = np.eye(table.shape[1], dtype=bool)
    links[-1] |= table.columns.isin(drivers)
    return Known(table, links)


def _named(values: FloatArray) -> pd.DataFrame:
    return pd.DataFrame(values, columns=[f"x{k}" for k in range(values.shape[1])])


# ----------------------------------------------------------------------------------------- records


def power_record(job: Job, device: str = "cpu") -> Record:
    """Run one job and return its record."""
    started, settings = clock.process_time(), job.settings
    known = make_known(settings)
    with warnings.catch_warnings(action="ignore"):
        if job.part in ("files", "made") or job.method == "graph":
            found = _graph_record(job.method, known, settings)
        else:
            found = _target_record(job.method, known, device)
    seconds = clock.process_time() - started
    return {"power": {**settings, **found}, "timings": {"total": round(seconds, 2)}}


def _graph_record(method: str, known: Known, settings: Settings) -> Record:
    """Compare all links with the truth; the own past is left out."""
    links, apart = find_links(method, known.table), ~np.eye(len(known.links), dtype=bool)
    if settings["case"].startswith("snr ") and settings["case"] != "snr 0":
        apart[:-1] = False  # what acts on the others is not told
    score, true = links.score[apart], known.links[apart]
    found: Record = {
        **_ranked(score, true),
        "links": int(true.sum()),
        "others": int((~true).sum()),
    }
    if links.important is not None:
        called = links.important[apart]
        found |= {"found": int(called[true].sum()), "false": int(called[~true].sum())}
    return found


def _target_record(method: str, known: Known, device: str) -> Record:
    """Explain the last column and compare its drivers with the truth."""
    table = known.table
    names = list(table.columns[:-1])
    true = known.links[-1][:-1]
    explained = _fitted(method, table, str(table.columns[-1]), device).explain(
        table, contributions=0
    )
    rows = explained.importance.set_index("variable").loc[names]
    called = (rows["verdict"] == VERDICTS[0]).to_numpy()
    found: Record = {
        **_ranked(rows["error_increase"].to_numpy(), true),
        "links": int(true.sum()),
        "others": int((~true).sum()),
        "found": int(called[true].sum()),
        "false": int(called[~true].sum()),
        "whole": explained.whole["verdict"],
    }
    if explained.groups is not None and names[0].startswith("a"):
        found["pairs"] = list(_by_pair(rows, explained.groups, dict(zip(names, true, strict=True))))
    return found


def _ranked(score: FloatArray, true: BoolArray) -> dict[str, float]:
    if not true.any() or true.all():
        return {}
    return {"auroc": auroc(score, true), "auprc": auprc(score, true)}


def _by_pair(
    rows: pd.DataFrame, groups: pd.DataFrame, true: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield what is said of each pair that was seen as a group, and of its members."""
    for group in groups.itertuples():
        pair = str(group.group).split(" + ")
        if len(pair) != 2:
            continue
        each = rows.loc[pair]
        yield {
            "pair": pair,
            "acting": [bool(true[name]) for name in pair],
            "important": [bool(word == VERDICTS[0]) for word in each["verdict"]],
            "rises": _rounded(each["error_increase"]),
            "high": _rounded(each["error_increase_high"]),
            "low": _rounded(each["error_increase_low"]),
            "refits": _rounded(each["refit_increase"]),
            "group": _rounded([group.error_increase])[0],
            "group important": bool(group.verdict == VERDICTS[0]),
        }


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


# ----------------------------------------------------------------------------------------- methods


def find_links(method: str, table: pd.DataFrame) -> Links:
    """Return what a method says of the links between all columns."""
    if method in MODELS:
        return _by_model(method, table)
    ways: dict[str, Callable[[pd.DataFrame], Links]] = {
        "graph": _by_graph,
        "linear": _by_regression,
        "pcmci": _by_pcmci,
        "clstm": _by_clstm,
    }
    return ways[method](table)


def _by_graph(table: pd.DataFrame) -> Links:
    found = mv.graph(table, verbose=0)
    verdict = found.matrix("verdict").to_numpy() == VERDICTS[0]
    return Links(found.matrix().to_numpy(), found.matrix("p").to_numpy(), verdict)


def _fitted(
    method: str, table: pd.DataFrame, target: str, device: str, window: int = WINDOW
) -> Any:
    name, settings = MODELS[method]
    own = {} if name == "AR" else {"device": device, "verbose": 0}
    model: AbstractForecaster = getattr(mv, name)(window=window, **settings, **own)
    return model.fit(table, target, test=0.2)


def _by_model(method: str, table: pd.DataFrame, window: int = 2) -> Links:
    """Explain every column by all others, with the state and one row before it."""
    names = list(table.columns)
    score, p = np.zeros((len(names), len(names))), np.ones((len(names), len(names)))
    important = np.zeros(p.shape, dtype=bool)
    for j, target in enumerate(names):
        order = [*(name for name in names if name != target), target]
        model = _fitted(method, table[order], target, "cpu", window)
        explained = model.explain(table[order], contributions=0)
        rows = explained.importance.set_index("variable").loc[names]
        score[j] = rows["error_increase"] / table[target].var()
        p[j], important[j] = rows["p_value"], rows["verdict"] == VERDICTS[0]
    return Links(score, p, important)


def _by_regression(table: pd.DataFrame) -> Links:
    """Wald tests in a vector autoregression of all columns, differenced where these ask for it."""
    names, values = list(table.columns), table.to_numpy(np.float64)
    series = difference(values, choose_differencing(values, names).orders)
    series = (series - series.mean(axis=0)) / series.std(axis=0)
    size = len(names)
    score, p = np.zeros((size, size)), np.ones((size, size))
    for j in range(size):
        order = np.r_[np.delete(np.arange(size), j), j]
        columns = granger_tests(series[:, order])["columns"]
        score[j, order[:-1]], p[j, order[:-1]] = columns["gain"], columns["conditional_p"]
    return _tested(score, p)


def _tested(score: FloatArray, p: FloatArray) -> Links:
    """Adjust p-values of all links by Holm's method."""
    apart = ~np.eye(len(p), dtype=bool)
    adjusted = np.ones_like(p)
    adjusted[apart] = holm(p[apart])
    return Links(score, adjusted, adjusted < LEVEL)


def _by_pcmci(table: pd.DataFrame) -> Links:
    """PCMCI+ (Runge 2020) with partial correlations, as tigramite has it."""
    try:
        from tigramite import data_processing
        from tigramite.independence_tests.parcorr import ParCorr
        from tigramite.pcmci import PCMCI
    except ImportError as error:
        raise MissingExtraError(
            "PCMCI+ needs tigramite, which is not installed. "
            'Install the extra: pip install "mvlstm[granger]".'
        ) from error
    frame = data_processing.DataFrame(table.to_numpy(np.float64))
    search = PCMCI(dataframe=frame, cond_ind_test=ParCorr(), verbosity=0)
    found = search.run_pcmciplus(tau_min=0, tau_max=LAGS, pc_alpha=0.01)
    p = LAGS * found["p_matrix"][:, :, 1:].min(axis=2).T  # a row per target
    score = np.abs(found["val_matrix"][:, :, 1:]).max(axis=2).T
    return _tested(score, np.minimum(p, 1.0))


def _by_clstm(table: pd.DataFrame) -> Links:
    """Weights of the componentwise LSTM with a penalty on them; it has no test."""
    names = list(table.columns)
    score = np.zeros((len(names), len(names)))
    for j, target in enumerate(names):
        order = [*(name for name in names if name != target), target]
        model = mv.CLSTM(window=WINDOW, members=1, hidden_size=5, verbose=0, device="cpu")
        model.fit(table[order], target, test=0.1)
        own = model.fitted_.learned.own_importance(tuple(range(len(names))))
        assert own is not None
        score[j, [names.index(name) for name in order]] = own
    return Links(score, None, None)
