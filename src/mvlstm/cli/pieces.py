"""Jobs over many series that stay on disk: how they run, and what is said of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mvlstm.cli.options import MEMORY, stays_on_disk
from mvlstm.cli.session import Output
from mvlstm.errors import ParameterError

if TYPE_CHECKING:
    from mvlstm.many import Summary

FAILURES_SHOWN = 10  # on a screen; --json and the folder have all


def running(
    data: Path, into: Path | None, memory: str | None, engine: str, *, retry: bool, quiet: bool
) -> dict[str, Any] | None:
    """Return how a job over many series runs; None where the data are one table."""
    if into is None and not stays_on_disk(data, memory):
        return None
    if into is None:
        raise ParameterError(
            f"'{data}' is read in pieces, and what is found needs a folder. Add --into DIR, or "
            "name a file of one table."
        )
    told = {"memory": memory or MEMORY, "engine": engine, "retry": retry}
    return {**told, "verbose": 0 if quiet else 1}


def tell(output: Output, found: Summary, done: str) -> None:
    """Tell how many series were ``done``, and what failed."""
    failures = found.failures.to_dict(orient="records")
    output.data = {
        "out": str(found.folder),
        "series": found.series,
        "blocks": found.blocks,
        "done": found.done,
        "failures": failures,
        "scores": None if found.scores is None else found.scores.dropna().to_dict(),
    }
    output.show(f"{found.series:,} series {done}, {found.done:,} of {found.blocks:,} blocks now")
    for one in failures[:FAILURES_SHOWN]:
        output.warn(one["reason"])
    if len(failures) > FAILURES_SHOWN:
        output.warn(f"{len(failures):,} failures in all: see '{found.folder / 'failures'}'.")
    if failures:
        output.show("what failed is tried again once its part has changed, or with --retry")
