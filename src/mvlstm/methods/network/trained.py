"""A trained ensemble of networks, with the link and the scale of its labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mvlstm.errors import ModelFileError
from mvlstm.methods.network.link import Link, LinkChoice
from mvlstm.methods.network.training import (
    Kind,
    kinds_of,
    of_kinds,
    over_windows,
    scaled_members,
    train_config,
    train_network,
    usable_device,
)
from mvlstm.model.saving import finite_number, take_array
from mvlstm.nn.parameters import Parameters, count, unflatten
from mvlstm.problem.preparation import Prepared
from mvlstm.problem.problem import Problem, known_places
from mvlstm.results import History
from mvlstm.table.parts import PartName
from mvlstm.train.predict import CHUNK, TASK, chunks, mean_rows
from mvlstm.train.protocol import Network
from mvlstm.train.workers import run_all
from mvlstm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from mvlstm.methods.network.base import AbstractNetwork

NetworkT = TypeVar("NetworkT", bound=Network)
Result = TypeVar("Result")


@dataclass(frozen=True)
class Bare:
    """Labels as members without a link see them.

    A network cannot follow a level that training never showed. By as much as the link's forecast
    lies clearly outside the range of the training labels, it is therefore added here too.

    Parameters
    ----------
    center, scale : float
        Mean and standard deviation of the training labels.
    low, high : float
        The range of them, widened by the standard deviation that the link leaves.
    """

    center: float
    scale: float
    low: float
    high: float

    @classmethod
    def learn(cls, labels: FloatArray, left: float) -> Bare:
        """Describe the training labels, of which the link leaves a standard deviation ``left``."""
        low, high = float(labels.min()) - left, float(labels.max()) + left
        return cls(float(labels.mean()), float(labels.std()) or 1.0, low, high)

    def offset(self, link: FloatArray) -> FloatArray:
        """Return what is added to a scaled-up output, given the link's forecast."""
        return self.center + (link - np.clip(link, self.low, self.high))

    def outside(self, link: FloatArray) -> BoolArray:
        """Say where the link's forecast lies outside the range, so that its slope counts."""
        return (link < self.low) | (link > self.high)


@dataclass(frozen=True, eq=False)
class Labels:
    """What a network learns: the labels less the link, centred and scaled on the training part.

    Parameters
    ----------
    link : Link
    center, scale : float
        Mean and standard deviation of what the link leaves of the training labels.
    window : int
    bare : Bare, optional
        The labels themselves, where some members do without the link.
    """

    link: Link
    center: float
    scale: float
    window: int
    bare: Bare | None = None

    @classmethod
    def learn(cls, link: LinkChoice, problem: Problem) -> Labels:
        """Fit the link, then the scale of what it leaves."""
        learned = Link.learn("linear" if link == "auto" else link, problem)
        rows, labels = problem.origins["train"], problem.labels("train")
        residual = labels - learned.rows(problem.prepared.table, rows, problem.window)
        known = known_places(labels)
        residual = residual[known]
        scale = float(residual.std()) or 1.0
        bare = Bare.learn(labels[known], scale) if link == "auto" else None
        return cls(learned, float(residual.mean()), scale, problem.window, bare)

    def refit(self, problem: Problem) -> Labels:
        """Return the labels with the link fitted to the stopping windows too, the scale kept."""
        return replace(self, link=self.link.refit(problem))

    def offset(self, table: NDArray[Any], origins: IntArray) -> FloatArray:
        """Return what is added to a network's scaled-up output, (M, H)."""
        return self._link(table, origins) + self.center

    def _link(self, table: NDArray[Any], origins: IntArray) -> FloatArray:
        return self.link.rows(table, origins, self.window)

    def scaled(self, prepared: Prepared, origins: IntArray, labels: FloatArray) -> FloatArray:
        """Return labels (M, H) of given origins as a network sees them."""
        return (labels - self.offset(prepared.table, origins)) / self.scale

    def by_row(self, problem: Problem) -> FloatArray:
        """Return the labels of the training and stopping origins by row of the table, (rows, H).

        Rows that are neither are NaN, and so is what was filled in. Where some members do without
        the link, (2, rows, H): what it leaves, and the labels themselves.
        """
        prepared, H = problem.prepared, problem.horizon
        variants = 1 if self.bare is None else 2
        labels = np.full((variants, prepared.frame.n_rows, H), np.nan)
        parts: tuple[PartName, ...] = ("train", "stop")
        for part in parts:
            rows = problem.origins[part]
            # strict for stopping: a row may be of both parts, and few of them tell little of a step
            known = prepared.known_labels(rows, H, strict=part == "stop")
            labels[0, rows] = self.scaled(prepared, rows, known)
            if self.bare is not None:
                offset = self.bare.offset(self._link(prepared.table, rows))
                labels[1, rows] = (known - offset) / self.bare.scale
        return labels[0] if self.bare is None else labels


@dataclass(frozen=True, eq=False)
class TrainedNetwork(Generic[NetworkT]):
    """Members of one network, and how their outputs become forecasts of the labels.

    Parameters
    ----------
    network : Network
    flat : (K, P) float32
        Weights, a row a member.
    labels : Labels
    device : str
    kinds : uint8 array (K,), optional
        The kind of each member; all are plain by default.
    """

    network: NetworkT
    flat: NDArray[np.float32]
    labels: Labels
    device: str
    kinds: NDArray[np.uint8] | None = None

    @classmethod
    def fit(
        cls,
        network: NetworkT,
        problem: Problem,
        labels: Labels,
        model: AbstractNetwork,
    ) -> tuple[TrainedNetwork[NetworkT], History]:
        """Train members with a forecaster's settings."""
        members = scaled_members(model, problem)
        kinds, units = None, np.full(len(members), labels.scale)
        if labels.bare is not None:
            seeds = np.array([member.seed for member in members])
            kinds = kinds_of(seeds, alone=problem.n_variables == 1)
            units = np.where(kinds == Kind.BARE, labels.bare.scale, units)
            if not kinds.any():
                kinds, labels = None, replace(labels, bare=None)
        flat, history, device = train_network(
            network,
            problem,
            labels.by_row(problem),
            of_kinds(members, kinds),
            train_config(model, len(problem.origins["train"]), drop_failed=problem.search),
            units=units,
            model=model,
        )
        return cls(network, flat, labels.refit(problem), device, kinds), history

    @property
    def is_bare(self) -> BoolArray:
        """Which members learned the labels themselves, and not what the link leaves, (K,)."""
        if self.kinds is None:
            return np.zeros(len(self.flat), dtype=np.bool_)
        return np.asarray(self.kinds == Kind.BARE)

    @property
    def scale(self) -> FloatArray:
        """Units of the labels in one of each member's outputs, (K, 1, 1)."""
        scale = np.full((len(self.flat), 1, 1), self.labels.scale)
        if self.labels.bare is not None:
            scale[self.is_bare] = self.labels.bare.scale
        return scale

    def offset(self, table: NDArray[Any], origins: IntArray) -> FloatArray:
        """Return what is added to each member's scaled-up output, (K, M, H)."""
        return self._offset(self.labels.link.rows(table, origins, self.labels.window))

    def _offset(self, link: FloatArray) -> FloatArray:
        """Add the members' centres to the link (M, H) of those that have one, (K, M, H)."""
        offset = np.repeat((link + self.labels.center)[None], len(self.flat), axis=0)
        if self.labels.bare is not None:
            offset[self.is_bare] = self.labels.bare.offset(link)
        return offset

    def scaled(self, prepared: Prepared, origins: IntArray) -> FloatArray:
        """Return the labels (K, M, H) of given origins as each member sees them."""
        labels = prepared.labels(origins, self.labels.link.horizon)
        offset = self.offset(*prepared.windows_at(origins, self.labels.window))
        return np.asarray((labels - offset) / self.scale)

    def take(self, rows: slice | NDArray[Any]) -> TrainedNetwork[NetworkT]:
        """Return some of the members."""
        kinds = None if self.kinds is None else self.kinds[rows]
        return replace(self, flat=self.flat[rows], kinds=kinds)

    def each(
        self,
        function: Callable[[Parameters, Tensor], Result],
        table: NDArray[Any],
        origins: IntArray,
    ) -> Iterator[Result]:
        """Yield ``function(parameters, windows)`` for pieces of the windows ending at origins."""
        window = self.labels.window
        return over_windows(
            function, self.network.shapes, self.flat, table, origins, window, self.device
        )

    def rows(self, table: NDArray[Any], origins: IntArray) -> FloatArray:
        """Return members' forecasts of the labels (K, M, H) for windows ending at ``origins``."""
        return self._means(table, origins) * self.scale + self.offset(table, origins)

    def windows(self, windows: FloatArray) -> FloatArray:
        """Return members' forecasts of the labels (K, M, H) for scaled windows (M, T, C)."""
        M, T, C = windows.shape
        table = windows.reshape(M * T, C)  # each window as rows of its own
        origins = np.arange(1, M + 1) * T - 1
        return self._means(table, origins) * self.scale + self._offset(self.labels.link(windows))

    def _means(self, table: NDArray[Any], origins: IntArray) -> FloatArray:
        where = usable_device(self.device)
        p = unflatten(torch.as_tensor(self.flat, device=where), self.network.shapes)
        rows = torch.as_tensor(table, dtype=torch.float32, device=where)
        if not len(origins):
            return np.empty((len(self.flat), 0, self.labels.link.horizon))
        ends = torch.as_tensor(origins, device=where)
        means = mean_rows(self.network, p, rows, ends, self.labels.window)
        return means.cpu().numpy().astype(np.float64)

    def exact(self, windows: FloatArray) -> FloatArray:
        """Return what `windows` does, in double precision on a GPU.

        The kernels there hold operands in half precision, which is too coarse for small
        differences between forecasts.
        """
        p, device = self._exact_parameters()
        if device.type == "cpu":
            return self.windows(windows)
        with torch.no_grad():
            means = [
                self.network(p, self._inputs(p, windows[piece], device)).mean.cpu().numpy()
                for piece in chunks(len(windows))
            ]
        offset = self._offset(self.labels.link(windows))
        return np.concatenate(means, axis=1) * self.scale + offset

    def gradient(self, windows: FloatArray) -> FloatArray:
        """Return the gradient of each member's forecast (K, M, H, T, C) for scaled windows."""
        p, device = self._exact_parameters()
        every = list(chunks(len(windows), TASK if device.type == "cpu" else CHUNK))
        found = run_all([partial(self._slope, p, windows[piece], device) for piece in every])
        slope = np.concatenate(found, axis=1).astype(np.float64) * self.scale[..., None, None]
        link = self.labels.link.gradient(windows.shape[1], windows.shape[2])  # (H, T, C)
        slope[~self.is_bare] += link
        if self.labels.bare is not None:
            outside = self.labels.bare.outside(self.labels.link(windows))  # (M, H)
            slope[self.is_bare] += outside[..., None, None] * link
        return slope

    def _exact_parameters(self) -> tuple[Parameters, torch.device]:
        device = usable_device(self.device)
        dtype = torch.float64 if device.type == "cuda" else torch.float32
        flat = torch.as_tensor(self.flat, device=device, dtype=dtype)
        return unflatten(flat, self.network.shapes), device

    def _inputs(self, p: Parameters, windows: FloatArray, device: torch.device) -> Tensor:
        """Return windows (K, T, m, C) in the parameters' precision."""
        dtype = next(iter(p.values())).dtype
        x = torch.as_tensor(windows, device=device, dtype=dtype).transpose(0, 1)
        return x.expand(len(self.flat), *x.shape).contiguous()

    def _slope(self, p: Parameters, windows: FloatArray, device: torch.device) -> NDArray[Any]:
        """Return the networks' gradients (K, m, H, T, C), without scale and link."""
        x = self._inputs(p, windows, device).requires_grad_(True)
        total = self.network(p, x).mean.sum(dim=(0, 1))  # (H,); members and windows do not mix
        steps = [torch.autograd.grad(one, x, retain_graph=True)[0] for one in total]
        return torch.stack(steps).permute(1, 3, 0, 2, 4).cpu().numpy()  # (K, m, H, T, C)

    def parameter(self, name: str) -> FloatArray:
        """Return the members' values of one of the network's parameters, members first."""
        found = unflatten(torch.as_tensor(self.flat), self.network.shapes)[name]
        return found.numpy().astype(np.float64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the weights by name, for the model file."""
        kinds = {} if self.kinds is None else {"kinds": self.kinds}
        return {"weights": self.flat, **kinds, **self.labels.link.arrays()}

    def extra(self) -> dict[str, Any]:
        """Return the plain values that belong to the weights, for the model file."""
        bare = self.labels.bare
        return {
            "label_center": self.labels.center,
            "label_scale": self.labels.scale,
            **({} if bare is None else {f"bare_{name}": v for name, v in asdict(bare).items()}),
            "device": self.device,
        }

    @classmethod
    def restore(
        cls,
        network: NetworkT,
        labels: Labels,
        members: int,
        arrays: dict[str, NDArray[Any]],
        extra: dict[str, Any],
    ) -> TrainedNetwork[NetworkT]:
        """Rebuild from `arrays` and `extra`, taking what is used out of ``arrays``."""
        flat = take_array(arrays, "weights", (members, count(network.shapes)), np.float32)
        device = "cuda" if extra.get("device") == "cuda" else "cpu"
        kinds = None
        if labels.bare is not None:
            kinds = take_array(arrays, "kinds", (members,), np.uint8)
            if kinds.max(initial=0) > max(Kind):
                raise ModelFileError(f"its 'kinds' has a {kinds.max()}, which no member is.")
        return cls(network, flat, labels, device, kinds)


def restore_labels(
    model: AbstractNetwork, arrays: dict[str, NDArray[Any]], extra: dict[str, Any]
) -> Labels:
    """Rebuild `Labels` of a model with a link from what `TrainedNetwork`'s methods returned."""
    link: LinkChoice = model.link
    name = "linear" if link == "auto" else link
    T, H = int(model.window), int(model.horizon)
    restored = Link.restore(name, H, T, model.preparation_, arrays)
    own = (finite_number(extra, "label_center"), _scale(extra, "label_scale"))
    bare = None
    if link == "auto" and "bare_center" in extra:  # some members do without the link
        center, low, high = (finite_number(extra, f"bare_{x}") for x in ("center", "low", "high"))
        bare = Bare(center, _scale(extra, "bare_scale"), low, high)
    return Labels(restored, *own, T, bare)


def _scale(extra: dict[str, Any], name: str) -> float:
    scale = finite_number(extra, name)
    if scale <= 0:
        raise ModelFileError(f"its '{name}' is {scale!r}, not a positive number.")
    return scale
