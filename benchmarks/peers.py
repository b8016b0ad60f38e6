"""Other libraries on the rows that MVLSTM is scored on: neuralforecast's networks and LightGBM.

    MVLSTM_DATA=../shared/data python benchmarks/peers.py epf_np --horizon 24 --window 168
        [--methods AR,MVLSTM,LightGBM,TFT,NHITS,TiDE,TSMixerx] [--seeds 1] [--rows 20000] [--quick]

Rows are divided in time, the last 20 % to score on and 10 % before them to stop and choose on;
every row is an origin. All see the window, the inputs known ahead and the calendar. Prints RMSE and
MAE over all steps, of medians where a method has them, and seconds. The settings of the peers are
their libraries' own but for what `NETWORKS` and `TREES` say. It needs ``pip install neuralforecast
lightgbm``, which are no part of mvlstm; methods whose library is missing are left out, and said so.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import mvlstm as mv
from mvlstm.model.fitting import begin
from mvlstm.problem.problem import Problem
from mvlstm.problem.windows import gather_labels
from mvlstm.table.frame import SeriesFrame, build_frame
from mvlstm.types import FloatArray, IntArray

NETWORKS: dict[str, dict[str, Any]] = {  # of neuralforecast; early stopping on validation rows
    "TFT": {"hidden_size": 64},
    "NHITS": {},
    "TiDE": {},
    "TSMixerx": {},
}
TRAINING = {"max_steps": 2000, "early_stop_patience_steps": 5, "val_check_steps": 100}
TREES = {"n_estimators": 2000, "learning_rate": 0.03, "num_leaves": 31, "verbose": -1}
PATIENCE = 50  # trees without a lower error on validation rows
LAGS = 48  # rows of a window that trees read, besides those a week before the steps
SPLIT: dict[str, Any] = {"test": 0.2, "valid": 0.1}
CALENDAR = ["hour", "weekday", "yearday"]


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a data set, and the origins that are scored."""

    frame: SeriesFrame
    problem: Problem
    settings: dict[str, Any]

    @classmethod
    def of(cls, name: str, window: int, horizon: int, count: int | None) -> Rows:
        """Read a data set, or its first rows, as our own methods do."""
        data = mv.datasets.load(name)
        table = data.frame if count is None else data.frame.iloc[:count]
        settings: dict[str, Any] = {
            "window": window,
            "horizon": horizon,
            "verbose": 0,
            "calendar": CALENDAR,
        }
        options: dict[str, Any] = {"missing": data.missing, "gaps": data.gaps}
        known = list(data.info.known) or None
        frame = build_frame(table, target=data.target, known=known, calendar=CALENDAR, **options)
        problem = begin(mv.AR(**settings, **options), frame, **SPLIT).problem
        return cls(frame, problem, settings | options)

    @property
    def new(self) -> IntArray:
        """Rows of the origins that are scored."""
        return self.problem.origins["new"]

    @property
    def actual(self) -> FloatArray:
        """Outcomes (origins, steps)."""
        return gather_labels(self.frame, self.new, self.problem.horizon)


def ours(rows: Rows, name: str, seed: int, quick: bool) -> FloatArray:
    """Forecast with a method of this package."""
    more: dict[str, Any] = {"seed": seed} if name == "MVLSTM" else {}
    if more and quick:
        more |= {"members": 1, "max_epochs": 1, "hidden_size": 4}
    model = getattr(mv, name)(**rows.settings, **more)
    table: Any = rows.frame
    forecast = model.fit(table, rows.frame.target, **SPLIT).predict(table)
    unseen = forecast.take(np.asarray(forecast.part == "new").all(axis=1))
    return np.reshape(unseen.median, unseen.actual.shape)


def trees(rows: Rows, name: str, seed: int, quick: bool) -> FloatArray:
    """Forecast with LightGBM, trees of their own for each step, stopped on validation rows."""
    from lightgbm import LGBMRegressor, early_stopping

    problem, place = rows.problem, _tree_inputs(rows)
    X = {p: problem.windows(p).reshape(len(problem.origins[p]), -1)[:, place] for p in _parts()}
    y = {p: problem.labels(p) for p in ("train", "stop")}
    steps = []
    for h in range(problem.horizon):
        settings = TREES | {"random_state": seed} | ({"n_estimators": 20} if quick else {})
        stop = [early_stopping(PATIENCE, verbose=False)]
        model = LGBMRegressor(**settings)
        judged = [(X["stop"], y["stop"][:, h])]
        model.fit(X["train"], y["train"][:, h], eval_set=judged, callbacks=stop)
        steps.append(np.asarray(model.predict(X["new"])))
    return np.stack(steps, axis=1)


def _parts() -> tuple[Any, ...]:
    return ("train", "stop", "new")


def _tree_inputs(rows: Rows) -> IntArray:
    """Return the places in a flattened window that trees read."""
    T, C, H = rows.problem.window, len(rows.problem.groups), rows.problem.horizon
    age = np.arange(T)[::-1]
    near = (age < LAGS) | ((age >= 168 - H) & (age < 168))
    read = np.repeat(near[:, None], C, axis=1)
    clock = list(rows.frame.layout.clock_columns)
    read[:, clock] = (age == 0)[:, None]
    return np.flatnonzero(read)


def network(rows: Rows, name: str, seed: int, quick: bool) -> FloatArray:
    """Forecast with a network of neuralforecast, trained once, at every origin."""
    import neuralforecast as nf
    from neuralforecast import models
    from neuralforecast.losses.pytorch import MAE

    frame, problem = rows.frame, rows.problem
    table = pd.DataFrame(frame.values, columns=list(frame.layout.inputs)).astype(np.float32)
    ahead = [n for n, known in zip(frame.layout.inputs, frame.layout.ahead, strict=True) if known]
    past = [name for name in table.columns[:-1] if name not in ahead]
    table = table.rename(columns={table.columns[-1]: "y"})
    step = pd.Timedelta(hours=1)  # numbered from any start: rows are taken as consecutive
    table["ds"] = pd.Timestamp("2000-01-01") + step * np.arange(len(table))
    training = TRAINING | ({"max_steps": 2, "val_check_steps": 1} if quick else {})
    model = getattr(models, name)(
        h=problem.horizon,
        input_size=problem.window,
        futr_exog_list=ahead,
        hist_exog_list=past,
        loss=MAE(),
        scaler_type="robust",
        random_seed=seed,
        **({"n_series": 1} if name == "TSMixerx" else {}),
        **training,
        **NETWORKS[name],
    )
    first, last = int(rows.new[0]), int(rows.new[-1])
    test = len(table) - first - 1
    held = first + 1 - int(problem.origins["train"][-1]) - problem.horizon
    found = nf.NeuralForecast([model], freq="h").cross_validation(
        table.assign(unique_id="one"), val_size=held, test_size=test, n_windows=None, step_size=1
    )
    origin = ((found["cutoff"] - table["ds"].iloc[0]) / step).round().astype(int)
    wide = found.assign(origin=origin).pivot_table(index="origin", columns="ds", values=name)
    assert last in wide.index
    each = [wide.loc[row].dropna().to_numpy()[: problem.horizon] for row in rows.new]
    return np.stack(each)


METHODS: dict[str, Callable[[Rows, str, int, bool], FloatArray]] = {
    **dict.fromkeys(("AR", "MVLSTM"), ours),
    "LightGBM": trees,
    **dict.fromkeys(NETWORKS, network),
}


def scores(rows: Rows, names: list[str], seeds: int, quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the scores of each method, means over seeds."""
    for name in names:
        found, started = [], time.monotonic()
        try:
            for seed in range(1 if name == "AR" else seeds):
                errors = METHODS[name](rows, name, seed, quick) - rows.actual
                found.append((np.sqrt(np.mean(errors**2)), np.mean(np.abs(errors))))
        except ImportError as error:
            yield {"method": name, "note": f"left out: {error}"}
            continue
        rmse, mae = np.mean(found, axis=0)
        seconds = (time.monotonic() - started) / len(found)
        yield {"method": name, "RMSE": rmse, "MAE": mae, "seconds": seconds, "note": ""}


def main() -> None:
    """Print a table for each data set named."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="+")
    parser.add_argument("--horizon", type=int, default=24)
    parser.add_argument("--window", type=int, default=168)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, help="only the first rows")
    parser.add_argument("--quick", action="store_true", help="hardly train: does it run?")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in given.names:
        rows = Rows.of(name, given.window, given.horizon, given.rows)
        print(f"{name}: {len(rows.new):,} origins, window {given.window}, {given.horizon} steps")
        table = pd.DataFrame(scores(rows, given.methods.split(","), given.seeds, given.quick))
        print(table.round(4).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
