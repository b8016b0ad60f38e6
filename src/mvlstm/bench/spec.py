"""Suites: what to run, read from a TOML file and taken apart into independent jobs."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from mvlstm.bench.protocols import PROTOCOLS
from mvlstm.data import datasets
from mvlstm.errors import DataError, ParameterError, check_option, check_whole
from mvlstm.evaluate.methods import METHODS, find_method
from mvlstm.forecasters.user_classes import own_file
from mvlstm.metrics import Measure

MEASURES: tuple[Measure, ...] = get_args(Measure)
KINDS = ("forecast", "search", "granger")
MADE = ("importance",)  # suites whose jobs are listed by a function, not by a file
SUITE_KEYS = ("name", "title", "seed", "budgets", "data", "methods", "parts")
COUNTS = ("repeats", "members", "tune_seeds", "blend")
BUDGET_KEYS = ("words", *COUNTS, "windows_seen", "most_epochs", "data")
METHOD_KEYS = ("method", "label", "settings", "grid", "each", "refit", "measure", *COUNTS)
FILE_KEYS = (
    *("file", "target", "time", "variables", "exclude", "missing", "gaps", "sep", "decimal"),
    *("known", "categorical", "calendar", "test", "valid"),
)
PART_KEYS = (
    *("name", "title", "kind", "datasets", "protocols", "windows", "horizons", "folds", "methods"),
    *COUNTS,
    "explain",
)


@dataclass(frozen=True)
class Job:
    """One cell of an experiment: it depends on no other and is run as a whole.

    Parameters
    ----------
    suite, budget, part, kind : str
        Where it comes from; kind "forecast", "search" (settings are tried, none is scored on
        test rows) or "granger".
    dataset : str
        Name of the data set.
    data : dict
        Options of its loader; ``sequences`` stands for the rows that give so many windows.
    protocol : str
        How rows are divided.
    window, horizon, fold, folds : int
        T, steps ahead, which rolling origin (from 1) of how many.
    method, label, base : str
        Name in the suite, name in tables, key for `mvlstm.evaluate.methods.find_method`.
    source : str
        SHA-256 of the file that a forecaster of one's own is in.
    setting : str
        Which of several settings that are run side by side; empty where there is one.
    settings : dict
        Constructor arguments.
    grid : dict
        Constructor arguments to choose on validation rows, each with its candidates.
    measure : {"rmse", "mae"}
        By what they are chosen.
    blend : int
        How many of the best settings share the members.
    refit : str
        "full" to train the chosen setting again on validation rows too, for the steps found.
    repeats, members, tune_seeds, seed : int
        Repeats with other seeds, networks an ensemble, seeds each candidate is tried with.
    windows_seen, most_epochs : int, optional
        Training windows a network sees in all, from which its epochs follow, and most of these.
    explain : bool
        Whether to scramble variables.
    place, title : int and str
        Its place in the suite, for the order of tables, and its part's title; no part of the key.
    """

    suite: str
    part: str
    dataset: str
    method: str
    budget: str = ""
    kind: str = "forecast"
    data: dict[str, Any] = field(default_factory=dict)
    protocol: str = "chronological"
    window: int = 30
    horizon: int = 1
    fold: int = 1
    folds: int = 1
    label: str = ""
    base: str = ""
    source: str = ""
    setting: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    measure: Measure = "rmse"
    refit: str = ""
    repeats: int = 1
    members: int = 1
    tune_seeds: int = 1
    blend: int = 1
    seed: int = 0
    windows_seen: int | None = None
    most_epochs: int | None = None
    explain: bool = True
    place: int = 0
    title: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Job:
        """Build from what `to_dict` returned."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})

    @property
    def key(self) -> str:
        """Name that is the same for the same work: readable, with a hash of all that matters."""
        shown = ("place", "title")  # change nothing about the work
        work = {name: value for name, value in self.to_dict().items() if name not in shown}
        later = {"source": "", "refit": "", "blend": 1, "measure": "rmse"}  # older ones have none
        for name, value in later.items():
            if work[name] == value:
                del work[name]
        text = json.dumps(work, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        fold = f"f{self.fold}of{self.folds}" if self.folds > 1 else ""
        words = (
            *(self.suite, self.part, self.dataset, self.protocol, f"w{self.window}"),
            *(f"h{self.horizon}" if self.horizon > 1 else "", fold, self.method, self.setting),
        )
        slug = "-".join(re.sub(r"[^A-Za-z0-9.=]+", "_", word) for word in words if word)
        return f"{slug[:110]}-{digest}"


@dataclass(frozen=True)
class Suite:
    """A list of jobs with a name.

    Parameters
    ----------
    name, title : str
    budget : str
        How much each method may tune and train; empty where the suite has but one.
    jobs : tuple of Job
    """

    name: str
    title: str
    budget: str
    jobs: tuple[Job, ...]

    def select(
        self,
        *,
        datasets: Sequence[str] = (),
        methods: Sequence[str] = (),
        windows: Sequence[int] = (),
        protocols: Sequence[str] = (),
        parts: Sequence[str] = (),
    ) -> Suite:
        """Return the suite with some of its jobs; an empty list stands for all.

        Jobs that have no window of their own (Granger tests) are kept for every window, and for
        every method.
        """
        chosen = list(self.jobs)
        wishes: dict[str, Sequence[Any]] = {
            "dataset": datasets,
            "protocol": protocols,
            "part": parts,
            "window": windows,
            "method": methods,
        }
        for name, wanted in wishes.items():
            free = {"granger"} if name in ("window", "method") else set()
            there = list(dict.fromkeys(getattr(j, name) for j in self.jobs if j.kind not in free))
            for value in wanted:
                if value not in there:
                    raise ParameterError(_unknown(f"{name}", value, there, f"suite '{self.name}'"))
            if wanted:
                chosen = [j for j in chosen if getattr(j, name) in wanted or j.kind in free]
        if (methods or windows) and all(job.kind == "granger" for job in chosen):
            chosen = []  # the tests alone are not what was asked for
        if not chosen:
            raise ParameterError(
                f"Nothing of suite '{self.name}' fits all of what was chosen; its parts combine "
                "only some data sets, protocols and windows. Choose fewer conditions."
            )
        return Suite(self.name, self.title, self.budget, tuple(chosen))


def suite_names() -> tuple[str, ...]:
    """Names of the suites that come with the package."""
    folder = resources.files("mvlstm.bench") / "suites"
    names = (entry.name for entry in folder.iterdir())
    files = (name.removesuffix(".toml") for name in names if name.endswith(".toml"))
    return tuple(sorted([*files, *MADE]))


def load_suite(
    name: str,
    *,
    budget: str | None = None,
    repeats: int | None = None,
    members: int | None = None,
    seed: int | None = None,
) -> Suite:
    """Read a suite by name, or from a TOML file of one's own.

    Parameters
    ----------
    name : str
        One of `suite_names`, or a path that ends in ``.toml``.
    budget : str, optional
        One of the suite's budgets; by default its first.
    repeats, members, seed : int, optional
        In place of what the suite says.
    """
    if name in MADE:
        from mvlstm.bench.importance import importance_suite

        return importance_suite(repeats=repeats, members=members)
    text = _read(name)
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"The suite '{name}' is not valid TOML: {error}.") from error
    changes = {"repeats": repeats, "members": members, "seed": seed}
    return parse_suite(tree, default_name=Path(name).stem, budget=budget, changes=changes)


def _read(name: str) -> str:
    if name in suite_names():
        return (resources.files("mvlstm.bench") / "suites" / f"{name}.toml").read_text("utf-8")
    path = Path(name)
    if path.suffix != ".toml":
        raise ParameterError(
            _unknown("suite", name, suite_names(), "this package")
            + " Or give the path of a .toml file."
        )
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ParameterError(f"The suite '{path}' cannot be read: {reason}.") from error


def parse_suite(
    tree: Mapping[str, Any],
    *,
    default_name: str,
    budget: str | None = None,
    changes: Mapping[str, int | None] | None = None,
) -> Suite:
    """Take a suite's tree of tables apart into jobs, checking every name in it."""
    _check_keys(tree, SUITE_KEYS, "suite")
    budgets = _table(tree, "budgets", "The suite")
    for name in ("methods", "data"):
        _table(tree, name, "The suite")
    chosen = budget or next(iter(budgets), "")
    if chosen and chosen not in budgets:
        if not budgets:
            raise ParameterError(f"The suite has no budgets, but '{chosen}' was asked for.")
        raise ParameterError(_unknown("budget", chosen, list(budgets), "the suite"))
    limits = dict(_table(budgets, chosen, "Its budgets"))
    _check_keys(limits, BUDGET_KEYS, f"budget '{chosen}'")
    reader = _Reader(
        name=str(tree.get("name", default_name)),
        tree=tree,
        budget=chosen,
        budgets=tuple(budgets),
        limits=limits,
        changes={k: v for k, v in (changes or {}).items() if v is not None},
    )
    parts = tree.get("parts", [])
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        raise ParameterError("The suite's parts are tables; begin each with a line [[parts]].")
    if not parts:
        raise ParameterError("The suite has no [[parts]]; give at least one.")
    reader.check()
    each = itertools.chain.from_iterable(reader.jobs(part) for part in parts)
    jobs = tuple(replace(job, place=place) for place, job in enumerate(each))
    repeated = [key for key, n in _counts(job.key for job in jobs).items() if n > 1]
    if repeated:
        raise ParameterError(f"The suite lists the same job twice: {repeated[0]}.")
    _check_values(jobs)
    return Suite(reader.name, str(tree.get("title", "")), chosen, jobs)


def _check_values(jobs: Sequence[Job]) -> None:
    """Check the settings of a suite's jobs; many jobs share some."""
    seen: set[str] = set()
    for job in jobs:
        parts = (job.base, job.window, job.horizon, job.seed, job.settings, job.grid)
        text = json.dumps(parts, sort_keys=True, default=str)
        if job.kind == "granger" or text in seen:
            continue
        seen.add(text)
        try:
            check_settings(job)
        except ParameterError as error:
            raise ParameterError(f"method '{job.method}': {error}") from error


def check_settings(job: Job) -> None:
    """Raise `ParameterError` for a value that a setting, or one of the grid, cannot have."""
    method = find_method(job.base)
    given = method.known({"window": job.window, "horizon": job.horizon, "seed": job.seed})
    for values in itertools.product(*job.grid.values()):
        tried = dict(zip(job.grid, values, strict=True))
        method.create({**given, **job.settings, **tried})._check_parameters()


@dataclass(frozen=True)
class _Reader:
    """Turns the parts of one suite into jobs."""

    name: str
    tree: Mapping[str, Any]
    budget: str
    budgets: tuple[str, ...]
    limits: Mapping[str, Any]
    changes: Mapping[str, int]

    def check(self) -> None:
        """Raise `ParameterError` for a wrong name in any table, whether a part uses it or not."""
        for name in self.tree.get("data", {}):
            self._options(name)
        for name in self.tree.get("methods", {}):
            list(self._entries(name, "forecast"))

    def jobs(self, part: Mapping[str, Any]) -> Iterator[Job]:
        """Yield the jobs of one part: every data set with every protocol, window and method."""
        _check_keys(part, PART_KEYS, f"part '{part.get('name', '?')}'")
        kind = part.get("kind", "forecast")
        if kind not in KINDS:
            raise ParameterError(_unknown("kind", kind, KINDS, "a part"))
        folds = _whole("folds", part.get("folds", 1), 1)
        cells = itertools.product(
            _listed(part, "datasets", ()),
            _listed(part, "protocols", ("chronological",)),
            _listed(part, "windows", (0,) if kind == "granger" else (30,)),
            _listed(part, "horizons", (1,)),
            range(1, folds + 1),
        )
        methods = _listed(part, "methods", ("granger",) if kind == "granger" else ())
        if not methods:
            raise ParameterError(f"Part '{part.get('name', '?')}' lists no methods.")
        for dataset, protocol, window, horizon, fold in cells:
            if protocol not in PROTOCOLS:
                raise ParameterError(_unknown("protocol", protocol, list(PROTOCOLS), "mvlstm"))
            options = self._data(dataset)
            if not PROTOCOLS[protocol].covers(dataset):
                continue
            for name in methods:
                for entry in self._entries(name, kind):
                    yield Job(
                        suite=self.name,
                        budget=self.budget,
                        part=str(part.get("name", "main")),
                        kind=kind,
                        dataset=dataset,
                        data=options,
                        protocol=protocol,
                        window=_whole("windows", window, 0 if kind == "granger" else 2),
                        horizon=_whole("horizons", horizon, 1),
                        fold=fold,
                        folds=folds,
                        method=name,
                        seed=int(self._number("seed", {}, self.tree, default=0)),
                        windows_seen=self._limit("windows_seen"),
                        most_epochs=self._limit("most_epochs"),
                        explain=bool(part.get("explain", True)),
                        title=str(part.get("title", "")),
                        repeats=self._number("repeats", entry, part, self.limits),
                        members=self._number("members", entry, part, self.limits),
                        tune_seeds=self._number("tune_seeds", entry, part, self.limits),
                        blend=self._number("blend", entry, part, self.limits),
                        **{k: v for k, v in entry.items() if k not in COUNTS},
                    )

    def _number(self, name: str, *places: Mapping[str, Any], default: int = 1) -> int:
        """Find a number: what was asked for on the call, else in the first place that has it."""
        value = self.changes.get(name)
        for place in places:
            value = place.get(name) if value is None else value
        value = default if value is None else value
        return _whole(name, value, 0 if name == "seed" else 1)

    def _limit(self, name: str) -> int | None:
        return _whole(name, self.limits[name], 1) if name in self.limits else None

    def _data(self, dataset: str) -> dict[str, Any]:
        """Return the loader's options, with the checksum of a user's own file."""
        options = self._options(dataset)
        if "file" not in options:
            return options
        return {**options, "sha256": file_digest(options["file"])}

    def _options(self, dataset: str) -> dict[str, Any]:
        """Return the loader's options: the suite's, with the budget's in place of some."""
        options = dict(_table(self.tree.get("data", {}), dataset, "data"))
        changes = _table(self.limits, "data", f"Budget '{self.budget}'")
        options |= _table(changes, dataset, f"data of budget '{self.budget}'")
        if "file" in options:
            _check_keys(options, FILE_KEYS, f"data set '{dataset}'")
            return options
        if dataset not in datasets.available():
            tables = self.tree.get("data", {})
            own = [name for name in tables if "file" in _table(tables, name, "data")]
            known = list(dict.fromkeys((*own, *datasets.available())))
            raise ParameterError(_unknown("data set", dataset, known, "the suite or mvlstm"))
        given = (("n" if name == "sequences" else name) for name in options)
        datasets.check_options(dataset, given)
        return options

    def _entries(self, name: str, kind: str) -> Iterator[dict[str, Any]]:
        """Yield what a method of the suite stands for: one entry for each setting of ``each``."""
        if kind == "granger":
            yield {"label": "Granger", "base": "granger"}
            return
        given = dict(_table(self.tree.get("methods", {}), name, "methods"))
        own = dict(_table(given, self.budget, f"Method '{name}'")) if self.budget else {}
        for other in self.budgets:
            given.pop(other, None)
        for table, what in ((given, f"method '{name}'"), (own, f"method '{name}' ({self.budget})")):
            _check_keys(table, METHOD_KEYS, what)
            for entry in ("settings", "grid", "each"):
                _table(table, entry, what.capitalize())
        base = str(own.get("method", given.get("method", name)))
        if base not in METHODS and ":" not in base:
            raise ParameterError(
                _unknown("method", base, list(METHODS), "mvlstm")
                + " Or name a class of your own: FILE.py:CLASS."
            )
        method = find_method(base)
        settings = {**given.get("settings", {}), **own.get("settings", {})}
        grid = dict(own.get("grid", given.get("grid", {})))
        each = {**given.get("each", {}), **own.get("each", {})}
        known = method.parameters
        for argument in (*settings, *grid, *each):
            if argument not in known:
                raise ParameterError(_unknown("argument", argument, known, f"method '{base}'"))
        for argument, values in (*grid.items(), *each.items()):
            if not isinstance(values, list) or not values:
                raise ParameterError(
                    f"method '{name}': {argument} needs a list of values to try, not {values!r}."
                )
        both: dict[str, Any] = {**given, **own}
        refit = both.get("refit", "")
        if refit not in ("", "full"):
            raise ParameterError(f"method '{name}': refit={refit!r} must be \"full\", or left out.")
        if refit and not method.kind.members_differ:
            raise ParameterError(
                f"method '{name}': refit=\"full\" trains networks such as MVLSTM or LSTM again, "
                f"and {method.label} is none of these. Take it out."
            )
        measure = both.get("measure", "rmse")
        check_option(f"method '{name}': measure", measure, MEASURES)
        numbers: dict[str, Any] = {k: both[k] for k in COUNTS if k in both}
        for combination in itertools.product(*each.values()):
            one = dict(zip(each, combination, strict=True))
            yield {
                "label": str(own.get("label", given.get("label", method.label))),
                "base": base,
                "source": source_digest(base),
                "setting": ",".join(f"{k}={v}" for k, v in one.items()),
                "settings": {**settings, **one},
                "grid": grid,
                "measure": measure,
                "refit": refit if kind == "forecast" else "",
                **numbers,
            }


def _table(tree: Mapping[str, Any], name: str, where: str) -> Mapping[str, Any]:
    """Return an entry that must be a table; an empty one if it is not there."""
    value = tree.get(name, {})
    if not isinstance(value, Mapping):
        raise ParameterError(
            f"{where}: '{name}' must be a table of names and values, not {value!r}."
        )
    return value


def _whole(name: str, value: Any, least: int) -> int:
    check_whole(name, value, least)
    return int(value)


def file_digest(path: str | Path) -> str:
    """Return the SHA-256 of a user's file, so that other contents make other jobs."""
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"'{path}' cannot be read: {error.strerror or error}.") from error


def source_digest(base: str) -> str:
    """Return the SHA-256 of the file of FILE.py:CLASS, so that other code makes other jobs."""
    file = own_file(base)
    return "" if file is None else file_digest(file)


def check_source(job: Job) -> None:
    """Raise `ParameterError` if the file of a forecaster of one's own is not what it was."""
    if job.source and source_digest(job.base) != job.source:
        raise ParameterError(
            f"'{own_file(job.base)}' has changed since the run began. Run again: other code makes "
            "other jobs."
        )


def _listed(part: Mapping[str, Any], name: str, default: Sequence[Any]) -> list[Any]:
    value = part.get(name, default)
    values = [value] if isinstance(value, str | int) else value
    listed = isinstance(values, list | tuple)
    odd = [v for v in values if not isinstance(v, str | int)] if listed else []
    if odd:
        raise ParameterError(
            f"Part '{part.get('name', '?')}': {name} cannot hold {odd[0]!r}; give names, or whole "
            "numbers for windows and horizons."
        )
    if not listed or (name in part and not values):
        raise ParameterError(
            f"Part '{part.get('name', '?')}': {name} must be a list, not {value!r}; give at least "
            "one entry."
        )
    return list(values)


def _counts(values: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for value in values:
        found[value] = found.get(value, 0) + 1
    return found


def _check_keys(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise ParameterError(_unknown("entry", key, known, where))


def _unknown(what: str, value: object, known: Sequence[Any], where: str) -> str:
    """Say that a name is not known, what the choices are, and which is near."""
    near = get_close_matches(str(value), [str(k) for k in known], n=1)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    choices = ", ".join(str(k) for k in known)
    return f"There is no {what} '{value}' in {where}; choose from {choices}.{hint}"
