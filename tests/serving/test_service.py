"""The service: what it answers, what it refuses and how, with what access, and under load."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mvlstm.errors import DataError, ParameterError
from mvlstm.runtime import load
from mvlstm.runtime.service import Limits, application, check_access
from processes import LONG, wait_for
from serving.conftest import fitted, free_port, weather

pytest.importorskip("starlette")
pytest.importorskip("httpx2")
from starlette.testclient import TestClient

TOKEN = "0123456789abcdef"
ROWS = 60


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A model with something known ahead, and its exported file."""
    path = tmp_path_factory.mktemp("served") / "model.onnx"
    made = fitted("AR", weather(), horizon=2, time="time", known=["holiday"])
    made.export(path, table=weather())
    return made, path


@pytest.fixture(scope="module")
def client(model: tuple[Any, Path]) -> TestClient:
    return TestClient(
        application(load(model[1]), limits=Limits(most_bytes=50_000, most_rows=200)),
        raise_server_exceptions=False,
    )


def table() -> pd.DataFrame:
    """The latest rows, and two whose target is not known yet."""
    rows = weather().iloc[-ROWS:].copy()
    rows.loc[rows.index[-2:], "y"] = float("nan")
    return rows


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    plain = frame.reset_index().astype({"time": str}).astype(object)
    records: list[dict[str, Any]] = plain.where(plain.notna(), None).to_dict(orient="records")
    return records


def test_a_forecast_comes_back_for_json_and_csv(
    model: tuple[Any, Path], client: TestClient
) -> None:
    frame = table()
    wanted = model[0].forecast(frame).to_frame()
    rows, columns = rows_of(frame), frame.reset_index().astype({"time": str}).to_dict("list")
    past, later = rows[:-2], [{k: row[k] for k in ("time", "holiday")} for row in rows[-2:]]
    columns = {name: [None if v != v else v for v in values] for name, values in columns.items()}
    answers = [
        client.post("/forecast", json={"rows": rows}),
        client.post("/forecast", json={"rows": columns}),
        client.post("/forecast", json={"rows": past, "future": later}),
        client.post("/forecast", content=frame.to_csv(), headers={"content-type": "text/csv"}),
    ]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert found["target"] == "y" and found["warnings"] == []
        assert [row["time"] for row in found["rows"]] == [t.isoformat() for t in wanted["time"]]
        for name in ("mean", "median", "q05", "q95"):
            got = [row[name] for row in found["rows"]]
            assert got == pytest.approx(wanted[name].tolist(), rel=1e-4)
    one = client.post("/forecast", json={"rows": rows, "steps": 1}).json()["rows"]
    assert [row["step"] for row in one] == [1]


def test_the_model_tells_about_itself(client: TestClient) -> None:
    assert client.get("/health").json()["status"] == "ok"
    told = client.get("/model").json()
    assert [one["name"] for one in told["columns"]] == ["temp", "holiday", "wind", "y"]
    assert told["columns"][2]["levels"] == ["N", "S", "W"] and told["columns"][1]["known_ahead"]
    assert told["scores"]["scores"]["AR"]["rmse"] > 0 and len(told["importance"]) == 4
    assert told["settings"]["horizon"] == 2
    page = client.get("/")
    assert page.headers["content-type"].startswith("text/html") and "Forecasts of y" in page.text
    described = client.get("/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    assert set(described["paths"]) == {"/forecast", "/model", "/health", "/openapi.json", "/"}


def body(**changes: Any) -> dict[str, Any]:
    return {"rows": rows_of(table()), **changes}


BAD: dict[str, tuple[dict[str, Any], int, str]] = {
    "no JSON": ({"content": b"{", "kind": "application/json"}, 400, "The body is not JSON"),
    "deep": ({"content": b"[" * 20_000, "kind": "application/json"}, 400, "The body is not JSON"),
    "NaN": ({"content": b'{"rows": NaN}', "kind": "application/json"}, 400, "send null"),
    "no text": ({"content": b"\xff\xfe\xff", "kind": "text/csv"}, 400, "is not UTF-8 text"),
    "another type": ({"content": b"x", "kind": "application/x-pickle"}, 415, "is not known"),
    "empty CSV": ({"content": b"", "kind": "text/csv"}, 422, "The body is empty"),
    "ragged CSV": (
        {"content": b"a,b\n1\n", "kind": "text/csv"},
        422,
        "2 column names and 1",
    ),
    "too large": ({"content": b"x" * 60_000, "kind": "text/csv"}, 413, "more than 50,000 bytes"),
    "too many rows": ({"json": {"rows": [{"y": 1}] * 201}}, 413, "201 rows are more than the 200"),
    "a list": ({"json": [1]}, 422, "The body must be an object"),
    "another field": ({"json": {"rows": [], "code": "1"}}, 422, "fields rows, future and steps"),
    "no rows": ({"json": {}}, 422, "The field 'rows' is missing"),
    "an empty table": ({"json": {"rows": []}}, 422, "missing"),
    "nested": ({"json": {"rows": [{"y": {"a": 1}}]}}, 422, "holds a dict where a number"),
    "rows of numbers": ({"json": {"rows": [1, 2]}}, 422, "must be a list of objects"),
    "steps": ({"json": body(steps=3)}, 422, "steps=3 is more than the 2"),
    "true steps": ({"json": body(steps=True)}, 422, "must be a whole number"),
    "text": ({"json": body(rows=[{**r, "temp": "hot"} for r in rows_of(table())])}, 422, "numeric"),
    "a number": (
        {"json": body(rows=[{**r, "temp": 10**400} for r in rows_of(table())])},
        422,
        "num",
    ),
}


@pytest.mark.parametrize("fault", BAD)
def test_bad_input_is_refused_with_one_clear_error(fault: str, client: TestClient) -> None:
    request, status, words = BAD[fault]
    kind = {"content-type": request["kind"]} if "kind" in request else {}
    sent = {name: request[name] for name in ("content", "json") if name in request}
    if fault == "a number":  # which the client's own JSON refuses to write
        text = json.dumps(sent.pop("json")).replace(str(10**400), "1" + "0" * 400)
        sent, kind = {"content": text}, {"content-type": "application/json"}
    answer = client.post("/forecast", headers=kind, **sent)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert words in error and len(error) < 600
    assert "Traceback" not in answer.text and "/src/" not in answer.text


def test_messages_are_those_of_forecast(model: tuple[Any, Path], client: TestClient) -> None:
    few, lacking = table().iloc[-5:], table().drop(columns="temp")
    for frame in (lacking, few.iloc[:3]):
        with pytest.raises(DataError) as wanted:
            model[0].forecast(frame.reset_index())
        answer = client.post("/forecast", json={"rows": rows_of(frame)})
        assert answer.status_code == 422
        assert answer.json()["error"].split(";")[0] == str(wanted.value).split(";")[0]


def test_other_paths_and_faults_leave_no_trace(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.get("/nowhere").status_code == 404 and client.get("/forecast").status_code == 405
    monkeypatch.setattr("mvlstm.runtime.service._asked", lambda *_: 1 / 0)
    answer = client.post("/forecast", json={})
    assert answer.status_code == 500
    assert answer.json() == {"error": "A fault in mvlstm: the log of the service has more."}


def test_a_token_is_asked_for(model: tuple[Any, Path]) -> None:
    guarded = TestClient(application(load(model[1]), token=TOKEN, limits=Limits()))
    assert guarded.get("/health").status_code == 200
    for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}):
        for answer in (
            guarded.get("/model", headers=given),
            guarded.post("/forecast", headers=given),
        ):
            assert answer.status_code == 401 and "token" in answer.json()["error"]
    fine = guarded.get("/model", headers={"authorization": f"Bearer {TOKEN}"})
    assert fine.status_code == 200


def test_other_machines_need_a_token() -> None:
    check_access("127.0.0.1", None)
    check_access("0.0.0.0", TOKEN)
    with pytest.raises(ParameterError, match="can be reached from other machines"):
        check_access("0.0.0.0", None)
    with pytest.raises(ParameterError, match="The token has 5 characters"):
        check_access("127.0.0.1", "short")


# ------------------------------------------------------------------------------------- the process


@pytest.fixture(scope="module")
def port(model: tuple[Any, Path]) -> Iterator[tuple[int, int]]:
    """The port of a service of its own process, and the process."""
    number = free_port()
    words = [sys.executable, "-m", "mvlstm", "serve", str(model[1]), "--port", str(number)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: process.poll() is not None or is_up(number))
        yield number, process.pid
    finally:
        process.terminate()
        process.wait(timeout=LONG)


def is_up(number: int) -> bool:
    try:
        return asked(number, "GET", "/health")[0] == 200
    except OSError:
        return False


def asked(number: int, method: str, path: str, sent: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", number, timeout=LONG)
    try:
        connection.request(method, path, sent, {"content-type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def memory(pid: int) -> float:
    """Megabytes that a process holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_a_thousand_requests_leave_no_error_and_no_memory(
    port: tuple[int, int], record_property: Any
) -> None:
    number, pid = port
    sent = json.dumps(body())
    with ThreadPoolExecutor(8) as pool:
        warm = list(pool.map(lambda _: asked(number, "POST", "/forecast", sent), range(100)))
        before = memory(pid)
        found = list(pool.map(lambda _: asked(number, "POST", "/forecast", sent), range(900)))
    assert {status for status, _ in warm + found} == {200}
    assert len({answer for _, answer in warm + found}) == 1
    grown = memory(pid) - before
    record_property("service", f"{before:.0f} MB after 100 requests, {grown:+.1f} after 900 more")
    assert grown < 20


def test_the_command_refuses_an_open_door(model: tuple[Any, Path]) -> None:
    words = [sys.executable, "-m", "mvlstm", "serve", str(model[1]), "--host", "0.0.0.0"]
    clean = {k: v for k, v in os.environ.items() if k != "MVLSTM_TOKEN"}
    done = subprocess.run(words, capture_output=True, text=True, env=clean, timeout=LONG)
    assert done.returncode == 2
    assert "needs a token" in done.stderr and done.stderr.count("error:") == 1
