"""A trained ensemble of networks, with the link and the scale of its labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mvlstm.errors import ModelFileError
from mvlstm.methods.network.link import Link, LinkChoice
from mvlstm.model.learned import Arrays, Saved
from mvlstm.nn.mixture import Prediction
from mvlstm.nn.parameters import Parameters, count, unflatten
from mvlstm.problem.inputs import Windows
from mvlstm.problem.problem import Problem
from mvlstm.problem.target_scale import Bare, LabelScale, MemberScale
from mvlstm.table.parts import PartName
from mvlstm.train.config import Kind
from mvlstm.train.data import gather_windows
from mvlstm.train.predict import CHUNK, TASK, chunks, predict_rows
from mvlstm.train.protocol import Network
from mvlstm.train.runtime import usable_device
from mvlstm.train.workers import run_all
from mvlstm.types import BoolArray, FloatArray, IntArray

NetworkT = TypeVar("NetworkT", bound=Network)


def in_double(tensor: Tensor) -> FloatArray:
    """Return a tensor as an array of doubles."""
    return tensor.cpu().numpy().astype(np.float64)


def learn_labels(link: LinkChoice, problem: Problem) -> LabelScale:
    """Fit the link, then find the scale of what it leaves."""
    learned = Link.learn("linear" if link == "auto" else link, problem)
    rows = problem.origins["train"]
    guess = learned.rows(problem.prepared.table, rows, problem.window)
    return LabelScale.learn(learned, guess, problem.labels("train"), bare=link == "auto")


def refit_link(labels: LabelScale, problem: Problem, *, again: bool = False) -> LabelScale:
    """Return the scale with the link fitted to the stopping windows too, maybe as time passes."""
    assert isinstance(labels.link, Link)
    return replace(labels, link=labels.link.refit(problem, again=again))


def labels_by_row(labels: LabelScale, problem: Problem) -> FloatArray:
    """Return what networks learn at the training and stopping origins, by row, (rows, H).

    Rows that are neither are NaN, and so is what was filled in. Where some members do without
    the link, (2, rows, H): what it leaves, and the labels themselves.
    """
    prepared, H = problem.prepared, problem.horizon
    variants = 1 if labels.bare is None else 2
    found = np.full((variants, prepared.frame.n_rows, H), np.nan)
    parts: tuple[PartName, ...] = ("train", "stop")
    for part in parts:
        rows = problem.origins[part]
        # strict for stopping: a row may be of both parts, and few of them tell little of a step
        known = prepared.known_labels(rows, H, strict=part == "stop")
        guess = labels.link.rows(prepared.table, rows, problem.window)
        found[0, rows] = labels.outputs(known, guess)
        if labels.bare is not None:
            found[1, rows] = labels.bare_outputs(known, guess)
    return found[0] if labels.bare is None else found


def restore_labels(link: LinkChoice, window: int, horizon: int, saved: Saved) -> LabelScale:
    """Rebuild the scale of labels from a model file."""
    restored = Link.restore("linear" if link == "auto" else link, horizon, window, saved)
    own = (saved.number("label_center"), saved.scale("label_scale"))
    bare = None
    if link == "auto" and "bare_center" in saved.extra:  # some members do without the link
        center, low, high = (saved.number(f"bare_{x}") for x in ("center", "low", "high"))
        bare = Bare(center, saved.scale("bare_scale"), low, high)
    return LabelScale(restored, *own, bare)


@dataclass(frozen=True, eq=False)
class TrainedNetwork(Generic[NetworkT]):
    """Members of one network, and how their outputs become forecasts of the labels."""

    network: NetworkT
    flat: NDArray[np.float32]  # (K, P), one row per member
    labels: LabelScale
    window: int
    device: str
    kinds: NDArray[np.uint8] | None = None  # (K,) the kind of each member; None: all are plain
    share: FloatArray | None = None  # (K,) by which forecasts move from the link's; None: whole

    @property
    def is_bare(self) -> BoolArray:
        """Which members learned the labels themselves, and not what the link leaves, (K,)."""
        if self.kinds is None:
            return np.zeros(len(self.flat), dtype=np.bool_)
        return np.asarray(self.kinds == Kind.BARE)

    @property
    def scale(self) -> MemberScale:
        """From the members' outputs to labels."""
        return self.labels.for_members(self.is_bare, self.share)

    def take(self, rows: slice | NDArray[Any]) -> TrainedNetwork[NetworkT]:
        """Return some of the members."""
        kinds = None if self.kinds is None else self.kinds[rows]
        share = None if self.share is None else self.share[rows]
        return replace(self, flat=self.flat[rows], kinds=kinds, share=share)

    def guess(self, windows: Windows) -> FloatArray:
        """Return the link's first guess of the labels of windows, (M, H)."""
        return self.labels.link.rows(windows.table, windows.ends, self.window)

    def rows(self, table: NDArray[Any], ends: IntArray) -> FloatArray:
        """Return members' forecasts of the labels (K, M, H) for windows ending at rows."""
        guess = self.labels.link.rows(table, ends, self.window)
        return self.scale.forecasts(self._means(self.predictions(table, ends)), guess)

    def forecasts(self, windows: Windows, *, exact: bool = False) -> FloatArray:
        """Return members' forecasts of the labels (K, M, H).

        With ``exact`` in double precision on a GPU, whose kernels hold operands in half precision:
        too coarse for small differences between forecasts.
        """
        pieces = self.predictions(windows.table, windows.ends, exact=exact)
        guess = self.labels.link(windows.values) if windows.made_up else self.guess(windows)
        return self.scale.forecasts(self._means(pieces), guess)

    def _means(self, pieces: Iterator[Prediction]) -> FloatArray:
        none = np.empty((len(self.flat), 0, self.labels.link.horizon))
        return np.concatenate([none, *(in_double(one.mean) for one in pieces)], axis=1)

    def predictions(
        self, table: NDArray[Any], ends: IntArray, *, exact: bool = False
    ) -> Iterator[Prediction]:
        """Yield what the networks say of windows ending at rows of a table, piece by piece."""
        p, where = self._parameters(exact)
        rows = torch.as_tensor(table, device=where, dtype=next(iter(p.values())).dtype)
        return predict_rows(self.network, p, rows, torch.as_tensor(ends, device=where), self.window)

    @torch.no_grad()
    def each(
        self, function: Callable[[Parameters, Tensor], Tensor], windows: Windows
    ) -> Iterator[FloatArray]:
        """Yield ``function(parameters, x)`` for windows x (K, T, B, C), piece by piece."""
        p, where = self._parameters()
        rows = torch.as_tensor(windows.table, dtype=torch.float32, device=where)
        ends = torch.as_tensor(windows.ends, device=where)
        for piece in chunks(len(windows)):
            every = ends[piece].expand(len(self.flat), -1)
            yield in_double(function(p, gather_windows(rows, every, self.window)))

    def _parameters(self, exact: bool = False) -> tuple[Parameters, torch.device]:
        where = usable_device(self.device)
        dtype = torch.float64 if exact and where.type == "cuda" else torch.float32
        flat = torch.as_tensor(self.flat, device=where, dtype=dtype)
        return unflatten(flat, self.network.shapes), where

    def gradient(self, windows: FloatArray) -> FloatArray:
        """Return the gradient of each member's forecast (K, M, H, T, C) for scaled windows."""
        p, device = self._parameters(exact=True)
        K = len(self.flat)
        size, alone = (TASK // 2, 1) if device.type == "cpu" else (CHUNK, K)
        every = list(chunks(len(windows), size))
        tasks = [
            partial(self._slope, {name: w[k : k + alone] for name, w in p.items()}, windows[piece])
            for k in range(0, K, alone)
            for piece in every
        ]
        found, n = run_all(tasks), len(every)
        joined = [np.concatenate(found[i : i + n], axis=1) for i in range(0, len(found), n)]
        return self.scale.gradient(np.concatenate(joined), windows)

    def _slope(self, p: Parameters, windows: FloatArray) -> NDArray[Any]:
        """Return gradients (K, m, H, T, C) of networks with given parameters, unscaled."""
        one = next(iter(p.values()))
        x = torch.as_tensor(windows, device=one.device, dtype=one.dtype).transpose(0, 1)
        x = x.expand(len(one), *x.shape).contiguous().requires_grad_(True)  # (K, T, m, C)
        total = self.network(p, x).mean.sum(dim=(0, 1))  # (H,); members and windows do not mix
        steps = [torch.autograd.grad(one, x, retain_graph=True)[0] for one in total]
        return torch.stack(steps).permute(1, 3, 0, 2, 4).cpu().numpy()  # (K, m, H, T, C)

    def parameter(self, name: str) -> FloatArray:
        """Return the members' values of one of the network's parameters, members first."""
        return in_double(unflatten(torch.as_tensor(self.flat), self.network.shapes)[name])

    def arrays(self) -> tuple[Arrays, dict[str, Any]]:
        """Return weights by name, and the plain values that belong to them."""
        kinds = {} if self.kinds is None else {"kinds": self.kinds}
        bare = {} if self.labels.bare is None else asdict(self.labels.bare)
        assert isinstance(self.labels.link, Link)
        extra = {
            "label_center": self.labels.center,
            "label_scale": self.labels.scale,
            **{f"bare_{name}": value for name, value in bare.items()},
            "device": self.device,
        }
        share = {} if self.share is None else {"share": self.share}
        return {"weights": self.flat, **kinds, **share, **self.labels.link.arrays()}, extra

    @classmethod
    def restore(
        cls, network: NetworkT, labels: LabelScale, members: int, window: int, saved: Saved
    ) -> TrainedNetwork[NetworkT]:
        """Rebuild from a model file."""
        flat = saved.take("weights", (members, count(network.shapes)), np.float32)
        device = "cuda" if saved.extra.get("device") == "cuda" else "cpu"
        kinds = None
        if labels.bare is not None:
            kinds = saved.take("kinds", (members,), np.uint8)
            if kinds.max(initial=0) > max(Kind):
                raise ModelFileError(f"its 'kinds' has a {kinds.max()}, which no member is.")
        share = None
        if "share" in saved.arrays:
            share = saved.take("share", (members,), np.float64)
            if not ((share > 0) & (share <= 1)).all():
                raise ModelFileError("its 'share' is not between 0 and 1.")
        return cls(network, flat, labels, window, device, kinds, share)
