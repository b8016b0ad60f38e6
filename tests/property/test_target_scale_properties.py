"""From the target to labels and back: transform, scale by series, differencing, contributions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mvlstm import metrics
from mvlstm.problem.predictive import Mixture, Predictive
from mvlstm.problem.preparation import Preparation, Prepared
from mvlstm.problem.target_scale import Bare, LabelScale, MeanScale, TargetScale
from mvlstm.problem.windows import gather_labels
from mvlstm.table.frame import build_frame
from mvlstm.transforms import IDENTITY, Transform
from mvlstm.types import FloatArray, IntArray

FAST = settings(deadline=None, max_examples=60)
LOG, TAILS = Transform("log1p"), Transform("asinh", center=3.0, scale=20.0)
WINDOW = 3


class Case(NamedTuple):
    """A prepared table with origins that have all their steps, and how many these are."""

    prepared: Prepared
    origins: IntArray
    horizon: int

    @property
    def scale(self) -> TargetScale:
        return self.prepared.scale(self.origins, self.horizon)

    @property
    def actual(self) -> FloatArray:
        return gather_labels(self.prepared.frame, self.origins, self.horizon)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """One series, differenced or not, or several; on a log scale or not."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    transform = draw(st.sampled_from([IDENTITY, LOG, TAILS]))
    order, several = draw(st.sampled_from([(0, 1), (1, 1), (2, 1), (0, 2), (0, 3)]))
    rows, horizon = draw(st.integers(12, 40)), draw(st.integers(1, 4))
    parts = []
    for k in range(several):
        y = 10.0 ** draw(st.floats(-2, 3)) * np.abs(rng.normal(size=rows).cumsum())
        y += draw(st.floats(0, 100)) if transform else draw(st.floats(-100, 100))
        parts.append(pd.DataFrame({"t": range(rows), "s": f"s{k}", "x": rng.normal(size=rows)}))
        parts[-1]["y"] = y
    table = pd.concat(parts, ignore_index=True)
    if several == 1:
        frame = build_frame(table[["t", "x", "y"]], target="y", time="t")
    else:
        frame = build_frame(table, target="y", time="t", series="s")
    orders = np.array([0, order])
    preparation = Preparation.learn(frame.values, orders, transform, segments=frame.segments)
    if several > 1:
        preparation = preparation.by_series(frame, np.ones(frame.n_rows, dtype=bool), WINDOW)
    prepared = preparation.apply(frame, window=WINDOW)
    return Case(prepared, prepared.origins(WINDOW, horizon), horizon)


@st.composite
def mixtures(draw: st.DrawFn, case: Case) -> Mixture:
    """Normals of some members' components around labels."""
    K, J = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    shape = (len(case.origins), case.horizon, K, J)
    weights = rng.uniform(0.1, 1.0, size=shape)
    labels = case.prepared.labels(case.origins, case.horizon)
    size = float(labels.std()) + 0.1
    means = labels[..., None, None] + size * rng.normal(size=shape)
    weights = weights / weights.sum(axis=-1, keepdims=True) / K
    return Mixture(weights, means, (size * rng.uniform(0.1, 1.0, size=shape)) ** 2)


def size_of(values: FloatArray) -> float:
    return float(np.abs(values).max(initial=1.0))


@FAST
@given(cases())
def test_labels_forward_and_back_agree(case: Case) -> None:
    scale, actual = case.scale, case.actual
    labels = scale.labels(actual)
    np.testing.assert_array_equal(labels, case.prepared.labels(case.origins, case.horizon))
    sure = Mixture.of_members(labels[None], np.zeros((1, case.horizon)))
    mixture = scale.mixture(sure)
    back = scale.transform.inverse(mixture.means[..., 0, 0])
    tight = {"rtol": 1e-9, "atol": 1e-9 * size_of(actual)}
    np.testing.assert_allclose(back, actual, **tight)
    members = scale.members(labels[None], mixture, np.ones(case.horizon))
    np.testing.assert_allclose(members[0], actual, **tight)


@FAST
@given(cases())
def test_labels_are_what_the_stages_say(case: Case) -> None:
    """Written out with plain indexing of the table."""
    frame, order = case.prepared.frame, int(case.prepared.preparation.orders[-1])
    z = case.prepared.preparation.transform.forward(frame.target_values)
    series = case.prepared.preparation.series
    for place, row in enumerate(case.origins):
        center, unit = 0.0, 1.0
        if series is not None:
            assert frame.panel is not None
            own = z[frame.panel.codes == frame.panel.codes[row]]
            center, unit = own.mean(), own.std() or 1.0
        for h in range(1, case.horizon + 1):
            now, before = z[row], z[row - 1]
            guess = [0.0, now, now + h * (now - before)][order]
            found = case.scale.labels(case.actual)[place, h - 1]
            wanted = (z[row + h] - center) / unit - guess
            assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9 * size_of(z))


@FAST
@given(st.data())
def test_quantiles_go_through_the_scale(data: st.DataObject) -> None:
    case = data.draw(cases())
    labels, q = data.draw(mixtures(case)), data.draw(st.floats(0.02, 0.98))
    scale = case.scale
    there = metrics.mixture_quantile(*scale.mixture(labels).joined, q)
    value = scale.transform.inverse(there)
    wanted = metrics.mixture_quantile(*labels.joined, q)
    found = scale.labels(value)
    inside = (value > 0) if scale.transform else np.full(value.shape, True)
    scope = 1e-7 * (size_of(wanted) + size_of(scale.baseline))
    np.testing.assert_allclose(found[inside], wanted[inside], rtol=1e-6, atol=scope)
    assert (found[~inside] >= wanted[~inside] - scope).all()  # what lies below zero counts as zero


@FAST
@given(st.data())
def test_the_same_share_lies_below_on_either_scale(data: st.DataObject) -> None:
    case = data.draw(cases())
    labels, scale = data.draw(mixtures(case)), case.scale
    here = metrics.mixture_cdf(*labels.joined, scale.labels(case.actual))
    there = metrics.mixture_cdf(*scale.mixture(labels).joined, scale.transform.forward(case.actual))
    np.testing.assert_allclose(here, there, atol=1e-6)


@FAST
@given(st.data())
def test_members_means_are_those_of_their_normals(data: st.DataObject) -> None:
    case = data.draw(cases())
    labels, scale = data.draw(mixtures(case)), case.scale
    share = labels.weights / labels.weights.sum(axis=-1, keepdims=True)
    points = np.moveaxis((share * labels.means).sum(axis=-1), -1, 0)  # (K, M, H)
    mixture = scale.mixture(labels)
    found = scale.members(points, mixture, np.ones(case.horizon))
    each = scale.transform.mean(mixture.means, mixture.variances)
    wanted = np.moveaxis((share * each).sum(axis=-1), -1, 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-7 * size_of(case.actual))


@FAST
@given(cases())
def test_the_scale_of_a_series_ends_before_the_targets_units(case: Case) -> None:
    own, labels = case.scale.of_series(), case.prepared.labels(case.origins, case.horizon)
    if case.prepared.units is None:
        assert own.labels(case.actual).tolist() == labels.tolist()
        return
    assert own.transform == IDENTITY and own.unit is None
    steps = case.prepared.target_steps(case.origins, case.horizon)
    np.testing.assert_allclose(own.labels(steps), labels)
    variances = np.arange(1.0, case.horizon + 1)
    assert case.scale.unit is not None
    np.testing.assert_allclose(
        case.scale.variances(variances)[..., 0], variances * case.scale.unit[:, None] ** 2
    )


@FAST
@given(cases(), st.integers(0, 2**16))
def test_a_scrambled_past_has_its_own_baseline(case: Case, seed: int) -> None:
    donors, whole = np.random.default_rng(seed).permutation(len(case.origins)), case.scale
    taken = whole.take(donors)
    np.testing.assert_array_equal(taken.baseline, whole.baseline[donors])
    assert taken.unit is whole.unit and taken.center is whole.center


# ----------------------------------------------------------------------------------- contributions


@FAST
@given(
    st.sampled_from([IDENTITY, LOG, TAILS]),
    st.floats(0, 1),
    st.integers(0, 2**16),
    st.sampled_from([0.0, 1e-9, 0.5]),
)
def test_contributions_add_up_to_the_forecast(
    transform: Transform, variance: float, seed: int, size: float
) -> None:
    rng = np.random.default_rng(seed)
    K, M, H, N, T = 2, 3, 2, 2, 4
    means = MeanScale(transform, np.full(H, variance))
    parts, level = size * rng.normal(size=(K, M, H, N, T)), rng.uniform(1, 3, size=H)
    forecast = means(level) + rng.normal(size=(M, H))
    found, factor = means.contributions(parts, level, forecast)
    total = found.mean(axis=0).sum(axis=(2, 3))
    np.testing.assert_allclose(means(level) + total, forecast, rtol=1e-9)
    apart, before = (one - one.mean(axis=0) for one in (found, parts))
    np.testing.assert_allclose(apart, factor[..., None, None] * before, atol=1e-9)


@FAST
@given(st.integers(0, 2**16))
def test_contributions_stay_as_they_are_without_a_transform(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts, level = rng.normal(size=(2, 3, 2, 2, 4)), rng.normal(size=2)
    means = MeanScale.match(IDENTITY, rng.normal(size=(5, 2)), level)
    forecast = level + parts.mean(axis=0).sum(axis=(2, 3))
    found, factor = means.contributions(parts, level, forecast)
    np.testing.assert_allclose(found, parts, atol=1e-9)
    np.testing.assert_allclose(factor, 1.0, atol=1e-9)


@FAST
@given(st.integers(0, 2**16), st.floats(1e-3, 2.0))
def test_the_variance_of_the_mean_is_found(seed: int, variance: float) -> None:
    values = np.random.default_rng(seed).uniform(1, 4, size=(6, 2))
    wanted = LOG.mean(values, np.full(2, variance)).mean(axis=0)
    means = MeanScale.match(LOG, values, wanted)
    np.testing.assert_allclose(means.variance, variance, rtol=1e-6)
    np.testing.assert_allclose(means(values).mean(axis=0), wanted, rtol=1e-9)


# --------------------------------------------------------------------------- link, standardisation


class LastValue:
    """A link: the last value of the last column, times two."""

    horizon = 2

    def __call__(self, windows: FloatArray) -> FloatArray:
        return np.repeat(2.0 * windows[:, -1:, -1], 2, axis=1)

    def rows(self, table: FloatArray, origins: IntArray, window: int) -> FloatArray:
        return np.repeat(2.0 * table[origins][:, -1:], 2, axis=1)

    def gradient(self, windows: FloatArray) -> FloatArray:
        slope = np.zeros((2, *windows.shape[1:]))
        slope[:, -1, -1] = 2.0
        return slope


class Learnt(NamedTuple):
    """A scale of labels, and the windows, guesses and labels it was learned from."""

    scale: LabelScale
    windows: FloatArray
    guess: FloatArray
    labels: FloatArray


def learnt(seed: int, *, unknown: bool = False) -> Learnt:
    rng = np.random.default_rng(seed)
    windows, link = rng.normal(size=(30, 3, 2)), LastValue()
    guess = link(windows)
    labels = 5.0 + guess + 3.0 * rng.normal(size=(30, 2))
    known = np.where(rng.uniform(size=labels.shape) < 0.3, np.nan, labels) if unknown else labels
    return Learnt(LabelScale.learn(link, guess, known, bare=True), windows, guess, known)


@FAST
@given(st.integers(0, 2**16), st.booleans())
def test_what_networks_learn_is_standardised(seed: int, unknown: bool) -> None:
    scale, _, guess, labels = learnt(seed, unknown=unknown)
    outputs = scale.outputs(labels, guess)
    assert np.nanmean(outputs) == pytest.approx(0.0, abs=1e-9)
    assert np.nanstd(outputs) == pytest.approx(1.0)
    np.testing.assert_array_equal(np.isnan(outputs), np.isnan(labels))
    assert scale.bare is not None
    inside = (guess >= scale.bare.low) & (guess <= scale.bare.high)
    plain = (labels - scale.bare.center) / scale.bare.scale
    np.testing.assert_allclose(scale.bare_outputs(labels, guess)[inside], plain[inside])


@FAST
@given(st.integers(0, 2**16), st.lists(st.booleans(), min_size=1, max_size=4))
def test_outputs_of_members_and_their_forecasts_agree(seed: int, bare: list[bool]) -> None:
    scale, _, guess, labels = learnt(seed)
    members = scale.for_members(np.array(bare))
    outputs = members.outputs(labels, guess)
    wanted = [
        scale.bare_outputs(labels, guess) if b else scale.outputs(labels, guess) for b in bare
    ]
    np.testing.assert_allclose(outputs, wanted, atol=1e-12)
    found = members.forecasts(outputs, guess)
    np.testing.assert_allclose(found, np.broadcast_to(labels, found.shape), atol=1e-9)


@FAST
@given(st.integers(0, 2**16), st.lists(st.booleans(), min_size=1, max_size=3))
def test_a_mixture_of_members_has_their_means(seed: int, bare: list[bool]) -> None:
    scale, _, guess, _ = learnt(seed)
    rng = np.random.default_rng(seed)
    shape = (len(bare), 30, 2, 3)
    weights = rng.uniform(0.1, 1.0, size=shape)
    weights /= weights.sum(axis=-1, keepdims=True)
    means, variances = rng.normal(size=shape), rng.uniform(0.1, 1.0, size=shape)
    members = scale.for_members(np.array(bare))
    found = members.mixture(weights, means, variances, guess)
    points = members.forecasts((weights * means).sum(axis=-1), guess)
    np.testing.assert_allclose(found.members, points)
    assert isinstance(found, Predictive) and found.mixture is not None
    every, centers, widths = found.mixture.joined
    np.testing.assert_allclose(every.sum(axis=-1), 1.0)
    np.testing.assert_allclose((every * centers).sum(axis=-1), points.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(
        np.moveaxis(widths.reshape(30, 2, len(bare), 3), 2, 0),
        variances * members.scale[..., None] ** 2,
    )


@FAST
@given(st.integers(0, 2**16), st.lists(st.booleans(), min_size=1, max_size=3))
def test_gradients_of_forecasts_are_those_of_the_whole_chain(seed: int, bare: list[bool]) -> None:
    scale, windows, _, labels = learnt(seed)
    low, high = np.quantile(labels, [0.2, 0.8])  # so that some guesses lie outside
    scale = LabelScale(scale.link, scale.center, scale.scale, Bare(0.3, 2.0, low, high))
    members = scale.for_members(np.array(bare))
    weights = np.random.default_rng(seed).normal(size=(len(bare), 2, 3, 2))  # (K, H, T, C)

    def forecasts(x: FloatArray) -> FloatArray:
        outputs = np.einsum("khtc,mtc->kmh", weights, x)
        return members.forecasts(outputs, scale.link(x))

    slope = np.broadcast_to(weights[:, None], (len(bare), 30, 2, 3, 2))
    found = members.gradient(slope, windows)
    step, far = 1e-6, np.abs(scale.link(windows) - low).min(initial=1.0)
    far = min(far, float(np.abs(scale.link(windows) - high).min()))
    if far < 4 * step:
        return  # a kink lies within the step
    for t, c in ((0, 0), (2, 0), (2, 1)):
        moved = windows.copy()
        moved[:, t, c] += step
        change = (forecasts(moved) - forecasts(windows)) / step
        np.testing.assert_allclose(found[..., t, c], change, rtol=1e-4, atol=1e-4)
