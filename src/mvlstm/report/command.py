"""The commands that fit a model, for a person to run again or to change.

They stand here and not in `cli`, which uses them too: a page shows them whoever asked for it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

COLUMNS = ("time", "variables", "exclude", "known", "categorical")  # options that name columns
FLAGS = {"l2_sum": ("--l2-mean", "--l2-sum")}  # what says no, and what says yes
# the same with every preset, so that it need not be said
DEFAULTS = {"missing": "error", "gaps": "error", "decimal": ".", "horizon": 1, "preset": "default"}


def fit_command(file: str, options: Mapping[str, Any], *, out: str) -> str:
    """Return the command that fits the model to a file.

    ``options`` are columns, rows and settings, named as arguments of `MVLSTM` and its ``fit`` are,
    in the order in which they are written. None, and what the command does anyway, are left out.

    Examples
    --------
    >>> options = {"target": "y", "known": ["a b", "c"], "horizon": 1, "l2_sum": True, "seed": 3}
    >>> fit_command("air.csv", options, out="air.safetensors")
    "mvlstm fit air.csv --target y --known 'a b,c' --l2-sum --seed 3 --out air.safetensors"
    """
    words = [word for name, value in options.items() for word in _option(name, value)]
    return shlex.join(["mvlstm", "fit", file, *words, "--out", out])


def repeat_commands(options: Mapping[str, Any], *, future: bool) -> str:
    """Return the commands that fit a model and write its report, files to be named by the reader.

    With ``future`` the report reads what is known ahead from a file.
    """
    fit = fit_command("DATA.csv", options, out="model.safetensors")
    ahead = " --future FUTURE.csv" if future else ""
    return f"{fit}\nmvlstm report model.safetensors DATA.csv{ahead} --out report.html"


def _option(name: str, value: Any) -> list[str]:
    """Return the words that say one thing, none if it need not be said."""
    option = f"--{name.replace('_', '-')}"
    if name in COLUMNS:
        texts = [] if value is None else _columns(name, value)
        return [word for text in texts for word in (option, text)]
    if np.ndim(value) == 1:
        return [option, ",".join(map(str, value))]
    if value is None or (name in DEFAULTS and value == DEFAULTS[name]):
        return []
    if name in FLAGS:
        return [FLAGS[name][bool(value)]]
    return [option, str(value)]


def _columns(option: str, names: Sequence[str]) -> list[str]:
    """Return the texts that name columns: one for all of them, unless it would be misread."""
    if not names:
        return [""] if option == "variables" else []  # none but the target
    plain = all(name and name == name.strip() and "," not in name for name in names)
    return [",".join(names)] if plain else list(names)
