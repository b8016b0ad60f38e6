"""Run the importance suite with processes side by side, sharing a GPU if there is one.

Small fits leave a GPU idle most of the time, so several processes use one together. Every record is
a line of JSON in the folder given; a second call skips what is there and goes on.

    python benchmarks/importance.py --stage all --workers 10 --out results/importance
    python benchmarks/importance.py --tables --out results/importance
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Settings = dict[str, Any]
STAGES = ("confirm", "faithful", "choice", "all")


def faithful_jobs(seeds: int) -> Iterator[Settings]:
    """Yield the trials of trainings that might make attention faithful."""
    from candidates import CANDIDATES

    shared: Settings = {"stage": "faithful", "effort": "quick"}
    lorenz = {"case": "lorenz96", "p": 10, "forcing": 10.0, "window": 2}
    cases: list[Settings] = [
        {**lorenz, "rows": rows, "seed": seed} for rows in (1_000, 10_000) for seed in range(seeds)
    ]
    cases += [
        {"case": "synthetic", "snr": 2.0, "rows": 10_000, "window": 10, "seed": seed}
        for seed in range(seeds)
    ]
    for case in cases:
        for name in CANDIDATES:
            yield {**shared, **case, "method": f"candidate: {name}"}


def all_jobs(stage: str, repeats: int) -> list[Settings]:
    """List the jobs of a stage; of all stages, what matters most comes first."""
    from mvlstm.bench.importance import jobs

    confirm = list(jobs("confirm", repeats=repeats))
    choice = [
        job
        for job in jobs("choice", repeats=max(1, repeats // 4))
        if job["method"] in ("mvlstm", "members")
    ]
    faithful = list(faithful_jobs(max(1, repeats // 5)))
    if stage != "all":
        return {"confirm": confirm, "choice": choice, "faithful": faithful}[stage]
    ours = [job for job in confirm if job["method"] in ("mvlstm", "members", "thirds")]
    rest = [job for job in confirm if job not in ours]
    return [*ours, *faithful, *rest, *choice]


def key(job: Settings) -> str:
    """Return what identifies a job."""
    return json.dumps(job, sort_keys=True)


def done(folder: Path) -> set[str]:
    """Return the keys of the records in a folder that did not fail."""
    keys = set()
    for file in folder.glob("*.jsonl"):
        for line in file.read_text().splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:  # cut off by a kill
                continue
            if "error" not in record:
                keys.add(record["key"])
    return keys


def tables(folder: Path) -> str:
    """Return the tables of the records in a folder and the folders in it, as Markdown."""
    from mvlstm.bench.truth_tables import truth_tables

    lines = [line for file in folder.rglob("*.jsonl") for line in file.read_text().splitlines()]
    found = {one["key"]: one for one in map(json.loads, lines) if "error" not in one}
    blocks = []
    for stage in STAGES[:-1]:
        for table in truth_tables(list(found.values()), stage):
            blocks.append(f"{stage}: {table.markdown()}")
    return "\n\n".join(blocks)


def plain(value: Any) -> Any:
    """Turn numpy's numbers into Python's."""
    return value.item() if hasattr(value, "item") else str(value)


def run(job: Settings, device: str, tiny: bool) -> dict[str, Any]:
    """Run one job and return its record."""
    from mvlstm.bench.importance import run_job

    build = None
    settings = dict(job)
    if job["method"].startswith("candidate: "):
        from candidates import build as candidate

        def build(settings: Settings, device: str) -> Any:
            name = settings["method"].removeprefix("candidate: ")
            extra = {"max_epochs": 1, "members": 2, "hidden_size": 3} if tiny else {}
            return candidate(name, window=settings["window"], device=device, verbose=0, **extra)

    if tiny:
        import mvlstm.bench.importance as suite

        small = {"members": 2, "max_epochs": 1, "hidden_size": 3}
        for name, (method, own) in suite.METHODS.items():
            suite.METHODS[name] = (method, own | suite.find_method(method).known(small))
        settings |= {"rows": min(job["rows"], 400), "effort": "quick", "window": 5}
    return {**run_job(settings, device=device, build=build), "key": key(job)}


def work(number: int, queue: Any, options: argparse.Namespace, end: float) -> None:
    """Take jobs off the queue until it is empty or time is up."""
    import torch

    torch.set_num_threads(options.threads)
    with (Path(options.out) / f"records-{number}-{os.getpid()}.jsonl").open("a") as file:
        while time.time() < end:
            job = queue.get()
            if job is None:
                return
            try:
                record = run(job, options.device, options.tiny)
            except Exception as error:  # a failure of one job is a record, not the end
                traceback.print_exc()
                record = {**job, "key": key(job), "error": f"{type(error).__name__}: {error}"}
            file.write(json.dumps(record, default=plain) + "\n")
            file.flush()
            short = {k: job[k] for k in ("stage", "case", "seed", "method", "rows")}
            shown = {k: v for k, v in record.items() if k.startswith("auroc") or "seconds" in k}
            print(time.strftime("%H:%M:%S"), short, shown, record.get("error", ""), flush=True)


def main() -> None:
    """Run what is asked for and not done yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stage", choices=STAGES, default="all")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1, help="of each worker on the CPU")
    parser.add_argument("--repeats", type=int, default=20, help="data sets of each kind")
    parser.add_argument("--limit-seconds", type=float, default=1e9)
    parser.add_argument("--out", default="results/importance")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--match", default="", help="only jobs whose settings hold this text")
    parser.add_argument("--tiny", action="store_true", help="models too small to mean anything")
    parser.add_argument("--tables", action="store_true", help="print tables of what is in --out")
    options = parser.parse_args()
    if options.tables:
        print(tables(Path(options.out)))
        return
    end = time.time() + options.limit_seconds
    os.environ.setdefault("OMP_NUM_THREADS", str(options.threads))
    sys.path.insert(0, str(Path(__file__).parent))
    Path(options.out).mkdir(parents=True, exist_ok=True)
    finished = done(Path(options.out))
    chosen = all_jobs(options.stage, options.repeats)
    waiting = [job for job in chosen if key(job) not in finished and options.match in key(job)]
    print(f"{len(waiting)} jobs to run, {len(finished)} records found", flush=True)
    context = mp.get_context("spawn")
    queue = context.Queue()
    for job in [*waiting, *[None] * options.workers]:
        queue.put(job)
    crew = [
        context.Process(target=work, args=(number, queue, options, end), daemon=True)
        for number in range(min(options.workers, max(1, len(waiting))))
    ]
    for process in crew:
        process.start()
    for process in crew:
        process.join()
    left = len(waiting) - len(done(Path(options.out)) - finished)
    print(f"{left} jobs left; call again to go on", flush=True)


if __name__ == "__main__":
    main()
