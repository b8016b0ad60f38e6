"""Every Python snippet of README and docs runs and prints what the page says; commands exist.

A ``text`` block that follows a ``python`` block is what the snippet prints. Words must agree
exactly, numbers roughly, since training differs slightly between machines. The commands of some
pages run too, on small tables with the columns that the page tells of, and with short trainings.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer.main
from typer.testing import CliRunner

import mvlstm as mv
from mvlstm.cli.app import app
from processes import LONG

PROJECT = Path(__file__).parents[2]
PAGES = sorted([PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *PROJECT.glob("docs/*.md")])
TUTORIALS = sorted(PROJECT.glob("docs/tutorials/*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMANDS = ("docs/cli.md", "docs/dirty-table.md", "docs/tutorials/first-forecast.md")
SHORT = {  # options that keep a command short where the page does not give them
    "fit": ("--max-epochs", "1"),
    "explain": ("--effort", "quick"),
    "report": ("--effort", "quick"),
}
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def _blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of every fenced block."""
    return FENCE.findall(page.read_text(encoding="utf-8"))


def _snippets(page: Path) -> list[tuple[str, str | None]]:
    """Python blocks, each with what it should print if the page shows it."""
    return [
        (code, after if kind == "text" else None)
        for (language, code), (kind, after) in pairwise([*_blocks(page), ("", "")])
        if language == "python"
    ]


def _assert_prints(printed: str, shown: str) -> None:
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", shown).split(), printed
    for got, said in zip(NUMBER.findall(printed), NUMBER.findall(shown), strict=True):
        assert float(got) == pytest.approx(float(said), rel=0.1, abs=0.05), printed


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_snippets_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "snippet"}
    for code, shown in _snippets(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec", dont_inherit=True), namespace)
        if shown is not None:
            _assert_prints(printed.getvalue(), shown)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda p: p.name)
def test_tutorials_print_and_draw_what_they_show(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    made, figures = runpy.run_path(str(PROJECT / "docs" / "make_tutorials.py"))["run"](text, "page")
    shown = [code for language, code in _blocks(page) if language == "text"]
    for now, before in zip((t for k, t in FENCE.findall(made) if k == "text"), shown, strict=True):
        assert before.strip(), "run: python docs/make_tutorials.py"
        _assert_prints(_by_text(now), _by_text(before))
    for name, figure in figures.items():
        kept = json.loads((page.parent / "figures" / f"{name}.json").read_text(encoding="utf-8"))
        assert [_outline(one) for one in figure["data"]] == [_outline(one) for one in kept["data"]]


def _by_text(printed: str) -> str:
    """Order lines by their words: which of two small numbers is larger may differ by machine."""
    lines = (" ".join(line.split()) for line in printed.splitlines())
    return "\n".join(sorted(lines, key=lambda line: NUMBER.sub("#", line)))


def _outline(trace: dict[str, Any]) -> tuple[Any, ...]:
    return trace.get("type"), trace.get("name"), len(trace["y"])


@pytest.mark.parametrize("page", [*PAGES, *TUTORIALS], ids=lambda p: p.name)
def test_commands_exist(page: Path) -> None:
    root = typer.main.get_command(app)
    for language, text in _blocks(page):
        if language not in {"sh", "console"}:
            continue
        for line in text.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if words[:1] != ["mvlstm"]:
                continue
            command, rest = root, words[1:]
            while rest and rest[0] in getattr(command, "commands", {}):
                command, rest = command.commands[rest[0]], rest[1:]  # type: ignore[attr-defined]
            known = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
            known |= {"--help", "-h"}
            unknown = {w.split("=")[0] for w in rest if w.startswith("-")} - known
            assert not unknown, f"{line}: {sorted(unknown)}"


def _air(rows: int = 300) -> pd.DataFrame:
    """A table with the columns of Beijing's air quality, up to this hour."""
    rng = np.random.default_rng(0)
    end = pd.Timestamp.now().floor("h")
    hours = pd.date_range(end=end, periods=rows, freq="h")
    table = pd.DataFrame({"No": range(1, rows + 1)})
    table = table.assign(year=hours.year, month=hours.month, day=hours.day, hour=hours.hour)
    level = 80 + 20 * np.sin(np.arange(rows) / 4) + rng.normal(size=rows)
    table["pm2.5"] = np.where(rng.random(rows) < 0.02, np.nan, level)
    return table.assign(TEMP=rng.normal(size=rows), cbwd=rng.choice(["NW", "SE", "cv"], rows))


def _tables(page: Path) -> None:
    """Write the tables that the commands of a page read."""
    if page.name == "cli.md":
        _air().to_csv("air.csv", index=False)
        hours = pd.date_range("2024-01-01", periods=624, freq="h", name="time")
        one = pd.DataFrame({"holiday": hours.day_of_week == 6, "demand": range(624)}, index=hours)
        both = pd.concat([one.assign(station=name) for name in ("north", "south")]).reset_index()
        ahead = both["time"] >= hours[600]
        both[~ahead].to_csv("stations.csv", index=False)
        both[ahead].drop(columns="demand").to_csv("holidays.csv", index=False)
        return
    names: dict[str, Any] = {}
    exec(compile(_snippets(page)[0][0], page.name, "exec", dont_inherit=True), names)
    names["table"].tail(500).to_csv("office.csv")  # which the other page has as air.csv, as a file


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _tables(PROJECT / name)
    blocks = [text for language, text in _blocks(PROJECT / name) if language == "sh"]
    lines = [line for text in blocks for line in text.replace("\\\n", " ").splitlines()]
    assert lines
    for line in lines:
        words = shlex.split(line)
        short = SHORT.get(words[1], ())
        done = CliRunner().invoke(app, [*words[1:], *(() if set(short) & set(words) else short)])
        assert done.exit_code == 0, f"{line}: {done.stderr}"
        for option in ("--out", "--into"):
            if option in words:
                assert Path(words[words.index(option) + 1]).exists()


def test_scripts_of_a_crontab_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    monkeypatch.chdir(tmp_path)
    table = _air()
    model = mv.AR(window=6, missing="drop", gaps="close", verbose=0)
    model.fit(table[:200], "pm2.5", time=["year", "month", "day", "hour"], exclude="No", test=0.2)
    model.save("air.safetensors")
    table.loc[200:, "pm2.5"] += 40 * np.random.default_rng(1).normal(size=100)  # it slips
    table.to_csv("air.csv", index=False)
    (tmp_path / "mvlstm").write_text(f'#!/bin/sh\nexec {sys.executable} -m mvlstm "$@"\n')
    (tmp_path / "mvlstm").chmod(0o755)
    places = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    blocks = _blocks(PROJECT / "docs" / "automation.md")
    hourly, daily, _ = (text for language, text in blocks if language == "sh")
    for script in (hourly, daily):
        done = subprocess.run(
            ["sh"], input=script, env=places, capture_output=True, text=True, timeout=LONG
        )
        assert done.returncode == 0, done.stderr
    assert len(pd.read_csv("forecasts.csv")) == 1
    assert any(slip["slipped"] for slip in json.loads(Path("evaluation.json").read_text())["slips"])
    assert len(mv.load("air.safetensors").updates_) == 1
