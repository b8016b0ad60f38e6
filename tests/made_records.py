"""Records of the benchmark as two runs of the same job may be compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CIRCUMSTANCES = ("timings", "written", "host")  # may differ between runs of the same job


def comparable(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record without what may differ between two runs of the same job."""
    return {name: value for name, value in record.items() if name not in CIRCUMSTANCES}
