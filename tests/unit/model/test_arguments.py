"""Arguments in the wrong place are refused with the right one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mvlstm as mv
from mvlstm.errors import ArgumentError, DataError

TABLE = pd.DataFrame({"x": np.arange(40) % 7, "y": np.arange(40.0) % 5})


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: mv.AR().fit(TABLE, "y", missing="drop"), "AR(missing='drop').fit(...)"),
        (lambda: mv.AR(target="y"), "AR(...).fit(table, target='y')"),
        (lambda: mv.MVLSTM(na_values=[-200]), "MVLSTM(...).fit(table, na_values=[-200])"),
        (lambda: mv.MVLSTM(time_limit=3), "fit(table, time_limit=3)"),
        (lambda: mv.AR(windw=3), "Did you mean window=...?"),
        (lambda: mv.AR().fit(TABLE, "y", horizn=3), "Did you mean horizon=...?"),
        (lambda: mv.AR().fit(TABLE), "missing a required argument: 'target'"),
        (lambda: mv.AR().predict(TABLE, colour=1), "has no argument 'colour'. It takes table."),
        (lambda: mv.check(TABLE, "y", windw=3), "check() has no argument 'windw'. Did you mean wi"),
        (lambda: mv.compare(TABLE), "compare() missing a required argument: 'target'."),
        (lambda: mv.MVLSTM.paper(test=0.2), "fit(table, test=0.2)"),
    ],
)
def test_the_right_place_is_named(call, told) -> None:
    with pytest.raises(ArgumentError) as caught:
        call()
    assert told in str(caught.value)
    assert isinstance(caught.value, TypeError)


def test_a_refused_table_notes_which_arguments_are_the_constructors() -> None:
    table = TABLE.assign(y=TABLE["y"].where(TABLE.index != 5))
    with pytest.raises(DataError) as caught:
        mv.AR().fit(table, "y")
    (note,) = caught.value.__notes__
    assert note == "The constructor takes missing: AR(missing='mask').fit(...)"
    with pytest.raises(DataError) as caught:
        mv.AR().fit(table, "z")
    assert not hasattr(caught.value, "__notes__")
