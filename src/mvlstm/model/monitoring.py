"""Scores of what has arrived since a time, by period, and whether the model has slipped.

Both statements are one-sided tests at the 1 % level against the later half of the validation rows,
which the model had not been trained on either; the errors' dependence in time is taken into
account (Newey and West). A slip must also be large enough to matter.

- Skill: the log of the ratio of mean squared errors, the model's over persistence's, has risen, and
  the skill has fallen by `LEAST_SKILL` or more.
- Coverage: the 90 % interval holds fewer values than it did there or than 90 %, and
  `LEAST_COVERAGE` or more fewer than 90 %.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtr

from mvlstm.errors import DataError, ParameterError, warn
from mvlstm.model.fitted import Fitted
from mvlstm.model.naive import LAST, Naive
from mvlstm.model.scoring import RowScores, score_unseen
from mvlstm.problem.preparation import Prepared
from mvlstm.results import Evaluation, Forecast
from mvlstm.results.coverage import coverage_in_words, rolling_coverage, spread_rows
from mvlstm.results.reference import LEVEL, Reference
from mvlstm.table.spacing import describe_time
from mvlstm.table.times import read_times
from mvlstm.types import IntArray

SIGNIFICANT = 0.01
LEAST_SKILL, LEAST_COVERAGE = 0.02, 0.02
PERIODS = {"day": "D", "week": "W-SUN", "month": "M", "quarter": "Q", "year": "Y"}
MOST_PERIODS = 31
FEWEST_TIMES = 20  # a period should have, on average
NO_MONTH = re.compile(r"\s*\d{4}[-/. ]+(1[3-9]|[2-9]\d)\b")  # after a year
FEWEST_NEW = 40  # times that can tell of a slip: as many as an update needs


def score_since(fitted: Fitted, forecast: Forecast, prepared: Prepared, since: Any) -> Evaluation:
    """Score the unseen rows of a forecast from ``since`` on; see `AbstractForecaster.evaluate`."""
    start, known = read_time(fitted, since), fitted.parts.calibration
    times = forecast.time
    later = fitted.parts.since(times, start) & fitted.parts.after(times)
    chosen = np.asarray(later.all(axis=1))
    if not chosen.any():
        raise DataError(
            f"The table has no rows since {describe_time(start)} that the model does not know; it "
            f"knows those up to {describe_time(known)}. Supply newer rows."
        )
    scored = forecast.take(chosen)
    evaluation = score_unseen(fitted, scored, prepared, whole=False)
    naive = Naive.of(scored, prepared.frame)
    now = Reference.of_forecast(scored, scored.actual - naive.values[LAST])
    found, statements = find_slips(fitted.calibration.reference, now)
    if found is not None:
        for statement in itertools.compress(statements, found["slipped"]):
            warn(statement)
    notes = [*evaluation.notes, f"Rows since {describe_time(start)} are scored."]
    if start <= known:
        notes.append(f"The model knows the rows up to {describe_time(known)}; later ones count.")
    rolling = rolling_coverage(scored)
    notes += [*statements, coverage_in_words(rolling)]
    return replace(
        evaluation,
        notes=tuple(notes),
        periods=by_period(scored, naive),
        slips=found,
        rolling=None if rolling.empty else spread_rows(rolling),
    )


def read_time(fitted: Fitted, since: Any) -> Any:
    """Read a time given as text, timestamp or number as one of the model's."""
    layout = fitted.layout
    try:
        if layout.time_kind == "integer":
            return _whole(since)
        time = _date(since, day_first=layout.day_first)
    except ParameterError:
        raise
    except (ValueError, TypeError) as error:
        kind = "a whole number" if layout.time_kind == "integer" else "a date such as 2024-05-01"
        raise ParameterError(
            f"since={since!r} is not a time of this table; give {kind}."
        ) from error
    if layout.time_zone is None:
        if time.tz is not None:
            raise ParameterError(
                f"since={since!r} has a time zone, and the times of this table have none; give it "
                "without."
            )
        return time
    if time.tz is None:
        return time.tz_localize(layout.time_zone, ambiguous=True, nonexistent="shift_forward")
    return time.tz_convert(layout.time_zone)


def _whole(since: Any) -> int:
    if isinstance(since, bool) or (isinstance(since, float) and not since.is_integer()):
        raise ValueError("not a whole number")
    return int(since)


def _date(since: Any, *, day_first: bool | None) -> pd.Timestamp:
    """Read a date as those of the table were read; a number as the date it spells.

    Where the table's dates do not tell, one whose day could be its month is refused.
    """
    if isinstance(since, bool | float):
        raise TypeError("not a date")
    if isinstance(since, str | int | np.integer):
        if NO_MONTH.match(str(since)):
            raise ValueError("no such month")
        ways = (False, True) if day_first is None else (day_first,)
        found = [_read_text(str(since), way) for way in ways]
        if found[0] != found[-1]:
            raise ParameterError(
                f"since={since!r} could be {found[1]:%Y-%m-%d} or {found[0]:%Y-%m-%d}. Write the "
                f"year first, like {found[1]:%Y-%m-%d}."
            )
        return found[0]
    time = pd.Timestamp(since)
    if pd.isna(time):
        raise ValueError("not a time")
    return time


def _read_text(since: str, day_first: bool) -> pd.Timestamp:
    text = pd.DataFrame({"since": [since]})
    return pd.Timestamp(read_times(text, ["since"], ["since"], day_first=day_first).times[0])


# ------------------------------------------------------------------------------------------- slips


def find_slips(
    then: Reference | None, now: Reference | None
) -> tuple[pd.DataFrame | None, tuple[str, ...]]:
    """Compare two references; return a row for skill and one for coverage, and sentences.

    A reference is None where there are hardly any rows, or an error is zero.
    """
    if then is None or now is None or now.n < FEWEST_NEW:
        why = "the model has no scores of held-out rows, with errors, to compare"
        if then is not None:
            why = f"there are fewer than {FEWEST_NEW} rows to score"
            why += ", or the model or persistence makes no error" if now is None else ""
        return None, (f"Whether the model has slipped cannot be told: {why}.",)
    spread = np.sqrt([then.ratio_variance + now.ratio_variance, _coverage_variance(then, now)])
    risen = np.array([now.ratio - then.ratio, min(then.coverage, LEVEL) - now.coverage])
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(spread > 0, risen / spread, np.inf * np.sign(risen))
    p = 1.0 - ndtr(np.nan_to_num(z, nan=0.0, posinf=40.0, neginf=-40.0))
    large = np.array(
        [then.skill - now.skill >= LEAST_SKILL, LEVEL - now.coverage >= LEAST_COVERAGE]
    )
    table = pd.DataFrame(
        {
            "score": ["skill", "coverage"],
            "then": [then.skill, then.coverage],
            "now": [now.skill, now.coverage],
            "p_value": p,
            "slipped": (p < SIGNIFICANT) & large,
        }
    )
    return table, tuple(_sentence(row) for row in table.to_dict(orient="records"))


def _coverage_variance(then: Reference, now: Reference) -> float:
    """Variance of the difference of coverages, at least that of independent values.

    The factor was found on these rows among others, so that their coverage is near 90 %; its
    sampling variance still says how far off the factor may be.
    """
    least = LEVEL * (1 - LEVEL)
    return sum(max(one.coverage_variance, least / one.n) for one in (then, now))


def _sentence(row: Any) -> str:
    name = "Skill" if row["score"] == "skill" else "Coverage of the 90 % interval"
    compared = f"{row['now']:.1%}, and {row['then']:.1%} on the rows held out"
    p = f"(p = {row['p_value']:.2g})"
    if not row["slipped"]:
        return f"{name} has not slipped: {compared} {p}."
    return (
        f"{name} has slipped: {compared} when the model was made {p}. Update the model or fit it "
        "anew."
    )


# ----------------------------------------------------------------------------------------- periods


def by_period(forecast: Forecast, naive: Naive) -> pd.DataFrame:
    """Score each day, week, month, quarter or year, whichever suits, or blocks of numbered rows."""
    first = pd.Index(forecast.time[:, 0])
    labels, word = _period_labels(first)
    scores, rows = RowScores.of(forecast, naive), []
    for label in pd.unique(labels):
        mine = np.flatnonzero(labels == label)
        rows.append({word: label, **scores.means(mine)})
    return pd.DataFrame(rows).sort_values(word, kind="stable", ignore_index=True)


def _period_labels(times: pd.Index[Any]) -> tuple[NDArray[Any], str]:
    """Return each time's period as text that sorts, and what the periods are."""
    if times.dtype == object:
        times = pd.to_datetime(times, utc=True)
    if not isinstance(times, pd.DatetimeIndex):
        return _blocks(np.asarray(times, dtype=np.int64)), "from"
    wall = times.tz_localize(None)
    found = {word: wall.to_period(code).start_time for word, code in PERIODS.items()}
    counts = {word: starts.nunique() for word, starts in found.items()}
    fitting = [w for w, n in counts.items() if n <= MOST_PERIODS and len(wall) / n >= FEWEST_TIMES]
    whole = [word for word, count in counts.items() if count == 1]  # few times
    word = [*fitting, *whole, "year"][0]
    return np.asarray(found[word].strftime("%Y-%m-%d"), dtype=object), word


def _blocks(times: IntArray) -> IntArray:
    """Return the first time of each time's block; at most 10 blocks, of 20 times at least."""
    every = np.unique(times)
    count = int(np.clip(len(every) // FEWEST_TIMES, 1, 10))
    starts = every[np.linspace(0, len(every), count, endpoint=False).astype(np.int64)]
    return np.asarray(starts[np.searchsorted(starts, times, side="right") - 1])
