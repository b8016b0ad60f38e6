"""The results that the reports of these tests show."""

from __future__ import annotations

import pytest

from made_results import make_report


@pytest.fixture(scope="module")
def data():
    return make_report()
