"""Linear maps of a window, those of each time of day too, as nodes of a graph."""

from __future__ import annotations

import numpy as np

from mvlstm.adapters.onnx.graph import Value
from mvlstm.methods.daily import Clock, Daily, LinearMap
from mvlstm.problem.bend import Bend
from mvlstm.types import IntArray


def mapped(linear: LinearMap, windows: Value, window: int) -> Value:
    """Apply a linear map to windows (B, T, C): predictions (B, H)."""
    if isinstance(linear, Daily):
        return _by_phase(linear, windows, window)
    lags, C, H = linear.weights.shape
    inputs = windows.cut(1, window - lags) if lags < window else windows
    flat = inputs.cast(np.float64).reshaped(-1, lags * C)
    return flat @ linear.weights.reshape(lags * C, H) + linear.intercept


def _by_phase(linear: Daily, windows: Value, window: int) -> Value:
    """Add up the map of all times and those of the phases, as `Daily` does."""
    _, P, p, H = linear.weights.shape
    C = linear.base.weights.shape[1]
    inputs = windows.cast(np.float64)
    shares = _shares(linear.clock, inputs.cut(1, window - 1).squeezed(1)).spread(2)  # (B, P, 1)
    raw = inputs.reshaped(-1, window * C).take(1, linear.places.tolist())
    found = mapped(linear.base, windows, window) * linear.share
    spans = zip(linear.bends, linear.spans[:, 1], linear.weights, linear.intercept, strict=True)
    for bend, share, weights, level in spans:
        if share:
            each = _bent(raw, bend, linear.places % C) @ np.moveaxis(weights, 0, 1).reshape(p, -1)
            back = _back(each.reshaped(-1, P, H) + level, bend)
            found = found + (back * shares).total(1) * share
    return found


def _shares(clock: Clock, last: Value) -> Value:
    """Return how much each phase counts (B, P), given the last rows (B, C) of windows.

    The polynomials of `Clock.shares` are those of all places on the circle; at a phase they are one
    and zero but for rounding.
    """
    told = last.take(1, clock.columns.tolist()) * clock.scale + clock.center  # sine, cosine
    sine, cosine = np.sin(clock.start), np.cos(clock.start)
    turns = told @ np.array([[sine, cosine], [cosine, -sine]])  # (B, 2): along, across
    size = (turns * turns).total(1, keep=True).map("Sqrt")
    turns = turns / size.most(1.0)
    x, y = turns.cut(1, 0, 1), turns.cut(1, 1, 2)
    real, imaginary = [x * 0.0 + 1.0], [x * 0.0]
    for _ in range(clock.phases // 2):
        a, b = real[-1], imaginary[-1]
        real.append(a * x - b * y)
        imaginary.append(a * y + b * x)
    waves = clock.waves().T
    graph = last.graph
    return graph.concat(real, axis=1) @ waves.real - graph.concat(imaginary, axis=1) @ waves.imag


def _bent(raw: Value, bend: Bend, columns: IntArray) -> Value:
    """Bend scaled features (B, p) of these columns, as `Bend.inputs` does."""
    ratio = bend.ratio[columns]
    if not ratio.any():
        return raw
    z = raw * bend.scale[columns] + bend.center[columns]
    inner = z.sinh() * ratio + bend.shift[columns]
    return raw.graph.constant(ratio != 0, bool).where(inner.asinh(), raw)


def _back(labels: Value, bend: Bend) -> Value:
    """Turn bent labels into labels, as `Bend.back` does."""
    shift, ratio = float(bend.shift[-1]), float(bend.ratio[-1])
    return ((labels.sinh() - shift) / ratio).asinh() if ratio else labels
