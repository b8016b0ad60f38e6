"""Records of the benchmark as two runs of the same job may be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

CIRCUMSTANCES = ("timings", "written", "host")  # may differ between runs of the same job


def comparable(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without what may differ between two runs of the same job."""
    return {name: value for name, value in record.items() if name not in CIRCUMSTANCES}


def assert_alike(mine: Any, theirs: Any) -> None:
    """Compare nested lists and tables, numbers to eight digits."""
    if isinstance(theirs, dict):
        assert mine.keys() == theirs.keys()
        mine, theirs = list(mine.values()), [theirs[key] for key in mine]
    if isinstance(theirs, list):
        assert len(mine) == len(theirs)
        for one, other in zip(mine, theirs, strict=True):
            assert_alike(one, other)
    else:
        assert mine == (pytest.approx(theirs, rel=1e-8) if isinstance(theirs, float) else theirs)
