"""Forecasts with their predictive distributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm import metrics
from mvlstm._words import counted, quantile_name
from mvlstm.errors import DataError, ParameterError, check_option, check_whole, is_number
from mvlstm.recalibration import LEVELS, ScoreMap
from mvlstm.results._tables import Drawable, as_kind, page, plain, records, time_index
from mvlstm.results.distribution import Distribution, Later
from mvlstm.transforms import IDENTITY, Transform
from mvlstm.types import BoolArray, FloatArray, Kind

PARTS = ("train", "validation", "new")
PATH_NUMBERS = 2_000_000  # values of joint paths held at once
TINY = np.finfo(np.float64).tiny ** 0.5  # of a deviation
BY_ORIGIN = ("time", "weights", "means", "variances", "part", "actual")  # arrays (M, H, ...)


@dataclass(frozen=True, eq=False, repr=False)
class Forecast(Drawable):
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
        The predictive distribution as calibrated at the fit, on the scale of ``transform``.
    members : array (K, M, H)
        Point forecast of every member, in units of the target; their mean is the forecast's mean.
    part : array of str (M, H)
        ``"train"``, ``"validation"`` or ``"new"``: whether the model had seen the value.
    actual : array (M, H)
        What happened, NaN where unknown.
    notes : tuple of str
        Plain sentences on how the forecast came about.
    warnings : tuple of str
        Plain sentences on what makes it doubtful: values far outside the training range, stale
        data.
    transform : Transform
        The scale on which the distribution is a mixture of normals; by default the target's own.
        Everything this class returns is in units of the target.
    series : array of str (M,), optional
        The series of each origin, where there are several.
    knots : ScoreMap (M, H), later; optional
        How the distribution was recalibrated by later outcomes: see `distribution`.
    shape : array (H, L), optional
        How it is before there are any: where each of `LEVELS` lies among normal scores.
    dependence : array (H, H), optional
        Correlation of the steps' normal scores, by which paths are drawn.
    shared : float
        Share of the variance of the normal scores that all series have in common in a joint path.
    tied : array (M,), later; optional
        By what share of their variance the steps went together (above 0) or apart (below 0) more
        than that, by the outcomes known at each origin.
    kind : {"pandas", "polars", "arrow"}
        Of the tables that `to_frame`, `sample` and `to_nixtla` return: that of the table forecast.
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
    warnings: tuple[str, ...] = ()
    transform: Transform = IDENTITY
    series: NDArray[Any] | None = None
    knots: Later[ScoreMap] | None = None
    shape: FloatArray | None = None
    dependence: FloatArray | None = None
    shared: float = 1.0
    tied: Later[FloatArray] | None = None
    kind: Kind = "pandas"
    _quantiles: dict[float, FloatArray] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        rows = (len(self.origin), self.time.shape[1] if self.time.ndim == 2 else -1)
        shapes = {name: getattr(self, name).shape[:2] for name in BY_ORIGIN}
        shapes["members"] = self.members.shape[1:]
        wrong = {name: shape for name, shape in shapes.items() if shape != rows}
        assert not wrong, f"Forecast of {rows} (origins, steps) got leading shapes {wrong}"

    # ------------------------------------------------------------------------------ values

    @property
    def horizon(self) -> int:
        """Number of steps ahead H."""
        return int(self.time.shape[1])

    @property
    def index(self) -> pd.Index[Any]:
        """Index of every answer: the time for one step ahead, else (origin, step).

        Where there are several series, their name comes first.
        """
        m, h = self.time.shape
        levels: dict[str, Any] = {} if self.series is None else {"series": self.series.repeat(h)}
        if h == 1:
            times = time_index(self.time[:, 0], self.origin)
            if not levels:
                return times
            levels["time"] = times
        else:
            levels |= {"origin": self.origin.repeat(h), "step": np.tile(np.arange(1, h + 1), m)}
        return pd.MultiIndex.from_arrays(list(levels.values()), names=list(levels))

    @property
    def distribution(self) -> Distribution:
        """The calibrated predictive distributions (M, H)."""
        mixture = self.weights, self.means, self.variances
        knots = None if self.knots is None else self.knots.found
        if knots is None and self.shape is not None:
            knots = ScoreMap.fixed(self.shape, len(self))
        return Distribution(*mixture, self.transform, knots)

    @property
    def mean(self) -> pd.Series[float]:
        """Point forecast: the mean of the members."""
        return self._series(self.members.mean(axis=0), "mean")

    @property
    def median(self) -> pd.Series[float]:
        """Median of the predictive distribution."""
        return self._series(self._quantile(0.5), "median")

    @property
    def variance(self) -> pd.Series[float]:
        """Variance of the predictive distribution."""
        return self._series(self.distribution.variance(), "variance")

    def quantile(self, q: float) -> pd.Series[float]:
        """Quantile ``q`` (between 0 and 1) of the predictive distribution."""
        _check_number("q", q)
        return self._series(self._quantile(q), quantile_name(q))

    def interval(self, level: float = 0.9) -> tuple[pd.Series[float], pd.Series[float]]:
        """Central interval that should hold the value with probability ``level``."""
        _check_number("level", level)
        if not 0.0 < level < 1.0:
            raise ParameterError(f"level={level!r} must lie strictly between 0 and 1, such as 0.9.")
        tail = round(0.5 * (1.0 - level), 12)
        low, high = self._quantile(tail), self._quantile(round(1.0 - tail, 12))
        return self._series(low, "low"), self._series(high, "high")

    def crps(self) -> pd.Series[float]:
        """Continuous ranked probability score of every row; NaN where ``actual`` is unknown."""
        return self._series(self.distribution.crps(self.actual), "crps")

    # ------------------------------------------------------------------------------- joint paths

    def draw(self, n: int = 100, seed: int = 0) -> FloatArray:
        """Draw ``n`` joint paths over the steps from every origin, (n, M, H).

        Each step has its calibrated distribution; a Gaussian copula, learned from the errors of
        earlier forecasts, ties the steps together. The same seed moves all origins of a series
        alike, and those of other series as far as their errors went together.
        """
        check_whole("n", n, 1)
        rng = np.random.default_rng(seed)
        normal = self._normal(rng, n, self.horizon)
        if self.dependence is not None:
            normal = normal @ np.linalg.cholesky(self.dependence).T
        if self.tied is not None:
            share = self.tied.found[:, None]  # (M, 1)
            alike, apart = (self._normal(rng, n, width) for width in (1, self.horizon))
            other = np.where(share > 0, alike, apart)
            normal = np.sqrt(1.0 - abs(share)) * normal + np.sqrt(abs(share)) * other
        return self.distribution.values_at(normal)

    def _normal(self, rng: np.random.Generator, n: int, width: int) -> FloatArray:
        """Draw standard normal numbers (n, 1, width), or (n, M, width) of several series."""
        common = rng.standard_normal((n, 1, width))
        if self.series is None or self.shared == 1.0:
            return common
        codes, names = pd.factorize(self.series)
        own = rng.standard_normal((n, len(names), width))
        both = np.sqrt(self.shared) * common + np.sqrt(1.0 - self.shared) * own
        return np.asarray(both[:, codes])

    def sample(self, n: int = 100, seed: int = 0) -> Any:
        """Joint paths as a table: path, [series,] origin, step, time, value; see `draw`.

        One path is joint over the steps, and over the series: their sums at a time are what
        several series need together.
        """
        values = self.draw(n, seed)
        table = self.to_pandas().drop(columns=["part", "actual"], errors="ignore")
        table = table.loc[:, :"time"]
        whole = pd.concat([table] * n, ignore_index=True)
        whole.insert(0, "path", np.repeat(np.arange(n), len(table)))
        return as_kind(whole.assign(value=values.reshape(-1)), self.kind)

    def path_quantile(self, q: float, *, n: int = 1_000, seed: int = 0) -> pd.Series[float]:
        """Quantile ``q`` of the sum over all steps of each origin, from ``n`` joint paths.

        The energy needed over the next day, say; the sum of the steps' own quantiles would be
        that of a day on which every hour goes wrong together.
        """
        _check_number("q", q)
        if not 0.0 < q < 1.0:
            raise ParameterError(f"q={q!r} must lie strictly between 0 and 1, such as 0.95.")
        sums = [np.quantile(one.draw(n, seed).sum(axis=2), q, axis=0) for one in _pieces(self, n)]
        index = (
            self.origin
            if self.series is None
            else pd.MultiIndex.from_arrays([self.series, self.origin], names=["series", "origin"])
        )
        return pd.Series(np.concatenate(sums), index=index, name=quantile_name(q))

    def score_paths(self, *, n: int = 200, seed: int = 0) -> dict[str, float]:
        """Score joint paths where all steps are known: energy and variogram score, sum's coverage.

        ``sum_coverage`` is the share of sums over the steps in their central 90 % interval.
        """
        known = self.take(np.flatnonzero(np.isfinite(self.actual).all(axis=1)))
        if not len(known):
            raise DataError(
                "No origin has all its steps known; supply a table that reaches further."
            )
        scores = []
        for few in _pieces(known, n):
            paths, total = few.draw(n, seed), few.actual.sum(axis=1)
            low, high = np.quantile(paths.sum(axis=2), (0.05, 0.95), axis=0)
            each = (
                metrics.energy_score(few.actual, paths),
                metrics.variogram_score(few.actual, paths),
            )
            scores.append(np.stack([*each, (low <= total) & (total <= high)]))
        found = np.concatenate(scores, axis=1).mean(axis=1)
        return dict(zip(("energy", "variogram", "sum_coverage"), map(float, found), strict=True))

    def pit(self) -> pd.Series[float]:
        """Probability the forecast gave to values up to the actual one; uniform if calibrated."""
        return self._series(self.distribution.pit(self.actual), "pit")

    # ------------------------------------------------------------------------------ scores

    def score(
        self, part: str | None = None, *, history: Any = None, period: int = 1
    ) -> dict[str, Any]:
        """Score against the actual values: RMSE of the mean, MAE of the median, CRPS and others.

        Parameters
        ----------
        part : {"new", "validation", "train", "all"}, optional
            Rows to score. By default the new ones; if none of them has an actual value, the
            validation rows, and failing those the training rows. ``"part"`` in the answer says
            which were used. Every step ahead counts in the part its own time lies in; the model's
            ``evaluate`` leaves out origins whose steps lie in two parts.
        history : sequence of float, optional
            Values of the target before those scored, of one series, to add ``mase`` and ``rmsse``.
        period : int
            Rows over which changes of the ``history`` are what errors are measured in.

        Returns
        -------
        dict
            ``rmse``, ``mae``, ``mae_mean`` (of the mean), ``crps``, ``coverage`` and
            ``interval_score`` (of the 90 % interval), ``pinball`` (mean over the quantiles 5, 50
            and 95 %), ``smape`` and ``mape`` (of the median, as shares; ``mape`` is infinite where
            a value is zero), ``n``, ``part``.
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
                f"rows with one: {_part_counts(self.part, known) or 'none'}. Supply a table that "
                "reaches further, or choose another part."
            )
        y, mean = self.actual[chosen], self.members.mean(axis=0)[chosen]
        few = self.distribution.take(chosen)
        low, median, high = (
            self._quantiles[q][chosen] if q in self._quantiles else few.quantile(q)
            for q in (0.05, 0.5, 0.95)
        )
        quantiles = ((0.05, low), (0.5, median), (0.95, high))
        found = {
            "rmse": metrics.rmse(y, mean),
            "mae": metrics.mae(y, median),
            "mae_mean": metrics.mae(y, mean),
            "crps": float(np.mean(few.crps(y))),
            "coverage": metrics.coverage(y, low, high),
            "interval_score": metrics.interval_score(y, low, high, level=0.9),
            "pinball": float(np.mean([metrics.pinball(y, x, q) for q, x in quantiles])),
            "smape": metrics.smape(y, median),
            "mape": metrics.mape(y, median),
            "n": int(y.size),
            "part": part,
        }
        if history is None:
            return found
        past = np.asarray(history, dtype=np.float64)
        scaled = {
            "mase": metrics.mase(y, median, past, period=period),
            "rmsse": metrics.rmsse(y, mean, past, period=period),
        }
        return {**found, **scaled}

    # ------------------------------------------------------------------------------ tables

    def take(self, rows: slice | NDArray[Any]) -> Forecast:
        """Forecast of some origins only, chosen by position or mask."""
        rows = _as_slice(rows)
        return replace(
            self,
            origin=self.origin[rows],
            members=self.members[:, rows],
            series=None if self.series is None else self.series[rows],
            knots=None if self.knots is None else self.knots[rows],
            tied=None if self.tied is None else self.tied[rows],
            **{name: getattr(self, name)[rows] for name in BY_ORIGIN},
        )

    def first(self, steps: int) -> Forecast:
        """Forecast of the first ``steps`` ahead only."""
        dependence = self.dependence
        return replace(
            self,
            members=self.members[:, :, :steps],
            knots=None if self.knots is None else self.knots[:, :steps],
            shape=None if self.shape is None else self.shape[:steps],
            dependence=None if dependence is None else dependence[:steps, :steps],
            **{name: getattr(self, name)[:, :steps] for name in BY_ORIGIN},
        )

    @classmethod
    def join(cls, forecasts: Sequence[Forecast]) -> Forecast:
        """Put forecasts of one target one after another, on the scale of the first."""
        first = forecasts[0]
        if len(forecasts) == 1:
            return first
        forecasts = [_on_scale(one, first.transform) for one in forecasts]
        names = [*BY_ORIGIN, *(["series"] if first.series is not None else [])]
        parts: dict[str, Any] = {
            name: np.concatenate([getattr(one, name) for one in forecasts]) for name in names
        }
        if any(one.knots is not None or one.shape is not first.shape for one in forecasts):
            parts["knots"] = Later(partial(_joined_knots, tuple(forecasts)))
        if any(one.tied is not None for one in forecasts):
            parts["tied"] = Later(partial(_joined_ties, tuple(forecasts)))
        origin = first.origin.append([one.origin for one in forecasts[1:]])
        members = np.concatenate([one.members for one in forecasts], axis=1)
        return replace(first, origin=origin, members=members, **parts)

    def to_frame(self, quantiles: Sequence[float] = ()) -> Any:
        """One row per origin and step: origin, step, time, mean, median, q05, q95, part[, actual].

        The column ``actual`` is there when at least one actual value is known, and ``series``
        comes first when there are several. The frame is of pandas, polars or Arrow, as the table
        forecast was.

        Parameters
        ----------
        quantiles : sequence of float
            Further quantiles, each a column: ``[0.1, 0.9]`` adds ``q10`` and ``q90``.
        """
        return as_kind(self.to_pandas(quantiles), self.kind)

    def to_nixtla(self, name: str = "mvlstm", level: Sequence[float] = (90,)) -> Any:
        """Return ``unique_id, ds, cutoff, y``, the forecast as ``name`` and its intervals.

        Parameters
        ----------
        name : str
            Column of the forecast; intervals are ``name-lo-90`` and ``name-hi-90``.
        level : sequence of float
            Percentages that the intervals should hold.
        """
        return as_kind(nixtla_frame(self, name, level), self.kind)

    def to_pandas(self, quantiles: Sequence[float] = ()) -> pd.DataFrame:
        """Return the table of `to_frame` as a DataFrame of pandas."""
        m, h = self.time.shape
        columns: dict[str, Any] = {
            **({} if self.series is None else {"series": self.series.repeat(h)}),
            "origin": self.origin.repeat(h),
            "step": np.tile(np.arange(1, h + 1), m),
            "time": time_index(self.time.reshape(-1), self.origin),
            "mean": self.members.mean(axis=0).reshape(-1),
            "median": self._quantile(0.5).reshape(-1),
            **{name: self._quantile(q).reshape(-1) for name, q in _levels(quantiles).items()},
            "part": self.part.reshape(-1).astype(object),
        }
        if np.isfinite(self.actual).any():
            columns["actual"] = self.actual.reshape(-1)
        return pd.DataFrame(columns)

    def to_dict(self, quantiles: Sequence[float] = ()) -> dict[str, Any]:
        """JSON-able form: what the fields say, and the rows of `to_frame`."""
        return {
            "target": self.target,
            "horizon": self.horizon,
            "members": int(self.members.shape[0]),
            "transform": self.transform.name,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
            "rows": records(self.to_pandas(quantiles)),
        }

    def __len__(self) -> int:
        return len(self.origin)

    def __repr__(self) -> str:
        steps = counted(self.horizon, "step")
        span = ""
        if len(self):
            times = time_index(self.time.reshape(-1), self.origin)
            span = f", {plain(times.min())} to {plain(times.max())}"
        counts = _part_counts(self.part, np.ones(self.part.shape, dtype=bool))
        parts = f", {counts}" if counts else ""
        if self.warnings:
            parts += f"; {counted(len(self.warnings), 'warning')}"
        return (
            f"Forecast(target={self.target!r}, {counted(len(self), 'origin')} x {steps}{span}, "
            f"{counted(self.members.shape[0], 'member')}{parts})"
        )

    def _repr_html_(self) -> str:
        rows = len(self)
        shown = self if rows <= 10 else self.take(np.r_[0:5, rows - 5 : rows])
        return page(repr(self), shown.to_pandas())

    # ------------------------------------------------------------------------------ inner parts

    def _quantile(self, q: float) -> FloatArray:
        if q not in self._quantiles:
            self._quantiles[q] = self.distribution.quantile(q)
        return self._quantiles[q]

    def _series(self, values: FloatArray, name: str) -> pd.Series[float]:
        return pd.Series(values.reshape(-1), index=self.index, name=name)


def _as_slice(rows: slice | NDArray[Any]) -> slice | NDArray[Any]:
    """Return a mask of rows next to one another as a slice, which takes them without a copy."""
    if isinstance(rows, slice) or rows.dtype != bool or not rows.any():
        return rows
    first, end = int(rows.argmax()), len(rows) - int(rows[::-1].argmax())
    return slice(first, end) if rows[first:end].all() else rows


def _pieces(forecast: Forecast, n: int) -> Iterator[Forecast]:
    """Yield a few origins at a time, of which ``n`` joint paths can be held."""
    size = max(1, PATH_NUMBERS // (n * forecast.horizon))
    return (forecast.take(slice(a, a + size)) for a in range(0, len(forecast), size))


def nixtla_frame(forecast: Forecast, name: str, levels: Sequence[float]) -> pd.DataFrame:
    """Return the table of `Forecast.to_nixtla`, whose columns are those of ``cross_validation``.

    A target that is one series alone has its own name as ``unique_id``.
    """
    if np.ndim(levels) != 1 or not all(is_number(one) and 1 <= one < 100 for one in levels):
        raise ParameterError(
            f"level={levels!r} must be a list of percentages from 1 to below 100. Write level=[90] "
            "for the 90 % interval."
        )
    rows = forecast.to_pandas()
    columns: dict[str, Any] = {
        "unique_id": rows.get("series", forecast.target),
        "ds": rows["time"],
        "cutoff": rows["origin"],
        "y": forecast.actual.reshape(-1),
        name: rows["mean"],
    }
    for level in sorted(levels):
        ends = zip(("lo", "hi"), forecast.interval(level / 100), strict=True)
        columns |= {f"{name}-{side}-{level:g}": end.to_numpy() for side, end in ends}
    return pd.DataFrame(columns)


def _on_scale(forecast: Forecast, transform: Transform) -> Forecast:
    """Return the forecast with its mixture on another scale, and the same quantiles of `LEVELS`."""
    if forecast.transform == transform:
        return forecast

    def moved(values: FloatArray) -> FloatArray:
        return transform.forward(forecast.transform.inverse(values))

    means, spread = forecast.means, np.sqrt(forecast.variances)
    wide = np.maximum(moved(means + spread) - moved(means - spread), TINY) / 2.0
    found = replace(forecast, means=moved(means), variances=wide**2, transform=transform)
    return replace(found, knots=Later(partial(_moved_knots, forecast, found)))


def _moved_knots(forecast: Forecast, found: Forecast) -> ScoreMap:
    """Return where the quantiles of a forecast lie among the normal scores of another's mixture."""
    mixture = found.weights, found.means, found.variances
    values = (found.transform.forward(forecast.distribution.quantile(q)) for q in LEVELS.tolist())
    scores = [metrics.mixture_score(*mixture, value) for value in values]
    return ScoreMap.of(np.stack(scores, axis=-1))


def _joined_knots(forecasts: Sequence[Forecast]) -> ScoreMap:
    values = np.concatenate([one.distribution.table[..., 1:-1] for one in forecasts])
    return ScoreMap.of(values)


def _joined_ties(forecasts: Sequence[Forecast]) -> FloatArray:
    return np.concatenate(
        [np.zeros(len(one)) if one.tied is None else one.tied.found for one in forecasts]
    )


def _part_counts(part: NDArray[np.str_], where: BoolArray) -> str:
    counts = {p: int((where & (part == p)).sum()) for p in PARTS}
    return ", ".join(f"{n} {p}" for p, n in counts.items() if n)


def _check_number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterError(
            f"{name}={value!r} must be one number strictly between 0 and 1, such as 0.9; for "
            "several, call once for each."
        )


def _levels(quantiles: Sequence[float]) -> dict[str, float]:
    """Return the quantiles of a table by column name, in order: 0.05, 0.95 and further ones."""
    if np.ndim(quantiles) != 1 or not all(is_number(q) for q in quantiles):
        raise ParameterError(
            f"quantiles={quantiles!r} must be a list of numbers strictly between 0 and 1, such as "
            "[0.1, 0.9]."
        )
    named = {quantile_name(q): float(q) for q in (*quantiles, 0.05, 0.95)}
    return dict(sorted(named.items(), key=lambda item: item[1]))
