"""From records to scores, and to one table per cell with paired differences and tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mvlstm import metrics
from mvlstm._words import p_text
from mvlstm.bench.document import Table, number, with_error
from mvlstm.bench.records import ERRORS, Record, Records

CELL = ["dataset", "protocol", "window", "horizon", "fold", "folds"]
SCORES = ("rmse", "mae", "mae_mean", "crps", "coverage", "worst_month", "skill", "valid_rmse")
NAMES = ("suite", "budget", "part", *CELL, "method", "label", "setting")
OURS = ("mvlstm", "")  # method and setting that the others are compared with
CELLS_TEXT = (
    "MAE is of the median, the forecast that it is least for; MAE of the mean is the other (in old "
    "records known of the first repeat at most). Coverage of the 90 % interval, in all and in its "
    "worst month; skill: share of persistence's RMSE removed; behind: RMSE less that of the "
    "default MVLSTM or, where that was not run, of the method best on validation rows, mean ± "
    "standard error over paired seeds, or over origins; p: Diebold-Mariano test, after Holm, that "
    "this reference is more accurate than the row's method; a small value says that it is. Singles "
    "are tested against singles and means against means, where a method that has no mean of its "
    "own counts among the means (squared errors are averaged over repeats; of old records the "
    "first repeat is tested alone); validation RMSE: of the later half of the validation rows, "
    "which a search with several networks a setting chose by too (in old records of all of them, "
    "so compare new ones only); seconds: to tune and fit."
)
Place = tuple[str, str, str]  # of a row: method, setting, kind
Row = dict[str, Any]


def score_frame(records: Sequence[Record]) -> pd.DataFrame:
    """Return a row for every finished job and kind: means and standard errors of its scores.

    Columns: `NAMES`, ``kind, members, repeats, key``, every score of `SCORES`, each with ``_se``
    (the standard error over repeats, NaN with one), ``values`` (RMSE of each repeat),
    ``rmse_by_step``, ``seconds`` and ``n``.
    """
    done = [r for r in records if r["status"] == "done" and r["job"]["kind"] == "forecast"]
    rows = [_scores(record, kind) for record in done for kind in ERRORS if record[kind]]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=[*NAMES, "kind"])


def _scores(record: Record, kind: str) -> dict[str, Any]:
    job, scores = record["job"], record[kind]
    fits, repeats = len(record["single"]["rmse"]), len(scores["rmse"])
    members = fits if fits > repeats else job["members"]  # the mean of all repeats, or an ensemble
    row: dict[str, Any] = {
        **{name: job[name] for name in NAMES},
        "kind": kind,
        "members": members if kind == "ensemble" else 1,
        "repeats": repeats,
        "key": record["key"],
        "n": record["n"],
        "seconds": record["timings"]["tune"] + record["timings"]["fit"],
    }
    for name in SCORES:
        row[name], row[f"{name}_se"] = mean_and_error(scores.get(name, ()))
    values = [np.nan if value is None else float(value) for value in scores["rmse"]]
    return row | {"values": values, "rmse_by_step": scores.get("rmse_by_step")}


def mean_and_error(values: Sequence[float | None]) -> tuple[float, float]:
    """Return mean and standard error of repeats; NaN for the error of a single one.

    Examples
    --------
    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    known = np.array([v for v in values if v is not None], dtype=np.float64)
    if not known.size:
        return float("nan"), float("nan")
    error = known.std(ddof=1) / np.sqrt(known.size) if known.size > 1 else float("nan")
    return float(known.mean()), float(error)


def title_of(row: Any) -> str:
    """Return what a row of scores is called in a table."""
    name = row["label"] if not row["setting"] else f"{row['label']}, {row['setting']}"
    return f"{name}, mean of {row['members']}" if row["kind"] == "ensemble" else str(name)


def cell_tables(scores: pd.DataFrame, records: Records) -> Iterator[Table]:
    """Yield all scores of each cell, with paired differences and Diebold-Mariano tests."""
    for where, cell in groups(scores, ["dataset", "protocol", "window", "horizon"]):
        names, found = titles(cell), rows_of(cell)
        rows = {place: _row(found[where[0], *place], place, names[place]) for place in names}
        notes: list[str] = []
        for what, family in _families(rows).items():
            if len(family) > 1:
                ours = [row for row in family if row["name"] == OURS]
                reference = ours[0] if ours else min(family, key=lambda row: row["valid_rmse"])
                _compare(family, reference, records, int(where[3]))
                why = "" if ours else ", which was best on validation rows"
                notes.append(f"The {what} are compared with {reference['method']}{why}.")
        frame = pd.DataFrame(list(rows.values())).sort_values("rmse", kind="stable")
        numbers = frame.drop(columns=["values", "keys", "name"])
        yield Table(f"{cell_title(*where)}: all scores", _shown(frame), numbers, tuple(notes))


def cell_title(dataset: str, protocol: str, window: int, horizon: int) -> str:
    """Name a cell."""
    ahead = f", {horizon} steps ahead" if horizon > 1 else ""
    return f"{dataset}, window {window}{ahead}, protocol {protocol}"


def _shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows as texts, without columns in which nothing is known."""
    rows: list[Any] = frame.to_dict(orient="records")
    texts = {
        "method": [row["method"] for row in rows],
        "RMSE": [with_error(row["rmse"], row["rmse_se"]) for row in rows],
        "MAE": [with_error(row["mae"], row["mae_se"]) for row in rows],
        "MAE of the mean": [with_error(row["mae_mean"], row["mae_mean_se"]) for row in rows],
        "CRPS": [number(row["crps"]) for row in rows],
        "coverage": [percent(row["coverage"]) for row in rows],
        "worst month": [percent(row["worst_month"]) for row in rows],
        "skill": [percent(row["skill"]) for row in rows],
        "validation RMSE": [number(row["valid_rmse"]) for row in rows],
        "behind": [with_error(row["difference"], row["difference_se"], 2) for row in rows],
        "p": [p_text(row["dm_p"]) for row in rows],
        "seconds": [f"{row['seconds']:.0f}" for row in rows],
    }
    return pd.DataFrame({name: column for name, column in texts.items() if any(column)})


def titles(cell: pd.DataFrame) -> dict[Place, str]:
    """Return the rows of a table with their titles, singles first.

    One of several data sets has the fewest and the most of what its mean is of.
    """
    found: dict[Place, list[Any]] = {}
    for kind in ERRORS:
        for row in cell[cell["kind"] == kind].to_dict(orient="records"):
            found.setdefault((row["method"], row["setting"], kind), []).append(row)
    named = {}
    for place, rows in found.items():
        few, many = (pick(rows, key=lambda row: row["members"]) for pick in (min, max))
        differ = place[2] == "ensemble" and few["members"] != many["members"]
        named[place] = f"{title_of(few)} to {many['members']}" if differ else title_of(rows[0])
    return named


def rows_of(cell: pd.DataFrame) -> Mapping[tuple[str, ...], pd.DataFrame]:
    """Return the rows of each data set, method, setting and kind; none for what is not there."""
    found = dict(groups(cell, ["dataset", "method", "setting", "kind"]))
    return defaultdict(lambda: cell.iloc[:0], found)


def over_folds(rows: pd.DataFrame, metric: str) -> tuple[float, float]:
    """Return mean and standard error: over repeats, or over folds where there are several."""
    if len(rows) == 1:
        return float(rows[metric].iloc[0]), float(rows[f"{metric}_se"].iloc[0])
    return mean_and_error(list(rows[metric]))


def _row(rows: pd.DataFrame, place: Place, title: str) -> Row:
    row: Row = {"method": title, "kind": place[2], "name": place[:2]}
    for name in ("rmse", "mae", "mae_mean"):
        row[name], row[f"{name}_se"] = over_folds(rows, name)
    row |= {name: float(rows[name].mean()) for name in ("crps", "coverage")}
    row["worst_month"] = float(rows["worst_month"].min())
    row |= {name: float(rows[name].mean()) for name in ("skill", "valid_rmse")}
    row |= {"difference": np.nan, "difference_se": np.nan, "dm_p": np.nan}
    row["n"], row["seconds"] = int(rows["n"].sum()), float(rows["seconds"].sum())
    row["values"] = dict(zip(rows["fold"], rows["values"], strict=True))
    row["keys"] = list(rows["key"])
    return row


def _families(rows: dict[Place, Row]) -> dict[str, list[Row]]:
    """Return the rows to compare with one another: single fits, and means of several.

    A method without a mean of its own, most often one without seeds, stands with the means.
    """
    averaged = {place[:2] for place in rows if place[2] == "ensemble"}
    families: dict[str, list[Row]] = {"singles": [], "means": []}
    for place, row in rows.items():
        alone = place[2] == "single" and (place[:2] in averaged or not averaged)
        families["singles" if alone else "means"].append(row)
    return families


def _compare(family: list[Row], reference: Row, records: Records, horizon: int) -> None:
    """Enter paired differences from the reference, and corrected p-values."""
    known = _row_errors(reference, records)
    tested: list[tuple[Row, float]] = []
    for row in family:
        if row is reference:
            continue
        pairs = _paired(row["values"], reference["values"])
        row["difference"], row["difference_se"] = mean_and_error(pairs)
        errors = _row_errors(row, records)
        if known is None or errors is None:
            continue
        shared = known.index.intersection(errors.index)
        if len(shared) >= max(3, horizon + 1):
            test = metrics.diebold_mariano(known[shared], errors[shared], horizon=horizon)
            tested.append((row, test.p_value))
    if tested:
        for (row, _), p in zip(tested, metrics.holm([raw for _, raw in tested]), strict=True):
            row["dm_p"] = float(p)


def _paired(one: dict[int, list[float]], other: dict[int, list[float]]) -> list[float]:
    """Return differences by repeat or, where there are several folds, by fold.

    One value stands for all seeds. Folds that only one of the two was run on are left out;
    repeats within a fold share its rows, so that of several folds each counts once.
    """
    shared = sorted(one.keys() & other.keys())
    if len(shared) == 1:
        mine, theirs = one[shared[0]], other[shared[0]]
        n = max(len(mine), len(theirs))
        if len(mine) in (1, n) and len(theirs) in (1, n):
            return [mine[k % len(mine)] - theirs[k % len(theirs)] for k in range(n)]
    return [float(np.mean(one[fold]) - np.mean(other[fold])) for fold in shared]


def _row_errors(row: Row, records: Records) -> pd.Series[float] | None:
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


def groups(frame: pd.DataFrame, by: list[str]) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Group in order of appearance."""
    yield from frame.groupby(by, sort=False) if len(frame) else ()


def percent(value: float) -> str:
    """Write a share in percent, empty if there is none."""
    return f"{100 * value:.1f} %" if np.isfinite(value) else ""
