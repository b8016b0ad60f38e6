"""Suites as TOML files: read, checked, and taken apart into jobs."""

from __future__ import annotations

import itertools
import json
import os
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mvlstm import datasets
from mvlstm.bench.cells import CHRONOLOGICAL
from mvlstm.bench.spec import (
    KINDS,
    MEASURES,
    Job,
    Suite,
    check_settings,
    file_digest,
    source_digest,
    unknown,
)
from mvlstm.bench.studies import Study, load_study
from mvlstm.errors import ParameterError, check_option, check_whole
from mvlstm.evaluate.methods import METHODS, Method, find_method
from mvlstm.table.parts import CHOOSING

SUITES = Path("experiments") / "suites"  # where suites are found by name, as in a clone
MOST_JOBS, MOST_FOLDS = 20_000, 1_000  # of a suite, and of a part
SUITE_KEYS = ("name", "title", "study", "seed", "budgets", "data", "methods", "parts")
COUNTS = ("repeats", "members", "tune_seeds", "blend")
BUDGET_KEYS = ("words", *COUNTS, "windows_seen", "most_epochs", "data")
METHOD_KEYS = (
    *("method", "label", "settings", "grid", "each", "refit", "measure", "variables", *COUNTS),
)
FILE_KEYS = (
    *("file", "target", "time", "variables", "exclude", "missing", "gaps", "sep", "decimal"),
    *("known", "categorical", "calendar", "test", "valid"),
)
PART_KEYS = (
    *("name", "title", "kind", "datasets", "protocols", "windows", "horizons", "folds", "methods"),
    *COUNTS,
    *("explain", "choose", "refit"),
)


def suite_names() -> tuple[str, ...]:
    """Names of the suites in ``experiments/suites`` of the folder the command runs in."""
    return tuple(sorted(path.stem for path in SUITES.glob("*.toml")))


def load_suite(
    name: str,
    *,
    budget: str | None = None,
    repeats: int | None = None,
    members: int | None = None,
    seed: int | None = None,
) -> Suite:
    """Read a suite from a TOML file: a path that ends in ``.toml``, or one of `suite_names`.

    The budget is by default the suite's first; the numbers are in place of what the suite says.
    """
    path = Path(name) if name.endswith(".toml") else _find(name)
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"The suite '{name}' is not valid TOML: {error}.") from error
    except RecursionError as error:
        raise ParameterError(f"The suite '{name}' nests its lists too deep.") from error
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ParameterError(f"The suite '{path}' cannot be read: {reason}.") from error
    if isinstance(tree.get("study"), str):
        tree["study"] = os.path.relpath(path.parent / tree["study"])
    changes = {"repeats": repeats, "members": members, "seed": seed}
    return parse_suite(tree, default_name=path.stem, budget=budget, changes=changes)


def _find(name: str) -> Path:
    """Return the file of a suite by its name; raise `ParameterError` if there is none."""
    names = suite_names()
    if name in names:
        return SUITES / f"{name}.toml"
    if names:
        known = unknown("suite", name, names, f"'{SUITES}'")
        raise ParameterError(f"{known} Or give the path of a .toml file.")
    raise ParameterError(
        f"There is no suite '{name}': '{Path.cwd()}' has no folder '{SUITES}'. Run the command in "
        "a clone of the repository, or give the path of a .toml file of your own."
    )


def parse_suite(
    tree: Mapping[str, Any],
    *,
    default_name: str,
    budget: str | None = None,
    changes: Mapping[str, int | None] | None = None,
) -> Suite:
    """Take a suite's tree of tables apart into jobs, checking every name in it."""
    _check_keys(tree, SUITE_KEYS, "suite")
    budgets, *_ = (_table(tree, name, "The suite") for name in ("budgets", "methods", "data"))
    chosen = budget or next(iter(budgets), "")
    if chosen and not budgets:
        raise ParameterError(f"The suite has no budgets, but '{chosen}' was asked for.")
    if chosen:
        _check_known("budget", chosen, budgets, "the suite")
    limits = dict(_table(budgets, chosen, "Its budgets"))
    _check_keys(limits, BUDGET_KEYS, f"budget '{chosen}'")
    study = tree.get("study", "")
    if not isinstance(study, str):
        raise ParameterError(f"The suite's study must be the path of a file, not {study!r}.")
    reader = _Reader(
        name=str(tree.get("name", default_name)),
        study=load_study(study),
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
    first = itertools.islice(each, MOST_JOBS + 1)
    jobs = tuple(replace(job, place=place) for place, job in enumerate(first))
    if len(jobs) > MOST_JOBS:
        raise ParameterError(f"The suite has more than {MOST_JOBS:,} jobs. Divide it into several.")
    repeated = [key for key, n in Counter(job.key for job in jobs).items() if n > 1]
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
        if job.kind not in KINDS or text in seen:
            continue
        seen.add(text)
        try:
            check_settings(job)
        except ParameterError as error:
            raise ParameterError(f"method '{job.method}': {error}") from error


@dataclass(frozen=True)
class _Reader:
    """Turns the parts of one suite into jobs."""

    name: str
    study: Study
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
        _check_known("kind", kind, (*KINDS, *self.study.kinds), "a part")
        own = self.study.kinds.get(kind)
        same = Job(
            suite=self.name,
            budget=self.budget,
            part=str(part.get("name", "main")),
            kind=kind,
            dataset="",
            method="",
            study=str(self.tree.get("study", "")),
        )
        if own is not None and own.jobs is not None:
            counts = {name: self.changes.get(name) for name in ("repeats", "members")}
            for one in own.jobs(str(part.get("name", kind)), **counts):
                yield replace(same, **one)
            return
        folds = _whole("folds", part.get("folds", 1), 1)
        check_option("choose", part.get("choose", "half"), CHOOSING)
        if folds > MOST_FOLDS:
            raise ParameterError(f"folds={folds} is more than {MOST_FOLDS:,}. Use fewer.")
        cells = itertools.product(
            _listed(part, "datasets", ()),
            _listed(part, "protocols", (CHRONOLOGICAL,)),
            _listed(part, "windows", (0,) if own else (30,)),
            _listed(part, "horizons", (1,)),
            range(1, folds + 1),
        )
        methods = _listed(part, "methods", (kind,) if own else ())
        if not methods:
            raise ParameterError(f"Part '{part.get('name', '?')}' lists no methods.")
        for dataset, protocol, window, horizon, fold in cells:
            options = self._data(dataset)
            if not self._covers(protocol, dataset):
                continue
            for name in methods:
                for entry in self._entries(name, kind, str(part.get("refit", ""))):
                    yield replace(
                        same,
                        dataset=dataset,
                        data=options,
                        protocol=protocol,
                        window=_whole("windows", window, 0 if own else 2),
                        horizon=_whole("horizons", horizon, 1),
                        fold=fold,
                        folds=folds,
                        method=name,
                        seed=int(self._number("seed", {}, self.tree, default=0)),
                        windows_seen=self._limit("windows_seen"),
                        most_epochs=self._limit("most_epochs"),
                        choose=part.get("choose", "half"),
                        explain=bool(part.get("explain", True)),
                        title=str(part.get("title", "")),
                        **entry | {n: self._number(n, entry, part, self.limits) for n in COUNTS},
                    )

    def _covers(self, protocol: str, dataset: str) -> bool:
        """Say whether a protocol is defined for a data set."""
        known = self.study.protocols
        _check_known("protocol", protocol, (CHRONOLOGICAL, *known), "the suite or its study")
        return protocol == CHRONOLOGICAL or dataset in known[protocol].datasets

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
        tables = self.tree.get("data", {})
        own = [name for name in tables if "file" in _table(tables, name, "data")]
        known = dict.fromkeys((*own, *datasets.available()))
        _check_known("data set", dataset, known, "the suite or mvlstm")
        given = (("n" if name == "sequences" else name) for name in options)
        datasets.check_options(dataset, given)
        return options

    def _entries(self, name: str, kind: str, refit: str = "") -> Iterator[dict[str, Any]]:
        """Yield what a method of the suite stands for: one entry for each setting of ``each``.

        ``refit`` is what its part says of all methods.
        """
        if kind in self.study.kinds:
            yield {"label": self.study.kinds[kind].label, "base": kind}
            return
        given, own = self._method_tables(name)
        both: dict[str, Any] = {**given, **own}
        base = str(both.get("method", name))
        method = _method(base)
        settings, each = (
            {**given.get(entry, {}), **own.get(entry, {})} for entry in ("settings", "each")
        )
        grid = dict(both.get("grid", {}))
        known = method.parameters
        for argument in (*settings, *grid, *each):
            _check_known("argument", argument, known, f"method '{base}'")
        for argument, values in (*grid.items(), *each.items()):
            if not isinstance(values, list) or not values:
                raise ParameterError(
                    f"method '{name}': {argument} needs a list of values to try, not {values!r}."
                )
        refit, measure = both.get("refit", refit), both.get("measure", "rmse")
        _check_refit(name, method, refit)
        check_option(f"method '{name}': measure", measure, MEASURES)
        for combination in itertools.product(*each.values()):
            one = dict(zip(each, combination, strict=True))
            yield {
                "label": str(both.get("label", method.label)),
                "base": base,
                "source": source_digest(base),
                "setting": ",".join(f"{k}={v}" for k, v in one.items()),
                "settings": {**settings, **one},
                "grid": grid,
                "measure": measure,
                "variables": both.get("variables"),
                "refit": refit if kind == "forecast" else "",
                **{k: both[k] for k in COUNTS if k in both},
            }

    def _method_tables(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the suite says of a method, and what the budget says in its place."""
        given = dict(_table(self.tree.get("methods", {}), name, "methods"))
        own = dict(_table(given, self.budget, f"Method '{name}'")) if self.budget else {}
        for budget in self.budgets:
            given.pop(budget, None)
        for table, what in ((given, f"method '{name}'"), (own, f"method '{name}' ({self.budget})")):
            _check_keys(table, METHOD_KEYS, what)
            for entry in ("settings", "grid", "each"):
                _table(table, entry, what.capitalize())
        return given, own


def _method(base: str) -> Method:
    """Return the method of a name, or of a class of one's own."""
    if base not in METHODS and ":" not in base:
        raise ParameterError(
            unknown("method", base, list(METHODS), "mvlstm")
            + " Or name a class of your own: FILE.py:CLASS."
        )
    return find_method(base)


def _check_refit(name: str, method: Method, refit: object) -> None:
    if refit not in ("", "full"):
        raise ParameterError(f"method '{name}': refit={refit!r} must be \"full\", or left out.")
    if refit and method.kind.ensemble and not method.kind.members_differ:
        raise ParameterError(
            f"method '{name}': refit=\"full\" cannot be had of {method.label}, whose members "
            "choose their own variables. Take it out."
        )


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


def _check_keys(table: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in table:
        _check_known("entry", key, known, where)


def _check_known(what: str, value: object, known: Iterable[str], where: str) -> None:
    if value not in (names := list(known)):
        raise ParameterError(unknown(what, value, names, where))
