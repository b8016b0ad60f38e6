"""The faster ways to take a step lead where the plain one leads."""

from __future__ import annotations

import threading
from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from mvlstm.nn.mixture import mixture_nll
from mvlstm.nn.mvlstm import MVLSTMNetwork
from mvlstm.nn.parameters import unflatten
from mvlstm.train import stepper as stepper_module
from mvlstm.train.adam import adam, clip, fused_adam
from mvlstm.train.config import Member, TrainConfig
from mvlstm.train.data import WindowData
from mvlstm.train.graph import warm_up
from mvlstm.train.loop import train, validation_errors
from mvlstm.train.predict import predict_rows
from mvlstm.train.state import TrainState
from mvlstm.train.stepper import Stepper, cut_batch
from mvlstm.train.streams import KeyedDropout, random_bits
from mvlstm.train.workers import run_all

T = 6
MEMBERS = [
    Member(seed=1, learning_rate=1e-2, dropout=0.3, l2=1e-3),
    Member(seed=2, learning_rate=3e-3, shrinkage=0.3),
    Member(seed=3, learning_rate=1e-2, dropout=0.5),
]
gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def make_data(dtype: torch.dtype, device: str = "cpu") -> WindowData:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn((400, 3), generator=generator, dtype=torch.float64)
    labels = table[:, :1].tanh().roll(-1, 0) + 0.5 * table[:, 2:]
    origins = torch.arange(T - 1, 399)
    return WindowData(
        table.to(device, dtype),
        labels.to(device, dtype),
        origins[:300].to(device),
        origins[300:].to(device),
        T,
    )


def with_unknown(data: WindowData, share: float = 0.3) -> WindowData:
    """Return data of two steps ahead, of which some labels are unknown."""
    labels = torch.stack([data.labels[:, 0], data.labels[:, 0].roll(-1)], dim=1)
    drawn = torch.rand(labels.shape, generator=torch.Generator().manual_seed(1))
    drawn[:, 0] = torch.where(drawn[:, 1] < share, 1.0, drawn[:, 0])  # one of both is known
    return replace(data, labels=labels.masked_fill((drawn < share).to(data.device), torch.nan))


def make_network(**options) -> MVLSTMNetwork:
    return MVLSTMNetwork((0, 1, 2), 3, 4, **options)


def make_stepper(network, data, members=MEMBERS) -> Stepper:
    state = TrainState.start(network, members, data.device, data.table.dtype)
    return Stepper(network, data, TrainConfig(batch_size=64), members, state)


def weights_after(stepper: Stepper, step, n: int = 5) -> torch.Tensor:
    generator = torch.Generator().manual_seed(2)
    shape = stepper.order.shape
    order = torch.randint(0, len(stepper.data.train), shape, generator=generator)
    stepper.order.copy_(order)
    for _ in range(min(n, stepper.n_batches)):
        step()
    return stepper.flat.detach().clone()


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("n_pieces", [1, 2, 3])
def test_pieces_on_cores_move_members_as_one_batched_step_does(layers, n_pieces) -> None:
    network, data = make_network(layers=layers), make_data(torch.float64)
    together = make_stepper(network, data)
    in_pieces = make_stepper(network, data)
    edges = [64 * i // n_pieces for i in range(n_pieces + 1)]
    in_pieces.pieces = [slice(a, b) for a, b in pairwise(edges)]
    expected = weights_after(together, together.step_at_once)
    found = weights_after(in_pieces, in_pieces.step)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
    torch.testing.assert_close(in_pieces.loss_sum, together.loss_sum, rtol=0, atol=1e-9)
    assert int(in_pieces.step_count) == int(together.step_count) == in_pieces.n_batches


@pytest.mark.parametrize("n_pieces", [1, 3])
def test_pieces_of_a_batch_add_up_where_labels_are_unknown(n_pieces) -> None:
    network = make_network(horizon=2, loss_name="nll+mse")
    data = with_unknown(make_data(torch.float64))
    together, in_pieces = make_stepper(network, data), make_stepper(network, data)
    edges = [64 * i // n_pieces for i in range(n_pieces + 1)]
    in_pieces.pieces = [slice(a, b) for a, b in pairwise(edges)]
    expected = weights_after(together, together.step_at_once)
    found = weights_after(in_pieces, in_pieces.step)
    assert torch.isfinite(expected).all()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
    torch.testing.assert_close(in_pieces.loss_sum, together.loss_sum, rtol=0, atol=1e-9)


def test_the_loss_of_all_windows_is_the_mean_over_known_labels() -> None:
    network, data = make_network(horizon=2), with_unknown(make_data(torch.float64))
    members = [Member(seed=1), Member(seed=2)]
    state = TrainState.start(network, members, data.device, data.table.dtype)
    stepper = Stepper(network, data, TrainConfig(batch_size=300), members, state)
    stepper.order.copy_(torch.arange(300))
    loss, gradient = stepper._gradient(stepper.flat, slice(None), slice(None))
    origins = data.train.expand(2, -1)
    flat = stepper.flat.detach().requires_grad_(True)
    y = data.targets(origins, stepper.variants)
    nll = mixture_nll(network(unflatten(flat, network.shapes), data.windows(origins)), y)
    expected = torch.stack([one[~one.isnan()].mean() for one in nll])
    torch.testing.assert_close(loss, expected.detach(), rtol=0, atol=1e-12)
    filled = torch.where(y.isnan(), 0.0, y)
    nll = mixture_nll(network(unflatten(flat, network.shapes), data.windows(origins)), filled)
    mean = torch.stack([one[~gone].mean() for one, gone in zip(nll, y.isnan(), strict=True)])
    (wanted,) = torch.autograd.grad(mean.sum(), flat)
    torch.testing.assert_close(gradient, wanted, rtol=0, atol=1e-10)


def test_a_batch_without_a_known_label_of_a_step_moves_nothing_of_it() -> None:
    network, data = make_network(horizon=2), make_data(torch.float64)
    labels = data.labels.repeat(1, 2)
    labels[data.train[:64], 1] = torch.nan  # one of the few batches
    data = replace(data, labels=labels)
    stepper = make_stepper(network, data, [Member(seed=1)])
    stepper.order.copy_(torch.arange(64).expand(stepper.order.shape))
    _, gradient = stepper._gradient(stepper.flat, slice(None), slice(None))
    p = unflatten(gradient, network.shapes)
    assert torch.isfinite(gradient).all()
    assert not p["Wo"][:, 1].any() and p["Wo"][:, 0].any()


def test_validation_errors_are_of_known_labels() -> None:
    network, data = make_network(horizon=2), with_unknown(make_data(torch.float64))
    flat = make_stepper(network, data).flat.detach()
    labels = data.labels[data.stop]
    means = network(unflatten(flat, network.shapes), data.windows(data.stop.expand(3, -1))).mean
    errors = (means - labels).square()
    expected = torch.stack([one[~labels.isnan()].mean() for one in errors]).sqrt()
    found = validation_errors(network, flat, data, data.stop)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    each = validation_errors(network, flat, data, data.stop.expand(3, -1))
    torch.testing.assert_close(each, expected, rtol=0, atol=1e-12)


def test_data_say_whether_labels_are_unknown() -> None:
    data = make_data(torch.float64)
    assert data.whole and data.known_share == 1.0 and data.known(data.labels) is None
    assert data.labels.shape == (400, 1)
    beyond = data.labels.clone()
    beyond[399] = torch.nan  # a row that is no window's end
    assert replace(data, labels=beyond).whole
    some = with_unknown(data)
    assert not some.whole and 0.5 < some.known_share < 0.9
    both = replace(some, labels=torch.stack([some.labels, 2 * some.labels]))
    assert both.known_share == some.known_share


@pytest.mark.parametrize("way", ["step", "step_at_once"])
def test_the_running_mean_of_the_weights_is_kept(way) -> None:
    """It is the plain mean of all steps at first, then forgets all but ten or so."""
    network, data = make_network(), make_data(torch.float64)
    state = TrainState.start(network, MEMBERS, data.device, data.table.dtype)
    config = TrainConfig(batch_size=16, averaging=0.9)
    stepper = Stepper(network, data, config, MEMBERS, state)
    expected = torch.zeros_like(stepper.mean)
    for count in range(1, 16):
        getattr(stepper, way)()
        expected += (stepper.flat.detach() - expected) * max(1 / count, 0.1)
    torch.testing.assert_close(stepper.weights, expected, rtol=0, atol=1e-12)
    assert not torch.equal(stepper.weights, stepper.flat)


def test_fused_adam_equals_the_formula() -> None:
    torch.manual_seed(0)
    one = [torch.randn(1, 50, dtype=torch.float64) for _ in range(3)]
    one.append(torch.rand(1, 50, dtype=torch.float64))
    other = [tensor.clone() for tensor in one]
    rate = torch.full((1, 1), 1e-2, dtype=torch.float64)
    adam(*one, learning_rate=rate, count=torch.tensor(3.0, dtype=torch.float64))
    fused_adam(*other, rate=1e-2, count=torch.tensor(3.0))
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_clipping_acts_on_each_member_alone() -> None:
    gradient = torch.tensor([[3.0, 4.0], [30.0, 40.0]])
    clip(gradient, 5.0)
    torch.testing.assert_close(gradient, torch.tensor([[3.0, 4.0], [3.0, 4.0]]))
    short = torch.tensor([[0.3, 0.4]])
    clip(short, 5.0)
    assert torch.equal(short, torch.tensor([[0.3, 0.4]]))


@pytest.mark.parametrize(("shape", "axis"), [((3, 8, 5), 1), ((3, 4, 8, 5), 2)])
def test_dropout_of_a_piece_is_that_of_the_whole(shape, axis) -> None:
    keys = torch.tensor([11, 12, 13], dtype=torch.int32)
    whole = KeyedDropout(keys, torch.tensor(5, dtype=torch.int32), torch.tensor([0.2, 0.5, 0.7]))
    ones = torch.ones(shape)
    expected = whole(ones, 1, axis)
    piece = whole.part(slice(1, 3), slice(3, 8))
    found = piece(ones[1:].narrow(axis, 3, 5), 1, axis)
    assert torch.equal(found, expected[1:].narrow(axis, 3, 5))
    assert 0 < int((found == 0).sum()) < found.numel()


def test_random_bits_can_start_anywhere_in_the_stream() -> None:
    keys, step = torch.tensor([3], dtype=torch.int32), torch.tensor(1, dtype=torch.int32)
    assert torch.equal(random_bits(keys, step, 0, 4, 6), random_bits(keys, step, 0, 10)[:, 6:])


def test_a_batch_is_cut_only_when_it_is_worth_it() -> None:
    assert cut_batch(64, 1000, 10) == [slice(0, 64)]
    assert cut_batch(128, 150_000, 10) == [slice(0, 128)]
    assert cut_batch(128, 150_000, 30) == [slice(0, 64), slice(64, 128)]
    assert cut_batch(20, 10**7, 100) == [slice(0, 20)]
    pieces = cut_batch(333, 10**6, 100)
    assert [p.start for p in pieces[1:]] == [p.stop for p in pieces[:-1]]
    assert (pieces[0].start, pieces[-1].stop) == (0, 333)


def test_a_member_has_the_same_bits_alone_and_among_others(monkeypatch) -> None:
    monkeypatch.setattr(stepper_module, "PIECE_WORK", 1.0)
    network, data = make_network(), make_data(torch.float32)
    chosen = [Member(seed, dropout=0.2) for seed in range(3)]
    config = TrainConfig(batch_size=128, max_epochs=2)
    assert len(cut_batch(128, 1000, data.window)) > 1
    together = train(network, data, chosen, config)
    for k, one in enumerate(chosen):
        alone = train(network, data, [one], config)
        assert torch.equal(alone.best[0], together.best[k])
        assert torch.equal(alone.errors[:, 0], together.errors[:, k])


def test_tasks_run_on_one_thread_each_and_leave_the_callers_setting_alone() -> None:
    before = torch.get_num_threads()
    found = run_all([lambda: (threading.get_ident(), torch.get_num_threads()) for _ in range(8)])
    assert torch.get_num_threads() == before
    if before > 1:
        assert {threads for _, threads in found} == {1}
        assert threading.get_ident() not in {thread for thread, _ in found}


def test_a_task_that_fails_says_so() -> None:
    with pytest.raises(ZeroDivisionError):
        run_all([lambda: 1 / 0, lambda: 1.0])


def test_predictions_in_pieces_equal_one_call(monkeypatch) -> None:
    network, data = make_network(head="mixture"), make_data(torch.float64)
    stepper = make_stepper(network, data)
    p = unflatten(stepper.flat.detach(), network.shapes)
    monkeypatch.setattr("mvlstm.train.predict.CHUNK", 50)
    monkeypatch.setattr("mvlstm.train.predict.TASK", 16)
    expected = network(p, data.windows(data.stop.expand(3, -1)))
    pieces = list(predict_rows(network, p, data.table, data.stop, T))
    for name in ("mean", "mu", "log_prior", "temporal"):
        joined = torch.cat([getattr(q, name) for q in pieces], dim=1)
        torch.testing.assert_close(joined, getattr(expected, name), rtol=0, atol=1e-12)
    assert all(torch.equal(q.log_sigma2, expected.log_sigma2) for q in pieces)


def test_trial_runs_do_not_step_past_the_only_batch() -> None:
    network, data = make_network(), make_data(torch.float64)
    members = MEMBERS[:2]
    state = TrainState.start(network, members, data.device, data.table.dtype)
    stepper = Stepper(network, data, TrainConfig(batch_size=300), members, state)
    assert stepper.n_batches == 1
    changed = [stepper.flat, stepper.step_count, stepper.cursor, stepper.loss_sum]
    kept = [tensor.detach().clone() for tensor in changed]

    def put_back() -> None:
        for tensor, before in zip(changed, kept, strict=True):
            tensor.detach().copy_(before)

    warm_up(stepper.step_at_once, put_back)
    assert int(stepper.cursor) == 0
    torch.testing.assert_close(stepper.flat.detach(), kept[0])


class TestOnAGPU:
    pytestmark = gpu

    @pytest.mark.parametrize("options", [{}, {"gates": "variable"}, {"cell": "gru"}, {"layers": 2}])
    def test_replaying_the_recorded_step_equals_taking_it(self, options) -> None:
        network, data = make_network(**options), make_data(torch.float32, "cuda")
        plain, replayed = make_stepper(network, data), make_stepper(network, data)
        expected = weights_after(plain, plain.step_at_once)
        found = weights_after(replayed, replayed.step)
        assert replayed._replay != replayed.step_at_once
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
        torch.testing.assert_close(replayed.loss_sum, plain.loss_sum, rtol=1e-5, atol=0)

    def test_replaying_a_step_with_unknown_labels_equals_taking_it(self) -> None:
        network = make_network(horizon=2)
        data = with_unknown(make_data(torch.float32, "cuda"))
        plain, replayed = make_stepper(network, data), make_stepper(network, data)
        expected = weights_after(plain, plain.step_at_once)
        found = weights_after(replayed, replayed.step)
        assert replayed._replay != replayed.step_at_once
        assert torch.isfinite(found).all()
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)

    def test_training_with_unknown_labels_follows_training_on_the_cpu(self) -> None:
        network, config = make_network(horizon=2), TrainConfig(batch_size=64, max_epochs=3)
        there = train(network, with_unknown(make_data(torch.float32, "cuda")), MEMBERS, config)
        data = with_unknown(make_data(torch.float64))
        here = train(network, data, MEMBERS, config, dtype=torch.float64)
        torch.testing.assert_close(there.errors, here.errors, rtol=0, atol=5e-3)

    def test_training_on_a_gpu_follows_training_on_the_cpu(self) -> None:
        network, config = make_network(), TrainConfig(batch_size=64, max_epochs=3)
        there = train(network, make_data(torch.float32, "cuda"), MEMBERS, config)
        here = train(network, make_data(torch.float64), MEMBERS, config, dtype=torch.float64)
        torch.testing.assert_close(there.errors, here.errors, rtol=0, atol=5e-3)

    def test_an_epoch_of_one_batch(self) -> None:
        network, config = make_network(), TrainConfig(batch_size=300, max_epochs=3)
        there = train(network, make_data(torch.float32, "cuda"), MEMBERS, config)
        here = train(network, make_data(torch.float64), MEMBERS, config, dtype=torch.float64)
        torch.testing.assert_close(there.errors, here.errors, rtol=0, atol=5e-3)

    def test_a_step_that_cannot_be_recorded_is_taken_as_it_is(self) -> None:
        count = torch.zeros((), device="cuda")

        def step() -> None:
            count.add_(float(count.cpu()) + 1.0)

        replay = stepper_module.recorded(step, [count])
        assert float(count) == 0.0
        replay()
        assert float(count) == 1.0


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_isolation_acts_on_what_other_variables_tell_the_gates_alone(layers, cell) -> None:
    assert make_network(layers=layers, cell=cell).own_penalty is None
    network = make_network(layers=layers, cell=cell, isolation=0.5)
    p = unflatten(network.own_penalty[None], network.shapes)
    assert {n for n, values in p.items() if values.any()} == {f"W_{k}" for k in range(layers)}
    row = torch.arange(3).repeat_interleave(4).repeat(network.stack[0].n_gates)
    column = torch.cat([torch.arange(3), torch.arange(3).repeat_interleave(4)])
    torch.testing.assert_close(p["W_0"][0], 0.5 * (row[:, None] != column).float())


def test_kinds_of_members_have_penalties_of_their_own() -> None:
    both = make_network(isolation=(0.5, 5.0), clocks=(1,), clock_penalty=0.25).own_penalty
    each = [
        make_network(isolation=one, clocks=(1,), clock_penalty=0.25).own_penalty
        for one in (0.5, 5.0)
    ]
    torch.testing.assert_close(both, torch.stack(each))
    assert make_network(isolation=(0.0, 0.0)).own_penalty is None


@pytest.mark.parametrize("isolation", [0.0, 0.5])
@pytest.mark.parametrize("gates", ["full", "variable"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_weights_on_clocks_have_a_penalty_of_their_own(cell, gates, isolation) -> None:
    options = {"layers": 2, "cell": cell, "gates": gates, "isolation": isolation}
    network = make_network(**options, clocks=(1,), clock_penalty=0.25)
    without = make_network(**options, clocks=(1,)).own_penalty
    added = network.own_penalty - (0 if without is None else without)
    p = unflatten(added[None], network.shapes)
    reading = {"Wx_0": (0, 1), "W_0": (0, ..., 1), "Gx_0": (0, 1)}
    for name, values in p.items():
        expected = torch.zeros_like(values)
        if name in reading:
            expected[reading[name]] = 0.25
        torch.testing.assert_close(values, expected)


@pytest.mark.parametrize("way", ["step", "step_at_once"])
def test_isolation_adds_the_gradient_of_its_penalty(way) -> None:
    """A first step from weights it alone pulls at is the one of the penalty's sign."""
    network, data = make_network(isolation=1e6), make_data(torch.float64)
    stepper = make_stepper(network, data)
    before = stepper.flat.detach().clone()
    getattr(stepper, way)()
    moved = stepper.flat.detach() - before
    pulled = (network.own_penalty > 0) & (before.abs() > 1e-3)
    assert (torch.sign(moved[pulled]) == -torch.sign(before[pulled])).all()
