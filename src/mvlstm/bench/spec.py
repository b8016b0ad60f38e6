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
from mvlstm.evaluate.methods import find_method
from mvlstm.evaluate.own_classes import own_file
from mvlstm.metrics import Measure

MEASURES: tuple[Measure, ...] = get_args(Measure)
KINDS = ("forecast", "search")  # of jobs; a study may add others


@dataclass(frozen=True)
class Job:
    """One cell of an experiment: it depends on no other and is run as a whole.

    Parameters
    ----------
    suite, budget, part, kind : str
        Where it comes from; kind "forecast", "search" (settings are tried, none is scored on
        test rows), or one of the study's.
    dataset : str
        Name of the data set.
    data : dict
        Options of its loader; ``sequences`` stands for the rows that give this many windows.
    protocol : str
        How rows are divided: "chronological", or one of the study's.
    window, horizon, fold, folds : int
        T (0 where the job has none), steps ahead, which rolling origin (from 1) of how many.
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
        Repeats with other seeds, networks per ensemble, seeds each candidate is tried with.
    windows_seen, most_epochs : int, optional
        Training windows a network sees in all, from which its epochs follow, and most of these.
    explain : bool
        Whether to scramble variables.
    place, title, study : int and str
        Its place in the suite, for the order of tables, its part's title, and the file of its
        study; no part of the key.
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
    study: str = ""

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
