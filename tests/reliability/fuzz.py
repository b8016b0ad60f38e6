"""Mutated files by the thousand: each must load to a working model or give an error of mvlstm.

``python tests/reliability/fuzz.py [FILES] [SECONDS]`` runs both fuzzers, in processes of their
own with limits on memory and time, and prints what they found.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from reliability.mutate import mutate_bytes, mutate_model

GOLDEN = Path(__file__).parents[1] / "golden"
MEMORY = 2**30  # bytes that a file may make the process grow by
HANG = 5.0  # seconds


class Hang(BaseException):
    """A file took too long."""


def data_bytes() -> int:
    """Return the private memory of this process, which RLIMIT_DATA counts."""
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmData"))
    return int(line.split()[1]) * 1024


# ------------------------------------------------------------------------- what is tried


def model_files(draw: random.Random) -> Iterator[tuple[bytes, str]]:
    from mvlstm.storage import unpack

    paths = sorted(GOLDEN.glob("schema*/*.safetensors"))
    whole = [path.read_bytes() for path in paths]
    parts = [unpack(path, "mvlstm", "model") for path in paths]
    while True:
        i = draw.randrange(len(paths))
        if draw.random() < 0.3:
            yield mutate_bytes(whole[i], draw, binary=True), ".safetensors"
        else:
            yield mutate_model(*parts[i], draw), ".safetensors"


def use_model(path: Path, table: Any, draw: random.Random) -> None:
    import numpy as np

    import mvlstm as mv

    model = mv.load(path)
    result = model.forecast(table)
    assert np.isfinite(result.mean).all(), "a forecast is not finite"
    low, high = result.interval(0.9)
    assert (low <= high).all(), "an interval is upside down"
    json.dumps(result.to_dict(), allow_nan=False)
    repr(model), repr(result), repr(model.history_)


def table_files(draw: random.Random) -> Iterator[tuple[bytes, str]]:
    import pandas as pd

    table = pd.read_csv(GOLDEN / "schema1" / "table.csv").iloc[:60]
    german = table.assign(time=pd.to_datetime(table["time"]).dt.strftime("%d.%m.%Y %H:%M"))
    plain = table.to_csv(index=False).encode()
    seeds = [
        (plain, ".csv"),
        (german.to_csv(index=False, sep=";", decimal=",").encode("utf-8-sig"), ".csv"),
        (table.to_csv(index=False, sep="\t").encode("utf-16"), ".txt"),
        (table.drop(columns="time").to_csv().encode(), ".csv"),
        (plain, ".csv.gz"),
    ]
    while True:
        data, suffix = draw.choice(seeds)
        changed = mutate_bytes(data, draw)
        if suffix == ".csv.gz":
            changed = gzip.compress(changed, 1)
            if draw.random() < 0.5:
                changed = mutate_bytes(changed, draw, binary=True)
        yield changed, suffix


def use_table(path: Path, table: Any, draw: random.Random) -> None:
    import numpy as np

    import mvlstm as mv
    from mvlstm.table.files import read_table

    decimal = draw.choice((".", ".", ","))
    table = read_table(path, sep=draw.choice((None, None, ",", ";")), decimal=decimal)
    times = "time" if "time" in table.columns else None
    options = {
        "missing": draw.choice(("error", "drop", "fill")),
        "gaps": draw.choice(("error", "close", "respect")),
    }
    kind = draw.choice((mv.Persistence, mv.Persistence, mv.AR))
    others = [name for name in table.columns if name not in ("time", "y", "température")]
    fitted = kind(window=3, verbose=0, **options).fit(table, "y", time=times, exclude=others)
    result = fitted.forecast(table)
    assert np.isfinite(result.mean).all(), "a forecast is not finite"
    json.dumps(result.to_dict(), allow_nan=False)


KINDS: dict[str, tuple[Any, Any]] = {
    "models": (model_files, use_model),
    "tables": (table_files, use_table),
}


# ---------------------------------------------------------------------------- how it is run


def attempt(use: Callable[[], None]) -> str:
    """Run one file; return "fine", "refused" or what went wrong."""
    from mvlstm.errors import MVLSTMError

    begun = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, HANG)
    try:
        use()
        outcome = "fine"
    except MVLSTMError as error:
        outcome = "refused" if str(error).strip() else "an error without a message"
    except Hang:
        return "a hang"
    except BaseException:
        outcome = traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return outcome if time.monotonic() - begun < HANG else "a hang"


def work(kind: str, files: int, seconds: float, seed: int, answers: Any) -> None:
    """Try so many files, or as many as there is time for; send back what was found."""
    import pandas as pd
    import torch

    import mvlstm as mv

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    make, use = KINDS[kind]
    draw = random.Random(seed)

    def alarm(*_: Any) -> None:
        raise Hang

    signal.signal(signal.SIGALRM, alarm)
    table = pd.read_csv(GOLDEN / "schema1" / "table.csv", index_col="time", parse_dates=["time"])
    table = table.tz_convert("Europe/Berlin").iloc[-12:]
    mv.load(GOLDEN / "schema1" / "mvlstm.safetensors").forecast(table)
    counts = {"files": 0, "fine": 0, "refused": 0}
    wrong: list[str] = []
    resource.setrlimit(resource.RLIMIT_DATA, (data_bytes() + MEMORY, resource.RLIM_INFINITY))
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        for data, suffix in make(draw):
            if counts["files"] >= files or time.monotonic() - begun > seconds:
                break
            path = Path(folder) / f"file{suffix}"
            path.write_bytes(data)
            outcome = attempt(lambda path=path: use(path, table, draw))
            counts["files"] += 1
            if outcome in counts:
                counts[outcome] += 1
            else:
                keep = os.environ.get("MVLSTM_FUZZ_KEEP")
                if keep:
                    (Path(keep) / f"{kind}-{seed}-{counts['files']}{suffix}").write_bytes(data)
                wrong.append(outcome)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    found = {"wrong": wrong[:200], "grown_mb": grown / 1024, "seconds": time.monotonic() - begun}
    answers.put({**counts, **found})


def fuzz(kind: str, files: int, *, seconds: float = 1e9, seed: int = 0) -> dict[str, Any]:
    """Try mutated files in a process of its own; a crash of that process is a find, too."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mvlstm.methods.mvlstm", "safetensors.numpy"])
    answers = context.Queue()
    process = context.Process(target=work, args=(kind, files, seconds, seed, answers))
    process.start()
    while process.is_alive() and answers.empty():
        process.join(0.05)
    found: dict[str, Any] = {"wrong": [f"the process ended with code {process.exitcode}"]}
    if not answers.empty():
        found = answers.get(timeout=30)
    process.join()
    return found


def main() -> None:
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 900.0
    failed = False
    for kind in KINDS:
        found = fuzz(kind, files, seconds=seconds, seed=random.randrange(10**9))
        print(kind, {k: v for k, v in found.items() if k != "wrong"}, flush=True)
        print(*found["wrong"], sep="\n")
        failed |= bool(found["wrong"])
    sys.exit(failed)


if __name__ == "__main__":
    main()
