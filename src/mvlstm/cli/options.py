"""How commands are made, and the arguments and options that several share, each declared once."""

from __future__ import annotations

import functools
import inspect
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

import typer
from typer.models import OptionInfo

from mvlstm.cli.messages import translate
from mvlstm.cli.session import session
from mvlstm.cli.words import (
    codes,
    ends,
    fraction_or_count,
    named_columns,
    number_or_word,
    word_or_words,
)
from mvlstm.errors import ParameterError, check_option, reachable
from mvlstm.settings import (
    MODEL,
    NEEDED,
    RUNNING,
    TABLE,
    MVLSTMSettings,
    RunningSettings,
    Setting,
    choices,
    declared,
)
from mvlstm.table.settings import Columns as TableColumns
from mvlstm.table.settings import Reading as ReadingSettings

if TYPE_CHECKING:
    import pandas as pd

    from mvlstm import MVLSTM

EMPTY = inspect.Parameter.empty  # the default of what must be given
AS_JSON = typer.Option("--json", help="Print JSON on standard output, and nothing else.")
DEBUG = typer.Option("--debug", help="Show the traceback of an error.")
RUN_OPTIONS: dict[str, Any] = {"as_json": AS_JSON, "debug": DEBUG}
TABLE_SUFFIXES = (".csv", ".parquet", ".json")
MODEL_SUFFIXES = (".safetensors",)
PAGE_SUFFIXES = (".html", ".htm")


def option(
    text: str,
    metavar: str | None = None,
    panel: str | None = None,
    *,
    name: str | None = None,
    shown: str | bool = True,
) -> Any:
    """Return what typer is told about an option: its help, the form of its value, its heading.

    ``name`` is how it is written where its parameter has another name, and ``shown`` a default in
    words.
    """
    return typer.Option(
        *([] if name is None else [name]),
        metavar=metavar,
        help=text,
        rich_help_panel=panel,
        show_default=shown,
    )


@dataclass(frozen=True, eq=False)
class Group:
    """Options that a command receives as one mapping, holding those that were given."""

    options: dict[str, Any]  # name and type with what typer is told: Annotated[int, option(...)]
    required: tuple[str, ...] = ()  # those that must be given
    readers: dict[str, Callable[[Any], Any]] = field(default_factory=dict)  # from text to value

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """The options as parameters of a function."""
        return [
            keyword(name, kind, EMPTY if name in self.required else None)
            for name, kind in self.options.items()
        ]

    def read(self, values: dict[str, Any]) -> dict[str, Any]:
        """Take the group's options out of ``values``; return those that were given."""
        taken = {name: values.pop(name) for name in self.options}
        given = {name: value for name, value in taken.items() if value not in (None, [])}
        return {n: self.readers[n](v) if n in self.readers else v for n, v in given.items()}


def option_names(parameters: Iterable[inspect.Parameter]) -> dict[str, str]:
    """Return how each option is written: ``--window``, ``--l2-sum/--l2-mean``."""
    names: dict[str, str] = {}
    for one in parameters:
        for info in get_args(one.annotation):
            if isinstance(info, OptionInfo):
                written = info.default if isinstance(info.default, str) else None
                names[one.name] = written or f"--{one.name.replace('_', '-')}"
    return names


def keyword(name: str, kind: Any, default: Any) -> inspect.Parameter:
    """Return a keyword-only parameter."""
    only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, only, default=default, annotation=kind)


@dataclass(frozen=True)
class Read:
    """Marks a file that a command reads."""


@dataclass(frozen=True)
class Written:
    """Marks a file that a command writes, and how its name may end."""

    suffixes: tuple[str, ...]
    over: str = ""  # parameter of the file read that it may replace


def command(body: Callable[..., None]) -> Callable[..., None]:
    """Make a command of a function whose first argument is the `Output`.

    A parameter ``Annotated[Mapping, Group(...)]`` stands for all options of the group. Every
    command has ``--json`` and ``--debug`` too. The body runs within a `session`, once it is known
    that the files it writes can be written.
    """
    hints = get_type_hints(body, include_extras=True)
    _, *own = inspect.signature(body).parameters.values()
    groups: dict[str, Group] = _told(hints, Group)
    read, written = _told(hints, Read), _told(hints, Written)
    parameters: list[inspect.Parameter] = []
    for one in own:
        if one.name in groups:
            parameters += groups[one.name].parameters
        else:
            parameters.append(keyword(one.name, hints[one.name], one.default))
    options = FIT_OPTIONS | option_names(parameters)
    parameters += [keyword(n, Annotated[bool, kind], False) for n, kind in RUN_OPTIONS.items()]

    @functools.wraps(body)
    def run(*, as_json: bool, debug: bool, **values: Any) -> None:
        with session(as_json=as_json, debug=debug, options=options) as output:
            for name, one in written.items():
                inputs = [values[given] for given in read if values[given] and given != one.over]
                check_output(values[name], one.suffixes, inputs, options[name])
            given = {name: group.read(values) for name, group in groups.items()}
            body(output, **values, **given)

    del run.__dict__["__wrapped__"]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def _told(hints: Mapping[str, Any], kind: type) -> dict[str, Any]:
    """Return by parameter what its annotation says of this kind."""
    found = {name: get_args(hint) for name, hint in hints.items()}
    return {n: one for n, told in found.items() for one in told if isinstance(one, kind)}


def check_output(
    path: Path | None, suffixes: tuple[str, ...], inputs: Iterable[Path], option: str
) -> None:
    """Raise `ParameterError` unless such a file can be written that is none of the ``inputs``."""
    if path is None:
        return
    folder, fault = reachable(path, ParameterError).parent, ""
    if path.suffix.lower() not in suffixes:
        fault = f"does not end in {' or '.join(suffixes)}; the ending tells the format."
    elif not folder.is_dir():
        fault = f"cannot be written: there is no folder '{folder}'. Make it first "
        fault += f"(mkdir -p '{folder}') or choose another."
    elif path.is_dir():
        fault = "is a folder; name a file in it."
    elif not os.access(folder, os.W_OK | os.X_OK):
        fault = f"cannot be written: the folder '{folder}' is read-only. Choose another."
    elif path.exists() and any(given.exists() and path.samefile(given) for given in inputs):
        fault = "is the file that is read; choose another name for the result."
    if fault:
        raise ParameterError(f"{option} '{path}' {fault}")


# ------------------------------------------------------------------------ what several share

Given = Mapping[str, Any]
Effort = Annotated[Literal["quick", "default", "full"], option("How thoroughly to measure.")]
TimeLimit = Annotated[
    float | None, option("Keep to this time by measuring less; notes say what.", "SECONDS")
]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file written by `mvlstm fit`."), Read()
]
DATA_HELP = "CSV or Parquet file with one row per time step; a folder of Parquet files."
DataFile = Annotated[Path, typer.Argument(metavar="DATA", help=DATA_HELP), Read()]
TableFile = Annotated[
    Path | None,
    option("Also write it to a .csv, .parquet or .json file.", "FILE"),
    Written(TABLE_SUFFIXES),
]
Future = Annotated[
    Path | None,
    option("Next values of variables known ahead; without it, rows at the end of DATA.", "FILE"),
    Read(),
]
Engine = Annotated[
    str,
    option("Where tasks run: here, on Ray, or on this cluster.", "local|ray|HOST:PORT", RUNNING),
]
Checkpoint = Annotated[
    Path | None,
    option("Folder of finished tasks, from which the same command goes on.", "DIR", RUNNING),
]
MEMORY = "4GB"
Memory = Annotated[
    str | None,
    option("Leave DATA, which must be Parquet, on disk and hold this much at most.", "SIZE"),
]
Into = Annotated[Path | None, option("Folder for what is found of many series, in pieces.", "DIR")]
Retry = Annotated[
    bool, option("With --into: try again what failed though its part has not changed.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
PRESETS = ("default", "paper", "indep", "fusion", "readable")
Preset = Annotated[
    str,
    option("Start from these settings; the options below change them.", "|".join(PRESETS), MODEL),
]

# --------------------------------------------------------------- options from declared settings

FLAGS = {"l2_sum": "--l2-sum/--l2-mean"}
METAVARS = {
    **{"target": "COL", "series": "COL", "sep": "CHAR", "decimal": "CHAR", "address": "HOST:PORT"},
    "engine": "local|ray|HOST:PORT",
    **{"calendar": "none|auto|PART[,PART...]", "device": "auto|cpu|cuda"},
    **{"na_values": "none|VALUE[,VALUE...]", "bounds": "LOW,HIGH"},
    "holidays": "none|COUNTRY[,COUNTRY...]",
}
READERS = {"calendar": word_or_words, "holidays": word_or_words, "na_values": codes, "bounds": ends}


def option_group(cls: type, *names: str) -> Group:
    """Return options for the declared settings of a class: those named, or all but ``verbose``."""
    every = {one.name: one for one in declared(cls) if one.name != "verbose"}
    chosen = {name: every[name] for name in names or every}
    spelled = {name: FLAGS.get(name, f"--{name.replace('_', '-')}") for name in every}
    readers: dict[str, Any] = {
        name: partial(number_or_word, kinds=[k for k in (int, float) if k in get_args(one.type)])
        for name, one in chosen.items()
        if _is_mixed(one)
    }
    return Group(
        {name: _option(one, spelled) for name, one in chosen.items()},
        required=tuple(name for name, one in chosen.items() if one.default is NEEDED),
        readers=readers | {name: READERS[name] for name in READERS if name in chosen},
    )


def _option(one: Setting, spelled: Mapping[str, str]) -> Any:
    """Return the option of one setting; without it the setting is left to the library."""
    words = ["NUMBER"] * _is_mixed(one) + list(choices(one.type))
    several = one.default is None and Sequence[str] in get_args(one.type)
    plain = [part for part in (int, float, bool) if one.type in (part, part | None)]
    kind = plain[0] if plain else list[str] if several else str
    metavar = "COL[,COL...]" if several else METAVARS.get(one.name, "|".join(words) or None)
    shown = one.default not in (None, NEEDED) and f"{one.default}"
    text = translate(one.doc, spelled)
    told = option(text, metavar, one.panel or None, name=spelled[one.name], shown=shown)
    return Annotated[kind, told]


def _is_mixed(one: Setting) -> bool:
    """Say whether a setting is a number or one of some words."""
    return bool(choices(one.type)) and bool({int, float} & {*get_args(one.type)})


FITTED = [option_group(one) for one in (TableColumns, ReadingSettings, MVLSTMSettings)]
Columns = Annotated[Given, FITTED[0]]
Reading = Annotated[Given, FITTED[1]]
ModelSettings = Annotated[Given, FITTED[2]]
Running = Annotated[Given, option_group(RunningSettings)]
# How messages name arguments of `fit` and of `MVLSTM`, whatever command is running
FIT_OPTIONS = option_names(one for group in FITTED for one in group.parameters) | {
    "test": "--test",
    "valid": "--valid",
    "checkpoint": "--checkpoint",
}


def read_rows(data: Path, reading: Given, columns: Given) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read a table; return it and its columns as arguments of ``fit``."""
    from mvlstm.table.files import read_table

    rows = read_table(data, **reading)
    return rows, columns_among(rows.columns, columns)


def columns_among(names: Iterable[str], columns: Given) -> dict[str, Any]:
    """Return the columns that options name, of a table with these names."""
    every = list(names)
    return {
        name: named_columns(every, given) if isinstance(given, list) else given
        for name, given in columns.items()
    }


def stays_on_disk(data: Path, memory: str | None) -> bool:
    """Say whether a dataset is read in pieces."""
    return memory is not None or data.is_dir()


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
