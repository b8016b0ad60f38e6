"""When the parts of a fitted model's rows end, so that later rows know what they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm.errors import ModelFileError, is_whole
from mvlstm.table.layout import Layout
from mvlstm.table.parts import Parts
from mvlstm.types import BoolArray


@dataclass(frozen=True)
class PartTimes:
    """First time seen, and last time of training and of either half of the validation rows."""

    start: Any
    train: Any
    stop: Any
    calibration: Any

    @classmethod
    def from_rows(cls, times: pd.Index[Any], parts: Parts) -> PartTimes:
        """Read the times off the rows of a split."""
        return cls(times[0], times[parts.a - 1], times[parts.m - 1], times[parts.b - 1])

    def names(self, times: NDArray[Any]) -> NDArray[np.str_]:
        """Return "train", "validation" or "new" for each of ``times``.

        Times before the first one seen are new too: the model has not seen them either.
        """
        found = np.full(times.shape, "new", dtype="<U10")
        known = ~self.before(times)
        found[known & ~self.after(times)] = "validation"
        found[known & ~self.after(times, self.train)] = "train"
        return found

    def calibration_rows(self, times: NDArray[Any]) -> BoolArray:
        """Say which of ``times`` lie in the later half of the validation rows."""
        return self.after(times, self.stop) & ~self.after(times)

    def before(self, times: NDArray[Any]) -> BoolArray:
        """Say which of ``times`` come before the first one seen."""
        return ~self.since(times, self.start)

    def after(self, times: NDArray[Any], border: Any = None) -> BoolArray:
        """Say which of ``times`` come after a border, by default after all the model knows."""
        later = self._index(times) > (self.calibration if border is None else border)
        return np.asarray(later).reshape(times.shape)

    def since(self, times: NDArray[Any], start: Any) -> BoolArray:
        """Say which of ``times`` are ``start`` or later."""
        return np.asarray(self._index(times) >= start).reshape(times.shape)

    def _index(self, times: NDArray[Any]) -> pd.Index[Any]:
        flat: pd.Index[Any] = pd.Index(times.reshape(-1))
        if isinstance(self.start, pd.Timestamp) and self.start.tz is not None:
            flat = pd.DatetimeIndex(pd.to_datetime(flat, utc=True)).tz_convert(self.start.tz)
        return flat

    def check(self, layout: Layout) -> None:
        """Raise `ModelFileError` unless the times are of the layout's kind and in order."""
        times = [self.start, self.train, self.stop, self.calibration]
        if layout.time_kind == "datetime":
            zoned = layout.time_zone is not None
            right = all(isinstance(t, pd.Timestamp) and (t.tz is not None) == zoned for t in times)
        else:
            right = not any(isinstance(time, pd.Timestamp) for time in times)
        if not right or times != sorted(times):
            raise ModelFileError("The file's times of its parts do not fit its columns.")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: ISO text for timestamps."""
        return {name: _plain(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PartTimes:
        """Build from what `to_dict` returned."""
        try:
            return cls(**{name: _time(values[name]) for name in cls.__dataclass_fields__})
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(f"The file's times of its parts are damaged: {error}.") from error


def _plain(time: Any) -> Any:
    if isinstance(time, pd.Timestamp):
        zone = None if time.tz is None else str(time.tz)
        return {"time": time.isoformat(), "zone": zone}
    return int(time)


def _time(value: Any) -> Any:
    if isinstance(value, dict):
        time = pd.Timestamp(value["time"])
        return time if value["zone"] is None else time.tz_convert(value["zone"])
    if not is_whole(value):
        raise ValueError(f"{value!r} is not a time")
    return value
