"""`mvlstm forecast`: the next values, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from mvlstm.cli import options as cli
from mvlstm.cli.session import Output, table
from mvlstm.cli.words import numbers
from mvlstm.errors import ParameterError

EXAMPLE = "Example: mvlstm forecast model.safetensors air.csv --out next.csv"

FAILURES_SHOWN = 10  # on a screen; --json and the folder have all


@cli.command
def forecast(
    output: Output,
    model: cli.ModelFile,
    data: cli.DataFile,
    reading: cli.Reading,
    future: cli.Future = None,
    steps: Annotated[int | None, cli.option("How many; by default all that were learned.")] = None,
    quantiles: Annotated[
        str | None, cli.option("Further quantiles, such as 0.1,0.25,0.75,0.9.", "Q[,Q...]")
    ] = None,
    paths: Annotated[
        int | None, cli.option("Write this many joint paths over the steps to --out instead.", "N")
    ] = None,
    seed: Annotated[int, cli.option("Seed of the paths.", "SEED")] = 0,
    out: cli.TableFile = None,
    append: Annotated[
        Path | None,
        cli.option("Append them to a .csv file; forecasts already there are kept.", "FILE"),
        cli.Written((".csv",)),
    ] = None,
    into: Annotated[
        Path | None,
        cli.option("Folder for the forecasts and scores of many series, in pieces.", "DIR"),
    ] = None,
    memory: cli.Memory = None,
    engine: cli.Engine = "local",
    quiet: cli.Quiet = False,
) -> None:
    """Forecast the steps after the last row: mean, median and 90 % interval (q05 to q95).

    With --into, DATA is a Parquet dataset of any number of series, read in pieces and forecast
    block by block; the same command again does what is missing.
    """
    if paths is not None and out is None:
        raise ParameterError(f"--paths {paths} writes a table and needs a file: add --out FILE.")
    levels = numbers("--quantiles", quantiles and [quantiles], float, "0.1,0.9")

    if into is not None or cli.stays_on_disk(data, memory):
        if into is None:
            raise ParameterError(
                f"'{data}' is read in pieces, and its forecasts need a folder. Add --into DIR, or "
                "name a file of one table."
            )
        settings = {"memory": memory or cli.MEMORY, "engine": engine, "verbose": 0 if quiet else 1}
        _forecast_many(output, model, data, into, {**settings, "quantiles": levels})
        return

    from mvlstm import load
    from mvlstm.table.appending import append_rows
    from mvlstm.table.files import read_table

    ahead = None if future is None else read_table(future, **reading)
    result = load(model).forecast(read_table(data, **reading), future=ahead, steps=steps)
    rows = result.to_frame(levels)
    output.write_table(out, rows if paths is None else result.sample(paths, seed))
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


def _forecast_many(
    output: Output, model: Path, data: Path, into: Path, settings: dict[str, Any]
) -> None:
    """Forecast all series of a dataset, and tell what failed."""
    from mvlstm.many.forecasting import forecast as run

    found = run(model, data, into, **settings)
    failures = found.failures.to_dict(orient="records")
    output.data = {
        "out": str(into),
        "series": found.series,
        "blocks": found.blocks,
        "done": found.done,
        "failures": failures,
    }
    output.show(f"{found.series:,} series forecast, {found.done:,} of {found.blocks:,} blocks now")
    for one in failures[:FAILURES_SHOWN]:
        output.warn(one["reason"])
    if len(failures) > FAILURES_SHOWN:
        output.warn(f"{len(failures):,} failures in all: see '{into / 'failures'}'.")
    output.show(f"forecasts: {into / 'forecasts'}, scores: {into / 'scores'}")
