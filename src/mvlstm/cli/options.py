"""Arguments and options that several commands share."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from mvlstm.errors import ParameterError

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file written by `mvlstm fit`.")
]
DataFile = Annotated[
    Path, typer.Argument(metavar="DATA", help="CSV or Parquet file with one row per time step.")
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--sep", metavar="CHAR", help="Column separator of the CSV; recognised if not given."
    ),
]
Decimal = Annotated[
    str, typer.Option("--decimal", metavar="CHAR", help="Decimal mark of the CSV: . or ,")
]
Future = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Next values of variables known ahead; without it, rows at the end of DATA.",
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
COLUMNS = "Columns and rows"
Target = Annotated[
    str, typer.Option(metavar="COL", help="Column to forecast.", rich_help_panel=COLUMNS)
]
Time = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL[,COL...]",
        help="Time column, or several such as year,month,day,hour.",
        rich_help_panel=COLUMNS,
    ),
]
Variables = Annotated[
    list[str] | None,
    typer.Option(metavar="COL[,COL...]", help="Use only these variables.", rich_help_panel=COLUMNS),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(metavar="COL[,COL...]", help="Leave these out.", rich_help_panel=COLUMNS),
]
# where a command has a default of its own and another leaves it to the model
MISSING = typer.Option(
    metavar="error|drop|fill",
    help="What to do about missing values: stop, drop the rows, or repeat the last value.",
    rich_help_panel=COLUMNS,
)
GAPS = typer.Option(
    metavar="error|close|respect",
    help="What to do about irregular times: stop, ignore, or let no window cross a gap.",
    rich_help_panel=COLUMNS,
)
TRANSFORM = typer.Option(
    metavar="none|log1p|auto",
    help="Model log(1 + y) of a target that is never negative; auto: if that helps.",
    rich_help_panel=COLUMNS,
)
SeriesColumn = Annotated[
    str | None,
    typer.Option(
        "--series",
        metavar="COL",
        help="Column that names the series of each row, if there are several.",
        rich_help_panel=COLUMNS,
    ),
]
Known = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL[,COL...]",
        help="Variables known in advance, such as holidays.",
        rich_help_panel=COLUMNS,
    ),
]
Categorical = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COL[,COL...]",
        help="Columns of numbers that stand for categories; text always does.",
        rich_help_panel=COLUMNS,
    ),
]
Calendar = Annotated[
    str | None,
    typer.Option(
        metavar="none|auto|PART[,PART...]",
        help="Add the clock as a variable: hour, weekday, yearday; auto takes those that fit.",
        rich_help_panel=COLUMNS,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def split_names(given: Iterable[str] | None, columns: Iterable[str]) -> list[str] | None:
    """Read ``A,B`` or repeated options as column names; None if the option was not given.

    A name that is a column as it stands is not split, so names with commas can be used.

    Examples
    --------
    >>> split_names(["year,month", "a,b"], ["year", "month", "a,b"])
    ['year', 'month', 'a,b']
    """
    if not given:
        return None
    known = set(columns)
    names: list[str] = []
    for text in given:
        names += [text] if text in known else [n.strip() for n in text.split(",") if n.strip()]
    return names


def named_columns(columns: Iterable[str], **given: Iterable[str] | None) -> dict[str, Any]:
    """Read options that name columns of a table, such as ``time`` and ``known``.

    Examples
    --------
    >>> named_columns(["day", "x"], time=["day"], known=None)
    {'time': ['day'], 'known': None}
    """
    found = list(columns)
    return {option: split_names(names, found) for option, names in given.items()}


def word_or_words(text: str | None) -> str | list[str] | None:
    """Read ``auto`` as a word and ``hour,weekday`` as several; None if the option was not given.

    Examples
    --------
    >>> word_or_words("auto"), word_or_words("hour")
    ('auto', ['hour'])
    """
    if text is None or text in ("none", "auto"):
        return text
    return [word.strip() for word in text.split(",") if word.strip()]


def fraction_or_count(option: str, text: str | None) -> float | int | None:
    """Read ``0.2`` as a fraction of the rows and ``500`` as a number of rows.

    Examples
    --------
    >>> fraction_or_count("--test", "0.2"), fraction_or_count("--test", "500")
    (0.2, 500)
    """
    if text is None:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise ParameterError(
        f"{option} {text!r} is not a number; give a fraction of the rows such as 0.2, or a number "
        "of rows such as 500."
    )


def number_or_word(text: str | None) -> float | str | None:
    """Read a number as a number and anything else as the word it is, for the model to judge."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def next_command(command: str, model: Path, data: Path, *, sep: str | None, decimal: str) -> str:
    """Say what to run next on the same table, which is to be read in the same way.

    Examples
    --------
    >>> next_command("evaluate", Path("m.safetensors"), Path("a.csv"), sep=None, decimal=",")
    'next: mvlstm evaluate m.safetensors a.csv --decimal ,'
    """
    words = ["mvlstm", command, str(model), str(data)]
    words += ["--sep", sep] if sep is not None else []
    words += ["--decimal", decimal] if decimal != "." else []
    return f"next: {shlex.join(words)}"
