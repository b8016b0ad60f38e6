"""Every Python snippet of README and docs runs and prints what the page says; commands exist.

A ``text`` block that follows a ``python`` block is what the snippet prints. Words must agree
exactly, numbers roughly, since training differs slightly between machines.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer.main

from mvlstm.cli.app import app

PROJECT = Path(__file__).parents[2]
PAGES = sorted([PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *PROJECT.glob("docs/*.md")])
TUTORIALS = sorted(PROJECT.glob("docs/tutorials/*.md"))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
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
