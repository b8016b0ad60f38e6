"""Tables of the suite `ablation`: errors by architecture and tools, and what each is worth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from mvlstm import metrics
from mvlstm.bench.document import Section, Table, with_error
from mvlstm.bench.records import Record, Records
from mvlstm.bench.score_tables import mean_and_error
from mvlstm.types import FloatArray

NETWORKS = {  # names in the suite
    "paper": "MV-LSTM",
    "fusion": "MV-Fusion",
    "lstm": "LSTM",
    "clstm": "cLSTM",
    "dual": "DUAL",
}
TOOLS = {"": "as published", "-link": "link", "-finish": "link, averaging, finishing"}
KINDS = "-kinds"
SIGNIFICANT = 0.05
TEXT = (
    "RMSE. One network: mean ± standard error over seeds; ensemble: the mean forecast of all of "
    "them. Every network has the same seeds, rows, batch, learning rate and patience, and all "
    "validation rows stop it; nothing is searched."
)
WORTH = (
    "Change of the RMSE in percent, less is better. Of a tool: the geometric mean over the five "
    "networks, and of how many it makes the error lower : higher, significantly (Diebold-Mariano, "
    f"p < {SIGNIFICANT}). Of an architecture: ensembles with link, averaging and finishing next to "
    "that of MV-LSTM, * where the difference is significant."
)


class Fit(NamedTuple):
    """One network with some tools, alone or as an ensemble."""

    rmse: float
    error: float  # standard error over seeds
    by_row: FloatArray | None  # errors, or the root of their mean square over seeds


Fits = dict[tuple[str, str, str], Fit]  # by network, tools, and "single" or "ensemble"


def ablation_sections(mine: Sequence[Record], records: Records) -> Iterator[Section]:
    """Yield the two tables for each protocol that a part of the suite was run with."""
    cells = {(one["job"]["protocol"], one["job"]["window"]): one["job"]["title"] for one in mine}
    for (protocol, window), title in cells.items():
        chosen = [
            one
            for one in mine
            if (one["job"]["protocol"], one["job"]["window"]) == (protocol, window)
        ]
        sets = {name: _fits(chosen, name, records) for name in _datasets(chosen)}
        yield Section(f"{title}: architecture and tools", (TEXT,), (_errors(sets, title),))
        yield Section(f"{title}: what each is worth", (WORTH,), (_worth(sets, title),))


def _datasets(mine: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(one["job"]["dataset"] for one in mine))


def _fits(mine: Sequence[Record], dataset: str, records: Records) -> Fits:
    found: Fits = {}
    for record in mine:
        network, _, tools = record["job"]["method"].partition("-")
        if record["job"]["dataset"] != dataset or network not in NETWORKS:
            continue
        arrays = records.arrays(record) or {}
        for kind in ("single", "ensemble"):
            mean, error = mean_and_error(record[kind]["rmse"] if record[kind] else ())
            by_row = arrays.get(f"{kind}s", arrays.get(kind))
            found[network, f"-{tools}" if tools else "", kind] = Fit(mean, error, by_row)
    return found


def _errors(sets: dict[str, Fits], title: str) -> Table:
    rows, numbers = [], []
    for dataset, fits in sets.items():
        for network, label in NETWORKS.items():
            row = {"data": dataset, "network": label}
            for kind, words in (("single", "one"), ("ensemble", "ensemble")):
                for tools, name in (*TOOLS.items(), (KINDS, "kinds of members")):
                    fit = fits.get((network, tools, kind))
                    if tools == KINDS and kind == "single":
                        continue
                    text = "" if fit is None else with_error(fit.rmse, fit.error, 4)
                    row[f"{words}: {name}"] = text
                    value = None if fit is None else fit.rmse
                    numbers.append((dataset, label, kind, name, value))
            rows.append(row)
    columns = ["dataset", "network", "kind", "tools", "rmse"]
    return Table(f"RMSE, {title}", pd.DataFrame(rows), pd.DataFrame(numbers, columns=columns))


def _worth(sets: dict[str, Fits], title: str) -> Table:
    steps = {
        "link": (("", "single"), ("-link", "single")),
        "averaging and finishing": (("-link", "single"), ("-finish", "single")),
        "ensemble": (("-finish", "single"), ("-finish", "ensemble")),
        "kinds of members": (("-finish", "ensemble"), (KINDS, "ensemble")),
    }
    rows = [
        {"worth of": name, **{one: _step(fits, *step) for one, fits in sets.items()}}
        for name, step in steps.items()
    ]
    first, *others = NETWORKS
    rows += [
        {
            "worth of": f"{NETWORKS[other]} in place of {NETWORKS[first]}",
            **{one: _against(fits, first, other) for one, fits in sets.items()},
        }
        for other in others
    ]
    frame = pd.DataFrame(rows)
    return Table(f"Worth, {title}", frame, frame)


def _step(fits: Fits, before: tuple[str, str], after: tuple[str, str]) -> str:
    """Write the mean change over the networks, and for how many it is significant."""
    pairs = [
        (fits[one, *before], fits[one, *after])
        for one in NETWORKS
        if (one, *before) in fits and (one, *after) in fits
    ]
    if not pairs:
        return ""
    change = float(np.exp(np.mean([np.log(b.rmse / a.rmse) for a, b in pairs])) - 1)
    lower = sum(_better(b, a) for a, b in pairs)
    higher = sum(_better(a, b) for a, b in pairs)
    return f"{100 * change:+.1f} ({lower} : {higher} of {len(pairs)})"


def _against(fits: Fits, first: str, other: str) -> str:
    """Write the change from one architecture's ensemble to another's."""
    one, two = (fits.get((name, "-finish", "ensemble")) for name in (first, other))
    if one is None or two is None:
        return ""
    mark = "*" if _better(one, two) or _better(two, one) else ""
    return f"{100 * (two.rmse / one.rmse - 1):+.1f}{mark}"


def _better(one: Fit, other: Fit) -> bool:
    """Say whether one forecast is significantly more accurate than another."""
    if one.by_row is None or other.by_row is None or len(one.by_row) != len(other.by_row):
        return False
    pair = (np.asarray(each.by_row, dtype=np.float64) for each in (one, other))
    return bool(metrics.diebold_mariano(*pair, horizon=1).p_value < SIGNIFICANT)
