"""The methods a comparison knows, and the settings each gets within a budget."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mvlstm._words import did_you_mean
from mvlstm.errors import ParameterError
from mvlstm.evaluate.own_classes import own_class
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.registry import forecaster_class

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
    quick, full : dict
        Settings within each budget, besides what all methods share.
    tuning : dict
        What is chosen on validation rows, in words, by budget; ``{epochs}`` stands for the most.
    """

    label: str
    forecaster: str
    preset: str | None = None
    quick: dict[str, Any] = field(default_factory=dict)
    full: dict[str, Any] = field(default_factory=dict)
    tuning: dict[str, str] = field(default_factory=dict)

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


def _method(
    name: str, quick: str, full: str = "", *, short: dict[str, Any] | None = None, grid: str = ""
) -> Method:
    """Return a method whose class and label have one name, with what each budget tunes in words.

    ``short`` are the settings of a quick run; ``grid`` is the grid of a full one.
    """
    return Method(
        name,
        name,
        quick={"grid": "quick"} if grid else short or {},
        full={"grid": grid} if grid else {},
        tuning={"quick": quick, "full": full or quick},
    )


FEWER_ROWS = {"fit_rows": 3_000, "max_iterations": 30}
METHODS: dict[str, Method] = {
    "mvlstm": Method("MVLSTM", "MVLSTM"),
    "paper": Method("MV-LSTM (paper)", "MVLSTM", "paper"),
    "indep": Method("MV-Indep", "MVLSTM", "indep"),
    "fusion": Method("MV-Fusion", "MVLSTM", "fusion"),
    "lstm": Method("LSTM", "LSTM"),
    "dual": Method("DUAL", "DUAL"),
    "retain": Method("RETAIN", "RETAIN"),
    "clstm": _method(
        "CLSTM",
        "5 penalties, early stopping, at most {epochs} epochs",
        "8 penalties, early stopping, at most {epochs} epochs",
        short={"penalties": (1.0, 0.37, 0.14, 0.052, 0.019)},
    ),
    "strx": _method(
        "STRX",
        "likelihood on the last 3,000 training rows, 30 iterations",
        "likelihood on all training rows, 50 iterations",
        short=FEWER_ROWS,
    ),
    "arimax": _method(
        "ARIMAX",
        "orders by ACF and PACF; likelihood on the last 3,000 rows, 30 iterations",
        "orders by ACF and PACF; likelihood on all training rows, 50 iterations",
        short=FEWER_ROWS,
    ),
    "rf": _method("RF", "2 depths x 6 sizes", "8 depths x 6 sizes", grid="paper"),
    "xgt": _method(
        "XGT",
        "3 depths, 3 penalties, best of 200 rounds",
        "8 depths, 6 penalties, best of 200 rounds",
        grid="paper",
    ),
    "enet": _method("ENET", "18 pairs of penalties", "144 pairs of penalties", grid="extended"),
    "ar": _method("AR", "19 penalties"),
    "gbt": _method(
        "GBT", "2 settings, best of 300 rounds", "6 settings, best of 300 rounds", grid="default"
    ),
    "persistence": _method("Persistence", "nothing to tune"),
    "seasonal": _method("SeasonalPersistence", "the cycle, on training rows"),
}


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

    The epochs of a quick run follow from the number of training windows, ``n_train``. ``shared``
    has settings for every method that has an argument of that name.
    """
    method = METHODS[key]
    settings = method.known(shared)
    settings |= method.quick if budget == "quick" else method.full
    if budget == "quick" and method.kind.ensemble:
        settings["max_epochs"] = quick_epochs(n_train)
    model = method.create(settings)
    words = method.tuning.get(budget, "one setting, early stopping, at most {epochs} epochs")
    words = words.format(epochs=model.get_params().get("max_epochs"))
    return model, words


def quick_epochs(n_train: int, *, windows: int = QUICK_WINDOWS, most: int = QUICK_EPOCHS[1]) -> int:
    """Return the epochs in which a network sees about this many windows, repeats counted.

    Examples
    --------
    >>> quick_epochs(29_000), quick_epochs(2_900)
    (3, 20)
    """
    return min(max(QUICK_EPOCHS[0], round(windows / max(n_train, 1))), most)
