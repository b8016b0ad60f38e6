"""What every test may count on."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

# A shell that starts the tests in the background lets them ignore Ctrl-C, which some of them send.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out tests of adapters, which import other libraries, unless ``-m adapters`` asks."""
    outside = collection_path == Path(__file__).parent / "adapters"
    return True if outside and config.option.markexpr != "adapters" else None
