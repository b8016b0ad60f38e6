"""docs/api.md is what its script makes of the docstrings."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_public_names_is_what_the_script_makes() -> None:
    made = runpy.run_path(str(DOCS / "make_api.py"))["page"]()
    assert (DOCS / "api.md").read_text(encoding="utf-8") == made, "run: python docs/make_api.py"
