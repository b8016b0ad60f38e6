"""All tables of a folder of records: a pure function of what lies there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mvlstm.bench.document import Document, Section, Table
from mvlstm.bench.frames import CELL, score_frame
from mvlstm.bench.records import Record, Records, read_records
from mvlstm.bench.score_tables import (
    CELLS_TEXT,
    ERRORS_TEXT,
    detail_tables,
    fold_tables,
    layout_tables,
    step_tables,
)
from mvlstm.bench.spec import KINDS
from mvlstm.bench.studies import Study, study_of

IMPORTANCE_TEXT = (
    "Share of the rise in squared error on test rows when a variable's windows are exchanged "
    "between times."
)
SAME_WORK = ("suite", "budget", "part", "kind", *CELL, "method", "setting")
SAME_ROWS = ("suite", "budget", "part", *CELL)


def make_tables(folder: str | Path, *, attention: bool = True) -> Document:
    """Return every table that the records of a folder give.

    Parameters
    ----------
    folder : str or Path
        What `mvlstm bench run` wrote; copies of several such folders may have been put together.
    attention : bool
        Whether to have a study's histograms of attention, one table per network and data set.
    """
    records = read_records(folder, must_exist=True)
    found, problems = newest(records.found)
    problems += other_data(found)
    sections: list[Section] = []
    for (suite, budget), group in _by_suite(found).items():
        study, lost = study_of(group, records.folder)
        sections += _suite(suite, budget, group, records, study, attention=attention)
        problems += lost
    return Document("Results", tuple(sections), (*records.problems, *problems))


def newest(found: Sequence[Record]) -> tuple[list[Record], list[str]]:
    """Keep one record for each place in a table: the newest finished one.

    A method that was run again with other repeats, another seed or other settings is another job
    with a record of its own; both stand for the same place. What was left out is said in a
    sentence.
    """
    best: dict[tuple[Any, ...], Record] = {}
    for record in found:
        place = _values(record, SAME_WORK)
        if record["job"]["kind"] not in KINDS:  # a study's jobs may differ in their settings alone
            place += (json.dumps(record["job"].get("settings"), sort_keys=True),)
        if place not in best or _age(record) > _age(best[place]):
            best[place] = record
    keys = {record["key"] for record in best.values()}
    kept = [record for record in found if record["key"] in keys]
    left = [record["key"] for record in found if record["key"] not in keys]
    if not left:
        return kept, []
    return kept, [
        f"{len(left)} records of cells that were run again with other repeats, seeds, settings "
        f"or data are left out, such as '{left[0]}'; the newest of each cell counts. To see both, "
        "give each a folder of its own."
    ]


def other_data(found: Sequence[Record]) -> list[str]:
    """Say for which cells methods were not given the same data.

    The package's own data are verified when they are read, a user's by the checksum of the file.
    What was read is not compared bit by bit, since versions of pandas differ in the last one; the
    errors of persistence, which every record has, tell rows apart.
    """
    sums: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
    for record in found:
        if record["status"] == "done" and record["job"]["kind"] == "forecast":
            facts, error = record["data"], record["persistence"]
            file = record["job"]["data"].get("sha256")
            same = (file, facts["rows"], *facts["variables"], *(f"{v:.9g}" for v in error.values()))
            sums.setdefault(_values(record, SAME_ROWS), set()).add(same)
    cells = [dict(zip(SAME_ROWS, cell, strict=True)) for cell, n in sums.items() if len(n) > 1]
    return [
        f"Methods on '{cell['dataset']}' at window {cell['window']} were not given the same data; "
        "their scores cannot be compared. Run them again in a fresh folder."
        for cell in cells
    ]


def _values(record: Record, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(record["job"][name] for name in names)


def _age(record: Record) -> tuple[bool, str, str]:
    """Return what orders records of one place, the one that counts last."""
    return record["status"] == "done", str(record.get("written", "")), record["key"]


def _by_suite(found: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in found:
        job = record["job"]
        groups.setdefault((job["suite"], job["budget"]), []).append(record)
    return {key: told_apart(group) for key, group in groups.items()}


def told_apart(group: list[Record]) -> list[Record]:
    """Add the names of methods to labels that several of them share."""
    methods: dict[str, set[str]] = {}
    for record in group:
        methods.setdefault(record["job"]["label"], set()).add(record["job"]["method"])

    def named(record: Record) -> Record:
        job = record["job"]
        if len(methods[job["label"]]) == 1:
            return record
        return {**record, "job": {**job, "label": f"{job['label']} ({job['method']})"}}

    return [named(record) for record in group]


def _suite(
    suite: str,
    budget: str,
    group: list[Record],
    records: Records,
    study: Study,
    *,
    attention: bool,
) -> Iterator[Section]:
    done = {one["key"]: one for one in group if one["status"] == "done"}
    words = f", budget {budget}" if budget else ""
    yield Section(f"Suite {suite}{words}", _facts(group), level=1)
    scores = score_frame(list(done.values()))
    for part in dict.fromkeys(scores["part"]):
        own = scores[scores["part"] == part]
        mine = [one for one in done.values() if one["job"]["part"] == part]
        name = next((one["job"].get("title") for one in mine if one["job"].get("title")), part)
        yield Section(
            f"{name}: errors",
            (ERRORS_TEXT,),
            (*layout_tables(own, done, study), *step_tables(own), *fold_tables(own)),
        )
        details = tuple(detail_tables(own, records))
        yield Section(f"{name}: every cell", (CELLS_TEXT,), details)
        if study.of_part is not None:
            yield from study.of_part(name, mine, list(done.values()), attention)
        else:
            yield from _importance(name, mine)
    yield from study.of_suite(list(done.values()))
    chosen = _chosen(list(done.values()))
    if chosen is not None:
        yield Section("Settings chosen on validation rows", tables=(chosen,))
    failed = [one for one in group if one["status"] != "done"]
    if failed:
        yield Section("Jobs that failed", tables=(_failures(failed),))


def _importance(name: str, mine: list[Record]) -> Iterator[Section]:
    """Yield what each method's variables are worth, one table per cell, at the last origin."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in mine:
        job = record["job"]
        label = ", ".join(word for word in (job["label"], job["setting"]) if word)
        for row in record["importance"] or ():
            if row.get("importance") is not None and job["fold"] == job["folds"]:
                one = {"variable": row["variable"], "method": label, "worth": row["importance"]}
                cells.setdefault(_values(record, CELL), []).append(one)
    tables = []
    for (dataset, protocol, window, horizon, *_), rows in cells.items():
        numbers = pd.DataFrame(rows)
        shown = numbers.pivot(index="variable", columns="method", values="worth")
        shown = shown.reindex(numbers["variable"].unique(), columns=numbers["method"].unique())
        ahead = f", {horizon} steps ahead" if horizon > 1 else ""
        title = f"{dataset}, window {window}{ahead}, protocol {protocol}: importance by scrambling"
        texts = shown.map("{:.3f}".format).replace("nan", "").reset_index()
        tables.append(Table(title, texts, numbers))
    if tables:
        yield Section(f"{name}: importance of variables", (IMPORTANCE_TEXT,), tuple(tables))


def _facts(group: list[Record]) -> tuple[str, ...]:
    """Say how many jobs there are, and under which circumstances they were run."""
    done = sum(one["status"] == "done" for one in group)
    seconds = sum(one["timings"].get("total", 0.0) for one in group)
    failed = f", {len(group) - done} that failed" if done < len(group) else ""
    text = f"Records of {done} finished jobs{failed}; {seconds / 60:.1f} minutes of work in all."
    told = [one for one in group if one.get("versions")]
    if not told:
        return (text,)
    networks = [one for one in told if "max_epochs" in (one.get("settings") or {})] or told
    devices = dict.fromkeys(str(one["hardware"]["device"]) for one in networks)
    processors = dict.fromkeys(str(one["hardware"]["processor"]) for one in told)
    torch = dict.fromkeys(str(one["versions"]["torch"]) for one in told)
    ours = dict.fromkeys(str(one["versions"]["mvlstm"]) for one in told)
    commits = dict.fromkeys(str(one["commit"])[:10] for one in told if one["commit"])
    where = (
        f"Run with mvlstm {', '.join(ours)} and torch {', '.join(torch)}; networks on "
        f"{', '.join(devices)}, the rest on {', '.join(processors)}."
    )
    return (text, where + (f" Commits: {', '.join(commits)}." if commits else ""))


def _chosen(done: list[Record]) -> Table | None:
    rows = []
    for record in done:
        job = record["job"]
        if record.get("chosen"):
            tried = record["tuning"]
            rows.append(
                {
                    "part": job["part"],
                    "data set": job["dataset"],
                    "protocol": job["protocol"],
                    "window": job["window"],
                    "steps ahead": job["horizon"],
                    "origin": job["fold"],
                    "method": job["label"],
                    "chosen": "; ".join(map(_setting, record.get("blended") or [record["chosen"]])),
                    "of": len(tried),
                }
            )
    if not rows:
        return None
    frame = pd.DataFrame(rows)
    always_one = [name for name in ("steps ahead", "origin") if (frame[name] == 1).all()]
    return Table("Settings chosen", frame.drop(columns=always_one), frame)


def _setting(chosen: dict[str, Any]) -> str:
    return ", ".join(
        f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in chosen.items()
    )


def _failures(failed: list[Record]) -> Table:
    frame = pd.DataFrame([{"job": one["key"], "error": one["error"]["message"]} for one in failed])
    note = "Run them again with `mvlstm bench run ... --retry-failed`."
    return Table("Jobs that failed", frame, frame, (note,))
