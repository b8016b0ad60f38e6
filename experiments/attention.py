"""Attention over the training windows, as the paper shows it: means and histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from mvlstm.methods.network.base import column_owners
from mvlstm.methods.retain import LearnedRetain
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.nn.parameters import Parameters
from mvlstm.problem.inputs import Windows
from mvlstm.problem.problem import Problem
from mvlstm.problem.windows import spread_evenly
from mvlstm.types import FloatArray

BINS = 40  # of every histogram
WINDOWS = 4_000  # training windows whose attention is looked at


def attention(model: AbstractForecaster, problem: Problem) -> dict[str, Any] | None:
    """Return attention over the training windows, as in the paper: means and histograms.

    ``prior`` and ``posterior`` hold a mean for every member and variable; ``histograms`` counts in
    `BINS` equal bins from ``low`` to ``high``, by variable.
    """
    few = spread_evenly(problem.origins["train"], WINDOWS)
    found: dict[str, FloatArray] = {}
    fitted = model.fitted_
    windows = fitted.windows(problem.prepared, few)
    arrays = fitted.learned.attention(windows)
    if arrays is not None:
        found["prior"] = arrays.prior
        if arrays.posterior is not None:
            found["posterior"] = arrays.posterior
    elif isinstance(fitted.learned, LearnedRetain):
        found["signed"] = signed_attention(fitted.learned, windows)
    if not found:
        return None
    result: dict[str, Any] = {"windows": len(few)}
    for name, values in found.items():  # (K, M, H, N)
        result[name] = values.mean(axis=(1, 2)).tolist()
        result[f"{name}_histogram"] = _histogram(values, signed=name == "signed")
    if "posterior" in found:
        result |= _summaries(found["prior"], found["posterior"])
    return result


def signed_attention(learned: LearnedRetain, windows: Windows) -> FloatArray:
    """Return RETAIN's coefficients of each variable, summed over time, (K, M, H, N)."""
    network = learned.trained.network

    def summed(p: Parameters, x: Tensor) -> Tensor:
        return network.coefficients(p, x).sum(dim=3)  # (K, B, H, C)

    pieces = learned.trained.each(summed, windows)
    return np.asarray(np.concatenate(list(pieces), axis=1) @ column_owners(windows))


def _histogram(values: FloatArray, *, signed: bool) -> dict[str, Any]:
    low, high = 0.0, 1.0
    if signed:  # on an axis of its own, a few far values aside
        low, high = (float(edge) for edge in np.percentile(values, [0.1, 99.9]))
        high = high if high > low else low + 1.0
    flat = np.clip(values, low, high).reshape(-1, values.shape[-1])
    counts = [np.histogram(flat[:, n], BINS, (low, high))[0].tolist() for n in range(flat.shape[1])]
    return {"low": low, "high": high, "counts": counts}


def _summaries(prior: FloatArray, posterior: FloatArray) -> dict[str, Any]:
    """Return how far the posterior moved: Kullback-Leibler divergence and both entropies."""
    tiny = np.finfo(np.float64).tiny
    log_pi, log_q = np.log(np.maximum(prior, tiny)), np.log(np.maximum(posterior, tiny))
    return {
        "kl": float((posterior * (log_q - log_pi)).sum(axis=-1).mean()),
        "prior_entropy": float(-(prior * log_pi).sum(axis=-1).mean()),
        "posterior_entropy": float(-(posterior * log_q).sum(axis=-1).mean()),
    }
