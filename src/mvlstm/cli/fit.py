"""`mvlstm fit`: a table in, a model file out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mvlstm.cli.files import MODEL_SUFFIXES, check_output
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
    next_command,
    number_or_word,
    word_or_words,
)
from mvlstm.cli.session import INTERRUPTED, Output, session
from mvlstm.errors import check_option

if TYPE_CHECKING:
    from mvlstm import MVLSTM

EXAMPLE = (
    "Example: mvlstm fit air.csv --target pm2.5 --time year,month,day,hour --exclude No "
    "--calendar auto --missing drop --gaps close --test 0.2 --out model.safetensors"
)
PRESETS = ("default", "paper", "indep", "fusion")

MODEL, TRAINING = "Model", "Training"
RUNNING = "Interruption"


def fit(
    data: DataFile,
    target: Target,
    out: Annotated[Path, typer.Option(metavar="MODEL", help="Model file to write (.safetensors).")],
    time: Time = None,
    variables: Variables = None,
    exclude: Exclude = None,
    series: SeriesColumn = None,
    known: Known = None,
    categorical: Categorical = None,
    calendar: Calendar = None,
    missing: Annotated[str | None, MISSING] = None,
    gaps: Annotated[str | None, GAPS] = None,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE|ROWS",
            help="Rows at the end left unseen: 0.2 or 500; with --series, times.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    valid: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE|ROWS",
            help="Rows before them, to stop training and calibrate.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    sep: Separator = None,
    decimal: Decimal = ".",
    difference: Annotated[
        str | None,
        typer.Option(
            metavar="none|auto",
            help="Difference columns that have a unit root.",
            rich_help_panel=COLUMNS,
        ),
    ] = None,
    transform: Annotated[str | None, TRANSFORM] = None,
    preset: Annotated[
        str,
        typer.Option(
            metavar="|".join(PRESETS),
            help="Start from these settings; the options below change them.",
            rich_help_panel=MODEL,
        ),
    ] = PRESETS[0],
    window: Annotated[
        int | None, typer.Option(help="Rows that a forecast is made from.", rich_help_panel=MODEL)
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(help="Steps ahead to forecast.", rich_help_panel=MODEL)
    ] = None,
    hidden_size: Annotated[
        int | None, typer.Option(help="Hidden units per variable.", rich_help_panel=MODEL)
    ] = None,
    layers: Annotated[
        int | None, typer.Option(help="Recurrent layers.", rich_help_panel=MODEL)
    ] = None,
    cell: Annotated[
        str | None,
        typer.Option(metavar="lstm|gru", help="Recurrent cell.", rich_help_panel=MODEL),
    ] = None,
    gates: Annotated[
        str | None,
        typer.Option(
            metavar="full|variable",
            help="Whether gates see all variables or their own.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    attention: Annotated[
        str | None,
        typer.Option(
            metavar="bounded|free", help="Attention over variables.", rich_help_panel=MODEL
        ),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(
            metavar="mixture|fusion",
            help="How the variables' forecasts are combined.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(metavar="nll|mse|nll+mse", help="Training loss.", rich_help_panel=MODEL),
    ] = None,
    sigma: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|learned|predicted|calibrated",
            help="Standard deviation of the mixture's components.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    target_scale: Annotated[
        str | None,
        typer.Option(
            metavar="standard|raw", help="Scale that sigma refers to.", rich_help_panel=MODEL
        ),
    ] = None,
    link: Annotated[
        str | None,
        typer.Option(
            metavar="none|last|linear|auto",
            help="Simple forecast that the network corrects. auto: linear for some members, none "
            "for others, if validation rows are better so; linear: for all, and faster.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    isolation: Annotated[
        float | None,
        typer.Option(
            help="Penalty on weights from other variables to a variable's gates.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    clock_penalty: Annotated[
        float | None,
        typer.Option(help="Penalty on the weights that read the calendar.", rich_help_panel=MODEL),
    ] = None,
    dropout: Annotated[
        float | None, typer.Option(help="Dropout probability.", rich_help_panel=TRAINING)
    ] = None,
    l2: Annotated[
        float | None,
        typer.Option("--l2", help="Penalty on the weights.", rich_help_panel=TRAINING),
    ] = None,
    l2_sum: Annotated[
        bool | None,
        typer.Option(
            "--l2-sum/--l2-mean",
            help="Add the penalty to the sum of the losses, as in the paper, or to their mean.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(help="Step size of Adam.", rich_help_panel=TRAINING)
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Windows per training step.", rich_help_panel=TRAINING)
    ] = None,
    max_epochs: Annotated[
        int | None,
        typer.Option(
            help="Most passes over the training rows (default 100).", rich_help_panel=TRAINING
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            help="Epochs without improvement before stopping (default 15; paper: 10).",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    averaging: Annotated[
        float | None,
        typer.Option(
            help="Decay of the running mean of the weights; 0 for none.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    finish: Annotated[
        float | None,
        typer.Option(
            help="Share of the learning rate to continue with when patience is over; 0: stop then.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    leave_out: Annotated[
        float | None,
        typer.Option(
            help="Share of the training rows that each network leaves out; 0 for none.",
            rich_help_panel=TRAINING,
        ),
    ] = None,
    members: Annotated[
        int | None,
        typer.Option(help="Networks in the ensemble.", rich_help_panel=TRAINING),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random numbers.", rich_help_panel=TRAINING)
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="auto|cpu|cuda", help="Where to train.", rich_help_panel=TRAINING),
    ] = None,
    resume: Annotated[
        bool | None,
        typer.Option(
            "--resume/--no-resume",
            help="Continue an unfinished fit, or discard it and start anew.",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for the state of an unfinished fit. Default: MODEL.checkpoint.",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Stop training in time; keep the best model so far.",
            rich_help_panel=RUNNING,
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Fit a model to a CSV or Parquet table and write it to one file.

    Settings left out have the defaults of mvlstm.MVLSTM. The state of training is kept beside the
    model file every 20 seconds; after an interruption run the same command with --resume. Ctrl-C
    stops after the step: the best model so far is written.
    """
    settings: dict[str, Any] = {
        "window": window,
        "horizon": horizon,
        "hidden_size": hidden_size,
        "layers": layers,
        "cell": cell,
        "gates": gates,
        "attention": attention,
        "head": head,
        "loss": loss,
        "sigma": number_or_word(sigma),
        "target_scale": target_scale,
        "link": link,
        "isolation": isolation,
        "clock_penalty": clock_penalty,
        "dropout": dropout,
        "l2": l2,
        "l2_sum": l2_sum,
        "learning_rate": learning_rate,
        "batch_size": batch_size,
        "max_epochs": max_epochs,
        "patience": patience,
        "averaging": averaging,
        "finish": finish,
        "leave_out": leave_out,
        "members": members,
        "seed": seed,
        "device": device,
        "missing": missing,
        "gaps": gaps,
        "calendar": word_or_words(calendar),
        "difference": difference,
        "transform": transform,
        "verbose": 0 if quiet else 1,
    }
    with session(as_json=as_json, debug=debug) as output:
        check_output(out, suffixes=MODEL_SUFFIXES, inputs=(data,))
        check_option("--preset", preset, PRESETS)
        parts: dict[str, Any] = {
            "test": fraction_or_count("--test", test),
            "valid": fraction_or_count("--valid", valid),
        }

        from mvlstm import MVLSTM
        from mvlstm.table.files import read_table
        from mvlstm.train.checkpoint import (
            is_unfinished,
            prepared_checkpoint,
            remove_checkpoint,
        )

        folder = checkpoint or out.with_suffix(".checkpoint")
        anew = bool(resume) and not is_unfinished(folder)
        with prepared_checkpoint(folder, resume=resume):
            build = MVLSTM if preset == PRESETS[0] else getattr(MVLSTM, preset)
            model = build(**{name: value for name, value in settings.items() if value is not None})
            table = read_table(data, sep=sep, decimal=decimal)
            model.fit(
                table,
                target,
                series=series,
                **named_columns(
                    table.columns,
                    time=time,
                    variables=variables,
                    exclude=exclude,
                    known=known,
                    categorical=categorical,
                ),
                checkpoint=folder,
                time_limit=time_limit,
                **{name: value for name, value in parts.items() if value is not None},
            )
        model.save(out)
        if model.stopped_ is None:
            remove_checkpoint(folder)

        none = f"There was no unfinished fit in '{folder}': this one began anew."
        _show_model(output, model, out, [none] if anew else [])
        output.show(next_command("evaluate", out, data, sep=sep, decimal=decimal))
        if model.stopped_ is not None:
            output.show(f"to go on training: the same command with --resume (state in {folder})")
        if model.stopped_ == "interrupt":
            output.code = INTERRUPTED


def _show_model(output: Output, model: MVLSTM, file: Path, first: Sequence[str]) -> None:
    """Tell what was fitted and written; ``first`` are notes before those of the model."""
    history = model.history_
    told = () if model.stopped_ else history.notes  # an early end was warned of
    notes = [*first, *model.notes_, *told]
    output.data = {
        "model": str(file),
        "forecaster": type(model).__name__,
        "parameters": model.get_params(),
        "target": model.layout_.target,
        "variables": list(model.layout_.names),
        "history": history.to_dict(),
        "seconds": model.fit_seconds_,
        "notes": notes,
        "stopped": model.stopped_,
    }
    output.notes(notes)
    output.show(f"{history.summary}{_scale(model)}", f"wrote {file}")


def _scale(model: MVLSTM) -> str:
    """Say what the validation RMSE is measured in, where that is not the target's own unit."""
    if model.layout_.series is not None:
        return "; RMSE in standard deviations of each series"
    transform = model.preparation_.transform
    return f"; RMSE of {transform.scale_name(model.layout_.target)}" if transform else ""
