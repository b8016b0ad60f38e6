"""Whether gradients may be rounded: yes while training, never elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import local

import torch

_thread = local()


@contextmanager
def rounded_gradients(windows: int = 0) -> Iterator[None]:
    """Let this thread's gradients take bfloat16 products, where the CPU is faster at these.

    Weights, states and loss stay in single precision. Training uses it; predictions,
    explanations and gradients taken by anyone else are not affected. ``windows`` are those of the
    whole batch, where a piece of it is worked on: the size of the whole decides whether rounding
    pays, so that a member learns the same however its batch is cut.
    """
    before = gradients_are_rounded(), whole_batch()
    _thread.rounded, _thread.windows = multiplies_bfloat16(), windows
    try:
        yield
    finally:
        _thread.rounded, _thread.windows = before


def gradients_are_rounded() -> bool:
    """Say whether the calling thread is inside `rounded_gradients`, on a CPU that gains by it."""
    return getattr(_thread, "rounded", False)


def whole_batch() -> int:
    """Return the windows of the batch that the calling thread works on a piece of; 0 if unknown."""
    return getattr(_thread, "windows", 0)


@lru_cache(maxsize=1)
def multiplies_bfloat16() -> bool:
    """Say whether the CPU has instructions for products of bfloat16 numbers."""
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", bool)  # not in every PyTorch
    return bool(supported() and torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
