"""A Parquet dataset of many series: its parts, where each series lies, and reading some of them.

A dataset is one file, or a folder of files. The rows of a series lie one after another in one
file; or a folder ``id=name`` holds the files of one series, and the column ``id`` is not stored.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from mvlstm._words import counted
from mvlstm.errors import DataError, reachable
from mvlstm.types import IntArray

SUFFIXES = (".parquet", ".pq")
AT_ONCE = 65_536  # rows of the series column that are read together
COPIES = 4  # of a row group that are in memory while it is read
GROUP = 50_000  # rows of each row group that `convert` writes


@dataclass(frozen=True)
class Part:
    """One file; or the files of one series, in a folder that names it."""

    name: str  # within the dataset
    files: tuple[str, ...]
    own: tuple[tuple[str, str], ...] = ()  # columns whose values stand in the folder's name

    def state(self) -> str:
        """Return what is different once a file has been written again."""
        found = (os.stat(file) for file in self.files if os.path.exists(file))
        return " ".join(f"{one.st_size} {one.st_mtime_ns}" for one in found)


@dataclass(frozen=True)
class Span:
    """Rows of a part, whole series."""

    part: int
    first: int
    rows: int


@dataclass(frozen=True, eq=False)
class Index:
    """Where each series of a part lies; rows of one follow one another."""

    part: int
    names: tuple[str, ...]
    first: IntArray  # (series,)
    rows: IntArray  # (series,)

    def span(self, low: int, high: int) -> Span:
        """Return the rows of series ``low`` to ``high``."""
        return Span(self.part, int(self.first[low]), int(self.rows[low:high].sum()))


@dataclass(frozen=True)
class Dataset:
    """A Parquet dataset, nothing of which is in memory."""

    path: str
    series: str  # column
    parts: tuple[Part, ...]

    @classmethod
    def open(cls, path: str | Path, series: str) -> Dataset:
        """List the parts of a file or folder."""
        place = reachable(path)
        if place.is_file():
            return cls(str(place), series, (Part(place.name, (str(place),)),))
        if not place.is_dir():
            raise DataError(f"There is no dataset '{place}'. Check the path.")
        files = sorted(
            file
            for file in place.rglob("*")
            if file.suffix.lower() in SUFFIXES and not file.name.startswith((".", "_"))
        )
        if not files:
            raise DataError(
                f"The folder '{place}' holds no Parquet file. Give the folder of a dataset, or "
                "convert a CSV file first: mvlstm.many.convert(...)."
            )
        return cls(str(place), series, tuple(_parts(place, files, series)))

    def alone(self, part: int) -> bool:
        """Say whether a part holds one series, by the name of its folder."""
        return self.series in dict(self.parts[part].own)

    def columns(self, part: int = 0) -> tuple[str, ...]:
        """Return the columns of a part."""
        one = self.parts[part]
        with _reading(one):
            stored = tuple(_open(one.files[0]).schema_arrow.names)
        return (*stored, *(name for name, _ in one.own if name not in stored))

    def check(self, part: int, wanted: Iterable[str], most: float) -> None:
        """Raise `DataError` if a part lacks a column, or has a row group of too many bytes."""
        there = self.columns(part)
        missing = [name for name in wanted if name not in there]
        if missing:
            raise DataError(
                f"Part '{self.parts[part].name}' has no column '{missing[0]}', which the dataset "
                f"needs; it has {', '.join(there[:8])}. Write the part again with that column, or "
                "take it away."
            )
        with _reading(self.parts[part]):
            found = [_open(file).metadata for file in self.parts[part].files]
            groups = [one.row_group(g) for one in found for g in range(one.num_row_groups)]
        largest = max(groups, key=lambda group: group.total_byte_size, default=None)
        if largest is not None and COPIES * largest.total_byte_size > most:
            raise DataError(
                f"Part '{self.parts[part].name}' has {largest.num_rows:,} rows in one row group, "
                f"too many to be read within memory=.... Write it with row_group_size={GROUP}, or "
                "raise memory=...."
            )

    def index(self, part: int) -> Index:
        """Find out where each series of a part lies, by reading that column alone."""
        one = self.parts[part]
        if self.alone(part):
            with _reading(one):
                rows = sum(_open(file).metadata.num_rows for file in one.files)
            return Index(part, (dict(one.own)[self.series],), np.array([0]), np.array([rows]))
        names: list[str] = []
        first: list[int] = []
        place = 0
        with _reading(one):
            for batch in _open(one.files[0]).iter_batches(AT_ONCE, columns=[self.series]):
                values = batch.column(0).to_pandas().astype(str).to_numpy()
                new = np.flatnonzero(np.r_[not names or values[0] != names[-1], _changes(values)])
                names += values[new].tolist()
                first += (place + new).tolist()
                place += len(values)
        if len(set(names)) < len(names):
            twice = pd.Series(names).value_counts().index[0]
            raise DataError(
                f"The rows of series '{twice}' are not together in part '{one.name}'. Sort the "
                f"part by '{self.series}'."
            )
        starts = np.array(first, dtype=np.int64)
        return Index(part, tuple(names), starts, np.diff(np.append(starts, place)))

    def read(self, spans: Sequence[Span], columns: Sequence[str]) -> pd.DataFrame:
        """Read rows, those of neighbouring spans at once; the series as categories.

        Columns are put together one by one, and their pieces forgotten: a row takes little more
        memory than its values.
        """
        pieces: dict[str, list[pd.Series[Any]]] = {name: [] for name in columns}
        for part, some in groupby(spans, key=lambda span: span.part):
            one = self.parts[part]
            stored = tuple(name for name in columns if name not in dict(one.own))
            for low, high in _joined(some):
                with _reading(one):
                    for table in _tables(one.files, stored, low, high):
                        table = table.assign(**dict(one.own))
                        table[self.series] = table[self.series].astype(str).astype("category")
                        for name in columns:
                            pieces[name].append(table[name].copy())
        series = pd.Series(union_categoricals(pieces.pop(self.series)))
        joined = {name: pd.concat(pieces.pop(name), ignore_index=True) for name in [*pieces]}
        return pd.DataFrame({self.series: series, **joined}, copy=False)[list(columns)]


def _parts(place: Path, files: Sequence[Path], series: str) -> Iterator[Part]:
    for folder, some in groupby(files, key=lambda file: file.parent):
        inner = folder.relative_to(place).parts
        pairs = [unquote(name).partition("=") for name in inner if "=" in name]
        own = tuple((key, value) for key, _, value in pairs)
        if series in dict(own):
            yield Part("/".join(inner), tuple(map(str, some)), own)
        else:
            for file in some:
                yield Part(file.relative_to(place).as_posix(), (str(file),), own)


def _changes(values: Any) -> Any:
    return values[1:] != values[:-1]


def _joined(spans: Iterable[Span]) -> Iterator[tuple[int, int]]:
    """Join spans that follow one another; yield first row and end of each."""
    low = high = -1
    for span in spans:
        if span.first != high:
            if high >= 0:
                yield low, high
            low = span.first
        high = span.first + span.rows
    yield low, high


def _tables(
    files: tuple[str, ...], columns: tuple[str, ...], low: int, high: int
) -> Iterator[pd.DataFrame]:
    """Read some rows of files that follow one another, one by one the row groups that hold them."""
    place = 0
    for file in files:
        for group in range(_open(file).metadata.num_row_groups):
            size = _open(file).metadata.row_group(group).num_rows
            start, end = max(low - place, 0), min(high - place, size)
            if start < end:
                yield _group(_open(file), group, columns).slice(start, end - start).to_pandas()
            place += size


def _open(file: str) -> Any:
    """Open a file, unless it is open and has not changed."""
    found = os.stat(file)
    return _version(file, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=8)
def _version(file: str, changed: int, size: int) -> Any:
    import pyarrow.parquet as parquet

    return parquet.ParquetFile(file)


@lru_cache(maxsize=1)
def _group(opened: Any, group: int, columns: tuple[str, ...]) -> Any:
    """Read a row group; the last is kept, as the next block mostly lies in it too."""
    return opened.read_row_group(group, columns=list(columns))


@contextlib.contextmanager
def _reading(part: Part) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # pyarrow raises its own family of errors
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise DataError(
            f"Part '{part.name}' cannot be read as Parquet: {reason.rstrip('.')}. Replace it, or "
            "take it away, and run again."
        ) from error


def chosen(indices: Sequence[Index], most: int, seed: int) -> tuple[list[Span], int, int]:
    """Choose whole series at random, by their names, until their rows are too many.

    Returns where they lie, in the order of the dataset, and the numbers of series and of rows.
    """
    every = [(one, k) for one in indices for k in range(len(one.names))]
    rows = np.array([int(one.rows[k]) for one, k in every])
    if rows.sum() > most:
        keys = [_key(seed, one.names[k]) for one, k in every]
        order = np.argsort(np.array(keys), kind="stable")
        kept = np.sort(order[np.cumsum(rows[order]) <= most])
        every, rows = [every[k] for k in kept], rows[kept]
    return [one.span(k, k + 1) for one, k in every], len(every), int(rows.sum())


def _key(seed: int, name: str) -> int:
    digest = hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


def convert(
    table: str | Path,
    out: str | Path,
    *,
    series: str,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Write a CSV file as one Parquet file, a piece at a time; return the number of rows.

    The rows of each series must follow one another.

    Parameters
    ----------
    table, out : path
        The CSV file, with a header, and the Parquet file to write.
    series : str
        Column that says which series a row belongs to.
    progress : callable, optional
        Called with the number of rows written so far.
    """
    import pyarrow as pa

    source, file = reachable(table), reachable(out)
    temporary = file.with_name(f".{file.name}.unfinished")
    try:
        count = _write(source, temporary, series, progress)
        Dataset(str(file), series, (Part(source.name, (str(temporary),)),)).index(0)
        temporary.replace(file)
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(
            f"'{source}' cannot be converted: {reason}. Correct the file, or choose another place."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    return count


def _write(
    source: Path,
    file: Path,
    series: str,
    progress: Callable[[int], None] | None,
    types: Mapping[str, str] | None = None,
) -> int:
    """Write the rows of a CSV file as Parquet; ``types`` are those that its first rows belie."""
    import pyarrow as pa
    import pyarrow.csv as text
    import pyarrow.parquet as parquet

    count = 0
    options = text.ConvertOptions(column_types=types)
    with contextlib.closing(text.open_csv(source, convert_options=options)) as stream:
        schema = stream.schema
        if series not in schema.names:
            raise DataError(
                f"'{source}' has no column '{series}'; it has {', '.join(schema.names[:8])}. "
                "Name the column of the series with series=...."
            )
        try:
            with parquet.ParquetWriter(file, schema) as writer:
                for batch in stream:
                    writer.write_table(pa.Table.from_batches([batch]), row_group_size=GROUP)
                    count += len(batch)
                    if progress is not None:
                        progress(count)
        except pa.ArrowInvalid:
            if types is not None:
                raise
            kinds = {one.name: one.type for one in schema if one.name != series}
            wide = {n: "float64" for n, kind in kinds.items() if kind in (pa.int64(), pa.null())}
            return _write(source, file, series, progress, wide)
    return count


def described(rows: int, series: int) -> str:
    """Say how much there is in words.

    Examples
    --------
    >>> described(1200, 3)
    '1,200 rows of 3 series'
    """
    return f"{counted(rows, 'row')} of {series:,} series"
