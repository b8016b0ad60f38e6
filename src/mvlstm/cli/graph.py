"""`mvlstm graph`: every column in turn the target, and what acts on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from mvlstm._words import counted
from mvlstm.cli import options as cli
from mvlstm.cli.session import Output, first_of, table
from mvlstm.cli.words import named_columns
from mvlstm.table.settings import Columns as TableColumns
from mvlstm.table.settings import Repairs

EXAMPLE = (
    "Example: mvlstm graph air.csv --time year,month,day,hour --exclude No,cbwd --missing drop "
    "--gaps close --out graph.html"
)
COLUMNS = ("time", "series", "variables", "exclude", "categorical", "na_values")
LINKS_SHOWN = 30  # on a screen; --json and --out have all


@cli.command
def graph(
    output: Output,
    data: cli.DataFile,
    columns: Annotated[cli.Given, cli.option_group(TableColumns, *COLUMNS)],
    cleaning: Annotated[cli.Given, cli.option_group(Repairs)],
    reading: cli.Reading,
    targets: Annotated[
        list[str] | None,
        cli.option("Columns whose drivers are looked for; by default all.", "COL[,COL...]"),
    ] = None,
    window: Annotated[
        int | None, cli.option("Lags that are read; by default 2, 3, 5 or 10, what forecasts best.")
    ] = None,
    control: Annotated[
        Literal["family", "fdr"],
        cli.option(
            "Hold at 5 %: the chance of any false link, or the share of false ones among those "
            "found (for many columns)."
        ),
    ] = "family",
    effort: cli.Effort = "default",
    out: Annotated[
        Path | None,
        cli.option("Also write it to an .html page, or to .csv, .parquet or .json.", "FILE"),
        cli.Written((*cli.PAGE_SUFFIXES, *cli.TABLE_SUFFIXES)),
    ] = None,
    engine: cli.Engine = "local",
    checkpoint: cli.Checkpoint = None,
    quiet: cli.Quiet = False,
) -> None:
    """Find out who drives whom: every column in turn the target, the others its drivers."""
    from mvlstm.evaluate.graph import graph as run

    rows, named = cli.read_rows(data, reading, columns)
    result = run(
        rows,
        **named,
        **cleaning,
        targets=None if not targets else named_columns(rows.columns, targets),
        window=window,
        control=control,
        effort=effort,
        verbose=0 if quiet else 1,
        engine=engine,
        checkpoint=checkpoint,
    )
    if out is not None and out.suffix.lower() in cli.PAGE_SUFFIXES:
        from mvlstm.report import graph_page
        from mvlstm.storage import write_atomic

        write_atomic(out, graph_page(result, title=f"{data.stem}: who drives whom"))
    else:
        output.write_table(out, result.to_frame())
    output.data = {**result.to_dict(), "out": None if out is None else str(out)}
    found = result.important.drop(columns=["verdict", "detectable"])
    if len(found):
        title = f"Important links{first_of(len(found), LINKS_SHOWN)}"
        output.show(table(found.head(LINKS_SHOWN), title=title, digits=3))
    least = float(result.links["detectable"].median())
    output.show(
        f"{len(found):,} of {counted(len(result.links), 'link')} are important, from "
        f"{result.rows:,} rows and {counted(result.window, 'lag')}. A link that takes away "
        f"{least:.0%} of the error would have been found in four of five tables."
    )
    output.notes(result.notes)
    output.wrote(out)
