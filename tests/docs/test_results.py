"""RESULTS.md is what the records in results/ give, and nothing else."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from mvlstm.cli.app import app

PROJECT = Path(__file__).parents[2]


def test_results_are_what_the_command_prints() -> None:
    answer = CliRunner().invoke(app, ["bench", "tables", str(PROJECT / "results")])
    assert answer.exit_code == 0, answer.output
    written = (PROJECT / "RESULTS.md").read_text(encoding="utf-8")
    assert answer.stdout == written, "run: make results"
