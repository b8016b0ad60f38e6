"""Members of several kinds: plain, sparse, and without a link.

A link carries a level that training never showed. Where the series keeps to the levels it had, a
network that learns the labels themselves errs in other ways than one that learns what the link
leaves of them; and one whose weights on variables are shrunk finds fewer spurious patterns than one
that reads them freely. The mean of such networks is often better than that of more of the same.

So in ensembles of five and more, of every five members one is plain, two are sparse, and two are
sparse and do without the link. These four stay if the ensemble is better with them on the stopping
rows than its plain members alone; otherwise they are trained again as plain ones, and the ensemble
is what it would have been without the attempt. Where there is no time for that, the sparse ones
stay, and copies of members with a link take the place of those without.
"""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mvlstm._words import counted
from mvlstm.methods.network.trained import TrainedNetwork
from mvlstm.methods.network.training import Outcome, Training, fit_network, patience_notes
from mvlstm.problem.problem import Problem, known_places, of_known
from mvlstm.problem.stationarity import UNIT_ROOT_T, unit_root_t
from mvlstm.problem.target_scale import LabelScale
from mvlstm.problem.windows import gather_windows
from mvlstm.results import History
from mvlstm.train.config import Kind, Member
from mvlstm.train.protocol import Network
from mvlstm.types import BoolArray, FloatArray, IntArray

LEAST_LEFT = 0.1  # standard deviation that a link must leave of the labels'
MOST_WINDOWS = 20_000  # that a unit root is looked for in
FEWEST_MEMBERS = 5  # of an ensemble of several kinds: a quick fit stays quick
FEWEST_WINDOWS = 20  # for stopping, by which members are judged


def fit_mixed(
    network: Network, problem: Problem, labels: LabelScale, training: Training
) -> Outcome:
    """Train members of all kinds, then those that did harm again, as plain ones.

    All are plain where the series does not keep to its levels, and in a small ensemble. ``labels``
    are those of ``link="auto"``. Members of several ensembles (a bench's repeats, a search's
    settings) are told apart, and each ensemble decides for itself.
    """
    started = clock.monotonic()
    small = (problem.ensemble or training.members) < FEWEST_MEMBERS
    if small or not keeps_its_levels(problem, labels):
        labels = replace(labels, bare=None)
    outcome = fit_network(network, problem, labels, training)
    trained, history, stopped = outcome
    if trained.kinds is None:
        return outcome
    kinds = trained.kinds
    members = training.members_of(problem)
    ensembles = ensembles_of(members)
    errors = _stop_errors(replace(trained, labels=labels), problem)
    if history.valid_rmse.shape[1]:  # else all were stopped before they could be judged
        errors[history.best_epoch == 0] = np.nan  # members that failed
    harmful = np.flatnonzero(find_harmful(errors, kinds == Kind.PLAIN, ensembles))
    if not len(harmful):
        return outcome
    rows = harmful[kinds[harmful] == Kind.BARE]
    others = _stand_ins(rows, kinds, ensembles)
    mended, untrained = trained, harmful
    if stopped is None:
        few = replace(
            problem,
            run=replace(problem.run.after(clock.monotonic() - started), again=True),
            members=tuple(members[k] for k in harmful),
        )
        again, later, stopped = fit_network(network, few, replace(labels, bare=None), training)
        instead = history.best_rmse.copy()
        instead[rows] = instead[others]
        done = later.best_epoch > 0
        if stopped is not None:  # then only those that beat the member they would stand instead of
            done &= later.best_rmse < instead[harmful]
        mended = _with_rows(trained, harmful[done], again.flat[done])
        history = history.with_rows(harmful[done], later.take(np.flatnonzero(done)))
        config = training.config(problem)
        notes = patience_notes(history, config) if stopped is None else later.notes
        history = replace(history, notes=notes)
        untrained = harmful[~done]
    left = np.isin(rows, untrained)
    if left.any():
        mended, history = _with_copies(mended, history, rows[left], others[left])
    if not np.any(mended.kinds):
        mended = replace(mended, kinds=None, labels=replace(mended.labels, bare=None))
    return Outcome(mended, history, stopped)


def _with_rows(
    trained: TrainedNetwork[Any],
    rows: IntArray,
    flat: NDArray[np.float32],
    kinds: NDArray[np.uint8] | Kind = Kind.PLAIN,
) -> TrainedNetwork[Any]:
    """Return a network with some members replaced by others of given kinds."""
    assert trained.kinds is not None
    weights, every = trained.flat.copy(), trained.kinds.copy()
    weights[rows], every[rows] = flat, kinds
    return replace(trained, flat=weights, kinds=every)


def _with_copies(
    trained: TrainedNetwork[Any], history: History, rows: IntArray, others: IntArray
) -> tuple[TrainedNetwork[Any], History]:
    """Return a network in which some members are copies of others, and a note that says so."""
    assert trained.kinds is not None
    copied = _with_rows(trained, rows, trained.flat[others], trained.kinds[others])
    note = (
        f"{counted(len(rows), 'member')} without a link did harm and could not be trained again: "
        "copies of members with one take the place."
    )
    found = history.with_rows(rows, replace(history.take(others), seconds=0.0))
    return copied, replace(found, notes=(*found.notes, note))


def keeps_its_levels(problem: Problem, labels: LabelScale) -> bool:
    """Say whether a series returns to its mean, as far as its windows can tell.

    A unit root must be rejected on the training windows. The link must leave a tenth of the labels'
    standard deviation: where it leaves less, the level is all that counts. And there must be enough
    stopping windows to judge by.
    """
    assert labels.bare is not None
    few = len(problem.origins["stop"]) < FEWEST_WINDOWS
    if few or labels.scale < LEAST_LEFT * labels.bare.scale:
        return False
    rows = problem.origins["train"]
    rows = rows[known_places(problem.prepared.known_labels(rows, 1)[:, 0])]
    rows = rows[:: max(1, len(rows) // MOST_WINDOWS)]
    lags = int(12 * (len(rows) / 100) ** 0.25)  # Schwert's rule
    columns = problem.prepared.table[:, -1:]
    past = gather_windows(columns, rows, min(problem.window, lags + 2))[:, :, 0]
    preparation, after = problem.prepared.preparation, problem.prepared.labels(rows, 1)[:, 0]
    after = (after - preparation.target_center) / preparation.target_scale
    return unit_root_t(past, after) < UNIT_ROOT_T


def _stop_errors(trained: TrainedNetwork[Any], problem: Problem) -> FloatArray:
    """Return the errors (K, M, H) on stopping rows, or (K, n, 1) where targets were filled in."""
    labels = problem.labels("stop")
    forecasts = trained.rows(problem.prepared.table, problem.origins["stop"])
    return of_known(forecasts - labels, labels)


def ensembles_of(members: Sequence[Member]) -> IntArray:
    """Tell apart the ensembles of members (K,), which have settings of their own, or a number."""
    own = [(m.ensemble, m.learning_rate, m.l2, m.dropout) for m in members]
    number = {one: place for place, one in enumerate(dict.fromkeys(own))}
    return np.array([number[one] for one in own], dtype=np.int64)


def find_harmful(errors: FloatArray, plain: BoolArray, ensembles: IntArray) -> BoolArray:
    """Say which members that are not plain make their ensemble worse, or are all that it has.

    ``errors`` are (K, M, H); ``ensembles`` (K,) says which each member belongs to.
    """
    harmful = np.zeros(len(plain), dtype=np.bool_)
    for one in np.unique(ensembles):
        every = ensembles == one
        alone = every & plain
        if not alone.any() or not _square(errors[every]) < _square(errors[alone]):
            harmful |= every & ~plain
    return harmful


def _square(errors: FloatArray) -> float:
    """Return the mean squared error of the mean of members' errors (K, M, H)."""
    return float(np.mean(errors.mean(axis=0) ** 2))


def _stand_ins(rows: IntArray, kinds: NDArray[np.uint8], ensembles: IntArray) -> IntArray:
    """Return for each of some members another of its ensemble, in turn, that has a link."""
    found: list[int] = []
    for k in rows:
        linked = np.flatnonzero((ensembles == ensembles[k]) & (kinds != Kind.BARE))
        found.append(linked[len(found) % len(linked)])
    return np.array(found, dtype=np.int64)
