"""The methods a comparison knows, and the settings each gets within a budget."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mvlstm._words import did_you_mean
from mvlstm.errors import ParameterError
from mvlstm.evaluate.own_classes import own_class
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.registry import FORECASTERS, Entry, forecaster_class

Budget = Literal["quick", "full"]
BUDGETS: tuple[Budget, ...] = ("quick", "full")
QUICK_WINDOWS = 60_000  # windows each network sees in a quick comparison, repeats counted
QUICK_EPOCHS = (3, 20)  # fewest and most epochs that may come to


@dataclass(frozen=True)
class Method:
    """One row of a comparison before it is run.

    Parameters
    ----------
    label : str
        Name in the table.
    forecaster : str
        Class in the registry, or one's own: FILE.py:CLASS or MODULE:CLASS.
    preset : str, optional
        Class method that builds it, such as ``paper``.
    entry : Entry
        What the registry says of it: settings within each budget, and what they try.
    """

    label: str
    forecaster: str
    preset: str | None = None
    entry: Entry = field(default_factory=lambda: Entry(""))

    @property
    def kind(self) -> type[AbstractForecaster]:
        """The forecaster's class."""
        return find_class(self.forecaster)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the constructor's arguments."""
        return tuple(self.defaults)

    @property
    def defaults(self) -> dict[str, Any]:
        """The constructor's arguments with their defaults."""
        arguments = inspect.signature(self.kind).parameters
        return {name: argument.default for name, argument in arguments.items()}

    def known(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return those settings of many methods that the constructor has an argument for."""
        taken = self.parameters
        return {name: value for name, value in settings.items() if name in taken}

    def create(self, settings: Mapping[str, Any]) -> AbstractForecaster:
        """Return its forecaster with these settings, not fitted; one it does not know fails.

        Examples
        --------
        >>> METHODS["indep"].create({"window": 7}).gates
        'variable'
        """
        cls: Any = self.kind
        model: AbstractForecaster = (getattr(cls, self.preset) if self.preset else cls)(**settings)
        return model


def find_class(name: str) -> type[AbstractForecaster]:
    """Return a class by its public name, or by FILE.py:CLASS or MODULE:CLASS."""
    return own_class(name) if ":" in name else forecaster_class(name)


def _methods() -> Iterator[tuple[str, Method]]:
    """Yield every method of the registry by its key, each followed by its presets."""
    for name, entry in FORECASTERS.items():
        plain = Method(name, name, None, entry)
        yield entry.key or name.lower(), plain
        for preset, label in entry.presets.items():
            yield preset, replace(plain, label=label, preset=preset)


METHODS: dict[str, Method] = dict(_methods())


def find_method(key: str) -> Method:
    """Return one of `METHODS`, or the method that a class of one's own is: FILE.py:CLASS.

    Examples
    --------
    >>> find_method("ar").label, find_method("mvlstm.methods.linear:ENET").label
    ('AR', 'ENET')
    """
    if key in METHODS:
        return METHODS[key]
    return Method(find_class(key).__name__, key)


def choose_methods(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the methods' keys; "all" stands for every one, and persistence is always there.

    Examples
    --------
    >>> choose_methods(["ar", "GBT"])
    ('ar', 'gbt', 'persistence')
    """
    given: Iterable[str] = names.split(",") if isinstance(names, str) else names
    keys: list[str] = []
    for name in given:
        if not isinstance(name, str):
            raise ParameterError(
                f"methods are given by name, not as {name!r}; choose from all, "
                f"{', '.join(METHODS)}. For a forecaster of your own settings use mvlstm.backtest."
            )
        key = name.strip().lower()
        if key == "all":
            keys += METHODS
        elif key in METHODS:
            keys.append(key)
        elif key:
            raise ParameterError(
                f"There is no method '{name.strip()}'; choose from all, {', '.join(METHODS)}."
                f"{did_you_mean(key, METHODS)}"
            )
    if not keys:
        raise ParameterError(f"No method is named; choose from all, {', '.join(METHODS)}.")
    return tuple(dict.fromkeys([*keys, "persistence"]))


def build(
    key: str, *, budget: Budget, n_train: int, shared: dict[str, Any]
) -> tuple[AbstractForecaster, str]:
    """Return a method's forecaster and its tuning budget in words.

    Parameters
    ----------
    key : str
        One of `METHODS`.
    budget : {"quick", "full"}
    n_train : int
        Training windows, from which the epochs of a quick run follow.
    shared : dict
        Settings for every method that has an argument of that name.
    """
    method = METHODS[key]
    settings = method.known(shared)
    settings |= method.entry.quick if budget == "quick" else method.entry.full
    if budget == "quick" and method.kind.ensemble:
        settings["max_epochs"] = quick_epochs(n_train)
    model = method.create(settings)
    words = method.entry.words(budget)
    return model, words.format(epochs=model.get_params().get("max_epochs"))


def quick_epochs(n_train: int, *, windows: int = QUICK_WINDOWS, most: int = QUICK_EPOCHS[1]) -> int:
    """Return the epochs in which a network sees about this many windows, repeats counted.

    Examples
    --------
    >>> quick_epochs(29_000), quick_epochs(2_900)
    (3, 20)
    """
    least = QUICK_EPOCHS[0]
    return min(max(least, round(windows / max(n_train, 1))), most)
