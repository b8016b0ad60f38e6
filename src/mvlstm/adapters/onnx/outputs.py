"""From what a method says to forecasts in units of the target, as nodes of a graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from mvlstm.adapters.onnx.graph import Graph, Operand, Value
from mvlstm.adapters.onnx.inputs import Seen
from mvlstm.adapters.onnx.networks import Said
from mvlstm.model.calibration import Calibration
from mvlstm.model.learned import NetworkForm
from mvlstm.problem.target_scale import MemberScale
from mvlstm.transforms import Transform
from mvlstm.types import FloatArray

POINTS, ROUNDS = 32, 6  # of the search for a quantile: it is found to 32**-6 of its bracket


@dataclass(frozen=True, eq=False)
class Normals:
    """Members' forecasts of labels (K, B, H), and their mixture (B, H, K, J) if they have one.

    The weights of a member add up to one.
    """

    members: Value
    weights: Value | None = None
    means: Value | None = None
    variances: Operand = 0.0


def scaled_up(form: NetworkForm, said: Said, guess: Value | None) -> Normals:
    """Bring outputs of networks to the scale of labels: `MemberScale.mixture` as nodes.

    ``guess`` (B, H) is the link's.
    """
    unit, offset = form.scale.scale, _offset(form.scale, guess)
    if form.sigma2 is None or said.mu is None or said.prior is None or not form.mixture:
        members = said.mean.cast(np.float64) * unit + offset
        if form.sigma2 is None:
            return Normals(members)
        means = members.moved(1, 2, 0).spread(3)
        return Normals(members, means * 0.0 + 1.0, means, _by_step(form.sigma2 * unit[:, 0] ** 2))
    weights, mu = (one.cast(np.float64) for one in (said.prior, said.mu))
    weights = weights / weights.total(1, keep=True)
    members = (weights * mu).total(1) * unit + offset
    shift = offset.spread(1) if isinstance(offset, Value) else np.expand_dims(offset, 1)
    variances: Operand = _by_step(form.sigma2 * unit[:, 0] ** 2)
    if said.log_sigma2 is not None:
        found = said.log_sigma2.cast(np.float64).map("Exp") * unit[:, None] ** 2
        variances = found.moved(2, 3, 0, 1)
    means = (mu * unit[:, None] + shift).moved(2, 3, 0, 1)
    return Normals(members, weights.moved(2, 3, 0, 1), means, variances)


def _by_step(variances: FloatArray) -> FloatArray:
    """Lay out variances (K, H) as (H, K, 1)."""
    return np.asarray(variances.T[..., None])


def _offset(scale: MemberScale, guess: Value | None) -> Value | FloatArray:
    """Return what is added to each scaled-up output, (K, B, H)."""
    labels, bare = scale.labels, scale.labels.bare
    mask = scale.is_bare[:, None, None]
    if guess is None:
        without = labels.center if bare is None else np.where(mask, bare.center, labels.center)
        return np.broadcast_to(without * scale.share[:, None, None], mask.shape)
    guess, share = guess.spread(0), scale.share[:, None, None]
    if bare is None or not mask.any():
        return guess + share * labels.center
    beyond = guess - guess.clip(bare.low, bare.high) * share
    beyond = beyond + share * bare.center
    graph = guess.graph
    return graph.constant(mask, bool).where(beyond, guess + share * labels.center)


def forecasts(
    graph: Graph,
    found: Normals,
    sight: Seen,
    calibration: Calibration,
    transform: Transform,
    order: int,
    levels: tuple[float, ...],
) -> dict[str, Value]:
    """Add units, intervals and quantiles: ``mean, quantiles, members``, and the mixture."""
    K, H = calibration.spread.shape
    base = _baseline(sight.target, order, H)  # (B, H, 1, 1), or none
    members = found.members.moved(1, 2, 0)  # (B, H, K)
    means = members.spread(3) if found.means is None else found.means
    factors = calibration.factors[:, None, None]
    if found.weights is None:
        weights = means * 0.0 + 1.0 / K
        variances = means * 0.0 + _by_step(calibration.spread) * factors
    else:
        weights = found.weights / float(K)
        variances = (means * 0.0 + found.variances) * factors
    if base is not None:
        means, members = means + base, members + base.squeezed(3)
    if sight.unit is not None and sight.center is not None:
        means = means * sight.unit + sight.center
        variances = variances * (sight.unit * sight.unit)
        members = members * sight.unit.squeezed(3) + sight.center.squeezed(3)
    if transform:
        wide = variances * calibration.mean_factor[:, None, None]
        each = (weights * _mean(transform, means, wide)).total(3)
        members = each / weights.total(3)
    w, mu, v = (one.reshaped(0, 0, -1) for one in (weights, means, variances))
    members = _clipped(transform, members)
    quantiles = _quantiles(w, mu, v, calibration.scores_at(levels))
    quantiles = _clipped(transform, _inverse(transform, quantiles))
    mean = members.total(2, kind="Mean")
    mixture = {"weights": w, "means": mu, "variances": v}
    return {"mean": mean, "quantiles": quantiles, "members": members, **mixture}


def _baseline(target: Value, order: int, horizon: int) -> Value | None:
    """Return what differencing took away from the next steps, (B, H, 1, 1)."""
    if not order:
        return None
    level = target.cut(1, -1)
    if order == 2:
        level = level + (level - target.cut(1, -2, -1)) * np.arange(1.0, horizon + 1)
    return (level + np.zeros(horizon)).spread(2, 3)


def _quantiles(weights: Value, means: Value, variances: Value, scores: FloatArray) -> Value:
    """Return the values (B, H, Q) at normal scores (H, Q) of mixtures (B, H, J).

    Each lies between the least and the largest of its components' own; the bracket is cut into
    equal pieces again and again.
    """
    graph, score = weights.graph, scores[..., None]
    sd = variances.map("Sqrt").spread(2)  # (B, H, 1, J)
    mu, w = means.spread(2), weights.spread(2)
    own = mu + sd * score  # (B, H, Q, J)
    used = graph.apply("Greater", w, graph.constant(0.0, np.float64), dtype=bool)
    low = used.where(own, float("inf")).total(3, kind="Min", keep=True)  # (B, H, Q, 1)
    width = used.where(own, float("-inf")).total(3, kind="Max", keep=True) - low
    mu, inner = mu.spread(3), 1.0 / (sd.spread(3) * np.sqrt(2.0))
    column = w.cast(np.float32).spread(4)  # (B, H, 1, J, 1)
    wanted = (2.0 * ndtr(score) - 1.0).astype(np.float32)
    inside = np.arange(1, POINTS) / POINTS
    for _ in range(ROUNDS):
        points = (low + width * inside).spread(4)  # (B, H, Q, P, 1)
        z = ((points - mu) * inner).cast(np.float32)  # (B, H, Q, P, J)
        below = (z.map("Erf") @ column).squeezed(4) < wanted
        width = width / float(POINTS)
        low = low + width * below.cast(np.float64).total(3, keep=True)
    return (low + width * 0.5).squeezed(3)


def _clipped(transform: Transform, values: Value) -> Value:
    return values.clip(transform.low, transform.high) if transform.is_bounded else values


def _inverse(transform: Transform, values: Value) -> Value:
    """Turn values on the model's scale into units of the target."""
    if not transform:
        return values
    if transform.name == "log1p":
        return (values.map("Exp") - 1.0).most(0.0)
    return values.sinh() * transform.scale + transform.center


def _mean(transform: Transform, means: Value, variances: Value) -> Value:
    """Return the mean in units of the target of normals on the model's scale."""
    if transform.name == "asinh":
        return means.sinh() * (variances * 0.5).map("Exp") * transform.scale + transform.center
    sd = variances.most(np.finfo(np.float64).tiny).map("Sqrt")
    at = means / sd
    whole = (means + variances * 0.5).map("Exp")
    return whole * _normal_cdf(at + sd) - _normal_cdf(at)


def _normal_cdf(values: Value) -> Value:
    at: Value = values * np.sqrt(0.5)
    return (at.cast(np.float32).map("Erf").cast(np.float64) + 1.0) * 0.5
