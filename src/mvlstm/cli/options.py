"""Arguments and options that several commands share, each declared once."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin

import typer

from mvlstm.cli.groups import Group, option, option_names
from mvlstm.cli.messages import translate
from mvlstm.cli.words import fraction_or_count, named_columns, number_or_word, word_or_words
from mvlstm.errors import check_option
from mvlstm.settings import MODEL, TABLE, MVLSTMSettings, Setting, choices, declared

if TYPE_CHECKING:
    import pandas as pd

    from mvlstm import MVLSTM

Given = Mapping[str, Any]
Effort = Annotated[Literal["quick", "default", "full"], option("How thoroughly to measure.")]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file written by `mvlstm fit`.")
]
DataFile = Annotated[
    Path, typer.Argument(metavar="DATA", help="CSV or Parquet file with one row per time step.")
]
TableFile = Annotated[
    Path | None, option("Also write it to a .csv, .parquet or .json file.", "FILE")
]
Future = Annotated[
    Path | None,
    option("Next values of variables known ahead; without it, rows at the end of DATA.", "FILE"),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
PRESETS = ("default", "paper", "indep", "fusion")
Preset = Annotated[
    str,
    option("Start from these settings; the options below change them.", "|".join(PRESETS), MODEL),
]

# ------------------------------------------------------------------------------------------ reading

READING = Group(
    {
        "sep": Annotated[
            str, option("Column separator of the CSV; recognised if not given.", "CHAR")
        ],
        "decimal": Annotated[str, option("Decimal mark of the CSV: . or ,", "CHAR", shown=".")],
    }
)
Reading = Annotated[Given, READING]

# ------------------------------------------------------------------------------------------ columns

COLUMN_HELP = {
    "target": "Column to forecast.",
    "time": "Time column, or several such as year,month,day,hour.",
    "series": "Column that names the series of each row, if there are several.",
    "variables": "Use only these variables.",
    "exclude": "Leave these out.",
    "known": "Variables known in advance, such as holidays.",
    "categorical": "Columns of numbers that stand for categories; text always does.",
}


def _column(name: str, text: str) -> Any:
    if name in ("target", "series"):
        return Annotated[str, option(text, "COL", TABLE)]
    return Annotated[list[str], option(text, "COL[,COL...]", TABLE)]


COLUMNS = Group({n: _column(n, text) for n, text in COLUMN_HELP.items()}, required=("target",))
Columns = Annotated[Given, COLUMNS]


def read_rows(data: Path, reading: Given, columns: Given) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read a table; return it and its columns as arguments of ``fit``."""
    from mvlstm.table.files import read_table

    rows = read_table(data, **reading)
    return rows, {
        name: named_columns(rows.columns, given) if isinstance(given, list) else given
        for name, given in columns.items()
    }


# ----------------------------------------------------------------------------------------- running

RUNNING = "How to run it"
ENGINE = Group(
    {
        "engine": Annotated[
            str, option("This machine, or Ray.", "local|ray", RUNNING, shown="local")
        ],
        "address": Annotated[
            str,
            option("An existing Ray cluster; without it Ray starts here.", "HOST:PORT", RUNNING),
        ],
        "workers": Annotated[
            int, option("Processes side by side (engine local).", panel=RUNNING, shown="1")
        ],
    }
)

# ------------------------------------------------------------------------------- parts of the table


def split_options(*, test: str, test_help: str, valid_help: str) -> Group:
    """Return the options that divide the rows, with the default of ``test`` in words."""
    shown = {"test": (test, test_help), "valid": ("0.1", valid_help)}
    return Group(
        {
            name: Annotated[str, option(text, "SHARE|ROWS", TABLE, shown=default)]
            for name, (default, text) in shown.items()
        },
        readers={name: partial(fraction_or_count, f"--{name}") for name in shown},
    )


# ------------------------------------------------------------------------- settings of a forecaster

FLAGS = {"l2_sum": "--l2-sum/--l2-mean"}
METAVARS = {"calendar": "none|auto|PART[,PART...]", "device": "auto|cpu|cuda"}


def setting_options(*names: str, **defaults: Any) -> Group:
    """Return options for the settings of `MVLSTM`: those named, or all but ``verbose``.

    ``defaults`` are shown where a command has other defaults than the class.
    """
    every = {one.name: one for one in declared(MVLSTMSettings) if one.name != "verbose"}
    chosen = {name: every[name] for name in names or every}
    spelled = {name: FLAGS.get(name, f"--{name.replace('_', '-')}") for name in every}
    number = partial(number_or_word, kinds=(float,))
    readers: dict[str, Any] = {n: number for n, one in chosen.items() if _is_mixed(one)}
    return Group(
        {n: _option(one, spelled, defaults.get(n, one.default)) for n, one in chosen.items()},
        readers=readers | ({"calendar": word_or_words} if "calendar" in chosen else {}),
    )


def _option(one: Setting, spelled: Mapping[str, str], default: Any) -> Any:
    """Return the option of one setting; without it the setting is left to the library."""
    words = ["NUMBER"] * _is_mixed(one) + list(choices(one.type))
    kind = one.type if one.type in (int, float, bool) else str
    return Annotated[
        kind,
        option(
            translate(one.doc, spelled),
            METAVARS.get(one.name, "|".join(words) or None),
            one.panel,
            name=spelled[one.name],
            shown=f"{default}",
        ),
    ]


def _is_mixed(one: Setting) -> bool:
    """Say whether a setting is a number or one of some words."""
    return bool(choices(one.type)) and get_origin(one.type) is not Literal


MODEL_SETTINGS = setting_options()
# how messages name arguments of `fit` and of `MVLSTM`, whatever command is running
FIT_OPTIONS = option_names(
    one for group in (COLUMNS, READING, MODEL_SETTINGS) for one in group.parameters
) | {"test": "--test", "valid": "--valid", "checkpoint": "--checkpoint"}


def build_model(preset: str, settings: Given, *, quiet: bool) -> MVLSTM:
    """Return the model of a preset with some settings changed, not fitted."""
    check_option("preset", preset, PRESETS)
    from mvlstm import MVLSTM

    build = MVLSTM if preset == PRESETS[0] else getattr(MVLSTM, preset)
    model: MVLSTM = build(**settings, verbose=0 if quiet else 1)
    return model


def next_command(command: str, model: Path, data: Path, reading: Given) -> str:
    """Say what to run next on the same table, which is to be read in the same way.

    Examples
    --------
    >>> next_command("evaluate", Path("m.safetensors"), Path("a.csv"), {"decimal": ","})
    'next: mvlstm evaluate m.safetensors a.csv --decimal ,'
    """
    words = [word for name, value in reading.items() for word in (f"--{name}", value)]
    return f"next: {shlex.join(['mvlstm', command, str(model), str(data), *words])}"
