"""What comes back from a forecaster: frozen dataclasses with times and names attached.

Every result turns into a tidy table with ``to_frame()`` and into plain JSON values with
``to_dict()``. Nothing here knows a model; plots, reports and the command line read only these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm import metrics
from mvlstm.errors import DataError, ParameterError, check_option

__all__ = ["Evaluation", "Explanation", "Forecast", "History"]

FloatArray = NDArray[np.float64]

PARTS = ("train", "validation", "new")
VERDICTS = ("important", "weak", "not distinguishable from noise")
IMPORTANCE_COLUMNS = (
    "variable",
    "importance",
    "low",
    "high",
    "posterior",
    "prior",
    "error_increase",
    "error_increase_low",
    "error_increase_high",
    "verdict",
)


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """Forecasts of M origins, H steps ahead each, as predictive mixtures of J normals.

    Parameters
    ----------
    origin : pandas.Index of length M
        Last time known to each forecast.
    time : array (M, H)
        Times forecast.
    target : str
        Name of what is forecast.
    weights, means, variances : array (M, H, J)
        The calibrated predictive distribution, in units of the target.
    members : array (K, M, H)
        Point forecast of every member; their mean is the forecast's mean.
    part : array of str (M, H)
        ``"train"``, ``"validation"`` or ``"new"``: whether the model had seen the value.
    actual : array (M, H)
        What happened, NaN where unknown.
    notes : tuple of str
        Plain sentences on how the forecast came about.
    """

    origin: pd.Index[Any]
    time: NDArray[Any]
    target: str
    weights: FloatArray
    means: FloatArray
    variances: FloatArray
    members: FloatArray
    part: NDArray[np.str_]
    actual: FloatArray
    notes: tuple[str, ...] = ()
    _quantiles: dict[float, FloatArray] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        rows = (len(self.origin), self.time.shape[1] if self.time.ndim == 2 else -1)
        shapes = {
            "time": self.time.shape,
            "weights": self.weights.shape[:2],
            "means": self.means.shape[:2],
            "variances": self.variances.shape[:2],
            "members": self.members.shape[1:],
            "part": self.part.shape,
            "actual": self.actual.shape,
        }
        wrong = {name: shape for name, shape in shapes.items() if shape != rows}
        assert not wrong, f"Forecast of {rows} (origins, steps) got leading shapes {wrong}"

    # ------------------------------------------------------------------------------ values

    @property
    def horizon(self) -> int:
        """Number of steps ahead H."""
        return int(self.time.shape[1])

    @property
    def index(self) -> pd.Index[Any]:
        """Index of every series: the time for one step ahead, else (origin, step)."""
        if self.horizon == 1:
            return _time_index(self.time[:, 0], self.origin)
        steps = pd.RangeIndex(1, self.horizon + 1)
        return pd.MultiIndex.from_product([self.origin, steps], names=["origin", "step"])

    @property
    def mean(self) -> pd.Series[float]:
        """Point forecast: the mean of the members."""
        return self._series(self._mean(), "mean")

    @property
    def median(self) -> pd.Series[float]:
        """Median of the predictive distribution."""
        return self._series(self._quantile(0.5), "median")

    def quantile(self, q: float) -> pd.Series[float]:
        """Quantile ``q`` (between 0 and 1) of the predictive distribution."""
        return self._series(self._quantile(q), quantile_name(q))

    def interval(self, level: float = 0.9) -> tuple[pd.Series[float], pd.Series[float]]:
        """Central interval that should hold the value with probability ``level``."""
        if not 0.0 < level < 1.0:
            raise ParameterError(f"level={level!r} must lie strictly between 0 and 1, such as 0.9.")
        tail = round(0.5 * (1.0 - level), 12)
        low, high = self._quantile(tail), self._quantile(round(1.0 - tail, 12))
        return self._series(low, "low"), self._series(high, "high")

    def crps(self) -> pd.Series[float]:
        """Continuous ranked probability score of every row; NaN where ``actual`` is unknown."""
        scores = metrics.crps_mixture(self.weights, self.means, self.variances, self.actual)
        return self._series(scores, "crps")

    def pit(self) -> pd.Series[float]:
        """Probability the forecast gave to values up to the actual one; uniform if calibrated."""
        values = metrics.pit(self.weights, self.means, self.variances, self.actual)
        return self._series(values, "pit")

    # ------------------------------------------------------------------------------ scores

    def score(self, part: str | None = None) -> dict[str, Any]:
        """Score against the actual values: RMSE of the mean, MAE of the median, CRPS, coverage.

        Parameters
        ----------
        part : {"new", "validation", "train", "all"}, optional
            Rows to score. By default the new ones; if none of them has an actual value, the
            validation rows, and failing those the training rows. ``"part"`` in the answer says
            which were used.

        Returns
        -------
        dict
            ``rmse``, ``mae``, ``crps``, ``coverage`` (of the 90 % interval), ``n``, ``part``.
        """
        known = np.isfinite(self.actual)
        if part is None:
            candidates = [p for p in reversed(PARTS) if (known & (self.part == p)).any()]
            part = candidates[0] if candidates else "all"
        check_option("part", part, (*reversed(PARTS), "all"))
        chosen = known if part == "all" else known & (self.part == part)
        if not chosen.any():
            raise DataError(
                f"No row of part '{part}' has an actual value of '{self.target}' to score against; "
                f"rows with one: {self._part_counts(known) or 'none'}. Supply a table that reaches "
                "further, or choose another part."
            )
        y, mean = self.actual[chosen], self._mean()[chosen]
        mixture = (self.weights[chosen], self.means[chosen], self.variances[chosen])
        low, median, high = (self._quantile_of(q, chosen, mixture) for q in (0.05, 0.5, 0.95))
        return {
            "rmse": metrics.rmse(y, mean),
            "mae": metrics.mae(y, median),
            "crps": float(np.mean(metrics.crps_mixture(*mixture, y))),
            "coverage": metrics.coverage(y, low, high),
            "n": int(y.size),
            "part": part,
        }

    # ------------------------------------------------------------------------------ tables

    def take(self, rows: slice | NDArray[Any]) -> Forecast:
        """Forecast of some origins only, chosen by position or mask."""
        return Forecast(
            origin=self.origin[rows],
            time=self.time[rows],
            target=self.target,
            weights=self.weights[rows],
            means=self.means[rows],
            variances=self.variances[rows],
            members=self.members[:, rows],
            part=self.part[rows],
            actual=self.actual[rows],
            notes=self.notes,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row per origin and step: origin, step, time, mean, median, q05, q95, part[, actual].

        The column ``actual`` is there when at least one actual value is known.
        """
        m, h = self.time.shape
        columns: dict[str, Any] = {
            "origin": self.origin.repeat(h),
            "step": np.tile(np.arange(1, h + 1), m),
            "time": _time_index(self.time.reshape(-1), self.origin),
            "mean": self._mean().reshape(-1),
            "median": self._quantile(0.5).reshape(-1),
            "q05": self._quantile(0.05).reshape(-1),
            "q95": self._quantile(0.95).reshape(-1),
            "part": self.part.reshape(-1).astype(object),
        }
        if np.isfinite(self.actual).any():
            columns["actual"] = self.actual.reshape(-1)
        return pd.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form: target, horizon, members, notes and the rows of `to_frame`."""
        return {
            "target": self.target,
            "horizon": self.horizon,
            "members": int(self.members.shape[0]),
            "notes": list(self.notes),
            "rows": _records(self.to_frame()),
        }

    def __len__(self) -> int:
        return len(self.origin)

    def __repr__(self) -> str:
        steps = f"{self.horizon} step{'s' if self.horizon > 1 else ''}"
        span = ""
        if len(self):
            times = _time_index(self.time.reshape(-1), self.origin)
            span = f", {_plain(times[0])} to {_plain(times[-1])}"
        counts = self._part_counts(np.ones(self.part.shape, dtype=bool))
        parts = f", {counts}" if counts else ""
        return (
            f"Forecast(target={self.target!r}, {len(self)} origins x {steps}{span}, "
            f"{self.members.shape[0]} members{parts})"
        )

    def _repr_html_(self) -> str:
        shown, rows = self, len(self)
        if rows > 10:
            shown = self.take(np.r_[0:5, rows - 5 : rows])
        return f"<p>{_escape(repr(self))}</p>{_html(shown.to_frame())}"

    # ------------------------------------------------------------------------------ inner parts

    def _mean(self) -> FloatArray:
        return np.asarray(self.members.mean(axis=0))

    def _quantile(self, q: float) -> FloatArray:
        if q not in self._quantiles:
            self._quantiles[q] = metrics.mixture_quantile(
                self.weights, self.means, self.variances, q
            )
        return self._quantiles[q]

    def _quantile_of(
        self,
        q: float,
        chosen: NDArray[np.bool_],
        mixture: tuple[FloatArray, FloatArray, FloatArray],
    ) -> FloatArray:
        if q in self._quantiles:
            return np.asarray(self._quantiles[q][chosen])
        return metrics.mixture_quantile(*mixture, q)

    def _series(self, values: FloatArray, name: str) -> pd.Series[float]:
        return pd.Series(values.reshape(-1), index=self.index, name=name)

    def _part_counts(self, where: NDArray[np.bool_]) -> str:
        counts = {p: int((where & (self.part == p)).sum()) for p in PARTS}
        return ", ".join(f"{n} {p}" for p, n in counts.items() if n)


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Which variables matter for the forecast, at which lags, and how sure that is.

    The statement is predictive, not causal: it says what this model's forecasts rest on.

    Parameters
    ----------
    target : str
        Name of what is forecast; its own past is one of the variables.
    importance : DataFrame
        A row a variable, sorted by ``importance``. Columns ``variable, importance, low, high,
        posterior, prior, error_increase, error_increase_low, error_increase_high, verdict``, then
        extras. ``importance`` is the headline (share of the error increase) with its 90 %
        interval, ``posterior`` the paper's importance, ``prior`` the mean prior attention;
        ``error_increase`` is the rise in squared error when the variable is scrambled.
    prior, posterior : DataFrame (origin x variable), optional
        Attention per forecast, mean of the members; index (origin, step) when horizon > 1.
        None for forecasters without attention.
    temporal : DataFrame (variable x lag), optional
        Mean temporal attention; lag 1 is the last time known.
    leakage : DataFrame (variable x variable), optional
        Row n, column k: share of expert n's sensitivity that goes to variable k.
    contribution : DataFrame (origin x variable x lag), optional
        Contributions that add up to the forecast; None unless they were asked for.
    groups : DataFrame, optional
        Error increase of strongly correlated variables exchanged together.
    stability : dict
        Agreement of the ranking between members: ``kendall_tau``, ``top_k``, ``top_k_overlap``.
    summary : DataFrame, optional
        How far the data move the attention, a row a variable: ``shift``, ``kl``, entropies.
    part : str
        Rows the error increases were measured on: ``"new"`` or ``"calibration"``.
    n_windows : int
        Number of windows they were measured on.
    effort : str
        ``"quick"``, ``"default"`` or ``"full"``.
    notes : tuple of str
        What to bear in mind when reading the numbers.
    """

    target: str
    importance: pd.DataFrame
    prior: pd.DataFrame | None = None
    posterior: pd.DataFrame | None = None
    temporal: pd.DataFrame | None = None
    leakage: pd.DataFrame | None = None
    contribution: pd.DataFrame | None = None
    groups: pd.DataFrame | None = None
    stability: Mapping[str, Any] = field(default_factory=dict)
    summary: pd.DataFrame | None = None
    part: str = "new"
    n_windows: int = 0
    effort: str = "default"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns = tuple(self.importance.columns[: len(IMPORTANCE_COLUMNS)])
        assert columns == IMPORTANCE_COLUMNS, f"importance has columns {columns}"

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables in order of importance."""
        return tuple(str(v) for v in self.importance["variable"])

    @property
    def important(self) -> tuple[str, ...]:
        """Variables with the verdict ``important``, most important first."""
        table = self.importance
        return tuple(str(v) for v in table.loc[table["verdict"] == VERDICTS[0], "variable"])

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the importance table."""
        return self.importance.copy()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form: the importance table and every aggregate, not the rows per origin."""
        tables = {
            "groups": self.groups,
            "summary": self.summary,
        }
        matrices = {"temporal": self.temporal, "leakage": self.leakage}
        return {
            "target": self.target,
            "part": self.part,
            "n_windows": self.n_windows,
            "effort": self.effort,
            "importance": _records(self.importance),
            **{name: None if t is None else _records(t) for name, t in tables.items()},
            **{name: None if t is None else _matrix(t) for name, t in matrices.items()},
            "stability": {str(k): _plain(v) for k, v in self.stability.items()},
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        table = self.importance
        lines = [
            f"Explanation(target={self.target!r}, {len(table)} variables, "
            f"{self.n_windows} {self.part} windows, effort={self.effort!r})"
        ]
        width = max((len(str(v)) for v in table["variable"]), default=0)
        for row in table.head(20).itertuples():
            lines.append(
                f"  {row.variable!s:<{width}}  {row.importance:6.3f} "
                f"[{row.low:.3f}, {row.high:.3f}]  {row.verdict}"
            )
        if len(table) > 20:
            lines.append(f"  ... {len(table) - 20} more")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{_escape(note)}</li>" for note in self.notes)
        head = (
            f"<p>Importance for {_escape(self.target)}: {self.n_windows} {_escape(self.part)} "
            f"windows, effort {_escape(self.effort)}</p>"
        )
        return f"{head}{_html(self.importance)}<ul>{notes}</ul>"


@dataclass(frozen=True, eq=False, repr=False)
class History:
    """How training went, for every member and epoch.

    Parameters
    ----------
    train_loss, valid_rmse : array (K, E)
        NaN after a member has stopped.
    best_epoch : array of int (K,)
        Epoch, counted from 1, whose weights were kept.
    seconds : float
        Wall-clock time of the training.
    notes : tuple of str
        Anything worth knowing, such as a run that hit ``max_epochs``.
    """

    train_loss: FloatArray
    valid_rmse: FloatArray
    best_epoch: NDArray[np.int64]
    seconds: float = float("nan")
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert self.train_loss.shape == self.valid_rmse.shape, "one value a member and epoch"
        assert self.best_epoch.shape == self.train_loss.shape[:1], "one best epoch a member"

    @property
    def members(self) -> int:
        """Number of members K."""
        return int(self.train_loss.shape[0])

    @property
    def epochs(self) -> NDArray[np.int64]:
        """Epochs trained by each member, shape (K,)."""
        return np.asarray(np.isfinite(self.valid_rmse).sum(axis=1), dtype=np.int64)

    @property
    def best_rmse(self) -> FloatArray:
        """Validation RMSE of each member at its best epoch, shape (K,)."""
        column = np.maximum(self.best_epoch - 1, 0)[:, None]
        if self.valid_rmse.shape[1] == 0:
            return np.full(self.members, np.nan)
        return np.asarray(np.take_along_axis(self.valid_rmse, column, axis=1)[:, 0])

    def to_frame(self) -> pd.DataFrame:
        """One row per member and epoch trained: member, epoch, train_loss, valid_rmse, best."""
        k, e = self.train_loss.shape
        member, epoch = np.repeat(np.arange(k), e), np.tile(np.arange(1, e + 1), k)
        table = pd.DataFrame(
            {
                "member": member,
                "epoch": epoch,
                "train_loss": self.train_loss.reshape(-1),
                "valid_rmse": self.valid_rmse.reshape(-1),
                "best": epoch == np.repeat(self.best_epoch, e),
            }
        )
        trained = np.isfinite(self.train_loss.reshape(-1)) | np.isfinite(
            self.valid_rmse.reshape(-1)
        )
        return table.loc[trained].reset_index(drop=True)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form, read back by `from_dict`."""
        return {
            "train_loss": _plain(self.train_loss),
            "valid_rmse": _plain(self.valid_rmse),
            "best_epoch": _plain(self.best_epoch),
            "seconds": _plain(self.seconds),
            "notes": list(self.notes),
        }

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
        )

    def __repr__(self) -> str:
        if self.members == 0:
            return "History(no training)"
        best = self.best_rmse
        return (
            f"History({self.members} members, {int(self.epochs.max())} epochs, validation RMSE "
            f"{np.nanmean(best):.4g} ({np.nanmin(best):.4g} to {np.nanmax(best):.4g}), "
            f"{self.seconds:.1f} s)"
        )

    def _repr_html_(self) -> str:
        return f"<p>{_escape(repr(self))}</p>{_html(self.to_frame())}"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Scores of a model and of persistence on the same rows.

    Parameters
    ----------
    target : str
        Name of what is forecast.
    scores : DataFrame
        Index the models (``persistence`` among them), columns ``rmse, mae, crps, coverage, skill,
        n``; ``skill`` is the share of persistence's RMSE that is removed.
    part : str
        ``"new"``, or ``"calibration"`` when there are no new rows.
    period : tuple
        First and last time scored.
    experts : DataFrame, optional
        RMSE of every single variable's expert, for models that have them.
    notes : tuple of str
        What to bear in mind.
    """

    target: str
    scores: pd.DataFrame
    part: str
    period: tuple[Any, Any]
    experts: pd.DataFrame | None = None
    notes: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the scores."""
        return self.scores.copy()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "target": self.target,
            "part": self.part,
            "period": [_plain(self.period[0]), _plain(self.period[1])],
            "scores": {
                str(name): {str(k): _plain(v) for k, v in row.items()}
                for name, row in self.scores.to_dict(orient="index").items()
            },
            "experts": None if self.experts is None else _records(self.experts),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        head = (
            f"Evaluation(target={self.target!r}, {self.part} rows, "
            f"{_plain(self.period[0])} to {_plain(self.period[1])})"
        )
        return f"{head}\n{self.scores.to_string(float_format=lambda x: f'{x:.4g}')}"

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{_escape(note)}</li>" for note in self.notes)
        return f"<p>{_escape(repr(self).splitlines()[0])}</p>{_html(self.scores)}<ul>{notes}</ul>"


# ------------------------------------------------------------------------------------- inner parts


def quantile_name(q: float) -> str:
    """Column name of a quantile.

    Examples
    --------
    >>> quantile_name(0.05), quantile_name(0.975)
    ('q05', 'q97.5')
    """
    whole, _, fraction = f"{100 * q:.6g}".partition(".")
    return f"q{whole.zfill(2)}" + (f".{fraction}" if fraction else "")


def _time_index(values: NDArray[Any], like: pd.Index[Any]) -> pd.Index[Any]:
    """Index of times of the same kind (time zone, unit, name) as ``like``."""
    if isinstance(like, pd.DatetimeIndex):
        index = pd.DatetimeIndex(values)
        if like.tz is not None:
            index = index.tz_localize("UTC") if index.tz is None else index
            index = index.tz_convert(like.tz)
        index = index.as_unit(like.unit)
        index.name = like.name
        return index
    plain: pd.Index[Any] = pd.Index(values, name=like.name)
    return plain


def _plain(value: Any) -> Any:
    """Turn numpy and pandas values into what JSON knows; times become ISO text, NaN None."""
    if isinstance(value, np.ndarray | list | tuple | pd.Index):
        return [_plain(v) for v in value]
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    if isinstance(value, pd.Timestamp):
        return None if value is pd.NaT else value.isoformat()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    columns = [str(c) for c in table.columns]
    return [
        dict(zip(columns, (_plain(v) for v in row), strict=True))
        for row in table.itertuples(index=False, name=None)
    ]


def _matrix(table: pd.DataFrame) -> dict[str, Any]:
    return {
        "rows": _plain(table.index),
        "columns": _plain(table.columns),
        "values": _plain(table.to_numpy()),
    }


def _html(table: pd.DataFrame) -> str:
    return table.to_html(max_rows=60, float_format=lambda x: f"{x:.4g}", border=0)


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
