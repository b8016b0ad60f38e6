"""What the architecture is worth, and what link, averaging, finishing and kinds of members are.

The plain LSTM, cLSTM and DUAL with the arguments that the package gives to `MVLSTM` alone, for the
suite `ablation`; and its protocol ``latest``, of a size that a CPU carries.
"""

# Annotations are read when settings are declared, hence no `from __future__ import annotations`.
import copy
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

import torch

from mvlstm import CLSTM, DUAL, LSTM
from mvlstm.bench.cells import TEST, VALID, Cell, load_rows, plain_cell
from mvlstm.bench.spec import Job
from mvlstm.bench.studies import Protocol
from mvlstm.methods.network.kinds import fit_mixed
from mvlstm.methods.network.link import LINKS
from mvlstm.methods.network.training import Outcome, fit_network
from mvlstm.nn.dual import DUALNetwork
from mvlstm.nn.lstm import LSTMNetwork
from mvlstm.nn.parameters import Readers, count, unflatten
from mvlstm.problem.problem import Problem
from mvlstm.problem.target_scale import LabelScale
from mvlstm.settings import MODEL, setting, settings
from mvlstm.table.layout import Layout
from mvlstm.types import FloatArray

ROWS = 3_000  # of a data set that the protocol has, the last ones
SETS = ("pm25", "energy", "sml2010", "synthetic")


# ------------------------------------------------------------------------------- rivals with tools


@settings(panel=MODEL)
class Tools:
    """The tools of `MVLSTM`, none used by default, and the same training for every network."""

    links: ClassVar[tuple[str, ...]] = (*LINKS, "auto")
    link: Any = setting(
        default="none", doc='Simple forecast that the network corrects; "auto": kinds of members.'
    )
    averaging: float = setting(default=0.0, doc="Decay of the running mean of the weights.")
    finish: float = setting(default=0.0, doc="Share of the learning rate to finish at.")
    learning_rate: float = 5e-3
    batch_size: int = 64
    max_epochs: int = 100
    patience: int = 10

    def fit_members(self, network: Any, problem: Problem, labels: LabelScale) -> Outcome:
        """Train the members; with ``link="auto"`` they are of several kinds."""
        training = self.training  # type: ignore[attr-defined]
        fit = fit_mixed if self.link == "auto" else fit_network
        return fit(network, problem, labels, training)


@dataclass(frozen=True)
class ReadingLSTM(LSTMNetwork):
    """A plain LSTM whose members may be sparse: the weights on each variable can be shrunk."""

    groups: tuple[int, ...] = ()

    @property
    def readers(self) -> Readers | None:
        """The parameters that take in other variables than the target."""
        places = unflatten(torch.arange(count(self.shapes)).unsqueeze(0), self.shapes)
        each = torch.cat([places["Wx_0"][0], places["W_0"][0].T[: self.n_columns]], dim=1)
        return _others(each, self.groups)


@dataclass(frozen=True)
class ReadingDUAL(DUALNetwork):
    """DUAL whose members may be sparse: the weights of its encoder on each series are shrunk."""

    groups: tuple[int, ...] = ()

    @property
    def readers(self) -> Readers | None:
        """The parameters that take in the driving series."""
        places = unflatten(torch.arange(count(self.shapes)).unsqueeze(0), self.shapes)
        return _others(places["enc_x"][0], self.groups)


def _others(places: torch.Tensor, groups: tuple[int, ...]) -> Readers | None:
    columns = [c for c, variable in enumerate(groups) if variable != groups[-1]]
    return Readers(places[columns], torch.tensor([groups[c] for c in columns])) if columns else None


def _reading(plain: Any, cls: type, groups: tuple[int, ...]) -> Any:
    return cls(**{one.name: getattr(plain, one.name) for one in fields(plain)}, groups=groups)


@settings(panel=MODEL)
class TooledLSTM(Tools, LSTM):
    """A plain LSTM trained on squared errors."""

    loss: Literal["mse", "nll", "nll+mse"] = "mse"

    def network(self, layout: Layout, label_scale: float) -> ReadingLSTM:
        """Describe the network for the columns of a table."""
        plain = super().network(layout, label_scale)
        return _reading(plain, ReadingLSTM, layout.groups)  # type: ignore[no-any-return]


@settings(panel=MODEL)
class TooledDUAL(Tools, DUAL):
    """DUAL, with the dropout of the paper's experiments."""

    dropout: float = 0.5

    def network(self, layout: Layout, label_scale: float) -> ReadingDUAL:
        """Describe the network for the columns of a table."""
        plain = super().network(layout, label_scale)
        return _reading(plain, ReadingDUAL, layout.groups)  # type: ignore[no-any-return]


@settings(panel=MODEL)
class TooledCLSTM(Tools, CLSTM):
    """cLSTM; its sparse members are plain ones, since it has chosen its variables already."""

    dropout: float = 0.0

    def _every_label(self, problem: Problem, labels: LabelScale) -> FloatArray:
        linear = copy.copy(self)
        linear.link = "linear" if self.link == "auto" else self.link
        return CLSTM._every_label(linear, problem, labels)


# ------------------------------------------------------------------------------------ the protocol


def latest_cell(job: Job, *, local: bool = True) -> Cell:
    """Return the last rows of a data set, divided in time order."""
    found = load_rows(job)
    frame = found.frame
    last = frame.rows(slice(max(0, frame.n_rows - ROWS), None))
    few, end = replace(found, frame=last, truth=None), last.n_rows
    return plain_cell(few, end=end, test=round(TEST * end), valid=round(VALID * end))


LATEST = Protocol(latest_cell, SETS)
