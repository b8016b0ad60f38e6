"""Results as arrays and plain values: what a worker sends back holds no code and no model."""

from __future__ import annotations

import datetime
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

OURS = "mvlstm."
LEAVES = (
    *(bool, int, float, str, bytes, type(None), np.ndarray, np.generic, pd.Index, pd.Series),
    *(pd.Timestamp, pd.Timedelta, pd.Period, datetime.date, datetime.timedelta),
)


class Parts(dict[str, Any]):
    """The fields of a dataclass or a NamedTuple, by name, and the name of its class."""


def to_plain(value: Any) -> Any:
    """Take results apart: classes of this package into their fields, down to arrays.

    Examples
    --------
    >>> from mvlstm.transforms import Transform
    >>> to_plain((Transform("log1p"), 2))[0]["name"]
    'log1p'
    >>> from_plain(to_plain(Transform("log1p")))
    Transform(name='log1p', center=0.0, scale=1.0)
    """
    if isinstance(value, LEAVES):
        return value
    if type(value) in (tuple, list):
        return type(value)(map(to_plain, value))
    if type(value) is dict:
        return {key: to_plain(one) for key, one in value.items()}
    value = value.settled() if hasattr(value, "settled") else value  # not what finds it, it
    cls = type(value)
    names = getattr(cls, "_fields", None)  # of a NamedTuple
    if is_dataclass(cls) and cls.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        names = tuple(one.name for one in fields(cls) if one.init)
    if names is not None and cls.__module__.startswith(OURS):
        own = {name: to_plain(getattr(value, name)) for name in names}
        return Parts(own, __class__=f"{cls.__module__}:{cls.__qualname__}")
    raise TypeError(f"a {cls.__name__} is not sent between machines")


def from_plain(value: Any) -> Any:
    """Put together again what `to_plain` took apart."""
    if isinstance(value, Parts):
        module, _, name = value["__class__"].partition(":")
        assert module.startswith(OURS), module
        cls = getattr(import_module(module), name)
        return cls(**{k: from_plain(v) for k, v in value.items() if k != "__class__"})
    if type(value) in (tuple, list):
        return type(value)(map(from_plain, value))
    return {k: from_plain(v) for k, v in value.items()} if type(value) is dict else value
