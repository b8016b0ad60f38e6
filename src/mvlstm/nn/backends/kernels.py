"""GPU kernels: one launch per time step and direction, product and element-wise part together.

Imported only where a CUDA device is used, since it needs Triton. Operands are stored in half
precision and summed in single: with states and gates between -1 and 1 that keeps the eleven bits
of the tensor cores' own single-precision mode at half the traffic. Memory cells, states handed on
and all sums stay in single precision. Kernels take pointers and sizes one by one.
"""

# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _tanh(x):
    return 2.0 * tl.sigmoid(2.0 * x) - 1.0


@triton.jit
def gather_kernel(source, index, scale, target, P, E, BLOCK: tl.constexpr):
    """target[k, e] = source[k, index[e]] * scale[k], zero where the index is negative."""
    k = tl.program_id(1).to(tl.int64)
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(index + e, mask=e < E, other=-1)
    value = tl.load(source + k * P + place, mask=place >= 0, other=0.0)
    value = value * tl.load(scale + k)
    tl.store(target + k * E + e, value.to(target.dtype.element_ty), mask=e < E)


@triton.jit(do_not_specialize=["t"])
def forward_kernel(
    z,  # (K, T, B, COLUMNS): [state before | x | 1]
    w,  # (K, 4, UNITS, COLUMNS)
    gates,  # (K, T, B, 4, UNITS), written if SAVE
    c,  # (K, T, B, UNITS), or (K, 1, B, UNITS) if not SAVE
    h,  # (K, T, B, D)
    t,
    T,
    B,
    D,
    UNITS: tl.constexpr,
    COLUMNS: tl.constexpr,
    BM: tl.constexpr,
    BJ: tl.constexpr,
    BK: tl.constexpr,
    GRU: tl.constexpr,
    SAVE: tl.constexpr,
):
    """Advance every member by one step: program (units, windows, member)."""
    k = tl.program_id(2).to(tl.int64)
    units = tl.program_id(0) * BJ + tl.arange(0, BJ)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    inner = tl.arange(0, BK)
    here = rows[:, None] < B
    row = (k * T + t) * B + rows[:, None]  # (BM, 1) of (K, T, B)
    left = z + row * COLUMNS + inner[None, :]
    right = w + k * 4 * UNITS * COLUMNS + units[None, :] * COLUMNS + inner[:, None]
    a0 = tl.zeros((BM, BJ), dtype=tl.float32)
    a1 = tl.zeros((BM, BJ), dtype=tl.float32)
    a2 = tl.zeros((BM, BJ), dtype=tl.float32)
    a3 = tl.zeros((BM, BJ), dtype=tl.float32)
    for q in range(0, COLUMNS, BK):
        part = tl.load(left + q, mask=here, other=0.0)
        a0 = tl.dot(part, tl.load(right + q), a0)
        a1 = tl.dot(part, tl.load(right + UNITS * COLUMNS + q), a1)
        a2 = tl.dot(part, tl.load(right + 2 * UNITS * COLUMNS + q), a2)
        a3 = tl.dot(part, tl.load(right + 3 * UNITS * COLUMNS + q), a3)
    inside = here & (units[None, :] < D)
    if GRU:
        before = tl.load(h + (row - B) * D + units[None, :], mask=inside & (t > 0), other=0.0)
        a0 = tl.sigmoid(a0)
        a1 = tl.sigmoid(a1)
        a2 = _tanh(a2 + a0 * a3)
        state = (1.0 - a1) * a2 + a1 * before
    else:
        if SAVE:
            memory = c + row * UNITS + units[None, :]
            earlier = memory - B * UNITS
        else:
            memory = c + (k * B + rows[:, None]) * UNITS + units[None, :]
            earlier = memory
        before = tl.load(earlier, mask=here & (t > 0), other=0.0)
        a0 = tl.sigmoid(a0)
        a1 = tl.sigmoid(a1 + 1.0)
        a2 = _tanh(a2)
        a3 = tl.sigmoid(a3)
        now = a1 * before + a0 * a2
        state = a3 * _tanh(now)
        tl.store(memory, now, mask=here)
    tl.store(h + row * D + units[None, :], state, mask=inside)
    following = z + (row + B) * COLUMNS + units[None, :]
    tl.store(following, state.to(z.dtype.element_ty), mask=here & (t + 1 < T))
    if SAVE:
        saved = gates + row * 4 * UNITS + units[None, :]
        low = gates.dtype.element_ty
        tl.store(saved, a0.to(low), mask=here)
        tl.store(saved + UNITS, a1.to(low), mask=here)
        tl.store(saved + 2 * UNITS, a2.to(low), mask=here)
        tl.store(saved + 3 * UNITS, a3.to(low), mask=here)


@triton.jit(do_not_specialize=["t"])
def backward_kernel(
    grad_h,  # (K, T, B, D)
    scale,  # (K,)
    w,  # (K, 4 UNITS, COLUMNS)
    gates,  # (K, T, B, 4, UNITS)
    c,  # (K, T, B, UNITS)
    h,  # (K, T, B, D)
    carry,  # (K, B, UNITS)
    grad_a,  # (K, T, B, 4 UNITS), scaled
    t,
    T,
    B,
    D,
    UNITS: tl.constexpr,
    COLUMNS: tl.constexpr,
    BM: tl.constexpr,
    BJ: tl.constexpr,
    BK: tl.constexpr,
    GRU: tl.constexpr,
    LAST: tl.constexpr,
):
    """Go back one step: from the gradients of step t + 1 to those of step t."""
    k = tl.program_id(2).to(tl.int64)
    units = tl.program_id(0) * BJ + tl.arange(0, BJ)
    rows = tl.program_id(1) * BM + tl.arange(0, BM)
    here = rows[:, None] < B
    row = (k * T + t) * B + rows[:, None]
    inside = here & (units[None, :] < D)
    carried = carry + (k * B + rows[:, None]) * UNITS + units[None, :]
    dh = tl.zeros((BM, BJ), dtype=tl.float32)
    kept = tl.zeros((BM, BJ), dtype=tl.float32)
    if not LAST:
        inner = tl.arange(0, BK)
        left = grad_a + (row + B) * 4 * UNITS + inner[None, :]
        right = w + k * 4 * UNITS * COLUMNS + inner[:, None] * COLUMNS + units[None, :]
        for q in range(0, 4 * UNITS, BK):
            part = tl.load(left + q, mask=here, other=0.0)
            dh = tl.dot(part, tl.load(right + q * COLUMNS), dh)
        kept = tl.load(carried, mask=here, other=0.0)
    outside = tl.load(grad_h + row * D + units[None, :], mask=inside, other=0.0)
    dh += outside * tl.load(scale + k)
    saved = gates + row * 4 * UNITS + units[None, :]
    g0 = tl.load(saved, mask=here, other=0.0).to(tl.float32)
    g1 = tl.load(saved + UNITS, mask=here, other=0.0).to(tl.float32)
    g2 = tl.load(saved + 2 * UNITS, mask=here, other=0.0).to(tl.float32)
    g3 = tl.load(saved + 3 * UNITS, mask=here, other=0.0).to(tl.float32)
    if GRU:  # reset, update, candidate, candidate from h
        before = tl.load(h + (row - B) * D + units[None, :], mask=inside & (t > 0), other=0.0)
        dh += kept
        d2 = dh * (1.0 - g1) * (1.0 - g2 * g2)
        d0 = d2 * g3 * g0 * (1.0 - g0)
        d1 = dh * (before - g2) * g1 * (1.0 - g1)
        d3 = d2 * g0
        tl.store(carried, dh * g1, mask=here)
    else:  # input, forget, candidate, output
        memory = c + row * UNITS + units[None, :]
        bent = _tanh(tl.load(memory, mask=here, other=0.0))
        before = tl.load(memory - B * UNITS, mask=here & (t > 0), other=0.0)
        dc = kept + dh * g3 * (1.0 - bent * bent)
        d0 = dc * g2 * g0 * (1.0 - g0)
        d1 = dc * before * g1 * (1.0 - g1)
        d2 = dc * g0 * (1.0 - g2 * g2)
        d3 = dh * bent * g3 * (1.0 - g3)
        tl.store(carried, dc * g1, mask=here)
    target = grad_a + row * 4 * UNITS + units[None, :]
    low = grad_a.dtype.element_ty
    tl.store(target, _within(d0).to(low), mask=here)
    tl.store(target + UNITS, _within(d1).to(low), mask=here)
    tl.store(target + 2 * UNITS, _within(d2).to(low), mask=here)
    tl.store(target + 3 * UNITS, _within(d3).to(low), mask=here)


@triton.jit
def _within(x):
    """Keep to what half precision holds, leaving NaN alone."""
    x = tl.where(x > 65000.0, 65000.0, x)
    return tl.where(x < -65000.0, -65000.0, x)


@triton.jit
def pool_kernel(
    h,  # (K, T, B, N, d)
    ws,  # (K, N, d)
    bs,  # (K, N)
    vectors,  # (K, B, N, 2 d)
    weights,  # (K, T - 1, B, N)
    T,
    B,
    N: tl.constexpr,
    d: tl.constexpr,
    TP: tl.constexpr,
    DP: tl.constexpr,
):
    """Temporal attention of one variable of one window: program (variable, window, member)."""
    n = tl.program_id(0)
    b = tl.program_id(1)
    k = tl.program_id(2).to(tl.int64)
    i = tl.arange(0, DP)
    s = tl.arange(0, TP)
    column = i < d
    step = s < T - 1
    w = tl.load(ws + (k * N + n) * d + i, mask=column, other=0.0)
    start = h + ((k * T * B + b) * N + n) * d
    tile = start + s[:, None] * (B * N * d) + i[None, :]
    m = tl.load(tile, mask=step[:, None] & column[None, :], other=0.0)
    e = _tanh(tl.sum(m * w[None, :], axis=1) + tl.load(bs + k * N + n))
    a = tl.where(step, tl.exp(e), 0.0)  # e < 1: no overflow
    a = a / tl.sum(a, axis=0)
    out = vectors + ((k * B + b) * N + n) * 2 * d + i
    last = tl.load(start + (T - 1) * B * N * d + i, mask=column, other=0.0)
    tl.store(out, last, mask=column)
    tl.store(out + d, tl.sum(a[:, None] * m, axis=0), mask=column)
    tl.store(weights + ((k * (T - 1) + s) * B + b) * N + n, a, mask=step)


@triton.jit
def pool_backward_kernel(
    h,
    ws,
    bs,
    grad_vectors,  # (K, B, N, 2 d)
    grad_weights,  # (K, T - 1, B, N), read if WEIGHTS
    grad_h,  # (K, T, B, N, d)
    grad_ws,  # (K, B, N, d), one share per window
    grad_bs,  # (K, B, N)
    T,
    B,
    N: tl.constexpr,
    d: tl.constexpr,
    TP: tl.constexpr,
    DP: tl.constexpr,
    WEIGHTS: tl.constexpr,
):
    """Backward pass of `pool_kernel`, scores computed again."""
    n = tl.program_id(0)
    b = tl.program_id(1)
    k = tl.program_id(2).to(tl.int64)
    i = tl.arange(0, DP)
    s = tl.arange(0, TP)
    column = i < d
    step = s < T - 1
    w = tl.load(ws + (k * N + n) * d + i, mask=column, other=0.0)
    start = ((k * T * B + b) * N + n) * d
    offsets = start + s[:, None] * (B * N * d) + i[None, :]
    both = step[:, None] & column[None, :]
    m = tl.load(h + offsets, mask=both, other=0.0)
    e = _tanh(tl.sum(m * w[None, :], axis=1) + tl.load(bs + k * N + n))
    a = tl.where(step, tl.exp(e), 0.0)
    a = a / tl.sum(a, axis=0)
    grad = grad_vectors + ((k * B + b) * N + n) * 2 * d + i
    g = tl.load(grad + d, mask=column, other=0.0)
    da = tl.sum(m * g[None, :], axis=1)
    if WEIGHTS:
        given = grad_weights + ((k * (T - 1) + s) * B + b) * N + n
        da += tl.load(given, mask=step, other=0.0)
    de = a * (da - tl.sum(a * da, axis=0)) * (1.0 - e * e)
    tl.store(grad_h + offsets, a[:, None] * g[None, :] + de[:, None] * w[None, :], mask=both)
    last = tl.load(grad, mask=column, other=0.0)
    tl.store(grad_h + start + (T - 1) * B * N * d + i, last, mask=column)
    share = (k * B + b) * N + n
    tl.store(grad_ws + share * d + i, tl.sum(de[:, None] * m, axis=0), mask=column)
    tl.store(grad_bs + share, tl.sum(de, axis=0))
