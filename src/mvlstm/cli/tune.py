"""`mvlstm tune`: settings of the model for a user's own table, chosen on validation rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mvlstm.cli.files import TABLE_SUFFIXES, check_output
from mvlstm.cli.options import (
    COLUMNS,
    GAPS,
    MISSING,
    TRANSFORM,
    AsJson,
    Calendar,
    Categorical,
    DataFile,
    Debug,
    Decimal,
    Exclude,
    Known,
    Quiet,
    Separator,
    SeriesColumn,
    Target,
    Time,
    Variables,
    fraction_or_count,
    named_columns,
    word_or_words,
)
from mvlstm.cli.session import Output, session, table

if TYPE_CHECKING:
    from mvlstm.bench.search import Tuned

EXAMPLE = (
    "Example: mvlstm tune air.csv --target pm2.5 --time year,month,day,hour --exclude No "
    "--missing drop --gaps close --grid lr=0.001,0.005,hidden=10,20"
)
SEARCH, RUNNING = "What to try", "How to run it"
SHOWN = 10  # settings listed


def tune(
    data: DataFile,
    target: Target,
    time: Time = None,
    series: SeriesColumn = None,
    variables: Variables = None,
    exclude: Exclude = None,
    known: Known = None,
    categorical: Categorical = None,
    calendar: Calendar = None,
    missing: Annotated[str, MISSING] = "error",
    gaps: Annotated[str, GAPS] = "error",
    test: Annotated[
        str,
        typer.Option(
            metavar="SHARE|ROWS",
            help="Rows at the end, not used; with --series, times.",
            rich_help_panel=COLUMNS,
        ),
    ] = "0.2",
    valid: Annotated[
        str,
        typer.Option(
            metavar="SHARE|ROWS", help="Rows before them, to choose on.", rich_help_panel=COLUMNS
        ),
    ] = "0.1",
    transform: Annotated[str | None, TRANSFORM] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=V[,V...]",
            help="Values to try, such as lr=0.001,0.01,l2=1e-5,hidden=10,20. Default: the paper's.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            metavar="default|paper|indep|fusion",
            help="Settings to start from.",
            rich_help_panel=SEARCH,
        ),
    ] = "default",
    window: Annotated[
        int, typer.Option(help="Rows that a forecast is made from.", rich_help_panel=SEARCH)
    ] = 30,
    horizon: Annotated[int, typer.Option(help="Steps ahead.", rich_help_panel=SEARCH)] = 1,
    max_epochs: Annotated[
        int | None, typer.Option(help="Most passes over the training rows.", rich_help_panel=SEARCH)
    ] = None,
    measure: Annotated[
        str,
        typer.Option(
            metavar="rmse|mae",
            help="Error to choose by; mae if a few large errors should not decide.",
            rich_help_panel=SEARCH,
        ),
    ] = "rmse",
    seeds: Annotated[
        int,
        typer.Option(help="Networks per setting; their mean error counts.", rich_help_panel=SEARCH),
    ] = 1,
    seed: Annotated[
        int, typer.Option(help="Seed of all random numbers.", rich_help_panel=SEARCH)
    ] = 0,
    engine: Annotated[
        str,
        typer.Option(metavar="local|ray", help="This machine, or Ray.", rich_help_panel=RUNNING),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="An existing Ray cluster.", rich_help_panel=RUNNING),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Processes side by side (engine local).", rich_help_panel=RUNNING)
    ] = 1,
    device: Annotated[
        str, typer.Option(metavar="auto|cpu|cuda", help="Where to train.", rich_help_panel=RUNNING)
    ] = "auto",
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder of records; an interrupted search continues from it. Default: DATA-tune.",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the ranking: .csv, .parquet or .json."),
    ] = None,
    sep: Separator = None,
    decimal: Decimal = ".",
    quiet: Quiet = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Try settings on validation rows, many networks as one batch; print the best and its command.

    The same command goes on where an interrupted search was. The test rows are not looked at.
    """
    with session(as_json=as_json, debug=debug) as output:
        if out is not None:
            check_output(out, suffixes=TABLE_SUFFIXES, inputs=[data])
        from mvlstm.bench.search import (
            check_parts,
            paper_grid,
            parse_grid,
            tune_jobs,
            tune_table,
            tuned_command,
        )
        from mvlstm.table.files import read_table, write_table
        from mvlstm.table.frame import build_frame

        rows = read_table(data, sep=sep, decimal=decimal)
        options: dict[str, Any] = {
            "file": str(data),
            "target": target,
            "series": series,
            **named_columns(
                rows.columns,
                time=time,
                variables=variables,
                exclude=exclude,
                known=known,
                categorical=categorical,
            ),
            "calendar": word_or_words(calendar),
            "missing": missing,
            "gaps": gaps,
            "sep": sep,
            "decimal": decimal,
            "test": fraction_or_count("--test", test),
            "valid": fraction_or_count("--valid", valid),
        }
        given = {name: value for name, value in options.items() if value is not None}
        reading = ("file", "sep", "decimal", "test", "valid")
        asked: dict[str, Any] = {k: v for k, v in given.items() if k not in reading}
        frame = build_frame(rows, **asked)  # refuse a bad table now
        fixed = {"max_epochs": max_epochs, "transform": transform}
        settings = {name: value for name, value in fixed.items() if value is not None}
        jobs = tune_jobs(
            given,
            preset=preset,
            grid=parse_grid(grid) if grid else paper_grid(preset),
            window=window,
            horizon=horizon,
            seeds=seeds,
            seed=seed,
            settings=settings,
            measure=measure,  # type: ignore[arg-type]  # checked there
        )
        check_parts(frame, jobs)
        found = tune_table(
            jobs,
            records or Path(f"{data.stem}-tune"),
            engine=engine,
            address=address,
            workers=workers,
            device=device,
            retry_failed=True,
            verbose=0 if quiet else 1,
        )
        for problem in found.problems:
            output.warn(problem)
        chosen = {**settings, **found.best}
        command = tuned_command(
            given, chosen, preset=preset, window=window, horizon=horizon, seed=seed
        )
        if out is not None:
            write_table(out, found.ranking)
        output.data = {
            "best": found.best,
            "command": command,
            "ranking": found.ranking.to_dict(orient="records"),
            "failed": found.failed,
            "records": str(found.folder),
            "notes": list(frame.notes),
        }
        _show(output, found, measure)
        output.notes(frame.notes)
        best = ", ".join(f"{name}={value}" for name, value in found.best.items())
        output.show(f"best: {best}", f"use it: {command}")
        if out is not None:
            output.show(f"wrote {out}")


def _show(output: Output, found: Tuned, measure: str) -> None:
    """List the best settings, and the jobs that failed."""
    count = len(found.ranking)
    title = f"Settings by validation {measure.upper()}, the best {min(SHOWN, count)} of {count}"
    output.show(table(found.ranking.head(SHOWN), title=title, exact=list(found.best)))
    output.show(*(f"failed: {key}: {why}" for key, why in found.failed.items()))
