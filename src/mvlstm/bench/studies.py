"""Studies: Python files outside the package that add protocols, kinds of jobs and tables.

A suite names one by ``study = "FILE.py"``, as seen from the suite's file. The file has a `Study`
called ``STUDY``; jobs and their records carry its path, so that workers and tables find it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from mvlstm.bench.document import Section
from mvlstm.bench.records import Record, Records
from mvlstm.bench.spec import Job
from mvlstm.errors import ParameterError

OfPart = Callable[[str, list[Record], list[Record], Records, bool], Iterator[Section]]


@dataclass(frozen=True)
class Protocol:
    """A way to divide rows other than in time order."""

    cell: Callable[..., Any]
    """(job, local) -> `mvlstm.bench.cells.Cell`; ``local``: its method looks at windows alone."""
    datasets: Collection[str]  # that it is defined for


@dataclass(frozen=True)
class Kind:
    """A kind of job."""

    run: Callable[[Job, str], Record]
    """(job, device) -> what its record holds, ``timings`` with ``total`` included."""
    label: str  # what its jobs are called in tables
    jobs: Callable[..., Iterator[dict[str, Any]]] | None = None
    """(part, repeats, members) -> the arguments of `Job` that its jobs differ in. Without it, a
    part gives one job per data set and protocol."""


@dataclass(frozen=True)
class Study:
    """What a study adds; every part may be left out."""

    protocols: Mapping[str, Protocol] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    evidence: Callable[..., Record] = lambda *_: {}
    """(forecaster, problem) -> what a job's record holds in addition."""
    of_part: OfPart | None = None
    """Makes the sections of a part in place of the plain ones, from its title, its finished
    records, those of the suite, the folder's `Records`, and whether histograms are wanted."""
    of_suite: Callable[[Sequence[Record]], Iterator[Section]] = lambda _: iter(())
    """Makes further sections from the finished records of a suite."""


def load_study(file: str) -> Study:
    """Return the study in a file; an empty one if there is no file's name.

    A file in a package (a folder with ``__init__.py``) is imported as part of it.
    """
    if not file:
        return Study()
    path = Path(file).resolve()
    root, name = path.parent, path.stem
    while (root / "__init__.py").exists():
        root, name = root.parent, f"{root.name}.{name}"
    if str(root) not in sys.path:
        sys.path.append(str(root))
    try:
        module = import_module(name)
        found = module.STUDY
    except Exception as error:  # whatever the file does when it is imported
        raise ParameterError(
            f"The study '{file}' cannot be imported from '{Path.cwd()}': {type(error).__name__}: "
            f"{error}. Name a Python file with a Study called STUDY."
        ) from error
    if Path(str(module.__file__)).resolve() != path or not isinstance(found, Study):
        raise ParameterError(
            f"The study '{file}' was found as '{module.__file__}' with STUDY = {found!r}. Give its "
            "file a name that no other module has, and STUDY a Study."
        )
    return found


def study_of(records: Sequence[Record], folder: Path) -> tuple[Study, list[str]]:
    """Return the study that records name, looked for here and above their folder.

    One that is not found is reported; its tables are left out.
    """
    name = next((one["job"]["study"] for one in records if one["job"].get("study")), "")
    if not name:
        return Study(), []
    for root in (Path(), *folder.resolve().parents):
        if (root / name).is_file():
            return load_study(str(root / name)), []
    return Study(), [
        f"The records in '{folder}' name the study '{name}', which is not here; its tables "
        "are left out. Make them in the folder where the suite was run."
    ]
