"""Dividing rows in time into training, validation and new ones."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import Literal

import numpy as np

from mvlstm.errors import ParameterError, is_number

PartName = Literal["train", "stop", "calibration", "new"]
HELD_OUT: tuple[PartName, ...] = ("stop", "calibration")  # the validation part
Choosing = Literal["half", "all"]  # which validation rows stop training and choose settings
CHOOSING: tuple[Choosing, ...] = ("half", "all")


@dataclass(frozen=True)
class Parts:
    """Borders of the parts, as row numbers.

    Rows [0, a) train; [a, b) are the validation part, which calibrates intervals: its earlier half
    [a, m), called "stop", stops training and selects, its later half [m, b), called "calibration",
    judges what was selected (a search with several networks per setting selects on both); [b, n)
    are new, that is unseen.
    """

    a: int
    m: int
    b: int
    n: int

    def rows(self, part: PartName | Literal["validation"]) -> slice:
        """Return the rows of one part."""
        borders = {
            "train": (0, self.a),
            "stop": (self.a, self.m),
            "calibration": (self.m, self.b),
            "validation": (self.a, self.b),
            "new": (self.b, self.n),
        }
        return slice(*borders[part])


def chronological(n_rows: int, *, test: float = 0.0, valid: float = 0.1) -> Parts:
    """Divide rows in time: the last part is left unseen, validation comes before it.

    ``test`` and ``valid`` are fractions of all rows (below 1), or whole numbers of rows. With n
    rows, a = floor((1 - test - valid) n) and b = floor((1 - test) n), computed exactly: test=0.2
    and valid=0.1 mean 7n/10 and 8n/10, free of floating-point error.

    Examples
    --------
    >>> chronological(1000, test=0.2)
    Parts(a=700, m=750, b=800, n=1000)
    """
    test_share = _share("test", test, n_rows)
    valid_share = _share("valid", valid, n_rows)
    if test_share + valid_share >= 1:
        raise ParameterError(
            f"test={test} and valid={valid} leave nothing of {n_rows:,} rows to train on; "
            "make them smaller."
        )
    b = floor((1 - test_share) * n_rows)
    a = floor((1 - test_share - valid_share) * n_rows)
    return Parts(a=a, m=(a + b) // 2, b=b, n=n_rows)


def require_validation(valid: float) -> None:
    """Raise `ParameterError` unless some rows are left to stop training and calibrate on."""
    if not is_number(valid) or not valid > 0:
        raise ParameterError(
            f"valid={valid!r} leaves no rows to stop training and calibrate intervals on; "
            "use a fraction such as 0.1."
        )


def _share(name: str, value: float, n_rows: int) -> Fraction:
    """Turn a fraction or a number of rows into an exact share of the rows."""
    if not is_number(value) or not np.isfinite(value) or value < 0:
        raise ParameterError(
            f"{name}={value!r} must be a fraction of the rows, 0 or more and below 1, such as "
            f"{name}=0.2, or a whole number of rows."
        )
    if value < 1:
        return Fraction(str(float(value)))
    if value != int(value):
        raise ParameterError(
            f"{name}={value!r} is neither a fraction below 1 nor a whole number of rows."
        )
    return Fraction(int(value), max(n_rows, 1))
