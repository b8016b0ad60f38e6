"""`mvlstm report`: one self-contained page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mvlstm.cli import options as cli
from mvlstm.cli.session import Output

EXAMPLE = "Example: mvlstm report model.safetensors air.csv --out report.html"


@cli.command
def report(
    output: Output,
    model: cli.ModelFile,
    data: cli.DataFile,
    reading: cli.Reading,
    future: cli.Future = None,
    out: Annotated[
        Path,
        cli.option("The .html file to write.", "FILE", name="--out"),
        cli.Written(cli.PAGE_SUFFIXES),
    ] = Path("report.html"),
    effort: cli.Effort = "default",
    time_limit: cli.TimeLimit = None,
    title: Annotated[str | None, cli.option("Heading of the page.")] = None,
    quiet: cli.Quiet = False,
) -> None:
    """Write forecasts, scores, drivers and checks as one page that opens without network."""
    from mvlstm import load
    from mvlstm.table.files import read_table

    rows = read_table(data, **reading)
    ahead = None if future is None else read_table(future, **reading)
    fitted = load(model)
    fitted.verbose = 0 if quiet else 1
    found = fitted.report(
        rows, out, future=ahead, effort=effort, title=title, time_limit=time_limit
    )

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
