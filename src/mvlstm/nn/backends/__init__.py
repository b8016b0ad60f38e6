"""The fast paths, each proven equal to `tests/oracles/equations.py`, and what runs them."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec

import torch
from torch import Tensor


def kernels_run_on(tensor: Tensor) -> bool:
    """Say whether the package's GPU kernels can work on ``tensor``: CUDA, single precision."""
    return tensor.is_cuda and tensor.dtype == torch.float32 and _triton_found(tensor.device)


@lru_cache(maxsize=8)
def _triton_found(device: torch.device) -> bool:
    return find_spec("triton") is not None and torch.cuda.get_device_capability(device) >= (7, 5)
