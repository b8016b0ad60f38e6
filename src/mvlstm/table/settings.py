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

    ``time`` is one column or several that make up the time (``["year", "month", "day", "hour"]``);
    without it the index is the time: dates or integers. Rows at the end of a series without a
    target are the future where something is ``known``, else missing.
    """

    target: str
    time: Names = None
    series: str | None = None  # says which of several series a row belongs to
    variables: Sequence[str] | None = None  # exogenous, in order; by default all that are left
    exclude: Names = None
    known: Names = None  # variables whose values are known up to the time forecast
    categorical: Names = None  # categories though they hold numbers


@dataclass(frozen=True)
class Cleaning:
    """What is done to the rows of a table before a model sees them.

    Missing or infinite values are refused, dropped with their rows, or filled with the last known
    value. Uneven spacing is refused, closed (rows count as consecutive) or respected: no window
    crosses a gap. The calendar "auto" adds the cycles that the times span at least twice.
    """

    missing: Missing = "error"
    fill_limit: int = FILL_LIMIT  # most consecutive rows that "fill" bridges
    gaps: Gaps = "error"
    calendar: Calendar = "none"

    def check(self) -> None:
        """Raise `ParameterError` for a value that a setting cannot have."""
        check_option("missing", self.missing, MISSING)
        check_option("gaps", self.gaps, GAPS)
        limit = self.fill_limit
        if not is_whole(limit) or limit < 1:
            raise ParameterError(f"fill_limit={limit!r} must be a whole number of rows, 1 or more.")
