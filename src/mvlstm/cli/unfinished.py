"""What `mvlstm fit` does with the state of an unfinished fit: continue it, or start anew."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from mvlstm.errors import ParameterError, reachable
from mvlstm.train.checkpoint import ALL, LOCK, held

ENDED = "ended"  # marks a state as that of a fit which its time limit ended, with a model written
ASIDE = ".aside"  # ends the names of what is deleted once a new fit has begun


def remove_checkpoint(folder: Path) -> None:
    """Delete a folder's checkpoint, and the folder if nothing else is in it."""
    with contextlib.suppress(OSError):
        for pattern in (ALL, ENDED):
            for path in (*folder.glob(pattern), *folder.glob(f"{pattern}{ASIDE}")):
                path.unlink(missing_ok=True)
        (folder / LOCK).unlink(missing_ok=True)  # of a fit that was killed
        folder.rmdir()


def is_unfinished(folder: Path) -> bool:
    """Say whether the state of a fit lies in a folder; it is removed when a model is written."""
    return any(reachable(folder).glob(ALL))


@contextlib.contextmanager
def prepared_checkpoint(folder: Path, *, resume: bool | None) -> Iterator[None]:
    """Make a folder ready for a fit that should or should not go on from it.

    With ``resume`` an unfinished fit that lies there is continued; without, it is deleted once the
    new one has ended or has a checkpoint of its own. None: it is an error, so that none is lost by
    mistake, unless the fit ended as it was meant to, at a time limit.
    """
    if reachable(folder).exists() and not folder.is_dir():
        raise ParameterError(
            f"'{folder}' is a file; a checkpoint needs a folder. Name another: checkpoint=...."
        )
    if resume is None and (folder / ENDED).is_file():
        resume = False
    if resume is None and is_unfinished(folder):
        raise ParameterError(
            f"An unfinished fit lies in '{folder}'. Add --resume to continue it, or --no-resume "
            "to delete it and start anew."
        )
    if resume is not False:
        (folder / ENDED).unlink(missing_ok=True)
        yield
        return
    with held(folder):  # or the state of a fit that runs would be lost
        for path in folder.glob(f"*{ASIDE}"):
            path.unlink(missing_ok=True)  # of a fit that was killed
        state = [path for pattern in (ALL, ENDED) for path in folder.glob(pattern)]
        aside = {path: path.with_name(f"{path.name}{ASIDE}") for path in state}
        for path, other in aside.items():
            path.replace(other)
    try:
        yield
    except BaseException:
        if not is_unfinished(folder):  # this fit did not come so far
            for path, other in aside.items():
                with contextlib.suppress(OSError):
                    other.replace(path)
        raise
    finally:
        with contextlib.suppress(OSError):
            for other in aside.values():
                other.unlink(missing_ok=True)
            folder.rmdir()  # if nothing is left in it
