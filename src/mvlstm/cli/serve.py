"""`mvlstm serve`: an exported model over HTTP."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mvlstm.cli import options as cli
from mvlstm.cli.session import Output
from mvlstm.errors import ParameterError, reachable

if TYPE_CHECKING:
    from mvlstm.runtime import Runtime

EXAMPLE = "Example: mvlstm serve model.onnx --port 8000 --report report.html"
TOKEN = "MVLSTM_TOKEN"


@cli.command
def serve(
    output: Output,
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="File of `mvlstm export`, or of `mvlstm fit`."),
        cli.Read(),
    ],
    host: Annotated[str, cli.option("Address to listen at.", "HOST")] = "127.0.0.1",
    port: Annotated[int, cli.option("Port to listen at.", "PORT")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(metavar="TOKEN", envvar=TOKEN, help="What requests must bring as Bearer."),
    ] = None,
    report: Annotated[
        Path | None, cli.option("Page of `mvlstm report` to show at /.", "FILE.html"), cli.Read()
    ] = None,
    max_bytes: Annotated[int, cli.option("Most bytes of a request.", "N")] = 8 * 2**20,
    max_rows: Annotated[int, cli.option("Most rows of a request.", "N")] = 20_000,
) -> None:
    """Answer requests for forecasts: POST /forecast, GET /model, /health, /openapi.json and /."""
    from mvlstm.runtime.service import Limits, check_access, run

    check_access(host, token)
    if min(max_bytes, max_rows) < 1:
        raise ParameterError("--max-bytes and --max-rows must be 1 or more.")
    page = None if report is None else _text(report)
    limits = Limits(max_bytes, max_rows)
    run(_runtime(model), host=host, port=port, token=token, report=page, limits=limits)


def _text(report: Path) -> str:
    try:
        return reachable(report, ParameterError).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise ParameterError(f"--report '{report}' cannot be read: {error}.") from error


def _runtime(model: Path) -> Runtime:
    """Load an exported model; export one that is not."""
    from mvlstm.runtime import load

    if model.suffix.lower() != ".safetensors":
        return load(model)
    from mvlstm import load as load_fitted

    with tempfile.TemporaryDirectory() as folder:
        load_fitted(model).export(Path(folder) / "model.onnx")
        return load(Path(folder) / "model.onnx")
