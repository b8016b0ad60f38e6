"""`RETAIN`: reverse-time attention, a rival whose forecasts come apart into contributions."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from mvlstm.errors import check_option
from mvlstm.explain.lags import lag_index
from mvlstm.methods.network.base import AbstractNetwork
from mvlstm.methods.network.link import LINKS, LinkName
from mvlstm.methods.network.trained import TrainedNetwork
from mvlstm.model.contributions import variable_leads
from mvlstm.model.forecaster import Difference
from mvlstm.model.saving import take_array
from mvlstm.nn.parameters import Parameters
from mvlstm.nn.retain import RETAINNetwork
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.problem import Problem
from mvlstm.problem.transform_choice import TransformChoice
from mvlstm.table.calendar import Calendar
from mvlstm.transforms import Transform
from mvlstm.types import FloatArray, IntArray

Importance = Literal["abs", "signed"]
BASELINE = "(baseline)"


class RETAIN(AbstractNetwork):
    """RETAIN of Choi et al. (2016) with a regression head, trained on squared error.

    Its forecast is linear in the inputs, with coefficients that two recurrences compute from the
    window: `contributions` takes it apart exactly.

    Parameters
    ----------
    window : int
        Rows a forecast looks back on.
    horizon : int
        Steps ahead. The paper: 1.
    hidden_size : int
        Size of the embedding and of both recurrences. The paper: 16 to 512.
    link : {"none", "last", "linear"}
        What the network's forecast is added to: nothing (paper), the last value, or a
        robust linear map of the latest rows.
    dropout, l2, learning_rate : float
        Share of the embedding and of the context dropped in training (paper: 0.5); coefficient of
        the squared weights beside the mean loss; Adam's step size.
    batch_size, max_epochs, patience : int
        Most windows a step (paper: 64), fewer on a short table; most epochs; epochs without
        progress before a member stops.
    members : int
        Networks trained side by side, from different seeds.
    seed : int
        Fixes everything random.
    missing, gaps, calendar, difference, transform : str
        As in `MVLSTM`.
    device : str
        "auto", "cpu" or "cuda".
    verbose : int
        0 is silent.

    Examples
    --------
    >>> import mvlstm as mv
    >>> table = mv.datasets.load("synthetic", n=400).frame
    >>> model = mv.RETAIN(window=5, hidden_size=8, members=2, max_epochs=2, verbose=0)
    >>> forecast = model.fit(table, target="y", test=0.2).predict(table)
    >>> parts = model.contributions(table)
    >>> bool((abs(parts.sum(axis=1) - forecast.mean) < 1e-4).all())
    True
    """

    members_differ: ClassVar[bool] = True
    short_batches: ClassVar[bool] = True
    trained_: TrainedNetwork[RETAINNetwork]

    def __init__(
        self,
        *,
        window: int = 30,
        horizon: int = 1,
        hidden_size: int = 32,
        link: LinkName = "none",
        dropout: float = 0.2,
        l2: float = 1e-5,
        learning_rate: float = 3e-3,
        batch_size: int = 256,
        max_epochs: int = 40,
        patience: int = 6,
        members: int = 5,
        seed: int = 0,
        missing: Literal["error", "drop", "fill"] = "error",
        gaps: Literal["error", "close", "respect"] = "error",
        calendar: Calendar = "none",
        difference: Difference = "none",
        transform: TransformChoice = "none",
        device: str = "auto",
        verbose: int = 1,
    ) -> None:
        self.window = window
        self.horizon = horizon
        self.hidden_size = hidden_size
        self.link = link
        self.dropout = dropout
        self.l2 = l2
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.members = members
        self.seed = seed
        self.missing = missing
        self.gaps = gaps
        self.calendar = calendar
        self.difference = difference
        self.transform = transform
        self.device = device
        self.verbose = verbose

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_option("link", self.link, LINKS)

    def _network(
        self, groups: tuple[int, ...], n_variables: int, label_scale: float
    ) -> RETAINNetwork:
        return RETAINNetwork(len(groups), int(self.hidden_size), int(self.horizon))

    def _summarise(self, problem: Problem) -> None:
        self.importance_ = self._importance(problem)

    # --------------------------------------------------------------------------------- importance

    def variable_importance(self, kind: Importance = "abs") -> pd.Series[float]:
        r"""Return the paper's importance of each variable over the training windows.

        Parameters
        ----------
        kind : {"abs", "signed"}
            "abs": mean over windows of :math:`\sum_t |\omega_{tk}|`, divided by its sum. "signed"
            (the paper's tables): mean of :math:`\sum_t` of the coefficients, divided by the signed
            total; where that total is close to zero, the means themselves.
        """
        self._require_fitted("variable_importance")
        check_option("kind", kind, ("abs", "signed"))
        row = self.importance_[0 if kind == "abs" else 1]
        return pd.Series(row, index=list(self.layout_.names), name=kind)

    def _model_importance(self) -> FloatArray:
        return np.array(self.importance_[0])

    def _importance(self, problem: Problem) -> FloatArray:
        """Return both kinds (2, N), mean over members, training windows and steps."""
        network, sums = self.trained_.network, np.zeros((2, len(problem.groups)))

        def both(p: Parameters, x: Tensor) -> Tensor:
            coefficients = network.coefficients(p, x)  # (K, B, H, T, C)
            omega = coefficients * x.permute(0, 2, 1, 3).unsqueeze(2)
            mean = [omega.abs().sum(dim=3), coefficients.sum(dim=3)]  # (K, B, H, C)
            return torch.stack([part.mean(dim=(0, 2)).sum(dim=0) for part in mean])

        rows = problem.origins["train"]
        for piece in self.trained_.each(both, problem.prepared.table, rows):
            sums += piece.cpu().numpy()
        grouped = sums @ _owner(problem.prepared) / len(rows)  # (2, N)
        total = float(grouped[1].sum())
        degenerate = abs(total) < 1e-3 * np.abs(grouped[1]).sum()
        return np.stack([grouped[0] / grouped[0].sum(), grouped[1] / (1 if degenerate else total)])

    def window_attention(self, prepared: Prepared, origins: IntArray) -> FloatArray:
        """Return the coefficients of each variable, summed over time, (K, M, H, N)."""
        network = self.trained_.network

        def summed(p: Parameters, x: Tensor) -> Tensor:
            return network.coefficients(p, x).sum(dim=3)  # (K, B, H, C)

        pieces = self.trained_.each(summed, *prepared.windows_at(origins, self.window))
        whole = np.concatenate([piece.cpu().numpy() for piece in pieces], axis=1)
        return np.asarray(whole.astype(np.float64) @ _owner(prepared))

    def contributions(self, table: pd.DataFrame, *, by_lag: bool = False) -> pd.DataFrame:
        """Take the forecasts apart into what each variable (and lag) adds, in units of the target.

        A row's sum is the forecast (`predict(table).mean`). The column "(baseline)" holds what
        does not depend on the network's inputs: its bias, and the link where there is one. Of a
        transformed target, what variables add is their share of the way from there to the forecast.

        Parameters
        ----------
        table : DataFrame
        by_lag : bool
            One column a variable and lag (1 is the window's last row) in place of one a variable.
        """
        prepared, origins = self._read_windows(table, "contributions")
        parts = self._omega(prepared, origins, by_lag=by_lag)  # (M, H, ...)
        labels, M = self.trained_.labels, len(origins)
        forecast = self._forecast_rows(prepared, origins)
        bias = self.trained_.parameter("bo").mean(axis=0) * labels.scale  # (H,)
        baseline = labels.offset(*prepared.windows_at(origins, self.window)) + bias
        baseline += prepared.baseline(origins, self.horizon)
        baseline = prepared.in_units(baseline, origins)
        parts = parts * prepared.unit(origins).reshape(-1, *(1,) * (parts.ndim - 1))
        if forecast.transform:
            moved = parts.reshape(M, self.horizon, -1).sum(axis=2)
            slope = _slopes(forecast.transform, baseline, moved)  # (M, H)
            parts = parts * slope.reshape(M, self.horizon, *(1,) * (parts.ndim - 2))
            baseline = forecast.members.mean(axis=0) - moved * slope
        values = np.concatenate(
            [parts.reshape(M * int(self.horizon), -1), baseline.reshape(-1, 1)], axis=1
        )
        columns = self._columns(prepared, by_lag)
        return pd.DataFrame(values, index=forecast.index, columns=columns)

    def _omega(self, prepared: Prepared, origins: IntArray, *, by_lag: bool) -> FloatArray:
        """Return members' mean contributions (M, H, N), or (M, H, N, T) with the last lag first."""
        network = self.trained_.network

        def one(p: Parameters, x: Tensor) -> Tensor:
            omega = network.coefficients(p, x) * x.permute(0, 2, 1, 3).unsqueeze(2)
            omega = omega.mean(dim=0)  # (B, H, T, C)
            return omega.flip(2) if by_lag else omega.sum(dim=2)

        found = self.trained_.each(one, *prepared.windows_at(origins, self.window))
        omega = np.concatenate([piece.cpu().numpy() for piece in found]).astype(
            np.float64
        ) @ _owner(prepared)
        return (np.swapaxes(omega, 2, 3) if by_lag else omega) * self.trained_.labels.scale

    def _columns(self, prepared: Prepared, by_lag: bool) -> pd.Index[Any]:
        variables = prepared.frame.variables
        if not by_lag:
            return pd.Index([*variables, BASELINE])
        lags = lag_index(variables, variable_leads(prepared), self.window)
        return pd.MultiIndex.from_tuples([*lags, (BASELINE, 0)], names=["variable", "lag"])

    # ------------------------------------------------------------------------------------- saving

    def _weights(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        arrays, extra = super()._weights()
        return {**arrays, "importance": self.importance_}, extra

    def _set_weights(self, arrays: dict[str, NDArray[Any]], extra: dict[str, Any]) -> None:
        super()._set_weights(arrays, extra)
        n_variables = len(self.layout_.names)
        self.importance_ = take_array(arrays, "importance", (2, n_variables), np.float64)


def _slopes(transform: Transform, start: FloatArray, moved: FloatArray) -> FloatArray:
    """Return how much the target moves for each unit that its transformed value moves."""
    step = np.where(np.abs(moved) < 1e-6, 1e-6, moved)
    return np.asarray((transform.inverse(start + step) - transform.inverse(start)) / step)


def _owner(prepared: Prepared) -> FloatArray:
    """Return the matrix (C, N) that adds up a variable's columns."""
    return np.eye(prepared.frame.n_variables)[list(prepared.frame.groups)]
