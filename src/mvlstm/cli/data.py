"""`mvlstm data`: the built-in data sets and where files are looked for."""

from __future__ import annotations

import typer

from mvlstm.cli.options import AsJson, Debug
from mvlstm.cli.session import session

app = typer.Typer(
    help="The data sets that can be loaded by name.",
    epilog="Example: mvlstm data list",
    no_args_is_help=True,
)


@app.command("list", epilog="Example: mvlstm data list --json")
def list_sets(as_json: AsJson = False, debug: Debug = False) -> None:
    """List the data sets, with what is known of each."""
    with session(as_json=as_json, debug=debug) as output:
        from mvlstm.data import datasets

        rows = datasets.available()
        output.data = {"datasets": rows}


@app.command("path", epilog="Example: MVLSTM_DATA=~/data mvlstm data path")
def path(as_json: AsJson = False, debug: Debug = False) -> None:
    """Print the folder in which data files are looked for."""
    with session(as_json=as_json, debug=debug) as output:
        from mvlstm.data import datasets

        folder = datasets.data_folder()
        output.data = {"path": str(folder)}
        output.show(str(folder))
