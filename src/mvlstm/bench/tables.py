"""All tables of a folder of records: a pure function of what lies there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from mvlstm.bench.document import Document, Section, Table
from mvlstm.bench.records import Record, Records, read_records
from mvlstm.bench.score_tables import CELL, CELLS_TEXT, cell_tables, cell_title, score_frame
from mvlstm.bench.spec import KINDS
from mvlstm.bench.studies import Study, study_of
from mvlstm.errors import check_option

IMPORTANCE_TEXT = (
    "Share of the rise in squared error on test rows when a variable's windows are exchanged "
    "between times."
)
DAMAGED = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)
SAME_ROWS = ("suite", "budget", "part", *CELL)
SAME_WORK = (*SAME_ROWS, "kind", "method", "setting")


def make_tables(
    folder: str | Path, *, suite: str | None = None, attention: bool = True
) -> Document:
    """Return every table that the records of a folder give, or of several copied into one.

    ``suite``: of these records alone. ``attention``: with a study's histograms of attention, one
    table per network and data set.
    """
    records = read_records(folder, must_exist=True)
    if suite is not None:
        check_option("suite", suite, tuple(sorted({one["job"]["suite"] for one in records.found})))
        mine = tuple(one for one in records.found if one["job"]["suite"] == suite)
        records = replace(records, found=mine)
    try:
        return _document(records, attention=attention)
    except DAMAGED:
        bad = [one["key"] for one in records.found if _is_damaged(one, records.folder)]
        if not bad:
            raise
    words = "does not hold what its job leaves, and is left out. Run its suite again."
    problems = (*records.problems, *(f"Record '{key}' {words}" for key in bad))
    sound = tuple(one for one in records.found if one["key"] not in bad)
    return _document(Records(records.folder, sound, problems), attention=attention)


def _is_damaged(record: Record, folder: Path) -> bool:
    """Say whether tables of this record alone cannot be made."""
    try:
        _document(Records(folder, (record,)), attention=False)
    except DAMAGED:
        return True
    return False


def _document(records: Records, *, attention: bool) -> Document:
    found, problems = newest(records.found)
    problems += _other_data(found)
    sections: list[Section] = []
    suites: dict[tuple[str, str], list[Record]] = {}
    for record in found:
        suites.setdefault((record["job"]["suite"], record["job"]["budget"]), []).append(record)
    for (suite, budget), group in suites.items():
        study, lost = study_of(group, records.folder)
        words = f", budget {budget}" if budget else ""
        sections.append(Section(f"Suite {suite}{words}", _facts(group), level=1))
        sections += _suite(_told_apart(group), records, study, attention=attention)
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
        best[place] = max(best.get(place, record), record, key=_age)
    keys = {record["key"] for record in best.values()}
    left = [record["key"] for record in found if record["key"] not in keys]
    sentence = (
        f"{len(left)} records of cells that were run again with other repeats, seeds, settings "
        f"or data are left out, such as '{left[0]}'; the newest of each cell counts. To see both, "
        "give each a folder of its own."
        if left
        else ""
    )
    return [one for one in found if one["key"] in keys], [sentence] if left else []


def _age(record: Record) -> tuple[bool, str, str]:
    return record["status"] == "done", str(record.get("written", "")), record["key"]


def _values(record: Record, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(record["job"][name] for name in names)


def _other_data(found: Sequence[Record]) -> list[str]:
    """Say for which cells methods were not given the same data.

    The package's own data are verified when they are read, a user's by the checksum of the file.
    What was read is not compared bit by bit, since versions of pandas differ in the last one; the
    errors of persistence, which every record has, tell rows apart.
    """
    seen: dict[tuple[Any, ...], set[tuple[Any, ...]]] = {}
    for record in found:
        if record["status"] == "done" and record["job"]["kind"] == "forecast":
            facts, error = record["data"], record["persistence"]
            file = record["job"]["data"].get("sha256")
            same = (file, facts["rows"], *facts["variables"], *(f"{v:.9g}" for v in error.values()))
            seen.setdefault(_values(record, SAME_ROWS), set()).add(same)
    return [
        f"Methods on '{cell[3]}' at window {cell[5]} were not given the same data; "
        "their scores cannot be compared. Run them again in a fresh folder."
        for cell, kinds in seen.items()
        if len(kinds) > 1
    ]


def _told_apart(group: list[Record]) -> list[Record]:
    """Add the names of methods to labels that several of them share."""
    methods: dict[str, set[str]] = {}
    for record in group:
        methods.setdefault(record["job"]["label"], set()).add(record["job"]["method"])
    return [
        {**one, "job": {**one["job"], "label": f"{one['job']['label']} ({one['job']['method']})"}}
        if len(methods[one["job"]["label"]]) > 1
        else one
        for one in group
    ]


def _suite(
    group: list[Record], records: Records, study: Study, *, attention: bool
) -> Iterator[Section]:
    done = [one for one in group if one["status"] == "done"]
    for part in dict.fromkeys(score_frame(done)["part"]):
        mine = [one for one in done if one["job"]["part"] == part]
        title = next((one["job"].get("title") for one in mine if one["job"].get("title")), part)
        if study.of_part is not None:
            yield from study.of_part(title, mine, done, records, attention)
        else:
            tables = tuple(cell_tables(score_frame(mine), records))
            yield Section(f"{title}: every cell", (CELLS_TEXT,), tables)
            yield from _importance(title, mine)
    yield from study.of_suite(done)
    chosen = [_chosen(one) for one in done if one.get("chosen") or one.get("choices")]
    if chosen:
        frame = pd.DataFrame(chosen)
        always_one = [name for name in ("steps ahead", "origin") if (frame[name] == 1).all()]
        table = Table("Settings chosen", frame.drop(columns=always_one), frame)
        yield Section("Settings chosen on validation rows", tables=(table,))
    failed = [one for one in group if one["status"] != "done"]
    if failed:
        rows = [{"job": one["key"], "error": one["error"]["message"]} for one in failed]
        note = "Run them again with retry_failed=True."
        table = Table("Jobs that failed", pd.DataFrame(rows), pd.DataFrame(rows), (note,))
        yield Section("Jobs that failed", tables=(table,))


def _importance(title: str, mine: list[Record]) -> Iterator[Section]:
    """Yield what each method's variables are worth, one table per cell, at the last origin."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for record in mine:
        job = record["job"]
        label = ", ".join(word for word in (job["label"], job["setting"]) if word)
        for row in record["importance"] or ():
            if row.get("importance") is not None and job["fold"] == job["folds"]:
                one = {"variable": row["variable"], "method": label, "worth": row["importance"]}
                cells.setdefault(_values(record, CELL[:4]), []).append(one)
    tables = []
    for cell, rows in cells.items():
        numbers = pd.DataFrame(rows)
        shown = numbers.pivot(index="variable", columns="method", values="worth")
        shown = shown.reindex(numbers["variable"].unique(), columns=numbers["method"].unique())
        texts = shown.map("{:.3f}".format).replace("nan", "").reset_index()
        tables.append(Table(f"{cell_title(*cell)}: importance by scrambling", texts, numbers))
    if tables:
        yield Section(f"{title}: importance of variables", (IMPORTANCE_TEXT,), tuple(tables))


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

    def each(some: list[Record], *names: str) -> str:
        return ", ".join(dict.fromkeys(str(one[names[0]][names[1]]) for one in some))

    where = (
        f"Run with mvlstm {each(told, 'versions', 'mvlstm')} and torch "
        f"{each(told, 'versions', 'torch')}; networks on {each(networks, 'hardware', 'device')}, "
        f"the rest on {each(told, 'hardware', 'processor')}."
    )
    commits = dict.fromkeys(str(one["commit"])[:10] for one in told if one["commit"])
    return (text, where + (f" Commits: {', '.join(commits)}." if commits else ""))


def _chosen(record: Record) -> dict[str, Any]:
    """Return what a job was, what it chose, and of how many settings."""
    job = record["job"]
    settings = [
        ", ".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in one.items())
        for one in record.get("blended") or [record["chosen"]]
        if one
    ]
    own = _own_choices(record.get("choices") or ())
    return {
        "part": job["part"],
        "data set": job["dataset"],
        "protocol": job["protocol"],
        "window": job["window"],
        "steps ahead": job["horizon"],
        "origin": job["fold"],
        "method": job["label"],
        "chosen": "; ".join([*settings, *([own] if own else [])]),
        "of": len(record["tuning"]) or "",
    }


def _own_choices(repeats: Sequence[dict[str, Any]]) -> str:
    """Write what fits chose by themselves, over their repeats and steps ahead.

    Examples
    --------
    >>> _own_choices([{"depth": [3], "trees": [50]}, {"depth": [5], "trees": [50]}])
    'depth=3/5, trees=50'
    """
    values: dict[str, dict[str, None]] = {}
    for one in repeats:
        for name, found in one.items():
            for value in found if isinstance(found, list) else [found]:
                text = f"{value:g}" if isinstance(value, float) else str(value)
                values.setdefault(name, {})[text] = None
    return ", ".join(f"{name}={'/'.join(texts)}" for name, texts in values.items())
