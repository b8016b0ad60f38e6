"""A job over all series of a dataset, block by block, into files.

The files of a block are written whole, those of the job's last kind last; a block without them is
worked on by the next run. So is one with failures, unless its part is as it was then.
"""

from __future__ import annotations

import io
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from mvlstm.engine import Engine, check_engine, opened
from mvlstm.errors import DataError, MVLSTMError, ParameterError, reachable
from mvlstm.many.blocks import Block, divide
from mvlstm.many.dataset import Dataset
from mvlstm.many.memory import Budget
from mvlstm.model.fitted import Fitted
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.loading import load
from mvlstm.model.saving import KIND
from mvlstm.progress import show_tasks
from mvlstm.settings import RUNNING, setting, settings
from mvlstm.storage import Packed, write_atomic

FAILURES = "failures"
RUN = "run.json"


class Failure(NamedTuple):
    """A series, or a part, with which nothing can be done."""

    series: str | None
    part: str | None
    reason: str


class Treated(NamedTuple):
    """What a job made of some series: tables by kind, and failures."""

    tables: Mapping[str, pd.DataFrame]
    failures: Sequence[Failure] = ()


@dataclass(frozen=True)
class Job:
    """What is done with all series, some at a time.

    ``treat(fitted, table, settings)`` raises `MVLSTMError` where it can do nothing with the table
    as a whole; each half is then tried. Workers import it by name.
    """

    name: str
    kinds: tuple[str, ...]  # of the tables it makes
    treat: Callable[[Fitted, pd.DataFrame, Mapping[str, Any]], Treated]
    settings: Mapping[str, Any]  # plain values


@dataclass(frozen=True, eq=False)
class Summary:
    """What a run over many series did."""

    folder: Path
    blocks: int
    done: int  # blocks worked on now
    series: int  # without a failure, in this run and those before
    failures: pd.DataFrame  # one row for each series or part: ``series, part, reason``
    importance: pd.DataFrame | None = None  # over all series, where that was asked
    scores: pd.Series[float] | None = None  # means over all series, and the sum of ``n``

    def read(self, kind: str = "forecasts") -> pd.DataFrame:
        """Read the "forecasts", "scores", "importance" or "failures" of all series into memory."""
        return read_kind(self.folder, kind)


def read_kind(folder: Path, kind: str) -> pd.DataFrame:
    """Read the tables of one kind of all blocks."""
    tables = [pd.read_parquet(file) for file in sorted((folder / kind).glob("*.parquet"))]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


@settings(panel=RUNNING, frozen=True)
class Running:
    """How a job over many series runs."""

    memory: str | int = setting(
        default="4GB", doc='Most memory that each process may take, such as "4GB".'
    )
    engine: str = setting(
        default="local",
        doc='"local", "ray", or the address of a Ray cluster, where each block is a task.',
    )
    retry: bool = setting(
        default=False,
        doc="Whether to try again what failed though its part has not been changed.",
    )
    verbose: int = setting(default=1, doc="0 shows no progress.")


class _Shared(NamedTuple):
    model: bytes  # its file
    dataset: Dataset
    columns: tuple[str, ...]
    job: Job


def run(
    model: AbstractForecaster | str | Path,
    path: str | Path,
    out: str | Path,
    job: Job,
    running: Running,
) -> Summary:
    """Do a job with every series that is not done."""
    check_engine(running.engine)
    budget = Budget.of(running.memory)
    whole = load(model) if isinstance(model, str | Path) else model
    layout = whole.fitted_.layout
    if layout.series is None:
        raise ParameterError(
            "The model is of one series. Fit one of several with mvlstm.many.fit(..., series=...)."
        )
    dataset = Dataset.open(path, layout.series)
    wanted = (*layout.time, layout.series, *layout.columns)
    folder, (stored, checksum) = reachable(out), _stored(whole)
    blocks = list(divide(dataset, wanted, budget.free))
    _begin(folder, job, {"model": checksum, **job.settings})
    _forget(folder, {block.name for block in blocks})
    left = [block for block in blocks if not _is_done(folder, job, block, running.retry)]
    with opened(running.engine) as spread:
        _work(spread, _Shared(stored, dataset, wanted, job), left, folder, running.verbose)
    failures = read_kind(folder, FAILURES)
    if not len(failures):
        failures = pd.DataFrame(columns=list(Failure._fields))
    count = sum(block.series - _failed(folder, block) for block in blocks)
    return Summary(folder, len(blocks), len(left), count, failures)


# -------------------------------------------------------------------------------------- the files


def _stored(model: AbstractForecaster) -> tuple[bytes, str | None]:
    """Return the file of a model, and the checksum of what it holds."""
    with tempfile.TemporaryDirectory(prefix="mvlstm-many-") as folder:
        file = Path(folder) / "model.safetensors"
        model.save(file)
        return file.read_bytes(), Packed.open(file, KIND, "model").checksum


def _begin(folder: Path, job: Job, told: dict[str, Any]) -> None:
    """Make the folders; refuse one that holds what was found with another model."""
    told = json.loads(json.dumps(told))
    try:
        for kind in (FAILURES, *job.kinds):
            (folder / kind).mkdir(parents=True, exist_ok=True)
        before = json.loads((folder / RUN).read_text()) if (folder / RUN).exists() else None
    except (OSError, ValueError) as error:
        raise DataError(
            f"The {job.name} cannot be written to '{folder}': {error}. Choose another folder."
        ) from error
    if before is not None and before != told:
        raise ParameterError(
            f"'{folder}' holds the {job.name} of another model, other settings or another command. "
            "Choose another folder, or empty this one."
        )
    write_atomic(folder / RUN, json.dumps(told))


def _forget(folder: Path, blocks: set[str]) -> None:
    """Delete the failures of parts that are no longer there."""
    for file in (folder / FAILURES).glob("*"):
        if file.stem not in blocks:
            file.unlink()


def _is_done(folder: Path, job: Job, block: Block, retry: bool) -> bool:
    """Say whether a block was finished; if with failures, by its files as they are."""
    if not _file(folder, FAILURES, block).exists():
        return _file(folder, job.kinds[-1], block).exists()
    state = _state_file(folder, block)
    return not retry and state.exists() and state.read_text() == block.state


def _failed(folder: Path, block: Block) -> int:
    """Count the series of a block with a failure; where a part cannot be read, all it has here."""
    file = _file(folder, FAILURES, block)
    if not (block.spans and file.exists()):
        return 0
    named = pd.read_parquet(file, columns=["series"])["series"].notna()
    return int(named.sum() + (~named).sum() * block.series / len(block.spans))


def _file(folder: Path, kind: str, block: Block) -> Path:
    return folder / kind / f"{block.name}.parquet"


def _state_file(folder: Path, block: Block) -> Path:
    return folder / FAILURES / f"{block.name}.state"


def _work(
    engine: Engine, shared: _Shared, blocks: Sequence[Block], folder: Path, verbose: int
) -> None:
    with show_tasks(verbose, "many series", len(blocks)) as advance:
        for block, files in engine.results(treat_block, engine.share(shared), blocks):
            _write(folder, shared.job, block, files)
            advance(f"blocks, the last of {block.series:,} series")


def _write(folder: Path, job: Job, block: Block, files: Mapping[str, bytes]) -> None:
    """Write a block's files; the state of those that it was made from, once failures are final."""
    state = _state_file(folder, block)
    state.unlink(missing_ok=True)
    for kind in (FAILURES, *job.kinds):
        if kind in files:
            write_atomic(_file(folder, kind, block), files[kind])
    for kind in (*job.kinds, FAILURES):
        if kind not in files:
            _file(folder, kind, block).unlink(missing_ok=True)
    if FAILURES in files:
        write_atomic(state, block.state)


# ---------------------------------------------------------------------------------- in one worker


def treat_block(shared: _Shared, block: Block) -> dict[str, bytes]:
    """Do the job with a block's series; return the files that it makes."""
    dataset = shared.dataset
    failures = [] if block.failure is None else [Failure(None, *block.failure)]
    tables = []
    for span in block.spans:
        try:
            tables.append(dataset.read([span], shared.columns))
        except DataError as error:
            failures.append(Failure(None, dataset.parts[span.part].name, str(error)))
    found: dict[str, list[pd.DataFrame]] = {kind: [] for kind in shared.job.kinds}
    if tables:
        table = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
        fitted = _model(shared.model).fitted_
        with warnings.catch_warnings(action="ignore"):  # of a hundred series, no one reads them
            for treated in _tried(fitted, table, dataset.series, shared.job):
                failures += treated.failures
                for kind, one in treated.tables.items():
                    found[kind].append(one)
    every = {kind: pd.concat(some, ignore_index=True) for kind, some in found.items() if some}
    if failures:
        every[FAILURES] = pd.DataFrame(failures, columns=list(Failure._fields), dtype=object)
    return {kind: _bytes(one) for kind, one in every.items()}


@lru_cache(maxsize=1)
def _model(stored: bytes) -> AbstractForecaster:
    with tempfile.TemporaryDirectory(prefix="mvlstm-many-") as folder:
        file = Path(folder) / "model.safetensors"
        file.write_bytes(stored)
        return load(file)


def _tried(fitted: Fitted, table: pd.DataFrame, series: str, job: Job) -> Iterator[Treated]:
    """Treat all series together; where that fails, each half, down to the one that fails."""
    names = table[series].unique()
    try:
        treated = job.treat(fitted, table, job.settings)
    except MVLSTMError as error:
        if len(names) == 1:
            yield Treated({}, [Failure(str(names[0]), None, str(error))])
            return
        few = table[series].isin(names[: len(names) // 2])
        yield from _tried(fitted, table[few], series, job)
        yield from _tried(fitted, table[~few], series, job)
        return
    yield treated


def _bytes(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()
