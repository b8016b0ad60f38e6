"""What was tried for `MVLSTM` and did not stay, as rows of `search.toml`.

Each class is `MVLSTM` with one thing changed; the arguments it has besides stand at its head.
`Kinds` is an ensemble of several settings side by side.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from math import cos, lgamma, log, pi
from typing import Any, ClassVar, TypeVar
from unittest.mock import patch

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from mvlstm import MVLSTM
from mvlstm.cli.tune import parse_grid
from mvlstm.errors import ParameterError, check_option
from mvlstm.methods.network.link import LinkName
from mvlstm.methods.network.trained import Labels
from mvlstm.model.calibration import calibrate
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.nn.mixture import Prediction, mean_loss
from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.nn.parameters import Parameters
from mvlstm.problem.predictive import Predictive
from mvlstm.problem.problem import Problem
from mvlstm.train.stepper import Stepper

Class = TypeVar("Class", bound=type)
OURS = inspect.signature(MVLSTM).parameters
LEAST_SPREAD = 0.05  # of a window, in deviations of the training rows
HALVED_AFTER = 8  # epochs


def trial(cls: Class) -> Class:
    """Give a class the arguments of `MVLSTM`, and those that its own annotations add."""
    added = {name: vars(cls)[name] for name in inspect.get_annotations(cls) if name in vars(cls)}
    left_out = () if issubclass(cls, MVLSTM) else ("members",)
    defaults = {name: one.default for name, one in OURS.items() if name not in left_out} | added

    def __init__(self: Any, **given: Any) -> None:
        for name in given:
            check_option("argument", name, defaults)
        vars(self).update({**defaults, **given})

    keyword = inspect.Parameter.KEYWORD_ONLY
    listed = [inspect.Parameter(name, keyword, default=value) for name, value in defaults.items()]
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    vars(__init__)["__signature__"] = inspect.Signature([first, *listed])
    cls.__init__ = __init__  # type: ignore[misc]
    return cls


class Trial(MVLSTM):
    """`MVLSTM` with a network of another class, which takes the arguments that the trial adds."""

    network: ClassVar[type[MVLSTMNetwork]] = MVLSTMNetwork

    def _network(self, *args: Any, **kwargs: Any) -> MVLSTMNetwork:
        plain = super()._network(*args, **kwargs)
        same = {f.name: getattr(plain, f.name) for f in fields(plain)}
        more = {f.name: getattr(self, f.name) for f in fields(self.network) if f.name not in same}
        return self.network(**same, **more)


# ----------------------------------------------------------------------------------- the likelihood


@dataclass(frozen=True)
class StudentNetwork(MVLSTMNetwork):
    freedom: float = 4.0

    def loss(self, prediction: Prediction, y: Tensor, known: Tensor | None = None) -> Tensor:
        if self.head == "fusion" or "nll" not in self.loss_name:
            return super().loss(prediction, y, known)
        total = mean_loss(student_nll(prediction, y, self.freedom), known)
        if "mse" in self.loss_name:
            total = total + mean_loss((y - prediction.mean).square(), known)
        return total


def student_nll(prediction: Prediction, y: Tensor, freedom: float) -> Tensor:
    """Return what `mixture_nll` does, of components with Student's t distribution."""
    assert prediction.mu is not None and prediction.log_prior is not None
    log_sigma2 = prediction.log_sigma2
    if log_sigma2.dim() == 2:
        log_sigma2 = log_sigma2[:, None, :, None]
    squared = (y.unsqueeze(-1) - prediction.mu).square() * torch.exp(-log_sigma2)
    whole = lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - 0.5 * log(freedom * pi)
    density = whole - 0.5 * log_sigma2 - (freedom + 1) / 2 * torch.log1p(squared / freedom)
    return -torch.logsumexp(prediction.log_prior + density, dim=-1)


@trial
class StudentT(Trial):
    """Components with heavy tails in training; forecasts take them for normals, calibrated."""

    freedom: float = 4.0
    network = StudentNetwork


# --------------------------------------------------------------------------------------- the inputs


class WindowNetwork(MVLSTMNetwork):
    def __call__(self, p: Parameters, x: Tensor, dropout: Any = None) -> Prediction:
        center = x.mean(dim=1, keepdim=True)  # (K, 1, B, C)
        spread = (x.var(dim=1, keepdim=True, correction=0) + LEAST_SPREAD**2).sqrt()
        q = super().__call__(p, (x - center) / spread, dropout)
        level, unit = (one[:, 0, :, -1, None, None] for one in (center, spread))  # (K, B, 1, 1)
        assert q.mu is not None
        log_sigma2 = q.log_sigma2 if q.log_sigma2.dim() == 4 else q.log_sigma2[:, None, :, None]
        return q._replace(
            mean=q.mean * unit[..., 0] + level[..., 0],
            mu=q.mu * unit + level,
            log_sigma2=(log_sigma2 + 2 * unit.log()).expand_as(q.mu),
        )


@trial
class WindowNormal(Trial):
    """Windows less their own mean, by their own deviation; forecasts are put back by the target's.

    Training labels and the target's column are taken to be standardised alike, as they nearly are.
    """

    link: LinkName = "none"
    network = WindowNetwork

    def _check_parameters(self) -> None:
        super().check()
        check_option("link", self.link, ("none",))
        check_option("head", self.head, ("mixture",))


@dataclass(frozen=True)
class NoiseNetwork(MVLSTMNetwork):
    noise: float = 0.05

    def __call__(self, p: Parameters, x: Tensor, dropout: Any = None) -> Prediction:
        if next(iter(p.values())).requires_grad:  # in training
            x = x + self.noise * torch.randn_like(x)
        return super().__call__(p, x, dropout)


@trial
class InputNoise(Trial):
    """Normal noise on the inputs in training; it is not fixed by the seed."""

    noise: float = 0.05
    network = NoiseNetwork


class DroppedNetwork(MVLSTMNetwork):
    def __call__(self, p: Parameters, x: Tensor, dropout: Any = None) -> Prediction:
        return super().__call__(p, x if dropout is None else dropout(x, 0, 2))


@trial
class InputDropout(Trial):
    """Dropout of the inputs, value by value, in place of that of the summaries."""

    network = DroppedNetwork


# ------------------------------------------------------------------------------ the initial weights


@dataclass(frozen=True)
class ForgetNetwork(MVLSTMNetwork):
    forget: float = 0.0

    def initial(self, generator: torch.Generator) -> Parameters:
        drawn = super().initial(generator)
        for level, layer in enumerate(self.stack):
            forget = slice(layer.size, 2 * layer.size)  # the gates are i, f, o
            drawn[f"b_{level}"][forget] = self.forget - 1.0  # one is added outside
        return drawn


@trial
class ForgetBias(Trial):
    """Another initial bias of the LSTM's forget gate, which is one in `MVLSTM`."""

    forget: float = 0.0
    network = ForgetNetwork

    def _check_parameters(self) -> None:
        super().check()
        check_option("cell", self.cell, ("lstm",))


class OrthogonalNetwork(MVLSTMNetwork):
    def initial(self, generator: torch.Generator) -> Parameters:
        drawn = super().initial(generator)
        for level, layer in enumerate(self.stack):
            for name in ("Wh", "Gh"):  # (N, d, d) and (N, G, d, d)
                if name in layer.shapes:
                    drawn[f"{name}_{level}"] = orthogonal(layer.shapes[name], generator)
            if "W" in layer.shapes:  # (G D, C + D)
                shape = (layer.n_gates, layer.size, layer.size)
                square = orthogonal(shape, generator).flatten(0, 1)  # (G D, D)
                drawn[f"W_{level}"][:, layer.n_columns :] = square
        return drawn


def orthogonal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Draw orthogonal matrices (..., n, n) uniformly, in float64."""
    q, r = torch.linalg.qr(torch.randn(shape, dtype=torch.float64, generator=generator))
    found: Tensor = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
    return found


@trial
class Orthogonal(Trial):
    """Orthogonal recurrent weights to begin with, in place of Glorot's."""

    network = OrthogonalNetwork


# ------------------------------------------------------------------------------------- the training


@contextmanager
def scheduled(factor: Callable[[int], float]) -> Iterator[None]:
    """Multiply the learning rates of every epoch by ``factor(epoch)``."""
    plain = Stepper.run_epoch

    def run_epoch(stepper: Any, epoch: int, *args: Any) -> Any:
        full = vars(stepper).setdefault("full_rate", stepper.learning_rate.clone())
        stepper.learning_rate.copy_(full * factor(epoch))
        return plain(stepper, epoch, *args)

    with patch.object(Stepper, "run_epoch", run_epoch):
        yield


@trial
class Scheduled(Trial):
    """A learning rate that falls to zero in half a cosine, or is halved every eight epochs."""

    schedule: str = "cosine"

    def _check_parameters(self) -> None:
        super().check()
        check_option("schedule", self.schedule, ("cosine", "halving"))

    def _learn(self, problem: Problem) -> None:
        factors = {
            "cosine": lambda epoch: 0.5 + 0.5 * cos(pi * epoch / self.max_epochs),
            "halving": lambda epoch: 0.5 ** (epoch // HALVED_AFTER),
        }
        with scheduled(factors[self.schedule]):
            super()._learn(problem)


# ---------------------------------------------------------------------------- members of many kinds


@trial
class Kinds(AbstractForecaster):
    """Members of several kinds, such as "link=none,gates=variable", in one ensemble.

    Member k is the mean of the k-th of every kind, with equal weights or with those of the least
    squared error on the stopping rows, before the links are fitted to these too.
    """

    kinds: Sequence[str] = ("link=linear", "link=none")
    size: int = 5
    combine: str = "mean"
    table_dtype = np.float32

    def _check_parameters(self) -> None:
        super().check()
        check_option("combine", self.combine, ("mean", "weights"))
        if isinstance(self.kinds, str) or not self.kinds:
            raise ParameterError(f"kinds={self.kinds!r} must be a list, such as ['link=none'].")
        for kind in self.kinds:
            self._model(kind).check()

    def _model(self, kind: str) -> MVLSTM:
        changes = {name: values[0] for name, values in parse_grid([kind]).items()}
        shared = {name: getattr(self, name) for name in OURS if name != "members"}
        for name in changes:
            check_option("kinds", name, shared)
        return MVLSTM(**(shared | {"members": self.size} | changes))

    def _learn(self, problem: Problem) -> None:
        alone = replace(problem, run=replace(problem.run, checkpoint=None))
        begun = {name: value for name, value in vars(self).items() if name.endswith("_")}
        self.models_ = [self._model(kind) for kind in self.kinds]
        for model in self.models_:
            model.__dict__.update(begun)
            model._learn(alone)
            calibrate(model, problem)
            self.stopped_ = self.stopped_ or model.stopped_
            self.notes_ = (*self.notes_, *model.history_.notes)
        self.shares_ = np.full(len(self.kinds), 1 / len(self.kinds))
        if self.combine == "weights":
            self.shares_ = least_squares([stop_errors(model, problem) for model in self.models_])

    def _predict_rows(self, prepared: Any, origins: Any) -> Predictive:
        return self._joined([model._predict_rows(prepared, origins) for model in self.models_])

    def _predictive(self, windows: Any, *, exact: bool = False) -> Predictive:
        return self._joined([model._predictive(windows, exact=exact) for model in self.models_])

    def _joined(self, every: Sequence[Predictive]) -> Predictive:
        members: Any = 0.0
        mixtures = []
        for share, model, found in zip(self.shares_, self.models_, every, strict=True):
            members = members + share * found.members
            weights, *rest = found.mixture(model.spread_)
            by_member = (*weights.shape[:2], self.size, -1)
            mixtures.append([one.reshape(by_member) for one in (share * weights, *rest)])
        joined = [np.concatenate(parts, axis=-1) for parts in zip(*mixtures, strict=True)]
        return Predictive(members, *(one.reshape(*one.shape[:2], -1) for one in joined))

    def _predict_windows(self, windows: Any) -> Any:
        found = [model._predict_windows(windows) for model in self.models_]
        return np.tensordot(self.shares_, found, axes=1)

    def _weights(self) -> Any:
        raise ParameterError("Kinds cannot be saved; save the models of its kinds.")

    def _set_weights(self, arrays: Any, extra: Any) -> None:
        raise NotImplementedError


def stop_errors(model: MVLSTM, problem: Problem) -> Any:
    """Return the errors of a model's mean on the stopping rows, its link as training had it."""
    rows = problem.origins["stop"]
    trained = replace(model.trained_, labels=Labels.learn(model.link, problem))
    return trained.rows(problem.prepared.table, rows).mean(axis=0) - problem.labels("stop")


def least_squares(errors: Sequence[Any]) -> Any:
    """Return weights, none negative and one in all, whose mean of the errors has least squares."""
    each = np.stack([one.ravel() for one in errors], axis=1)  # (M H, kinds)
    each = each[np.isfinite(each).all(axis=1)]
    size = np.linalg.norm(each)  # any would do: it changes the sum of what is found, not its shares
    found, _ = nnls(np.vstack([each, np.full(len(errors), size)]), np.append(0 * each[:, 0], size))
    return found / found.sum()
