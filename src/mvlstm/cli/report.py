"""`mvlstm report`: one self-contained page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mvlstm.cli.command import command
from mvlstm.cli.files import PAGE_SUFFIXES, check_output
from mvlstm.cli.groups import option
from mvlstm.cli.options import DataFile, Effort, Future, ModelFile, Quiet, Reading
from mvlstm.cli.session import Output

EXAMPLE = "Example: mvlstm report model.safetensors air.csv --out report.html"


@command
def report(
    output: Output,
    model: ModelFile,
    data: DataFile,
    reading: Reading,
    future: Future = None,
    out: Annotated[Path, option("The .html file to write.", "FILE", name="--out")] = Path(
        "report.html"
    ),
    effort: Effort = "default",
    title: Annotated[str | None, option("Heading of the page.")] = None,
    quiet: Quiet = False,
) -> None:
    """Write forecasts, scores, drivers and checks as one page that opens without network."""
    check_output(out, suffixes=PAGE_SUFFIXES, inputs=(model, data, *([future] if future else [])))

    from mvlstm import load
    from mvlstm.table.files import read_table

    rows = read_table(data, **reading)
    ahead = None if future is None else read_table(future, **reading)
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
