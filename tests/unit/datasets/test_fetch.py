"""Downloads: verified contents, nothing half-written, one clear message for every fault."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mvlstm import datasets
from mvlstm.datasets import catalogue as _catalogue
from mvlstm.datasets.download import fetch, fetchable
from mvlstm.errors import DataError, ParameterError

GOOD = b"date,Appliances\n2016-01-11 17:00:00,60\n"
FILE = "energy/energydata_complete.csv"


def archive(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as stored:
        for name, data in files.items():
            stored.writestr(name, data)
    return buffer.getvalue()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


class BreaksOff(BaseHTTPRequestHandler):
    """Promises more than it sends."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b"PK few bytes")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    place = tmp_path / "server"
    place.mkdir()
    (place / "good.zip").write_bytes(archive({"data/energydata_complete.csv": GOOD, "x": b"1"}))
    inner = archive({"energydata_complete.csv": GOOD})
    (place / "nested.zip").write_bytes(archive({"NEW.zip": inner}))
    (place / "other.zip").write_bytes(archive({"energydata_complete.csv": GOOD + b"1,2\n"}))
    (place / "empty.zip").write_bytes(archive({"readme.txt": b"nothing"}))
    (place / "page.zip").write_bytes(b"<html>moved</html>")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(place))) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()
        thread.join()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder, and a catalogue that knows our small file as the published one."""
    info = _catalogue.CATALOGUE["energy"]
    known = replace(info, files={FILE: hashlib.sha256(GOOD).hexdigest()})
    monkeypatch.setitem(_catalogue.CATALOGUE, "energy", known)
    monkeypatch.setenv("MVLSTM_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.mark.parametrize("name", ["good.zip", "nested.zip"])
def test_a_file_is_downloaded_verified_and_kept(server: str, folder: Path, name: str) -> None:
    heard: list[str] = []
    written = fetch("energy", source=f"{server}/{name}", notice=heard.append)
    assert written == [folder / FILE] and written[0].read_bytes() == GOOD
    assert heard == [f"energy: getting {server}/{name}"]
    assert datasets.is_present("energy")
    assert fetch("energy", source="http://127.0.0.1:9/none.zip") == []  # there already


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("other.zip", "not the file the package knows"),
        ("empty.zip", "lacks energydata_complete.csv"),
        ("page.zip", "not a whole zip archive"),
        ("none.zip", "cannot be downloaded"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(
    server: str, folder: Path, name: str, words: str
) -> None:
    with pytest.raises(DataError, match=words):
        fetch("energy", source=f"{server}/{name}")
    assert not folder.exists()


def test_an_earlier_file_survives_a_bad_download(server: str, folder: Path) -> None:
    fetch("energy", source=f"{server}/good.zip")
    with pytest.raises(DataError):
        fetch("energy", source=f"{server}/other.zip", force=True)
    assert (folder / FILE).read_bytes() == GOOD


def test_a_damaged_file_is_reported_and_replaced(server: str, folder: Path) -> None:
    fetch("energy", source=f"{server}/good.zip")
    (folder / FILE).write_bytes(GOOD[:-5])
    with pytest.raises(DataError, match=r"not the published one.*fetch..energy., force=True"):
        fetch("energy")
    fetch("energy", source=f"{server}/good.zip", force=True)
    datasets.verify("energy")


def test_an_archive_damaged_inside_is_told_from_a_fault(folder: Path, tmp_path: Path) -> None:
    whole = archive({"energydata_complete.csv": bytes(range(256)) * 40})
    start = whole.index(b"energydata_complete.csv") + len("energydata_complete.csv")
    bad = bytearray(whole)
    bad[start : start + 20] = b"\xff" * 20  # the packed bytes, not the directory
    (tmp_path / "bad.zip").write_bytes(bad)
    with pytest.raises(DataError, match="not a whole zip archive"):
        fetch("energy", source=str(tmp_path / "bad.zip"))
    assert not folder.exists()


def test_an_address_that_is_none_is_told_from_a_fault(folder: Path) -> None:
    with pytest.raises(DataError, match="cannot be downloaded from http://exa mple/"):
        fetch("energy", source="http://exa mple/energy.zip")


def test_without_a_network_the_message_tells_the_way_out(folder: Path) -> None:
    with pytest.raises(DataError) as caught:
        fetch("energy", source="http://127.0.0.1:9/energy.zip")
    message = str(caught.value)
    assert "Check the network" in message and "source='FILE.zip'" in message
    assert "archive.ics.uci.edu/dataset/374" in message


def test_a_download_that_breaks_off_is_noticed(folder: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), BreaksOff) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{http.server_address[1]}/energy.zip"
        with pytest.raises(DataError, match=r"broke off|cannot be downloaded"):
            fetch("energy", source=url)
        http.shutdown()
        thread.join()
    assert not folder.exists()


def test_an_archive_on_disk_will_do(server: str, folder: Path, tmp_path: Path) -> None:
    written = fetch("energy", source=str(tmp_path / "server" / "good.zip"))
    assert written[0].read_bytes() == GOOD
    with pytest.raises(DataError, match=r"none.zip' cannot be read"):
        fetch("energy", source=str(tmp_path / "none.zip"), force=True)


def test_what_cannot_be_had_is_named(folder: Path) -> None:
    assert fetchable() == ("pm25", "energy", "sml2010")
    with pytest.raises(ParameterError, match="made by the package"):
        fetch("synthetic")
    with pytest.raises(ParameterError, match=r"cannot be downloaded.*folder="):
        fetch("plant")


def test_the_plant_is_read_from_any_folder(tmp_path: Path) -> None:
    beside = Path(__file__).resolve().parents[4] / "shared" / "data" / "plant"
    if not beside.is_dir():
        pytest.skip("the plant's files are not here")
    data = datasets.load("plant", folder=beside)
    assert data.frame.shape == (6954, 8) and data.target == "power"
    with pytest.raises(DataError, match="plant-temperature"):
        datasets.load("plant", folder=tmp_path)
    for file in beside.glob("*.csv"):
        text = file.read_text().replace("01/01/2012", "first of May", 1)
        (tmp_path / file.name).write_text(text)
    with pytest.raises(DataError, match="cannot be read"):
        datasets.load("plant", folder=tmp_path)
