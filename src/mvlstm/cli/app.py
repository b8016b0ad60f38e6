"""The `mvlstm` command: its sub-commands, put together."""

from __future__ import annotations

import os
import signal
from typing import Annotated

import typer

from mvlstm._version import __version__
from mvlstm.cli import (
    bench,
    check,
    compare,
    data,
    demo,
    evaluate,
    explain,
    export,
    fit,
    forecast,
    graph,
    report,
    serve,
    tune,
    update,
)

app = typer.Typer(
    name="mvlstm",
    help="Forecast one series from many, with intervals, and see which variables matter.",
    epilog="Start with: mvlstm demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mvlstm {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Forecast one series from many, with intervals, and see which variables matter."""


commands = (demo, check, fit, forecast, evaluate, update, explain, report, graph, compare, tune)
for module in (*commands, export, serve):
    name = module.__name__.rpartition(".")[2]
    app.command(name, epilog=module.EXAMPLE)(getattr(module, name))
app.add_typer(bench.app, name="bench")
app.add_typer(data.app, name="data")


def main() -> None:
    """Run the command line; the console script's entry."""
    # Idle threads of torch sleep instead of spinning: on a busy machine a fit and its explanation
    # are then up to three times as fast. It is read when torch is loaded, later in a command.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C
    app()
