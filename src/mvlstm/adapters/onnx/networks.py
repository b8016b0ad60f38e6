r"""The networks as graphs: the equations of `mvlstm.nn`, on the operators of ONNX.

A recurrent layer with a state by variable is a standard LSTM (or GRU) whose candidate weights are
blocks, so that ONNX's own operator runs it, one for each member. Letters are those of `mvlstm.nn`:
``K`` members, ``B`` windows, ``T`` steps, ``C`` columns, ``N`` variables, ``d`` units of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvlstm.adapters.onnx.graph import Value
from mvlstm.model.learned import NetworkForm
from mvlstm.nn.cell import Layer
from mvlstm.nn.dual import DUALNetwork
from mvlstm.nn.lstm import LSTMNetwork
from mvlstm.nn.mvlstm import LEAST_LOG_SIGMA2, MOST_LOG_SIGMA2, MVLSTMNetwork
from mvlstm.nn.retain import RETAINNetwork

Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class Said:
    """What K members say of B windows, on the scale of their outputs.

    Shapes
    ------
    mean : (K, B, H)
    mu, prior, log_sigma2 : (K, N, B, H), the last where the network predicts it; for mixtures
    """

    mean: Value
    mu: Value | None = None
    prior: Value | None = None
    log_sigma2: Value | None = None


def _weights(form: NetworkForm) -> Weights:
    """Return the members' parameters by name, members first."""
    shapes, flat = form.network.shapes, form.flat
    ends = np.cumsum([prod(shape) for shape in shapes.values()])[:-1]
    parts = np.split(flat, ends, axis=1)
    return {
        name: part.reshape(len(flat), *shape)
        for part, (name, shape) in zip(parts, shapes.items(), strict=True)
    }


def say(form: NetworkForm, x: Value) -> Said:
    """Add a network's equations for windows x (B, T, C)."""
    network, p = form.network, _weights(form)
    if isinstance(network, MVLSTMNetwork):
        return _multi_variable(network, p, x)
    if isinstance(network, LSTMNetwork):
        return _plain(network, p, x)
    if isinstance(network, RETAINNetwork):
        return _retain(network, p, x)
    assert isinstance(network, DUALNetwork)
    return _dual(network, p, x)


# ------------------------------------------------------------------------------------- recurrences


def _recurrence(layer: Layer, p: Weights, tag: Any, k: int, x: Value, **more: Any) -> Value:
    """Run one member's layer over x (T, B, C), giving its states (T, 1, B, D)."""
    own = {name: p[f"{name}_{tag}"][k] for name in layer.shapes}
    dense = _dense_lstm(layer, own) if layer.cell == "lstm" else _dense_gru(layer, own)
    given = [x.graph.constant(one[None], np.float32) for one in dense]
    if layer.cell == "gru":
        more["linear_before_reset"] = 1
    kind, size = layer.cell.upper(), layer.size
    return x.graph.apply(kind, x, *given, hidden_size=size, **more)


def _gate_rows(layer: Layer, own: Weights) -> list[tuple[Any, ...]]:
    """Return weights of the inputs (D, C) and of the state (D, D), and the bias (D,), by gate."""
    C, N, d, D, G = layer.n_columns, layer.n_variables, layer.hidden_size, layer.size, layer.n_gates
    bias = own["b"].reshape(G, D)
    if layer.gates == "full":
        rows = own["W"].reshape(G, D, C + D)
        return [(rows[g, :, :C], rows[g, :, C:], bias[g]) for g in range(G)]
    found: list[tuple[Any, ...]] = []
    for g in range(G):
        inputs, state = np.zeros((D, C), np.float32), np.zeros((N, d, N, d), np.float32)
        for c, n in enumerate(layer.groups):
            inputs[n * d : (n + 1) * d, c] = own["Gx"][c, g]
        for n in range(N):
            state[n, :, n] = own["Gh"][n, g]
        found.append((inputs, state.reshape(D, D), bias[g]))
    return found


def _candidate_rows(layer: Layer, own: Weights) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the candidate's weights of inputs and state: a variable's see its own alone."""
    C, N, d, D = layer.n_columns, layer.n_variables, layer.hidden_size, layer.size
    inputs, state = np.zeros((D, C), np.float32), np.zeros((N, d, N, d), np.float32)
    for c, n in enumerate(layer.groups):
        inputs[n * d : (n + 1) * d, c] = own["Wx"][c]
    for n in range(N):
        state[n, :, n] = own["Wh"][n]
    return inputs, state.reshape(D, D)


def _dense_lstm(layer: Layer, own: Weights) -> tuple[NDArray[Any], ...]:
    """Return W, R and B in ONNX's order of gates: i, o, f, candidate."""
    i, f, o = _gate_rows(layer, own)
    f = (f[0], f[1], f[2] + 1)  # the constant outside the parameters
    j = (*_candidate_rows(layer, own), own["bj"].reshape(-1))
    W, R, b = (np.concatenate(each) for each in zip(i, o, f, j, strict=True))
    return W, R, np.concatenate([b, np.zeros_like(b)])


def _dense_gru(layer: Layer, own: Weights) -> tuple[NDArray[Any], ...]:
    """Return W, R and B in ONNX's order of gates: z, r, candidate."""
    r, z = _gate_rows(layer, own)
    j = (*_candidate_rows(layer, own), own["bj"].reshape(-1))
    W, R, b = (np.concatenate(each) for each in zip(z, r, j, strict=True))
    inner = np.zeros_like(b)
    inner[-layer.size :] = own["bh"].reshape(-1)
    return W, R, np.concatenate([b, inner])


def _states(network: MVLSTMNetwork | LSTMNetwork, p: Weights, k: int, x: Value) -> Value:
    """Return the top layer's states (T, 1, B, D) of one member, for x (T, B, C)."""
    states = _recurrence(network.stack[0], p, 0, k, x)
    for level, layer in enumerate(network.stack[1:], start=1):
        states = _recurrence(layer, p, level, k, states.squeezed(1))
    return states


# ---------------------------------------------------------------------------------------- networks


def _multi_variable(network: MVLSTMNetwork, p: Weights, x: Value) -> Said:
    graph, K = x.graph, len(p["Ws"])
    N, d = network.n_variables, network.hidden_size
    steps = x.moved(1, 0, 2)
    h = graph.concat([_states(network, p, k, steps) for k in range(K)], axis=1)  # (T, K, B, D)
    h = h.reshaped(0, 0, 0, N, d).moved(1, 3, 2, 0, 4)  # (K, N, B, T, d)
    memory, last = h.cut(3, 0, -1), h.cut(3, -1)
    scores = memory @ p["Ws"][:, :, None, :, None] + p["bs"][:, :, None, None, None]
    a = scores.map("Tanh").map("Softmax", axis=3)  # (K, N, B, T - 1, 1)
    context = a.moved(0, 1, 2, 4, 3) @ memory
    summary = graph.concat([last, context], axis=4).squeezed(3)  # (K, N, B, 2 d)

    ahead = _ahead(network, p, h)
    s = summary @ np.moveaxis(p["Wv"], 1, 2)[:, None] + p["bv"][:, None, None, :]
    s = s + ahead[1] if ahead else s
    s = s.map("Tanh") if network.attention == "bounded" else s
    prior = s.map("Softmax", axis=1)  # (K, N, B, H)
    if network.head == "fusion":
        fused = prior.moved(0, 2, 3, 1) @ summary.moved(0, 2, 1, 3)  # (K, B, H, 2 d)
        return Said((fused * p["wf"][:, None]).total(3) + p["bf"][:, None])
    mu = _by_variable(summary, p["Wo"], p["bo"])
    mu = mu + ahead[0] if ahead else mu
    log_sigma2 = None
    if network.sigma == "predicted":
        found = _by_variable(summary, p["Wr"], p["br"])
        found = found + ahead[2] if ahead else found
        log_sigma2 = found.clip(LEAST_LOG_SIGMA2, MOST_LOG_SIGMA2)
    return Said((prior * mu).total(1), mu, prior, log_sigma2)


def _ahead(network: MVLSTMNetwork, p: Weights, h: Value) -> list[Value]:
    """Return what states h (K, N, B, T, d) at the rows forecast add, (K, N, B, H) each."""
    if not network.known:
        return []
    K, several, H, _, d = p["Us"].shape
    weights = np.zeros((several, K, network.n_variables, 1, H, d), np.float32)
    weights[:, :, list(network.known), 0] = p["Us"].transpose(1, 0, 3, 2, 4)
    state = h.cut(3, -H)
    return [(state * one).total(4) for one in weights]


def _by_variable(summary: Value, weights: NDArray[Any], bias: NDArray[Any]) -> Value:
    """Map summaries (K, N, B, 2 d) by weights (K, H, N, 2 d) and bias (K, H, N): (K, N, B, H)."""
    return summary @ weights.transpose(0, 2, 3, 1) + bias.transpose(0, 2, 1)[:, :, None]


def _plain(network: LSTMNetwork, p: Weights, x: Value) -> Said:
    columns = network.columns
    x = x if columns is None else x.take(2, columns)
    steps, graph = x.moved(1, 0, 2), x.graph
    each = [_states(network, p, k, steps).cut(0, -1).squeezed(0) for k in range(len(p["wo"]))]
    last = graph.concat(each, axis=0)  # (K, B, hidden)
    return Said(last @ p["wo"].transpose(0, 2, 1) + p["bo"][:, None])


def _retain(network: RETAINNetwork, p: Weights, x: Value) -> Said:
    graph, K = x.graph, len(p["emb"])
    v = x.moved(1, 0, 2).spread(0) @ p["emb"][:, None]  # (K, T, B, m)
    backwards: dict[str, Any] = {"direction": "reverse"}

    def states(which: str) -> Value:
        each = [
            _recurrence(network.layer, p, which, k, v.cut(0, k, k + 1).squeezed(0), **backwards)
            for k in range(K)
        ]
        return graph.concat([one.squeezed(1).spread(0) for one in each], axis=0)  # (K, T, B, m)

    e = states("a") @ p["wa"][:, None, :, None] + p["ba"][:, :, None, None]
    alpha = e.map("Softmax", axis=1)  # (K, T, B, 1)
    beta = (states("b") @ p["Wb"].transpose(0, 2, 1)[:, None] + p["bb"][:, None, None]).map("Tanh")
    context = (alpha * beta * v).total(1)  # (K, B, m)
    return Said(context @ p["wo"].transpose(0, 2, 1) + p["bo"][:, None])


def _dual(network: DUALNetwork, p: Weights, x: Value) -> Said:
    h = _encode(network, p, x.cut(2, 0, -1))
    last = _decode(network, p, h, x.cut(2, -1))
    inner = last @ p["Wy"] + p["by"][:, None]
    return Said(inner @ p["vy"] + p["bo"][:, None])


def _encode(network: DUALNetwork, p: Weights, x: Value) -> Value:
    """Return the encoder's states (K, B, T, m) for driving series x (B, T, n)."""
    m, state, states = network.hidden_size, None, []
    series = x.moved(0, 2, 1).spread(0)
    keys = series @ p["Ue"][:, None] + p["be"][:, None, None]  # (K, B, n, T)
    bias = _forgetting(p["enc_b"])
    for t in range(network.window):
        asked = keys if state is None else keys + (state @ p["We"]).spread(2)
        alpha = (asked.map("Tanh") @ p["ve"][:, None, :, None]).squeezed(3).map("Softmax", axis=2)
        gates = (alpha * x.cut(1, t, t + 1).moved(1, 0, 2)) @ p["enc_x"] + bias
        state = _lstm_step(gates, state, p["enc_h"], m)
        states.append(state.cut(2, 0, m).spread(2))
    return x.graph.concat(states, axis=2)


def _decode(network: DUALNetwork, p: Weights, h: Value, y: Value) -> Value:
    """Return [d_T; c_T] (K, B, 2 m) for the encoder's states and the target y (B, T, 1)."""
    m, state = network.hidden_size, None
    keys = h @ p["Ud"][:, None] + p["bd"][:, None, None]
    heights = h @ p["w"][:, None, 1:, None]  # (K, B, T, 1)
    bias, beta = _forgetting(p["dec_b"]), heights
    for t in range(network.window):
        asked = keys if state is None else keys + (state @ p["Wd"]).spread(2)
        beta = (asked.map("Tanh") @ p["vd"][:, None, :, None]).map("Softmax", axis=2)
        from_y = y.cut(1, t, t + 1).moved(1, 0, 2) * p["w"][:, :1, None] + p["b"][:, None]
        gates = ((beta * heights).total(2) + from_y) * p["dec_x"] + bias
        state = _lstm_step(gates, state, p["dec_h"], m)
    assert state is not None
    context = (beta.moved(0, 1, 3, 2) @ h).squeezed(2)
    return h.graph.concat([state.cut(2, 0, m), context], axis=2)


def _forgetting(b: NDArray[np.float32]) -> NDArray[np.float32]:
    """Add the constant 1 to the forget gate's bias (K, 4 m), giving (K, 1, 4 m)."""
    m = b.shape[1] // 4
    return np.asarray(b + np.repeat([0, 1, 0, 0], m).astype(np.float32))[:, None]


def _lstm_step(gates: Value, state: Value | None, hidden: NDArray[Any], m: int) -> Value:
    """Advance [h; s] (K, B, 2 m) by its gates i, f, o, g (K, B, 4 m), the state's share added."""
    if state is not None:
        gates = gates + state.cut(2, 0, m) @ hidden
    i, f, o = (gates.cut(2, k * m, (k + 1) * m).map("Sigmoid") for k in range(3))
    s = i * gates.cut(2, 3 * m).map("Tanh")
    if state is not None:
        s = s + f * state.cut(2, m)
    return gates.graph.concat([o * s.map("Tanh"), s], axis=2)
