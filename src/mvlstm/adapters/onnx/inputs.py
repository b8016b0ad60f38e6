"""From raw rows to what a network sees: the stages of `Preparation`, as nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mvlstm.adapters.onnx.graph import TEXT, Graph, Operand, Value
from mvlstm.errors import ParameterError
from mvlstm.problem.preparation import Preparation
from mvlstm.table.layout import CALENDAR, Layout
from mvlstm.transforms import Transform

BATCH = "batch"
Described: TypeAlias = dict[str, dict[str, Any]]
CALENDAR_PARTS = ("hour", "weekday", "yearday", "days")  # that `_calendar` makes
SECONDS, DAY = "seconds of the local clock since 1970-01-01 00:00", 86_400


@dataclass(frozen=True, eq=False)
class Seen:
    """What a method sees of B windows, and what leads back from its labels.

    Shapes
    ------
    windows : (B, T, C) scaled, in the precision of the method
    target : (B, L) transformed, and scaled by series
    center, unit : (B, 1, 1, 1), where there are several series
    """

    windows: Value
    target: Value
    center: Value | None = None
    unit: Value | None = None


def seen(
    graph: Graph, layout: Layout, preparation: Preparation, window: int, dtype: Any
) -> tuple[Seen, Described]:
    """Add inputs and preparation to a graph; return what a method sees, and what inputs hold."""
    lead, H = preparation.lead, preparation.ahead
    ahead = np.array(layout.ahead)
    describe: Described = {}
    raw = _encoded(graph, layout, "past", window + lead, describe)
    values = _transformed(raw, preparation.transform, preparation.inputs)
    center, scale, found = _scaling(graph, preparation, describe)
    table = (_differenced(values, preparation.orders) - center) / scale
    if H:
        columns = np.flatnonzero(ahead).tolist()
        later = _encoded(graph, layout, "known", H, describe)
        if preparation.inputs:
            later = _forward(later, [preparation.inputs[c] for c in columns])
        known = graph.concat([_before(raw, preparation, columns), later], axis=1)
        known = known.cut(1, lead + H, lead + H + window)
        known = (known - _columns(center, columns)) / _columns(scale, columns)
        others = np.flatnonzero(~ahead).tolist()
        order = np.argsort([*others, *columns]).tolist()
        table = graph.concat([table.take(2, others), known], axis=2).take(2, order)
    target, back = values.cut(2, -1).squeezed(2), (None, None)
    if found is not None:
        own = [_columns(one, [-1]).reshaped(-1, 1, 1, 1) for one in (center, scale)]
        target = (target - own[0].squeezed(2, 3)) / own[1].squeezed(2, 3)
        back = (own[0], own[1])
    return Seen(table.cast(dtype), target, *back), describe


def _before(raw: Value, preparation: Preparation, columns: list[int]) -> Value:
    """Return the columns known ahead as their past rows hold them, transformed."""
    own = raw.take(2, columns)
    return _forward(own, [preparation.inputs[c] for c in columns]) if preparation.inputs else own


def _columns(scaling: Operand, columns: list[int]) -> Any:
    return scaling.take(2, columns) if isinstance(scaling, Value) else scaling[columns]  # type: ignore[index]


# ------------------------------------------------------------------------------------- raw columns


def _encoded(graph: Graph, layout: Layout, name: str, rows: int, describe: Described) -> Value:
    """Declare the inputs of one stretch of rows and encode them, (B, rows, columns).

    "past" holds every column, "known" those known ahead. Blocks of numbers, of each category and
    of the calendar are joined and put into the order of the layout.
    """
    wanted = layout.columns if name == "past" else layout.known
    clock = layout.calendar
    numbers = [one for one in wanted if one not in layout.categories]
    groups, blocks, columns = [], [], {n: one for n, one in enumerate(layout.names)}
    masked = [one for one in numbers if one in layout.masked]
    if masked:  # the mark comes before the value
        label = f"{name}_missing"
        marks = graph.input(label, bool, (BATCH, rows, len(masked)))
        describe[label] = {"rows": rows, "columns": masked}
        blocks.append(marks.cast(np.float64))
        groups += masked
    if numbers:
        blocks.append(graph.input(name, np.float64, (BATCH, rows, len(numbers))))
        describe[name] = {"rows": rows, "columns": numbers}
        groups += numbers
    categories = [one for one in layout.levels if one[0] in wanted]
    if categories:
        label = f"{name}_categories"
        text = graph.input(label, TEXT, (BATCH, rows, len(categories)))
        describe[label] = {"rows": rows, "columns": [one for one, _ in categories]}
        for place, (one, levels) in enumerate(categories):
            own = text.cut(2, place, place + 1).equals(np.array(levels, dtype=object))
            blocks.append(own.cast(np.float64))
            groups += [one] * len(levels)
    if clock:
        label = f"{name}_time"
        describe[label] = {"rows": rows, "unit": SECONDS}
        waves = _calendar(graph.input(label, np.int64, (BATCH, rows)), clock)
        blocks.append(waves)
        groups += [CALENDAR] * len(layout.clock_columns)
    places = {one: place for place, one in columns.items()}
    if name == "past":
        _check_made(layout, groups)
    order = np.argsort([places[one] for one in groups], kind="stable").tolist()
    joined = graph.concat(blocks, axis=2)
    return joined if order == sorted(order) else joined.take(2, order)


def _check_made(layout: Layout, groups: list[str]) -> None:
    """Refuse a layout with inputs that are made of a table in another way."""
    made = [layout.names[n] for n in layout.groups]
    others = sorted({name for name in made if made.count(name) != groups.count(name)})
    unknown = [part for part in layout.calendar if part not in CALENDAR_PARTS]
    if others or unknown:
        raise ParameterError(
            f"The inputs made of {others or unknown} have no form as an ONNX graph. Export a model "
            "fitted without them, or serve this one with mvlstm itself."
        )


def _calendar(seconds: Value, parts: tuple[str, ...]) -> Value:
    """Return the columns of `calendar_columns` for times (B, rows)."""
    graph = seconds.graph
    clock = seconds % DAY  # of the divisor's sign, as in Python
    date = (seconds - clock) / DAY
    days = clock.cast(np.float64) / float(DAY)
    weekday = (date + 3) % 7  # 1970-01-01 was a Thursday
    made = []
    for part in parts:
        if part == "days":
            week = np.arange(7, dtype=np.int64)
            made.append(weekday.spread(2).equals(week).cast(np.float64))
            continue
        if part == "hour":
            phase = days
        elif part == "weekday":
            phase = weekday.cast(np.float64) / 7.0
        else:
            phase = (_day_of_year(date).cast(np.float64) + days) / 365.25
        wave = (phase * (2 * np.pi)).spread(2)
        made += [wave.map("Sin"), wave.map("Cos")]
    return graph.concat(made, axis=2)


def _day_of_year(date: Value) -> Value:
    """Return the days since January 1, of days since 1970-01-01.

    Years are counted from March 1, so that the leap day is their last, in eras of 400 years.
    """
    shifted = date + 719_468
    day = shifted % 146_097  # of the era
    year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365
    in_march_year = day - (year * 365 + year / 4 - year / 100)
    leap = (year % 4).equals(0).cast(np.int64) - (year % 100).equals(0).cast(np.int64)
    leap = leap + (year % 400).equals(0).cast(np.int64)
    before_january = in_march_year < 306
    return before_january.where(in_march_year + 59 + leap, in_march_year - 306)


# --------------------------------------------------------------- transform, differences, scale


def _transformed(values: Value, transform: Transform, inputs: tuple[Transform, ...]) -> Value:
    """Transform the target, the last column, and inputs."""
    if not transform:
        return values
    if inputs:
        return _forward(values, [*inputs, transform])
    rest, target = values.cut(2, 0, -1), values.cut(2, -1)
    return values.graph.concat([rest, _forward(target, [transform])], axis=2)


def _forward(values: Value, transforms: list[Transform]) -> Value:
    """Transform each column, of which all that are transformed are so in one way."""
    changed = np.array([bool(one) for one in transforms])
    if not changed.any():
        return values
    name = next(one.name for one in transforms if one)
    if name == "log1p":
        found = (values + 1.0).map("Log")
    else:
        center = np.array([one.center for one in transforms])
        found = ((values - center) / np.array([one.scale for one in transforms])).asinh()
    if changed.all():
        return found
    return values.graph.constant(changed, bool).where(found, values)


def _differenced(values: Value, orders: Any) -> Value:
    """Difference each column as often as its order says; the rows lost are left out."""
    lead = int(orders.max(initial=0))
    if not lead:
        return values
    result: Value = values.cut(1, lead)
    result = result - values.cut(1, lead - 1, -1) * orders.astype(np.float64)
    if lead == 2:
        result = result + values.cut(1, 0, -2) * (orders == 2).astype(np.float64)
    return result


def _scaling(
    graph: Graph, preparation: Preparation, describe: Described
) -> tuple[Operand, Operand, Value | None]:
    """Return center and scale by column, of each window's series where there are several.

    Those of a series that training did not have follow from all its rows, which a window does not
    hold: its forecasts are not numbers.
    """
    series = preparation.series
    if series is None:
        return preparation.scaler.center, preparation.scaler.scale, None
    describe["series"] = {"names": list(series.names)}
    name = graph.input("series", TEXT, (BATCH,))
    match = name.spread(1).equals(np.array(series.names, dtype=object)).cast(np.float64)
    found = match.total(1, keep=True)  # (B, 1)
    center = (match @ series.center).spread(1)  # (B, 1, C)
    scale = (match @ series.scale).spread(1)
    known = graph.apply("Greater", found, graph.constant(0.5, np.float64), dtype=bool).spread(2)
    return center, known.where(scale, float("nan")), found
