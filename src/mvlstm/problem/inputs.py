"""The windows that a learned method forecasts from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvlstm.problem.preparation import Prepared
from mvlstm.problem.windows import gather_windows, iterate_windows
from mvlstm.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Windows:
    """M scaled windows of T rows and C columns: a table, and the rows at which they end.

    ``prepared`` and ``origins`` (M,) say where they stand in a user's table, for methods that look
    further back than a window; None for windows that were made up, such as scrambled ones.
    """

    table: NDArray[Any]  # (rows, C)
    ends: IntArray  # (M,)
    length: int  # T
    prepared: Prepared | None = None
    origins: IntArray | None = None

    @classmethod
    def at(cls, prepared: Prepared, origins: IntArray, length: int) -> Windows:
        """Return the windows that end at rows of a prepared table."""
        table, ends = prepared.windows_at(origins, length)
        return cls(table, ends, int(length), prepared, origins)

    @classmethod
    def of(cls, values: FloatArray) -> Windows:
        """Return windows (M, T, C) that need not stand in any table."""
        M, T, C = values.shape
        return cls(values.reshape(M * T, C), np.arange(1, M + 1) * T - 1, T)

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def made_up(self) -> bool:
        """Whether they stand in no user's table."""
        return self.prepared is None

    @cached_property
    def values(self) -> NDArray[Any]:
        """The windows themselves, (M, T, C): a copy, if they stand in a table."""
        if self.made_up:
            return self.table.reshape(len(self.ends), self.length, -1)
        return gather_windows(self.table, self.ends, self.length)

    def pieces(self) -> Iterator[NDArray[Any]]:
        """Yield the windows (m, T, C) in pieces, so that memory stays bounded."""
        for _, windows in iterate_windows(self.table, self.ends, self.length):
            yield windows

    def scrambled(self, columns: IntArray, donors: IntArray) -> Windows:
        """Return windows whose ``columns`` come from other windows, those in places ``donors``."""
        values = gather_windows(self.table, self.ends, self.length)
        values[:, :, columns] = values[donors][:, :, columns]
        return Windows.of(values)
