"""`mvlstm data`: the built-in data sets and where files are looked for."""

from __future__ import annotations

import typer

from mvlstm.cli.options import AsJson, Debug
from mvlstm.cli.session import session, table

app = typer.Typer(
    help="The data sets that can be loaded by name.",
    epilog="Example: mvlstm data list",
    no_args_is_help=True,
)


@app.command("list", epilog="Example: mvlstm data list --json")
def list_sets(as_json: AsJson = False, debug: Debug = False) -> None:
    """List the data sets, with what is known of each."""
    with session(as_json=as_json, debug=debug) as output:
        from dataclasses import asdict

        import pandas as pd

        from mvlstm.data import datasets

        infos = [datasets.describe(name) for name in datasets.available()]
        present = {info.name: datasets.is_present(info.name) for info in infos}
        output.data = {
            "folder": str(datasets.data_folder()),
            "datasets": [
                {**asdict(info), "target": info.target, "present": present[info.name]}
                for info in infos
            ],
        }
        rows = [
            {
                "name": info.name,
                "rows": info.rows,
                "variables": len(info.variables),
                "target": info.target,
                "licence": info.licence,
                "here": _where(info.builtin, present[info.name]),
            }
            for info in infos
        ]
        output.show(table(pd.DataFrame(rows), title="Data sets"))
        output.show(*(f"{i.name}: {i.title}. {i.oddities} {i.citation}." for i in infos))


@app.command("path", epilog="Example: MVLSTM_DATA=~/data mvlstm data path")
def path(as_json: AsJson = False, debug: Debug = False) -> None:
    """Print the folder in which data files are looked for."""
    with session(as_json=as_json, debug=debug) as output:
        from mvlstm.data import datasets

        folder = datasets.data_folder()
        output.data = {"path": str(folder)}
        output.show(str(folder))


def _where(builtin: bool, present: bool) -> str:
    if builtin:
        return "built in"
    return "yes" if present else "no"
