"""One run of a command: what it prints, where, and with which code it ends.

Standard output carries the result alone: tables for a person or, with ``--json``, one JSON object.
Progress, warnings and errors go to standard error. Exit codes: 0 done, 2 bad input (one message
that names the culprit and the remedy), 1 a fault, 130 interrupted.
"""

from __future__ import annotations

import json
import sys
import traceback
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from math import floor, isfinite, isnan, log10
from typing import TYPE_CHECKING, Any, TextIO

import typer

from mvlstm._words import decimals, significant
from mvlstm.cli.messages import translate, translated
from mvlstm.errors import MVLSTMError, MVLSTMWarning, StorageError, TrainingError, printable

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from rich.console import RenderableType

BAD_INPUT, FAULT, INTERRUPTED = 2, 1, 130
DECADES = 4  # that numbers with the same decimals may span
PLAIN_WIDTH = 160  # where the output is not a terminal, tables are not squeezed into 80 columns


class Output:
    """Gathers the result of a command and prints it in one go at the end.

    As JSON it prints ``data`` instead of what was shown, with the warnings in a field of their own;
    in every row where ``data`` is a list of rows. ``options`` says how messages name arguments.
    """

    def __init__(self, *, as_json: bool, options: Mapping[str, str] | None = None) -> None:
        self.as_json = as_json
        self.options = options or {}
        self.data: dict[str, Any] | list[Any] = {}
        self.warnings: list[str] = []
        self.code = 0
        self._shown: list[RenderableType] = []

    def show(self, *what: RenderableType) -> None:
        """Add text or a table to what a person will see."""
        self._shown.extend(printable(item) if isinstance(item, str) else item for item in what)

    def notes(self, notes: Iterable[str]) -> None:
        """Add plain sentences, each on its own line, but those that were warned of already."""
        worded = dict.fromkeys(map(self.worded, notes))
        self.show(*(f"note: {one}" for one in worded if printable(one) not in self.warnings))

    def write_table(self, path: Path | None, frame: pd.DataFrame) -> None:
        """Write a table to a file, if one was asked for."""
        if path is not None:
            from mvlstm.table.files import write_table

            write_table(path, frame)

    def wrote(self, *files: object) -> None:
        """Name the files that were written; None stands for one that was not asked for."""
        self.show(*(f"wrote {file}" for file in files if file is not None))

    def worded(self, message: str) -> str:
        """Say a message of the library in the words of the command line."""
        return translate(message, self.options)

    def warn(self, message: str) -> None:
        """Say something on standard error at once and keep it for the JSON object."""
        message = printable(self.worded(message))
        if message not in self.warnings:
            self.warnings.append(message)
            typer.echo(f"warning: {message}", err=True)

    def print(self, stream: TextIO) -> None:
        """Write the result to ``stream``."""
        if self.as_json:
            whole: Any = self.data
            told = [self._with_messages(row) for row in whole] if isinstance(whole, list) else None
            found = self._with_messages(whole) if told is None else told
            stream.write(json.dumps(found, allow_nan=False, indent=2) + "\n")
            stream.flush()
            return
        from rich.console import Console

        terminal = stream.isatty()
        width = None if terminal else PLAIN_WIDTH
        console = Console(file=stream, width=width, markup=False, highlight=False, emoji=False)
        for item in self._shown:
            console.print(item, soft_wrap=isinstance(item, str) and not terminal)

    def _with_messages(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return an object with its notes in the words of the command line, and the warnings."""
        notes = {"notes": translated(row["notes"], self.options)} if "notes" in row else {}
        return {**row, **notes, "warnings": self.warnings}


@contextmanager
def session(
    *, as_json: bool, debug: bool, options: Mapping[str, str] | None = None
) -> Iterator[Output]:
    """Run the body of a command; print its `Output`, or its error, and set the exit code."""
    output = Output(as_json=as_json, options=options)
    try:
        with redirect_stdout(sys.stderr), _warnings_to(output):
            yield output
        output.print(sys.stdout)
        if output.code:
            raise typer.Exit(output.code)
    except (typer.Exit, typer.Abort):
        raise
    except BrokenPipeError:  # who reads has seen enough; the command line ends without a word
        raise
    except KeyboardInterrupt:
        typer.echo("interrupted; no file was left half-written.", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        if debug:
            traceback.print_exc()
        typer.echo(f"error: {printable(output.worded(_describe(error)))}", err=True)
        raise typer.Exit(_exit_code(error)) from None


def table(
    frame: pd.DataFrame,
    *,
    title: str | None = None,
    digits: int = 4,
    exact: Collection[str] = (),
    shares: Collection[str] = (),
    beside: Collection[str] = (),
) -> RenderableType:
    """Draw a DataFrame as text; the numbers of a column have the same decimals.

    The largest has ``digits`` digits. Numbers of the columns ``exact``, settings, are written as
    they were given; ``shares`` of one whole with three decimals however small; of those ``beside``
    others only what shows next to the largest matters.
    """
    from pandas import isna
    from pandas.api.types import is_bool_dtype, is_float_dtype, is_numeric_dtype
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from mvlstm.results._tables import finest

    sizes = finest(frame)
    drawn = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    cells: list[list[str]] = []
    for name, column in frame.items():
        right = is_numeric_dtype(column) and not is_bool_dtype(column)
        if not is_float_dtype(column) or name in exact or name in shares:
            form = "" if not is_float_dtype(column) else ".12g" if name in exact else ".3f"
            texts = ["" if isna(v) else f"{v:{form}}" if form else str(v) for v in column]
        elif name in beside:
            texts = _numbers_alike(list(column), digits)
        else:
            texts = _numbers(list(column), digits, sizes.get(str(name), 0.0))
        head = printable(str(name)).replace("_", "\n")
        longest = max((len(word) for text in (head, *texts) for word in text.split()), default=1)
        drawn.add_column(
            Text(head), justify="right" if right else "left", min_width=min(longest, 40)
        )
        cells.append(texts)
    for row in zip(*cells, strict=True):
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    return Group(Text(title, style="bold"), drawn) if title else drawn


def first_of(count: int, shown: int) -> str:
    """Say after a title that only the first rows of a table are drawn, where that is so.

    Examples
    --------
    >>> first_of(120, 50), first_of(12, 50)
    (', the first 50 of 120', '')
    """
    return f", the first {shown} of {count:,}" if count > shown else ""


def _numbers(values: list[float], digits: int, finest: float = 0.0) -> list[str]:
    """Write numbers with the same decimals, so that the largest has ``digits`` digits.

    There are more decimals where something as small as ``finest`` must show. Numbers that span
    more than four decades, and would not all show, have this many digits each.

    Examples
    --------
    >>> _numbers([1.0, 3.0861, float("nan")], 4)
    ['1.000', '3.086', '']
    >>> _numbers([3e6, 0.00125], 4)
    ['3000000', '0.001250']
    >>> _numbers([1.00094e10, 1.00132e10], 4, finest=4e6)
    ['1.00094e+10', '1.00132e+10']
    """
    sizes = [abs(v) for v in values if isfinite(v) and v]
    spread = sizes and max(sizes) > 10**DECADES * min(sizes)
    if spread and min(sizes) * 10 ** decimals(max(sizes), digits, finest) < 10:
        own = digits + 2 if finest else digits  # which has to show next to large numbers
        return [_numbers_alike([v], own)[0] for v in values]
    return _numbers_alike(values, digits, finest)


def _numbers_alike(values: list[float], digits: int, finest: float = 0.0) -> list[str]:
    largest = max((abs(v) for v in values if isfinite(v)), default=0.0)
    exponent = floor(log10(largest)) if largest else 0
    if not -4 <= exponent <= 9:
        places = significant(largest, digits, finest) - 1
        return ["" if isnan(v) else f"{v:.{places}e}" for v in values]
    places = decimals(largest, digits, finest)
    return ["" if isnan(v) else f"{round(v, places) + 0.0:.{places}f}" for v in values]


@contextmanager
def _warnings_to(output: Output) -> Iterator[None]:
    """Let our own warnings through to ``output`` and silence those of the libraries beneath."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        output.warn(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", MVLSTMWarning)
        warnings.showwarning = show
        yield


def _describe(error: Exception) -> str:
    if isinstance(error, MVLSTMError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        where = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror}{where}. Free space or choose another place, then run again."
    if isinstance(error, MemoryError):
        return "Out of memory. Use a smaller window, batch_size, hidden_size or fewer members."
    if isinstance(error, ModuleNotFoundError):  # as after installing mvlstm-runtime, see supply
        return (
            f"This needs {error.name}, which is not installed. Install it with: pip install mvlstm"
        )
    return f"{type(error).__name__}: {error}. This is a fault in mvlstm; --debug shows where."


def _exit_code(error: Exception) -> int:
    faults = (TrainingError, StorageError)
    bad_input = isinstance(error, MVLSTMError) and not isinstance(error, faults)
    return BAD_INPUT if bad_input else FAULT
