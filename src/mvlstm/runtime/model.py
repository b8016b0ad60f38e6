"""`Runtime`: an exported model that forecasts from tables."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvlstm._words import name_list, quantile_name
from mvlstm.errors import (
    DataError,
    MissingExtraError,
    ModelFileError,
    ParameterError,
    check_whole,
    reachable,
)
from mvlstm.recalibration import Arrivals, recalibrate, static_scores
from mvlstm.runtime.columns import Columns, as_columns
from mvlstm.runtime.mixture import STANDARD, scores, to_scale, to_units, values_at
from mvlstm.runtime.rows import Series, Wanted, clean, read_rows, short_of_rows
from mvlstm.runtime.times import Clock, Times
from mvlstm.types import BoolArray, FloatArray, IntArray

FORMAT, SCHEMA = "mvlstm.forecast", 1
RECENT, FEWEST = 1_000, 100  # forecasts that those of the last rows look back on; of a series
BATCH = 256  # windows that the graph takes at once
POLICIES = {"missing": ("error", "drop", "fill", "mask"), "gaps": ("error", "close", "respect")}
PLAIN = {  # of a layout, what is understood here
    *("target", "time", "variables", "exclude", "missing", "fill_limit", "gaps", "step"),
    *("time_kind", "time_zone", "day_first", "levels", "known", "calendar", "series"),
    *("index_name", "numbered", "typical"),
}
Arrays = dict[str, NDArray[Any]]


def load(path: str | os.PathLike[str], *, threads: int = 1) -> Runtime:
    """Read a file that ``model.export`` wrote.

    Parameters
    ----------
    path : str or path
    threads : int
        Of each forecast.
    """
    check_whole("threads", threads, 1)
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError(
            "Running an exported model needs onnxruntime: pip install onnxruntime."
        ) from error
    file = reachable(path, ModelFileError)
    if not file.is_file():
        raise ModelFileError(f"'{file}' does not exist. Check the path.")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 4
    try:
        session = onnxruntime.InferenceSession(
            file.read_bytes(), options, providers=["CPUExecutionProvider"]
        )
        told = json.loads(session.get_modelmeta().custom_metadata_map[FORMAT])
    except Exception as error:  # onnxruntime has many of its own, without a common base
        raise ModelFileError(
            f"'{file}' is not a model exported by mvlstm ({type(error).__name__}). Write one with: "
            "mvlstm export MODEL --out model.onnx"
        ) from error
    return Runtime(session, _understood(told, str(file)))


def _understood(told: dict[str, Any], file: str) -> dict[str, Any]:
    """Return the description, if this version can do all that it asks for."""
    if told.get("schema") != SCHEMA:
        raise ModelFileError(
            f"'{file}' has schema {told.get('schema')!r}; this version of mvlstm reads schema "
            f"{SCHEMA}. Export the model again."
        )
    layout = told["layout"]
    asked = {name: layout[name] for name, able in POLICIES.items() if layout[name] not in able}
    others = {name: value for name, value in layout.items() if name not in PLAIN}
    asked |= {n: v for n, v in others.items() if v not in (None, [], {}, "error", "none", False)}
    if asked:
        said = ", ".join(f"{name}={value!r}" for name, value in asked.items())
        raise ModelFileError(
            f"'{file}' was fitted with {said}, which needs mvlstm itself to read a table. Use "
            "mvlstm.load on the model's own file."
        )
    return told


@dataclass(frozen=True, eq=False)
class Runtime:
    """An exported model.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
    told : dict
        The description in the file: see the documentation of the format.
    """

    session: Any
    told: dict[str, Any]

    @property
    def wanted(self) -> Wanted:
        """Columns and clock of its tables."""
        return Wanted(self.told["layout"], Clock.of(self.told["layout"]))

    def forecast(self, table: Any, *, future: Any = None, steps: int | None = None) -> Any:
        """Forecast the steps after the last row, as `forecast` of the fitted model does.

        Parameters
        ----------
        table : mapping of columns, list of rows, path of a CSV file or data frame
            The most recent rows. Where variables are known ahead, rows at its end without a
            target hold their next values.
        future : the same, optional
            These rows by themselves.
        steps : int, optional
            How many, by default all that were learned.

        Returns
        -------
        dict of arrays, or DataFrame if the table is one of pandas
            One entry per step: ``origin, step, time, mean, median, q05, q95, part``, with
            ``series`` first where there are several.
        """
        columns = as_columns(table)
        ahead = None if future is None else as_columns(future)
        frame, _ = self.told_forecast(columns, ahead, steps)
        return _as_pandas(frame, self.wanted.clock) if columns.is_frame else frame

    def told_forecast(
        self, columns: Columns, future: Columns | None = None, steps: int | None = None
    ) -> tuple[Arrays, list[str]]:
        """Forecast from columns; return the entries and what should be known about them."""
        horizon = self.told["horizon"]
        steps = horizon if steps is None else steps
        check_whole("steps", steps, 1)
        if steps > horizon:
            raise ParameterError(
                f"steps={steps} is more than the {horizon} that the model learned to forecast. Ask "
                f"for fewer, or fit with horizon={steps}."
            )
        series, warnings = self._read(columns, future)
        made = self._made(series)
        if not all(np.isfinite(one).all() for one in made.values()):
            raise DataError(
                "A forecast would not be finite: the model's weights are too large for this table. "
                "Look for extreme values in it, or fit the model anew."
            )
        return self._frame(series, made, steps), warnings

    # ----------------------------------------------------------------------------------- reading

    def _read(self, columns: Columns, future: Columns | None) -> tuple[list[Series], list[str]]:
        """Return the series that can be forecast, and what to say of others."""
        wanted, told = self.wanted, self.told
        if future is not None and not wanted.layout["known"]:
            raise ParameterError(
                "future=... holds variables known ahead, and this model has none. Leave it out, or "
                "fit with known=[...]."
            )
        rows = read_rows(columns, wanted)
        later = {} if future is None else {one.name: one for one in self._future(future, wanted)}
        found, faults = [], {}
        for one in rows:
            series = clean(one, wanted, later.get(one.name))
            fault = self._fault(series, one.name)
            if series is not None and fault is None:
                found.append(series)
            else:
                faults[one.name] = fault
        if not found:
            raise DataError(next(iter(faults.values())) or "The table has no rows.")
        left = [f"Series '{name}' is left out: {fault}" for name, fault in faults.items()]
        return found, [*left, *_unseen(found, wanted, told["window"])]

    def _future(self, future: Columns, wanted: Wanted) -> Any:
        return read_rows(future, wanted, ahead=True)

    def _fault(self, series: Series | None, name: str | None) -> str | None:
        """Say why a series cannot be forecast, if so."""
        told, layout, clock = self.told, self.wanted.layout, self.wanted.clock
        if series is None:
            return f"Target '{layout['target']}' has no value at all. Correct the table."
        seen = told["inputs"].get("series", {}).get("names")
        if seen is not None and name not in seen:
            return (
                f"Series '{name}' was not among those of the fit, {name_list(seen)}: an exported "
                "model forecasts these alone. Use mvlstm.load on the model's own file."
            )
        last = series.count - 1
        given = len(series.rows.times) - series.count
        if layout["known"] and given < told["ahead"]:
            origin = series.rows.times[[last]]
            steps = "1 step" if told["ahead"] == 1 else f"{told['ahead']} steps"
            every = " Fewer steps read them all too." if told["ahead"] > 1 else ""
            return (
                f"forecast() needs {name_list(layout['known'])}, known ahead, for the "
                f"{steps} after {clock.text(origin[0])}; of step {given + 1}, "
                f"{clock.text(clock.after(origin, given + 1)[0])}, the row is missing or has an "
                f"empty value.{every} Add the rows to the end of the table with the target left "
                "empty, or pass them with future=...."
            )
        if not self._origins(series)[last]:
            return short_of_rows(series, told["window"], told["horizon"], told["lead"])
        return self._far(series)

    def _far(self, series: Series) -> str | None:
        """Say which value is too far from the training rows to compute with, if one is."""
        numeric, values = self.wanted.numeric, series.rows.numbers[: series.count]
        for place, name in enumerate(numeric):
            low, high = self.told["limits"].get(name, (-np.inf, np.inf))
            far = (values[:, place] < low) | (values[:, place] > high)
            if far.any():
                row = int(far.argmax())
                return (
                    f"Column '{name}' is {values[row, place]:g} at "
                    f"{series.rows.where(row, self.wanted.clock)}, too far from the training rows "
                    "to compute with. Correct the table, or leave out such rows."
                )
        return None

    def _origins(self, series: Series) -> BoolArray:
        """Say which rows of the past end a whole window."""
        rows = self.told["window"] + self.told["lead"]
        found = np.zeros(series.count, dtype=bool)
        first = series.segments[: max(0, series.count - rows + 1)]
        found[rows - 1 :] = first == series.segments[rows - 1 :]
        return found

    # ------------------------------------------------------------------------------- forecasting

    def _made(self, series: list[Series]) -> Arrays:
        """Return mean (M, H) and quantiles (M, H, Q) after the last row of every series."""
        last = [np.array([one.count - 1]) for one in series]
        if self.told["calibration"] != "adaptive":
            return self._run(series, last, ["mean", "quantiles"])
        recent = [self._recent(one, len(series)) for one in series]
        if not any(len(rows) for rows in recent):
            return self._run(series, last, ["mean", "quantiles"])
        every = [np.concatenate(each) for each in zip(recent, last, strict=True)]
        found = self._run(series, every, ["mean", "weights", "means", "variances"])
        return self._adapted(series, every, found) or self._run(series, last, ["mean", "quantiles"])

    def _recent(self, series: Series, several: int) -> IntArray:
        """Return the latest rows of a series whose steps came after the fit's."""
        told, clock = self.told, self.wanted.clock
        near = max(FEWEST, RECENT // several)
        rows = np.flatnonzero(self._origins(series)[:-1])
        rows = rows[(rows >= series.count - 1 - near)]
        rows = rows[series.segments[rows] == series.segments[rows + 1]]
        if told["ahead"] and self.wanted.layout["known"]:
            rows = rows[self._last(series)[rows] >= rows + told["ahead"]]
        if not len(rows):
            return np.asarray(rows)
        fitted = _moment(told["parts"]["calibration"], clock)
        return np.asarray(rows[(self._ahead(series, rows) > fitted).all(axis=1)])

    def _last(self, series: Series) -> IntArray:
        """Return the last row that follows each of the past without a gap."""
        ends = np.flatnonzero(np.append(np.diff(series.segments) != 0, True))
        last = np.repeat(ends, np.diff(np.concatenate([[-1], ends])))
        return np.where(last == series.count - 1, len(series.rows.times) - 1, last)

    def _ahead(self, series: Series, rows: IntArray) -> Times:
        """Return the times of the steps ahead of rows, (M, H)."""
        clock, times, last = self.wanted.clock, series.rows.times, self._last(series)[rows]
        found = []
        for step in range(1, self.told["horizon"] + 1):
            place = np.minimum(rows + step, last)
            moved, beyond = times[place], rows + step - place
            for count in np.unique(beyond[beyond > 0]):
                moved[beyond == count] = clock.after(moved[beyond == count], int(count))
            found.append(moved)
        return np.stack(found, axis=1)

    def _adapted(self, series: list[Series], rows: list[IntArray], found: Arrays) -> Arrays | None:
        """Return forecasts of the last rows whose quantiles follow the outcomes since the fit."""
        told, H = self.told, self.told["horizon"]
        w, mu, v = (found[name] for name in ("weights", "means", "variances"))
        times = np.concatenate([self._ahead(*each) for each in zip(series, rows, strict=True)])
        actual = np.concatenate([self._outcomes(*each) for each in zip(series, rows, strict=True)])
        actual[~np.isfinite(found["mean"]).all(axis=1)] = np.nan
        outcomes = np.isfinite(actual)
        if not outcomes.any():
            return None
        scored = np.full(actual.shape, np.nan)
        at = to_scale(told["transform"], actual[outcomes])
        scored[outcomes] = scores(w[outcomes], mu[outcomes], v[outcomes], at)
        starts = np.cumsum([0, *map(len, rows)])
        origins = np.concatenate([s.rows.times[r] for s, r in zip(series, rows, strict=True)])
        known = np.empty((len(times), H), dtype=np.int64)
        for a, b in pairwise(starts):
            for h in range(H):
                known[a:b, h] = times[a:b, h].searchsorted(origins[a:b], side="right")
        numbered = np.unique(origins, return_inverse=True)[1]
        shape = None if told["shape"] is None else np.array(told["shape"])
        maps = recalibrate(scored, Arrivals(starts, numbered, known), shape)
        knots = maps[starts[1:] - 1].values
        w, mu, v = (part[starts[1:] - 1].reshape(-1, w.shape[2]) for part in (w, mu, v))
        quantiles = [
            values_at(w, mu, v, static_scores(knots, score).reshape(-1)).reshape(-1, H)
            for score in map(STANDARD.inv_cdf, told["quantiles"])
        ]
        values = to_units(told["transform"], np.stack(quantiles, axis=-1))
        return {"mean": found["mean"][starts[1:] - 1], "quantiles": values}

    def _outcomes(self, series: Series, rows: IntArray) -> FloatArray:
        """Return the targets measured after rows (M, H), NaN where there is none."""
        target = np.where(series.measured, series.rows.numbers[: series.count, -1], np.nan)
        place = rows[:, None] + np.arange(1, self.told["horizon"] + 1)
        inside = np.minimum(place, series.count - 1)
        same = series.segments[inside] == series.segments[rows, None]
        return np.where((place < series.count) & same, target[inside], np.nan)

    # --------------------------------------------------------------------------------- the graph

    def _run(self, series: list[Series], rows: list[IntArray], outputs: list[str]) -> Arrays:
        """Run the graph for windows that end at rows of series, in batches."""
        import onnxruntime

        options = onnxruntime.RunOptions()
        options.only_execute_path_to_fetches = True
        found: list[list[Any]] = []
        for one, own in zip(series, rows, strict=True):
            for start in range(0, len(own), BATCH):
                feeds = self._feeds(one, own[start : start + BATCH])
                found.append(self.session.run(outputs, feeds, options))
        joined = (np.concatenate(each) for each in zip(*found, strict=True))
        return dict(zip(outputs, joined, strict=True))

    def _feeds(self, series: Series, rows: IntArray) -> Arrays:
        """Return the graph's inputs for windows that end at rows."""
        told, clock, table = self.told, self.wanted.clock, series.rows
        length = told["window"] + told["lead"]
        past = rows[:, None] + np.arange(1 - length, 1)
        later = rows[:, None] + np.arange(1, told["horizon"] + 1)
        numeric, words = self.wanted.known
        makers: dict[str, Callable[[], Any]] = {
            "past": lambda: table.numbers[past],
            "past_missing": lambda: series.marks[past],
            "past_categories": lambda: table.texts[past],
            "past_time": lambda: clock.seconds(table.times[past].reshape(-1)).reshape(past.shape),
            "known_missing": lambda: series.marks[later][:, :, self.wanted.masked[1]],
            "known": lambda: table.numbers[later][:, :, numeric],
            "known_categories": lambda: table.texts[later][:, :, words],
            "known_time": lambda: clock.seconds(self._ahead(series, rows).reshape(-1)).reshape(
                later.shape
            ),
            "series": lambda: np.full(len(rows), table.name, dtype=object),
        }
        return {name: makers[name]() for name in told["inputs"]}

    # --------------------------------------------------------------------------------- the answer

    def _frame(self, series: list[Series], made: Arrays, steps: int) -> Arrays:
        """Lay out forecasts (M, H) as columns of one entry per step."""
        clock, M = self.wanted.clock, len(series)
        last = [np.array([one.count - 1]) for one in series]
        origins = np.concatenate([s.rows.times[r] for s, r in zip(series, last, strict=True)])
        ahead = np.concatenate([self._ahead(s, r) for s, r in zip(series, last, strict=True)])
        columns: Arrays = {}
        if self.wanted.layout["series"] is not None:
            names = np.array([one.rows.name for one in series], dtype=object)
            columns["series"] = names.repeat(steps)
        columns["origin"] = clock.shown(origins).repeat(steps)
        columns["step"] = np.tile(np.arange(1, steps + 1), M)
        columns["time"] = clock.shown(ahead[:, :steps].reshape(-1))
        columns["mean"] = made["mean"][:, :steps].reshape(-1)
        levels = {
            level: made["quantiles"][:, :steps, place].reshape(-1)
            for place, level in enumerate(self.told["quantiles"])
        }
        columns["median"] = levels.pop(0.5)
        columns |= {quantile_name(level): values for level, values in levels.items()}
        columns["part"] = np.full(M * steps, "new", dtype=object)
        return columns


def _moment(value: Any, clock: Clock) -> Any:
    """Read a time of a fit's parts."""
    from datetime import UTC, datetime

    if not isinstance(value, Mapping):
        return int(value)
    found = datetime.fromisoformat(value["time"])
    found = found if clock.zone is None else found.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(found, "us")


def _unseen(series: Sequence[Series], wanted: Wanted, window: int) -> list[str]:
    """Say which levels of categories occur that training did not have."""
    said = []
    for place, (name, levels) in enumerate(wanted.layout["levels"].items()):
        found = [one.rows.texts[max(0, one.count - window) :, place] for one in series]
        others = [level for own in found for level in own if level not in (None, *levels)]
        if others:
            count = "1 row" if len(others) == 1 else f"{len(others):,} rows"
            said.append(
                f"Column '{name}' has {count} with levels that training did not have, "
                f"{name_list(sorted(set(others)))}; they count as none of its levels."
            )
    return said


def _as_pandas(frame: Arrays, clock: Clock) -> Any:
    import pandas as pd

    table = pd.DataFrame(frame)
    for name in ("origin", "time") if clock.zone is not None else ():
        table[name] = pd.to_datetime(frame[name], utc=True).tz_convert(str(clock.zone))
    return table
