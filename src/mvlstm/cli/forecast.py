"""`mvlstm forecast`: the next values, with intervals."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from mvlstm.cli.files import TABLE_SUFFIXES, check_output
from mvlstm.cli.options import AsJson, DataFile, Debug, Decimal, ModelFile, Separator
from mvlstm.cli.session import session, table

EXAMPLE = "Example: mvlstm forecast model.safetensors air.csv --out next.csv"


def forecast(
    model: ModelFile,
    data: DataFile,
    future: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Next values of variables known ahead; without it, rows at the end of DATA.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write them to a .csv, .parquet or .json file."),
    ] = None,
    sep: Separator = None,
    decimal: Decimal = ".",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Forecast the steps after the last row: mean, median and 90 % interval (q05 to q95)."""
    with session(as_json=as_json, debug=debug) as output:
        if out is not None:
            inputs = (model, data) if future is None else (model, data, future)
            check_output(out, suffixes=TABLE_SUFFIXES, inputs=inputs)

        from mvlstm import load
        from mvlstm.data.io import read_table, write_table

        rows_of = partial(read_table, sep=sep, decimal=decimal)
        ahead = None if future is None else rows_of(future)
        result = load(model).forecast(rows_of(data), future=ahead)
        rows = result.to_frame()
        if out is not None:
            write_table(out, rows)

        output.data = {**result.to_dict(), "out": None if out is None else str(out)}
        output.show(table(rows.drop(columns="part"), title=f"Forecast of {result.target}"))
        output.notes(result.notes)
        if out is not None:
            output.show(f"wrote {out}")
