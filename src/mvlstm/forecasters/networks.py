"""What the forecasters made of networks share: training members, and predicting with them."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mvlstm.errors import ParameterError
from mvlstm.forecasters.base import Problem
from mvlstm.nn.parameters import unflatten
from mvlstm.results import History
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.data import WindowData
from mvlstm.train.loop import train
from mvlstm.train.predict import predict_rows
from mvlstm.train.progress import show_progress
from mvlstm.train.protocol import Network
from mvlstm.train.runtime import resolve_device

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
SEEDS_APART = 10_000  # members of one model take consecutive seeds from seed * SEEDS_APART


def check_training(model: Any) -> None:
    """Raise `ParameterError` for a training setting with a value it cannot have."""
    counts = ("hidden_size", "layers", "batch_size", "max_epochs", "patience", "members")
    for name in counts:
        value = getattr(model, name, 1)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ParameterError(f"{name}={value!r} must be a whole number, at least 1.")
    if not 0 <= model.dropout < 1:
        raise ParameterError(f"dropout={model.dropout!r} must be at least 0 and below 1.")
    if not model.learning_rate > 0:
        raise ParameterError(f"learning_rate={model.learning_rate!r} must be positive.")
    if not model.l2 >= 0:
        raise ParameterError(f"l2={model.l2!r} must not be negative.")
    if isinstance(model.seed, bool) or not isinstance(model.seed, int | np.integer):
        raise ParameterError(f"seed={model.seed!r} must be a whole number.")


def member_list(
    count: int, seed: int, learning_rate: float, l2: float, dropout: float
) -> list[Member]:
    """Return ``count`` members with equal settings and seeds of their own."""
    return [
        Member(int(seed) * SEEDS_APART + k, learning_rate, l2, dropout) for k in range(count)
    ]


def train_network(
    network: Network,
    problem: Problem,
    labels: FloatArray,
    members: list[Member],
    config: TrainConfig,
    *,
    device: str,
    unit: float,
    title: str,
    verbose: int,
) -> tuple[NDArray[np.float32], History, str]:
    """Train members on a problem.

    Parameters
    ----------
    labels : (rows, H)
        Scaled labels of the training and stopping origins, by row of the table.
    unit : float
        Factor that turns validation errors into units of the target.

    Returns
    -------
    flat : (K, P) best weights
    history : History
    device : str
    """
    where = resolve_device(device)
    data = WindowData(
        table=torch.as_tensor(problem.prepared.table, dtype=torch.float32, device=where),
        labels=torch.as_tensor(labels, dtype=torch.float32, device=where),
        train=torch.as_tensor(problem.origins["train"], device=where),
        stop=torch.as_tensor(problem.origins["stop"], device=where),
        window=problem.window,
    )
    started = time.monotonic()
    with show_progress(verbose, title, unit) as on_epoch:
        state = train(network, data, members, config, on_epoch=on_epoch)
    unfinished = int(state.running.sum())
    note = f"{unfinished} of {len(members)} members were still improving after {config.max_epochs}"
    history = History(
        train_loss=state.losses.numpy().T.copy(),
        valid_rmse=state.errors.numpy().T * unit,
        best_epoch=state.best_epoch.cpu().numpy(),
        seconds=time.monotonic() - started,
        notes=(f"{note} epochs; raise max_epochs for more.",) if unfinished else (),
    )
    return state.best.cpu().numpy(), history, str(where.type)


def network_means(
    network: Network,
    flat: NDArray[np.float32],
    table: NDArray[np.floating],
    origins: IntArray,
    window: int,
    device: str,
) -> FloatArray:
    """Return members' means (K, M, H), scaled, for windows ending at rows of a table."""
    pieces = [q.mean.cpu().numpy() for q in _pieces(network, flat, table, origins, window, device)]
    return np.concatenate(pieces, axis=1).astype(np.float64)


def network_details(
    network: Network,
    flat: NDArray[np.float32],
    table: NDArray[np.floating],
    origins: IntArray,
    window: int,
    device: str,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mixture and the mean temporal attention.

    Returns
    -------
    mu, log_prior : (K, M, H, N); mu is empty for a head without components
    temporal : (K, N, T - 1), mean over windows
    """
    mu, log_pi, temporal = [], [], 0.0
    for q in _pieces(network, flat, table, origins, window, device):
        assert q.log_prior is not None and q.temporal is not None
        log_pi.append(q.log_prior.cpu().numpy().astype(np.float64))
        if q.mu is not None:
            mu.append(q.mu.cpu().numpy().astype(np.float64))
        temporal = temporal + q.temporal.sum(dim=1).cpu().numpy().astype(np.float64)
    joined = np.concatenate(mu, axis=1) if mu else np.empty(0)
    return joined, np.concatenate(log_pi, axis=1), np.asarray(temporal) / len(origins)


def _pieces(
    network: Network,
    flat: NDArray[np.float32],
    table: NDArray[np.floating],
    origins: IntArray,
    window: int,
    device: str,
) -> Any:
    where = resolve_device(device if device != "cuda" or torch.cuda.is_available() else "cpu")
    p = unflatten(torch.as_tensor(flat, device=where), network.shapes)
    rows = torch.as_tensor(table, dtype=torch.float32, device=where)
    for _, piece in predict_rows(network, p, rows, torch.as_tensor(origins, device=where), window):
        yield piece
