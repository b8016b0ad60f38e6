"""Random numbers that are a pure function of (member, step, place), the same on every device.

A draw depends on a key and a counter alone, never on what was drawn before. So what a member draws
does not depend on who trains with it, and a run resumed from a checkpoint goes on exactly as one
never stopped, with no generator state to save.
"""

from __future__ import annotations

import hashlib
from copy import copy
from functools import lru_cache

import torch
from torch import Tensor

from mvlstm.nn.backends import kernels_run_on

ORDER_SITE = 1 << 20  # places 0, 1, ... belong to dropout
SORTED_AT_ONCE = 1 << 20


def member_key(seed: int) -> int:
    """Return a well-mixed 31-bit key for a member's seed."""
    digest = hashlib.blake2b(f"mvlstm member {seed}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little") & 0x7FFFFFFF


def _mix(x: Tensor) -> Tensor:
    """Scramble 32-bit integers (two multiply-and-shift rounds, wrapping)."""
    x = (x >> 16).bitwise_and_(0xFFFF).bitwise_xor_(x).mul_(0x7FEB352D)
    x = (x >> 15).bitwise_and_(0x1FFFF).bitwise_xor_(x).mul_(-0x7B935975)  # 0x846CA68B, signed
    return (x >> 16).bitwise_and_(0xFFFF).bitwise_xor_(x)


@lru_cache(maxsize=64)
def _counter(start: int, n: int, device: torch.device) -> Tensor:
    """Return the scrambled numbers ``start`` to ``start + n``."""
    return _mix(torch.arange(start, start + n, dtype=torch.int32, device=device))


def random_bits(keys: Tensor, step: Tensor, site: int, n: int, start: int = 0) -> Tensor:
    """Return int32 random bits (K, n) for members' ``keys`` (K,), a ``step`` () and a place.

    They are numbers ``start`` to ``start + n`` of the stream of (member, step, place). All
    arguments are int32 tensors on one device, so that the call can be part of a CUDA graph.
    """
    stream = _mix(_mix(keys + step * -0x61C88647) ^ (site * 0x5BD1E995 & 0x7FFFFFFF))  # (K,)
    return _mix(stream.unsqueeze(1) ^ _counter(start, n, keys.device))


def shuffled(keys: Tensor, epoch: Tensor, n: int) -> Tensor:
    """Return for each member a permutation (K, n) of 0..n-1 for this epoch, in int32.

    A few members at a time, so that sorting takes little memory next to the result.
    """
    orders = [
        torch.argsort(random_bits(some, epoch, ORDER_SITE, n), dim=1, stable=True).int()
        for some in torch.split(keys, max(1, SORTED_AT_ONCE // n))
    ]
    return torch.cat(orders)


class KeyedDropout:
    """Inverted dropout whose masks are keyed by member and step; the rate may differ by member.

    ``keys`` (K,) and ``step`` () are int32, ``rates`` (K,) probabilities of dropping a value.
    """

    def __init__(self, keys: Tensor, step: Tensor, rates: Tensor) -> None:
        self.keys, self.step, self.first_window = keys, step, 0
        self.threshold = (rates.double() * 2.0**32 - 2.0**31).clamp(max=2.0**31 - 1).int()
        self.scale = 1.0 / (1.0 - rates)

    def part(self, members: slice, windows: slice, ahead: int = 0) -> KeyedDropout:
        """Return the dropout of some members and windows: what it drops, the whole drops too.

        Or it will, this many steps ahead.
        """
        part = copy(self)
        part.step = self.step + ahead if ahead else self.step
        part.keys, part.threshold = self.keys[members], self.threshold[members]
        part.scale, part.first_window = self.scale[members], windows.start or 0
        return part

    def __call__(self, tensor: Tensor, site: int, window_axis: int = 1) -> Tensor:
        """Return ``tensor`` (K, ...) with dropped values zero and the others scaled up."""
        if kernels_run_on(tensor) and not self.first_window:
            from mvlstm.train._kernels import Dropout

            stream = (self.keys, self.step, self.threshold, self.scale)
            dropped: Tensor = Dropout.apply(tensor, window_axis, site, *stream)  # type: ignore[no-untyped-call]
            return dropped
        windows_first = tensor.movedim(window_axis, 1)  # (K, B, ...)
        size = windows_first[0, 0].numel()
        n, start = windows_first.shape[1] * size, self.first_window * size
        bits = random_bits(self.keys, self.step, site, n, start)
        kept = (bits >= self.threshold.unsqueeze(1)) * self.scale.to(tensor.dtype).unsqueeze(1)
        return tensor * kept.view(windows_first.shape).movedim(1, window_axis)
