"""What a training run is told: settings shared by all members, and each member's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

SEEDS_APART = 10_000  # members of one ensemble take consecutive seeds from seed * SEEDS_APART
FINISHING = 5  # most epochs to wait at the lower rate
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8  # the usual constants
BRISK_BETA2 = 0.99  # where the rate is annealed: in few steps, squared gradients of 1,000 are stale
WARM_UP = 0.1  # share of an annealed run in which the rate rises
NEAR = 0.6  # share in which only the latest rows of a window are read


class Kind(IntEnum):
    """What a member is, where an ensemble has members of several kinds."""

    PLAIN = 0  # learns what the link leaves
    SPARSE = 1  # the same, and its weights on variables are shrunk
    BARE = 2  # does without the link, and is shrunk too


KINDS = (Kind.PLAIN, Kind.BARE, Kind.SPARSE, Kind.BARE, Kind.SPARSE)  # of every five members


@dataclass(frozen=True)
class Member:
    """One network of an ensemble: its seed and the settings that may differ between members.

    ``ensemble`` says which of several ensembles it belongs to, and ``kind`` what it is to be where
    ensembles have members of several kinds. ``variant`` says which of the data's labels it learns,
    and which of the network's own penalties it bears, where there are several. ``shrinkage`` is the
    share of a step by which the weights on variables are pulled to zero. Members with neither must
    train; others may fail.
    """

    seed: int
    learning_rate: float = 1e-3
    l2: float = 0.0
    dropout: float = 0.0
    ensemble: int = field(default=0, kw_only=True)
    kind: Kind = field(default=Kind.PLAIN, kw_only=True)
    variant: int = field(default=0, kw_only=True)
    shrinkage: float = field(default=0.0, kw_only=True)

    @property
    def is_plain(self) -> bool:
        """Whether it is of the first variant, and not shrunk."""
        return self.variant == 0 and not self.shrinkage


def make_members(
    seed: int,
    count: int,
    *,
    first: int = 0,
    ensemble: int = 0,
    learning_rate: float = 1e-3,
    l2: float = 0.0,
    dropout: float = 0.0,
) -> list[Member]:
    """Return ``count`` members of the ensemble of a seed, beginning with that in place ``first``.

    Examples
    --------
    >>> [(member.seed, member.kind.name) for member in make_members(2, 2, first=4)]
    [(20004, 'SPARSE'), (20005, 'PLAIN')]
    """
    return [
        Member(
            seed * SEEDS_APART + place,
            learning_rate,
            l2,
            dropout,
            ensemble=ensemble,
            kind=KINDS[place % len(KINDS)],
        )
        for place in range(first, first + count)
    ]


@dataclass(frozen=True)
class TrainConfig:
    """Settings shared by all members.

    With ``averaging``, the share of the running mean of the weights that is kept at each step, the
    mean is what is validated and used. ``finish`` is the share of its learning rate at which a
    member that no longer improves goes on from its best weights, for the last fifth of the epochs
    at the latest. With ``annealing``, the rate rises in the first tenth of this many epochs and
    falls in a line to zero at their end; the first of them may read the latest ``near_rows`` of
    a window only. ``leave_out`` is the share of the training windows that
    each member does without, a stretch of its own, and is validated on besides the stopping
    windows. 0 stands for none.
    """

    batch_size: int = 64  # windows in each member's step
    max_epochs: int = 100
    patience: int = 10  # epochs without a better validation error before a member stops
    gradient_clip: float = 5.0  # largest norm of a member's gradient
    averaging: float = 0.0
    finish: float = 0.0
    annealing: int = 0  # epochs
    near_rows: int = 0  # of a window that the first epochs of an annealed run read
    planned: bool = False  # whether the caller says when a member's rate is lowered and it ends
    leave_out: float = 0.0
    drop_failed: bool = False  # go on without members whose loss is not finite: a grid search

    @property
    def finishes(self) -> bool:
        """Whether members that no longer improve go on at a lower rate."""
        return self.finish > 0 and not self.planned

    @property
    def full_epochs(self) -> int:
        """Most epochs at the full rate: all, or all but the last fifth."""
        reserved = self.finishes and not self.annealing
        return self.max_epochs - self.max_epochs // 5 if reserved else self.max_epochs

    @property
    def near_epochs(self) -> int:
        """First epochs that read the latest rows of a window only."""
        return round(NEAR * self.annealing) if self.near_rows else 0

    @property
    def beta2(self) -> float:
        """How much of the running mean of squared gradients is kept at each step."""
        return BRISK_BETA2 if self.annealing else BETA2

    def shares(self, steps: int) -> list[float]:
        """Return the share of the learning rate at each step, with this many steps per epoch."""
        if not self.annealing:
            return [1.0] * (self.max_epochs * steps)
        every = self.annealing * steps
        rising = max(1, round(WARM_UP * every))
        falling = (every - rising) or 1
        shares = [min((s + 1) / rising, (every - s) / falling) for s in range(every)]
        return shares + [0.0] * (max(0, self.max_epochs - self.annealing) * steps)

    @property
    def finishing(self) -> int:
        """Epochs at the lower rate without a better validation error before a member stops."""
        return min(self.patience, FINISHING)
