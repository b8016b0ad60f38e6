"""`mvlstm update`: a model brought up to date with new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

from mvlstm.cli import options as cli
from mvlstm.cli.session import Output

EXAMPLE = "Example: mvlstm update model.safetensors air.csv --out model.safetensors"


@cli.command
def update(
    output: Output,
    model: cli.ModelFile,
    data: cli.DataFile,
    reading: cli.Reading,
    out: Annotated[
        Path,
        cli.option("Model file to write; may be MODEL itself, replaced.", "MODEL", name="--out"),
        cli.Written(cli.MODEL_SUFFIXES, over="model"),
    ],
    refit: Annotated[
        str,
        cli.option(
            "Continue training with the newest rows held out, train again on all rows, or fit "
            "only the linear map to all rows.",
            "newest|full|link",
        ),
    ] = "newest",
    max_epochs: Annotated[int, cli.option("Most epochs of further training.")] = 5,
    learning_rate: Annotated[
        float | None, cli.option("Of further training. Default: a fifth of the fit's.")
    ] = None,
    quiet: cli.Quiet = False,
) -> None:
    """Continue training on rows that came after the fit; calibrate the intervals on the newest.

    A model that forecasts the new rows better as it was stays as it was, but for its intervals.
    """
    from mvlstm import load
    from mvlstm.table.files import read_table

    found = load(model)
    verbose = found.verbose
    rows = read_table(data, **reading)
    found.set_params(verbose=0 if quiet else 1)
    way = cast(Literal["newest", "full", "link"], refit)  # checked there
    found.update(rows, refit=way, max_epochs=max_epochs, learning_rate=learning_rate)
    found.set_params(verbose=verbose).save(out)

    last = found.updates_[-1]
    notes = list(last.notes)
    if not last.changed:
        notes.append("The model was better as it was; only its intervals were renewed.")
    output.data = {
        "model": str(out),
        "forecaster": type(found).__name__,
        "update": last.to_dict(),
        "updates": len(found.updates_),
        "notes": notes,
    }
    output.show(str(last), f"took {last.seconds:.1f} s", f"wrote {out}")
    output.notes(notes)
    output.show(cli.next_command("forecast", out, data, reading))
