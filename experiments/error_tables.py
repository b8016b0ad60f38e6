"""Tables of errors: methods by data sets with the printed numbers, by step ahead, by origin."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from experiments.paper import paper_notes, paper_score
from mvlstm.bench.document import Table, number, with_error
from mvlstm.bench.records import ERRORS, Record
from mvlstm.bench.score_tables import Place, groups, over_folds, rows_of, titles

METRICS = {"rmse": "RMSE", "mae": "MAE of the median", "mae_mean": "MAE of the mean"}
PRINTED = {"rmse": "RMSE", "mae_mean": "MAE"}  # the paper's errors are those of one forecast
ERRORS_TEXT = (
    "Mean ± standard error, over repeats with other seeds or, where there are rolling origins, "
    "over these; in units of the target, less is better. The median has the least MAE by "
    "construction; the paper's is of its forecast, a mean, and stands next to ours of the mean "
    "(in old records known of the first repeat at most). 'Mean of k': the forecast is the mean of "
    "k networks, or of k fits. The best single method and the best mean are bold."
)


def layout_tables(scores: pd.DataFrame, records: dict[str, Record]) -> Iterator[Table]:
    """Yield RMSE and both MAEs for each protocol, window and horizon: methods by data sets."""
    for (protocol, window, horizon), cell in groups(scores, ["protocol", "window", "horizon"]):
        for metric in METRICS:
            where = (str(protocol), int(window), int(horizon))
            yield _layout(cell, records, *where, metric)


def _layout(
    cell: pd.DataFrame,
    records: dict[str, Record],
    protocol: str,
    window: int,
    horizon: int,
    metric: str,
) -> Table:
    """Return one table: its columns are the data sets, published numbers next to ours."""
    order, found = titles(cell), rows_of(cell)
    references = _references(cell, records, metric.removesuffix("_mean"))  # each is one forecast
    shown: dict[str, list[str]] = {"method": [*order.values(), *references]}
    numbers: list[dict[str, Any]] = []
    for name in dict.fromkeys(cell["dataset"]):
        rows = [
            _layout_row(found[name, *key], name, key, title, metric) for key, title in order.items()
        ]
        texts = [with_error(row["mean"], row["standard_error"]) for row in rows]
        _embolden(texts, [row["mean"] for row in rows], order)
        for title, by_set in references.items():
            texts.append(number(by_set.get(name)))
            rows.append({"method": title, "dataset": name, "mean": by_set.get(name)})
        shown[name] = texts
        if any(row.get("paper") is not None for row in rows):
            shown[f"{name}, paper"] = [
                _as_printed(row.get("paper"), row.get("paper_standard_error")) for row in rows
            ]
        numbers += rows
    printed = {row["dataset"] for row in numbers if row.get("paper") is not None}
    notes = paper_notes(protocol, printed) + _unfinished(cell, order)
    ahead = f", {horizon} steps ahead" if horizon > 1 else ""
    title = f"{METRICS[metric]}, window {window}{ahead}, protocol {protocol}"
    return Table(title, pd.DataFrame(shown), pd.DataFrame(numbers), tuple(notes))


def _as_printed(mean: float | None, error: float | None) -> str:
    """Write a published number with its own decimals, empty if there is none."""
    if mean is None or error is None:
        return ""
    return f"{mean:.2f} ± {f'{error:.3f}'.removesuffix('0')}"


def _layout_row(
    rows: pd.DataFrame,
    dataset: str,
    key: Place,
    title: str,
    metric: str,
) -> dict[str, Any]:
    """Return a method's error on one data set, with the published one where there is one."""
    mean, error = over_folds(rows, metric)
    printed = None
    if len(rows) and key[1:] == ("", "single") and rows["horizon"].iloc[0] == 1:
        first = rows.iloc[0]
        place = first["label"], dataset, int(first["window"])
        printed = paper_score(*place, PRINTED[metric]) if metric in PRINTED else None
    return {
        "method": title,
        "dataset": dataset,
        "mean": mean,
        "standard_error": error,
        "paper": printed[0] if printed else None,
        "paper_standard_error": printed[1] if printed else None,
    }


def _unfinished(cell: pd.DataFrame, order: dict[Place, str]) -> list[str]:
    """Say which means lack rolling origins, and so are over other rows than their neighbours."""
    notes = []
    found = rows_of(cell)
    for name in dict.fromkeys(cell["dataset"]):
        for key, title in order.items():
            rows = found[name, *key]
            if len(rows) and len(rows) < rows["folds"].iloc[0]:
                done = ", ".join(map(str, sorted(rows["fold"])))
                notes.append(
                    f"{title} on {name} has been run for origins {done} of "
                    f"{rows['folds'].iloc[0]} only; its mean is no match for the others."
                )
    return notes


def _references(
    cell: pd.DataFrame, records: dict[str, Record], metric: str
) -> dict[str, dict[str, float]]:
    """Return the errors of persistence, unless it is a method here, and of the oracle."""
    found: dict[str, dict[str, list[float]]] = {"Persistence": {}, "Oracle (best possible)": {}}
    for row in cell.drop_duplicates(["dataset", "fold"]).to_dict(orient="records"):
        record = records[row["key"]]
        for title, key in zip(found, ("persistence", "oracle"), strict=True):
            if record[key]:
                found[title].setdefault(row["dataset"], []).append(record[key][metric])
    if (cell["method"] == "persistence").any():
        found.pop("Persistence")
    return {
        title: {name: float(np.mean(values)) for name, values in by_set.items()}
        for title, by_set in found.items()
        if by_set
    }


def _embolden(texts: list[str], values: list[float], order: dict[Place, str]) -> None:
    for kind in ERRORS:
        places = [k for k, key in enumerate(order) if key[2] == kind and np.isfinite(values[k])]
        if len(places) > 1:
            best = min(places, key=lambda k: values[k])
            texts[best] = f"**{texts[best]}**"


# ----------------------------------------------------------------------------- steps and origins


def step_tables(scores: pd.DataFrame) -> Iterator[Table]:
    """Yield the RMSE by step ahead, for cells with several steps."""
    by = ["dataset", "protocol", "window", "horizon"]
    for (dataset, protocol, window, horizon), cell in groups(scores[scores["horizon"] > 1], by):
        steps = sorted({h for h in (1, 2, 3, 6, 12, 24, 48, int(horizon)) if h <= int(horizon)})
        rows, own = [], rows_of(cell)
        for key, title in titles(cell).items():
            found = [s for s in own[dataset, *key]["rmse_by_step"] if s]
            if found:
                each = [np.mean([np.array(one) for one in fold], axis=0) for fold in found]
                mean = np.mean(each, axis=0)
                rows.append({"method": title, **{f"step {h}": float(mean[h - 1]) for h in steps}})
        if rows:
            title = f"{dataset}, window {window}, protocol {protocol}: RMSE by step ahead"
            yield _of_numbers(f"{title}, of {horizon}", rows)


def fold_tables(scores: pd.DataFrame) -> Iterator[Table]:
    """Yield the RMSE of each rolling origin, for cells with several."""
    by = ["dataset", "window", "horizon"]
    for (dataset, window, horizon), cell in groups(scores[scores["folds"] > 1], by):
        rows, own = [], rows_of(cell)
        for key, title in titles(cell).items():
            picked = own[dataset, *key]
            by_fold = dict(zip(picked["fold"], picked["rmse"], strict=True))
            rows.append({"method": title, **{f"origin {k}": by_fold[k] for k in sorted(by_fold)}})
        ahead = f", {horizon} steps ahead" if int(horizon) > 1 else ""
        yield _of_numbers(f"{dataset}, window {window}{ahead}: RMSE at each origin", rows)


def _of_numbers(title: str, rows: list[dict[str, Any]]) -> Table:
    numbers = pd.DataFrame(rows)
    return Table(title, numbers.map(lambda v: number(v) if isinstance(v, float) else v), numbers)
