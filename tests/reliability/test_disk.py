"""Disk full, read-only folder, vanished input: one message, no half file, earlier files stand."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import mvlstm as mv
from mvlstm.cli.app import app
from mvlstm.errors import DataError
from mvlstm.storage import write_atomic
from mvlstm.train.checkpoint import NAME
from reliability.jobs import SETTINGS, make_table

Fail = Callable[[pytest.MonkeyPatch], None]


def _full_on_flush(patch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    patch.setattr(os, "fsync", full)


def _full_on_write(patch: pytest.MonkeyPatch) -> None:
    import builtins

    plain = builtins.open

    def opened(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        stream = plain(file, mode, *args, **kwargs)
        if "x" in mode:

            class Full:
                def __enter__(self) -> Full:
                    return self

                def __exit__(self, *_: object) -> None:
                    stream.close()

                def fileno(self) -> int:
                    return int(stream.fileno())

                def write(self, data: bytes) -> int:
                    stream.write(data[: len(data) // 2])
                    raise OSError(errno.ENOSPC, "No space left on device")

            return Full()
        return stream

    patch.setattr("mvlstm.storage.open", opened, raising=False)


def _read_only(patch: pytest.MonkeyPatch) -> None:
    def refuse(path: Any, mode: str = "r", **options: Any) -> Any:
        if mode == "rb":
            return open(path, mode, **options)
        raise PermissionError(errno.EACCES, "Permission denied")

    patch.setattr("mvlstm.storage.open", refuse, raising=False)


def _no_rename(patch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    patch.setattr(os, "replace", refuse)


FAILURES: dict[str, tuple[Fail, str]] = {
    "full while writing": (_full_on_write, "No space left"),
    "full while flushing": (_full_on_flush, "No space left"),
    "read-only": (_read_only, "Permission denied"),
    "rename fails": (_no_rename, "Input/output error"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    cause, words = FAILURES[failure]
    old = tmp_path / "old.bin"
    old.write_bytes(b"earlier")
    with monkeypatch.context() as patch:
        cause(patch)
        for path in (old, tmp_path / "new.bin"):
            with pytest.raises(DataError, match=f"{path.name}' cannot be written: {words}"):
                write_atomic(path, b"later" * 1000)
    assert [path.name for path in tmp_path.iterdir()] == ["old.bin"]
    assert old.read_bytes() == b"earlier"


@pytest.mark.parametrize("failure", FAILURES)
def test_a_checkpoint_that_cannot_be_written_leaves_the_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    cause, words = FAILURES[failure]
    table = make_table(300)
    mv.MVLSTM(**SETTINGS).fit(table, "y", checkpoint=tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert NAME in before
    with monkeypatch.context() as patch:
        cause(patch)
        with pytest.raises(DataError, match=words):
            mv.MVLSTM(**SETTINGS | {"seed": 1}).fit(table, "y", checkpoint=tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("files")
    make_table(300).to_csv(folder / "t.csv", index=False)
    model = mv.MVLSTM(**SETTINGS | {"max_epochs": 1}).fit(make_table(300), "y", test=0.2)
    model.save(folder / "m.safetensors")
    return folder / "m.safetensors", folder / "t.csv"


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_commands_on_a_full_disk(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    out = tmp_path / f"next.{ending}"
    out.write_text("earlier")
    with monkeypatch.context() as patch:
        _full_on_write(patch)
        done = CliRunner().invoke(app, ["forecast", *map(str, files), "--out", str(out)])
    assert done.exit_code == 1
    assert done.stderr.count("error:") == 1 and "No space left" in done.stderr
    assert out.read_text() == "earlier"
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_an_input_that_vanishes(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "t.csv"
    data.write_bytes(files[1].read_bytes())
    import pandas as pd

    plain = pd.read_csv

    def read(*args: Any, **kwargs: Any) -> Any:
        data.unlink()  # between the look at its head and the reading of its rows
        return plain(*args, **kwargs)

    monkeypatch.setattr(pd, "read_csv", read)
    done = CliRunner().invoke(app, ["forecast", str(files[0]), str(data)])
    assert done.exit_code == 2
    assert "cannot be read: No such file or directory" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="mounting needs root")
def test_a_disk_that_is_really_full(files: tuple[Path, Path], tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this system does not allow mounting")
    try:
        out = tmp_path / "m.safetensors"
        out.write_bytes(b"earlier")
        with pytest.raises(DataError, match="No space left"):
            write_atomic(out, b"x" * 100_000)
        assert out.read_bytes() == b"earlier"
        assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
