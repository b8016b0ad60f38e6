"""Forecasts of an exported model, with numpy and onnxruntime and nothing else of the package.

Examples
--------
>>> from mvlstm.runtime import load
>>> model = load("model.onnx")  # doctest: +SKIP
>>> model.forecast("air.csv")["mean"]  # doctest: +SKIP
array([48.2])
"""

from __future__ import annotations

from mvlstm.runtime.model import Runtime, load

__all__ = ["Runtime", "load"]
