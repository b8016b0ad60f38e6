"""From a page's pieces to one self-contained HTML file."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mvlstm._words import MINUS, decimals, number, p_text
from mvlstm.errors import load_extra
from mvlstm.plot._tables import short_verdict
from mvlstm.plot.theme import DARK, LIGHT, graph_objects
from mvlstm.report.data import ReportData
from mvlstm.report.encode import (
    are_days,
    compact,
    figure_spec,
    packed,
    table_data,
    time_text,
    to_script,
)
from mvlstm.report.page import FigureBlock, Page, TableBlock, View
from mvlstm.report.sections import report_page
from mvlstm.results._tables import finest

PLAIN = {"time", "origin", "step", "lag"}  # whole numbers written without marks
TEMPLATES = Path(__file__).with_name("templates")


def render_report(data: ReportData, *, title: str | None = None) -> str:
    """Return a report as one HTML text that needs nothing else to be shown.

    The title is by default made from the target's name.
    """
    return render_page(report_page(data, title=title))


def render_page(page: Page) -> str:
    """Return a page as one HTML text: style, script, figures and numbers inside it."""
    library, script = _script_text(plotly_library()), _asset("page.js")
    hashes = " ".join(f"'sha256-{_digest(text)}'" for text in (library, script))
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    environment = _environment()
    text: str = environment.get_template("page.html").render(
        page=page,
        policy=policy,
        style=environment.from_string("{{ text | safe }}").render(text=_asset("page.css")),
        library=library,
        script=script,
        data=to_script(_page_data(page)),
        tables=_tables(page),
    )
    return text


def plotly_library() -> str:
    """Return the script that draws figures: lines, bars and heat maps, a third of all of Plotly."""
    packed = (TEMPLATES / "plotly-cartesian.min.js.gz").read_bytes()
    return gzip.decompress(packed).decode("utf-8")


def check_libraries() -> None:
    """Raise `MissingExtraError` unless what pages are made with is installed."""
    graph_objects()
    _environment()


# ------------------------------------------------------------------------------------- inner parts


def _environment() -> Any:
    jinja2 = load_extra("jinja2", "A report", "report")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["tie"] = lambda text: str(text).replace(" %", "\u00a0%")
    return environment


def _asset(name: str) -> str:
    return _script_text((TEMPLATES / name).read_text(encoding="utf-8"))


def _script_text(text: str) -> str:
    """Normalise line ends as a browser does, and keep the text from ending its element."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _page_data(page: Page) -> dict[str, Any]:
    figures = [block for block in page.blocks() if isinstance(block, FigureBlock)]
    tables = [block for block in page.blocks() if isinstance(block, TableBlock)]
    return {
        "title": page.title,
        "template": compact(LIGHT.template()),
        "colours": dict(zip(LIGHT.colours(), DARK.colours(), strict=True)),
        "figures": {
            block.key: {
                "wide": packed(figure_spec(block.figure)),
                "narrow": None if block.narrow is None else packed(figure_spec(block.narrow)),
                "views": _views(block.views),
                "choices": [
                    {
                        "wide": None if one.figure is None else packed(figure_spec(one.figure)),
                        "views": _views(one.views),
                    }
                    for one in block.choices
                ],
            }
            for block in figures
        },
        "tables": {
            **{block.key: table_data(block.table) for block in figures},
            **{table.key: table_data(table.frame) for table in tables},
        },
        "explorer": page.explorer,
    }


def _views(views: Sequence[View]) -> list[dict[str, Any]]:
    return [{"name": v.name, "x": compact(list(v.x)), "y": compact(v.y)} for v in views]


def _tables(page: Page) -> dict[str, list[list[dict[str, Any]]]]:
    """Return the cells of every table, written for a person."""
    found = [block for block in page.blocks() if isinstance(block, TableBlock)]
    days = all(are_days(column.dropna()) for column in _time_columns(page))
    return {table.key: _cells(table, days) for table in found}


def _time_columns(page: Page) -> Iterator[pd.Series[Any]]:
    """Return every column of times in the tables and behind the figures of a page."""
    for block in page.blocks():
        if isinstance(block, FigureBlock | TableBlock):
            frame = block.table if isinstance(block, FigureBlock) else block.frame
            for _, column in frame.select_dtypes(["datetime", "datetimetz"]).items():
                yield column


def _cells(table: TableBlock, days: bool) -> list[list[dict[str, Any]]]:
    frame = table.frame
    sizes = finest(frame)
    columns = [
        _column(frame.iloc[:, i], sizes.get(str(name), 0.0), days)
        for i, name in enumerate(frame.columns)
    ]
    for name, cells in zip(frame.columns, columns, strict=True):
        for cell, blank in zip(cells, table.blanks.get(str(name), ()), strict=False):
            cell["text"] = cell["text"] or blank
    rows = [list(row) for row in zip(*columns, strict=True)]
    if table.by_row:
        for row, values in zip(rows, frame.itertuples(index=False), strict=True):
            _align_row(row, values)
    return rows


def _align_row(row: list[dict[str, Any]], values: Sequence[Any]) -> None:
    """Write the floating-point numbers of a row with the decimals that these need."""
    places = [i for i, value in enumerate(values) if isinstance(value, float)]
    texts = _aligned(np.array([values[i] for i in places], dtype=np.float64), 0.0)
    for i, text in zip(places, texts, strict=True):
        row[i]["text"] = text


def _column(column: pd.Series[Any], fine: float, days: bool) -> list[dict[str, Any]]:
    label = str(column.name)
    if pd.api.types.is_bool_dtype(column):
        return [_cell(label, "yes" if v else "no", False) for v in column]
    if pd.api.types.is_integer_dtype(column):
        texts = (str(v) if label in PLAIN else f"{v:,}" for v in column)
        return [_cell(label, text.replace("-", MINUS), True) for text in texts]
    if pd.api.types.is_float_dtype(column):
        values = column.to_numpy(dtype=np.float64)
        if label == "p_value" or label.endswith("_p"):
            return [_cell(label, p_text(v), True) for v in values]
        return [_cell(label, text, True) for text in _aligned(values, fine)]
    times = pd.api.types.is_datetime64_any_dtype(column)
    return [
        _cell(label, time_text(v, days=days) if times else _text(label, v), False) for v in column
    ]


def _text(label: str, value: Any) -> str:
    if value is None or (isinstance(value, float) and not np.isfinite(value)):
        return ""
    return short_verdict(str(value)) if label == "verdict" else str(value)


def _aligned(values: NDArray[np.float64], fine: float) -> list[str]:
    """Write numbers with as many decimals as the largest needs for four digits, or ``fine``."""
    known = np.abs(values[np.isfinite(values)])
    largest = float(known.max(initial=0.0))
    if largest == 0.0 or not 1e-4 < largest < 1e12:
        return [number(float(v), 4, fine) if np.isfinite(v) else "" for v in values]
    places = decimals(largest, 4, fine)
    if largest >= 1 and (known == np.round(known)).all():
        places = 0
    rounded = np.round(values, places) + 0.0  # no minus before a zero
    texts = [f"{v:,.{places}f}".replace("-", MINUS) if np.isfinite(v) else "" for v in rounded]
    return ["0" if v == 0 else text for v, text in zip(values, texts, strict=True)]


def _cell(label: str, text: str, numeric: bool) -> dict[str, Any]:
    return {"label": label, "text": text, "numeric": numeric}
