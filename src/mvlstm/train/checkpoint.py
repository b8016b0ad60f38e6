"""The state of an unfinished fit in a folder, and whose fit it is.

The file holds every tensor of `mvlstm.train.state.TrainState` and, as JSON, a checksum of the data
and the settings of the fit. A fit goes on from it only if both are its own.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mvlstm.errors import DataError, ModelFileError, ParameterError, reachable
from mvlstm.storage import Packed, hold_lock, pack, sweep, write_atomic

if TYPE_CHECKING:
    import torch

    from mvlstm.train.state import TrainState

NAME = "fit.checkpoint.safetensors"
AGAIN = "fit-again.checkpoint.safetensors"  # of members that are trained a second time
ALL = "fit*.checkpoint.safetensors"
LOCK = ".lock"
SCHEMA = 3  # 1: before members had kinds that are shrunk; 2: before they finished at a lower rate
EVERY = 20.0  # seconds between two checkpoints, unless the environment says otherwise


@dataclass(frozen=True)
class Identity:
    """What makes a fit this fit and no other."""

    forecaster: str
    settings: Mapping[str, Any]  # constructor arguments that influence the result
    data: str  # checksum of the prepared table, its columns and its windows

    @classmethod
    def of(
        cls,
        forecaster: str,
        settings: Mapping[str, Any],
        data: str,
        columns: Sequence[int] | None = None,
    ) -> Identity:
        """Describe a fit to data of a given checksum, or to some columns of it alone."""
        own = dict(settings) | ({} if columns is None else {"columns": list(columns)})
        plain = json.loads(json.dumps(own, default=lambda x: np.asarray(x).tolist()))
        return cls(forecaster, plain, data)

    def difference(self, other: Mapping[str, Any]) -> str | None:
        """Say in words how the fit described by ``other`` differs; None if it does not."""
        if other.get("forecaster") != self.forecaster:
            return f"it is of {other.get('forecaster')}, not of {self.forecaster}"
        theirs = other.get("settings")
        if not isinstance(theirs, dict):
            return "it does not say with which settings it was made"
        changed = [
            f"{name}={theirs.get(name)!r}, not {self.settings.get(name)!r}"
            for name in sorted({*theirs, *self.settings})
            if theirs.get(name) != self.settings.get(name)
        ]
        if changed:
            return f"it was made with {'; '.join(changed)}"
        if other.get("data") != self.data:
            return "it was made from other data, or the rows were split in another way"
        return None


@dataclass(frozen=True)
class Checkpoint:
    """A folder's checkpoint."""

    folder: Path  # made when the first checkpoint is written
    identity: Identity  # of the fit at hand
    again: bool = False  # whether it is that of members trained a second time
    member: int | None = None  # of one member trained apart

    @property
    def path(self) -> Path:
        """The file."""
        stem, _, rest = (AGAIN if self.again else NAME).partition(".")
        return self.folder / f"{stem}{'' if self.member is None else f'-{self.member}'}.{rest}"

    def of_member(self, member: int) -> Checkpoint:
        """Return the checkpoint of a member that is trained apart."""
        return replace(self, member=member)

    @property
    def apart(self) -> bool:
        """Whether members were trained apart, and an unfinished one is this fit's."""
        found = [self.of_member(int(p.name.split(".")[0].split("-")[-1])) for p in self._members()]
        return any(one._open() is not None for one in found)

    def _members(self) -> Iterator[Path]:
        stem, _, rest = self.path.name.partition(".")
        return self.folder.glob(f"{stem}-[0-9]*.{rest}")

    def save(self, state: TrainState, finished: bool) -> None:
        """Write the state; the last checkpoint stands until this one is complete."""
        make_folder(self.folder)
        header = {
            "schema": SCHEMA,
            "forecaster": self.identity.forecaster,
            "settings": dict(self.identity.settings),
            "data": self.identity.data,
            "finished": finished,
            "epoch": int(state.epoch),
        }
        arrays = {name: tensor.numpy() for name, tensor in state.tensors().items()}
        write_atomic(self.path, pack("mvlstm-checkpoint", header, arrays))

    def load(self, fresh: TrainState, device: torch.device) -> TrainState | None:
        """Return the stored state, or None if there is none to go on from.

        It must have the shapes of the state before the first step, ``fresh``. An unfinished fit of
        other data or settings is a `ParameterError`, a damaged file a `ModelFileError`.
        """
        if not self.again:  # the second part of another fit must not lose its first
            replace(self, again=True)._open()
        packed = self._open()
        return None if packed is None else self._state(packed, fresh, device)

    @property
    def _remedy(self) -> str:
        return f"Delete '{self.path}' to start anew, or name another folder with checkpoint=...."

    def _open(self) -> Packed | None:
        """Open what is stored; None if there is nothing, or another fit, which is finished."""
        if not reachable(self.path).is_file():
            return None
        packed = Packed.open(self.path, "mvlstm-checkpoint", "checkpoint of a fit")
        header = packed.header
        known = header.get("schema") == SCHEMA
        difference = self.identity.difference(header) if known else None
        if known and difference is None:
            return packed
        if header.get("finished") is True:
            return None  # nothing would be lost
        if not known:
            raise ModelFileError(
                f"The checkpoint '{self.path}' has schema {header.get('schema')!r}; this version "
                f"of mvlstm reads {SCHEMA}. {self._remedy}"
            )
        raise ParameterError(
            f"The checkpoint '{self.path}' belongs to another fit: {difference}. Go on with "
            f"that data and those settings. {self._remedy}"
        )

    def _state(self, packed: Packed, fresh: TrainState, device: torch.device) -> TrainState:
        """Build a state from arrays, if they are just those that this fit would have."""
        import torch

        from mvlstm.train.state import TrainState

        wanted = fresh.tensors()
        if set(packed.shapes) != set(wanted):
            raise self._damaged("it does not hold the parts of a training state")
        epochs, most = (*packed.shapes["losses"], -1)[0], self.identity.settings.get("max_epochs")
        if most is not None and epochs > most:
            raise self._damaged(f"it has {epochs:,} epochs of at most {most:,}")
        for name, found in packed.shapes.items():
            shape = tuple(wanted[name].shape)
            if name in ("losses", "errors"):
                shape = (epochs, *shape[1:])
            if found != shape:
                raise self._damaged(f"'{name}' has shape {found}")
        tensors = {name: torch.from_numpy(array) for name, array in packed.arrays().items()}
        wrong = [name for name, tensor in tensors.items() if tensor.dtype != wanted[name].dtype]
        if wrong:
            raise self._damaged(f"'{wrong[0]}' is of another type")
        ends = {"epoch": epochs, "best_epoch": epochs, "lowered": epochs, "batch": 2**31}
        counts = [(tensors[name], ends.get(name, 2**62)) for name in (*ends, "step")]
        sound = all(bool(((count >= 0) & (count <= end)).all()) for count, end in counts)
        if not sound or int(tensors["epoch"]) != epochs:
            raise self._damaged("its counters do not agree")
        return TrainState.from_tensors(tensors, device)

    def _damaged(self, why: str) -> ModelFileError:
        return ModelFileError(f"The checkpoint '{self.path}' is damaged: {why}. {self._remedy}")


@contextmanager
def held(folder: Path | None) -> Iterator[None]:
    """Keep every other process from the checkpoints of a folder for the while."""
    if folder is None:
        yield
        return
    make_folder(folder)
    sweep(folder)
    try:
        with hold_lock(folder / LOCK, f"The checkpoint folder '{folder}'"):
            yield
    finally:
        with suppress(OSError):
            folder.rmdir()  # if nothing was written


def make_folder(folder: Path) -> None:
    """Make the folder of a checkpoint, or say why it cannot be made."""
    try:
        reachable(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"The checkpoint folder '{folder}' cannot be made: {error.strerror or error}. "
            "Name another: checkpoint=...."
        ) from error


def seconds_between() -> float:
    """Return the seconds between checkpoints: 20, or what MVLSTM_CHECKPOINT_SECONDS says."""
    text = os.environ.get("MVLSTM_CHECKPOINT_SECONDS", "")
    try:
        seconds = float(text or EVERY)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise ParameterError(
            f"MVLSTM_CHECKPOINT_SECONDS is {text!r}; it must be a number of seconds, such as 20."
        )
    return seconds
