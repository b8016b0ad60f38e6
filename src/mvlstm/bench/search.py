"""Tuning on a user's table: the paper's grid, or a given one, as resumable jobs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mvlstm.bench.records import read_records
from mvlstm.bench.run import run_suite
from mvlstm.bench.spec import MEASURES, Job, Suite, check_settings, file_digest
from mvlstm.errors import (
    DataError,
    MVLSTMError,
    ParameterError,
    TrainingError,
    check_option,
    check_whole,
)
from mvlstm.evaluate.methods import find_method
from mvlstm.methods.network.members import MEMBER_SETTINGS
from mvlstm.metrics import Measure
from mvlstm.problem.splits import split_windows
from mvlstm.report.command import COLUMNS, fit_command
from mvlstm.table.frame import SeriesFrame
from mvlstm.table.parts import require_validation

PRESETS = {"default": "mvlstm", "paper": "paper", "indep": "indep", "fusion": "fusion"}
# the same for all settings of a search
FIXED = ("window", "horizon", "members", "seed", "missing", "gaps", "calendar", "device", "verbose")
SHORT = {"lr": "learning_rate", "hidden": "hidden_size", "batch": "batch_size"}
RATES = [0.0005, 0.001, 0.005, 0.01, 0.05]
SIZES = [10, 15, 20, 25]
SUMMED_L2 = [0.0001, 0.001, 0.01, 0.1, 1.0]  # beside the sum of the losses, as the paper has it
MEAN_L2 = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4]  # about the same beside the mean over 10,000 windows
BAD_INPUT: dict[str, type[MVLSTMError]] = {one.__name__: one for one in (ParameterError, DataError)}
Grid = dict[str, list[Any]]


@dataclass(frozen=True, eq=False)
class Tuned:
    """What a search found.

    Parameters
    ----------
    ranking : DataFrame
        A row a setting, the best first: its arguments and ``valid_rmse`` (or ``valid_mae``).
    best : dict
        The best setting's arguments.
    failed : dict
        Jobs that failed: why.
    folder : Path
        Where the records lie.
    problems : tuple of str
        Records that could not be read.
    """

    ranking: pd.DataFrame
    best: dict[str, Any]
    failed: dict[str, str]
    folder: Path
    problems: tuple[str, ...] = ()


def paper_grid(preset: str) -> Grid:
    """Return the paper's grid; for the package's own loss with L2 beside its mean."""
    l2 = MEAN_L2 if preset == "default" else SUMMED_L2
    return {"hidden_size": list(SIZES), "learning_rate": list(RATES), "l2": list(l2)}


def parse_grid(texts: list[str]) -> Grid:
    """Read ``lr=0.001,0.01,hidden=10,20`` as names with values to try.

    Examples
    --------
    >>> parse_grid(["lr=0.001,0.01,hidden=10", "cell=lstm,gru"])
    {'learning_rate': [0.001, 0.01], 'hidden_size': [10], 'cell': ['lstm', 'gru']}
    """
    grid: Grid = {}
    name = ""
    for word in (piece.strip() for text in texts for piece in text.split(",")):
        if "=" in word:
            name, _, word = (part.strip() for part in word.partition("="))
            name = SHORT.get(name, name.replace("-", "_"))
            grid.setdefault(name, [])
        if not name or not word:
            raise ParameterError(
                f"--grid {' '.join(texts)}: give names with values, such as lr=0.001,0.01 or "
                "hidden=10,20."
            )
        grid[name].append(_value(word))
    return grid


def _value(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(word.lower(), word)


def _check_values(name: str, values: Sequence[Any], default: Any) -> None:
    """Refuse words where the setting is a number."""
    if isinstance(default, bool | str) or default is None:
        return
    for value in values:
        if isinstance(value, bool | str):
            raise ParameterError(
                f"--grid gives {name} the value '{value}', which is no number; give numbers, such "
                f"as {name}={default}."
            )


def tune_jobs(
    data: Mapping[str, Any],
    *,
    preset: str,
    grid: Grid,
    window: int,
    horizon: int,
    seeds: int,
    seed: int,
    settings: Mapping[str, Any],
    measure: Measure = "rmse",
) -> tuple[Job, ...]:
    """Return a job for every combination of the settings that cannot share a batch."""
    check_option("preset", preset, PRESETS)
    check_option("measure", measure, MEASURES)
    check_whole("seeds", seeds, 1)
    base = PRESETS[preset]
    method = find_method(base)
    usable = [name for name in method.parameters if name not in FIXED]
    for name in grid:
        if name not in usable:
            raise ParameterError(
                f"--grid names '{name}', which cannot be searched; choose from {', '.join(usable)}."
            )
        _check_values(name, grid[name], method.defaults[name])
    outer = [name for name in grid if name not in MEMBER_SETTINGS]
    inner = {name: grid[name] for name in grid if name in MEMBER_SETTINGS}
    file = Path(data["file"]).resolve()
    options = {**data, "file": str(file), "sha256": file_digest(file)}
    jobs = []
    for place, values in enumerate(itertools.product(*(grid[name] for name in outer))):
        jobs.append(
            Job(
                suite="tune",
                part="search",
                kind="search",
                dataset=Path(data["file"]).stem,
                data=options,
                method=base,
                base=base,
                label=method.label,
                window=window,
                horizon=horizon,
                setting=",".join(f"{n}={v}" for n, v in zip(outer, values, strict=True)),
                settings=dict(settings),
                grid={n: [v] for n, v in zip(outer, values, strict=True)} | inner,
                measure=measure,
                tune_seeds=seeds,
                seed=seed,
                place=place,
            )
        )
    for job in jobs:
        check_settings(job)
    return tuple(jobs)


def check_parts(frame: SeriesFrame, jobs: Sequence[Job]) -> None:
    """Raise `ParameterError` or `DataError` if the rows cannot be divided as a search asks."""
    shares = {"test": jobs[0].data.get("test", 0.2), "valid": jobs[0].data.get("valid", 0.1)}
    require_validation(shares["valid"])
    split_windows(frame, window=jobs[0].window, horizon=jobs[0].horizon, **shares)


def tune_table(jobs: tuple[Job, ...], folder: str | Path, **running: Any) -> Tuned:
    """Run the jobs that are not done yet and rank all settings.

    Parameters
    ----------
    jobs : tuple of Job
        What `tune_jobs` returned.
    folder : str or Path
        Folder of records; a search that was interrupted goes on from there.
    **running
        Arguments of `run_suite`: engine, address, workers, device, retry_failed, verbose.
    """
    summary = run_suite(Suite("tune", "", "", jobs), folder, **running)
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
    judged = f"valid_{jobs[0].measure}"
    finite = [row for row in rows if row[judged] is not None]
    if not finite:
        reason = next(iter(failed.values()), "every training failed")
        kind = BAD_INPUT.get(kinds.pop(), TrainingError) if len(kinds) == 1 else TrainingError
        raise kind(f"No setting could be trained: {reason}")
    ranking = pd.DataFrame(finite).sort_values(judged, kind="stable", ignore_index=True)
    best = {str(name): ranking[name].iloc[0] for name in ranking if name != judged}
    plain = {name: v.item() if hasattr(v, "item") else v for name, v in best.items()}
    return Tuned(ranking, plain, failed, summary.folder, summary.problems)


def tuned_command(
    data: Mapping[str, Any],
    best: Mapping[str, Any],
    *,
    preset: str,
    window: int,
    horizon: int,
    seed: int,
) -> str:
    """Return the `mvlstm fit` command that uses a setting."""
    said = ("target", "series", *COLUMNS, "calendar", *("missing", "gaps", "test", "valid"))
    options = {name: data.get(name) for name in (*said, "sep", "decimal")}
    options |= {"preset": preset, "window": window, "horizon": horizon, **best, "seed": seed}
    return fit_command(str(data["file"]), options, out=f"{Path(data['file']).stem}.safetensors")
