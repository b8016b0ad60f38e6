"""Importance within all series of a dataset, block by block, in files, and over all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from mvlstm._words import counted
from mvlstm.errors import check_option
from mvlstm.explain import EFFORTS
from mvlstm.explain.importance import verdicts
from mvlstm.many.forecasting import scaled_alone
from mvlstm.many.running import Failure, Job, Running, Summary, Treated, read_kind, run
from mvlstm.model.explaining import LEAST_WINDOWS
from mvlstm.model.explaining import explain as explain_table
from mvlstm.model.fitted import Fitted
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.settings import expanded

KINDS = ("blocks", "importance")
RISES = ("error_increase", "error_increase_low", "error_increase_high")
LEAST_P = 1e-4  # of a block: draws cannot tell smaller ones apart


@expanded(running=Running)
def explain(
    model: AbstractForecaster | str | Path,
    path: str | Path,
    out: str | Path,
    *,
    effort: Literal["quick", "default", "full"] = "default",
    running: Running,
) -> Summary:
    """Say which variables the forecasts rest on, in every series of a dataset and over all.

    Each series is measured on the latest of its rows that the model has not seen: 60, 200 or 1,000
    windows by ``effort``, fewer where a large model would take too long. What fails is recorded,
    series by series, and the rest goes on; a second run into the same folder does what is missing.

    Parameters
    ----------
    model : AbstractForecaster or path
        A fitted model of several series.
    path : path
        The dataset, as for `fit`. With an engine of other machines, they must see the same path.
    out : path
        Folder for the files ``importance/*.parquet``, one row per series and variable,
        ``blocks/*.parquet``, one row per variable of some 100 series together, and
        ``failures/*.parquet``.
    effort : {"quick", "default", "full"}

    Returns
    -------
    Summary
        Its ``importance`` has one row per variable, over all series: rises in squared error are in
        squares of each series' standard deviation, intervals are as wide as if all blocks erred
        alike, and ``series`` is the share of the series in which the variable is told from noise
        by itself.
    """
    check_option("effort", effort, EFFORTS)
    job = Job("explanations", KINDS, explain_series, {"effort": effort})
    found = run(model, path, out, job, running)
    blocks = read_kind(found.folder, KINDS[0])
    return replace(found, importance=over_all(blocks) if len(blocks) else None)


def explain_series(fitted: Fitted, table: pd.DataFrame, settings: Mapping[str, Any]) -> Treated:
    """Measure importance in each of some series that has enough unseen rows, and in all of them."""
    frame = fitted.read(table, "explain")
    own, prepared = scaled_alone(fitted, frame)
    found = explain_table(own, prepared, effort=settings["effort"], contributions=0, every=True)
    assert frame.panel is not None and found.by_series is not None
    each = found.by_series
    short = sorted({*frame.panel.names} - {*each["series"]})
    sure = each["error_increase_low"] > 0
    pooled = found.importance[["variable", *RISES, "p_value"]].assign(
        squared_error=float(found.whole.get("squared_error", 0.0)),
        n_windows=found.n_windows,
        series=each["series"].nunique(),
        found=found.importance["variable"].map(sure.groupby(each["variable"]).sum()),
    )
    tables = {"blocks": pooled, "importance": each}
    return Treated(tables, [Failure(name, None, _too_few(name)) for name in short])


def _too_few(name: str) -> str:
    return (
        f"Series '{name}' has fewer than {counted(LEAST_WINDOWS, 'window')} that the model has not "
        "seen, too few to measure importance in it. Supply more of its rows."
    )


def over_all(blocks: pd.DataFrame) -> pd.DataFrame:
    """Join what was found of each block: means over all windows, by variable.

    The mean of interval ends holds however blocks depend on one another, and so does e times the
    geometric mean of p-values (Vovk and Wang, 2020).

    Examples
    --------
    >>> rises = dict(zip(RISES, ([0.5, 0.1], [0.4, -0.1], [0.6, 0.3])))
    >>> one = pd.DataFrame({"variable": ["x", "z"], **rises, "p_value": [0.001, 0.4]})
    >>> one = one.assign(squared_error=1.0, n_windows=100, series=5, found=[5, 1])
    >>> over_all(pd.concat([one, one]))[["variable", "importance", "verdict", "series"]]
      variable  importance                         verdict  series
    0        x    0.833333                       important     1.0
    1        z    0.166667  not distinguishable from noise     0.2
    """
    means = ["p_value", "squared_error", *RISES]
    blocks = blocks.assign(p_value=np.log(blocks["p_value"].clip(lower=LEAST_P)))
    weights = blocks["n_windows"].to_numpy()[:, None]
    sums = (blocks[means] * weights).groupby(blocks["variable"], sort=False).sum()
    counts = blocks.groupby("variable", sort=False)[["n_windows", "series", "found"]].sum()
    table = sums.div(counts["n_windows"], axis=0)
    several = blocks["variable"].duplicated().any()
    table["p_value"] = np.exp(table["p_value"] + (1.0 if several else 0.0)).clip(upper=1.0)
    total = float(table[RISES[0]].clip(lower=0.0).sum())
    for name, rise in zip(("importance", "low", "high"), RISES, strict=True):
        share = table[rise].clip(lower=0.0) / (total if total > 0 else np.nan)
        table[name] = share.clip(upper=1.0)
    rises, error = table[RISES[0]].to_numpy(), float(table["squared_error"].iloc[0])
    table["verdict"] = verdicts(table["p_value"].to_numpy(), rises, error)
    table["series"] = counts["found"] / counts["series"]
    order = ["variable", "importance", "low", "high", *RISES, "p_value", "verdict", "series"]
    table = table.sort_values(["importance", RISES[0]], ascending=False, kind="stable")
    return table.reset_index()[order]
