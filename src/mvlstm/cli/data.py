"""`mvlstm data`: the built-in data sets and where files are looked for."""

from __future__ import annotations

from typing import Annotated

import typer

from mvlstm.cli import options as cli
from mvlstm.cli.session import Output, table

app = typer.Typer(
    help="The data sets that can be loaded by name.",
    epilog="Example: mvlstm data list",
    no_args_is_help=True,
)


@app.command("list", epilog="Example: mvlstm data list --json")
@cli.command
def list_sets(output: Output) -> None:
    """List the data sets, with what is known of each."""
    from dataclasses import asdict

    import pandas as pd

    from mvlstm import datasets

    infos = [datasets.describe(name) for name in datasets.available()]
    present = {info.name: datasets.is_present(info.name) for info in infos}
    output.data = {
        "folder": str(datasets.data_folder()),
        "datasets": [
            {**asdict(info), "target": info.target, "present": present[info.name]} for info in infos
        ],
    }
    rows = [
        {
            "name": info.name,
            "rows": info.rows,
            "variables": len(info.variables),
            "target": info.target,
            "licence": info.licence,
            "here": "built in" if info.builtin else "yes" if present[info.name] else "no",
        }
        for info in infos
    ]
    output.show(table(pd.DataFrame(rows), title="Data sets"))
    output.show(*(f"{i.name}: {i.title}. {i.oddities} {i.citation}." for i in infos))
    if not all(present.values()):
        output.show("Those of UCI are downloaded with: mvlstm data fetch")


@app.command("path", epilog="Example: MVLSTM_DATA=~/data mvlstm data path")
@cli.command
def path(output: Output) -> None:
    """Print the folder in which data files are looked for."""
    from mvlstm import datasets

    folder = datasets.data_folder()
    output.data = {"path": str(folder)}
    output.show(str(folder))


@app.command("fetch", epilog="Example: mvlstm data fetch pm25 energy")
@cli.command
def fetch_sets(
    output: Output,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Data sets. Default: all that can be downloaded."),
    ] = None,
    source: Annotated[
        str | None, cli.option("Take the archive of one set from here.", "URL|FILE.zip")
    ] = None,
    force: Annotated[bool, cli.option("Download again even if present.", name="--force")] = False,
    quiet: cli.Quiet = False,
) -> None:
    """Download data sets of the UCI repository into the data folder, and verify their contents."""
    from mvlstm import datasets
    from mvlstm.datasets.download import fetch, fetchable
    from mvlstm.errors import ParameterError

    chosen = list(dict.fromkeys(names or fetchable()))
    for name in chosen:
        datasets.describe(name)
    if source is not None and len(chosen) != 1:
        raise ParameterError("--source is the archive of one data set; name that one.")
    written = {}
    for name in chosen:
        notice = None if quiet else (lambda text: typer.echo(text, err=True))
        files = fetch(name, source=source, force=force, notice=notice)
        written[name] = [str(path) for path in files]
        state = "already there" if not files else f"{len(files)} file(s) verified and written"
        output.show(f"{name}: {state}")
    output.data = {"folder": str(datasets.data_folder()), "written": written}
