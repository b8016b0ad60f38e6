"""Tuning on a user's table: the paper's grid, or a given one, as jobs that can be resumed."""

from __future__ import annotations

import io
import itertools
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from mvlstm.bench.cells import load_rows
from mvlstm.bench.records import read_records
from mvlstm.bench.run import check_folder, run_suite
from mvlstm.bench.spec import MEASURES, Job, Suite, check_settings, file_digest
from mvlstm.errors import (
    DataError,
    MVLSTMError,
    ParameterError,
    TrainingError,
    check_option,
    check_whole,
)
from mvlstm.evaluate.methods import METHODS, find_method
from mvlstm.methods.mvlstm import MVLSTM
from mvlstm.methods.network.members import MEMBER_SETTINGS
from mvlstm.metrics import Measure
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.registry import is_registered
from mvlstm.problem.splits import split_windows
from mvlstm.results._tables import plain
from mvlstm.settings import RunningSettings, expanded
from mvlstm.storage import write_atomic
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.parts import require_validation
from mvlstm.table.settings import Columns, Reading

# They say what is forecast from which rows, how often and where: not what one can choose by error.
NOT_SEARCHED = ("horizon", "members", "seed", "missing", "gaps", "device", "n_jobs", "verbose")
OF_THE_TABLE = ("missing", "gaps", "calendar", "holidays")  # applied when a table is read
RATES = [0.0005, 0.001, 0.005, 0.01, 0.05]
SIZES = [10, 15, 20, 25]
SUMMED_L2 = [0.0001, 0.001, 0.01, 0.1, 1.0]  # next to the sum of the losses, as in the paper
MEAN_L2 = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4]  # about the same, next to the mean over 10,000 windows
BAD_INPUT: dict[str, type[MVLSTMError]] = {one.__name__: one for one in (ParameterError, DataError)}
Grid = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Tuned:
    """What a search found."""

    ranking: pd.DataFrame
    """One row per setting, the best first: its arguments and ``valid_rmse`` (or ``valid_mae``)."""
    best: dict[str, Any]  # the arguments of the best setting
    failed: dict[str, str]  # why settings failed, by the name of their job
    start: AbstractForecaster = field(repr=False)
    """The forecaster that was tuned, not fitted; it has the settings that were not searched."""
    notes: tuple[str, ...] = ()  # what was done to the table
    problems: tuple[str, ...] = ()  # earlier records that could not be read

    def model(self, **changes: Any) -> AbstractForecaster:
        """Return a forecaster with the best setting, not fitted; ``changes`` are arguments too."""
        return type(self.start)(**(self.start.get_params() | self.best | changes))


@expanded(columns=Columns, running=RunningSettings, reading=Reading)
def tune(
    table: pd.DataFrame | str | os.PathLike[str],
    columns: Columns,
    running: RunningSettings,
    reading: Reading,
    *,
    model: AbstractForecaster | None = None,
    grid: Grid | None = None,
    test: float = 0.2,
    valid: float = 0.1,
    measure: Measure = "rmse",
    seeds: int = 1,
    records: str | os.PathLike[str] | None = None,
) -> Tuned:
    """Try settings of a forecaster on validation rows; the test rows are not used.

    Learning rate, dropout and L2 penalty of `MVLSTM` are tried side by side, as one batch of
    networks. Every other argument of the constructor can be searched too, the window included,
    except for those that change what is forecast.

    Parameters
    ----------
    table : DataFrame or path
        The table, or a CSV or Parquet file.
    model : AbstractForecaster, optional
        The forecaster to tune, with the settings that all have in common; by default
        ``MVLSTM()``. Seed, device and progress are its own.
    grid : mapping of str to sequence, optional
        Constructor arguments with values to try; by default the paper's sizes, learning rates and
        L2 penalties.
    test, valid : float
        Share of the rows (below 1) that is not used, and that is chosen on; or their number.
    measure : {"rmse", "mae"}
        Error to choose by; "mae" if a few large errors should not decide.
    seeds : int
        Networks per setting; their mean error counts.
    records : path, optional
        Folder of records, from which an interrupted search continues; by default none are kept.

    Returns
    -------
    Tuned

    Examples
    --------
    >>> import mvlstm as mv
    >>> table = mv.datasets.load("synthetic", n=300).frame
    >>> found = mv.tune(table, "y", model=mv.AR(verbose=0), grid={"window": [2, 4, 8]})
    >>> list(found.ranking.columns), len(found.ranking)
    (['window', 'valid_rmse'], 3)
    >>> found.model().window == found.best["window"]
    True
    """
    start = MVLSTM() if model is None else model
    check_option("measure", measure, MEASURES)
    check_whole("seeds", seeds, 1)
    require_validation(valid)
    told = asdict(columns) | asdict(reading)
    given = {name: value for name, value in told.items() if value is not None}
    values = _checked_grid(start, _paper_grid(start) if grid is None else grid)
    kept = nullcontext(os.fspath(records)) if records is not None else None
    with kept or tempfile.TemporaryDirectory(prefix="mvlstm-tune-") as place:
        folder = Path(place)
        file = _stored(table, folder)
        data = {**given, "file": str(file), "sha256": file_digest(file), "test": test}
        data["valid"] = valid
        jobs = _jobs(start, values, data, measure=measure, seeds=seeds)
        frame = _checked_rows(jobs)
        summary = run_suite(
            Suite("tune", "", "", jobs),
            folder,
            **asdict(running),
            device=getattr(start, "device", "auto"),
            retry_failed=True,
            verbose=start.verbose,
        )
        rows, failed = _found(jobs, folder)
    ranking = pd.DataFrame(rows).sort_values(f"valid_{measure}", kind="stable", ignore_index=True)
    best = {name: plain(ranking[name].iloc[0]) for name in values}
    return Tuned(ranking, best, failed, start, frame.notes, summary.problems)


# -------------------------------------------------------------------------------- what is searched


def _paper_grid(model: AbstractForecaster) -> Grid:
    """Return the paper's grid, with penalties for the loss they are added to."""
    if not isinstance(model, MVLSTM):
        raise ParameterError(
            f"The paper's grid is for MVLSTM, not for {type(model).__name__}; name the settings to "
            "try, such as grid={'window': [10, 20]}."
        )
    return {
        "hidden_size": SIZES,
        "learning_rate": RATES,
        "l2": SUMMED_L2 if model.l2_sum else MEAN_L2,
    }


def _checked_grid(model: AbstractForecaster, grid: Grid) -> dict[str, list[Any]]:
    """Return the grid as lists; raise `ParameterError` for what cannot be searched."""
    defaults = find_method(_method_key(type(model))).defaults
    usable = [name for name in defaults if name not in NOT_SEARCHED]
    for name, values in grid.items():
        if name not in usable:
            raise ParameterError(
                f"The grid names '{name}', which cannot be searched; choose from "
                f"{', '.join(usable)}."
            )
        if isinstance(values, str) or not values:
            raise ParameterError(f"The grid has no list of values for {name}: {values!r}.")
        known = getattr(model, "training", None)  # what a network's effort leaves open
        _check_values(name, values, getattr(known, name, defaults[name]))
    if not grid:
        raise ParameterError("The grid is empty; name a setting with values to try.")
    return {name: list(values) for name, values in grid.items()}


def _check_values(name: str, values: Sequence[Any], default: Any) -> None:
    """Refuse words where the setting is a number."""
    if isinstance(default, bool | str) or default is None:
        return
    for value in values:
        if isinstance(value, bool | str):
            raise ParameterError(
                f"The grid gives {name} the value '{value}', which is not a number; give numbers, "
                f"such as {default}."
            )


def _method_key(cls: type[AbstractForecaster]) -> str:
    """Return the key under which jobs find a class."""
    if not is_registered(cls):
        return f"{cls.__module__}:{cls.__qualname__}"
    plain = {one.forecaster: key for key, one in METHODS.items() if one.preset is None}
    return plain[cls.__name__]


# ----------------------------------------------------------------------------------------- the jobs


def _jobs(
    model: AbstractForecaster,
    grid: dict[str, list[Any]],
    data: dict[str, Any],
    *,
    measure: Measure,
    seeds: int,
) -> tuple[Job, ...]:
    """Return a job for every combination of the settings that cannot share a batch."""
    key = _method_key(type(model))
    defaults, params = find_method(key).defaults, model.get_params()
    own = {"window", "horizon", "seed", "device", "verbose", "members", *OF_THE_TABLE, *grid}
    settings = {n: v for n, v in params.items() if n not in own and v != defaults[n]}
    data |= {n: params[n] for n in OF_THE_TABLE if params.get(n, "none") != "none"}
    inner = {name: grid[name] for name in grid if name in MEMBER_SETTINGS and model.members_differ}
    outer = [name for name in grid if name not in inner]
    jobs = []
    for place, values in enumerate(itertools.product(*(grid[name] for name in outer))):
        chosen = dict(zip(outer, values, strict=True))
        window = chosen.get("window", model.window)
        if window == "auto":
            raise ParameterError(
                "A search needs windows of a known length, not window='auto'. Give the model a "
                "number, or try several: grid={'window': [24, 168]}."
            )
        job = Job(
            suite="tune",
            part="search",
            kind="search",
            dataset=Path(data["file"]).stem,
            data=data | {name: chosen[name] for name in chosen if name in OF_THE_TABLE},
            method=key,
            base=key,
            label=type(model).__name__,
            window=window,
            horizon=model.horizon,
            setting=",".join(f"{name}={value}" for name, value in chosen.items()),
            settings=settings,
            grid={name: [value] for name, value in chosen.items()} | inner,
            measure=measure,
            tune_seeds=seeds,
            seed=params.get("seed", 0),
            place=place,
        )
        check_settings(job)
        jobs.append(job)
    return tuple(jobs)


def _checked_rows(jobs: Sequence[Job]) -> SeriesFrame:
    """Read the table; raise `ParameterError` or `DataError` if a job cannot use it."""
    frames = []
    for job in jobs:
        frame = load_rows(job).frame
        shares = {"test": job.data["test"], "valid": job.data["valid"]}
        split_windows(frame, window=job.window, horizon=job.horizon, **shares)
        frames.append(frame)
    return frames[0]


def _stored(table: pd.DataFrame | str | os.PathLike[str], folder: Path) -> Path:
    """Return the file of a table, which jobs in other processes can read."""
    if not isinstance(table, pd.DataFrame):
        return Path(table).resolve()
    buffer = io.BytesIO()
    try:
        table.to_parquet(buffer)
    except Exception as error:  # pyarrow raises its own family of errors
        raise DataError(
            f"The table cannot be stored for the search ({error}). Write it to a CSV file and give "
            "its path."
        ) from error
    check_folder(folder)
    return write_atomic(folder.resolve() / "table.parquet", buffer.getvalue())


# ------------------------------------------------------------------------------------ the results


def _found(jobs: Sequence[Job], folder: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return every setting with its error, and why jobs failed; raise if all did."""
    records = read_records(folder)
    rows: list[dict[str, Any]] = []
    failed: dict[str, str] = {}
    kinds: set[str] = set()
    for job in jobs:
        if job.key in records.done:
            rows += records.done[job.key]["tuning"]
        elif job.key in records.failed:
            error = records.failed[job.key]["error"]
            failed[job.key] = error["message"]
            kinds.add(error.get("kind", ""))
    finite = [row for row in rows if row[f"valid_{jobs[0].measure}"] is not None]
    if not finite:
        reason = next(iter(failed.values()), "every training failed")
        kind = BAD_INPUT.get(kinds.pop(), TrainingError) if len(kinds) == 1 else TrainingError
        raise kind(f"No setting could be trained: {reason}")
    return finite, failed
