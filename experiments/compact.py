"""Add the records of a run to those that are kept, one compact file per suite.

    python -m experiments.compact FOLDER [experiments/records]

Of a cell that was run again, the newest finished record is kept.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mvlstm.bench.compact import write_compact
from mvlstm.bench.records import read_records
from mvlstm.bench.tables import newest

RECORDS = Path(__file__).with_name("records")


def compact(folder: str | Path, kept: str | Path = RECORDS) -> list[Path]:
    """Write the records of both folders to compact files in the second; return those written."""
    runs = [read_records(folder, must_exist=True), read_records(kept)]
    every = {one["key"]: (one, run.arrays(one)) for run in reversed(runs) for one in run.found}
    written = []
    for suite in dict.fromkeys(one["job"]["suite"] for one in runs[0].found):
        mine = [one for one, _ in every.values() if one["job"]["suite"] == suite]
        found, _ = newest(sorted(mine, key=lambda one: (one["job"]["budget"], one["job"]["place"])))
        file = Path(kept) / f"records-{suite}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_compact(found, [every[one["key"]][1] for one in found], file)
        written.append(file)
    return written


if __name__ == "__main__":
    for path in compact(*sys.argv[1:]):
        print(f"wrote {path}")
