"""The suite of electricity prices: its jobs, its records and its tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from experiments import dayahead, epf
from mvlstm.bench.spec import Job

SMALL: dict[str, Any] = {"window": 24, "horizon": 24, "verbose": 0, "calendar": ["hour"]}


@pytest.fixture
def market(monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """Put 60 days of a made-up market in the place of the files, 7 of them to be forecast."""
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-01-01", periods=24 * 60, freq="h")
    load = rng.normal(size=len(times))
    price = 30 + 5 * np.cos(2 * np.pi * times.hour.to_numpy() / 24) + 3 * load
    table = pd.DataFrame({"load": load, "price": price + rng.normal(size=len(times))}, times)
    made = mv.datasets.load("synthetic", n=50)
    made = replace(made, frame=table, target="price", info=replace(made.info, known=("load",)))
    monkeypatch.setattr(mv.datasets, "load", lambda name: made)
    monkeypatch.setattr(epf, "SETTINGS", SMALL)
    monkeypatch.setattr(dayahead, "SETTINGS", SMALL)
    monkeypatch.setattr(epf, "DAYS", 7)
    return table


def job(part: str, method: str = "ar", **settings: Any) -> Job:
    same: dict[str, Any] = {"suite": "epf", "part": part, "kind": "prices", "protocol": part}
    return Job(dataset="epf_np", method=method, settings=settings, **same)


def record(job: Job) -> dict[str, Any]:
    return {**epf.price_record(job), "job": job.to_dict()}


def test_every_market_has_published_rows_ar_and_three_seeds_of_mvlstm() -> None:
    ahead, hourly = (list(epf.price_jobs(part)) for part in (epf.AHEAD, epf.EVERY))
    assert len(ahead) == 5 * (1 + 1 + 3) and len(hourly) == 5 * (2 + 2 * 3)
    assert {one["seed"] for one in ahead if one["method"] == "mvlstm"} == {0, 1, 2}
    assert len(list(epf.price_jobs(epf.AHEAD, repeats=1))) == 5 * 3


def test_records_give_tables_with_published_rows(
    market: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = market["price"].to_numpy()[-7 * 24 :]
    others = pd.DataFrame({"real": last, "LEAR Ensemble": last + 8.0})
    monkeypatch.setattr(epf, "published", lambda name: others)
    records = [record(job(epf.AHEAD, known=True)), record(job(epf.AHEAD, "published"))]
    records += [record(job(epf.EVERY, known=known)) for known in (True, False)]
    ours = records[0]["prices"]["AR"]
    assert len(ours["daily"]) == 7 and ours["mae"] == pytest.approx(
        np.mean(ours["daily"]), rel=1e-3
    )
    ahead, hourly = epf.price_sections(records)
    shown = ahead.tables[0].shown.set_index("method")
    assert list(shown.index) == ["AR", "LEAR Ensemble"]
    assert shown.loc["LEAR Ensemble", "MAE"] == "8.000" and float(shown.loc["AR", "p"]) < 0.01
    rows = hourly.tables[0].shown
    assert list(rows["inputs"]) == ["past only"] * 3 + ["known ahead"] * 4
    mine = rows[rows["method"] == "AR"].set_index("inputs")["MSE"].astype(float)
    assert mine["known ahead"] < 0.5 * mine["past only"]


def test_errors_at_every_hour_are_those_of_the_last_fifth_in_z_scores(
    market: pd.DataFrame,
) -> None:
    found = epf.every_hour("epf_np", "AR", known=True)
    rows = len(market)
    test, train = int(0.2 * rows), int(0.7 * rows)
    model = mv.AR(**SMALL).fit(market, "price", known="load", test=test, valid=rows - train - test)
    every = model.predict(market)
    unseen = every.take(np.asarray(every.part == "new").all(axis=1))
    errors = (np.reshape(unseen.median, unseen.actual.shape) - unseen.actual) / market[
        "price"
    ].iloc[:train].std(ddof=0)
    assert len(unseen) == test - 24 + 1
    assert found["mse"] == pytest.approx(np.mean(errors**2))
    assert found["mae"] == pytest.approx(np.mean(np.abs(errors)))
