"""A small page about a served model, for those who have no report."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;"
    "max-width:46rem;padding:0 1rem}table{border-collapse:collapse}td,th{padding:.2rem .8rem .2rem "
    "0;text-align:left}code{font-size:.95em}"
)


def page(told: dict[str, Any]) -> str:
    """Return HTML about what `GET /model` tells."""
    columns = [(c["name"], c["role"], c["type"], _ahead(c)) for c in told["columns"]]
    parts = [
        f"<h1>Forecasts of {escape(told['target'])}</h1>",
        f"<p>{escape(told['method'])}, which reads {told['window']} rows and forecasts "
        f"{told['horizon']}. Send rows to <code>POST /forecast</code>; <a href='openapi.json'>"
        "openapi.json</a> says how, <a href='model'>model</a> tells all.</p>",
        _table("Columns", ("name", "role", "type", ""), columns),
    ]
    if told["scores"]:
        each = told["scores"]["scores"].items()
        rows = [(name, _number(s["rmse"]), _number(s["coverage"])) for name, s in each]
        parts.append(_table("Scores on unseen rows", ("model", "RMSE", "coverage"), rows))
    if told["importance"]:
        rows = [(i["variable"], _number(i["importance"]), i["verdict"]) for i in told["importance"]]
        parts.append(_table("Importance (predictive, not causal)", ("", "", "verdict"), rows))
    body = "".join(parts)
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' "
        f"content='width=device-width'><title>{escape(told['target'])}</title>"
        f"<style>{STYLE}</style><body>{body}</body></html>"
    )


def _ahead(column: dict[str, Any]) -> str:
    return "known ahead" if column["known_ahead"] else ""


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.4g}"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    names = "".join(f"<th>{escape(name)}" for name in head)
    lines = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}" for cell in row) for row in rows)
    return f"<h2>{escape(title)}</h2><table><tr>{names}{lines}</table>"
