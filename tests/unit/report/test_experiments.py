"""A page of experiments shows every table of every section, and draws the histograms."""

from __future__ import annotations

import pandas as pd
import pytest

from mvlstm.bench.document import Section, Table
from mvlstm.report import experiments_page

pytest.importorskip("plotly")


def test_sections_keep_tables_of_the_same_name() -> None:
    frames = [pd.DataFrame({"method": [f"**{name}**"], "RMSE": ["1.0"]}) for name in ("one", "two")]
    tables = [Table("RMSE", frame, frame, ("a `note`",)) for frame in frames]
    counts = pd.DataFrame(
        {"variable": ["x", "x"], "attention": "prior", "low": [0, 0.5], "high": [0.5, 1.0]}
    ).assign(count=[3, 1])
    drawn = Table("attention of x", counts, counts, figure={"kind": "attention"})
    page = experiments_page(
        "Results",
        [
            Section("Suite mine", ("3 of 3 jobs finished.",), level=1),
            Section("first", ("how to read it: the best are bold",), (tables[0],)),
            Section("second", (), (tables[1], drawn)),
        ],
    )
    for text in (
        ">one (best)<",
        ">two (best)<",
        "3 of 3 jobs finished.",
        "how to read it: the best are marked as best",
        "attention of x",
    ):
        assert text in page
    assert ">Suite mine. first</h2>" in page and "Part-1" not in page
    assert '<span class="short">mine, first</span>' in page
    assert "**" not in page.partition("<main")[2].partition("<script")[0] and "a note" in page
