"""How training went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.results._tables import Drawable, page, plain
from mvlstm.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class History(Drawable):
    """How training went, for every member and epoch.

    The validation RMSE is that of the rows which stop a member, with ``leave_out`` also of those it
    left out: in units of the target, in those of the transformed target, and in standard
    deviations of each series where there are several.
    """

    train_loss: FloatArray  # (K, E), NaN after a member has stopped
    valid_rmse: FloatArray  # (K, E), likewise
    best_epoch: IntArray  # (K,), counted from 1, whose weights were kept
    seconds: float = float("nan")
    notes: tuple[str, ...] = ()  # such as that a run hit ``max_epochs``
    # (K,) the epoch after which a member went on from its best weights at a lower rate, else 0
    lowered: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if not self.lowered.size:
            object.__setattr__(self, "lowered", np.zeros_like(self.best_epoch))
        assert self.train_loss.shape == self.valid_rmse.shape, "one value per member and epoch"
        assert self.best_epoch.shape == self.train_loss.shape[:1], "one best epoch per member"
        assert self.lowered.shape == self.best_epoch.shape, "one change of rate per member"

    @property
    def members(self) -> int:
        """Number of members K."""
        return int(self.train_loss.shape[0])

    @property
    def epochs(self) -> IntArray:
        """Epochs trained by each member, shape (K,)."""
        return np.asarray(np.isfinite(self.valid_rmse).sum(axis=1), dtype=np.int64)

    @property
    def best_rmse(self) -> FloatArray:
        """Validation RMSE of each member at its best epoch, shape (K,)."""
        column = np.maximum(self.best_epoch - 1, 0)[:, None]
        if self.valid_rmse.shape[1] == 0:
            return np.full(self.members, np.nan)
        return np.asarray(np.take_along_axis(self.valid_rmse, column, axis=1)[:, 0])

    @property
    def epochs_found(self) -> tuple[IntArray, IntArray]:
        """Epochs that led to the kept weights, at the full rate and at the lower one, each (K,)."""
        slow = np.where(self.lowered > 0, np.maximum(self.best_epoch - self.lowered, 0), 0)
        full = self.best_epoch.copy()
        for k in np.flatnonzero(slow):
            full[k] = np.nanargmin(self.valid_rmse[k, : self.lowered[k]]) + 1
        return full, slow

    def take(self, rows: IntArray) -> History:
        """Return the history of some members."""
        return replace(
            self,
            train_loss=self.train_loss[rows],
            valid_rmse=self.valid_rmse[rows],
            best_epoch=self.best_epoch[rows],
            lowered=self.lowered[rows],
        )

    def with_rows(self, rows: IntArray, other: History) -> History:
        """Return this history with some members' replaced; time and notes are those of both."""
        epochs = max(self.train_loss.shape[1], other.train_loss.shape[1])
        loss, rmse = _widened(self.train_loss, epochs), _widened(self.valid_rmse, epochs)
        loss[rows] = _widened(other.train_loss, epochs)
        rmse[rows] = _widened(other.valid_rmse, epochs)
        best_epoch, lowered = self.best_epoch.copy(), self.lowered.copy()
        best_epoch[rows], lowered[rows] = other.best_epoch, other.lowered
        notes = tuple(dict.fromkeys((*self.notes, *other.notes)))
        return History(loss, rmse, best_epoch, self.seconds + other.seconds, notes, lowered)

    def to_frame(self) -> pd.DataFrame:
        """One row per member and epoch trained: member, epoch, train_loss, valid_rmse, best."""
        member, epoch = np.nonzero(np.isfinite(self.train_loss) | np.isfinite(self.valid_rmse))
        return pd.DataFrame(
            {
                "member": member,
                "epoch": epoch + 1,
                "train_loss": self.train_loss[member, epoch],
                "valid_rmse": self.valid_rmse[member, epoch],
                "best": epoch + 1 == self.best_epoch[member],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, read back by `from_dict`."""
        names = ("train_loss", "valid_rmse", "best_epoch", "lowered", "seconds", "notes")
        return {name: plain(getattr(self, name)) for name in names}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> History:
        """Rebuild from `to_dict`'s answer."""
        best = np.asarray(data["best_epoch"], dtype=np.int64)
        shape = (best.size, -1) if best.size else (0, 0)
        loss, valid = (
            np.asarray(data[name], dtype=np.float64).reshape(shape)
            for name in ("train_loss", "valid_rmse")
        )
        seconds = data.get("seconds")
        return cls(
            train_loss=loss,
            valid_rmse=valid,
            best_epoch=best,
            seconds=float("nan") if seconds is None else float(seconds),
            notes=tuple(data.get("notes", ())),
            lowered=np.asarray(data.get("lowered", np.zeros_like(best)), dtype=np.int64),
        )

    @property
    def summary(self) -> str:
        """How many members were trained, for how long, and how far they came."""
        if self.members == 0:
            return "no training"
        if not self.valid_rmse.shape[1]:
            return f"{counted(self.members, 'member')}, no epoch done, {self.seconds:.1f} s"
        best = self.best_rmse
        span = f" ({np.nanmin(best):.4g} to {np.nanmax(best):.4g})" if self.members > 1 else ""
        members = counted(self.members, "member")
        epochs = counted(int(self.epochs.max()), "epoch")
        return (
            f"{members}, {epochs}, validation RMSE {np.nanmean(best):.4g}{span}, "
            f"{self.seconds:.1f} s"
        )

    def __repr__(self) -> str:
        return f"History({self.summary})"

    def _repr_html_(self) -> str:
        return page(repr(self), self.to_frame())


def _widened(values: FloatArray, epochs: int) -> FloatArray:
    """Return a copy of values (K, E) with NaN for the epochs that are missing."""
    room = np.full((len(values), epochs - values.shape[1]), np.nan)
    return np.concatenate([values, room], axis=1)
