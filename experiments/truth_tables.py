"""Tables of the importance suite: a pure function of what its jobs found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from experiments.controls import NULL_CONTROLS
from mvlstm.bench.document import Table
from mvlstm.bench.frames import as_float

Found = Mapping[str, Any]

MEASURES = {"headline": "scrambling", "posterior": "attention", "own": "own measure"}
TRUTH_TEXT = (
    "AUROC is the chance that a true driver ranks above a variable without effect (1: all do, 0.5: "
    "chance), AUPRC the average precision; both leave out the target's own past. A false alarm is "
    "a data set in which any variable without effect is called important."
)


def truth_tables(found: Sequence[Found], stage: str) -> Iterator[Table]:
    """Yield every table that the records of a stage give."""
    own = [one for one in found if one["stage"] == stage]
    trials = [one for one in own if one["method"].startswith("candidate: ")]
    own = [one for one in own if one not in trials]
    ours = [one for one in own if one["method"] == "mvlstm" and not one.get("curves")]
    made = (
        _synthetic([one for one in ours if one["case"] == "synthetic"]),
        _null([one for one in own if _is_null(one)]),
        _lorenz([one for one in own if one["case"] == "lorenz96" and not one.get("curves")]),
        _methods([one for one in own if one["case"] in ("synthetic", "var", "correlated")]),
        _lags([one for one in ours if one["case"] == "lags"]),
        _duplicated([one for one in own if one["case"] == "duplicated"]),
        _faithfulness([one for one in own if one.get("faithfulness")]),
        _real([one for one in own if one["method"] in ("members", "thirds")]),
        _candidates(trials),
    )
    yield from (table for table in made if table is not None)


def false_alarm(one: Found) -> bool:
    """Say whether a variable without effect was called important."""
    return bool(set(one["called"]) - set(one["drivers"]))


# ------------------------------------------------------------------------------------- inner parts


def _is_null(one: Found) -> bool:
    return one["case"] in NULL_CONTROLS or (one["case"] == "synthetic" and one.get("snr") == 0)


def _table(title: str, rows: list[dict[str, Any]], *notes: str) -> Table | None:
    if not rows:
        return None
    numbers = pd.DataFrame(rows)
    shown = numbers.map(lambda v: f"{v:.3f}" if isinstance(v, float) else v)
    return Table(title, shown.replace("nan", ""), numbers, notes)


def _mean(found: Sequence[Found], name: str) -> float:
    values = [one[name] for one in found if one.get(name) is not None]
    return float(np.nanmean(values)) if values and not np.isnan(values).all() else float("nan")


def _grouped(found: Sequence[Found], *names: str) -> Iterator[tuple[tuple[Any, ...], list[Found]]]:
    keys = dict.fromkeys(tuple(one.get(name) for name in names) for one in found)
    for key in sorted(keys):
        yield key, [one for one in found if tuple(one.get(name) for name in names) == key]


def _synthetic(found: Sequence[Found]) -> Table | None:
    rows = []
    for (snr,), group in _grouped([one for one in found if one.get("snr")], "snr"):
        rows.append(
            {
                "snr": f"{snr:g}",
                "data sets": len(group),
                "AUROC": _mean(group, "auroc_headline"),
                "AUROC 1": sum(one["auroc_headline"] == 1 for one in group),
                "both found": sum(set(one["drivers"]) <= set(one["called"]) for one in group),
                "false alarms": sum(false_alarm(one) for one in group),
                "AUROC of attention": _mean(group, "auroc_posterior"),
                "RMSE (oracle 1)": _mean(group, "rmse"),
            }
        )
    note = "AUROC 1: data sets in which both drivers rank first; both found: both called important."
    return _table("Synthetic series by signal-to-noise ratio", rows, note)


def _null(found: Sequence[Found]) -> Table | None:
    rows = []
    for (method,), group in _grouped(found, "method"):
        row: dict[str, Any] = {"method": method}
        for (case,), part in _grouped(group, "case"):
            name = "snr 0" if case == "synthetic" else case
            row[name] = f"{sum(false_alarm(one) for one in part)} of {len(part)}"
        rows.append(row)
    rows.sort(key=lambda row: row["method"] != "mvlstm")
    note = "Data sets in which any exogenous variable is called important; none should be."
    return _table("Null controls: false alarms", rows, note)


def _lorenz(found: Sequence[Found]) -> Table | None:
    rows = []
    for (p, forcing, n), group in _grouped(found, "p", "forcing", "rows"):
        row: dict[str, Any] = {"p": p, "F": int(forcing), "points": n}
        ours = [one for one in group if one["method"] == "mvlstm"]
        row |= {
            "data sets": len(ours),
            "scrambling": _mean(ours, "auroc_headline"),
            "AUPRC": _mean(ours, "auprc_headline"),
            "attention": _mean(ours, "auroc_posterior"),
        }
        for (method,), part in _grouped(group, "method"):
            if method != "mvlstm":
                measure = "auroc_own" if method in ("clstm", "granger") else "auroc_headline"
                row[method] = _mean(part, measure)
        rows.append(row)
    note = (
        "AUROC of the three true parents. CLSTM ranks by its weights, Granger by linear gain, all "
        "others by scrambling."
    )
    return _table("Lorenz-96", rows, note)


def _window_of_rivals(one: Found) -> bool:
    """Leave out the default model's other runs on the synthetic series, with a longer window."""
    return one["method"] != "mvlstm" or one["case"] != "synthetic" or bool(one.get("curves"))


def _methods(found: Sequence[Found]) -> Table | None:
    rows = []
    rivals = {one["method"] for one in found} - {"mvlstm"}
    seeds = {(one["case"], one["seed"]) for one in found if one["method"] in rivals}
    same = [one for one in found if (one["case"], one["seed"]) in seeds]
    same = [one for one in same if one.get("snr", 2.0) == 2.0 and _window_of_rivals(one)]
    for (case, method), group in _grouped(same, "case", "method"):
        row: dict[str, Any] = {"case": case, "method": method, "data sets": len(group)}
        for measure, words in MEASURES.items():
            row[f"AUROC, {words}"] = _mean(group, f"auroc_{measure}")
        row["AUPRC, scrambling"] = _mean(group, "auprc_headline")
        row["false alarms"] = sum(false_alarm(one) for one in group)
        row["RMSE"] = _mean(group, "rmse")
        rows.append(row)
    return _table("Methods side by side", rows) if rivals else None


def _lags(found: Sequence[Found]) -> Table | None:
    drivers = [driver for one in found for driver in (one.get("lags") or {}).values()]
    if not drivers:
        return None
    hits = {
        kind: [driver[kind] in driver["planted"] for driver in drivers if driver[kind] is not None]
        for kind in ("contribution", "attention")
    }
    rows = [
        {
            "data sets": len(found),
            "drivers": len(drivers),
            "largest contribution at a true lag": float(np.mean(hits["contribution"])),
            "largest attention at a true lag": (
                float(np.mean(hits["attention"])) if hits["attention"] else float("nan")
            ),
            "contributions that miss their total": sum(bool(one["missed"]) for one in found),
        }
    ]
    return _table("Planted lags", rows)


def _duplicated(found: Sequence[Found]) -> Table | None:
    rows = []
    for one in found:
        pair = [g for g in one.get("groups") or [] if set(g["group"].split(" + ")) == PAIR]
        rows.append(
            {
                "seed": one["seed"],
                "pair found": bool(pair),
                "its verdict": pair[0]["verdict"] if pair else "",
                "called important by itself": ", ".join(one["called"]),
            }
        )
    return _table("Duplicated columns: the pair is one group", rows)


PAIR = {"x2", "x2_copy"}


def _faithfulness(found: Sequence[Found]) -> Table | None:
    rows = []
    for (case,), group in _grouped(found, "case"):
        row: dict[str, Any] = {"case": case, "data sets": len(group)}
        for curve in ("deletion", "insertion"):
            for order in ("importance", "random", "reversed"):
                name = f"{curve}_{order}"
                row[f"{curve}, {order}"] = float(
                    np.mean([one["faithfulness"][name] for one in group])
                )
        rows.append(row)
    note = (
        "Mean squared error along the curve, relative to the model's own. Deletion should be high "
        "in the order of importance, insertion low."
    )
    return _table("Faithfulness: taking variables away and giving them back", rows, note)


def _real(found: Sequence[Found]) -> Table | None:
    rows = [
        {
            "data set": one["case"],
            "two models": "other members" if one["method"] == "members" else "other thirds",
            "tau, both important": as_float(one["tau_both"]),
            "tau, either important": as_float(one["tau_either"]),
            "tau, all": as_float(one["tau_all"]),
            "important": " / ".join(", ".join(names) for names in one["called"]),
        }
        for one in found
    ]
    return _table("Kendall's tau between two models of the same data", rows)


def _candidates(found: Sequence[Found]) -> Table | None:
    rows = []
    for (method,), group in _grouped(found, "method"):
        row: dict[str, Any] = {"training": method.removeprefix("candidate: ")}
        for (case, n), part in _grouped(group, "case", "rows"):
            short = f"{case} {n:,}"
            row[f"{short}: attention"] = _mean(part, "auroc_posterior")
            row[f"{short}: scrambling"] = _mean(part, "auroc_headline")
            row[f"{short}: RMSE"] = _mean(part, "rmse")
        rows.append(row)
    return _table("Trainings: how faithful attention becomes", rows)
