"""`mvlstm report`: one self-contained page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mvlstm.cli.files import PAGE_SUFFIXES, check_output
from mvlstm.cli.options import (
    AsJson,
    DataFile,
    Debug,
    Decimal,
    Future,
    ModelFile,
    Quiet,
    Separator,
)
from mvlstm.cli.session import session

EXAMPLE = "Example: mvlstm report model.safetensors air.csv --out report.html"


def report(
    model: ModelFile,
    data: DataFile,
    future: Future = None,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The .html file to write.")
    ] = Path("report.html"),
    effort: Annotated[
        Literal["quick", "default", "full"], typer.Option(help="How thoroughly to measure.")
    ] = "default",
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    sep: Separator = None,
    decimal: Decimal = ".",
    quiet: Quiet = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Write forecasts, scores, drivers and checks as one page that opens without network."""
    with session(as_json=as_json, debug=debug) as output:
        check_output(
            out, suffixes=PAGE_SUFFIXES, inputs=(model, data, *([future] if future else []))
        )

        from mvlstm import load
        from mvlstm.table.files import read_table

        rows = read_table(data, sep=sep, decimal=decimal)
        ahead = None if future is None else read_table(future, sep=sep, decimal=decimal)
        fitted = load(model)
        fitted.verbose = 0 if quiet else 1
        found = fitted.report(rows, out, future=ahead, effort=effort, title=title)

        output.data = {
            "out": str(out),
            "bytes": out.stat().st_size,
            "evaluation": found.evaluation.to_dict(),
            "explanation": found.explanation.to_dict(),
            "forecast": found.future.to_dict(),
            "notes": list(found.evaluation.notes),
        }
        output.notes(found.evaluation.notes)
        output.show(f"wrote {out} ({out.stat().st_size / 1e6:.1f} MB)")
