"""Devices, in one place."""

from __future__ import annotations

import torch

from mvlstm.errors import ParameterError

UNKNOWN = "device={!r} is not a device that networks run on; choose 'auto', 'cpu' or 'cuda'."


def resolve_device(name: str) -> torch.device:
    """Return the device for ``name``: "auto" is CUDA where there is a GPU, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise ParameterError(UNKNOWN.format(name)) from error
    if device.type not in ("cpu", "cuda"):
        raise ParameterError(UNKNOWN.format(name))
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ParameterError(
            f"device={name!r} was asked for, but torch finds no CUDA GPU here. "
            "Use device='cpu' or 'auto'."
        )
    return device


def usable_device(name: str) -> torch.device:
    """Return where a trained model runs: a GPU's model runs on the CPU where there is none."""
    return resolve_device(name if name != "cuda" or torch.cuda.is_available() else "cpu")


def device_name(device: str) -> str:
    """Return the name of the device that networks are trained on: "cpu", or the GPU's."""
    where = resolve_device(device)
    return str(torch.cuda.get_device_name(where)) if where.type == "cuda" else where.type
