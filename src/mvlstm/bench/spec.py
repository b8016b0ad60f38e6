"""Jobs: what to run, each independent of the others; a suite is a list of them."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from mvlstm._words import did_you_mean
from mvlstm.errors import DataError, ParameterError
from mvlstm.evaluate.methods import find_method, own_file
from mvlstm.metrics import Measure
from mvlstm.table.parts import Choosing

MEASURES: tuple[Measure, ...] = get_args(Measure)
KINDS = ("forecast", "search")  # of jobs; a study may add others


@dataclass(frozen=True)
class Job:
    """One cell of an experiment: it depends on no other and is run as a whole."""

    suite: str
    part: str
    dataset: str
    method: str  # its name in the suite
    budget: str = ""
    kind: str = "forecast"  # or "search" (none is scored on test rows), or one of the study's
    data: dict[str, Any] = field(default_factory=dict)
    """Options of the data set's loader; ``sequences`` is the number of windows its rows give."""
    protocol: str = "chronological"  # how rows are divided; others are the study's
    window: int = 30  # 0 where the job has none
    horizon: int = 1
    fold: int = 1  # which rolling origin, from 1
    folds: int = 1
    label: str = ""  # its method's name in tables
    base: str = ""  # key for `mvlstm.evaluate.methods.find_method`
    source: str = ""  # SHA-256 of the file that a forecaster of one's own is in
    setting: str = ""  # which of several settings that are run side by side
    settings: dict[str, Any] = field(default_factory=dict)  # constructor arguments
    grid: dict[str, list[Any]] = field(default_factory=dict)  # others, chosen on validation rows
    measure: Measure = "rmse"  # by what they are chosen
    choose: Choosing = "half"  # which validation rows stop training and choose, for any method
    variables: list[str] | None = None  # columns used with the target; None: all
    refit: str = ""  # "full": train the choice again on validation rows too, for the steps found
    repeats: int = 1  # with other seeds
    members: int = 1  # networks per ensemble
    tune_seeds: int = 1  # that each candidate is tried with
    blend: int = 1  # how many of the best settings share the members
    seed: int = 0
    windows_seen: int | None = None  # by a network in all, from which its epochs follow
    most_epochs: int | None = None
    explain: bool = True  # whether to scramble variables
    place: int = 0  # in the suite, for the order of tables; this and what follows is not in the key
    title: str = ""  # of its part
    study: str = ""  # file of its study

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
        shown = ("place", "title", "study")  # change nothing about the work
        work = {name: value for name, value in self.to_dict().items() if name not in shown}
        later = {"source": "", "refit": "", "blend": 1, "measure": "rmse", "choose": "half"}
        later["variables"] = None
        for name, value in later.items():  # older jobs have none
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
    """A list of jobs with a name; the budget is empty where the suite has but one."""

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

        Jobs that have no window (Granger tests, say) are kept for every window and method.
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
            free = name in ("window", "method")
            own = (getattr(job, name) for job in self.jobs if job.window or not free)
            there = list(dict.fromkeys(own))
            for value in wanted:
                if value not in there:
                    raise ParameterError(unknown(name, value, there, f"suite '{self.name}'"))
            if wanted:
                chosen = [
                    job
                    for job in chosen
                    if getattr(job, name) in wanted or (free and not job.window)
                ]
        if (methods or windows) and not any(job.window for job in chosen):
            chosen = []  # what has no window is not what was asked for
        if not chosen:
            raise ParameterError(
                f"Nothing of suite '{self.name}' fits all of what was chosen; its parts combine "
                "only some data sets, protocols and windows. Choose fewer conditions."
            )
        return Suite(self.name, self.title, self.budget, tuple(chosen))


def check_settings(job: Job) -> None:
    """Raise `ParameterError` for a value that a setting, or one of the grid, cannot have."""
    method = find_method(job.base)
    given = method.known({"window": job.window, "horizon": job.horizon, "seed": job.seed})
    for values in itertools.product(*job.grid.values()):
        tried = dict(zip(job.grid, values, strict=True))
        method.create({**given, **job.settings, **tried}).check()


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


def unknown(what: str, value: object, known: Sequence[Any], where: str) -> str:
    """Say that a name is not known, what the choices are, and which is near."""
    choices = [str(name) for name in known]
    hint = did_you_mean(str(value), choices)
    return f"There is no {what} '{value}' in {where}; choose from {', '.join(choices)}.{hint}"
