"""Forecasts and scores of all series of a dataset, block by block, in files.

A block is always the same series, whatever the budget and wherever it is worked on: so are its
forecasts. Its files are written whole, the forecasts last; a block without them, or with a
failure, is worked on again by the next run.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.engine import Engine, check_engine, opened
from mvlstm.errors import DataError, MVLSTMError, ParameterError, reachable
from mvlstm.many.dataset import Dataset, Span
from mvlstm.many.memory import Budget
from mvlstm.model.fitted import Fitted
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.saving import KIND, load
from mvlstm.model.scoring import score_unseen, unseen_origins
from mvlstm.problem.preparation import Prepared
from mvlstm.progress import show_tasks
from mvlstm.storage import Packed, write_atomic

SERIES = 100  # of a block: the intervals of a series follow the outcomes of its block
ROWS = 200_000  # of a block, unless one series has more
KINDS = ("scores", "failures", "forecasts")  # folders of the output, the last written last
RUN = "run.json"
FAILURE = ("series", "part", "reason")


@dataclass(frozen=True)
class Block:
    """Series that are forecast together, or a part that cannot be read."""

    name: str
    spans: tuple[Span, ...]
    series: int
    failure: tuple[str, str] | None = None  # part and reason


@dataclass(frozen=True, eq=False)
class Summary:
    """What a run over many series did."""

    folder: Path
    blocks: int
    done: int  # blocks worked on now
    series: int  # forecast, by this run and those before
    failures: pd.DataFrame  # one row for each series or part: ``series, part, reason``

    def read(self, kind: str = "forecasts") -> pd.DataFrame:
        """Read the forecasts, "scores" or "failures" of all series into memory."""
        files = sorted((self.folder / kind).glob("*.parquet"))
        tables = [pd.read_parquet(file) for file in files]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


class _Shared(NamedTuple):
    model: bytes  # its file
    dataset: Dataset
    columns: tuple[str, ...]
    quantiles: tuple[float, ...]
    scores: bool


def forecast(
    model: AbstractForecaster | str | Path,
    path: str | Path,
    out: str | Path,
    *,
    memory: str | int = "4GB",
    quantiles: Sequence[float] = (),
    scores: bool = True,
    engine: str = "local",
    verbose: int = 1,
) -> Summary:
    """Forecast the next steps of every series of a dataset, and score the unseen rows.

    Each series is scaled by its own training rows, whether or not it was among those learned from.
    What fails is recorded, series by series, and the rest goes on; a second run into the same
    folder does what is missing.

    Parameters
    ----------
    model : AbstractForecaster or path
        A fitted model of several series.
    path : path
        The dataset, as for `fit`. With an engine of other machines, they must see the same path.
    out : path
        Folder for the files ``forecasts/*.parquet``, ``scores/*.parquet`` and
        ``failures/*.parquet``.
    memory : str or int
        Most memory that each process may take, such as "4GB".
    quantiles : sequence of float
        Further quantiles.
    scores : bool
        Whether to score the rows that the model has not seen, next to naive forecasts.
    engine : str
        "local", "ray", or the address of a Ray cluster, where each block is a task.
    verbose : int
        0 shows no progress.

    Returns
    -------
    Summary
    """
    check_engine(engine)
    budget = Budget.of(memory)
    whole = load(model) if isinstance(model, str | Path) else model
    layout = whole.fitted_.layout
    if layout.series is None:
        raise ParameterError(
            "The model is of one series. Fit one of several with mvlstm.many.fit(..., series=...)."
        )
    dataset = Dataset.open(path, layout.series)
    wanted = (*layout.time, layout.series, *layout.columns)
    folder, (stored, checksum) = reachable(out), _stored(whole)
    blocks = list(_blocks(dataset, wanted, budget.free))
    _begin(folder, {"model": checksum, "quantiles": list(quantiles), "scores": scores})
    _forget(folder, {block.name for block in blocks})
    left = [block for block in blocks if not _is_done(folder, block.name)]
    shared = _Shared(stored, dataset, wanted, tuple(quantiles), scores)
    with opened(engine) as spread:
        _work(spread, shared, left, folder, verbose)
    failures = Summary(folder, 0, 0, 0, pd.DataFrame()).read("failures")
    if not len(failures):
        failures = pd.DataFrame(columns=list(FAILURE))
    lost = int(failures["series"].notna().sum())
    count = sum(block.series for block in blocks) - lost
    return Summary(folder, len(blocks), len(left), count, failures)


# ------------------------------------------------------------------------------------- the blocks


def _blocks(dataset: Dataset, wanted: Sequence[str], most: float) -> Iterator[Block]:
    """Divide the series, part by part; one that cannot be read is a block by itself."""
    gathered: list[tuple[int, Span]] = []
    for part, one in enumerate(dataset.parts):
        try:
            dataset.check(part, wanted, most)
            index = dataset.index(part)
        except DataError as error:
            yield Block(_slug(one.name, 0), (), 0, (one.name, str(error)))
            continue
        if dataset.alone(part):
            gathered.append((part, index.span(0, 1)))
            if len(gathered) == SERIES:
                yield _together(dataset, gathered)
                gathered = []
            continue
        edges = _edges(index.rows)
        for k, (low, high) in enumerate(pairwise(edges)):
            yield Block(_slug(one.name, k), (index.span(low, high),), high - low)
    if gathered:
        yield _together(dataset, gathered)


def _together(dataset: Dataset, gathered: Sequence[tuple[int, Span]]) -> Block:
    name = _slug(dataset.parts[gathered[0][0]].name, 0)
    return Block(name, tuple(span for _, span in gathered), len(gathered))


def _edges(rows: Any) -> list[int]:
    """Return where blocks of at most `SERIES` series and `ROWS` rows begin and end."""
    edges, size = [0], 0
    for k, count in enumerate(rows.tolist()):
        if k > edges[-1] and (k - edges[-1] == SERIES or size + count > ROWS):
            edges.append(k)
            size = 0
        size += count
    return [*edges, len(rows)] if len(rows) else edges


def _slug(name: str, k: int) -> str:
    plain = re.sub(r"[^A-Za-z0-9=.-]+", "_", name.removesuffix(".parquet"))[:80]
    return f"{plain}-{blake2b(name.encode(), digest_size=3).hexdigest()}-{k:05d}"


# -------------------------------------------------------------------------------------- the files


def _stored(model: AbstractForecaster) -> tuple[bytes, str | None]:
    """Return the file of a model, and the checksum of what it holds."""
    with tempfile.TemporaryDirectory(prefix="mvlstm-many-") as folder:
        file = Path(folder) / "model.safetensors"
        model.save(file)
        return file.read_bytes(), Packed.open(file, KIND, "model").checksum


def _begin(folder: Path, told: dict[str, Any]) -> None:
    """Make the folders; refuse one that holds the forecasts of another model."""
    try:
        for kind in KINDS:
            (folder / kind).mkdir(parents=True, exist_ok=True)
        before = json.loads((folder / RUN).read_text()) if (folder / RUN).exists() else None
    except (OSError, ValueError) as error:
        raise DataError(
            f"Forecasts cannot be written to '{folder}': {error}. Choose another folder."
        ) from error
    if before is not None and before != told:
        raise ParameterError(
            f"'{folder}' holds the forecasts of another model or other settings. Choose another "
            "folder, or empty this one."
        )
    write_atomic(folder / RUN, json.dumps(told))


def _forget(folder: Path, blocks: set[str]) -> None:
    """Delete the failures of parts that are no longer there."""
    for file in (folder / "failures").glob("*.parquet"):
        if file.stem not in blocks:
            file.unlink()


def _is_done(folder: Path, name: str) -> bool:
    failed = (folder / "failures" / f"{name}.parquet").exists()
    return (folder / "forecasts" / f"{name}.parquet").exists() and not failed


def _work(
    engine: Engine, shared: _Shared, blocks: Sequence[Block], folder: Path, verbose: int
) -> None:
    with show_tasks(verbose, "many series", len(blocks)) as advance:
        for block, files in engine.results(forecast_block, engine.share(shared), blocks):
            for kind in KINDS:
                file = folder / kind / f"{block.name}.parquet"
                if kind in files:
                    write_atomic(file, files[kind])
                elif kind == "failures":
                    file.unlink(missing_ok=True)
            advance(f"blocks, the last of {block.series:,} series")


# ---------------------------------------------------------------------------------- in one worker


class _Failure(NamedTuple):
    series: str | None
    part: str | None
    reason: str


def forecast_block(shared: _Shared, block: Block) -> dict[str, bytes]:
    """Forecast and score a block's series; return the files that it makes."""
    dataset = shared.dataset
    failures = [] if block.failure is None else [_Failure(None, *block.failure)]
    tables = []
    for span in block.spans:
        try:
            tables.append(dataset.read([span], shared.columns))
        except DataError as error:
            failures.append(_Failure(None, dataset.parts[span.part].name, str(error)))
    found: dict[str, list[pd.DataFrame]] = {"forecasts": [], "scores": []}
    if tables:
        table = pd.concat(tables, ignore_index=True) if len(tables) > 1 else tables[0]
        fitted = _model(shared.model).fitted_
        with warnings.catch_warnings(action="ignore"):  # of a hundred series, no one reads them
            for outcome in _tried(fitted, table, dataset.series, shared):
                if isinstance(outcome, _Failure):
                    failures.append(outcome)
                    continue
                found["forecasts"].append(outcome[0])
                if outcome[1] is not None:
                    found["scores"].append(outcome[1])
    every = {kind: pd.concat(some, ignore_index=True) for kind, some in found.items() if some}
    if failures:
        every["failures"] = pd.DataFrame(failures, columns=list(FAILURE), dtype=object)
    return {kind: _bytes(one) for kind, one in every.items()}


@lru_cache(maxsize=1)
def _model(stored: bytes) -> AbstractForecaster:
    with tempfile.TemporaryDirectory(prefix="mvlstm-many-") as folder:
        file = Path(folder) / "model.safetensors"
        file.write_bytes(stored)
        return load(file)


Outcome = tuple[pd.DataFrame, pd.DataFrame | None]


def _tried(
    fitted: Fitted, table: pd.DataFrame, series: str, shared: _Shared
) -> Iterator[Outcome | _Failure]:
    """Forecast all series together; where that fails, each half, down to the one that fails."""
    names = table[series].unique()
    try:
        outcome, left = _forecast(fitted, table, shared)
    except MVLSTMError as error:
        if len(names) == 1:
            yield _Failure(str(names[0]), None, str(error))
            return
        few = table[series].isin(names[: len(names) // 2])
        yield from _tried(fitted, table[few], series, shared)
        yield from _tried(fitted, table[~few], series, shared)
        return
    yield outcome
    yield from left


def _forecast(
    fitted: Fitted, table: pd.DataFrame, shared: _Shared
) -> tuple[Outcome, list[_Failure]]:
    """Forecast the last rows of series that have enough of them, and tell which have not."""
    frame = fitted.read(table, "forecast")
    assert frame.panel is not None
    train = ~fitted.parts.after(np.asarray(frame.times), fitted.parts.train)
    least = fitted.window + fitted.horizon
    own = replace(fitted, preparation=fitted.preparation.of_others(frame, train, least))
    prepared = own.prepare(frame)
    last = frame.last_rows()
    ready = np.isin(last, prepared.origins(own.window, 0))
    short = [
        _Failure(frame.panel.name(row), None, _too_short(frame.panel, row, fitted.window))
        for row in last[~ready]
    ]
    if not ready.any():
        if len(last) == 1:
            raise DataError(short[0].reason)
        raise DataError("no series is long enough")
    made = own.forecast_last(prepared, last[ready]).to_frame(list(shared.quantiles))
    scores = _scores(own, prepared) if shared.scores else None
    return (made.drop(columns=["part", "actual"], errors="ignore"), scores), short


def _too_short(panel: Any, row: int, window: int) -> str:
    rows = int((panel.codes == panel.codes[row]).sum())
    return (
        f"Series '{panel.name(row)}' has {counted(rows, 'row')}; a forecast needs {window} "
        "without a gap. Supply more, or fit with a shorter window."
    )


def _scores(fitted: Fitted, prepared: Prepared) -> pd.DataFrame | None:
    """Score the unseen rows of each series; None where there are none."""
    try:
        origins, _, _ = unseen_origins(fitted, prepared, "evaluate")
        forecast = fitted.forecast(prepared, origins)
        return score_unseen(fitted, forecast, prepared).by_series
    except DataError:
        return None


def _bytes(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()
