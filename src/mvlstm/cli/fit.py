"""`mvlstm fit`: a table in, a model file out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mvlstm.cli import options as cli
from mvlstm.cli.session import INTERRUPTED, Output
from mvlstm.errors import ParameterError

if TYPE_CHECKING:
    from mvlstm import MVLSTM

EXAMPLE = (
    "Example: mvlstm fit air.csv --target pm2.5 --time year,month,day,hour --exclude No "
    "--calendar auto --missing drop --gaps close --test 0.2 --out model.safetensors"
)
RUNNING = "Interruption"
ANEW = (
    "The state of an earlier fit, which its time limit ended, lies in '{folder}': this one starts "
    "anew and deletes it. --resume would continue from there; --no-resume hides this message."
)

Split = Annotated[
    cli.Given,
    cli.split_options(
        test="0",
        test_help="Rows at the end left unseen: 0.2 or 500; with --series, times.",
        valid_help="Rows before them, to stop training and calibrate.",
    ),
]


@cli.command
def fit(
    output: Output,
    data: cli.DataFile,
    out: Annotated[
        Path,
        cli.option("Model file to write (.safetensors).", "MODEL"),
        cli.Written(cli.MODEL_SUFFIXES),
    ],
    columns: cli.Columns,
    split: Split,
    settings: cli.ModelSettings,
    reading: cli.Reading,
    preset: cli.Preset = cli.PRESETS[0],
    resume: Annotated[
        bool | None,
        cli.option(
            "Continue an unfinished fit, or discard it and start anew.",
            panel=RUNNING,
            name="--resume/--no-resume",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        cli.option(
            "Folder for the state of an unfinished fit. Default: MODEL.checkpoint.", "DIR", RUNNING
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        cli.option("Stop training in time; keep the best model so far.", "SECONDS", RUNNING),
    ] = None,
    engine: cli.Engine = "local",
    memory: cli.Memory = None,
    quiet: cli.Quiet = False,
) -> None:
    """Fit a model to a CSV or Parquet table and write it to one file.

    Defaults are those without a preset. The state of training is kept next to the model file every
    20 seconds; after an interruption run the same command with --resume. Ctrl-C stops after the
    step: the best model so far is written.
    """
    model = cli.build_model(preset, settings, quiet=quiet)

    from mvlstm.cli.unfinished import ENDED, is_unfinished, prepared_checkpoint, remove_checkpoint

    folder = checkpoint or out.with_suffix(".checkpoint")
    if resume is None and (folder / ENDED).is_file():
        output.warn(ANEW.format(folder=folder))
    anew = bool(resume) and not is_unfinished(folder)
    on_disk = cli.stays_on_disk(data, memory)
    with prepared_checkpoint(folder, resume=resume):
        told = {**split, "checkpoint": folder, "time_limit": time_limit, "engine": engine}
        if on_disk:
            _fit_on_disk(model, data, columns, {**told, "memory": memory or cli.MEMORY})
        else:
            rows, named = cli.read_rows(data, reading, columns)
            model.fit(rows, **named, **told)
    model.save(out)
    if model.stopped_ is None:
        remove_checkpoint(folder)
    if model.stopped_ == "time limit":
        (folder / ENDED).touch()

    none = f"There was no unfinished fit in '{folder}': this one began anew."
    _show_model(output, model, out, [none] if anew else [])
    onward, how = ("forecast", {"into": "forecasts"}) if on_disk else ("evaluate", reading)
    output.show(cli.next_command(onward, out, data, how))
    if model.stopped_ is not None:
        output.show(f"to go on training: the same command with --resume (state in {folder})")
    if model.stopped_ == "interrupt":
        output.code = INTERRUPTED


def _fit_on_disk(model: MVLSTM, data: Path, columns: cli.Given, told: dict[str, Any]) -> None:
    """Fit to a dataset of several series that stays on disk."""
    from mvlstm.many.dataset import Dataset
    from mvlstm.many.fitting import fit as fit_many

    if not columns.get("series"):
        raise ParameterError(
            f"'{data}' is read in pieces, series by series; --series says which column names them. "
            "Add it, or leave --memory out for one file of one series."
        )
    names = Dataset.open(data, columns["series"]).columns()
    fit_many(model, data, **cli.columns_among(names, columns), **told)


def _show_model(output: Output, model: MVLSTM, file: Path, first: Sequence[str]) -> None:
    """Tell what was fitted and written; ``first`` are notes before those of the model."""
    history = model.history_
    told = () if model.stopped_ else history.notes  # an early end was warned of
    notes = [*first, *model.notes_, *told]
    output.data = {
        "model": str(file),
        "forecaster": type(model).__name__,
        "parameters": model.get_params(),
        "target": model.fitted_.layout.target,
        "variables": list(model.fitted_.layout.names),
        "history": history.to_dict(),
        "seconds": model.fit_seconds_,
        "notes": notes,
        "stopped": model.stopped_,
    }
    output.notes(notes)
    output.show(f"{history.summary}{_scale(model)}")
    output.wrote(file)


def _scale(model: MVLSTM) -> str:
    """Say what the validation RMSE is measured in, where that is not the target's own unit."""
    if model.fitted_.layout.series is not None:
        return "; RMSE in standard deviations of each series"
    transform = model.fitted_.preparation.transform
    return f"; RMSE of {transform.scale_name(model.fitted_.layout.target)}" if transform else ""
