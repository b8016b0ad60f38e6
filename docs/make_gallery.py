"""Make the pictures of docs/gallery.md from a real fit to Beijing's air, and its report.

Needs the data set pm25 (``MVLSTM_DATA`` names the folder), the extras ``report`` and ``dev``,
Pillow, and a Chromium. The model is fitted once and kept in the file given::

    python docs/make_gallery.py [MODEL.safetensors]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

import mvlstm as mv
from mvlstm import plot
from mvlstm.report import ReportData, render_report
from mvlstm.storage import write_atomic

FOLDER = Path(__file__).parent / "gallery"
SETTINGS: dict[str, Any] = {"window": 24, "members": 3, "max_epochs": 12, "seed": 0}
WIDTH = 860
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def main(model_file: Path | None) -> None:
    data = mv.datasets.load("pm25")
    model = _model(data, model_file)
    found = model.report(data.frame)
    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        for name, draw in _figures(found).items():
            _save_figure(browser, draw(), FOLDER / f"{name}.png")
        _save_page(browser, found)
        browser.close()
    for path in FOLDER.glob("*.png"):
        _reduce(path)
    sizes = {p.name: p.stat().st_size for p in sorted(FOLDER.glob("*.png"))}
    for name, size in sizes.items():
        print(f"{size / 1e3:7.0f} kB  {name}")
    assert max(sizes.values()) < 50e3 and sum(sizes.values()) < 3e5, "pictures are to stay small"


def _model(data: Any, model_file: Path | None) -> Any:
    if model_file is not None and model_file.exists():
        return mv.load(model_file)
    model = mv.MVLSTM(**SETTINGS, **data.model_options)
    model.fit(data.frame, data.target, test=0.2)
    if model_file is not None:
        model.save(model_file)
    return model


def _figures(data: ReportData) -> dict[str, Callable[[], Any]]:
    forecast, explanation = data.forecast, data.explanation
    latest = forecast.take(slice(len(forecast) - 200, None))
    return {
        "forecast": lambda: plot.forecast(latest, future=data.future),
        "parts": lambda: plot.forecast(forecast, limit=1_500, recent=0),
        "contributions": lambda: plot.contributions(explanation),
        "contributions-by-lag": lambda: plot.contribution_lags(explanation, mean=True),
        "importance": lambda: plot.variable_importance(explanation),
        "error-increase": lambda: plot.error_increase(explanation),
        "attention": lambda: plot.attention_histograms(explanation, columns=4),
        "attention-over-time": lambda: plot.attention_over_time(explanation),
        "temporal": lambda: plot.temporal_importance(explanation),
        "calibration": lambda: plot.calibration(forecast),
        "pit": lambda: plot.pit_histogram(forecast),
        "residuals": lambda: plot.residuals(forecast),
        "autocorrelation": lambda: plot.residual_autocorrelation(forecast),
        "members": lambda: plot.members(latest),
        "stability": lambda: plot.stability(explanation),
        "leakage": lambda: plot.leakage(explanation),
        "training": lambda: plot.training_curves(data.history),
        "comparison": lambda: plot.comparison(
            data.evaluation.scores.rename_axis("method").reset_index()
        ),
    }


def _save_figure(browser: Any, figure: Any, path: Path) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": figure.layout.height + 20})
    page.set_content(figure.to_html(include_plotlyjs=True, config={"displayModeBar": False}))
    page.wait_for_selector("svg.main-svg")
    page.wait_for_timeout(300)
    page.locator(".plotly-graph-div").screenshot(path=path)
    page.close()


def _reduce(path: Path) -> None:
    """Keep the 64 most frequent colours of a picture, which is then a third as large."""
    picture = Image.open(path).convert("RGB")
    colours = sorted(picture.getcolors(2**24), reverse=True)[:64]
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in colours for part in colour])
    picture.quantize(palette=palette, dither=Image.Dither.NONE).save(path, optimize=True)


def _save_page(browser: Any, data: ReportData) -> None:
    """Take pictures of the report's first screen, light, dark and on a telephone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        write_atomic(path, render_report(data))
        screens: dict[str, dict[str, Any]] = {
            "report": {"color_scheme": "light", "viewport": {"width": 1180, "height": 780}},
            "report-dark": {"color_scheme": "dark", "viewport": {"width": 1180, "height": 620}},
            "report-narrow": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
        }
        for name, options in screens.items():
            context = browser.new_context(**options)
            page = context.new_page()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready=true]")
            page.wait_for_timeout(500)
            page.screenshot(path=FOLDER / f"{name}.png")
            context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
