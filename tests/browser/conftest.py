"""A real headless Chromium that can reach nothing, and pages written to disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from made_results import make_report
from mvlstm.report import render_report

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
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        message = "no Chromium here; `make test-browser` installs it"
        assert not os.environ.get("MVLSTM_NEEDS_BROWSER"), message
        pytest.skip(message)
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_report(make_report()), encoding="utf-8")
    return path


@dataclass
class Seen:
    """What a page did besides showing itself."""

    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any, report: Path) -> Iterator[Open]:
    """Open a page from disk with the network blocked; ``page.seen`` tells what it did."""
    contexts = []

    def open_one(path: Path = report, *, width: int = 1280, **options: Any) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 844}, offline=True, **options
        )
        context.set_default_timeout(120_000)
        contexts.append(context)
        page = context.new_page()
        seen = page.seen = Seen()
        page.on("request", lambda r: seen.requests.append(r.url))
        page.on("pageerror", lambda e: seen.complaints.append(str(e)))
        page.on("console", lambda m: seen.complaints.append(f"{m.type}: {m.text}"))
        page.on("dialog", lambda d: (seen.dialogs.append(d.message), d.dismiss()))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=true]")
        return page

    yield open_one
    for context in contexts:
        context.close()
