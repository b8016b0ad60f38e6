"""Scores, compared with those of naive methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from mvlstm.results._tables import Drawable, as_kind, page, plain, records
from mvlstm.types import Kind

SCORES_SHOWN = ("rmse", "mae", "mae_mean", "crps", "coverage", "skill")  # where there is no room


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Drawable):
    """Scores of a model and of naive methods on the same rows.

    ``scores`` has one row per method: the model, ``persistence`` (the last value again), and
    ``seasonal`` (the last cycle again) where there is a cycle. Its columns:

    - ``rmse`` and ``mae_mean`` of the mean forecast; ``mae``, ``smape`` and ``mape`` of the median,
      the last two as shares (``mape`` is empty where a value is zero);
    - ``crps``; ``pinball``, the mean over the quantiles 5, 50 and 95 %; ``coverage`` and
      ``interval_score`` of the 90 % interval;
    - ``rmsse`` and ``mase``: errors in mean changes from row to row before the rows scored, those
      of its own series for each;
    - ``skill``: the share of the better naive method's RMSE that is removed; of several series,
      after each has been divided by its own changes;
    - ``n``, the number of values.

    Other tables are of the model alone, with RMSE and RMSSE of naive methods. ``paths`` scores
    joint paths over several steps ahead, ``joint`` and as if steps were ``independent``: the
    ``energy`` and ``variogram`` score, and ``sum_coverage``, the share of sums over the steps that
    lie in their 90 % interval, of ``n`` origins spread evenly.

    ``periods``, ``slips`` and ``rolling`` come from ``evaluate(since=...)``. ``slips`` has one row
    for skill, here against persistence, and one for coverage, with what it was on the rows held out
    (``then``), what it is (``now``), the p-value of a fall, and whether it has ``slipped``.
    ``rolling`` is the coverage of the 90 % interval over the latest times, at most 200 and a third
    of all: ``time``, ``coverage``, the band from ``low`` to ``high`` in which it lies 99 times in a
    hundred if intervals hold, and the ``state``, "narrow", "fine" or "wide".
    """

    target: str
    scores: pd.DataFrame
    part: str  # "new", or "calibration" when there are no new rows
    period: tuple[Any, Any]  # first and last time scored
    experts: pd.DataFrame | None = None  # RMSE of every single variable's expert
    notes: tuple[str, ...] = ()  # what to bear in mind
    by_series: pd.DataFrame | None = None  # where there are several
    periods: pd.DataFrame | None = None  # by day, week, month, quarter or year
    slips: pd.DataFrame | None = None
    by_step: pd.DataFrame | None = None  # where there are several ahead
    paths: pd.DataFrame | None = None  # likewise
    rolling: pd.DataFrame | None = None  # where there are 60 times
    kind: Kind = "pandas"  # of the table that `to_frame` returns

    @property
    def slipped(self) -> tuple[str, ...]:
        """What has slipped: ``"skill"``, ``"coverage"``, both or neither."""
        if self.slips is None:
            return ()
        return tuple(str(name) for name in self.slips.loc[self.slips["slipped"], "score"])

    def to_frame(self) -> Any:
        """Return a copy of the scores."""
        return as_kind(self.scores.rename_axis("model"), self.kind)

    def to_rows(self) -> pd.DataFrame:
        """Return all scores as one table: of the models, then by period, by step and by series.

        Columns ``model`` and the scores; where there are series, steps ahead or periods, also
        ``series``, ``step`` or ``period``, which are empty in lines about all of them.
        """
        lines = self.scores.rename_axis("model").reset_index()
        parts = {"period": self.periods, "step": self.by_step, "series": self.by_series}
        for word, part in parts.items():
            if part is not None:
                lines.insert(1, word, None)
                named = part.rename(columns={part.columns[0]: word})
                named = named.assign(model=self.scores.index[0])
                lines = pd.concat([lines, named[named.columns.intersection(lines.columns)]])
        return lines.reset_index(drop=True)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        names = ("by_series", "by_step", "paths", "periods", "slips", "rolling")
        tables = {name: getattr(self, name) for name in names}
        return {
            "target": self.target,
            "part": self.part,
            "period": plain(self.period),
            "scores": plain(self.scores.to_dict(orient="index")),
            "experts": None if self.experts is None else records(self.experts),
            "notes": list(self.notes),
            **{name: records(table) for name, table in tables.items() if table is not None},
        }

    def __repr__(self) -> str:
        first, last = map(plain, self.period)
        head = f"Evaluation(target={self.target!r}, {self.part} rows, {first} to {last})"
        scores = self.scores.filter([*SCORES_SHOWN, "n"])
        return f"{head}\n{scores.to_string(float_format=lambda x: f'{x:.4g}')}"

    def _repr_html_(self) -> str:
        return page(repr(self).splitlines()[0], self.scores, self.notes)
