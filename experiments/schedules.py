"""How many steps a fit needs: efforts and schedules of `MVLSTM` on many tables and horizons.

``python -m experiments.schedules --out FILE [--plans a,b] [--sets a,b] [--seeds 0,1] [--jobs 8]``
fits every plan to every set and appends one line of JSON per fit: RMSE on the stopping rows, on the
later validation rows and on the test rows, MAE on the test rows, seconds and epochs. A set written
``energy_h1*10`` has ten members. Plans were chosen on the validation rows of `CHOOSE`; those of
`CONFIRM`, and all test rows, were looked at alongside. docs/trials.md has the outcome.
"""

import argparse
import json
import multiprocessing as mp
import os
import time
import traceback
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd

DATA = Path(os.environ.get("MVLSTM_DATA", "../shared/data"))
CLOSE = {"gaps": "close", "missing": "drop"}
DAY = {"window": 48, "horizon": 24}
PRICES = {"window": 168, "horizon": 24, "calendar": "auto"}

CHOOSE = ["pjm_h24", "pm25_h1", "etth2_h24", "synth_h1", "sml_h1", "energy_3000_h6", "pm25_1000"]
CONFIRM = ["np_h24", "pm25_h24", "energy_h1", "etth2_h1", "synth_3000", "np_3000", "energy_1000"]
FORMER = {"effort": "best"}
PLANS = {
    "former": FORMER,
    "default": {},
    "quick": {"effort": "quick"},
    "constant15": FORMER | {"max_epochs": 15},
    "slower": {"learning_rate": 0.01},
    "faster": {"learning_rate": 0.03},
    "batch64": {"batch_size": 64, "learning_rate": 0.01},
    "batch256": {"batch_size": 256, "learning_rate": 0.03},
    "longer": {"max_epochs": 40},
}


def built_in(name, rows=None, **options):
    import mvlstm as mv

    data = mv.datasets.load(name, **options)
    table = data.frame if rows is None else data.frame.iloc[rows]
    return table, {"target": data.target}


def hourly(name, rows=None):
    table = pd.read_csv(DATA / name, skipinitialspace=True, parse_dates=["date"])
    return table if rows is None else table.iloc[rows], {"target": "OT", "time": "date"}


def prices(name):
    table, columns = hourly(f"epf/{name}.csv", slice(14_000, 34_000))
    return table, columns | {"known": [c for c in table if c not in ("date", "OT")]}


SETS = {
    "pm25_h1": lambda: (*built_in("pm25"), CLOSE),
    "pm25_h24": lambda: (*built_in("pm25"), CLOSE | DAY),
    "pm25_1000": lambda: (
        built_in("pm25", slice(12_000, 13_000))[0].drop(columns=["Is", "Ir"]),
        {"target": "pm2.5"},
        CLOSE,
    ),
    "energy_h1": lambda: (*built_in("energy"), CLOSE),
    "energy_3000_h6": lambda: (*built_in("energy", slice(5_000, 8_000)), CLOSE | {"horizon": 6}),
    "energy_1000": lambda: (*built_in("energy", slice(9_000, 10_000)), CLOSE),
    "sml_h1": lambda: (*built_in("sml2010"), CLOSE),
    "synth_h1": lambda: (*built_in("synthetic", n=10_000), {}),
    "synth_3000": lambda: (*built_in("synthetic", n=3_000, seed=7), {}),
    "np_h24": lambda: (*prices("NP"), PRICES),
    "pjm_h24": lambda: (*prices("PJM"), PRICES),
    "np_3000": lambda: (
        *hourly("epf/NP.csv", slice(20_000, 23_000)),
        {"window": 48, "horizon": 6},
    ),
    "etth2_h24": lambda: (*hourly("ett/ETTh2.csv"), DAY),
    "etth2_h1": lambda: (*hourly("ett/ETTh2.csv"), {}),
}


def run(job):
    plan, name, seed, out = job
    import torch

    import mvlstm as mv
    from mvlstm.methods.network import kinds

    torch.set_num_threads(2)
    record = {"plan": plan, "set": name, "seed": seed, "runs": []}
    first, fit_network = name.partition("*"), kinds.fit_network
    members = {"members": int(first[2])} if first[2] else {}

    def told(*args):
        outcome = fit_network(*args)
        record["runs"].append(outcome.history.epochs.tolist())
        return outcome

    try:
        table, columns, settings = SETS[first[0]]()
        model = mv.MVLSTM(seed=seed, verbose=0, **settings, **members, **PLANS[plan])
        started = time.perf_counter()
        with patch.object(kinds, "fit_network", told):
            model.fit(table, test=0.2, **columns)
        record["seconds"] = round(time.perf_counter() - started, 2)
        record |= scores(model.predict(table)) | {"best": model.history_.best_epoch.tolist()}
    except Exception:
        record["error"] = traceback.format_exc()[-1500:]
    with open(out, "a") as file:
        file.write(json.dumps(record) + "\n")
    return [record.get(key) for key in ("plan", "set", "seconds", "later", "test", "error")]


def scores(forecast):
    error = forecast.members.mean(axis=0) - forecast.actual
    held = np.flatnonzero((forecast.part == "validation").all(axis=1))
    new = np.where(forecast.part == "new", error, np.nan)
    half = len(held) // 2
    named = {"stop": error[held[:half]], "later": error[held[half:]], "test": new}
    rmse = {key: float(np.sqrt(np.nanmean(np.square(part)))) for key, part in named.items()}
    return rmse | {"mae": float(np.nanmean(np.abs(new)))}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--plans", default=",".join(PLANS))
    parser.add_argument("--sets", default=",".join(CHOOSE + CONFIRM))
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--jobs", type=int, default=8)
    asked = parser.parse_args()
    plans, sets, seeds = (getattr(asked, k).split(",") for k in ("plans", "sets", "seeds"))
    jobs = [(plan, one, int(seed), asked.out) for plan in plans for one in sets for seed in seeds]
    with mp.get_context("spawn").Pool(asked.jobs, maxtasksperchild=1) as pool:
        for line in pool.imap_unordered(run, jobs):
            print(*line, flush=True)


if __name__ == "__main__":
    main()
