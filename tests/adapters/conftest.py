"""Marks these tests, and keeps figures off the screen and MLflow's runs in a folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RULES = (  # the last comes first
    "ignore:The intervals rest on:UserWarning",  # most tests fit small tables
    "error::mvlstm.errors.MVLSTMWarning",
    "ignore",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder; what other libraries warn of is theirs."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.adapters)
            for rule in RULES:
                item.add_marker(pytest.mark.filterwarnings(rule), append=False)


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file://{tmp_path}/runs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_ID", raising=False)  # of another test's folder
    if (fluent := sys.modules.get("mlflow.tracking.fluent")) is not None:
        monkeypatch.setattr(fluent, "_active_experiment_id", None)
