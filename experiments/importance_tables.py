"""Tables of importance, with the variables that matter marked, and of attention's histograms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isfinite
from typing import Any

import numpy as np
import pandas as pd

from experiments.paper import PAPER_SETS, paper_tables
from experiments.ranking import auprc, auroc
from mvlstm._words import decimals, p_text
from mvlstm.bench.document import Table, number
from mvlstm.bench.records import Record
from mvlstm.bench.score_tables import mean_and_error
from mvlstm.metrics import kendall_tau
from mvlstm.types import BoolArray, FloatArray

OWN_PAST = "Autoregressive"  # the paper's name of the target's own past
MARK = " ★"
THEIRS = ("dual", "retain", "clstm")  # methods whose own measures the paper prints
TABLES = {
    "paper": "importance",
    "own": "importance by other methods' own measures",
    "scrambling": "importance by scrambling",
}
IMPORTANCE_TEXT = (
    "At the longest window. Posterior and prior: mean attention over the training windows, after "
    "and before the value is seen, mean ± standard error over seeds. Signed: RETAIN's coefficients "
    "over their sum, as the paper prints them. Its own: a method's own measure, such as attention "
    "to driving series, weights or gains. Scrambling: share of the rise in squared error on test "
    "rows when a variable's windows are exchanged between times. The paper's numbers stand beside "
    "ours, ★ where it boxes them."
)
ATTENTION_TEXT = (
    "Histograms over training windows and seeds at the longest window: prior attention (before "
    "the value is seen) and posterior attention (after) of the multi-variable networks, attention "
    "to driving series of DUAL, summed coefficients of RETAIN on an axis of its own."
)


def as_float(value: float | None) -> float:
    """Return a number of a record; NaN where JSON has none."""
    return float("nan") if value is None else float(value)


@dataclass(frozen=True, eq=False)
class Column:
    """One method's importance of each variable.

    Parameters
    ----------
    title : str
    mean, error : dict
        By variable; the error over seeds, where there are several.
    each : list of dict
        By seed, to see whether rankings agree.
    printed : str, optional
        Method in the paper that this can be put beside.
    kind : {"paper", "own", "scrambling"}
        Attention and the measures of the paper's table, other methods' own measures, scrambling.
    """

    title: str
    mean: dict[str, float]
    error: dict[str, float]
    each: tuple[dict[str, float], ...] = ()
    printed: str | None = None
    kind: str = "paper"


def importance_tables(records: Sequence[Record], every: Sequence[Record]) -> Iterator[Table]:
    """Yield for each data set and protocol the importance at the longest window, and its quality.

    Parameters
    ----------
    records : sequence of dict
        Finished jobs of one part.
    every : sequence of dict
        Those of the whole suite, Granger tests among them.
    """
    cells: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        job = record["job"]
        if job["kind"] == "forecast" and job["fold"] == job["folds"]:
            cells.setdefault((job["dataset"], job["protocol"]), []).append(record)
    for (dataset, protocol), cell in cells.items():
        longest = max(one["job"]["window"] for one in cell)
        least = min(one["job"]["horizon"] for one in cell)
        chosen = [
            one
            for one in cell
            if one["job"]["window"] == longest and one["job"]["horizon"] == least
        ]
        columns = [column for one in chosen for column in columns_of(one)]
        if columns:
            tests = _granger(every, dataset, protocol)
            yield from _tables(dataset, protocol, longest, chosen[0], columns, tests)


def _granger(every: Sequence[Record], dataset: str, protocol: str) -> Record | None:
    for one in every:
        job = one["job"]
        if job["kind"] == "granger" and (job["dataset"], job["protocol"]) == (dataset, protocol):
            return one
    return None


def columns_of(record: Record) -> Iterator[Column]:
    """Yield what a job says about its variables: attention, its own measure, scrambling."""
    job, names = record["job"], record["data"]["variables"]
    label = job["label"] if not job["setting"] else f"{job['label']}, {job['setting']}"
    found = record.get("attention") or {}
    for kind in ("posterior", "prior", "signed"):
        if kind not in found or (kind == "prior" and job["base"] == "dual"):
            continue
        values = np.array(found[kind], dtype=np.float64)  # (K, N)
        if kind == "signed":
            total = values.sum(axis=1, keepdims=True)
            values = values / np.where(np.abs(total) > 1e-9, total, 1.0)
        printed = label if kind in ("posterior", "signed") else None
        yield _column(f"{label}, {kind}", values, names, printed)
    table = {row["variable"]: row for row in record.get("importance") or ()}
    for key, words in (("own", "its own"), ("importance", "scrambling")):
        if any(row.get(key) is not None for row in table.values()):
            mean = {name: as_float(table.get(name, {}).get(key)) for name in names}
            printed = label if key == "own" and job["base"] in ("dual", "clstm") else None
            kind = "scrambling" if key == "importance" else "own"
            kind = "paper" if kind == "own" and job["base"] in THEIRS else kind
            yield Column(f"{label}, {words}", mean, {}, (), printed, kind)


def _column(title: str, values: FloatArray, names: list[str], printed: str | None) -> Column:
    pairs = [mean_and_error(list(values[:, n])) for n in range(len(names))]
    return Column(
        title,
        {name: pair[0] for name, pair in zip(names, pairs, strict=True)},
        {name: pair[1] for name, pair in zip(names, pairs, strict=True)},
        tuple(dict(zip(names, map(float, row), strict=True)) for row in values),
        printed,
    )


# ------------------------------------------------------------------------------- one cell's tables


def fixed(value: Any, places: int = 3) -> str:
    """Write a share or a correlation with this many decimals, empty if there is none.

    Examples
    --------
    >>> fixed(0.12345), fixed(float("nan"))
    ('0.123', '')
    """
    return "" if value is None or not isfinite(value) else f"{value:.{places}f}"


def _tables(
    dataset: str,
    protocol: str,
    window: int,
    first: Record,
    columns: list[Column],
    tests: Record | None,
) -> Iterator[Table]:
    names: list[str] = first["data"]["variables"]
    target = first["data"]["target"]
    important, source = _important(first, tests)
    horizon = first["job"]["horizon"]
    ahead = f", {horizon} steps ahead" if horizon > 1 else ""
    where = f"{dataset}, window {window}{ahead}, protocol {protocol}"
    printed = _printed(dataset, names)
    rows = {
        name: f"{_name(name, target, dataset, names)}{MARK if name in important else ''}"
        for name in names
    }
    notes = (source,) if source else ()
    for kind, words in TABLES.items():
        chosen = [column for column in columns if column.kind == kind]
        if chosen:
            table = _one_table(chosen, rows, important, printed)
            yield Table(f"{where}: {words}", *table, notes)
    if important:
        yield _quality(columns, names, target, important, where)


def _one_table(
    columns: list[Column],
    rows: dict[str, str],
    important: set[str],
    printed: dict[str, dict[str, dict[str, Any]]],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return columns of importance side by side, ranked by the first; and their numbers."""
    names = sorted(rows, key=lambda name: -np.nan_to_num(columns[0].mean[name], nan=-np.inf))
    shown: dict[str, list[str]] = {"variable": [rows[name] for name in names]}
    numbers: list[dict[str, Any]] = []
    for column in columns:
        title = column.title.removesuffix(", scrambling")
        title = title.removesuffix(", its own") if column.kind == "own" else title
        shown[title] = [_text(column.mean[name], column.error.get(name)) for name in names]
        theirs = printed.get(column.printed or "", {})
        if theirs:
            shown[f"{column.printed}, paper"] = [_paper_text(theirs.get(name)) for name in names]
        numbers += [
            {
                "variable": name,
                "measure": column.title,
                "importance": column.mean[name],
                "standard_error": column.error.get(name),
                "important": name in important,
                "paper": (theirs.get(name) or {}).get("importance"),
            }
            for name in names
        ]
    return pd.DataFrame(shown), pd.DataFrame(numbers)


def _text(mean: float, error: float | None) -> str:
    """Write a share with three decimals, or up to five where its error would show as zero."""
    if error is None or not isfinite(mean) or not isfinite(error):
        return fixed(mean)
    places = min(max(decimals(error, 1), 3), 5) if error > 0 else 3
    return f"{fixed(mean, places)} ± {fixed(error, places)}"


def _name(name: str, target: str, dataset: str, names: list[str]) -> str:
    if name == target:
        return f"{name} (own past)"
    key = PAPER_SETS.get(dataset)
    if key is None or dataset == "synthetic" or len(paper_tables()["variables"][key]) != len(names):
        return name
    return f"{name} ({paper_tables()['variables'][key][names.index(name)].lower()})"


def _important(first: Record, tests: Record | None) -> tuple[set[str], str]:
    """Return the variables that matter, and where that is known from."""
    drivers = first["data"].get("drivers")
    if drivers:
        return set(drivers), f"{MARK.strip()} acts on the target by construction."
    if tests is None:
        return set(), ""
    found = {row["variable"] for row in tests["granger"] if row["conditional"]}
    return found, (
        f"{MARK.strip()} Granger-causes the target given all others (Wald test in a vector "
        f"autoregression of {tests['lags']} lags on the training rows, p < 0.01 after Holm)."
    )


def _printed(dataset: str, names: list[str]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the paper's importances by method and our name of the variable."""
    key = PAPER_SETS.get(dataset)
    if key is None or len(paper_tables()["variables"][key]) != len(names):
        return {}
    ours = dict(zip(paper_tables()["variables"][key], names, strict=True))
    ours[OWN_PAST] = names[-1]
    result: dict[str, dict[str, dict[str, Any]]] = {}
    for method, rows in paper_tables()["importance"]["full"].get(key, {}).items():
        result[method] = {ours[row["variable"]]: row for row in rows if row["variable"] in ours}
    return result


def _paper_text(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    text = "yes" if row["importance"] is None else fixed(row["importance"], 2)
    return f"{text}{MARK}" if row["boxed"] else text


def granger_tables(records: Sequence[Record]) -> Iterator[Table]:
    """Yield the outcome of every Granger test."""
    for record in records:
        job = record["job"]
        if job["kind"] == "granger":
            printed = _printed(job["dataset"], record["data"]["variables"])
            title = f"{job['dataset']}, protocol {job['protocol']}: Granger tests"
            yield _test_table(record, title, printed)


def _test_table(tests: Record, title: str, printed: dict[str, dict[str, Any]]) -> Table:
    frame = pd.DataFrame(tests["granger"]).sort_values("gain", ascending=False, kind="stable")
    boxed = {name for rows in printed.values() for name, row in rows.items() if row["boxed"]}
    shown = pd.DataFrame(
        {
            "variable": frame["variable"],
            "conditional": ["yes" if v else "no" for v in frame["conditional"]],
            "p": [p_text(p) for p in frame["conditional_p"]],
            "pairwise": ["yes" if v else "no" for v in frame["pairwise"]],
            "p (pairwise)": [p_text(p) for p in frame["pairwise_p"]],
            "gain": [f"{100 * v:.2f} %" for v in frame["gain"]],
        }
    )
    if boxed:
        shown["paper"] = ["yes" if name in boxed else "no" for name in frame["variable"]]
    differenced = ", ".join(tests["differenced"]) or "none"
    note = (
        f"{tests['rows']:,} training rows, {tests['lags']} lags, differenced: {differenced}. Gain: "
        "share of the target's remaining variance that the variable's past explains beside all "
        "others; with so many rows small gains are significant too. The p-values are raw; "
        "yes: below 0.01 after Holm, over all variables."
    )
    return Table(title, shown, frame, (note,))


# --------------------------------------------------------------------------- how good a ranking is


def _quality(
    columns: list[Column], names: list[str], target: str, important: set[str], where: str
) -> Table:
    rows = []
    others = [name for name in names if name != target]
    truth = np.array([name in important for name in others])
    for column in columns:
        values = np.array([column.mean[name] for name in others])
        if not np.isfinite(values).any():  # of a method that reads the target's own past alone
            continue
        values = np.where(np.isfinite(values), values, np.nanmin(values) - 1.0)
        each = np.array([[one[name] for name in others] for one in column.each])
        taus = [kendall_tau(a, b) for a, b in combinations(each, 2)] if len(each) > 1 else []
        rows.append(
            {
                "measure": column.title,
                "precision": precision_at(values, truth),
                "auroc": auroc(values, truth),
                "average_precision": auprc(values, truth),
                "kendall_tau": float(np.nanmean(taus)) if taus else float("nan"),
            }
        )
    numbers = pd.DataFrame(rows)
    shown = pd.DataFrame(
        {
            "measure": numbers["measure"],
            f"precision at {int(truth.sum())}": [fixed(v, 2) for v in numbers["precision"]],
            "AUROC": [fixed(v) for v in numbers["auroc"]],
            "average precision": [fixed(v) for v in numbers["average_precision"]],
            "agreement of seeds (Kendall's tau)": [fixed(v, 2) for v in numbers["kendall_tau"]],
        }
    )
    note = "How well each ranking of the variables beside the target finds the marked ones."
    return Table(f"{where}: how well the marked variables are found", shown, numbers, (note,))


def precision_at(values: FloatArray, truth: BoolArray) -> float:
    """Return the share of important variables among as many leading ones as there are."""
    k = int(truth.sum())
    return float(truth[np.argsort(-values, kind="stable")[:k]].mean()) if k else float("nan")


# ------------------------------------------------------------------------------------- attention


def spark(counts: Sequence[float], bins: int = 20) -> str:
    """Draw a histogram as a line of blocks; a bin that holds anything is never blank.

    Examples
    --------
    >>> spark([0, 1, 4, 8], bins=4)
    ' ▁▄█'
    """
    blocks = "▁▂▃▄▅▆▇█"
    width = max(1, len(counts) // bins)
    sums = [sum(counts[k : k + width]) for k in range(0, len(counts), width)]
    top = max(sums, default=0) or 1
    return "".join(" " if not s else blocks[max(0, round(8 * s / top) - 1)] for s in sums)


def attention_tables(records: Sequence[Record]) -> Iterator[Table]:
    """Yield histograms of attention by variable, for each cell at its longest window."""
    with_it = [
        one for one in records if one.get("attention") and one["job"]["fold"] == one["job"]["folds"]
    ]
    longest: dict[tuple[str, str], int] = {}
    for one in with_it:
        job = one["job"]
        where = (job["dataset"], job["protocol"])
        longest[where] = max(longest.get(where, 0), job["window"])
    for one in with_it:
        job = one["job"]
        if job["window"] == longest[job["dataset"], job["protocol"]]:
            yield _histograms(one)


def _histograms(record: Record) -> Table:
    job, found = record["job"], record["attention"]
    names: list[str] = record["data"]["variables"]
    kinds = [kind for kind in ("prior", "posterior", "signed") if kind in found]
    shown: dict[str, list[str]] = {"variable": list(names)}
    numbers: list[dict[str, Any]] = []
    for kind in kinds:
        means = np.array(found[kind], dtype=np.float64).mean(axis=0)
        drawn = found[f"{kind}_histogram"]
        words = "attention" if job["base"] == "dual" else kind  # to driving series, of one kind
        shown[words] = [fixed(value) for value in means]
        shown[f"{words}, from {number(drawn['low'], 2)} to {number(drawn['high'], 2)}"] = [
            f"`{spark(counts)}`" for counts in drawn["counts"]
        ]
        edges = np.linspace(drawn["low"], drawn["high"], len(drawn["counts"][0]) + 1)
        numbers += [
            {"variable": name, "attention": kind, "low": low, "high": high, "count": count}
            for name, counts in zip(names, drawn["counts"], strict=True)
            for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
    notes = [f"{found['windows']:,} training windows, all seeds together, 40 bins."]
    if "kl" in found:
        notes.append(
            f"Divergence of posterior from prior {found['kl']:.3f}, entropy "
            f"{found['prior_entropy']:.2f} before and {found['posterior_entropy']:.2f} after, in "
            "nats."
        )
    label = job["label"] if not job["setting"] else f"{job['label']}, {job['setting']}"
    ahead = f", {job['horizon']} steps ahead" if job["horizon"] > 1 else ""
    where = f"{job['dataset']}, window {job['window']}{ahead}, {job['protocol']}"
    title = f"{label} on {where}: attention"
    figure = {"kind": "attention", "names": names, "kinds": kinds, "data": found}
    return Table(title, pd.DataFrame(shown), pd.DataFrame(numbers), tuple(notes), figure)
