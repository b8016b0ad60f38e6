"""Mutated files through every entry; `make fuzz` tries many more of each kind."""

from __future__ import annotations

import os
import sys

import pytest

from reliability.fuzz import KINDS, fuzz

SEED = int(os.environ.get("MVLSTM_TEST_SEED", "0"))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited in the way of Linux")
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_are_read_or_refused(kind: str) -> None:
    files = KINDS[kind][2]
    found = fuzz(kind, files, seed=SEED)
    assert not found["wrong"], "\n\n".join(dict.fromkeys(found["wrong"]))
    assert found["files"] == files == found["fine"] + found["refused"]
    assert found["fine"] > files // 50, "mutations should leave some files usable"
    spoiled = kind == "records" or found["refused"] > files // 5  # a damaged record is left out
    assert spoiled, "mutations should spoil many files"
    assert found["grown_mb"] < 1024
