"""Mutated input by the thousand, through every entry: a sound result, or an error of mvlstm.

``python tests/reliability/fuzz.py [FILES] [SECONDS]`` runs every kind, each in a process of its
own with limits on memory and time, and prints what it found. What once failed is kept in
``corpus/KIND`` and tried first; MVLSTM_FUZZ_KEEP names a folder for what fails now.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from reliability.mutate import (
    mutate_archive,
    mutate_bytes,
    mutate_cells,
    mutate_json,
    mutate_model,
)

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "golden"
MEMORY = 2**30  # bytes that a file may make the process grow by
HANG = 20.0  # seconds of the processor
LATE = 180.0  # seconds, however busy the machine is
NETWORK = {"window": 3, "hidden_size": 2, "members": 2, "max_epochs": 2, "device": "cpu"}
SUITE = """
name = "small"
[budgets.quick]
repeats = 2
windows_seen = 600
data.synthetic.sequences = 300
[methods.best]
method = "mvlstm"
label = "MV"
settings = { hidden_size = 2, max_epochs = 2 }
grid = { learning_rate = [0.001, 0.01], l2 = [0.01] }
[[parts]]
name = "tables"
datasets = ["synthetic"]
windows = [3]
horizons = [2]
folds = 2
methods = ["persistence", "ar", "best"]
"""


class Hang(BaseException):
    """A file took too long."""


def data_bytes() -> int:
    """Return the private memory of this process, which RLIMIT_DATA counts."""
    with open("/proc/self/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith("VmData"))
    return int(line.split()[1]) * 1024


def golden_rows(count: int) -> Any:
    """Return the last rows of the table that the golden models were fitted on."""
    import pandas as pd

    table = pd.read_csv(GOLDEN / "schema1" / "table.csv", index_col="time", parse_dates=["time"])
    return table.tz_convert("Europe/Berlin").iloc[-count:]


# ------------------------------------------------------------------------- what is tried


def model_files(draw: random.Random, *, mild: float = 0.0) -> Iterator[tuple[bytes, str]]:
    """Yield mutated models, of which a share differs ``mild``ly: in numbers alone."""
    from mvlstm.storage import Packed

    paths = sorted(GOLDEN.glob("schema*/*.safetensors"))
    whole = [path.read_bytes() for path in paths]
    packed = [Packed.open(path, "mvlstm", "model") for path in paths]
    parts = [(one.header, one.arrays()) for one in packed]
    while True:
        i = draw.randrange(len(paths))
        if mild and draw.random() < mild:
            yield mutate_model(*parts[i], draw, mild=True), ".safetensors"
        elif draw.random() < 0.3:
            yield mutate_bytes(whole[i], draw, binary=True), ".safetensors"
        else:
            yield mutate_model(*parts[i], draw), ".safetensors"


def use_model(path: Path, draw: random.Random) -> None:
    import numpy as np

    import mvlstm as mv

    model = mv.load(path)
    result = model.forecast(golden_rows(12))
    assert np.isfinite(result.mean).all(), "a forecast is not finite"
    low, high = result.interval(0.9)
    assert (low <= high).all(), "an interval is upside down"
    json.dumps(result.to_dict(), allow_nan=False)
    repr(model), repr(result), repr(model.history_)


def explain_model(path: Path, draw: random.Random) -> None:
    """Give a model's table, and new rows, to the verbs that do most with them."""
    import numpy as np
    import pandas as pd

    import mvlstm as mv

    model = mv.load(path)
    rows = golden_rows(90)
    rows = pd.concat([rows, rows.set_index(rows.index + 90 * (rows.index[1] - rows.index[0]))])
    evaluation = model.evaluate(rows)
    assert np.isfinite(evaluation.scores["rmse"]).all(), "a score is not finite"
    found = model.explain(rows, effort="quick", contributions=2)
    assert set(found.importance["verdict"]), "there are no verdicts"
    later = rows.set_index(rows.index + len(rows) // 2 * (rows.index[1] - rows.index[0]))
    model.update(pd.concat([golden_rows(160), later]), max_epochs=1)
    assert np.isfinite(model.forecast(rows).mean).all(), "a forecast is not finite"


def table_files(draw: random.Random, *, mild: float = 0.5) -> Iterator[tuple[bytes, str]]:
    """Yield mutated tables, of which a share differs ``mild``ly: in some cells or rows."""
    import pandas as pd

    table = pd.read_csv(GOLDEN / "schema1" / "table.csv").iloc[:90]
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
        if draw.random() < mild:
            yield mutate_cells(plain, draw), ".csv"
            continue
        data, suffix = draw.choice(seeds)
        changed = mutate_bytes(data, draw)
        if suffix == ".csv.gz":
            changed = gzip.compress(changed, 1)
            if draw.random() < 0.5:
                changed = mutate_bytes(changed, draw, binary=True)
        yield changed, suffix


CODES: tuple[Any, ...] = (None, None, None, [], -200, ["y=-999", 9], "x")
CLEANING = ("missing", "gaps", "duplicates")
OPTIONS: dict[str, tuple[Any, ...]] = {
    "missing": ("error", "drop", "fill", "mask"),
    "gaps": ("error", "close", "respect", "insert"),
    "duplicates": ("error", "first", "last", "mean"),
    "calendar": ("none", "auto", "hour"),
    "transform": ("none", "none", "log1p", "asinh", "auto"),
    "bounds": (None, None, (0.0, None), (-5.0, 5.0), (-1e30, 1e30)),
}


def use_table(path: Path, draw: random.Random) -> None:
    import numpy as np

    import mvlstm as mv
    from mvlstm.table.files import read_table

    sep, decimal = draw.choice((None, None, None, ",", ";")), draw.choice(".....,")
    codes = draw.choice(CODES)
    table = read_table(path, sep=sep, decimal=decimal)
    times = "time" if "time" in table.columns else None
    kind = draw.choice((mv.Persistence, mv.AR))
    own = OPTIONS if kind is mv.AR else CLEANING
    options = {name: draw.choice(OPTIONS[name]) for name in own}
    others = [name for name in table.columns if name not in ("time", "y", "température")]
    columns: Any = {"time": times, "exclude": others, "na_values": codes}
    fitted = kind(window=3, verbose=0, **options).fit(table, "y", **columns)
    result = fitted.forecast(table)
    assert np.isfinite(result.mean).all(), "a forecast is not finite"
    json.dumps(result.to_dict(), allow_nan=False)


def use_check(path: Path, draw: random.Random) -> None:
    """Check a table; where the check says so, a fit with what it advises goes through."""
    import mvlstm as mv
    from mvlstm.table.files import read_table

    options = {name: draw.choice(OPTIONS[name]) for name in CLEANING}
    columns: Any = {"target": "y", "na_values": draw.choice(CODES)}
    if draw.random() < 0.8:
        columns["time"] = "time"
    found = mv.check(path, **columns, **options, window=3, test=0.2)
    found.to_frame(), json.dumps(found.to_dict(), allow_nan=False), repr(found)
    if not found.fits:
        raise mv.errors.DataError("The check found faults that it cannot mend.")
    table = read_table(path, **found.reading)
    given = {**options, **found.settings, "window": 3}
    try:
        mv.Persistence(**given, verbose=0).fit(table, **found.named)
    except mv.errors.MVLSTMError as error:
        raise AssertionError(f"a fit refuses what the check took: {error}") from error


def use_rows(path: Path, draw: random.Random) -> None:
    """Give a table to every verb of a model of sound rows: all find it too far, or none does.

    Those that take long are tried with one table in twenty, and with what the others refuse.
    """
    import mvlstm as mv
    from mvlstm.table.files import read_table

    table = read_table(path)
    model = mv.load(GOLDEN / "schema1" / "ar.safetensors")
    if "time" in table.columns:
        table = table.set_index("time")
    verbs = [partial(getattr(model, verb), table) for verb in ("forecast", "predict", "evaluate")]
    refused = [_refused(verb) for verb in verbs]
    if any(refused) or draw.random() < 0.05:
        page = path.with_suffix(".html")
        refused.append(_refused(partial(model.explain, table, effort="quick", contributions=2)))
        refused.append(_refused(partial(model.report, table, page, effort="quick")))
        refused.append(_refused(partial(model.update, table)))
    far = ["too far from the training" in message for message in refused]
    assert all(far) or not any(far), f"only some refuse it: {refused}"


def _refused(verb: Callable[[], Any]) -> str:
    """Return with which message a verb refuses a table; nothing if its result is sound."""
    import numpy as np

    import mvlstm as mv

    try:
        found = verb()
    except mv.errors.DataError as error:
        return str(error)
    values = found.scores["rmse"] if hasattr(found, "scores") else getattr(found, "mean", 0.0)
    assert np.isfinite(values).all(), f"{verb} is not finite"
    return ""


def use_whole(path: Path, draw: random.Random) -> None:
    """Give a table to what fits many models to it."""
    import mvlstm as mv
    from mvlstm.table.files import read_table

    table = read_table(path)
    how = draw.choice(("compare", "backtest", "graph", "tune"))
    options: Any = {"verbose": 0}
    if draw.random() < 0.6:
        options |= {"missing": "mask", "gaps": "insert", "duplicates": "mean"}
    if how == "compare":
        methods = ["ar", "enet", "seasonal"]
        mv.compare(table, "y", time="time", methods=methods, window=3, **options).to_frame()
    elif how == "backtest":
        mv.backtest(mv.AR(window=3, **options), table, "y", time="time", folds=2).to_frame()
    elif how == "graph":
        mv.graph(table, time="time", window=2, effort="quick", **options).to_frame()
    else:
        mv.tune(table, "y", time="time", model=mv.AR(**options), grid={"window": [2, 3]})


def checkpoint_files(draw: random.Random) -> Iterator[tuple[bytes, str]]:
    from mvlstm.storage import Packed

    with tempfile.TemporaryDirectory() as folder:
        _resume(Path(folder))
        path = Path(folder) / "fit.checkpoint.safetensors"
        whole = path.read_bytes()
        packed = Packed.open(path, "mvlstm-checkpoint", "checkpoint")
        header, arrays = packed.header, packed.arrays()
    while True:
        if draw.random() < 0.3:
            yield mutate_bytes(whole, draw, binary=True), ".safetensors"
        else:
            yield mutate_model(header, arrays, draw, kind="mvlstm-checkpoint"), ".safetensors"


def _resume(folder: Path) -> Any:
    import mvlstm as mv

    table = golden_rows(80)[["y"]].reset_index(drop=True)
    return mv.MVLSTM(**NETWORK, link="last", verbose=0).fit(table, "y", checkpoint=folder)


def use_checkpoint(path: Path, draw: random.Random) -> None:
    import numpy as np

    folder = path.with_suffix(".folder")
    folder.mkdir(exist_ok=True)
    shutil.copy(path, folder / "fit.checkpoint.safetensors")
    try:
        model = _resume(folder)
    finally:
        shutil.rmtree(folder)
    assert np.isfinite(model.fitted_.learned.trained.flat).all(), "weights are not finite"


ERRORS: dict[str, bytes] = {}  # of the single forecasts of the records, by file


def record_files(draw: random.Random) -> Iterator[tuple[bytes, str]]:
    from mvlstm.bench.run import run_suite
    from mvlstm.bench.suite_files import load_suite

    with tempfile.TemporaryDirectory() as folder:
        suite = Path(folder) / "suite.toml"
        suite.write_text(SUITE)
        run_suite(load_suite(str(suite)), Path(folder) / "out", device="cpu", verbose=0)
        (file,) = (Path(folder) / "out").glob("records-*.jsonl")
        lines = file.read_bytes().splitlines()
        ERRORS.update((p.name, p.read_bytes()) for p in (file.parent / "forecasts").glob("*.npz"))
    while True:
        if draw.random() < 0.3:
            yield mutate_bytes(b"\n".join(lines) + b"\n", draw), ".jsonl"
        else:
            changed = list(lines)
            place = draw.randrange(len(lines))
            changed[place] = mutate_json(json.loads(lines[place]), draw)
            yield b"\n".join(changed) + b"\n", ".jsonl"


def use_records(path: Path, draw: random.Random) -> None:
    from mvlstm.bench.tables import make_tables

    folder = path.with_suffix(".folder")
    (folder / "forecasts").mkdir(parents=True)
    shutil.copy(path, folder / "records-one.jsonl")
    for name, data in ERRORS.items():
        kept = data if draw.random() < 0.5 else mutate_archive(data, draw)
        (folder / "forecasts" / name).write_bytes(kept)
    try:
        document = make_tables(folder)
    finally:
        shutil.rmtree(folder)
    for section in document.sections:
        for table in section.tables:
            table.markdown()


def suite_files(draw: random.Random) -> Iterator[tuple[bytes, str]]:
    while True:
        yield mutate_bytes(SUITE.encode(), draw), ".toml"


def use_suite(path: Path, draw: random.Random) -> None:
    from mvlstm.bench.suite_files import load_suite

    assert load_suite(str(path)).jobs, "a suite without jobs"


# what is made, what is done with it, and how many of each kind the fast tests try
KINDS: dict[str, tuple[Any, Any, int]] = {
    "models": (model_files, use_model, 1_200),
    "verbs": (partial(model_files, mild=0.6), explain_model, 24),
    "tables": (table_files, use_table, 800),
    "checks": (table_files, use_check, 120),
    "rows": (table_files, use_rows, 200),
    "whole": (partial(table_files, mild=0.8), use_whole, 40),
    "checkpoints": (checkpoint_files, use_checkpoint, 80),
    "records": (record_files, use_records, 60),
    "suites": (suite_files, use_suite, 400),
}


# ---------------------------------------------------------------------------- how it is run


def attempt(use: Callable[[], None]) -> str:
    """Run one file; return "fine", "refused" or what went wrong."""
    from mvlstm.errors import MVLSTMError

    timers = {signal.ITIMER_PROF: HANG, signal.ITIMER_REAL: LATE}
    for timer, seconds in timers.items():
        signal.setitimer(timer, seconds)
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
        for timer in timers:
            signal.setitimer(timer, 0)
    return outcome


def tried(kind: str, draw: random.Random) -> Iterator[tuple[bytes, str]]:
    """Yield what is kept of earlier finds, then new files."""
    for path in sorted((HERE / "corpus" / kind).glob("*")):
        yield path.read_bytes(), "".join(path.suffixes)
    yield from KINDS[kind][0](draw)


def work(kind: str, files: int, seconds: float, seed: int, answers: Any) -> None:
    """Try so many files, or as many as there is time for; send back what was found."""
    import torch

    import mvlstm as mv

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    use = KINDS[kind][1]
    draw = random.Random(seed)

    def alarm(*_: Any) -> None:
        raise Hang

    for one in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(one, alarm)
    mv.load(GOLDEN / "schema1" / "mvlstm.safetensors").forecast(golden_rows(12))
    counts = {"files": 0, "fine": 0, "refused": 0}
    wrong: list[str] = []
    resource.setrlimit(resource.RLIMIT_DATA, (data_bytes() + MEMORY, resource.RLIM_INFINITY))
    begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for data, suffix in tried(kind, draw):
            if counts["files"] >= files or time.monotonic() - begun > seconds:
                break
            path = Path(folder) / f"file{suffix}"
            path.write_bytes(data)
            started = time.process_time()
            outcome = attempt(lambda path=path: use(path, draw))
            slowest = max(slowest, time.process_time() - started)
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
    answers.put({**counts, **found, "slowest": slowest})


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
    for kind in sys.argv[3:] or KINDS:
        found = fuzz(kind, files, seconds=seconds, seed=random.randrange(10**9))
        print(kind, {k: v for k, v in found.items() if k != "wrong"}, flush=True)
        print(*dict.fromkeys(found["wrong"]), sep="\n")
        failed |= bool(found["wrong"])
    sys.exit(failed)


if __name__ == "__main__":
    main()
