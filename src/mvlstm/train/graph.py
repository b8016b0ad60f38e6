"""A training step recorded once as a CUDA graph and replayed without the host's help."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

WARM_UP = 2  # runs before recording: kernels are compiled and libraries set up in them


def recorded(step: Callable[[], None], changed: Sequence[Tensor]) -> Callable[[], object]:
    """Return a call that replays ``step``, or ``step`` itself where it cannot be recorded.

    It must work on the same tensors every time and never wait for a value on the host. Every tensor
    that it changes in place is in ``changed``; they are put back after the trial runs.
    """
    kept = [tensor.detach().clone() for tensor in changed]

    def put_back() -> None:
        for tensor, before in zip(changed, kept, strict=True):
            tensor.detach().copy_(before)

    try:
        return _record(step, put_back).replay
    except RuntimeError:  # the step waits for the host, or this build records no graphs
        torch.cuda.synchronize()
        return step
    finally:
        put_back()


def warm_up(step: Callable[[], None], put_back: Callable[[], None]) -> None:
    """Run a step a few times, each from the same state: the one after the last has no batch."""
    for _ in range(WARM_UP):
        step()
        put_back()


def _record(step: Callable[[], None], put_back: Callable[[], None]) -> torch.cuda.CUDAGraph:
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        warm_up(step, put_back)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a recording which fails is empty
        with torch.cuda.graph(graph):
            step()
    return graph
