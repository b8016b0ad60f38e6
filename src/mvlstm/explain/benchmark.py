"""Whether importance finds what is known to be true, and stays silent where nothing is.

The suite needs forecasters, which this layer does not know; it lies in `mvlstm.bench` and is
reached through these two functions. On the command line: ``mvlstm bench run --suite importance``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mvlstm.bench.document import Document
    from mvlstm.bench.run import Summary


def run(
    folder: str | Path,
    *,
    stage: str = "confirm",
    repeats: int | None = None,
    workers: int = 1,
    device: str = "auto",
    **chosen: Any,
) -> Summary:
    """Run the jobs of a stage that are not done yet; each leaves a record in the folder.

    Parameters
    ----------
    folder : str or Path
    stage : {"choice", "confirm"}
        Generator seeds on which measures are chosen, or others on which they are confirmed.
    repeats : int, optional
        Data sets of each kind; 20 by default.
    workers, device
        Processes side by side; where networks are trained.
    **chosen
        ``datasets`` and ``methods``: only these.
    """
    from mvlstm.bench.importance import importance_suite
    from mvlstm.bench.run import run_suite

    suite = importance_suite(repeats=repeats).select(parts=[stage], **chosen)
    return run_suite(suite, folder, workers=workers, device=device)


def tables(folder: str | Path) -> Document:
    """Return the tables of a folder of records."""
    from mvlstm.bench.tables import make_tables

    return make_tables(folder)
