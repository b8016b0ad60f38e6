"""`Problem`: what a method learns from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from mvlstm.problem.inputs import Windows
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.windows import gather_windows
from mvlstm.storage import array_bytes
from mvlstm.table.layout import Layout
from mvlstm.table.parts import HELD_OUT, PartName
from mvlstm.train.config import Member
from mvlstm.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Run:
    """Where training runs, how long it may take, and where its state is kept meanwhile."""

    checkpoint: Path | None = None
    time_limit: float | None = None  # seconds
    again: bool = False  # whether members are trained a second time; their state is kept apart
    engine: str = "local"  # or "ray", or the address of a Ray cluster
    advance: Callable[..., None] | None = (
        None  # told what is done, of trees; it may end the fit by an error
    )

    def after(self, seconds: float) -> Run:
        """Return what is left of it after this many seconds."""
        if self.time_limit is None:
            return self
        return replace(self, time_limit=max(self.time_limit - seconds, 0.0))


@dataclass(frozen=True, eq=False)
class Problem:
    """What a model learns from: a prepared table and the origins of each part.

    Parameters
    ----------
    prepared : Prepared
    origins : dict
        Rows of the windows' ends for "train", "stop", "calibration" and "new".
    window, horizon : int
    run : Run
        How training may be interrupted.
    members : tuple of Member
        Settings of a network's members, one by one, in place of the forecaster's own.
    ensemble : int, optional
        How many members an ensemble has, where not all that are trained make one: repeats, or a
        share. By default as many as are trained.
    search : bool
        Whether they are tried against one another: then one may fail.
    """

    prepared: Prepared
    origins: dict[PartName, IntArray]
    window: int
    horizon: int
    run: Run = field(default_factory=Run)
    members: tuple[Member, ...] = ()
    ensemble: int | None = None
    search: bool = False

    @property
    def n_variables(self) -> int:
        """N, target included."""
        return self.prepared.frame.n_variables

    @property
    def layout(self) -> Layout:
        """What the columns are."""
        return self.prepared.frame.layout

    @property
    def groups(self) -> tuple[int, ...]:
        """Variable of each column."""
        return self.prepared.frame.groups

    @property
    def inputs_read(self) -> BoolArray | None:
        """Which inputs of a window (T, C) linear maps read; None for all.

        Of the calendar, only the rows that are forecast: earlier ones say nothing new of the time.
        """
        clock = list(self.layout.clock_columns)
        if not clock:
            return None
        read = np.ones((self.window, len(self.groups)), dtype=bool)
        read[: self.window - max(1, self.prepared.preparation.ahead), clock] = False
        return read

    def in_time_order(self, part: PartName) -> IntArray:
        """Origins of a part by time; several series lie one after another in the table."""
        rows, frame = self.origins[part], self.prepared.frame
        return rows if frame.panel is None else rows[np.argsort(frame.order[rows], kind="stable")]

    def labels(self, part: PartName) -> FloatArray:
        """Labels (M, H) of a part's windows, in units of the target; NaN where filled in."""
        return self.prepared.known_labels(self.origins[part], self.horizon)

    def at(self, part: PartName) -> Windows:
        """Windows of a part."""
        return Windows.at(self.prepared, self.origins[part], self.window)

    def checksum(self) -> str:
        """Tell this problem from others: columns, windows, inputs, targets and parts."""
        digest = hashlib.blake2b(digest_size=16)
        prepared, frame = self.prepared, self.prepared.frame
        digest.update(json.dumps([list(frame.columns), self.window, self.horizon]).encode())
        digest.update(array_bytes(prepared.table))
        digest.update(array_bytes(frame.target_values))
        if frame.measured is not None:
            digest.update(array_bytes(frame.measured))
        for part in ("train", *HELD_OUT):
            digest.update(array_bytes(self.origins[part]))
        return digest.hexdigest()

    def windows(self, part: PartName) -> FloatArray:
        """Scaled windows (M, T, C) of a part: a copy, for models that need them all at once."""
        return gather_windows(self.prepared.table, self.origins[part], self.window)


def known_places(labels: FloatArray) -> slice | BoolArray:
    """Return an index of the labels that are known; all of them where that is so, uncopied."""
    unknown = np.isnan(labels)
    return ~unknown if unknown.any() else slice(None)


def of_known(errors: FloatArray, labels: FloatArray) -> FloatArray:
    """Return members' errors (K, M, H) where labels (M, H) are known: all, or some as (K, n, 1)."""
    known = known_places(labels)
    return errors if isinstance(known, slice) else errors[:, known, None]
