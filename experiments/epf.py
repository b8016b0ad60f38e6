"""The suite ``epf``: electricity prices by the protocols of the field, published rows beside ours.

Of a day ahead the records keep each day's mean absolute error, from which Diebold-Mariano tests
follow. Published numbers of the protocol with an origin at every hour are those of its papers.
"""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

import mvlstm as mv
from experiments.dayahead import DAYS, SETTINGS, diebold_mariano, forecasts, published
from mvlstm.bench.document import Section, Table, number
from mvlstm.bench.records import Record
from mvlstm.bench.spec import Job
from mvlstm.types import FloatArray

MARKETS = tuple(f"epf_{one}" for one in ("np", "pjm", "be", "fr", "de"))
METHODS = {"ar": ("AR", 1), "mvlstm": ("MVLSTM", 3)}  # class, and seeds
AHEAD, EVERY = "dayahead", "every-hour"
RIVAL = "LEAR Ensemble"  # of the published ones, that the tests compare with
VALID = 0.1
PAST_ONLY: Mapping[str, Sequence[tuple[float, float]]] = {  # MSE and MAE by market
    "TimeXer": ((0.236, 0.268), (0.093, 0.192), (0.379, 0.243), (0.385, 0.208), (0.440, 0.415)),
    "PatchTST": ((0.267, 0.284), (0.106, 0.209), (0.400, 0.262), (0.411, 0.220), (0.461, 0.432)),
}
WITH_KNOWN: Mapping[str, Sequence[tuple[float, float]]] = {
    "TimeXer": ((0.236, 0.266), (0.075, 0.166), (0.392, 0.253), (0.366, 0.208), (0.339, 0.362)),
    "DAG": ((0.202, 0.237), (0.057, 0.143), (0.361, 0.229), (0.355, 0.171), (0.277, 0.322)),
    "GCGNet": ((0.197, 0.233), (0.058, 0.148), (0.323, 0.227), (0.332, 0.179), (0.282, 0.328)),
}
AHEAD_TEXT = (
    "The last 728 days (`epftoolbox`), each forecast at 23:00 with its two inputs known; window "
    "168, calendar of hours and days, asinh, linear maps fitted again every week. p: "
    "Diebold-Mariano on the days' mean absolute errors, one-sided, that the method errs less than "
    f"{RIVAL}. The rows without seeds are the published forecasts, whose models were fitted "
    "again every day. Seconds are those of a CPU that other work shared: an upper bound."
)
EVERY_TEXT = (
    "Rows 70/10/20 in time, window 168, 24 steps, every hour an origin; MSE and MAE of medians, "
    "all steps, in z-scores of the training rows. The rows without seconds are printed in papers."
)


def price_jobs(
    part: str, *, repeats: int | None = None, members: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield what the jobs of a protocol, a part of the suite, differ in."""
    more = {} if members is None else {"members": members}
    for market in MARKETS:
        same = {"dataset": market, "protocol": part, "window": SETTINGS["window"], "horizon": 24}
        if part == AHEAD:
            yield same | {"method": "published", "label": "published"}
        for method, (name, seeds) in METHODS.items():
            each = (True,) if part == AHEAD else (False, True)
            count = min(seeds, seeds if repeats is None else repeats)
            for known in each:
                for seed in range(count):
                    own = {"known": known} | ({"seed": seed, **more} if seeds > 1 else {})
                    yield same | {"method": method, "label": name, "settings": own, "seed": seed}


def price_record(job: Job, device: str = "auto") -> Record:
    """Run one job of the suite and return its record."""
    started = clock.monotonic()
    if job.method == "published":
        found = published_scores(job.dataset)
    else:
        name, seeds = METHODS[job.method]
        own = {k: v for k, v in job.settings.items() if k != "known"}
        own |= {"device": device} if seeds > 1 else {}
        run = day_ahead if job.protocol == AHEAD else every_hour
        found = {name: run(job.dataset, name, known=job.settings["known"], **own)}
    return {"prices": found, "timings": {"total": clock.monotonic() - started}}


def published_scores(market: str) -> dict[str, Any]:
    """Score the published forecasts of a market."""
    table = published(market)
    if table.empty:
        return {}
    actual, *others = table.to_numpy().T.reshape(table.shape[1], -1, 24)
    return {name: of_days(actual, one) for name, one in zip(table.columns[1:], others, strict=True)}


def day_ahead(market: str, name: str, *, known: bool, **own: Any) -> dict[str, Any]:
    """Score a method on the last 728 days, its link fitted again every week."""
    assert known
    return of_days(*forecasts(market, name, last=DAYS, **own))


def of_days(actual: FloatArray, found: FloatArray) -> dict[str, Any]:
    """Return the scores of forecasts (days, 24), and each day's mean absolute error."""
    daily = np.abs(found - actual).mean(axis=1)
    rmse = float(np.sqrt(np.mean((found - actual) ** 2)))
    return {"mae": float(daily.mean()), "rmse": rmse, "daily": daily.round(4).tolist()}


def every_hour(market: str, name: str, *, known: bool, **own: Any) -> dict[str, Any]:
    """Score a method at every hour of the last fifth of the rows, in units of the training rows."""
    data = mv.datasets.load(market)
    rows = len(data.frame)
    train, test = int(0.7 * rows), int(0.2 * rows)
    model = getattr(mv, name)(**SETTINGS | own)
    ahead = list(data.info.known) if known else None
    model.fit(data.frame, data.target, known=ahead, test=test, valid=rows - train - test)
    forecast = model.predict(data.frame.iloc[rows - test - model.window :])
    scale = float(data.frame[data.target].iloc[:train].std(ddof=0))
    median = np.asarray(forecast.median).reshape(forecast.actual.shape)
    errors = (median - forecast.actual)[np.asarray(forecast.part == "new").all(axis=1)] / scale
    return {"mse": float(np.mean(errors**2)), "mae": float(np.mean(np.abs(errors)))}


# ------------------------------------------------------------------------------------------ tables


def price_sections(every: Sequence[Record]) -> Iterator[Section]:
    """Yield a section of each protocol that there are records of."""
    found = [one for one in every if "prices" in one]
    for part, text, table in ((AHEAD, AHEAD_TEXT, ahead_table), (EVERY, EVERY_TEXT, every_table)):
        mine = [one for one in found if one["job"]["part"] == part]
        tables = []
        for market in MARKETS:
            here = [one for one in mine if one["job"]["dataset"] == market]
            if here:
                tables.append(table(market, here))
        if tables:
            yield Section(f"Electricity prices, {part}", (text,), tuple(tables))


def ahead_table(market: str, records: Sequence[Record]) -> Table:
    """Return the scores of the days ahead of one market, means over seeds."""
    rows: dict[str, list[Any]] = {}
    for one in records:
        for name, scores in one["prices"].items():
            own = one["job"]["method"] != "published"
            rows.setdefault(name, []).append((scores, one["timings"]["total"] if own else np.nan))
    daily = {k: np.mean([scores["daily"] for scores, _ in v], axis=0) for k, v in rows.items()}
    table = pd.DataFrame(
        {
            "method": list(rows),
            "mae": [np.mean([scores["mae"] for scores, _ in v]) for v in rows.values()],
            "rmse": [np.mean([scores["rmse"] for scores, _ in v]) for v in rows.values()],
            "seeds": [np.nan if np.isnan(v[0][1]) else len(v) for v in rows.values()],
            "p": [diebold_mariano(daily[name], daily.get(RIVAL)) for name in rows],
            "seconds": [np.mean([seconds for _, seconds in v]) for v in rows.values()],
        }
    ).sort_values("mae", kind="stable")
    return _table(f"{market}, 728 days, each a day ahead", table, {"mae": "MAE", "rmse": "RMSE"})


def every_table(market: str, records: Sequence[Record]) -> Table:
    """Return the scores of one market at every hour, means over seeds."""
    rows = [
        {"method": name, "inputs": _inputs(one["job"]["settings"]["known"])}
        | {"mse": scores["mse"], "mae": scores["mae"], "seconds": one["timings"]["total"]}
        for one in records
        for name, scores in one["prices"].items()
    ]
    place = MARKETS.index(market)
    for known, printed in ((False, PAST_ONLY), (True, WITH_KNOWN)):
        for name, pairs in printed.items():
            mse, mae = pairs[place]
            rows.append({"method": name, "inputs": _inputs(known), "mse": mse, "mae": mae})
    table = pd.DataFrame(rows).groupby(["inputs", "method"], as_index=False).mean()
    table = table.sort_values(["inputs", "mse"], ascending=[False, True], kind="stable")
    return _table(f"{market}, every hour", table, {"mse": "MSE", "mae": "MAE"})


def _inputs(known: bool) -> str:
    return "known ahead" if known else "past only"


def _table(title: str, numbers: pd.DataFrame, names: Mapping[str, str]) -> Table:
    digits = {"p": 2, "seconds": 3, "seeds": 1}
    shown = {
        names.get(name, name): [
            value if isinstance(value, str) else number(value, digits.get(name, 4))
            for value in numbers[name]
        ]
        for name in map(str, numbers)
    }
    return Table(title, pd.DataFrame(shown), numbers)
