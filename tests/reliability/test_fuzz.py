"""2,000 mutated model files and 2,000 mutated tables; `make fuzz` tries 50,000 of each."""

from __future__ import annotations

import os
import sys

import pytest

from reliability.fuzz import KINDS, fuzz

FILES = 2_000
SEED = int(os.environ.get("MVLSTM_TEST_SEED", "0"))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited in the way of Linux")
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_are_read_or_refused(kind: str) -> None:
    found = fuzz(kind, FILES, seed=SEED)
    assert not found["wrong"], "\n\n".join(found["wrong"])
    assert found["files"] == FILES == found["fine"] + found["refused"]
    assert found["fine"] > FILES // 50, "mutations should leave some files usable"
    assert found["refused"] > FILES // 4, "mutations should spoil many files"
    assert found["grown_mb"] < 1024
