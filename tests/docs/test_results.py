"""RESULTS.md is what the records in results/ give, and nothing else."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from mvlstm.cli.app import app

PROJECT = Path(__file__).parents[2]


def printed(*options: str) -> str:
    answer = CliRunner().invoke(app, ["bench", "tables", str(PROJECT / "results"), *options])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_results_are_what_the_command_prints() -> None:
    written = (PROJECT / "RESULTS.md").read_text(encoding="utf-8")
    assert printed("--no-attention") == written, "run: make results"
    everything = set(printed().splitlines())
    rows = [line for line in written.splitlines() if line.startswith("|")]
    assert rows and everything.issuperset(rows)
