"""A stated budget of memory, and how many rows it holds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mvlstm.errors import ParameterError

UNITS = {"": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
BASE = 700 * 2**20  # bytes of the libraries, before any row is read
# Bytes of a fit for each row, for each of its values, for each further step ahead, and for each
# value of a window that is copied; `benchmarks/scale.py memory` measures them.
FIT_ROW, FIT_VALUE, FIT_STEP, FIT_COPY = 60, 23, 34, 9


@dataclass(frozen=True)
class Budget:
    """So many bytes, of which the libraries take their part."""

    size: int

    @classmethod
    def of(cls, memory: str | int) -> Budget:
        """Read a budget such as "4GB", or a number of bytes.

        Examples
        --------
        >>> Budget.of("1.5GB").size
        1610612736
        >>> Budget.of("much")
        Traceback (most recent call last):
            ...
        mvlstm.errors.ParameterError: memory='much' is not a size; give one such as memory='4GB'.
        """
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?B)?\s*", str(memory).upper())
        if found is None:
            raise ParameterError(f"memory={memory!r} is not a size; give one such as memory='4GB'.")
        size = int(float(found[1]) * UNITS[found[2] or ""])
        if size < BASE + 2**26:
            raise ParameterError(
                f"memory={memory!r} is less than the {BASE / 2**30:.1f} GB that the libraries "
                "take. Give at least memory='1GB'."
            )
        return cls(size)

    @property
    def free(self) -> int:
        """Bytes for rows."""
        return self.size - BASE

    def fit_rows(self, values: int, horizon: int = 1, copied: int = 0) -> int:
        """Return how many rows of this many values a fit can hold.

        There are ``horizon`` steps ahead, and a copy of each window has ``copied`` values.
        """
        more = FIT_STEP * (horizon - 1) + FIT_COPY * copied
        return int(self.free / (FIT_ROW + FIT_VALUE * values + more))
