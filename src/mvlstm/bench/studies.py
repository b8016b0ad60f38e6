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
    """A way to divide rows other than in time order.

    Parameters
    ----------
    cell : callable
        Returns the `mvlstm.bench.cells.Cell` of a job; takes ``local``, whether its method looks
        at windows alone.
    datasets : collection of str
        Data sets that it is defined for.
    """

    cell: Callable[..., Any]
    datasets: Collection[str]


@dataclass(frozen=True)
class Kind:
    """A kind of job.

    Parameters
    ----------
    run : callable
        Takes a job and the device; returns what its record holds, ``timings`` with ``total``
        included.
    label : str
        What its jobs are called in tables.
    jobs : callable, optional
        Takes a part's name, ``repeats`` and ``members``; yields the arguments of `Job` that its
        jobs differ in. Without it, a part gives one job per data set and protocol.
    """

    run: Callable[[Job, str], Record]
    label: str
    jobs: Callable[..., Iterator[dict[str, Any]]] | None = None


@dataclass(frozen=True)
class Study:
    """What a study adds; every part may be left out.

    Parameters
    ----------
    protocols, kinds : dict
        By name.
    evidence : callable
        Takes a job's fitted forecaster and the `Problem` it learned from; returns what its record
        holds in addition.
    of_part : callable, optional
        Makes the sections of a part in place of the plain ones: takes its title, its finished
        records, those of the suite, the folder's `Records`, and whether histograms are wanted.
    of_suite : callable
        Takes the finished records of a suite; yields further sections.
    """

    protocols: Mapping[str, Protocol] = field(default_factory=dict)
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    evidence: Callable[..., Record] = lambda *_: {}
    of_part: OfPart | None = None
    of_suite: Callable[[Sequence[Record]], Iterator[Section]] = lambda _: iter(())


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
