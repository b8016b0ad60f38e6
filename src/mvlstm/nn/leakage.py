"""How much of each expert's prediction comes from variables other than its own."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.nn.parameters import unflatten

MOST_STEPS = 6  # ahead, whose gradients are taken for each window


def leakage(network: MVLSTMNetwork, flat: Tensor, x: Tensor) -> NDArray[np.float64]:
    r"""Return the leakage matrix (N, N), rows summing to one.

    .. math::
        L_{nk} = \operatorname{mean}_m \lVert \partial \mu_n / \partial x^k_{1:T} \rVert_2

    divided by its row sum, the mean being over members, windows and steps ahead. Of more than six
    steps each window takes six, the next window the next six. The paper holds that row n of the
    state knows variable n alone, which would make this matrix diagonal. It is, with
    ``gates="variable"``; with full gates the other variables come in through the gates. Weights
    ``flat`` are (K, P), windows x (K, T, B, C).
    """
    x = x.detach().clone().requires_grad_(True)
    prediction = network(unflatten(flat, network.shapes), x)
    assert prediction.mu is not None, "leakage needs a mixture of experts"
    N, H = network.n_variables, prediction.mu.shape[2]
    columns = torch.tensor(network.groups, device=x.device)
    window = torch.arange(x.shape[2], device=x.device)
    several = min(H, MOST_STEPS)
    matrix = torch.zeros(N, N, dtype=torch.float64, device=x.device)
    for k in range(several):
        step = (several * window + k) % H  # (B,)
        mu = prediction.mu[:, window, step].sum(dim=(0, 1))  # (N,), windows do not mix
        for n in range(N):
            (gradient,) = torch.autograd.grad(mu[n], x, retain_graph=True)
            squared = gradient.square().sum(dim=1)  # (K, B, C), over time
            grouped = squared.new_zeros(*squared.shape[:2], N)
            grouped.index_add_(2, columns, squared)
            matrix[n] += grouped.sqrt().mean(dim=(0, 1)) / several
    total = matrix.sum(dim=1, keepdim=True)
    return (matrix / torch.where(total > 0, total, 1.0)).cpu().numpy()
