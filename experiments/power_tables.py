"""Tables of the suite granger: pure functions of what its jobs found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mvlstm._words import p_text
from mvlstm.bench.document import Section, Table
from mvlstm.bench.records import Record
from mvlstm.explain.evidence import SIGNIFICANCE
from mvlstm.explain.importance import RELEVANCE
from mvlstm.metrics import holm
from mvlstm.results import VERDICTS

Found = Mapping[str, Any]
Rows = list[dict[str, Any]]

NAMES = {
    "graph": "mv.graph",
    "ar": "AR, explain",
    "mvlstm": "small MVLSTM, explain",
    "default": "MVLSTM, explain",
    "linear": "linear Granger",
    "pcmci": "PCMCI+",
    "clstm": "CLSTM",
}
TEXT = (
    "AUROC is the chance that a true link ranks above a pair without one, AUPRC the average "
    "precision; own pasts are left out. Found: true links that are called important. Linear "
    "Granger (Wald tests in a vector autoregression) and PCMCI+ (partial correlations) are tested "
    "at 5 %, with Holm's correction over all links; CLSTM has weights and no test. Seconds are of "
    "one core."
)
OMITTED_TEXT = (
    "Rises in squared error without all exogenous variables, in per cent of the error: by explain, "
    "with its verdict, and by a fit without them, with the p-value of the Diebold-Mariano test. "
    "Singles: variables of which explain (important or not) and fits without them (p below 5 % "
    "after Holm, and at least 0.5 % of the error) say the same."
)
MUCH = 1.5  # times its group's rise, or its refit's, that a single rise may be


def power_sections(every: Sequence[Record]) -> Iterator[Section]:
    """Yield a section of each part that has records."""
    parts: dict[str, tuple[str, Callable[[Sequence[Found]], Rows]]] = {
        "files": ("Public files with their graphs", _links),
        "made": ("Other series of the same kinds", _links),
        "null": ("Nothing to find: tables with a false alarm", _alarms),
        "drivers": ("Two drivers among ten, at a signal-to-noise ratio of 0.25", _drivers),
        "pairs": ("Four pairs of columns with correlations of 0.9 to 0.99", _pairs),
    }
    for part, (title, rows_of) in parts.items():
        found = [
            {"method": one["job"]["method"], "seconds": one["timings"]["total"], **one["power"]}
            for one in every
            if "power" in one and one["job"]["part"] == part
        ]
        if found:
            numbers = pd.DataFrame(rows_of(found))
            shown = side_by_side(numbers) if "series" in numbers else numbers
            shown = shown.map(lambda v: f"{v:.3f}" if isinstance(v, float) else v)
            table = Table(title, shown.replace("nan", ""), numbers)
            yield Section(f"{part}: links and verdicts", (TEXT,), (table,))
    omitted = [one for one in every if "omitted" in one]
    if omitted:
        numbers = pd.DataFrame([_omitted(one) for one in omitted])
        table = Table("Next to fits without the exogenous variables", numbers.astype(str), numbers)
        yield Section("omitted: explain and refits", (OMITTED_TEXT,), (table,))


def side_by_side(links: pd.DataFrame) -> pd.DataFrame:
    """Return one row per kind of series, the methods' numbers next to one another."""
    both = links.assign(
        ranks=[f"{a:.3f} / {b:.3f}" for a, b in links[["AUROC", "AUPRC"]].to_numpy()]
    )
    methods = list(dict.fromkeys(links["method"]))
    columns = {"ranks": "AUROC / AUPRC", "found": "found", "any false": "any false"}
    wide = both.pivot(index="series", columns="method", values=list(columns))
    shown = wide.reindex(list(dict.fromkeys(links["series"]))).fillna("")
    shown = shown[[(c, m) for c in columns for m in methods]]
    shown.columns = [f"{columns[one[0]]}, {one[1]}" for one in shown.columns]
    return shown.loc[:, (shown != "").any()].reset_index()


# ------------------------------------------------------------------------------------- inner parts


def _grouped(found: Sequence[Found], key: Callable[[Found], Any]) -> Iterator[tuple[Any, Any]]:
    """Yield each key with the methods' records, in the order of `NAMES`."""
    for name in dict.fromkeys(map(key, found)):
        mine = [one for one in found if key(one) == name]
        for method, title in NAMES.items():
            group = [one for one in mine if one["method"] == method]
            if group:
                yield name, (title, group)


def _links(found: Sequence[Found]) -> Rows:
    rows = []
    for case, (title, group) in _grouped(found, _kind_of):
        tested = [one for one in group if "found" in one]
        rows.append(
            {
                "series": case,
                "method": title,
                "files": len(group),
                "AUROC": _mean(group, "auroc"),
                "least": min(one["auroc"] for one in group),
                "AUPRC": _mean(group, "auprc"),
                "found": _share(tested, "found", "links"),
                "false": _share(tested, "false", "others"),
                "any false": _count(tested, lambda one: one["false"] > 0),
                "seconds": f"{_mean(group, 'seconds'):.1f}",
            }
        )
    return rows


def _kind_of(one: Found) -> str:
    """Return what a file or a made-up series is one of several of."""
    if "rows" not in one:
        return str(one["case"].rpartition("-")[0] or one["case"])
    if one["case"] == "lorenz96":
        return f"Lorenz-96, p={one['p']}, F={one['forcing']:.0f}, {one['rows']} points"
    return f"{one['case']}, {one['rows']} points"


def _alarms(found: Sequence[Found]) -> Rows:
    rows = []
    for title in NAMES.values():
        mine = [one for one in found if NAMES[one["method"]] == title]
        if mine:
            row: dict[str, Any] = {"method": title}
            for case in dict.fromkeys(one["case"] for one in found):
                row[case] = _count([one for one in mine if one["case"] == case], _alarm)
            rows.append(row | {"all": _count(mine, _alarm)})
    return rows


def _alarm(one: Found) -> bool:
    return bool(one["false"] > 0)


def _drivers(found: Sequence[Found]) -> Rows:
    return [
        {
            "rows": rows,
            "method": title,
            "tables": len(group),
            "AUROC": _mean(group, "auroc"),
            "both found": _count(group, lambda one: one["found"] == one["links"]),
            "a false alarm": _count(group, _alarm),
        }
        for rows, (title, group) in _grouped(found, lambda one: one["rows"])
    ]


def _pairs(found: Sequence[Found]) -> Rows:
    rows = []
    for acting, (title, group) in _grouped(found, lambda one: one["acting"]):
        pairs = [pair for one in group for pair in one.get("pairs", [])]
        members = [
            (rise, low, refit, pair["group"], acts, called)
            for pair in pairs
            for rise, low, refit, acts, called in zip(
                *(pair[name] for name in ("rises", "low", "refits", "acting", "important")),
                strict=True,
            )
        ]
        twins = [one for one in members if not one[4]]
        true = [pair for pair in pairs if any(pair["acting"])]
        rows.append(
            {
                "acting": acting,
                "method": title,
                "tables": len(group),
                "pairs seen": len(pairs),
                "acting pairs found": _count(true, lambda pair: pair["group important"]),
                "idle pairs found": _count(
                    [pair for pair in pairs if pair not in true],
                    lambda pair: pair["group important"],
                ),
                "acting ones found": _count([m for m in members if m[4]], lambda m: m[5]),
                "idle ones found": _count(twins, lambda m: m[5]),
                "rise too large": _count(members, lambda m: _exceeds(m[0], m[1], m[2], m[3])),
            }
        )
    return rows


def _omitted(one: Record) -> dict[str, Any]:
    """Compare what is said of all exogenous variables, and of single ones."""
    job, found = one["job"], one["omitted"]
    first, whole, mse = found["without"][0], found["whole"], found["mse"]
    singles = [each for each in found["without"] if len(each["without"]) == 1]
    called = {row["variable"]: row["verdict"] == VERDICTS[0] for row in found["importance"]}
    adjusted = holm([each["p"] for each in singles])
    agree = sum(
        called[each["without"][0]] == (p < SIGNIFICANCE and each["rise"] >= RELEVANCE * mse)
        for each, p in zip(singles, adjusted, strict=True)
    )
    return {
        "data set": job["dataset"],
        "steps": job["horizon"],
        "method": NAMES[job["method"]].removesuffix(", explain"),
        "RMSE": f"{np.sqrt(mse):.4g}",
        "explain: rise": f"{100 * whole['error_increase'] / mse:.1f} %",
        "verdict": whole["verdict"],
        "fit without: rise": f"{100 * first['rise'] / mse:.1f} %",
        "p": p_text(first["p"]),
        "important": ", ".join(n for n, yes in called.items() if yes) or "nothing",
        "singles": f"{agree} of {len(singles)}" if singles else "",
    }


def _exceeds(rise: float, low: float, refit: float, group: float) -> bool:
    """Say whether a single rise is far above its group's or its refit's, beyond its interval."""
    return bool(low > MUCH * max(group, 0.0) or low > MUCH * max(refit, 0.0)) and rise > 0


def _mean(found: Sequence[Found], name: str) -> float:
    values = [one[name] for one in found if name in one]
    return float(np.mean(values)) if values else float("nan")


def _share(found: Sequence[Found], part: str, whole: str) -> str:
    if not found:
        return ""
    return f"{sum(one[part] for one in found)} of {sum(one[whole] for one in found)}"


def _count(found: Sequence[Any], counts: Callable[[Any], bool]) -> str:
    return f"{sum(map(counts, found))} of {len(found)}" if found else ""
