"""The paper's equations once more, in plain numpy loops: an oracle apart from the package."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def sigmoid(a: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-a))


def forward(p: dict[str, Array], X: Array) -> dict[str, Array]:
    """One window X (T, N) through the paper's MV-LSTM (full gates, bounded attention).

    ``p`` holds Wx (N, d), Wh (N, d, d), bj (N, d), W (3D, N + D), b (3D), Ws (N, d), bs (N),
    Wo (N, 2d), bo (N), Wv (2d), bv ().
    """
    T, N = X.shape
    d = p["Wx"].shape[1]
    D = N * d
    H, c = np.zeros((N, d)), np.zeros(D)
    states = []
    for t in range(T):
        J = np.zeros((N, d))
        for n in range(N):
            J[n] = np.tanh(p["Wh"][n] @ H[n] + p["Wx"][n] * X[t, n] + p["bj"][n])
        a = p["W"] @ np.concatenate([X[t], H.reshape(-1)]) + p["b"]
        i, f, o = sigmoid(a[:D]), sigmoid(a[D : 2 * D] + 1.0), sigmoid(a[2 * D :])
        c = f * c + i * J.reshape(-1)
        H = (o * np.tanh(c)).reshape(N, d)
        states.append(H)
    mu, s, attention = np.zeros(N), np.zeros(N), np.zeros((N, T - 1))
    for n in range(N):
        e = [math.tanh(p["Ws"][n] @ states[t][n] + p["bs"][n]) for t in range(T - 1)]
        attention[n] = np.exp(e) / np.sum(np.exp(e))
        context = sum(attention[n, t] * states[t][n] for t in range(T - 1))
        summary = np.concatenate([states[-1][n], context])
        mu[n] = p["Wo"][n] @ summary + p["bo"][n]
        s[n] = math.tanh(p["Wv"] @ summary + p["bv"])
    prior = np.exp(s) / np.exp(s).sum()
    return {"mu": mu, "prior": prior, "temporal": attention, "mean": prior @ mu}


def likelihoods(mu: Array, y: float, sigma2: float = 1.0) -> Array:
    return np.exp(-((y - mu) ** 2) / (2 * sigma2)) / math.sqrt(2 * math.pi * sigma2)


def nll(prior: Array, mu: Array, y: float) -> float:
    return -math.log(float(np.sum(prior * likelihoods(mu, y))))


def posterior(prior: Array, mu: Array, y: float) -> Array:
    joint = prior * likelihoods(mu, y)
    return joint / joint.sum()
