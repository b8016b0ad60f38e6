"""`mvlstm forecast`: the next values, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mvlstm.cli import options as cli
from mvlstm.cli.pieces import running, tell
from mvlstm.cli.session import Output, table
from mvlstm.cli.words import numbers
from mvlstm.errors import ParameterError, check_whole

EXAMPLE = "Example: mvlstm forecast model.safetensors air.csv --out next.csv"


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
    into: cli.Into = None,
    memory: cli.Memory = None,
    engine: cli.Engine = "local",
    retry: cli.Retry = False,
    quiet: cli.Quiet = False,
) -> None:
    """Forecast the steps after the last row: mean, median and 90 % interval (q05 to q95).

    With --into, DATA is a Parquet dataset of any number of series, read in pieces, forecast
    and scored block by block; the same command again does what is missing.
    """
    if paths is not None:
        check_whole("--paths", paths, 1)
        if into is not None:
            raise ParameterError("--paths is for one table; leave it out with --into.")
        if out is None:
            raise ParameterError(
                f"--paths {paths} writes a table and needs a file: add --out FILE."
            )
    levels = numbers("--quantiles", quantiles and [quantiles], float, "0.1,0.9")

    told = running(data, into, memory, engine, retry=retry, quiet=quiet)
    if told is not None:
        from mvlstm.many.forecasting import forecast as forecast_many
        from mvlstm.results.evaluation import SCORES_SHOWN

        assert into is not None
        found = forecast_many(model, data, into, **told, quantiles=levels)
        tell(output, found, "forecast")
        if found.scores is not None:
            shown = found.scores[[*SCORES_SHOWN, "n"]].to_frame().T
            output.show(table(shown, title="Scores on unseen rows, means over all series"))
        output.show(f"forecasts: {into / 'forecasts'}, scores: {into / 'scores'}")
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
