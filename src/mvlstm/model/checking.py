"""All that is wrong with a table at once: every refusal of a fit, mended in turn as it advises."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike

from mvlstm._words import counted
from mvlstm.errors import DataError, MVLSTMWarning, ParameterError
from mvlstm.model.fitting import begin
from mvlstm.model.transform_choice import TransformChoice, near_zero
from mvlstm.problem.windows import check_window
from mvlstm.results.check import COLUMNS, Check, Finding
from mvlstm.settings import Adapting, AheadSettings, declared, expanded
from mvlstm.table.codes import plain, possible_code
from mvlstm.table.columns import as_in_table, as_names, check_columns, column_names, without_codes
from mvlstm.table.encoding import choose_parts, is_category
from mvlstm.table.files import read_table
from mvlstm.table.frame import SeriesFrame, Table, check_table
from mvlstm.table.kinds import as_pandas
from mvlstm.table.settings import Cleaning, Columns, Reading, read_codes
from mvlstm.table.spacing import describe_step, describe_time
from mvlstm.table.times import read_times

VALID = 0.1  # as of a fit
USUAL_WINDOW = 30  # rows, where a fit chooses
MOST_FAULTS = 30  # of one table; each is mended once
ADDED = ("exclude", "na_values", "categorical")  # arguments of which several faults have a share
LEVELS = 12  # different whole numbers, at most, that may stand for categories
MOSTLY = 0.5  # share of missing values from which a column is doubtful
CYCLES = ("hour", "day_of_week", "month")
PLANNED = ("holiday", "weekend", "workingday", "workday", "promo", "school", "forecast")  # in names


@dataclass(frozen=True)
class Attempt:
    """The arguments of a fit that is tried."""

    columns: Columns
    cleaning: Cleaning
    reading: Reading
    ahead: AheadSettings
    test: float
    valid: float

    def mended(self, remedy: Mapping[str, Any]) -> Self:
        """Return the attempt with a remedy applied."""
        groups = {}
        for name in ("columns", "cleaning", "reading", "ahead"):
            group = getattr(self, name)
            own = {key: value for key, value in remedy.items() if hasattr(group, key)}
            added = {key: _joined(getattr(group, key), own[key]) for key in own if key in ADDED}
            groups[name] = replace(group, **own | added) if own else group
        return replace(self, **groups)

    def given(self, *names: str) -> dict[str, Any]:
        """Return the arguments of some groups that differ from their defaults."""
        groups = [getattr(self, name) for name in names]
        return {
            one.name: value
            for group in groups
            for one in declared(type(group))
            if (value := getattr(group, one.name)) != one.default
        }


@dataclass
class Usual:
    """How a model with the usual settings makes a problem of a table."""

    window: Any
    horizon: int
    transform: TransformChoice = "none"
    bounds: Sequence[float | None] | None = None
    calibration: Adapting = "adaptive"
    one_series: bool = False
    difference: str = "none"
    precision: DTypeLike = np.float64


def check_whole_table(
    table: Table,
    columns: Columns,
    cleaning: Cleaning,
    reading: Reading,
    ahead: AheadSettings,
    *,
    test: float = 0.2,
    valid: float = VALID,
) -> Check:
    """Say all that is wrong with a table at once, and how a fit goes through.

    Every fault that `MVLSTM.fit` would refuse is found in turn, and mended as its message advises;
    nothing is trained. The arguments are those of a fit, all optional but ``target``.

    Parameters
    ----------
    table : DataFrame or path
    test, valid : float
        Shares of the rows at the end, or their numbers, as for `MVLSTM.fit`.

    Examples
    --------
    >>> table = pd.DataFrame({"x": np.arange(80) % 7, "y": [*range(40), None, *range(39)]})
    >>> found = check(table, "y")
    >>> [dict(one.remedy) for one in found.findings], found.fits
    ([{'missing': 'mask'}], True)
    """
    attempt, source = Attempt(columns, cleaning, reading, ahead, test, valid), table
    if isinstance(table, SeriesFrame):
        raise ParameterError("A SeriesFrame was checked when it was built; give the table itself.")
    whole = _read(source, attempt.reading)
    check_window(_window(ahead), ahead.horizon)
    names = column_names(whole)
    check_columns("Target", [as_in_table(columns.target, names)], names, "target")
    findings: list[Finding] = []
    told: list[str] = []
    frame = None
    while len(findings) < MOST_FAULTS:
        frame, told, error = _tried(whole, attempt)
        if error is None:
            break
        remedy = _remedy(error, whole, attempt, path=isinstance(source, str | os.PathLike))
        findings.append(Finding(str(error), remedy))
        again = attempt.mended(remedy)
        if again == attempt or not remedy:
            break
        try:
            whole = whole if again.reading == attempt.reading else _read(source, again.reading)
        except DataError as wrong:
            findings.append(Finding(str(wrong), {}))
            break
        attempt = again
    fits = frame is not None
    path = isinstance(source, str | os.PathLike)
    return Check(
        target=columns.target,
        columns=_described(whole, attempt),
        findings=tuple(findings),
        fits=fits,
        reading=attempt.given("reading"),
        named={**attempt.given("columns"), "test": test}
        | ({"valid": valid} if valid != 0.1 else {}),
        settings=attempt.given("cleaning", "ahead"),
        rows="" if frame is None else _rows(frame),
        notes=() if frame is None else tuple(n for n in frame.notes if n not in told),
        warnings=tuple(dict.fromkeys([*told, *(() if frame is None else frame.doubts)])),
        suggestions=() if frame is None else tuple(_suggestions(frame, attempt)),
        source=repr(os.fspath(source)) if path else "table",
    )


check = expanded(columns=Columns, cleaning=Cleaning, reading=Reading, ahead=AheadSettings)(
    check_whole_table
)
check.__name__ = check.__qualname__ = "check"


def _window(ahead: AheadSettings) -> int:
    """Return the rows that a forecast is made from, the usual ones where a fit chooses."""
    return USUAL_WINDOW if isinstance(ahead.window, str) else ahead.window


def _read(source: Table, reading: Reading) -> pd.DataFrame:
    if isinstance(source, str | os.PathLike):
        return read_table(source, sep=reading.sep, decimal=reading.decimal)
    table: pd.DataFrame = as_pandas(source)
    return table


def _tried(
    table: pd.DataFrame, attempt: Attempt
) -> tuple[SeriesFrame | None, list[str], DataError | None]:
    """Try to read the table and to divide its rows; return what comes back, and warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MVLSTMWarning)
        try:
            test, valid = attempt.test, attempt.valid
            frame = check_table(table, attempt.columns, attempt.cleaning, test=test, valid=valid)
            usual = Usual(_window(attempt.ahead), attempt.ahead.horizon)
            begin(usual, frame, test=test, valid=valid)
        except DataError as error:
            return None, [], error
    return frame, [str(one.message) for one in caught], None


def _remedy(
    error: DataError, table: pd.DataFrame, attempt: Attempt, *, path: bool
) -> dict[str, Any]:
    """Return what an error advises, as far as it is an argument of this attempt."""
    remedy = {key: value for key, value in error.remedy.items() if path or key != "decimal"}
    if not remedy and "times are not unique" in str(error) and attempt.columns.series is None:
        found = _likely_series(table, attempt)
        return {} if found is None else {"series": found}
    return remedy


def _likely_series(table: pd.DataFrame, attempt: Attempt) -> str | None:
    """Return the first column of labels within each of which no time occurs twice."""
    names, columns = column_names(table), attempt.columns
    own = as_names("time", columns.time, names)
    times = read_times(table, names, own).times
    for name in names:
        column = table.iloc[:, names.index(name)]
        labels = is_category(column) or pd.api.types.is_integer_dtype(column.dtype)
        if name in (*own, columns.target) or not labels or column.isna().any():
            continue
        pairs = pd.DataFrame({"time": np.asarray(times), "label": np.asarray(column)})
        if 1 < pairs["label"].nunique() <= len(pairs) / 3 and not pairs.duplicated().any():
            return name
    return None


def _joined(before: Any, more: Any) -> list[Any]:
    first = [] if before is None else [before] if isinstance(before, str | float | int) else before
    return list(dict.fromkeys([*first, *more]))


def _rows(frame: SeriesFrame) -> str:
    """Say how many rows are left, from when to when and at which step."""
    first, last = (describe_time(time) for time in (frame.clock[0], frame.clock[-1]))
    several = "" if frame.panel is None else f" of {len(frame.panel.names):,} series"
    step = f", {describe_step(frame.step)} apart" if frame.step is not None else ""
    return f"{counted(frame.n_rows, 'row')}{several} from {first} to {last}{step}."


# ------------------------------------------------------------------------------- what is there


def _described(table: pd.DataFrame, attempt: Attempt) -> pd.DataFrame:
    """Return one row per column: its role, kind, missing values and range."""
    columns, names = attempt.columns, column_names(table)
    codes = read_codes(columns.na_values) or ()
    roles = {name: "known" for name in as_names("known", columns.known, names)}
    roles |= {name: "excluded" for name in as_names("exclude", columns.exclude, names)}
    roles |= {name: "time" for name in as_names("time", columns.time, names)}
    roles |= {as_in_table(columns.series, names): "series"} if columns.series else {}
    roles[as_in_table(columns.target, names)] = "target"
    asked = None if columns.variables is None else as_names("variables", columns.variables, names)
    other = {name: "variable" if asked is None or name in asked else "excluded" for name in names}
    forced = as_names("categorical", columns.categorical, names)
    rows = []
    for j, name in enumerate(names):
        column = without_codes(table.iloc[:, j], codes, name)
        row = {"column": name, "role": roles.get(name, other[name]), **_summary(column)}
        rows.append(row | ({"kind": "category"} if name in forced else {}))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _summary(column: pd.Series[Any]) -> dict[str, Any]:
    types, numbers = pd.api.types, None
    if types.is_numeric_dtype(column.dtype):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    kind = "number" if numbers is not None else "category" if is_category(column) else "text"
    dates = types.is_datetime64_any_dtype(column.dtype)
    finite = np.empty(0) if numbers is None else numbers[np.isfinite(numbers)]
    texts = column if numbers is not None else column.astype(str)
    return {
        "kind": "date" if dates else kind,
        "missing": float(column.isna().mean()) if len(column) else 0.0,
        "distinct": int(texts[column.notna()].nunique()),
        "least": float(finite.min()) if len(finite) else np.nan,
        "greatest": float(finite.max()) if len(finite) else np.nan,
    }


# ------------------------------------------------------------------------- what is worth trying


def _suggestions(frame: SeriesFrame, attempt: Attempt) -> Iterator[str]:
    """Tell what is worth trying though a fit goes through without."""
    layout = frame.layout
    if low := near_zero(frame):
        yield (
            f"The target is never negative, and near zero in {low:.0%} of the rows: "
            "bounds=[0, None] keeps forecasts there, and transform='auto' tries a log scale, too."
        )
    yield from _codes_among_values(frame)
    dates = isinstance(frame.times, pd.DatetimeIndex)
    if (
        dates
        and attempt.cleaning.calendar == "none"
        and (parts := choose_parts("auto", frame.times, frame.step, layout.columns))
    ):
        yield f"calendar='auto' adds {' and '.join(parts)} as a variable that is known ahead."
    planned = [name for name in _planned(frame) if name not in layout.known]
    if planned:
        yield (
            f"{_names(planned)} may be known ahead, as clock and holidays are: known={planned} "
            "lets forecasts read the values of the time forecast."
        )
    labels = [name for name in _labels(frame) if name not in planned]
    if labels:
        yield (
            f"{_names(labels)}: few different whole numbers. If they are labels rather "
            f"than amounts, use categorical={labels}."
        )
    absent = {layout.names[g]: frame.values[:, c].mean() for c, g in _marks(frame)}
    for name in (name for name, share in absent.items() if share > MOSTLY):
        if name != layout.target:
            yield (
                f"Column '{name}' is missing in {absent[name]:.0%} of the rows: compare with "
                f"exclude={[name]}."
            )


def _codes_among_values(frame: SeriesFrame) -> Iterator[str]:
    """Tell of values that may stand for a missing one; each of several series has its own."""
    if frame.layout.na_values is not None and not frame.layout.na_values:
        return  # it was said that there are none
    columns = [*_columns_of(frame), (frame.target, frame.target_values)]
    for name, values in columns if frame.panel is None else ():
        if (code := possible_code(values)) is not None:
            value = plain(code.value)
            yield (
                f"Column '{name}' is {value} in {counted(code.rows, 'row')}; all other values lie "
                f"between {code.low:g} and {code.high:g}. If {value} stands for a missing value, "
                f"use na_values=['{name}={value}']."
            )


def _names(names: list[str]) -> str:
    listed = ", ".join(f"'{name}'" for name in names)
    return f"Column{'s' if len(names) > 1 else ''} {listed}"


def _marks(frame: SeriesFrame) -> Iterator[tuple[int, int]]:
    """Yield input and variable of each mark of what is missing."""
    for name in frame.layout.masked:
        group = frame.layout.names.index(name)
        yield frame.groups.index(group), group


def _columns_of(frame: SeriesFrame) -> Iterator[tuple[str, Any]]:
    """Yield name and values of each measured variable."""
    for c, (group, measured) in enumerate(zip(frame.groups, frame.layout.measured, strict=True)):
        if measured and frame.layout.names[group] != frame.target:
            yield frame.layout.names[group], frame.values[:, c]


def _planned(frame: SeriesFrame) -> Iterator[str]:
    """Yield variables that the clock decides, or whose name says that they are planned."""
    clock: list[Any] = []
    if isinstance(frame.times, pd.DatetimeIndex):
        clock = [np.asarray(getattr(frame.times, cycle)) for cycle in CYCLES]
    for name, values in _columns_of(frame):
        counts = [pd.Series(values).groupby(c).nunique().max() == 1 for c in clock if np.ptp(c)]
        if any(counts) or any(word in name.lower().replace("_", "") for word in PLANNED):
            yield name
    for name in frame.layout.categories:
        if any(word in name.lower().replace("_", "") for word in PLANNED):
            yield name


def _labels(frame: SeriesFrame) -> Iterator[str]:
    for name, values in _columns_of(frame):
        if (values == np.round(values)).all() and 2 < len(np.unique(values)) <= LEVELS:
            yield name
