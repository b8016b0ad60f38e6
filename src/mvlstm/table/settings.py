"""What a table's columns are and how its rows are cleaned: settings that travel together.

This module imports nothing heavy, so that a command line can show its options quickly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from mvlstm.errors import ParameterError, check_option, is_whole

Missing = Literal["error", "drop", "fill"]
Gaps = Literal["error", "close", "respect"]
Calendar: TypeAlias = str | Sequence[str]
"""``"none"``, ``"auto"`` or some of the parts "hour", "weekday", "yearday"."""

Names: TypeAlias = str | Sequence[str] | None
MISSING: tuple[str, ...] = get_args(Missing)
GAPS: tuple[str, ...] = get_args(Gaps)
CALENDAR_PARTS = ("hour", "weekday", "yearday")
FILL_LIMIT = 24  # rows: a day of hours; a longer hole is more guess than gap


@dataclass(frozen=True)
class Columns:
    """What the columns of a table are.

    Parameters
    ----------
    target : str
        Column to forecast.
    time : str or sequence of str, optional
        Time column, or several that make up the time (``["year", "month", "day", "hour"]``).
        Without it the index is the time: dates or integers.
    series : str, optional
        Column that says which of several series a row belongs to.
    variables : sequence of str, optional
        The exogenous columns, in order; by default all that are left.
    exclude : str or sequence of str, optional
        Columns to leave out.
    known : str or sequence of str, optional
        Variables whose values are known up to the time forecast. Rows at the end of a series
        without a target are then the future, not missing.
    categorical : str or sequence of str, optional
        Columns to take as categorical though they hold numbers.
    """

    target: str
    time: Names = None
    series: str | None = None
    variables: Sequence[str] | None = None
    exclude: Names = None
    known: Names = None
    categorical: Names = None


@dataclass(frozen=True)
class Cleaning:
    """What is done to the rows of a table before a model sees them.

    Parameters
    ----------
    missing : {"error", "drop", "fill"}
        Missing or infinite values: refuse them, drop their rows, or repeat the last known value.
    fill_limit : int
        Most consecutive rows that ``"fill"`` bridges.
    gaps : {"error", "close", "respect"}
        Uneven spacing: refuse it, take the rows as consecutive, or let no window cross a gap.
    calendar : "none", "auto" or sequence of str
        Cycles of the clock to add as one variable: "hour", "weekday", "yearday", or those that
        the times span at least twice.
    """

    missing: Missing = "error"
    fill_limit: int = FILL_LIMIT
    gaps: Gaps = "error"
    calendar: Calendar = "none"

    def check(self) -> None:
        """Raise `ParameterError` for a value that a setting cannot have."""
        check_option("missing", self.missing, MISSING)
        check_option("gaps", self.gaps, GAPS)
        limit = self.fill_limit
        if not is_whole(limit) or limit < 1:
            raise ParameterError(f"fill_limit={limit!r} must be a whole number of rows, 1 or more.")
