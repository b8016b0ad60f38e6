"""The documents that promise something name tests that exist and every package installed."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def test_every_test_named_exists() -> None:
    text = (PROJECT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:tests|benchmarks)/[\w/.]+)`", text))
    assert len(named) >= 8
    assert [name for name in sorted(named) if not (PROJECT / name).exists()] == []


def test_every_pinned_package_is_accounted_for() -> None:
    text = (PROJECT / "SECURITY.md").read_text(encoding="utf-8").lower()
    words = set(re.findall(r"[\w-]+", text.partition("## dependencies")[2]))
    lines = (PROJECT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==")[0] for line in lines if line and not line.startswith("#")]
    assert [name for name in pins if name not in words] == []
