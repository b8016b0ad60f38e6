"""`mvlstm tune`: settings of the model for a user's own table, chosen on validation rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, cast

from mvlstm.cli import options as cli
from mvlstm.cli.session import Output, table
from mvlstm.cli.words import number_or_word
from mvlstm.errors import ParameterError
from mvlstm.settings import RUNNING, MVLSTMSettings

EXAMPLE = (
    "Example: mvlstm tune air.csv --target pm2.5 --time year,month,day,hour --exclude No "
    "--missing drop --gaps close --grid lr=0.001,0.005,hidden=10,20"
)
SEARCH = "What to try"
SHOWN = 10  # settings listed
SHORT = {"lr": "learning_rate", "hidden": "hidden_size", "batch": "batch_size"}

Model = Annotated[
    cli.Given,
    cli.option_group(
        MVLSTMSettings,
        *("window", "horizon", "max_epochs", "seed", "device"),
        *("missing", "fill_limit", "gaps", "duplicates"),
        *("calendar", "holidays", "transform", "bounds"),
    ),
]
Split = Annotated[
    cli.Given,
    cli.split_options(
        test="0.2",
        test_help="Rows at the end, not used; with --series, times.",
        valid_help="Rows before them, to choose on.",
    ),
]


@cli.command
def tune(
    output: Output,
    data: cli.DataFile,
    columns: cli.Columns,
    split: Split,
    model: Model,
    reading: cli.Reading,
    running: cli.Running,
    grid: Annotated[
        list[str] | None,
        cli.option(
            "Values to try, such as lr=0.001,0.01,l2=1e-5,hidden=10,20. Default: the paper's.",
            "NAME=V[,V...]",
            SEARCH,
        ),
    ] = None,
    preset: cli.Preset = "default",
    measure: Annotated[
        str,
        cli.option(
            "Error to choose by; mae if a few large errors should not decide.", "rmse|mae", SEARCH
        ),
    ] = "rmse",
    seeds: Annotated[
        int, cli.option("Networks per setting; their mean error counts.", panel=SEARCH)
    ] = 1,
    records: Annotated[
        Path | None,
        cli.option(
            "Folder of records; an interrupted search continues from it. Default: DATA-tune.",
            "DIR",
            RUNNING,
        ),
    ] = None,
    out: cli.TableFile = None,
    quiet: cli.Quiet = False,
) -> None:
    """Try settings on validation rows, many networks as one batch; print the best and its command.

    The same command continues an interrupted search. The test rows are not used.
    """
    values = parse_grid(grid) if grid else None
    start = cli.build_model(preset, model, quiet=quiet)

    from mvlstm import tune as search
    from mvlstm.report.command import fit_command

    _, named = cli.read_rows(data, reading, columns)
    folder = records or Path(f"{data.stem}-tune")
    found = search(
        data,
        **named,
        **split,
        **reading,
        model=start,
        grid=values,
        measure=cast(Literal["rmse", "mae"], measure),  # checked there
        seeds=seeds,
        records=folder,
        **running,
    )
    output.write_table(out, found.ranking)
    for problem in found.problems:
        output.warn(problem)
    shares = {"test": split.get("test", 0.2), "valid": split.get("valid", 0.1)}
    settings = {**model, "window": start.window, **found.best, "seed": start.seed}
    settings.pop("device", None)  # where to train is not part of what was found
    options = {**named, **shares, **reading, "preset": preset, **settings}
    line = fit_command(str(data), options, out=f"{data.stem}.safetensors")
    count = len(found.ranking)
    title = f"Settings by validation {measure.upper()}, the best {min(SHOWN, count)} of {count}"
    output.show(table(found.ranking.head(SHOWN), title=title, exact=list(found.best)))
    output.show(*(f"failed: {key}: {output.worded(why)}" for key, why in found.failed.items()))
    output.notes(found.notes)
    best = ", ".join(f"{name}={value}" for name, value in found.best.items())
    output.show(f"best: {best}", f"use it: {line}")
    output.wrote(out)
    output.data = {
        "best": found.best,
        "command": line,
        "ranking": found.ranking.to_dict(orient="records"),
        "failed": found.failed,
        "records": str(folder),
        "notes": list(found.notes),
    }


def parse_grid(texts: list[str]) -> dict[str, list[Any]]:
    """Read ``lr=0.001,0.01,hidden=10,20`` as names with values to try.

    Examples
    --------
    >>> parse_grid(["lr=0.001,0.01,hidden=10", "cell=lstm,gru"])
    {'learning_rate': [0.001, 0.01], 'hidden_size': [10], 'cell': ['lstm', 'gru']}
    """
    grid: dict[str, list[Any]] = {}
    name = ""
    for word in (piece.strip() for text in texts for piece in text.split(",")):
        if "=" in word:
            name, _, word = (part.strip() for part in word.partition("="))
            name = SHORT.get(name, name.replace("-", "_"))
            grid.setdefault(name, [])
        if not name or not word:
            raise ParameterError(
                f"--grid {' '.join(texts)}: give names with values, such as lr=0.001,0.01 or "
                "hidden=10,20."
            )
        grid[name].append({"true": True, "false": False}.get(word.lower(), number_or_word(word)))
    return grid
