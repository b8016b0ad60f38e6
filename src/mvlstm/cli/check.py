"""`mvlstm check`: all that is wrong with a table at once, and the command that would fit it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mvlstm.cli import options as cli
from mvlstm.cli.messages import translate
from mvlstm.cli.session import BAD_INPUT, Output, table
from mvlstm.settings import AheadSettings
from mvlstm.table.settings import Cleaning

if TYPE_CHECKING:
    from mvlstm.results.check import Check

EXAMPLE = "Example: mvlstm check air.csv --target CO"
COLUMNS_SHOWN = 40  # on a screen; --json has all

Split = Annotated[
    cli.Given,
    cli.split_options(
        test="0.2",
        test_help="Rows at the end to be left unseen: 0.2 or 500; with --series, times.",
        valid_help="Rows before them, to stop training and calibrate.",
    ),
]


@cli.command
def check(
    output: Output,
    data: cli.DataFile,
    columns: cli.Columns,
    cleaning: Annotated[cli.Given, cli.option_group(Cleaning)],
    ahead: Annotated[cli.Given, cli.option_group(AheadSettings)],
    split: Split,
    reading: cli.Reading,
) -> None:
    """Say all that is wrong with a table at once, and which command would fit it.

    Nothing is trained. Exit code 2 if no option would do.
    """
    from mvlstm.model.checking import check as run

    _, named = cli.read_rows(data, reading, columns)
    found = run(data, **named, **cleaning, **ahead, **split, **reading)
    command = _command(data, found) if found.fits else None
    output.data = {**found.to_dict(), "command": command}
    drawn = table(found.columns.head(COLUMNS_SHOWN), shares=("missing",))
    output.show(drawn)
    for number, one in enumerate(found.findings, 1):
        output.show(f"{number}. {_said(one.fault, output.options)}")
    output.notes(found.notes)
    output.show(*(f"warning: {output.worded(text)}" for text in found.warnings))
    output.show(*(f"worth trying: {_said(text, output.options)}" for text in found.suggestions))
    if command is None:
        output.show("No option would mend the last of these: correct the table.")
        output.code = BAD_INPUT
    else:
        faults = "Nothing is wrong" if not found.findings else "With that mended"
        output.show(f"{faults}: {found.rows}", f"fit it with: {command}")


def _command(data: Path, found: Check) -> str:
    """Return the command that fits the table, as a shell takes it."""
    given: Mapping[str, Any] = found.named | found.settings | found.reading
    options = [
        translate(f"x {name}={value!r}", cli.FIT_OPTIONS)[2:] for name, value in given.items()
    ]
    model = data.with_suffix(".safetensors").name
    return " ".join(["mvlstm fit", shlex.quote(str(data)), *options, "--out", shlex.quote(model)])


def _said(message: str, options: Mapping[str, str]) -> str:
    """Translate a message, the argument that may open it too: it is advice, not what was given."""
    return translate(f" {message}", options)[1:]
