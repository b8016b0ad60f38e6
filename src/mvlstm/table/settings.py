"""What a table's columns are and how its rows are cleaned: settings that travel together.

This module imports nothing heavy, so that a command line can show its options quickly.
"""

# Annotations are read when this module is loaded, hence no `from __future__ import annotations`.
from collections.abc import Sequence
from typing import TypeAlias, get_args

from mvlstm.errors import ParameterError, check_option, is_whole
from mvlstm.settings import TABLE, Gaps, Missing, setting, settings

Calendar: TypeAlias = str | Sequence[str]
"""``"none"``, ``"auto"`` or some of the parts "hour", "weekday", "yearday" and "days"."""

Names: TypeAlias = str | Sequence[str] | None
MISSING: tuple[str, ...] = get_args(Missing)
GAPS: tuple[str, ...] = get_args(Gaps)
CALENDAR_CYCLES = ("hour", "weekday", "yearday")
CALENDAR_PARTS = (*CALENDAR_CYCLES, "days")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
FILL_LIMIT = 24  # rows: a day of hours; a longer hole is more guess than gap
__all__ = ["Calendar", "Cleaning", "Columns", "Gaps", "Missing", "Names", "Reading"]


@settings(panel=TABLE, frozen=True)
class Columns:
    """What the columns of a table are.

    Without ``time`` the index is the time: dates or integers. Rows at the end of a series without
    a target are the future where something is ``known``, else missing.
    """

    target: str = setting(doc="Column to forecast.")
    time: Names = setting(default=None, doc="Time column, or several such as year,month,day,hour.")
    series: str | None = setting(
        default=None, doc="Column that names the series of each row, if there are several."
    )
    variables: Sequence[str] | None = setting(default=None, doc="Use only these variables.")
    exclude: Names = setting(default=None, doc="Leave these out.")
    known: Names = setting(default=None, doc="Variables known in advance, such as holidays.")
    categorical: Names = setting(
        default=None, doc="Columns of numbers that stand for categories; text always does."
    )


@settings(panel="", frozen=True)
class Reading:
    """How a CSV file is read."""

    sep: str | None = setting(
        default=None, doc="Column separator of the CSV; recognised if not given."
    )
    decimal: str = setting(default=".", doc="Decimal mark of the CSV: . or ,")


@settings(panel=TABLE, frozen=True)
class Cleaning:
    """What is done to the rows of a table before a model sees them."""

    missing: Missing = setting(
        default="error",
        doc='Missing or infinite values are refused ("error"), dropped with their rows, or filled '
        "with the last known value.",
    )
    fill_limit: int = setting(
        default=FILL_LIMIT, doc='Most consecutive rows that missing="fill" bridges.'
    )
    gaps: Gaps = setting(
        default="error",
        doc='Uneven spacing is refused ("error"), closed (rows count as consecutive) or '
        "respected: no window crosses a gap.",
    )
    calendar: Calendar = setting(
        default="none",
        doc='Cycles of the clock that become a variable; "auto": those the times span twice.',
    )

    def check(self) -> None:
        """Raise `ParameterError` for a value that a setting cannot have."""
        check_option("missing", self.missing, MISSING)
        check_option("gaps", self.gaps, GAPS)
        limit = self.fill_limit
        if not is_whole(limit) or limit < 1:
            raise ParameterError(f"fill_limit={limit!r} must be a whole number of rows, 1 or more.")
