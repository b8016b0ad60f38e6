"""The main job on built-in data whose true drivers are known."""

from __future__ import annotations

import contextlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from mvlstm import datasets
from mvlstm.errors import MissingExtraError, ParameterError
from mvlstm.methods.mvlstm import MVLSTM
from mvlstm.report import render_report
from mvlstm.report.gather import gather_report
from mvlstm.results import Evaluation, Explanation, Forecast
from mvlstm.results.evaluation import SCORES_SHOWN
from mvlstm.storage import write_atomic
from mvlstm.table.files import write_table

ROWS, DATA_SEED = 10_000, 0
SETTINGS: dict[str, Any] = {"window": 10, "hidden_size": 10, "members": 3, "seed": 0}


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demonstration found, and the files it wrote."""

    evaluation: Evaluation  # on unseen rows
    explanation: Explanation
    forecast: Forecast  # of the steps after the last row
    drivers: tuple[str, ...]  # the variables that truly drive the target
    oracle: dict[str, float]  # RMSE and MAE that the best possible forecast would have
    seconds: float
    files: tuple[Path, ...]

    @property
    def called_important(self) -> tuple[str, ...]:
        """Exogenous variables with the verdict ``important``."""
        return tuple(v for v in self.explanation.important if v != self.explanation.target)

    def scores(self) -> pd.DataFrame:
        """Return the scores of the model, of persistence and of the oracle."""
        oracle = pd.DataFrame([self.oracle], index=["oracle (best possible)"])
        table = pd.concat([self.evaluation.scores.filter([*SCORES_SHOWN, "n"]), oracle])
        return table.astype({"n": "Int64"}).rename_axis("model").reset_index()

    def importance(self) -> pd.DataFrame:
        """Return the importance table with the truth in a column of its own."""
        table = self.explanation.importance.copy()
        target = self.explanation.target
        truth = {target: "own past", **dict.fromkeys(self.drivers, "true driver")}
        table["truth"] = [truth.get(str(v), "") for v in table["variable"]]
        return table

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "evaluation": self.evaluation.to_dict(),
            "oracle": self.oracle,
            "drivers": list(self.drivers),
            "called_important": list(self.called_important),
            "explanation": self.explanation.to_dict(),
            "forecast": self.forecast.to_dict(),
            "seconds": self.seconds,
            "files": [str(path) for path in self.files],
        }


def run_demo(out: str | Path = "mvlstm-demo", *, verbose: int = 0) -> Demo:
    """Fit, evaluate, explain and forecast the synthetic set; write the results to ``out``.

    Two of its ten variables, x2 and x3, drive the target; the best possible forecast has RMSE 1.
    The folder is made if it does not exist; files of an earlier run are replaced.
    """
    start, folder = time.perf_counter(), Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(
            f"The folder '{folder}' cannot be made ({error.strerror}). Name another with out=... "
            "and run it again."
        ) from error
    data = datasets.load("synthetic", n=ROWS, seed=DATA_SEED)
    truth = data.truth
    assert truth is not None and truth.oracle_rmse and truth.oracle_mae, "made-up data has a truth"
    model = MVLSTM(**SETTINGS, verbose=verbose).fit(data.frame, data.target, test=0.2)
    found = gather_report(model, model.fitted_, data.frame)
    evaluation, explanation, forecast = found.evaluation, found.explanation, found.future
    names = ("model.safetensors", "scores.json", "importance.csv", "forecast.csv")
    files = tuple(folder / name for name in names)
    oracle = {"rmse": truth.oracle_rmse, "mae": truth.oracle_mae}
    model.save(files[0])
    scores = {**evaluation.to_dict(), "oracle": oracle}
    write_atomic(files[1], json.dumps(scores, indent=2) + "\n")
    write_table(files[2], explanation.to_frame())
    write_table(files[3], forecast.to_frame())
    with contextlib.suppress(MissingExtraError):  # without the extra there is no page
        page = render_report(found, title="Demonstration: x2 and x3 truly drive y")
        files = (*files, write_atomic(folder / "report.html", page))
    seconds = time.perf_counter() - start
    return Demo(evaluation, explanation, forecast, truth.drivers, oracle, seconds, files)
