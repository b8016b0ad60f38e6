"""What a table's columns are and how its rows are cleaned: settings that travel together.

This module imports nothing heavy, so that a command line can show its options quickly.
"""

# Annotations are read when this module is loaded, hence no `from __future__ import annotations`.
import contextlib
from collections.abc import Sequence
from typing import Any, Self, TypeAlias, get_args

from mvlstm.errors import ParameterError, check_option, is_number, is_whole
from mvlstm.settings import (
    TABLE,
    CalendarSettings,
    Duplicates,
    Gaps,
    Missing,
    declared,
    declared_in,
    setting,
    settings,
)

Calendar: TypeAlias = str | Sequence[str]
"""``"none"``, ``"auto"`` or some of the parts "hour", "weekday", "yearday", "days" and, for the
public holidays of a country, "holidays:DE"."""

Names: TypeAlias = str | Sequence[str] | None
Codes: TypeAlias = float | str | Sequence[float | str] | None
MISSING: tuple[str, ...] = get_args(Missing)
GAPS: tuple[str, ...] = get_args(Gaps)
DUPLICATES: tuple[str, ...] = get_args(Duplicates)
CALENDAR_CYCLES = ("hour", "weekday", "yearday")
CALENDAR_PARTS = (*CALENDAR_CYCLES, "days")
HOLIDAYS = "holidays:"  # the part of a country's public holidays starts with it
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
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
    na_values: Codes = setting(
        default=None,
        doc="Values that stand for a missing one, such as -200, or 'wind=999' in one column alone; "
        "an empty list says that there are none. By default such values are looked for and "
        "refused.",
    )


@settings(panel="", frozen=True)
class Reading:
    """How a CSV file is read."""

    sep: str | None = setting(
        default=None, doc="Column separator of the CSV; recognised if not given."
    )
    decimal: str = setting(default=".", doc="Decimal mark of the CSV: . or ,")


@settings(panel=TABLE, frozen=True)
class Repairs:
    """What is done about missing values, gaps and times that occur twice."""

    missing: Missing = declared_in(CalendarSettings, "missing")
    fill_limit: int = declared_in(CalendarSettings, "fill_limit")
    gaps: Gaps = declared_in(CalendarSettings, "gaps")
    duplicates: Duplicates = declared_in(CalendarSettings, "duplicates")

    @property
    def repairs(self) -> dict[str, Any]:
        """These settings alone, by name."""
        return {one.name: getattr(self, one.name) for one in declared(Repairs)}


@settings(panel=TABLE, frozen=True)
class Cleaning(Repairs):
    """What is done to the rows of a table before a model sees them."""

    calendar: Calendar = declared_in(CalendarSettings, "calendar")
    holidays: Calendar = declared_in(CalendarSettings, "holidays")

    @classmethod
    def of(cls, source: Any) -> Self:
        """Take these settings from what has them, such as a forecaster."""
        return cls(**{one.name: getattr(source, one.name) for one in declared(cls)})

    def check(self) -> None:
        """Raise `ParameterError` for a value that a setting cannot have."""
        check_option("missing", self.missing, MISSING)
        check_option("gaps", self.gaps, GAPS)
        check_option("duplicates", self.duplicates, DUPLICATES)
        limit = self.fill_limit
        if not is_whole(limit) or limit < 1:
            raise ParameterError(f"fill_limit={limit!r} must be a whole number of rows, 1 or more.")


def is_part(name: str) -> bool:
    """Say whether the calendar may have a part of this name.

    Examples
    --------
    >>> is_part("hour"), is_part("holidays:DE-BY"), is_part("holidays:"), is_part("minute")
    (True, True, False, False)
    """
    country = name.removeprefix(HOLIDAYS)
    return name in CALENDAR_PARTS or (name != country and country.replace("-", "").isalnum())


def read_codes(values: Codes) -> tuple[float | str, ...] | None:
    """Return the values that stand for a missing one as a tuple; None where nothing was said."""
    if values is None:
        return None
    several = [values] if isinstance(values, str | float | int) else list(values)
    wrong = [one for one in several if not (isinstance(one, str) or is_number(one))]
    if wrong:
        raise ParameterError(
            f"na_values={values!r} must be numbers or texts that stand for a missing value, such "
            "as na_values=[-200]."
        )
    return tuple(one.strip() if isinstance(one, str) else float(one) for one in several)


def codes_of(codes: Sequence[float | str], column: str) -> tuple[float | str, ...]:
    """Return the values that stand for a missing one in a column, its own without its name.

    Examples
    --------
    >>> codes_of((-200.0, "wind=999", "rain=?"), "wind")
    (-200.0, 999.0)
    """
    found: list[float | str] = []
    for code in codes:
        name, mark, own = code.rpartition("=") if isinstance(code, str) else ("", "", "")
        if not mark:
            found.append(code)
        elif name == column:
            with contextlib.suppress(ValueError):
                found.append(float(own))
                continue
            found.append(own)
    return tuple(found)


def columns_of_codes(codes: Sequence[float | str]) -> tuple[str, ...]:
    """Return the columns that values which stand for a missing one are said of."""
    words = [code for code in codes if isinstance(code, str) and "=" in code]
    return tuple(dict.fromkeys(word.rpartition("=")[0] for word in words))
