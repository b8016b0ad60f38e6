"""Tables of errors: methods by data sets, the details of each cell, horizons, folds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from mvlstm import metrics
from mvlstm._words import p_text
from mvlstm.bench.document import Table, number, with_error
from mvlstm.bench.frames import KINDS, mean_and_error, title_of
from mvlstm.bench.records import Record, Records
from mvlstm.bench.studies import Study

METRICS = ("rmse", "mae")
OURS = ("mvlstm", "")  # method and setting that the others are compared with
ERRORS_TEXT = (
    "Mean ± standard error, over repeats with other seeds or, where there are rolling origins, "
    "over these; in units of the target, less is better. 'Mean of k': the forecast is the mean of "
    "k networks, or of k fits. The best single method and the best mean are bold."
)
CELLS_TEXT = (
    "Coverage of the 90 % interval, in all and in its worst month; skill: share of persistence's "
    "RMSE removed; behind: RMSE less that of the default MVLSTM or, where that was not run, of the "
    "method best on validation rows, mean ± standard error over paired seeds, or over origins; p: "
    "Diebold-Mariano test, after Holm, that this reference is more accurate than the row's method; "
    "a small value says that it is. Singles are tested against singles and means against means, "
    "where a method that has no mean of its own counts among the means (squared errors are "
    "averaged over repeats; of old records the first repeat is tested alone); "
    "validation RMSE: of the later half of the validation rows, which a search with several "
    "networks a setting chose by too (in old records of all of them, so compare new ones only); "
    "seconds: to tune and fit."
)


def layout_tables(
    scores: pd.DataFrame, records: dict[str, Record], study: Study
) -> Iterator[Table]:
    """Yield RMSE and MAE for each protocol, window and horizon: methods by data sets."""
    for (protocol, window, horizon), cell in groups(scores, ["protocol", "window", "horizon"]):
        for metric in METRICS:
            where = (str(protocol), int(window), int(horizon))
            yield _layout(cell, records, study, *where, metric)


def _layout(
    cell: pd.DataFrame,
    records: dict[str, Record],
    study: Study,
    protocol: str,
    window: int,
    horizon: int,
    metric: str,
) -> Table:
    """Return one table: its columns are the data sets, published numbers next to ours."""
    order, rows_of = _order(cell), _rows_of(cell)
    references = _references(cell, records, metric)
    shown: dict[str, list[str]] = {"method": [*order.values(), *references]}
    numbers: list[dict[str, Any]] = []
    for name in dict.fromkeys(cell["dataset"]):
        rows = [
            _layout_row(rows_of[name, *key], study, name, key, title, metric)
            for key, title in order.items()
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
    notes = study.printed_notes(protocol, printed) + _unfinished(cell, order)
    ahead = f", {horizon} steps ahead" if horizon > 1 else ""
    title = f"{metric.upper()}, window {window}{ahead}, protocol {protocol}"
    return Table(title, pd.DataFrame(shown), pd.DataFrame(numbers), tuple(notes))


def _as_printed(mean: float | None, error: float | None) -> str:
    """Write a published number with its own decimals, empty if there is none."""
    if mean is None or error is None:
        return ""
    return f"{mean:.2f} ± {f'{error:.3f}'.removesuffix('0')}"


def _layout_row(
    rows: pd.DataFrame,
    study: Study,
    dataset: str,
    key: tuple[str, str, str],
    title: str,
    metric: str,
) -> dict[str, Any]:
    """Return a method's error on one data set, with the published one where there is one."""
    mean, error = _over_folds(rows, metric)
    printed = None
    if len(rows) and key[1:] == ("", "single") and rows["horizon"].iloc[0] == 1:
        first = rows.iloc[0]
        printed = study.printed(first["label"], dataset, int(first["window"]), metric.upper())
    return {
        "method": title,
        "dataset": dataset,
        "mean": mean,
        "standard_error": error,
        "paper": printed[0] if printed else None,
        "paper_standard_error": printed[1] if printed else None,
    }


def _order(cell: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """Return the rows of a table: (method, setting, kind) and its title, singles first."""
    found: dict[tuple[str, str, str], list[Any]] = {}
    for kind in KINDS:
        for row in cell[cell["kind"] == kind].to_dict(orient="records"):
            found.setdefault((row["method"], row["setting"], kind), []).append(row)
    return {key: _title(rows) for key, rows in found.items()}


def _title(rows: list[Any]) -> str:
    """Name a method for several data sets, with the fewest and the most of what its mean is of."""
    few, many = (pick(rows, key=lambda row: row["members"]) for pick in (min, max))
    if rows[0]["kind"] != "ensemble" or few["members"] == many["members"]:
        return title_of(rows[0])
    return f"{title_of(few)} to {many['members']}"


def _rows_of(cell: pd.DataFrame) -> Mapping[tuple[str, ...], pd.DataFrame]:
    """Return the rows of each data set, method, setting and kind; none for what is not there."""
    found = dict(groups(cell, ["dataset", "method", "setting", "kind"]))
    return defaultdict(lambda: cell.iloc[:0], found)


def _over_folds(rows: pd.DataFrame, metric: str) -> tuple[float, float]:
    """Return mean and standard error: over repeats, or over folds where there are several."""
    if len(rows) == 1:
        return float(rows[metric].iloc[0]), float(rows[f"{metric}_se"].iloc[0])
    return mean_and_error(list(rows[metric]))


def _unfinished(cell: pd.DataFrame, order: dict[tuple[str, str, str], str]) -> list[str]:
    """Say which means lack rolling origins, and so are over other rows than their neighbours."""
    notes = []
    rows_of = _rows_of(cell)
    for name in dict.fromkeys(cell["dataset"]):
        for key, title in order.items():
            rows = rows_of[name, *key]
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


def _embolden(
    texts: list[str], values: list[float], order: dict[tuple[str, str, str], str]
) -> None:
    for kind in KINDS:
        places = [k for k, key in enumerate(order) if key[2] == kind and np.isfinite(values[k])]
        if len(places) > 1:
            best = min(places, key=lambda k: values[k])
            texts[best] = f"**{texts[best]}**"


# -------------------------------------------------------------------------------- details of cells


def detail_tables(scores: pd.DataFrame, records: Records) -> Iterator[Table]:
    """Yield all scores of each cell, with paired differences and Diebold-Mariano tests."""
    by = ["dataset", "protocol", "window", "horizon"]
    for (dataset, protocol, window, horizon), cell in groups(scores, by):
        yield _detail(cell, records, str(dataset), str(protocol), int(window), int(horizon))


def _detail(
    cell: pd.DataFrame, records: Records, dataset: str, protocol: str, window: int, horizon: int
) -> Table:
    order, rows_of = _order(cell), _rows_of(cell)
    rows = [_detail_row(rows_of[dataset, *key], key, title) for key, title in order.items()]
    notes: list[str] = []
    for what, family in _families(list(order), rows).items():
        if len(family) > 1:
            ours = [row for row in family if row["name"] == OURS]
            reference = ours[0] if ours else min(family, key=lambda row: row["valid_rmse"])
            _compare(family, reference, records, horizon)
            why = "" if ours else ", which was best on validation rows"
            notes.append(f"The {what} are compared with {reference['method']}{why}.")
    frame = pd.DataFrame(rows).sort_values("rmse", kind="stable")
    shown = pd.DataFrame(
        {
            "method": frame["method"],
            "RMSE": [
                with_error(m, e) for m, e in zip(frame["rmse"], frame["rmse_se"], strict=True)
            ],
            "MAE": [with_error(m, e) for m, e in zip(frame["mae"], frame["mae_se"], strict=True)],
            "CRPS": [number(v) for v in frame["crps"]],
            "coverage": [percent(v) for v in frame["coverage"]],
            "worst month": [percent(v) for v in frame["worst_month"]],
            "skill": [percent(v) for v in frame["skill"]],
            "validation RMSE": [number(v) for v in frame["valid_rmse"]],
            "behind": [
                with_error(m, e, 2) if np.isfinite(m) else ""
                for m, e in zip(frame["difference"], frame["difference_se"], strict=True)
            ],
            "p": [p_text(p) for p in frame["dm_p"]],
            "seconds": [f"{v:.0f}" for v in frame["seconds"]],
        }
    )
    shown = shown.loc[:, [name for name in shown if name == "method" or (shown[name] != "").any()]]
    ahead = f", {horizon} steps ahead" if horizon > 1 else ""
    title = f"{dataset}, window {window}{ahead}, protocol {protocol}: all scores"
    return Table(title, shown, frame.drop(columns=["values", "keys", "name"]), tuple(notes))


def _families(
    keys: list[tuple[str, str, str]], rows: list[dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Return the rows to compare with one another: single fits, and means of several.

    A method without a mean of its own, most often one without seeds, stands with the means.
    """
    averaged = {key[:2] for key in keys if key[2] == "ensemble"}
    families: dict[str, list[dict[str, Any]]] = {"singles": [], "means": []}
    for key, row in zip(keys, rows, strict=True):
        alone = key[2] == "single" and (key[:2] in averaged or not averaged)
        families["singles" if alone else "means"].append(row)
    return families


def _detail_row(rows: pd.DataFrame, key: tuple[str, str, str], title: str) -> dict[str, Any]:
    row: dict[str, Any] = {"method": title, "kind": key[2], "name": key[:2]}
    for name in ("rmse", "mae"):
        row[name], row[f"{name}_se"] = _over_folds(rows, name)
    for name in ("crps", "coverage", "worst_month", "skill", "valid_rmse"):
        row[name] = float(rows[name].mean())
    row["worst_month"] = float(rows["worst_month"].min())
    row |= {"difference": np.nan, "difference_se": np.nan, "dm_p": np.nan}
    row["n"], row["seconds"] = int(rows["n"].sum()), float(rows["seconds"].sum())
    row["values"] = dict(zip(rows["fold"], rows["values"], strict=True))
    row["keys"] = list(rows["key"])
    return row


def _compare(
    family: list[dict[str, Any]],
    reference: dict[str, Any],
    records: Records,
    horizon: int,
) -> None:
    """Enter paired differences from the reference, and corrected p-values."""
    rivals = [row for row in family if row is not reference]
    known = _row_errors(reference, records)
    raw, tested = [], []
    for row in rivals:
        pairs = _paired(row["values"], reference["values"])
        row["difference"], row["difference_se"] = mean_and_error(pairs)
        errors = _row_errors(row, records)
        if known is None or errors is None:
            continue
        shared = known.index.intersection(errors.index)
        if len(shared) < max(3, horizon + 1):
            continue
        test = metrics.diebold_mariano(known[shared], errors[shared], horizon=horizon)
        raw.append(test.p_value)
        tested.append(row)
    for row, p in zip(tested, metrics.holm(raw) if raw else (), strict=True):
        row["dm_p"] = float(p)


def _paired(one: dict[int, list[float]], other: dict[int, list[float]]) -> list[float]:
    """Return differences by repeat or, where there are several folds, by fold.

    One value stands for all seeds. Folds that only one of the two was run on are left out;
    repeats within a fold share its rows, so that of several folds each counts once.
    """
    shared = sorted(one.keys() & other.keys())
    if len(shared) != 1:
        return [float(np.mean(one[fold]) - np.mean(other[fold])) for fold in shared]
    mine, theirs = one[shared[0]], other[shared[0]]
    n = max(len(mine), len(theirs))
    if len(mine) not in (1, n) or len(theirs) not in (1, n):
        return [float(np.mean(mine) - np.mean(theirs))]
    return [mine[k % len(mine)] - theirs[k % len(theirs)] for k in range(n)]


def _row_errors(row: dict[str, Any], records: Records) -> pd.Series[float] | None:
    """Return the errors of a method's test rows, those of several folds one after another.

    Of several repeats they are the root of the mean square; in old records, those of the first.
    """
    found = []
    for key in row["keys"]:
        arrays = records.arrays({"key": key})
        if arrays is None or row["kind"] not in arrays:
            return None
        errors = arrays.get(f"{row['kind']}s", arrays[row["kind"]])
        found.append(pd.Series(errors.astype(np.float64), index=arrays["rows"]))
    return pd.concat(found) if found else None


# ------------------------------------------------------------------------------- horizons and folds


def step_tables(scores: pd.DataFrame) -> Iterator[Table]:
    """Yield the RMSE by step ahead, for cells with several steps."""
    by = ["dataset", "protocol", "window", "horizon"]
    for (dataset, protocol, window, horizon), cell in groups(scores[scores["horizon"] > 1], by):
        steps = sorted({h for h in (1, 2, 3, 6, 12, 24, 48, int(horizon)) if h <= int(horizon)})
        rows, rows_of = [], _rows_of(cell)
        for key, title in _order(cell).items():
            found = [s for s in rows_of[dataset, *key]["rmse_by_step"] if s]
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
        rows, rows_of = [], _rows_of(cell)
        for key, title in _order(cell).items():
            picked = rows_of[dataset, *key]
            by_fold = dict(zip(picked["fold"], picked["rmse"], strict=True))
            rows.append({"method": title, **{f"origin {k}": by_fold[k] for k in sorted(by_fold)}})
        ahead = f", {horizon} steps ahead" if int(horizon) > 1 else ""
        yield _of_numbers(f"{dataset}, window {window}{ahead}: RMSE at each origin", rows)


def _of_numbers(title: str, rows: list[dict[str, Any]]) -> Table:
    numbers = pd.DataFrame(rows)
    return Table(title, numbers.map(lambda v: number(v) if isinstance(v, float) else v), numbers)


def groups(frame: pd.DataFrame, by: list[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Group in order of appearance; a single key comes as a tuple too."""
    if not len(frame):
        return
    for key, group in frame.groupby(by, sort=False):
        yield (key if isinstance(key, tuple) else (key,)), group


def percent(value: float) -> str:
    """Write a share in percent, empty if there is none."""
    return f"{100 * value:.1f} %" if np.isfinite(value) else ""
