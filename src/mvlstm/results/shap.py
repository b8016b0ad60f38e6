"""Contributions in the form of the library shap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from mvlstm.errors import DataError


def shap_explanation(
    table: pd.DataFrame,
    values: pd.DataFrame,
    background: Sequence[float],
    target: str,
    *,
    step: int,
    lags: bool,
) -> Any:
    """Return contributions to forecasts some steps ahead; see `Explanation.to_shap`.

    ``table`` has the contributions, ``values`` those of the variables, in the same rows.
    """
    try:
        import shap
    except ImportError as error:
        raise ImportError("to_shap() needs shap: pip install mvlstm[shap].") from error
    most = len(background)
    if isinstance(step, bool) or step not in range(1, most + 1):
        raise DataError(
            f"step={step!r} is not among the {most} steps ahead. Choose one of 1 to {most}."
        )
    if "step" in table.index.names:
        rows = table.index.get_level_values("step") == step
        table, values = table[rows], values[rows]
    if lags:
        names = ["{}, lag {}".format(*column) for column in table.columns.tolist()]
        shown, data = table.to_numpy(), None
    else:
        sums = table.T.groupby(level="variable", sort=False).sum().T
        names, shown = list(map(str, sums.columns)), sums.to_numpy()
        data = values[sums.columns].to_numpy(dtype=np.float64)
    return shap.Explanation(
        values=np.ascontiguousarray(shown, dtype=np.float64),
        base_values=np.full(len(shown), background[step - 1]),
        data=data,
        feature_names=names,
        output_names=target,
    )
