"""What was tried for `MVLSTM` and did not stay, as rows of the suite `search`.

Each class is `MVLSTM` with one thing changed, and declares the settings it has besides. `Kinds` is
an ensemble of several settings side by side.
"""

# Annotations are read when settings are declared, hence no `from __future__ import annotations`.
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from math import cos, lgamma, log, pi
from typing import Any, ClassVar, Literal
from unittest.mock import patch

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from mvlstm import MVLSTM
from mvlstm.cli.tune import parse_grid
from mvlstm.errors import ParameterError, check_option
from mvlstm.methods.network.base import LearnedNetwork
from mvlstm.methods.network.trained import learn_labels
from mvlstm.methods.network.training import Training
from mvlstm.model.calibration import calibrate
from mvlstm.model.forecaster import AbstractForecaster
from mvlstm.model.learned import Arrays, Learned, Saved
from mvlstm.nn.mixture import Prediction, mean_loss
from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.nn.parameters import Parameters
from mvlstm.problem.inputs import Windows
from mvlstm.problem.predictive import Mixture, Predictive
from mvlstm.problem.problem import Problem
from mvlstm.settings import MODEL, TRAINING, MVLSTMSettings, setting, settings
from mvlstm.train.stepper import Stepper
from mvlstm.types import FloatArray

LEAST_SPREAD = 0.05  # of a window, in deviations of the training rows
HALVED_AFTER = 8  # epochs


class Trial(MVLSTM):
    """`MVLSTM` with a network of another class, which takes the settings that the trial adds."""

    kind: ClassVar[type[MVLSTMNetwork]] = MVLSTMNetwork

    def network(self, *args: Any, **kwargs: Any) -> MVLSTMNetwork:
        plain = super().network(*args, **kwargs)
        same = {f.name: getattr(plain, f.name) for f in fields(plain)}
        more = {f.name: getattr(self, f.name) for f in fields(self.kind) if f.name not in same}
        return self.kind(**same, **more)


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


@settings(panel=TRAINING)
class StudentT(Trial):
    """Components with heavy tails in training; forecasts take them for normals, calibrated."""

    kind = StudentNetwork
    freedom: float = setting(default=4.0, doc="Degrees of freedom.")


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


@settings(panel=MODEL)
class WindowNormal(Trial):
    """Windows less their own mean, by their own deviation; forecasts are put back by the target's.

    Training labels and the target's column are taken to be standardised alike, as they nearly are.
    """

    kind = WindowNetwork
    link: Literal["none"] = "none"

    def check(self) -> None:
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


@settings(panel=TRAINING)
class InputNoise(Trial):
    """Normal noise on the inputs in training; it is not fixed by the seed."""

    kind = NoiseNetwork
    noise: float = setting(default=0.05, doc="Standard deviation of the noise.")


class DroppedNetwork(MVLSTMNetwork):
    def __call__(self, p: Parameters, x: Tensor, dropout: Any = None) -> Prediction:
        return super().__call__(p, x if dropout is None else dropout(x, 0, 2))


class InputDropout(Trial):
    """Dropout of the inputs, value by value, in place of that of the summaries."""

    kind = DroppedNetwork


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


@settings(panel=MODEL)
class ForgetBias(Trial):
    """Another initial bias of the LSTM's forget gate, which is one in `MVLSTM`."""

    kind = ForgetNetwork
    forget: float = setting(default=0.0, doc="The bias.")

    def check(self) -> None:
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


class Orthogonal(Trial):
    """Orthogonal recurrent weights to begin with, in place of Glorot's."""

    kind = OrthogonalNetwork


# ------------------------------------------------------------------------------------- the training


@settings(panel=TRAINING)
class Scheduled(MVLSTM):
    """A learning rate that falls to zero in half a cosine, or is halved every eight epochs."""

    schedule: Literal["cosine", "halving"] = setting(  # type: ignore[assignment]
        default="cosine", doc="How the rate falls."
    )

    @property
    def training(self) -> Training:
        return replace(super().training, schedule="constant")

    def check(self) -> None:
        super().check()
        check_option("schedule", self.schedule, ("cosine", "halving"))

    def learn(self, problem: Problem) -> LearnedNetwork:
        with patch.object(Stepper, "run_epoch", self._falling(Stepper.run_epoch)):
            return super().learn(problem)

    def _falling(self, plain: Any) -> Any:
        def run_epoch(stepper: Any, epoch: int, *args: Any) -> Any:
            full = vars(stepper).setdefault("full_rate", stepper.learning_rate.clone())
            stepper.learning_rate.copy_(full * self.share(epoch))
            return plain(stepper, epoch, *args)

        return run_epoch

    def share(self, epoch: int) -> float:
        """Return the share of the full rate in an epoch."""
        if self.schedule == "cosine":
            return 0.5 + 0.5 * cos(pi * epoch / self.training.max_epochs)
        return 0.5 ** (epoch // HALVED_AFTER)


# ---------------------------------------------------------------------------- members of many kinds


@settings(panel=MODEL)
class Kinds(AbstractForecaster, MVLSTMSettings):
    """Members of several kinds, such as "link=none,gates=variable", in one ensemble.

    Member k is the mean of the k-th of every kind, with equal weights or with those of the least
    squared error on the stopping rows, before the links are fitted to these too. ``size`` stands
    in place of ``members``, which a suite sets for ensembles of one kind.
    """

    kinds: Sequence[str] = setting(default=("link=linear", "link=none"), doc="Settings of each.")
    size: int = setting(default=5, doc="Members of each kind.")
    combine: Literal["mean", "weights"] = setting(default="mean", doc="How kinds are weighted.")
    precision = np.float32

    def check(self) -> None:
        super().check()
        check_option("combine", self.combine, ("mean", "weights"))
        if isinstance(self.kinds, str) or not self.kinds:
            raise ParameterError(f"kinds={self.kinds!r} must be a list, such as ['link=none'].")
        for kind in self.kinds:
            self.model(kind).check()

    def model(self, kind: str) -> MVLSTM:
        """Return the forecaster of one kind."""
        changes = {name: values[0] for name, values in parse_grid([kind]).items()}
        shared = {f.name: getattr(self, f.name) for f in fields(MVLSTMSettings)}
        for name in changes:
            check_option("kinds", name, shared)
        return MVLSTM(**(shared | {"members": self.size} | changes))

    def learn(self, problem: Problem) -> Learned:
        alone = replace(problem, run=replace(problem.run, checkpoint=None))
        models = [self.model(kind) for kind in self.kinds]
        every = [model.learn(alone) for model in models]
        shares = np.full(len(every), 1 / len(every))
        if self.combine == "weights":
            pairs = zip(models, every, strict=True)
            shares = least_squares([stop_errors(model, one, problem) for model, one in pairs])
        return LearnedKinds(
            every=every,
            spreads=[calibrate(one, problem)[0].spread for one in every],
            shares=shares,
            notes=tuple(note for one in every for note in one.history.notes),
            stopped=next((one.stopped for one in every if one.stopped), None),
        )

    def restore(self, saved: Saved) -> Learned:
        raise NotImplementedError


@dataclass(frozen=True, eq=False, kw_only=True)
class LearnedKinds(Learned):
    every: list[LearnedNetwork]
    spreads: list[FloatArray]
    shares: FloatArray

    def predict(self, windows: Windows, *, spread: bool = True, exact: bool = False) -> Predictive:
        found = [one.predict(windows, spread=spread, exact=exact) for one in self.every]
        members = np.tensordot(self.shares, [one.members for one in found], axes=1)
        mixtures = [one.with_spread(own) for one, own in zip(found, self.spreads, strict=True)]
        weights = [share * one.weights for share, one in zip(self.shares, mixtures, strict=True)]
        parts = (weights, [one.means for one in mixtures], [one.variances for one in mixtures])
        return Predictive(members, Mixture(*(np.concatenate(part, axis=-1) for part in parts)))

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        raise ParameterError("Kinds cannot be saved; save the models of its kinds.")


def stop_errors(model: MVLSTM, learned: LearnedNetwork, problem: Problem) -> FloatArray:
    """Return the errors of a model's mean on the stopping rows, its link as training had it."""
    trained = replace(learned.trained, labels=learn_labels(model.link, problem))
    means = trained.rows(problem.prepared.table, problem.origins["stop"]).mean(axis=0)
    return np.asarray(means - problem.labels("stop"))


def least_squares(errors: Sequence[FloatArray]) -> FloatArray:
    """Return weights, none negative and one in all, whose mean of the errors has least squares."""
    each = np.stack([one.ravel() for one in errors], axis=1)  # (M H, kinds)
    each = each[np.isfinite(each).all(axis=1)]
    size = np.linalg.norm(each)  # any would do: it changes the sum of what is found, not its shares
    found, _ = nnls(np.vstack([each, np.full(len(errors), size)]), np.append(0 * each[:, 0], size))
    return np.asarray(found / found.sum())
