"""The words of the command that fits a model."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
import pytest

from mvlstm.cli.words import named_columns
from mvlstm.report.command import COLUMNS, fit_command


def words_of(options: dict[str, Any]) -> list[str]:
    words = shlex.split(fit_command("my table.csv", options, out="m.safetensors"))
    assert words[:3] == ["mvlstm", "fit", "my table.csv"]
    assert words[-2:] == ["--out", "m.safetensors"]
    return words[3:-2]


@pytest.mark.parametrize("value", [True, np.bool_(True)])
def test_flags_are_said_either_way(value: Any) -> None:
    assert words_of({"l2_sum": value}) == ["--l2-sum"]
    assert words_of({"l2_sum": not value}) == ["--l2-mean"]


def test_what_the_command_does_anyway_is_not_said() -> None:
    options = {"missing": "error", "gaps": "close", "sep": None, "decimal": ".", "horizon": 1}
    assert words_of(options | {"preset": "default"}) == ["--gaps", "close"]
    assert words_of({"calendar": "auto", "decimal": ",", "seed": 0}) == [
        *("--calendar", "auto"),
        *("--decimal", ","),
        *("--seed", "0"),
    ]
    assert words_of({"calendar": np.array(["hour", "weekday"])}) == ["--calendar", "hour,weekday"]


@pytest.mark.parametrize("option", COLUMNS)
@pytest.mark.parametrize(
    "names", [["a"], ["a", "b c"], ["a,b", "c"], [" a", "b"], ["x'; rm", "-y"], []]
)
def test_columns_are_read_as_they_were(option: str, names: list[str]) -> None:
    words = words_of({option: names})
    assert set(words[::2]) <= {f"--{option}"}
    assert named_columns(names, words[1::2]) == names
