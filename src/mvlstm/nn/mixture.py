r"""The mixture over variables: component means, prior and loss (paper, eq. 9 to 12).

Everything is kept in logarithms: with residuals of 25 standard deviations the likelihood itself
is zero in float32, its logarithm is not.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi
from typing import NamedTuple

import torch
from torch import Tensor


class Prediction(NamedTuple):
    """What a network says of a batch of windows, for each step ahead.

    ``mu`` and ``log_prior`` are None for networks without a mixture; ``temporal`` for networks
    without temporal attention.
    """

    mean: Tensor  # (K, B, H) the point forecast, sum_n pi_n mu_n
    log_sigma2: Tensor  # (K, H), or (K, B, H, N) where each component has its own
    mu: Tensor | None = None  # (K, B, H, N)
    log_prior: Tensor | None = None  # (K, B, H, N)
    temporal: Tensor | None = None  # (K, B, N, T - 1)


def log_prior(scores: Tensor, *, bounded: bool) -> Tensor:
    r"""Return :math:`\log \pi_n = s_n - \log \sum_k e^{s_k}`, s through tanh if bounded."""
    return torch.log_softmax(torch.tanh(scores) if bounded else scores, dim=-1)


def log_joint(log_pi: Tensor, mu: Tensor, y: Tensor, log_sigma2: Tensor) -> Tensor:
    r"""Return :math:`\log \pi_n + \log \mathcal N(y; \mu_n, \sigma^2)`, (K, B, H, N)."""
    if log_sigma2.dim() == 2:
        log_sigma2 = log_sigma2[:, None, :, None]
    residual = y.unsqueeze(-1) - mu
    log_normal = -0.5 * (log(2 * pi) + log_sigma2 + residual.square() * torch.exp(-log_sigma2))
    return log_pi + log_normal


def mixture_nll(prediction: Prediction, y: Tensor) -> Tensor:
    r"""Return :math:`-\log \sum_n \pi_n \mathcal N(y; \mu_n, \sigma^2)` per window, (K, B, H)."""
    assert prediction.mu is not None and prediction.log_prior is not None
    joint = log_joint(prediction.log_prior, prediction.mu, y, prediction.log_sigma2)
    return -torch.logsumexp(joint, dim=-1)


def gaussian_nll(prediction: Prediction, y: Tensor) -> Tensor:
    """Return the negative log-likelihood of one normal about the mean, (K, B, H)."""
    log_sigma2 = prediction.log_sigma2[:, None, :]
    squared = (y - prediction.mean).square()
    return 0.5 * (log(2 * pi) + log_sigma2 + squared * torch.exp(-log_sigma2))


def total_loss(
    name: str,
    nll: Callable[[Prediction, Tensor], Tensor],
    prediction: Prediction,
    y: Tensor,
    known: Tensor | None = None,
) -> Tensor:
    """Return each member's mean loss (K,): "nll", "mse" of the mean, or the sum of both."""
    total = torch.zeros_like(y[:, 0, 0])
    if "nll" in name:
        total = total + mean_loss(nll(prediction, y), known)
    if "mse" in name:
        total = total + mean_loss((y - prediction.mean).square(), known)
    return total


def mean_loss(losses: Tensor, known: Tensor | None = None) -> Tensor:
    """Return each member's mean (K,) of losses (K, B, H); those not ``known`` count as zero."""
    counted = losses if known is None else losses.masked_fill(~known, 0.0)
    return counted.mean(dim=(1, 2))
