"""The service of an exported model over HTTP: requests are checked, bounded and answered in JSON.

No request runs code, names a file or changes the model; an answer never holds a traceback.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mvlstm._version import __version__
from mvlstm._words import counted
from mvlstm.errors import DataError, MissingExtraError, MVLSTMError, ParameterError
from mvlstm.runtime.columns import Columns, as_columns, read_csv
from mvlstm.runtime.model import Runtime
from mvlstm.runtime.page import page
from mvlstm.runtime.schema import schema

FIELDS = ("rows", "future", "steps")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
SHORTEST = 16  # characters of a token
AT_ONCE = 2  # forecasts that are computed side by side
KEPT = ("version", "method", "target", "window", "horizon", "quantiles", "calibration", "transform")


@dataclass(frozen=True)
class Limits:
    """What a request may ask for at most."""

    most_bytes: int = 8 * 2**20
    most_rows: int = 20_000


class Refused(Exception):
    """A request that cannot be answered: a status of HTTP and one sentence or two."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


def run(
    runtime: Runtime,
    *,
    host: str,
    port: int,
    token: str | None = None,
    report: str | None = None,
    limits: Limits | None = None,
) -> None:
    """Answer requests until interrupted; on any host but this one only with a token."""
    check_access(host, token)
    if not 0 < port < 2**16:
        raise ParameterError(f"port={port} must lie between 1 and 65535.")
    try:
        import uvicorn
    except ImportError as error:
        raise _missing() from error
    made = application(runtime, token=token, report=report, limits=limits or Limits())
    uvicorn.run(made, host=host, port=port, log_level="info", server_header=False)


def check_access(host: str, token: str | None) -> None:
    """Raise `ParameterError` unless only this machine, or who has a token, gets an answer."""
    if token is not None and len(token) < SHORTEST:
        raise ParameterError(
            f"The token has {counted(len(token), 'character')}; use {SHORTEST} or more, such as "
            "those of: openssl rand -hex 32"
        )
    if host not in LOOPBACK and token is None:
        raise ParameterError(
            f"host={host!r} can be reached from other machines, which needs a token. Use "
            "token=..., or set MVLSTM_TOKEN."
        )


def _missing() -> MissingExtraError:
    return MissingExtraError(
        "The service needs starlette and uvicorn. Install them with: pip install 'mvlstm[serve]', "
        "or 'mvlstm-runtime[serve]' where torch is not to be installed"
    )


def application(
    runtime: Runtime, *, token: str | None = None, report: str | None = None, limits: Limits
) -> Any:
    """Return the service as an ASGI application.

    Parameters
    ----------
    runtime : Runtime
    token : str, optional
        That every request but for health must bring.
    report : str, optional
        HTML to show at the root, by default a page about the model.
    limits : Limits
    """
    try:
        from starlette.applications import Starlette
        from starlette.responses import HTMLResponse, JSONResponse
        from starlette.routing import Route
    except ImportError as error:
        raise _missing() from error
    from anyio import CapacityLimiter, to_thread

    slots = CapacityLimiter(AT_ONCE)
    told, described = described_model(runtime), schema(runtime.told, limits.most_rows)
    shown = report if report is not None else page(told)

    async def forecast(request: Any) -> Any:
        body = await _body(request, limits.most_bytes)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        query = dict(request.query_params)
        answer = await to_thread.run_sync(
            lambda: answered(runtime, body, kind, query, limits.most_rows), limiter=slots
        )
        return JSONResponse(answer)

    async def health(request: Any) -> Any:
        return JSONResponse({"status": "ok", "version": __version__})

    async def model(request: Any) -> Any:
        return JSONResponse(told)

    async def openapi(request: Any) -> Any:
        return JSONResponse(described)

    async def root(request: Any) -> Any:
        return HTMLResponse(shown)

    def checked(answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def ask(request: Any) -> Any:
            _check_token(request.headers.get("authorization", ""), token)
            return await answer(request)

        return ask

    def refused(request: Any, error: Any) -> Any:
        status = getattr(error, "status", getattr(error, "status_code", 500))
        words = getattr(error, "message", None) or getattr(error, "detail", "")
        more = {"WWW-Authenticate": "Bearer"} if status == 401 else getattr(error, "headers", None)
        return JSONResponse({"error": str(words)}, status, more)

    def fault(request: Any, error: Any) -> Any:
        return JSONResponse({"error": "A fault in mvlstm: the log of the service has more."}, 500)

    from starlette.exceptions import HTTPException

    own = {"/": root, "/model": model, "/openapi.json": openapi}
    routes = [Route(path, checked(answer), methods=["GET"]) for path, answer in own.items()]
    routes.append(Route("/health", health, methods=["GET"]))
    routes.append(Route("/forecast", checked(forecast), methods=["POST"]))
    handlers: dict[Any, Any] = {Refused: refused, HTTPException: refused, Exception: fault}
    return Starlette(routes=routes, exception_handlers=handlers)


def _check_token(given: str, token: str | None) -> None:
    if token is not None and not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
        raise Refused(401, "A token is needed: send the header Authorization: Bearer TOKEN.")


async def _body(request: Any, most: int) -> bytes:
    """Read a body, unless it is too large."""
    length = request.headers.get("content-length", "0")
    parts, size = [], 0
    if not length.isdigit() or int(length) <= most:
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > most:
                break
        else:
            return b"".join(parts)
    raise Refused(413, f"The request has more than {most:,} bytes. Send the latest rows alone.")


# --------------------------------------------------------------------------------------- answering


def answered(
    runtime: Runtime, body: bytes, kind: str, query: dict[str, str], most_rows: int
) -> dict[str, Any]:
    """Return the answer to a request for a forecast; `Refused` if there is none."""
    try:
        table, future, steps = _asked(runtime, body, kind, query, most_rows)
        frame, warnings = runtime.told_forecast(table, future, steps)
    except MVLSTMError as error:
        raise Refused(422, str(error)) from error
    columns = {name: [_plain(one) for one in values.tolist()] for name, values in frame.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {"target": runtime.told["target"], "rows": rows, "warnings": warnings}


def _plain(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value


def _asked(
    runtime: Runtime, body: bytes, kind: str, query: dict[str, str], most_rows: int
) -> tuple[Columns, Columns | None, int | None]:
    """Read rows, the future's rows and steps from JSON or CSV."""
    window, used = runtime.told["window"], runtime.wanted.read
    if kind not in ("application/json", "text/csv"):
        raise Refused(
            415, f"Content-Type {kind[:80]!r} is not known. Send application/json or text/csv."
        )
    try:
        text = body.decode("utf-8-sig")
    except UnicodeError as error:
        raise Refused(400, f"The body is not UTF-8 text: {error}.") from error
    if kind == "text/csv":
        if query.keys() - {"steps"}:
            raise Refused(422, "Of the query only steps is known. Leave the rest out.")
        steps = query.get("steps")
        table = read_csv(text, "The body")
        _check_few(table.rows, window, most_rows)
        return table, None, None if steps is None else _whole(steps)
    if query:
        raise Refused(422, "With JSON the query must be empty. Put steps into the body.")
    asked = _json(text)
    most = most_rows, window
    rows, future = (_table(asked.get(name), name, used, *most) for name in ("rows", "future"))
    if rows is None:
        raise Refused(422, "The field 'rows' is missing: the latest rows, as a list of objects.")
    steps = asked.get("steps")
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int)):
        raise Refused(422, f"steps={steps!r} must be a whole number, 1 or more.")
    return rows, future, steps


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Refused(422, f"steps={text[:40]!r} must be a whole number, 1 or more.")
    return int(text)


def _json(text: str) -> dict[str, Any]:
    def constant(name: str) -> None:
        raise ValueError(f"{name} is not a number in JSON; send null for a missing value")

    try:
        asked = json.loads(text, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"The body is not JSON: {str(error)[:200]}.") from error
    if not isinstance(asked, dict) or asked.keys() - set(FIELDS):
        raise Refused(422, "The body must be an object with the fields rows, future and steps.")
    return asked


def _table(
    given: Any, name: str, used: Sequence[str], most_rows: int, window: int
) -> Columns | None:
    """Return the columns used of rows given as a list of objects, or as an object of lists."""
    if given is None:
        return None
    by_row = isinstance(given, list) and all(isinstance(row, dict) for row in given)
    by_column = isinstance(given, dict) and all(isinstance(one, list) for one in given.values())
    if not by_row and not by_column:
        raise Refused(
            422, f"{name!r} must be a list of objects, one per row, or an object of lists."
        )
    if by_row:
        _check_few(len(given), window, most_rows)
        found = as_columns([{n: row[n] for n in used if n in row} for row in given])
    else:
        found = as_columns(given)
        _check_few(found.rows, window, most_rows)
    for column, values in found.values.items():
        nested = [one for one in values.tolist() if isinstance(one, list | dict)]
        if nested:
            raise DataError(
                f"Column '{column}' of {name!r} holds a {type(nested[0]).__name__} where a number "
                "or text is needed. Send one value per cell."
            )
    return found


def _check_few(rows: int, window: int, most: int) -> None:
    if rows > most:
        raise Refused(
            413,
            f"{rows:,} rows are more than the {most:,} allowed. Send the latest alone; a forecast "
            f"reads {window}, and some more to see how sure it is.",
        )


def described_model(runtime: Runtime) -> dict[str, Any]:
    """Return what `GET /model` tells: columns, settings, scores, importance."""
    told, layout = runtime.told, runtime.told["layout"]
    columns = [
        {
            "name": name,
            "role": "target" if name == layout["target"] else "variable",
            "type": "text" if name in layout["levels"] else "number",
            "levels": layout["levels"].get(name),
            "known_ahead": name in layout["known"],
        }
        for name in runtime.wanted.columns
    ]
    return {
        **{name: told[name] for name in KEPT},
        "columns": columns,
        "time": layout["time"] or [layout["index_name"] or "time"],
        "series": layout["series"],
        "names": told["inputs"].get("series", {}).get("names"),
        "fitted": {name: _text(time) for name, time in told["parts"].items()},
        "settings": told["settings"],
        "scores": told["scores"],
        "importance": told["importance"],
        "notes": told["notes"],
    }


def _text(time: Any) -> Any:
    return time["time"] if isinstance(time, dict) else int(np.int64(time))
