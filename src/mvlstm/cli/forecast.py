"""`mvlstm forecast`: the next values, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mvlstm.cli.command import command
from mvlstm.cli.files import TABLE_SUFFIXES, check_output
from mvlstm.cli.groups import option
from mvlstm.cli.options import DataFile, Future, ModelFile, Reading, TableFile
from mvlstm.cli.session import Output, table
from mvlstm.cli.words import numbers

EXAMPLE = "Example: mvlstm forecast model.safetensors air.csv --out next.csv"


@command
def forecast(
    output: Output,
    model: ModelFile,
    data: DataFile,
    reading: Reading,
    future: Future = None,
    quantiles: Annotated[
        str | None, option("Further quantiles, such as 0.1,0.25,0.75,0.9.", "Q[,Q...]")
    ] = None,
    out: TableFile = None,
    append: Annotated[
        Path | None, option("Append them to a .csv file; forecasts already there are kept.", "FILE")
    ] = None,
) -> None:
    """Forecast the steps after the last row: mean, median and 90 % interval (q05 to q95)."""
    inputs = (model, data) if future is None else (model, data, future)
    check_output(out, suffixes=TABLE_SUFFIXES, inputs=inputs)
    check_output(append, suffixes=(".csv",), inputs=inputs, option="--append")

    levels = numbers("--quantiles", quantiles and [quantiles], float, "0.1,0.9")

    from mvlstm import load
    from mvlstm.table.appending import append_rows
    from mvlstm.table.files import read_table, write_table

    ahead = None if future is None else read_table(future, **reading)
    result = load(model).forecast(read_table(data, **reading), future=ahead)
    rows = result.to_frame(levels)
    if out is not None:
        write_table(out, rows)

    added = None
    if append is not None:
        kept = rows.drop(columns=["part", "actual"], errors="ignore")
        key = [name for name in ("series", "origin", "step") if name in kept]
        added = append_rows(append, kept, key=key)

    output.data = {
        **result.to_dict(levels),
        "out": None if out is None else str(out),
        "append": None if append is None else str(append),
        "appended": added,
    }
    output.show(table(rows.drop(columns="part"), title=f"Forecast of {result.target}"))
    output.notes(result.notes)
    output.wrote(out)
    if append is not None:
        output.show(f"appended {added} of {len(rows)} rows to {append}")
