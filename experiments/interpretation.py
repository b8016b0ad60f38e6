"""The paper's Tables 3 and 5 and Figures 3 to 7 next to ours, for `experiments.replication`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isfinite

from experiments.importance_tables import OWN_PAST, Column, columns_of, spark
from experiments.paper import PAPER_SETS, paper_tables
from mvlstm.bench.records import Record

Find = Callable[[str, str, str], Record | None]
"""(label, data set, protocol) -> the record at the longest window."""

LABELS = ("MV-LSTM", "DUAL", "RETAIN", "cLSTM")  # methods with an importance, the paper's order
RAW = "MV-LSTM, sigma in raw units"
PROTOCOLS = ("authors", "chronological")
BINS = 20  # of a histogram as it is drawn, over the lower half of the axis from 0 to 1


def ranked_table(find: Find, dataset: str) -> list[list[str]]:
    """Return the rows of Table 5 (Table 3 has their beginnings), ours next to each list."""
    boxed = _boxed(dataset)
    protocols = [one for one in PROTOCOLS if find(LABELS[0], dataset, one) is not None]
    rows = [["", "the paper", *(f"ours, {one}" for one in protocols)]]
    for label in LABELS:
        printed = paper_tables()["importance"]["full"][PAPER_SETS[dataset]].get(label, [])
        theirs = _listed([(one["variable"], one["importance"]) for one in printed], boxed)
        found = [_column(find(label, dataset, one)) for one in protocols]
        rows.append([label, theirs, *(_ranked(one, dataset, boxed) for one in found)])
    for label, kind, words in (
        (LABELS[0], "prior", "MV-LSTM, prior"),
        (RAW, "posterior", "MV-LSTM, the likelihood in raw units"),
    ):
        found = [_column(find(label, dataset, one), kind) for one in protocols]
        if any(found):
            rows.append([words, "", *(_ranked(one, dataset, boxed) for one in found)])
    return rows


def granger_line(tests: Record | None, dataset: str) -> str:
    """Say which variables Granger-cause the target by the paper's tests and by ours."""
    theirs = ", ".join(name for name in _names(dataset)[:-1] if name in _boxed(dataset))
    if dataset == "synthetic":
        return (
            f"Bold: the two that the paper calls true, {theirs}; ours are the same by construction."
        )
    if tests is None:
        return f"Bold: {theirs}."
    places = tests["data"]["variables"]
    known = dict(zip(places, _names(dataset), strict=True))
    ours = [known[one["variable"]] for one in tests["granger"] if one["conditional"]]
    return (
        f"Bold: what the paper boxes as Granger-causal ({theirs}). By our test, given all others: "
        f"{', '.join(name for name in _names(dataset) if name in ours) or 'none'}."
    )


def histogram_table(find: Find, dataset: str, protocol: str) -> list[list[str]]:
    """Return the rows of one of Figures 4 to 7: attention to each variable over the windows."""
    drawn = {
        "MV-LSTM, prior": _histogram(find(LABELS[0], dataset, protocol), "prior"),
        "MV-LSTM, posterior": _histogram(find(LABELS[0], dataset, protocol), "posterior"),
        "posterior, raw units": _histogram(find(RAW, dataset, protocol), "posterior"),
        "DUAL": _histogram(find("DUAL", dataset, protocol), "prior"),
    }
    retain = find("RETAIN", dataset, protocol)
    found = {title: counts for title, counts in drawn.items() if counts is not None}
    signed = None if retain is None else (retain["attention"] or {}).get("signed_histogram")
    head = ["variable", *found]
    if signed is not None:
        head.append(f"RETAIN, {signed['low']:.2f} to {signed['high']:.2f}")
    rows = [head]
    for place, name in enumerate(_names(dataset)):
        cells = [_drawn(counts[place]) for counts in found.values()]
        if signed is not None:
            cells.append(f"`{spark(signed['counts'][place], BINS)}`")
        rows.append([name, *cells])
    return rows


def _drawn(counts: Sequence[int]) -> str:
    """Draw the lower half of a histogram, what lies above it in the last bin."""
    half = len(counts) // 2
    lower = [*counts[: half - 1], sum(counts[half - 1 :])]
    return f"`{spark(lower, BINS)}`"


def _histogram(record: Record | None, kind: str) -> list[list[int]] | None:
    found = None if record is None else (record["attention"] or {}).get(f"{kind}_histogram")
    return None if found is None else found["counts"]


def _column(record: Record | None, kind: str = "") -> Column | None:
    """Return the importance that the paper reads off a method, or one of a kind."""
    columns: Iterator[Column] = iter(()) if record is None else columns_of(record)
    for column in columns:
        if column.title.endswith(kind) if kind else column.printed is not None:
            return column
    return None


def _ranked(column: Column | None, dataset: str, boxed: set[str]) -> str:
    if column is None:
        return ""
    named = dict(zip(column.mean, _names(dataset), strict=True))
    order = sorted(column.mean.items(), key=lambda pair: -pair[1])
    return _listed([(named[k], value) for k, value in order if isfinite(value) and value], boxed)


def _listed(pairs: Sequence[tuple[str, float | None]], boxed: set[str]) -> str:
    """Write variables in order, with their importance; those boxed in bold."""
    words = [
        (f"**{name}**" if name in boxed else name) + ("" if value is None else f" {value:.2g}")
        for name, value in pairs
    ]
    return ", ".join(words)


def _boxed(dataset: str) -> set[str]:
    printed = paper_tables()["importance"]["full"][PAPER_SETS[dataset]][LABELS[0]]
    return {one["variable"] for one in printed if one["boxed"]}


def _names(dataset: str) -> list[str]:
    """Return the paper's names of the columns in our order, the target last."""
    names: list[str] = paper_tables()["variables"][PAPER_SETS[dataset]]
    return [*names[:-1], OWN_PAST]


def divergence(record: Record | None) -> float:
    """Return how far the posterior lies from the prior, in nats."""
    found = None if record is None else record["attention"]
    return float(found["kl"]) if found else float("nan")
