"""Run the tutorials and write what they print, and their figures, into docs/tutorials.

The blocks marked ``text`` get what the ``python`` block before them prints. The variable
``figure`` becomes the picture that the page shows next: an SVG for readers of the file, and JSON
from which the site draws it live. Needs the extras ``report`` and ``dev`` and a Chromium::

    python docs/make_tutorials.py [PAGE.md ...]
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from mvlstm.plot.theme import LIGHT
from mvlstm.report.build import plotly_library
from mvlstm.report.encode import figure_spec
from mvlstm.storage import write_atomic

FOLDER = Path(__file__).parent / "tutorials"
WIDTH, HEIGHT = 800, 420
PARTS = re.compile(
    r"^```python\n(?P<code>.*?)^```$|^```text\n(?P<text>.*?)^```$|\]\(figures/(?P<figure>[\w-]+)\.svg\)",
    re.MULTILINE | re.DOTALL,
)
DRAW = """async ([spec, template, width, height]) => {
    const size = {width, height: spec.layout.height ?? height};
    const layout = {...spec.layout, ...size, template};
    const url = await Plotly.toImage({data: spec.data, layout}, {format: "svg", ...size});
    return decodeURIComponent(url.slice(url.indexOf(",") + 1));
}"""


def main(pages: list[Path]) -> None:
    figures: dict[str, Any] = {}
    for page in pages:
        text, drawn = run(page.read_text(encoding="utf-8"), page.name)
        page.write_text(text, encoding="utf-8")
        figures |= drawn
        print(page.name)
    write_figures(figures, FOLDER / "figures")


def run(text: str, name: str) -> tuple[str, dict[str, Any]]:
    """Return the page with what its blocks print, and its figures by name."""
    names: dict[str, Any] = {"__name__": "tutorial"}
    printed = ""
    figures: dict[str, Any] = {}

    def replaced(part: re.Match[str]) -> str:
        nonlocal printed
        if part["code"] is not None:
            into = io.StringIO()
            with contextlib.redirect_stdout(into):
                exec(compile(part["code"], name, "exec", dont_inherit=True), names)
            printed = "\n".join(line.rstrip() for line in into.getvalue().splitlines())
        elif part["text"] is not None:
            return f"```text\n{printed}\n```"
        else:
            figures[part["figure"]] = figure_spec(names["figure"])
        return part[0]

    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return PARTS.sub(replaced, text), figures
        finally:
            os.chdir(here)


def write_figures(figures: dict[str, Any], folder: Path) -> None:
    from playwright.sync_api import sync_playwright

    folder.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.add_script_tag(content=plotly_library())
        for name, spec in figures.items():
            svg = page.evaluate(DRAW, [spec, LIGHT.template(), WIDTH, HEIGHT])
            write_atomic(folder / f"{name}.svg", svg)
            write_atomic(folder / f"{name}.json", json.dumps(spec, separators=(",", ":")))
        browser.close()


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]] or sorted(FOLDER.glob("*.md")))
