"""Second opinions on importance that need other models: drop-and-refit, shadows, Granger.

Scrambling asks what a fitted model rests on. Other questions have other answers: how much worse is
a model that never saw the variable, does the variable beat copies of itself that cannot help, does
a linear model gain by its past. They are put beside each other, and where they disagree it is said.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
from sklearn.base import clone

from mvlstm.errors import DataError, MissingExtraError, MVLSTMError, MVLSTMWarning
from mvlstm.explain.granger import fewest_rows, granger_tests, longest_stretch
from mvlstm.metrics import holm, kendall_tau
from mvlstm.model.fitted import Fitted
from mvlstm.problem.preparation import Prepared
from mvlstm.results import VERDICTS
from mvlstm.table.columns import name_list
from mvlstm.types import FloatArray, IntArray

ROWS = 8_000  # newest rows before the unseen ones that the other models learn from
SMALLER = {"members": 3, "max_epochs": 15, "patience": 5}  # at most, of the other models
SHADOW = " (shadow)"
LEAST_SHADOW = 1e-3  # of the squared error, that the strongest shadow counts as at least
SIGNIFICANT = 0.01  # p-value of Granger's tests
# what speaks for a variable that is not called important:
CLEAR_RISE = 0.02  # rise of the squared error of a model fitted without it, as a share
CLEAR_MARGIN = 2.0  # times the rise of the strongest shadow
CLEAR_GAIN = 0.01  # share of the remaining variance that its past explains
AGREEMENT_COLUMNS = (
    "variable",
    "importance",
    "verdict",
    "posterior",
    "gradients",
    "drop_refit",
    "shadow",
    "granger",
    "granger_p",
    "disagreement",
)
NOTE = (
    f"The agreement table's other models learn from at most the last {ROWS:,} rows before the "
    f"unseen ones, with at most {SMALLER['members']} members and {SMALLER['max_epochs']} epochs."
)
NO_REFITS = (
    "There is no agreement table: its other models are not defined for several series or for "
    "variables known ahead."
)
NOT_FITTED = "There is no agreement table: its other models could not be fitted to this table."


class Explained(Protocol):
    """A fitted estimator whose kind can be fitted again."""

    verbose: int

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return its settings."""


def agreement_table(
    model: Explained,
    fitted: Fitted,
    prepared: Prepared,
    origins: IntArray,
    importance: pd.DataFrame,
    contributions: FloatArray | None,
) -> tuple[pd.DataFrame | None, tuple[str, ...]]:
    """Put other measures of importance beside the headline, a row an exogenous variable.

    Parameters
    ----------
    model : estimator
        Whose kind the other models are of.
    fitted : Fitted
    prepared : Prepared
        Of the table explained.
    origins : int array
        Rows whose next steps the model has not seen.
    importance : DataFrame
        The explanation's importance table.
    contributions : array (K, M, H, N, T), optional
        Contributions to some forecasts.

    Returns
    -------
    table : DataFrame or None
        Columns ``importance``: the headline's share among the exogenous variables alone, which the
        importance table calls ``importance_exogenous``; ``verdict``, ``posterior``; ``gradients``:
        mean absolute contribution of the variable, as a share; ``drop_refit``: rise in squared
        error of a model fitted without it, as a share of the error; ``shadow``: its rise in error
        over the largest rise of any shadow variable, in a model that has both; ``granger``: share
        of the remaining variance its past explains in a linear model, ``granger_p`` its adjusted
        p-value; ``disagreement``: what speaks against the verdict, in words, or nothing. NaN
        where the other models' rows have no variation, or no model can be fitted.
    notes : tuple of str
    """
    frame = prepared.frame
    if frame.panel is not None or any(frame.layout.ahead):
        return None, (NO_REFITS,)
    names = [name for name in frame.variables if name != frame.target]
    if not names:
        return None, ()
    rows = importance.set_index("variable").loc[names]
    table, test = _plain_table(fitted, prepared, origins)
    owner = dict(zip(frame.columns, [frame.variables[g] for g in frame.groups], strict=True))
    kept = {owner[str(column)] for column in table}
    others = [name for name in names if name in kept]
    steady = name_list([name for name in names if name not in kept])
    if not others:
        return None, (f"There is no agreement table: {steady} did not vary in its rows.",)

    def every(values: FloatArray) -> FloatArray:
        return np.asarray(pd.Series(values, others).reindex(names), dtype=np.float64)

    refits = Refits(model, table, frame.target, others, owner, test)
    try:
        drop_refit, shadow = refits.without_each(), refits.against_shadows()
    except MVLSTMError as error:  # what was measured before stands all the same
        return None, (f"{NOT_FITTED} {error}",)
    columns: dict[str, object] = {
        "variable": names,
        "importance": rows["importance_exogenous"].to_numpy(),
        "verdict": rows["verdict"].to_numpy(),
        "posterior": rows["posterior"].to_numpy(),
        "gradients": _gradients(frame.variables, names, contributions),
        "drop_refit": every(drop_refit),
        "shadow": every(shadow),
    }
    seen = table.iloc[: len(table) - test]
    segments = frame.segments[-len(table) :][: len(seen)]
    stretch = longest_stretch(segments, seen[frame.target].notna().to_numpy())
    numbers = set(np.array(frame.columns)[np.array(frame.layout.measured)])
    granger, p, note = _granger(seen, stretch, others, owner, numbers)
    columns |= {"granger": every(granger), "granger_p": every(p)}
    if len(others) < len(names):
        note = (*note, f"The agreement table's other models do without {steady}, steady there.")
    found = pd.DataFrame(columns)
    found["disagreement"] = [_disagreement(row) for row in found.to_dict("records")]
    found = found.sort_values("importance", ascending=False, kind="stable", ignore_index=True)
    return found[list(AGREEMENT_COLUMNS)], (NOTE, *note)


def rank_agreement(table: pd.DataFrame | None) -> dict[str, float]:
    """Return Kendall's tau between the headline and every other measure of the table."""
    if table is None:
        return {}
    others = ("posterior", "gradients", "drop_refit", "shadow", "granger")
    known = [name for name in others if table[name].notna().all()]
    return {f"{name}_tau": kendall_tau(table["importance"], table[name]) for name in known}


def _plain_table(fitted: Fitted, prepared: Prepared, origins: IntArray) -> tuple[pd.DataFrame, int]:
    """Return the newest rows as a table of numbers, and how many at its end are unseen.

    Rows before those of the fit are unseen too, but not at the end. Variables' columns that
    do not vary in these rows are left out. Targets that were filled in are NaN.
    """
    frame = prepared.frame
    later = fitted.parts.after(frame.future_times(origins, 1))[:, 0]
    first = origins[later][0] if later.any() else origins[0]
    test = frame.n_rows - 1 - int(first)
    start = max(0, frame.n_rows - test - ROWS)
    values = frame.values[start:]
    varies = np.ptp(values, axis=0) > 0
    varies[-1] = True  # the target
    columns = [name for name, kept in zip(frame.columns, varies, strict=True) if kept]
    times = frame.times[start:].rename(None)
    table = pd.DataFrame(values[:, varies], columns=columns, index=times)
    if frame.measured is not None:
        table[frame.target] = table[frame.target].where(frame.measured[start:])
    return table, test


@dataclass(frozen=True, eq=False)
class Refits:
    """Smaller models of a model's kind, fitted to the rows of `_plain_table`.

    Parameters
    ----------
    model : estimator
    table : DataFrame
    target : str
    names : sequence of str
        Variables that are judged.
    owner : dict
        The variable of each column.
    test : int
        Rows at the end that are left unseen.
    """

    model: Explained
    table: pd.DataFrame
    target: str
    names: Sequence[str]
    owner: dict[str, str]
    test: int

    def without_each(self) -> FloatArray:
        """Return the relative rise in squared error of models fitted without each variable.

        NaN for a variable that the method cannot do without.
        """
        whole = _error(self._fit(self.table), self.table)
        rises = np.full(len(self.names), np.nan)
        for place, name in enumerate(self.names):
            fewer = self.table[[c for c in self.table if self.owner[str(c)] != name]]
            with contextlib.suppress(DataError):
                rises[place] = _error(self._fit(fewer), fewer) / whole - 1.0
        return rises

    def against_shadows(self) -> FloatArray:
        """Return each variable's rise in error over the largest rise of any shadow.

        A shadow is a copy of a variable turned in a circle past the target: it has the same values
        and the same memory, and cannot help. One model is fitted with all variables and all
        shadows. Where none of these raises the error by a thousandth, that is what variables are
        compared with.
        """
        rng = np.random.default_rng(0)
        n = len(self.table)
        shadows = {}
        for name in self.names:
            shift = int(rng.integers(n // 4, n - n // 4 + 1))
            for column in [c for c in self.table if self.owner[str(c)] == name]:
                shadows[f"{column}{SHADOW}"] = np.roll(self.table[column].to_numpy(), shift)
        both = pd.concat([pd.DataFrame(shadows, self.table.index), self.table], axis=1)
        fitted = self._fit(both)
        explained = fitted.explain(both, effort="quick", contributions=0)
        rises = explained.importance.set_index("variable")["error_increase"]
        least = max(LEAST_SHADOW * _error(fitted, both), np.finfo(np.float64).tiny)
        strongest = max(float(rises[list(shadows)].max()), least)
        own = rises.groupby(rises.index.map(lambda column: self.owner.get(column, column))).max()
        return np.asarray(own.loc[list(self.names)].to_numpy() / strongest)

    def _fit(self, table: pd.DataFrame) -> Any:
        """Fit a smaller model to some columns, or to more."""
        params = self.model.get_params()
        changes = {k: min(v, params[k]) for k, v in SMALLER.items() if k in params}
        changes["verbose"] = 0
        if "calendar" in params:
            changes["calendar"] = "none"
        other = clone(self.model).set_params(**changes)
        with warnings.catch_warnings(action="ignore", category=MVLSTMWarning):
            other.fit(table, self.target, test=self.test)
        if other.stopped_ == "interrupt":
            raise KeyboardInterrupt
        return other


def _error(model: Any, table: pd.DataFrame) -> float:
    return float(model.evaluate(table).scores["rmse"].iloc[0]) ** 2


def _granger(
    seen: pd.DataFrame,
    stretch: slice,
    names: Sequence[str],
    owner: dict[str, str],
    numbers: Set[str],
) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
    """Return partial R squared and adjusted p-value of each variable, on a stretch of seen rows.

    Of a variable with several columns one is left out: all the levels of a category add up to one.
    The columns ``numbers``, which are no levels, are differenced where their tests say so.
    """
    from mvlstm.problem.stationarity import choose_differencing, difference

    nothing = np.full(len(names), np.nan)
    owners = pd.Series([owner[str(column)] for column in seen])
    several = owners.duplicated(keep=False)
    table = seen.loc[:, ~(several & ~owners.duplicated()).to_numpy()].iloc[stretch]
    notes: tuple[str, ...] = ()
    if len(table) < len(seen):
        longest = f"{len(table):,} rows, the longest stretch without a gap or a missing target"
        if len(table) < fewest_rows(table.shape[1]):
            return nothing, nothing, (f"Granger's tests were left out: {longest}, are too few.",)
        notes = (f"Granger's tests rest on {longest}.",)
    values = table.to_numpy(np.float64)
    free = table.columns.isin(numbers)
    orders = np.zeros(len(free), dtype=np.int64)
    try:
        orders[free] = choose_differencing(values[:, free], list(table.columns[free])).orders
        values = difference(values, orders.tolist())
        scale = values.std(axis=0)
        if not (scale > 0).all():
            return nothing, nothing, ("Granger's tests were left out: a column does not vary.",)
        found = granger_tests((values - values.mean(axis=0)) / scale)["columns"]
    except (MissingExtraError, np.linalg.LinAlgError, ValueError) as error:
        return nothing, nothing, (f"Granger's tests were left out: {error}",)
    if orders.any():
        changed = name_list([str(column) for column in table.columns[orders > 0]])
        notes = (*notes, f"Granger's tests are of the differences of {changed}.")
    columns = [owner[str(column)] for column in table.columns[:-1]]
    by_variable = pd.DataFrame(
        {"variable": columns, "gain": found["gain"], "p": holm(found["conditional_p"])}
    ).groupby("variable")
    gain, p = by_variable["gain"].max(), by_variable["p"].min()
    return gain.loc[list(names)].to_numpy(), p.loc[list(names)].to_numpy(), notes


def _gradients(
    variables: Sequence[str], names: Sequence[str], contributions: FloatArray | None
) -> FloatArray:
    """Return each variable's share of the mean absolute contributions."""
    if contributions is None:
        return np.full(len(names), np.nan)
    sums = contributions.mean(axis=0).sum(axis=-1)  # (M, H, N), over lags
    size = pd.Series(np.abs(sums).mean(axis=(0, 1)), index=list(variables))[list(names)]
    return np.asarray(size / max(float(size.sum()), np.finfo(np.float64).tiny))


def _disagreement(row: Mapping[Any, Any]) -> str:
    """Say in words what speaks against a variable's verdict."""

    def number(name: str) -> float:
        return float(row[name])

    if row["verdict"] == VERDICTS[0]:
        doubts = {
            "refitting without it costs nothing": number("drop_refit") <= 0.0,
            "a shadow matters as much": number("shadow") <= 1.0,
            "no linear gain (Granger)": number("granger_p") >= SIGNIFICANT,  # false for NaN
        }
        return "; ".join(doubt for doubt, holds in doubts.items() if holds)
    against = []
    if number("drop_refit") > CLEAR_RISE:
        against.append(f"refitting without it costs {number('drop_refit'):.0%}")
    if number("shadow") > CLEAR_MARGIN:
        against.append("it beats every shadow")
    if number("granger_p") < SIGNIFICANT and number("granger") > CLEAR_GAIN:
        against.append(f"linear gain of {number('granger'):.1%} (Granger)")
    return "; ".join(against) if len(against) > 1 else ""
