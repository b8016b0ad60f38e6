"""Whether gradients may be rounded: yes while training, never elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import local

import torch

_thread = local()


@contextmanager
def rounded_gradients() -> Iterator[None]:
    """Let this thread's gradients take bfloat16 products, where the CPU is faster at these.

    Weights, states and loss stay in single precision. Training uses it; predictions,
    explanations and gradients taken by anyone else are not affected.
    """
    before = gradients_are_rounded()
    _thread.rounded = multiplies_bfloat16()
    try:
        yield
    finally:
        _thread.rounded = before


def gradients_are_rounded() -> bool:
    """Say whether the calling thread is inside `rounded_gradients`, on a CPU that gains by it."""
    return getattr(_thread, "rounded", False)


@lru_cache(maxsize=1)
def multiplies_bfloat16() -> bool:
    """Say whether the CPU has instructions for products of bfloat16 numbers."""
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", bool)  # not in every PyTorch
    return bool(supported() and torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]
