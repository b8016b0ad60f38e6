"""`Fitted`: everything a fit found, as one value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike

from mvlstm.errors import ParameterError
from mvlstm.model.adaptive import adapted
from mvlstm.model.calibration import Calibration
from mvlstm.model.forecasting import dated_forecast
from mvlstm.model.learned import Learned, Stopped
from mvlstm.model.table_warnings import require_rows
from mvlstm.model.transform_choice import check_target
from mvlstm.problem.inputs import Windows
from mvlstm.problem.part_times import PartTimes
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.preparation import Preparation, Prepared
from mvlstm.problem.problem import Problem
from mvlstm.problem.windows import gather_windows, spread_evenly
from mvlstm.results import Forecast, History
from mvlstm.results.update import Update
from mvlstm.table.frame import SeriesFrame, rebuild_frame
from mvlstm.table.joining import join_future
from mvlstm.table.layout import Layout
from mvlstm.types import FloatArray, IntArray

BACKGROUND = 8  # training windows that contributions are measured against
RECENT, FEWEST = 1_000, 100  # forecasts that those of the last rows look back on; of a series


@dataclass(frozen=True, eq=False)
class Background:
    """A few training windows that contributions are measured against.

    Shapes
    ------
    windows : (B, T, C) scaled
    baseline : (B, H) what differencing took away from their labels
    """

    windows: FloatArray
    baseline: FloatArray

    @classmethod
    def of(cls, problem: Problem) -> Background:
        """Choose training windows, spread evenly."""
        few = spread_evenly(problem.origins["train"], BACKGROUND)
        windows = gather_windows(problem.prepared.table, few, problem.window)
        return cls(windows, problem.prepared.baseline(few, problem.horizon))


@dataclass(frozen=True, eq=False)
class Fitted:
    """All that a fit found; nothing edits it, whatever follows returns a new value.

    Parameters
    ----------
    name : str
        Of the forecaster's class.
    window, horizon : int
    layout : Layout
        What the columns of the table are.
    preparation : Preparation
        How columns become inputs, and the target becomes labels.
    parts : PartTimes
        When the training and validation rows end.
    learned : Learned
    calibration : Calibration
        How wide intervals are.
    background : Background
    history : History
    notes : tuple of str
    n_train : int or None
        Training windows of the fit; None in files of old versions.
    stopped : {"interrupt", "time limit"}, optional
        What ended training early.
    seconds : float
    updates : tuple of Update
        What was done to the model since, oldest first.
    dtype : dtype
        Precision of the prepared table.
    adaptive : bool
        Whether intervals follow the outcomes of earlier forecasts.
    """

    name: str
    window: int
    horizon: int
    layout: Layout
    preparation: Preparation
    parts: PartTimes
    learned: Learned
    calibration: Calibration
    background: Background
    history: History
    notes: tuple[str, ...] = ()
    n_train: int | None = None
    stopped: Stopped | None = None
    seconds: float = float("nan")
    updates: tuple[Update, ...] = ()
    dtype: DTypeLike = np.float64
    adaptive: bool = True

    @property
    def members(self) -> int:
        """K."""
        return len(self.calibration.spread)

    # --------------------------------------------------------------------------- reading a table

    def read(self, table: Any, caller: str) -> SeriesFrame:
        """Check a table as the fit's was checked."""
        return rebuild_frame(table, self.layout, caller=caller)

    def joined(self, table: Any, future: pd.DataFrame) -> pd.DataFrame:
        """Put rows of the future, with what is known ahead, after a table's."""
        if not self.layout.known:
            raise ParameterError(
                "future=... holds variables known ahead, and this model has none. Leave it out, "
                "or fit with known=[...]."
            )
        return join_future(table, future, self.layout)

    def prepare(self, frame: SeriesFrame) -> Prepared:
        """Scale a table as the fit's was scaled."""
        check_target(self.preparation.transform, frame)
        return self.preparation.apply(frame, self.dtype, window=self.window)

    def origins(self, prepared: Prepared, caller: str, *, labelled: bool = False) -> IntArray:
        """Return the origins whose steps all lie in the table; with ``labelled``, one measured."""
        choose = prepared.labelled if labelled else prepared.origins
        origins = choose(self.window, self.horizon)
        if not len(origins):
            require_rows(prepared, caller, self.window, self.horizon)
        return origins

    # -------------------------------------------------------------------------------- forecasting

    def windows(self, prepared: Prepared, origins: IntArray) -> Windows:
        """Return the windows that end at given origins."""
        return Windows.at(prepared, origins, self.window)

    def predict(self, prepared: Prepared, origins: IntArray) -> Predictive:
        """Forecast the labels of given origins."""
        return Predictive.gathered(self.pieces(prepared, origins), len(origins))

    def pieces(self, prepared: Prepared, origins: IntArray) -> Iterator[Predictive]:
        """Yield forecasts of the labels of some origins after others, where they take room."""
        for some in prepared.pieces(origins, self.window):
            yield from self.learned.pieces(self.windows(prepared, some))

    def forecast(self, prepared: Prepared, origins: IntArray) -> Forecast:
        """Forecast with dates, names and units; intervals adapt to the outcomes among them."""
        made = self._made(prepared, origins)
        return adapted(made, self.parts) if self.adaptive else made

    def forecast_last(self, prepared: Prepared, origins: IntArray) -> Forecast:
        """Forecast from the last rows; intervals adapt to the outcomes of the latest forecasts."""
        made = self._made(prepared, origins)
        rows = self._recent(prepared, origins) if self.adaptive else origins[:0]
        if not len(rows):
            return made
        together = Forecast.join([self._made(prepared, rows, checked=False), made])
        found = adapted(together, self.parts)
        if found.knots is None:
            return made
        last = found.take(slice(len(found) - len(made), None))
        return replace(made, knots=last.knots, tied=last.tied)

    def _made(self, prepared: Prepared, origins: IntArray, *, checked: bool = True) -> Forecast:
        """Forecast with the intervals of the fit; unchecked, leave out what is not finite."""
        pieces: Iterable[Predictive] = self.pieces(prepared, origins)
        if not checked:
            with np.errstate(over="ignore", invalid="ignore"):
                every = self.predict(prepared, origins)
            fine = np.asarray(np.isfinite(every.members).all(axis=(0, 2)))
            origins, pieces = origins[fine], [every.take(fine)]
        return dated_forecast(prepared, origins, pieces, self.calibration, self.parts, self.window)

    def _recent(self, prepared: Prepared, origins: IntArray) -> IntArray:
        """Return the latest rows, of the series of given last rows, with outcomes since the fit."""
        rows, frame = prepared.origins(self.window, 1), prepared.frame
        rows = rows[self.parts.after(frame.future_times(rows, self.horizon)).all(axis=1)]
        rows = rows[rows < origins[-1]]
        last = origins[np.searchsorted(origins, rows)]
        same = True if frame.panel is None else frame.panel.codes[rows] == frame.panel.codes[last]
        near = last - rows <= max(FEWEST, RECENT // len(origins))
        return np.asarray(rows[near & same])

    # ------------------------------------------------------------------------------- other values

    def with_learned(self, learned: Learned) -> Fitted:
        """Return the model with something else learned, everything else kept."""
        return replace(self, learned=learned)
