"""Tables: a pure function of records, with every cell in detail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mvlstm import metrics
from mvlstm.bench.document import Document, Section, Table, number, with_error
from mvlstm.bench.records import Records
from mvlstm.bench.tables import make_tables


def find(tables: tuple[Table, ...], words: str) -> Table:
    (found,) = [table for table in tables if words in f"{table.title}."]
    return found


def test_details_hold_paired_differences_and_tests(folder: Path, records: Records) -> None:
    table = find(make_tables(folder).tables, "synthetic, window 3, protocol chronological: all")
    rows = table.numbers.set_index("method")
    keys = {r["job"]["label"]: r for r in records.found if r["job"]["part"] == "tables"}
    # AR and persistence have no seeds to average over: they stand with the means
    of_mean = {
        name: name.split(", mean")[0] for name in rows.index if rows["kind"][name] != "single"
    }
    alone = {name: name for name in rows.index if name in ("AR", "Persistence")}
    family = of_mean | alone
    assert set(rows.index) - set(family) == set(of_mean.values())
    best = rows.loc[list(family), "valid_rmse"].idxmin()
    assert np.isnan(rows.loc[best, "dm_p"]) and np.isnan(rows.loc[best, "difference"])
    rivals = [name for name in rows.index if name in family and name != best]
    errors = {n: records.arrays(keys[label])[rows["kind"][n]] for n, label in family.items()}  # type: ignore[index]
    raw = [metrics.diebold_mariano(errors[best], errors[name]).p_value for name in rivals]
    assert np.allclose(rows.loc[rivals, "dm_p"].astype(float), metrics.holm(raw))
    for name in rivals:
        gap = [np.mean(keys[family[n]][rows["kind"][n]]["rmse"]) for n in (name, best)]
        assert rows.loc[name, "difference"] == pytest.approx(gap[0] - gap[1])


def test_squared_errors_of_all_repeats_are_tested(folder: Path, records: Records) -> None:
    rows = find(make_tables(folder).tables, "2 steps ahead, protocol chronological: all").numbers
    kept: dict[str, list[Any]] = {"best": [], "ar": []}
    for record in sorted(records.found, key=lambda one: one["job"]["fold"]):
        if record["job"]["part"] == "steps":
            arrays = records.arrays(record)
            assert arrays is not None
            kept[record["job"]["method"]].append(arrays)
    ours = np.concatenate([arrays["ensembles"] for arrays in kept["best"]])
    theirs = np.concatenate([arrays["single"] for arrays in kept["ar"]])
    assert not np.allclose(ours, np.concatenate([arrays["ensemble"] for arrays in kept["best"]]))
    found = rows.set_index("method")["dm_p"].dropna()
    pair = (ours, theirs) if list(found.index) == ["AR"] else (theirs, ours)
    assert found.to_numpy() == pytest.approx([metrics.diebold_mariano(*pair, horizon=2).p_value])


def test_importance_by_scrambling_needs_no_study(folder: Path, records: Records) -> None:
    table = find(make_tables(folder).tables, "window 3, protocol chronological: importance by")
    (ours,) = [one for one in records.found if one["job"]["method"] == "mv"]
    worth = {row["variable"]: row["importance"] for row in ours["importance"]}
    shown = table.shown.set_index("variable")["MV-LSTM"]
    assert shown.to_dict() == {name: f"{value:.3f}" for name, value in worth.items()}
    assert "2 steps ahead" not in table.title  # that part is run without it


def test_contents_link_to_every_heading() -> None:
    words = ("Suite a", "Errors: all, ±", "Suite b, budget c", "Errors: all, ±")
    sections = [Section(title, level=1 + k % 2) for k, title in enumerate(words)]
    text = Document("Results", tuple(sections)).markdown()
    assert text.splitlines()[2:6] == [
        "- [Suite a](#suite-a)",
        "  - [Errors: all, ±](#errors-all-)",
        "- [Suite b, budget c](#suite-b-budget-c)",
        "  - [Errors: all, ±](#errors-all--1)",
    ]
    assert "](#" not in Document("Results", tuple(sections[:2])).markdown()


def test_tables_depend_on_the_records_alone(folder: Path, tmp_path: Path) -> None:
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    for place, line in enumerate(reversed(lines)):  # other files, other order
        (tmp_path / f"records-{place}.jsonl").write_text(line + "\n")
    (tmp_path / "forecasts").symlink_to(folder / "forecasts")
    assert make_tables(tmp_path).markdown() == make_tables(folder).markdown()


def test_files_are_written_and_can_be_read(folder: Path, tmp_path: Path) -> None:
    document = make_tables(folder)
    written = document.write(tmp_path / "out")
    assert written[0].read_text("utf-8") == document.markdown()
    assert len(written) == len(set(written)) == 1 + len(document.tables)
    for path, table in zip(written[1:], document.tables, strict=True):
        assert len(pd.read_csv(path)) == len(table.numbers)


def test_failures_and_damaged_lines_are_shown(folder: Path, tmp_path: Path) -> None:
    record: dict[str, Any] = json.loads(next(folder.glob("*.jsonl")).read_text().splitlines()[0])
    failed = {**record, "status": "failed", "error": {"message": "it broke", "where": []}}
    (tmp_path / "records-a.jsonl").write_text(json.dumps(failed) + '\n{"key": "cut')
    document = make_tables(tmp_path)
    assert "it broke" in document.markdown()
    assert len(document.problems) == 1 and "cut off" in document.problems[0]


def rewritten(folder: Path, place: Path, lines: list[dict[str, Any]]) -> Path:
    """Make a folder of the given records beside the same forecasts."""
    place.mkdir(exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (place / "records-a.jsonl").write_text(text)
    (place / "forecasts").symlink_to(folder / "forecasts")
    return place


def test_a_cell_run_again_counts_once(folder: Path, records: Records, tmp_path: Path) -> None:
    (old,) = [one for one in records.found if one["job"]["method"] == "mv"]
    again = json.loads(json.dumps(old))
    again["key"], again["written"] = "again", "2999-01-01T00:00:00Z"
    again["job"]["repeats"] = 3
    again["single"]["rmse"] = [5.0, 6.0, 7.0]
    document = make_tables(rewritten(folder, tmp_path / "b", [*records.found, again]))
    table = find(document.tables, "synthetic, window 3, protocol chronological: all")
    row = table.numbers.set_index("method").loc["MV-LSTM"]
    assert row["rmse"] == 6.0
    assert row["rmse_se"] == pytest.approx(1.0 / np.sqrt(3))
    (problem,) = document.problems
    assert old["key"] in problem


def test_methods_of_one_label_are_told_apart(
    folder: Path, records: Records, tmp_path: Path
) -> None:
    lines = json.loads(json.dumps(list(records.found)))
    twin = json.loads(json.dumps(next(one for one in lines if one["job"]["method"] == "mv")))
    twin["key"], twin["job"]["method"] = "twin", "mv2"
    tables = make_tables(rewritten(folder, tmp_path / "b", [*lines, twin])).tables
    names = list(find(tables, "synthetic, window 3, protocol chronological: all").shown["method"])
    assert "MV-LSTM (mv)" in names and "MV-LSTM (mv2)" in names


@pytest.mark.parametrize("change", ["file", "rows", "values"])
def test_methods_on_other_data_are_pointed_out(
    folder: Path, records: Records, tmp_path: Path, change: str
) -> None:
    lines = json.loads(json.dumps(list(records.found)))
    one = next(one for one in lines if one["job"]["method"] == "mv")
    one["data"]["sha256"] = "other"  # as another reader of numbers may give
    assert not make_tables(rewritten(folder, tmp_path / "a", lines)).problems
    if change == "file":
        one["job"]["data"]["sha256"] = "other"
    elif change == "rows":
        one["data"]["rows"] += 1
    else:
        one["persistence"]["rmse"] *= 1.000001
    (problem,) = make_tables(rewritten(folder, tmp_path / "b", lines)).problems
    assert "not given the same data" in problem and "'synthetic' at window 3" in problem


def test_origins_are_paired_by_number(folder: Path, records: Records, tmp_path: Path) -> None:
    lines = json.loads(json.dumps(list(records.found)))
    for one in lines:
        job = one["job"]
        if job["part"] == "steps":
            level = 10.0 * job["fold"] + (job["method"] == "ar")
            for kind in ("single", "ensemble"):
                if one[kind]:
                    one[kind]["rmse"] = [level] * len(one[kind]["rmse"])
    first = [o for o in lines if (o["job"]["method"], o["job"]["fold"]) == ("best", 1)]
    rest = [one for one in lines if one not in first]  # one method lacks its first origin
    tables = make_tables(rewritten(folder, tmp_path / "b", rest)).tables
    details = find(tables, "2 steps ahead, protocol chronological: all").numbers
    assert details["difference"].abs().dropna().tolist() == [1.0]
    whole = make_tables(rewritten(folder, tmp_path / "c", lines)).tables
    details = find(whole, "2 steps ahead, protocol chronological: all").numbers
    assert details["difference_se"].dropna().tolist() == [0.0]  # two origins, not four fits


def test_damaged_errors_cost_the_test_alone(folder: Path, records: Records, tmp_path: Path) -> None:
    (record,) = [one for one in records.found if one["job"]["method"] == "mv"]
    data = (folder / "forecasts" / f"{record['key']}.npz").read_bytes()
    (tmp_path / "forecasts").mkdir()
    rng = np.random.default_rng(0)
    copy = Records(tmp_path, records.found)
    for _ in range(200):
        broken = bytearray(data)
        for place in rng.integers(0, len(data), size=3):
            broken[place] ^= 0xFF
        (tmp_path / "forecasts" / f"{record['key']}.npz").write_bytes(broken)
        copy.arrays(record)  # whatever is broken, nothing is raised


def test_markdown_escapes_and_aligns() -> None:
    table = Table("T", pd.DataFrame({"a|b": ["x|y"], "n": ["1.0 ± 0.1"]}), pd.DataFrame())
    assert table.markdown().splitlines()[2:] == [
        "| a\\|b | n |",
        "| --- | ---: |",
        "| x\\|y | 1.0 ± 0.1 |",
    ]


def test_numbers_are_written_with_their_errors() -> None:
    assert [number(v) for v in (123456.0, 20.123, 0.0233, 0, None)] == [
        "123456",
        "20.12",
        "0.02330",
        "0",
        "",
    ]
    assert with_error(20.0854, 0.0172) == "20.085 ± 0.017"
    assert with_error(1.012661, 0.000092) == "1.01266 ± 0.00009"  # no more than six digits
    assert with_error(127.84, 12.91) == "127.8 ± 12.9"
    assert with_error(20.0854, 0.0) == "20.09 ± 0.00"
    assert with_error(-0.0004, 0.05, 2) == "0.000 ± 0.050"  # so small a mean needs no more digits
    assert with_error(20.0854, float("nan")) == with_error(20.0854, None) == "20.09"
    assert with_error(None, 0.1) == ""
