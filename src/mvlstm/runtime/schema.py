"""The OpenAPI description of a service, with the columns of its model."""

from __future__ import annotations

from typing import Any

from mvlstm._version import __version__

JSON = "application/json"
TEXT, WHOLE = {"type": "string"}, {"type": "integer", "minimum": 1}
PLACE = {"anyOf": [TEXT, {"type": "integer"}]}
REFUSALS = {
    "400": "The body is not JSON or not UTF-8 text",
    "401": "A token is needed",
    "413": "The body or the table is too large",
    "415": "Neither JSON nor CSV",
    "422": "The table does not fit the model; the message names the culprit and the remedy",
}


def schema(told: dict[str, Any], most_rows: int) -> dict[str, Any]:
    """Return the description of all paths."""
    failures = {code: _answer(words, "Error") for code, words in REFUSALS.items()}
    denied = {"401": failures["401"]}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Forecasts of {told['target']}",
            "version": __version__,
            "description": f"{told['method']} with a window of {told['window']} rows.",
        },
        "paths": {
            "/forecast": {"post": _forecast(told["horizon"], failures)},
            "/model": {"get": _get("What the model is", "Model", denied)},
            "/health": {"get": _get("Whether the service answers", "Health", {})},
            "/openapi.json": {"get": _get("This description", "Model", denied)},
            "/": {
                "get": {
                    "summary": "A page about the model",
                    "responses": {
                        "200": {"description": "HTML", "content": {"text/html": {"schema": TEXT}}},
                        **denied,
                    },
                }
            },
        },
        "components": {"schemas": _schemas(told, most_rows)},
    }


def _forecast(horizon: int, failures: dict[str, Any]) -> dict[str, Any]:
    steps = {**WHOLE, "maximum": horizon}
    query = {"name": "steps", "in": "query", "required": False, "schema": steps}
    query["description"] = "With CSV; with JSON it is a field of the body."
    bodies = {JSON: {"schema": _named("Request")}, "text/csv": {"schema": TEXT}}
    return {
        "summary": "Forecast the steps after the last row",
        "parameters": [query],
        "requestBody": {"required": True, "content": bodies},
        "responses": {"200": _answer("The forecast", "Forecast"), **failures},
    }


def _get(summary: str, name: str, failures: dict[str, Any]) -> dict[str, Any]:
    return {"summary": summary, "responses": {"200": _answer(summary, name), **failures}}


def _answer(words: str, name: str) -> dict[str, Any]:
    return {"description": words, "content": {JSON: {"schema": _named(name)}}}


def _named(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: dict[str, Any], *, closed: bool = False) -> dict[str, Any]:
    made = {"type": "object", "properties": properties, "required": list(properties)}
    return {**made, "additionalProperties": False} if closed else made


def _schemas(told: dict[str, Any], most_rows: int) -> dict[str, Any]:
    layout = told["layout"]
    cells: dict[str, Any] = {}
    for name in (*(layout["variables"] or ()), layout["target"]):
        kind = ["string", "number"] if name in layout["levels"] else ["number"]
        cells[name] = {"type": [*kind, "null"]}
    places = [*layout["time"], *([layout["series"]] if layout["series"] else [])]
    row = {**{name: PLACE for name in places}, **cells}
    rows = {"type": "array", "items": _object(row), "minItems": 1, "maxItems": most_rows}
    ahead = {**{name: PLACE for name in places}, **{n: cells[n] for n in layout["known"]}}
    future = {"type": "array", "items": _object(ahead), "maxItems": most_rows}
    request = _object({"rows": rows}, closed=True)
    request["properties"] |= {"steps": {**WHOLE, "maximum": told["horizon"]}}
    if layout["known"]:
        request["properties"] |= {"future": future}
    entry = {"origin": PLACE, "step": WHOLE, "time": PLACE, "mean": {"type": "number"}}
    texts = {"type": "array", "items": TEXT}
    entries = {"type": "array", "items": _object({**entry, "median": {"type": "number"}})}
    return {
        "Request": request,
        "Forecast": _object({"target": TEXT, "rows": entries, "warnings": texts}),
        "Model": {"type": "object"},
        "Health": _object({"status": TEXT, "version": TEXT}),
        "Error": _object({"error": TEXT}, closed=True),
    }
