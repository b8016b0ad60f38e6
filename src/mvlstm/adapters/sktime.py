"""Forecasters of the package as sktime forecasters: pipelines, tuning and `evaluate` take them.

Install with ``pip install mvlstm[sktime]``.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

try:
    from sktime.forecasting.base import BaseForecaster, ForecastingHorizon
except ImportError as error:
    raise ImportError("This adapter needs sktime: pip install mvlstm[sktime].") from error

from mvlstm._words import counted, name_list, quantile_name
from mvlstm.errors import DataError, MVLSTMWarning, ParameterError
from mvlstm.methods.linear import AR
from mvlstm.methods.mvlstm import MVLSTM
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.updating import FEWEST, new_windows
from mvlstm.results import Forecast
from mvlstm.settings import MVLSTMSettings, declared

__all__ = ["MVLSTMForecaster", "ModelForecaster"]

FRAMES = ["pd.DataFrame", "pd-multiindex", "pd_multiindex_hier"]
LEAST_VALID = 2  # validation rows for each step ahead
SHORT = (
    "The history is short: window and horizon={horizon} need {least} rows, and so the first row "
    "was repeated before it. Shorten window=... or fh, or supply more history."
)
Past = str | Sequence[str] | None


class _Adapter(BaseForecaster):  # type: ignore[misc]
    """What sktime asks of a forecaster, by one of ours.

    The horizon is the furthest step of ``fh``, and the window no shorter where X is known ahead.
    The rows seen so far are kept, since forecasts are made from the last of them. Forecasts within
    the sample are those one step ahead; the first rows, which have no full window before them, have
    none.
    """

    _tags = {  # noqa: RUF012
        "authors": ["The mvlstm developers"],
        "maintainers": ["The mvlstm developers"],
        "y_inner_mtype": FRAMES,
        "X_inner_mtype": FRAMES,
        "requires-fh-in-fit": True,
        "capability:exogenous": True,
        "capability:insample": True,
        "capability:pred_int": True,
        "capability:pred_int:insample": True,
        "capability:missing_values": True,
        "capability:update": True,
        "capability:categorical_in_X": True,
        "capability:multivariate": False,
    }
    _config = {"remember_data": False}  # noqa: RUF012  # what is needed is kept here
    _y = None  # of sktime's own memory, which a user may switch on again
    _X = None

    past: Past
    valid: float
    model_: AbstractForecaster

    def _new_model(self) -> AbstractForecaster:
        """Return an unfitted forecaster with these settings."""
        raise NotImplementedError

    # ------------------------------------------------------------------------- what sktime calls

    def _fit(self, y: pd.DataFrame, X: pd.DataFrame | None, fh: Any) -> _Adapter:
        X = None if X is None else X.reindex(y.index)
        self._exogenous = [] if X is None else [str(name) for name in X.columns]
        self._known = _known_ahead(self._exogenous, self.past)
        steps, model = self._steps(_regular(fh, y.index)), self._new_model()
        horizon = max(1, int(steps.max()))
        window = horizon if model.window == "auto" else model.window
        if self._known:  # its windows end at the last step ahead, and must reach back to the first
            window = max(window, horizon)
        if model.window != "auto":
            model.set_params(window=window)
        least = window + (1 + LEAST_VALID) * horizon
        self._seen_y: pd.DataFrame = _lengthened(y, least)
        self._seen_X = None if X is None else _lengthened(X, least)
        table, columns = self._table()
        times = self._seen_y.index.get_level_values(-1).nunique()
        asked = self.valid * times if self.valid < 1 else self.valid
        valid = max(int(asked), LEAST_VALID * horizon)
        self.model_ = model.set_params(horizon=horizon)
        self.model_.fit(table, **columns, known=self._known, valid=valid)
        if times > y.index.get_level_values(-1).nunique():
            warnings.warn(SHORT.format(least=least, horizon=horizon), MVLSTMWarning, stacklevel=4)
        return self

    def _update(
        self, y: pd.DataFrame, X: pd.DataFrame | None = None, update_params: bool = True
    ) -> _Adapter:
        if X is not None and self._seen_X is not None:
            self._seen_X = _appended(self._seen_X, X.reindex(y.index))
        self._seen_y = _appended(self._seen_y, y)
        if self._seen_X is not None:
            self._seen_X = self._seen_X.reindex(self._seen_y.index)
        if update_params:
            table, _ = self._table()
            if new_windows(self.model_.fitted_, table) >= FEWEST:
                self.model_.update(table)
        return self

    def _predict(self, fh: Any, X: pd.DataFrame | None) -> pd.DataFrame:
        found = self._forecast(fh, X, ())
        return found[["mean"]].set_axis(self._seen_y.columns, axis=1)

    def _predict_quantiles(
        self, fh: Any, X: pd.DataFrame | None, alpha: Sequence[float]
    ) -> pd.DataFrame:
        found = self._forecast(fh, X, tuple(alpha))[[quantile_name(q) for q in alpha]]
        names = [self._get_varnames(), alpha]
        return found.set_axis(pd.MultiIndex.from_product(names), axis=1)

    def _predict_var(
        self, fh: Any = None, X: pd.DataFrame | None = None, cov: bool = False
    ) -> pd.DataFrame:
        if cov:
            raise NotImplementedError(
                "Covariances between steps are not available; predict_var(cov=False) is. "
                "model_.forecast(table).draw() has joint paths."
            )
        return self._forecast(fh, X, ())[["variance"]].set_axis(self._get_varnames(), axis=1)

    def explain(self, **settings: Any) -> Any:
        """Say which variables matter, measured on the rows seen so far.

        Parameters
        ----------
        **settings
            Those of `mvlstm.MVLSTM.explain`, such as ``effort="quick"``.
        """
        self.check_is_fitted()
        return self.model_.explain(self._table()[0], **settings)

    # -------------------------------------------------------------------------------- forecasting

    def _forecast(self, fh: Any, X: pd.DataFrame | None, levels: tuple[float, ...]) -> pd.DataFrame:
        """Return mean, variance and quantiles at every time of the horizon, in sktime's index."""
        fh = _regular(fh, self._seen_y.index)
        steps = self._steps(fh)
        most = int(steps.max())
        parts = []
        if most > 0:
            if most > self.model_.horizon:
                raise ParameterError(
                    f"fh reaches {counted(most, 'step')} past the last row, but fit() had fh for "
                    f"{self.model_.horizon}. Fit with a longer fh."
                )
            ahead = self.model_.forecast(self._with_future(X, fh, steps))
            parts.append(_by_step(ahead, levels))
        if steps.min() <= 0:
            table, _ = self._table()
            parts.append(self._within_sample(self.model_.predict(table), levels))
        found = pd.concat(parts)
        keys = pd.MultiIndex.from_product([self._labels(), steps], names=["series", "step"])
        return found.reindex(keys).set_index(fh.get_expected_pred_idx(self._seen_y))

    def _within_sample(self, forecast: Forecast, levels: tuple[float, ...]) -> pd.DataFrame:
        """Take the forecast of every row from the latest origin, by its steps before the end."""
        rows = _rows_of(forecast, levels).sort_values("step", kind="stable")
        rows = rows.drop_duplicates(["series", "time"])
        table, _ = self._table()
        times = _as_times(self._seen_y.index.get_level_values(-1))
        own = pd.Series("", index=table.index) if self._seen_y.index.nlevels == 1 else table.series
        back = own.groupby(own.to_numpy()).cumcount(ascending=False)
        place = pd.Series(
            -back.to_numpy(), index=pd.MultiIndex.from_arrays([own.to_numpy(), times])
        )
        keys = pd.MultiIndex.from_arrays([rows["series"], rows["time"]])
        rows = rows.assign(step=place.reindex(keys).to_numpy())
        return rows.set_index(["series", "step"])

    def _steps(self, fh: Any) -> np.ndarray[Any, Any]:
        """Return the horizon as whole steps from the last row."""
        return np.asarray(fh.to_relative(self.cutoff).to_pandas(), dtype=np.int64)

    # ------------------------------------------------------------------------------------- tables

    def _labels(self) -> list[str]:
        """Return the series in the order in which sktime has them; "" if there is one only."""
        index = self._seen_y.index
        return [""] if index.nlevels == 1 else list(dict.fromkeys(_series_names(index)))

    def _table(self) -> tuple[pd.DataFrame, dict[str, Any]]:
        """Return the rows seen so far as one table, and what its columns are."""
        return _joined(self._seen_y, self._seen_X, self._exogenous)

    def _with_future(
        self, X: pd.DataFrame | None, fh: Any, steps: np.ndarray[Any, Any]
    ) -> pd.DataFrame:
        """Return the table with rows that hold what is known ahead.

        Steps that are not asked for have the values of those before them, where X has none.
        """
        table, _ = self._table()
        if not self._known:
            return table
        lacking = self._known
        if X is not None:
            lacking = [name for name in self._known if name not in map(str, X.columns)]
        if X is None or lacking:
            raise DataError(
                f"predict() needs X with {name_list(lacking)} at the times forecast. Pass them, or "
                "name in past=[...] what is only known up to the last row ('all' if none is)."
            )
        whole = np.arange(1, steps.max() + 1)
        every = ForecastingHorizon(whole, is_relative=True, freq=fh.freq)
        ahead = every.get_expected_pred_idx(self._seen_y)
        known = X.set_axis([str(name) for name in X.columns], axis=1)[self._known].reindex(ahead)
        asked = np.tile(np.isin(whole, steps), len(ahead) // len(whole))
        empty = known.isna()[asked]
        if empty.any(axis=None):
            time, row = next((time, row) for time, row in empty.iterrows() if row.any())
            raise DataError(
                f"X has no values of {name_list(list(row[row].index))} at {time}, a time forecast. "
                "Give X for every time of fh."
            )
        if known.index.nlevels == 1:
            known = known.ffill().bfill()
        else:
            groups = list(range(known.index.nlevels - 1))
            known = known.groupby(level=groups, group_keys=False).apply(lambda x: x.ffill().bfill())
        later = pd.DataFrame(np.nan, index=known.index, columns=self._seen_y.columns)
        future, _ = _joined(later, known.reindex(columns=self._exogenous), self._exogenous)
        both = pd.concat([table, future])
        return both if self._seen_y.index.nlevels == 1 else both.reset_index(drop=True)


def _regular(fh: Any, index: pd.Index[Any]) -> Any:
    """Return a horizon with the frequency of the rows, which sktime finds in one series only."""
    times = index.get_level_values(-1).unique()
    if fh.freq is not None or not isinstance(times, pd.DatetimeIndex) or len(times) < 3:
        return fh
    freq = pd.infer_freq(times.sort_values())
    return ForecastingHorizon(fh.to_pandas(), is_relative=fh.is_relative, freq=freq)


def _known_ahead(names: list[str], past: Past) -> list[str]:
    """Return the exogenous variables that are known up to the time forecast: sktime's default."""
    if past == "all":
        return []
    given = [past] if isinstance(past, str) else list(past or ())
    wrong = [name for name in given if name not in names]
    if wrong and names:
        raise DataError(
            f"past={past!r} names '{wrong[0]}', but the columns of X are {name_list(names)}. "
            "Correct past=..., or leave it out."
        )
    return [name for name in names if name not in given]


def _lengthened(frame: pd.DataFrame, least: int) -> pd.DataFrame:
    """Repeat the first row before the first, in each series, where there are too few times."""
    if (lacking := least - frame.index.get_level_values(-1).nunique()) <= 0:
        return frame
    if frame.index.nlevels == 1:
        return pd.concat([_before(frame, lacking), frame])
    levels = list(range(frame.index.nlevels - 1))
    parts = [
        pd.concat([_before(one, lacking), one]) for _, one in frame.groupby(level=levels, sort=True)
    ]
    return pd.concat(parts)


def _before(frame: pd.DataFrame, rows: int) -> pd.DataFrame:
    """Return the first row of a series at as many times before it."""
    times = frame.index.get_level_values(-1)
    if isinstance(times, pd.DatetimeIndex):
        step: Any = times.freq or pd.infer_freq(times) or times[1] - times[0]
        earlier: Any = pd.date_range(end=times[0], periods=rows + 1, freq=step)[:-1]
    else:
        step = 1 if isinstance(times, pd.PeriodIndex) else times[1] - times[0]
        earlier = [times[0] - step * k for k in range(rows, 0, -1)]
    first = frame.iloc[[0] * rows]
    if frame.index.nlevels == 1:
        return first.set_axis(pd.Index(earlier, name=frame.index.name))
    keys = [(*key[:-1], time) for key, time in zip(first.index, earlier, strict=True)]
    return first.set_axis(pd.MultiIndex.from_tuples(keys, names=frame.index.names))


def _joined(
    y: pd.DataFrame, X: pd.DataFrame | None, exogenous: list[str]
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Put y and X into one table; return it and the arguments of ``fit`` that say what is where."""
    taken = set(exogenous)
    name = y.columns[0]
    target = _free(str(name) if isinstance(name, str) else "y", taken)
    table = pd.DataFrame({target: y.iloc[:, 0].to_numpy(dtype=np.float64)})
    if X is not None:
        table = pd.concat([X.set_axis(exogenous, axis=1).reset_index(drop=True), table], axis=1)
    times = _as_times(y.index.get_level_values(-1))
    if y.index.nlevels == 1:
        return table.set_axis(times.rename(None)), {"target": target}
    series, time = "series", "time"
    if {series, time} & {*taken, target}:
        raise DataError("Columns of a panel may not be named 'series' or 'time'. Rename them.")
    table[series], table[time] = _series_names(y.index), times
    return table, {"target": target, "series": series, "time": time}


def _free(name: str, taken: set[str]) -> str:
    """Return a name that no other column has."""
    return name if name not in taken else _free(f"{name}_", taken)


def _as_times(times: pd.Index[Any]) -> pd.Index[Any]:
    """Return periods as their first moments, all else as it is."""
    return times.to_timestamp() if isinstance(times, pd.PeriodIndex) else pd.Index(times)


def _series_names(index: pd.Index[Any]) -> list[str]:
    """Return one name for the series of each row; levels of a hierarchy are put together."""
    levels = [index.get_level_values(k) for k in range(index.nlevels - 1)]
    return [" / ".join(map(str, key)) for key in zip(*levels, strict=True)]


def _appended(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Put new rows after old ones, of each series; of a time given twice the new row counts."""
    both = pd.concat([old.loc[~old.index.isin(new.index)], new])
    if isinstance(old.index, pd.MultiIndex):
        both.index = both.index.set_names(old.index.names)
    return both.sort_index()


def _rows_of(forecast: Forecast, levels: tuple[float, ...]) -> pd.DataFrame:
    """Return what sktime asks for of a forecast, one row per origin and step."""
    rows = forecast.to_pandas(levels).assign(variance=forecast.variance.to_numpy())
    return rows if "series" in rows else rows.assign(series="")


def _by_step(forecast: Forecast, levels: tuple[float, ...]) -> pd.DataFrame:
    return _rows_of(forecast, levels).set_index(["series", "step"])


class ModelForecaster(_Adapter):
    """Any forecaster of the package as an sktime forecaster.

    Parameters
    ----------
    model : forecaster of mvlstm
        With its settings, such as ``mvlstm.GBT(window=24)``; ``horizon`` is set by ``fh``. Its
        settings can be tuned: ``model__window``.
    past : str or sequence of str, optional
        Columns of X that are known up to the last row only ("all": every column). The others must
        be given to ``predict`` for the times forecast, as sktime has it.
    valid : float
        Share of the rows, or their number, that stops training and calibrates intervals; at least
        twice the furthest step.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from mvlstm import AR
    >>> from mvlstm.adapters.sktime import ModelForecaster
    >>> y = pd.Series(np.arange(40.0) % 4)
    >>> forecaster = ModelForecaster(AR(window=4, verbose=0))
    >>> [int(round(value)) for value in forecaster.fit(y, fh=[1, 2]).predict()]
    [0, 1]
    """

    def __init__(self, model: Any, past: Past = None, valid: float = 0.1) -> None:
        self.model = model
        self.past = past
        self.valid = valid
        super().__init__()

    def _new_model(self) -> AbstractForecaster:
        if not isinstance(self.model, AbstractForecaster):
            raise ParameterError(
                f"model={self.model!r} is not a forecaster of mvlstm. Pass one with its settings, "
                "such as mvlstm.AR(window=24)."
            )
        copied: AbstractForecaster = clone(self.model)
        return copied

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return settings that sktime's tests use."""
        small: dict[str, Any] = {"window": 2, "verbose": 0, "missing": "fill"}
        return [
            {"model": AR(**small)},
            {"model": AR(calibration="static", **small), "past": "all", "valid": 0.2},
        ]


class MVLSTMForecaster(_Adapter):
    """The multi-variable LSTM as an sktime forecaster.

    Its arguments are those of `mvlstm.MVLSTM`, but for ``horizon``, which ``fh`` sets, and two
    more.

    Parameters
    ----------
    past : str or sequence of str, optional
        Columns of X that are known up to the last row only ("all": every column). The others must
        be given to ``predict`` for the times forecast, as sktime has it.
    valid : float
        Share of the rows, or their number, that stops training and calibrates intervals; at least
        twice the furthest step.
    **settings
        Those of `mvlstm.MVLSTM`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from mvlstm.adapters.sktime import MVLSTMForecaster
    >>> y = pd.Series(np.sin(np.arange(60.0)))
    >>> forecaster = MVLSTMForecaster(window=6, members=1, max_epochs=1)
    >>> len(forecaster.fit(y, fh=[1, 2]).predict_interval(coverage=0.9))
    2
    """

    def __init__(self, **settings: Any) -> None:
        unknown = sorted(set(settings) - set(_PARAMETERS))
        if unknown:
            raise TypeError(f"MVLSTMForecaster has no argument {unknown[0]!r}.")
        for name, default in _PARAMETERS.items():
            setattr(self, name, settings.get(name, default))
        super().__init__()

    def _new_model(self) -> AbstractForecaster:
        own = {name: getattr(self, name) for name in _PARAMETERS if name not in _OWN}
        return MVLSTM(**own)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Return settings that sktime's tests use."""
        small = {"window": 2, "hidden_size": 2, "members": 1, "max_epochs": 1, "link": "none"}
        return [small, {**small, "past": "all", "cell": "gru", "missing": "fill"}]


_OWN: dict[str, Any] = {"past": None, "valid": 0.1}
_PARAMETERS: dict[str, Any] = {
    **{one.name: one.default for one in declared(MVLSTMSettings) if one.name != "horizon"},
    **{"verbose": 0, **_OWN},
}
_KINDS = inspect.Parameter
MVLSTMForecaster.__init__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        _KINDS("self", _KINDS.POSITIONAL_OR_KEYWORD),
        *(_KINDS(name, _KINDS.KEYWORD_ONLY, default=value) for name, value in _PARAMETERS.items()),
    ]
)
