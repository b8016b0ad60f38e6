"""The scripts that docs/ecosystem.md shows run as they stand, and are short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "ecosystem.md"
SECTIONS = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
SCRIPTS = {
    one.splitlines()[0]: code
    for one in SECTIONS
    for code in re.findall(r"^```py\n(.*?)^```$", one, re.MULTILINE | re.DOTALL)
}


@pytest.mark.filterwarnings("ignore::mvlstm.errors.MVLSTMWarning")
@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = SCRIPTS[name]
    assert len(code.splitlines()) <= 25
    exec(compile(code, name, "exec", dont_inherit=True), {"__name__": "script"})
    assert capsys.readouterr().out


def test_every_library_has_a_script() -> None:
    assert len(SCRIPTS) == 5
