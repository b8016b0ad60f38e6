"""Which variables matter, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from mvlstm._words import MINUS
from mvlstm.errors import DataError
from mvlstm.results._tables import Drawable, as_kind, matrix, page, plain, records
from mvlstm.results.point import PointExplanation
from mvlstm.types import Kind

VERDICTS = ("important", "weak", "not distinguishable from noise")
LEAST = 0.005  # of the rises of one series, what is called important
IMPORTANCE_COLUMNS = (
    *("variable", "importance", "low", "high", "posterior", "prior"),
    *("error_increase", "error_increase_low", "error_increase_high", "verdict"),
)
BY_ORIGIN = ("prior", "posterior", "contribution", "response", "expert", "value")


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Drawable):
    """Which variables matter for the forecast, at which lags, and how sure that is.

    The statement is predictive, not causal: it says what this model's forecasts rest on.

    Parameters
    ----------
    target : str
        Name of what is forecast; its own past is one of the variables.
    importance : DataFrame
        One row per variable, sorted by ``importance``. Columns ``variable, importance, low, high,
        posterior, prior, error_increase, error_increase_low, error_increase_high, verdict``, then
        extras. ``importance`` is the headline (share of the error increase) with its 90 %
        interval, ``posterior`` the paper's importance, ``prior`` the mean prior attention;
        ``error_increase`` is the rise in squared error without the variable, given all others.
        Of the extras, ``model_increase`` and ``refit_increase`` are the same by the model's own
        forecasts and by regressions learned anew without it, ``leans_on`` is the rise when its
        whole windows are exchanged, ``detectable`` the least rise that would have been found.
    prior, posterior : DataFrame (origin x variable), optional
        Attention per forecast, mean of the members; index (origin, step) when horizon > 1.
        None for forecasters without attention.
    temporal : DataFrame (variable x lag), optional
        Mean temporal attention; lag 1 is the last time known.
    lags : DataFrame, optional
        One row per variable and lag: ``contribution``, the mean absolute contribution to a forecast
        in units of the target, with ``low`` and ``high`` (90 %, over members and forecasts), its
        ``share`` among the variable's lags, and ``attention`` with an interval over members.
    leakage : DataFrame (variable x variable), optional
        Row n, column k: share of expert n's sensitivity that goes to variable k.
    contribution : DataFrame, optional
        Contributions of variable and lag (columns) to the forecasts of some origins (rows), in
        units of the target (of several series, in standard deviations of each one's); with
        ``background`` they add up to the forecast. See `at`.
    response, expert : DataFrame (origin x variable), optional
        For the same origins: change of the forecast when a variable's window is raised by one
        standard deviation, and prior weight times expert's forecast.
    value : DataFrame (origin x variable), optional
        The variables' values at these origins, NaN for categories and the calendar.
    background : tuple of float
        Mean forecast over background windows of the training part, by step ahead.
    by_series : DataFrame, optional
        Where there are several series, one row per series and variable: ``importance`` and
        ``error_increase`` within the series, in squares of its standard deviation.
    by_step : DataFrame, optional
        For several steps ahead, one row per step and variable: ``importance``, ``error_increase``
        and its 90 % interval over times.
    groups : DataFrame, optional
        Error increase without strongly correlated variables together.
    whole : dict
        ``error_increase``, ``low``, ``high``, ``p_value`` and ``verdict`` of all exogenous
        variables together, and the ``squared_error`` that they would increase.
    stability : dict
        Whether the ranking would come out the same again: Kendall's tau and the overlap of the
        ``top`` leading variables between members (``error_increase_...``), bootstrap draws
        (``bootstrap_...``) and members' attention (``posterior_...``); ``order_settled``, whether
        the order of the important variables is, and the ``unsettled`` pairs.
    summary : DataFrame, optional
        How far the data move the attention, one row per variable: ``shift``, ``kl``, entropies.
    part : str
        Rows the error increases were measured on: ``"new"``, ``"calibration"``, or, of few new
        rows, ``"calibration and new"``.
    n_windows : int
        Number of windows they were measured on.
    effort : str
        ``"quick"``, ``"default"`` or ``"full"``.
    notes : tuple of str
        What to bear in mind when reading the numbers.
    kind : {"pandas", "polars", "arrow"}
        Of the table that `to_frame` returns: that of the table explained.
    """

    target: str
    importance: pd.DataFrame
    prior: pd.DataFrame | None = None
    posterior: pd.DataFrame | None = None
    temporal: pd.DataFrame | None = None
    lags: pd.DataFrame | None = None
    leakage: pd.DataFrame | None = None
    contribution: pd.DataFrame | None = None
    response: pd.DataFrame | None = None
    expert: pd.DataFrame | None = None
    value: pd.DataFrame | None = None
    background: tuple[float, ...] = ()
    by_series: pd.DataFrame | None = None
    by_step: pd.DataFrame | None = None
    groups: pd.DataFrame | None = None
    stability: Mapping[str, Any] = field(default_factory=dict)
    summary: pd.DataFrame | None = None
    whole: Mapping[str, Any] = field(default_factory=dict)
    part: str = "new"
    n_windows: int = 0
    effort: str = "default"
    notes: tuple[str, ...] = ()
    kind: Kind = "pandas"

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

    @property
    def together(self) -> tuple[str, ...]:
        """Those of ``groups`` told from noise of whose variables none is alone, largest first."""
        return certain_together(self.importance, self.groups)

    @property
    def overall(self) -> str:
        """What all variables but the own past add together, in a sentence; empty if unknown."""
        error = float(self.whole.get("squared_error", 0.0))
        if not error:
            return ""
        rise, low, high = (
            f"{100 * float(self.whole[name]) / error:.1f} %".replace("-", MINUS)
            for name in ("error_increase", "low", "high")
        )
        return (
            f"All other variables together are {self.whole['verdict']}: without them the squared "
            f"error rises by {rise} (90 % interval {low} to {high})."
        )

    @property
    def sensitivity(self) -> str:
        """How large an effect would have been found, in a sentence; empty if none is missed."""
        error, table = float(self.whole.get("squared_error", 0.0)), self.importance
        missed = table[(table["verdict"] == VERDICTS[2]) & (table["variable"] != self.target)]
        if not error or not len(missed):
            return ""
        least = float(missed["detectable"].median()) / error
        return (
            f"'{VERDICTS[2]}' does not mean without effect: one that changes the squared error by "
            f"about {100 * least:.1f} % would be found in four tables of five, a smaller one less "
            "often."
        )

    def at(self, origin: Any, step: int = 1, *, series: str | None = None) -> PointExplanation:
        """Take one forecast apart: contributions of variables and lags, which add up.

        ``origin`` is the last time known, dates also as text, of one of ``contribution``'s rows, or
        all that names the row, as it stands in its index. With several series the contributions
        are on the scale of the one named.
        """
        table = self.taken_apart()
        levels = table.index.names
        if isinstance(origin, tuple) and len(origin) == len(levels):
            given = dict(zip(levels, origin, strict=True))
            origin, step = given["origin"], int(given.get("step", 1))
            series = given.get("series")
        time = _as_time(origin, table.index.get_level_values("origin"))
        parts = {"series": series, "origin": time, "step": step}
        key = tuple(parts[str(name)] for name in levels) if len(levels) > 1 else time
        unnamed = (series is not None and "series" not in levels) or (
            step != 1 and "step" not in levels
        )
        if unnamed or key not in table.index:
            named = f"origin={origin!r}, step={step}"
            named += "" if series is None else f", series={series!r}"
            raise DataError(
                f"{named} is not among the {len(table)} forecasts taken apart (from "
                f"{plain(table.index[0])} to {plain(table.index[-1])}). Choose one of "
                "explanation.contribution.index, or explain with more contributions."
            )
        row = table.loc[key]
        sums = row.groupby(level="variable", sort=False).sum()
        by_variable = pd.DataFrame(
            {
                "variable": sums.index.astype(str),
                "contribution": sums.to_numpy(),
                **{
                    name: np.nan if part is None else part.loc[key, sums.index].to_numpy()
                    for name, part in (("expert", self.expert), ("response", self.response))
                },
            }
        ).sort_values("contribution", key=lambda c: -c.abs(), kind="stable", ignore_index=True)
        start = self.background[step - 1]
        return PointExplanation(
            target=self.target,
            origin=time,
            step=step,
            forecast=start + float(row.sum()),
            background=start,
            table=row.rename("contribution").reset_index(),
            by_variable=by_variable,
            series=None if series is None else str(series),
            unit="" if self.by_series is None else "standard deviations of its series",
        )

    def taken_apart(self) -> pd.DataFrame:
        """Return the contributions; `DataError` if there are none."""
        if self.contribution is None:
            raise DataError(
                "This explanation has no contributions. Ask for them with "
                "explain(table, contributions=50); models without gradients have none."
            )
        return self.contribution

    def of_series(self, name: str) -> Explanation:
        """Return the explanation of one of the series: its importance, and its forecasts.

        Verdicts are its own too, without a correction for several variables: ``weak`` is a rise
        that can be told from noise and is less than 0.5 % of all rises. The tables that are
        not held by series (``temporal``, ``leakage``, ``groups``, ``stability``) stay those of all.
        """
        known = () if self.by_series is None else tuple(self.by_series["series"].unique())
        if self.by_series is None or name not in known:
            raise DataError(
                f"series={name!r} is not among the {len(known)} series explained, those with "
                "enough unseen rows. Choose one of explanation.by_series['series']"
                f"{f', such as {known[0]!r}' if known else ''}."
            )
        tables = {
            key: table.xs(name, level="series")
            for key in BY_ORIGIN
            if (table := getattr(self, key)) is not None
            and name in table.index.get_level_values("series")
        }
        own = _own_importance(self.importance, self.by_series[self.by_series["series"] == name])
        note = f"Importance is that of series '{name}' alone."
        changed: dict[str, Any] = {"importance": own, "whole": {}, "notes": (*self.notes, note)}
        return replace(self, **{**dict.fromkeys(BY_ORIGIN), **tables, **changed})

    def to_frame(self) -> Any:
        """Return a copy of the importance table."""
        return as_kind(self.importance.copy(), self.kind)

    def to_shap(self, *, step: int = 1, lags: bool = False) -> Any:
        """Return the contributions as a ``shap.Explanation``, for the plots of that library.

        One row per forecast taken apart, one column per variable. Its sums are the forecasts.

        Parameters
        ----------
        step : int
            Steps ahead.
        lags : bool
            One column per variable and lag instead, without the variables' values.
        """
        from mvlstm.results.shap import shap_explanation

        table = self.taken_apart()
        assert self.value is not None  # it comes with the contributions
        own = self.value, self.background, self.target
        return shap_explanation(table, *own, step=step, lags=lags)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form: the importance table and every aggregate, not the rows per origin."""
        names = ("by_series", "by_step", "groups", "summary", "lags")
        tables = {name: getattr(self, name) for name in names}
        matrices = {"temporal": self.temporal, "leakage": self.leakage}
        return {
            "target": self.target,
            "part": self.part,
            "n_windows": self.n_windows,
            "effort": self.effort,
            "importance": records(self.importance),
            **{name: None if t is None else records(t) for name, t in tables.items()},
            **{name: None if t is None else matrix(t) for name, t in matrices.items()},
            "whole": plain(self.whole),
            "stability": plain(self.stability),
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
        lines += [f"  {group}: told from noise together, not alone" for group in self.together]
        lines += [text for text in (self.overall, self.sensitivity) if text]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        windows = f"{self.n_windows} {self.part} windows, effort {self.effort}"
        head = f"Importance for {self.target}: {windows}"
        return page(head, self.importance, self.notes)


def _own_importance(pooled: pd.DataFrame, own: pd.DataFrame) -> pd.DataFrame:
    """Return the importance table of one series, given that of all and its rows by variable."""
    own = own.set_index("variable")
    rises = ["error_increase", "error_increase_low", "error_increase_high"]
    total = float(own["error_increase"].clip(lower=0.0).sum())
    table = pooled[["variable", "posterior", "prior"]].set_index("variable")
    table[rises] = own[rises]
    for name, rise in zip(("importance", "low", "high"), rises, strict=True):
        share = own[rise].clip(lower=0.0) / (total if total > 0 else np.nan)
        table[name] = share.clip(upper=1.0)
    told = np.where(table["importance"] >= LEAST, VERDICTS[0], VERDICTS[1])
    table["verdict"] = np.where(table["error_increase_low"] > 0, told, VERDICTS[2])
    table = table.sort_values(["importance", "error_increase"], ascending=False, kind="stable")
    return table.reset_index()[list(IMPORTANCE_COLUMNS)]


def _as_time(origin: Any, times: pd.Index[Any]) -> Any:
    """Read text as a time where origins are dates; all else stays as it is.

    NaT if it is not a time, or if the clock showed it twice or never because of a change to summer
    or winter time.
    """
    if not isinstance(origin, str) or not isinstance(times, pd.DatetimeIndex):
        return origin
    time = pd.to_datetime(origin, errors="coerce")
    if pd.isna(time) or times.tz is None:
        return time
    if time.tz is not None:
        return time.tz_convert(times.tz)
    return time.tz_localize(times.tz, ambiguous="NaT", nonexistent="NaT")


def certain_together(importance: pd.DataFrame, groups: pd.DataFrame | None) -> tuple[str, ...]:
    """Return the groups that are told from noise together and none of whose variables is alone."""
    if groups is None:
        return ()
    sure = set(importance.loc[importance["verdict"].isin(VERDICTS[:2]), "variable"].astype(str))
    found = groups.loc[groups["verdict"].isin(VERDICTS[:2]), "group"].astype(str)
    return tuple(
        group for group in found if not any(f" + {one} + " in f" + {group} + " for one in sure)
    )
