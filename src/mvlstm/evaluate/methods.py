"""The methods a comparison knows, settings within a budget, and forecasters of one's own."""

from __future__ import annotations

import hashlib
import inspect
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeGuard

from sklearn.base import clone

from mvlstm._words import did_you_mean
from mvlstm.errors import ParameterError
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.registry import FORECASTERS, Entry, forecaster_class

Methods = str | AbstractForecaster | Sequence[str | AbstractForecaster]
Budget = Literal["quick", "full"]
BUDGETS: tuple[Budget, ...] = ("quick", "full")
QUICK_WINDOWS = 60_000  # windows each network sees in a quick comparison, repeats counted
ARGUMENTS = ("window", "horizon", "missing", "gaps", "verbose")  # every forecaster has them
QUICK_EPOCHS = (3, 20)  # fewest and most epochs that may come to


@dataclass(frozen=True)
class Method:
    """One row of a comparison before it is run."""

    label: str  # its name in the table
    forecaster: str  # class in the registry, or one's own: FILE.py:CLASS or MODULE:CLASS
    preset: str | None = None  # class method that builds it, such as ``paper``
    entry: Entry = field(default_factory=lambda: Entry(""))  # settings within each budget

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


def choose_methods(methods: Methods) -> dict[str, str | AbstractForecaster]:
    """Return each method by its label: a key, or a forecaster of the user's own settings.

    "all" stands for every key, and persistence is always there.

    Examples
    --------
    >>> list(choose_methods(["ar", "GBT"]).items())
    [('AR', 'ar'), ('GBT', 'gbt'), ('Persistence', 'persistence')]
    """
    if isinstance(methods, str):
        methods = methods.split(",")
    given: Iterable[str | AbstractForecaster] = (
        [methods] if isinstance(methods, AbstractForecaster) else methods
    )
    found: dict[str, str | AbstractForecaster] = {}
    for one in given:
        if isinstance(one, AbstractForecaster):
            found[_free_label(type(one).__name__, found)] = one
        else:
            found |= {METHODS[key].label: key for key in _keys(one)}
    if not found:
        raise ParameterError(f"No method is named; choose from all, {', '.join(METHODS)}.")
    last = METHODS["persistence"].label
    return found if last in found else {**found, last: "persistence"}


def _keys(name: object) -> list[str]:
    if not isinstance(name, str):
        raise ParameterError(
            f"methods has {name!r}, which is neither a name nor a forecaster; choose from all, "
            f"{', '.join(METHODS)}, or give a forecaster such as mvlstm.AR(window=24)."
        )
    key = name.strip().lower()
    if key and key != "all" and key not in METHODS:
        raise ParameterError(
            f"There is no method '{name.strip()}'; choose from all, {', '.join(METHODS)}."
            f"{did_you_mean(key, METHODS)}"
        )
    return list(METHODS) if key == "all" else [key] if key else []


def _free_label(name: str, taken: Mapping[str, object]) -> str:
    """Return a name, numbered if there is one already."""
    count = sum(label.split(" #")[0] == name for label in taken)
    return f"{name} #{count + 1}" if count else name


def build(
    method: str | AbstractForecaster, *, budget: Budget, n_train: int, shared: dict[str, Any]
) -> tuple[AbstractForecaster, str]:
    """Return a method's forecaster and its tuning budget in words.

    From ``n_train``, the training windows, the epochs of a quick run follow; settings that are
    ``shared`` go to every method that has an argument of that name. A forecaster keeps its own.
    """
    if isinstance(method, AbstractForecaster):
        if method.horizon != shared["horizon"]:
            raise ParameterError(
                f"{type(method).__name__}(horizon={method.horizon}) is compared with "
                f"horizon={shared['horizon']}. Give both the same."
            )
        return clone(method).set_params(verbose=shared["verbose"]), "its own settings"
    found = METHODS[method]
    settings = found.known(shared)
    settings |= found.entry.quick if budget == "quick" else found.entry.full
    if budget == "quick" and found.kind.ensemble:
        settings["max_epochs"] = quick_epochs(n_train)
    model = found.create(settings)
    training = getattr(model, "training", None)  # of a network
    return model, found.entry.words(budget).format(epochs=training and training.max_epochs)


def quick_epochs(n_train: int, *, windows: int = QUICK_WINDOWS, most: int = QUICK_EPOCHS[1]) -> int:
    """Return the epochs in which a network sees about this many windows, repeats counted.

    Examples
    --------
    >>> quick_epochs(29_000), quick_epochs(2_900)
    (3, 20)
    """
    least = QUICK_EPOCHS[0]
    return min(max(least, round(windows / max(n_train, 1))), most)


# --------------------------------------------------------------------------- classes of one's own


def own_file(name: str) -> Path | None:
    """Return the file of FILE.py:CLASS; None for any other name.

    Examples
    --------
    >>> own_file("trials.py:StudentT").name
    'trials.py'
    """
    place = name.rpartition(":")[0]
    return Path(place) if place.endswith(".py") else None


def own_class(name: str) -> type[AbstractForecaster]:
    """Import a class by FILE.py:CLASS or MODULE:CLASS, checking that it is a forecaster.

    A file is read each time; the same contents give the same class.
    """
    place, _, wanted = name.rpartition(":")
    file = own_file(name)
    module = _import(name) if file is None else _run(str(file), _source(file))
    if not hasattr(module, wanted):
        there = [key for key, value in vars(module).items() if _is_forecaster(value)]
        choices = f"choose from {', '.join(there)}" if there else "it has no forecasters"
        raise ParameterError(
            f"There is no class '{wanted}' in '{place}'; {choices}.{did_you_mean(wanted, there)}"
        )
    found = getattr(module, wanted)
    if not _is_forecaster(found):
        raise ParameterError(
            f"'{name}' is not a forecaster; write it as a subclass of one of mvlstm's, or of "
            "mvlstm.AbstractForecaster."
        )
    _check_contract(found, name)
    return found


def _is_forecaster(value: object) -> TypeGuard[type[AbstractForecaster]]:
    return isinstance(value, type) and issubclass(value, AbstractForecaster)


def _check_contract(found: type[AbstractForecaster], name: str) -> None:
    """Raise `ParameterError` unless a class has the methods and arguments that it must have."""
    methods = sorted(getattr(found, "__abstractmethods__", ()))
    if methods:
        raise ParameterError(f"'{name}' lacks {', '.join(methods)}; write them.")
    arguments = inspect.signature(found).parameters
    absent = [argument for argument in ARGUMENTS if argument not in arguments]
    if absent:
        raise ParameterError(
            f"The constructor of '{name}' does not name {', '.join(absent)}; list all its "
            "arguments one by one, without **, each with a default."
        )
    needed = [a for a, one in arguments.items() if one.default is inspect.Parameter.empty]
    if needed:
        raise ParameterError(
            f"The constructor of '{name}' has no default for {', '.join(needed)}; give each one."
        )


def _import(name: str) -> ModuleType:
    place, _, wanted = name.rpartition(":")
    try:
        return import_module(place)
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported
        raise ParameterError(
            f"'{place}' cannot be imported: {type(error).__name__}: {error}. Install it, or name a "
            f"file: FILE.py:{wanted}."
        ) from error


def _source(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ParameterError(
            f"'{file}' cannot be read from '{Path.cwd()}': {error.strerror or error}. Name a file "
            "as seen from the folder the command runs in."
        ) from error


@lru_cache(maxsize=16)
def _run(file: str, source: bytes) -> ModuleType:
    """Run a file's contents as a module of its own."""
    digest = hashlib.sha256(file.encode() + source).hexdigest()
    module = ModuleType(f"{Path(file).stem}_{digest[:10]}")
    module.__file__ = file
    sys.modules[module.__name__] = module  # dataclasses look there for their annotations
    try:
        exec(compile(source, file, "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f" (line {frame.lineno})" for frame in frames if frame.filename == file]
        raise ParameterError(
            f"'{file}' cannot be imported: {type(error).__name__}: {error}{''.join(lines[-1:])}. "
            "Correct it, then run again."
        ) from error
    return module
