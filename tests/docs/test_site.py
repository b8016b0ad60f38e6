"""The documentation site that `make docs` has built, as a reader meets it in a browser."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import Seen, browser  # noqa: F401  a fixture

pytestmark = pytest.mark.browser

SITE = Path(__file__).parents[2] / "build" / "docs" / "html"
TUTORIALS = sorted(p.stem for p in (Path(__file__).parents[2] / "docs" / "tutorials").glob("*.md"))
WIDE, NARROW = 1280, 390
WAIT = 120_000  # milliseconds
FITS = "() => document.documentElement.scrollWidth <= innerWidth"
SCHEME = "() => document.body.dataset.mdColorScheme"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if not (SITE / "index.html").is_file():
        assert not os.environ.get("MVLSTM_NEEDS_BROWSER"), "run: make docs"
        pytest.skip("the site is not built; `make docs` does it")
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def go(page: Any, url: str) -> None:
    """Open a page, and wait until all that it loads is there."""
    with page.expect_response(lambda r: r.url.endswith("/search.json")) as last:
        page.goto(url)
    last.value.finished()


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Open]:  # noqa: F811
    """Open a page of the site; in the end nothing was complained of or loaded from elsewhere."""
    contexts, seen = [], Seen()

    def told(text: str, counts: bool = True) -> None:
        seen.complaints += [text] if counts else []

    def open_one(name: str, *, width: int = WIDE, scheme: str = "light") -> Any:
        size = {"width": width, "height": 844}
        context = browser.new_context(viewport=size, color_scheme=scheme)
        contexts.append(context)
        context.set_default_timeout(WAIT)
        context.on("request", lambda r: seen.requests.append(r.url))
        page = context.new_page()
        page.on("pageerror", lambda e: told(f"{page.url}: {e}"))
        page.on("console", lambda m: told(f"{page.url}: {m.text}", m.type in ("error", "warning")))
        page.on("response", lambda r: told(f"{r.url}: {r.status}", r.status >= 400))
        go(page, address + name)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert seen.complaints == []
    assert [u for u in seen.requests if not u.startswith((address, "data:", "blob:"))] == []


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_every_page_opens_and_fits(open_page: Open, address: str, width: int) -> None:
    page = open_page("index.html", width=width)
    names = sorted(str(p.relative_to(SITE)) for p in SITE.rglob("*.html") if p.name != "404.html")
    assert len(names) > 40
    for name in names:
        go(page, address + name)
        assert page.locator("h1").first.inner_text().strip(), name
        page.wait_for_function(FITS)


def test_the_search_answers(open_page: Open) -> None:
    page = open_page("index.html")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("combobox", name="Search").fill("persistence")
    results = page.get_by_role("listbox", name="Search results").get_by_role("option")
    results.first.wait_for()
    assert results.count() >= 5
    assert all("ersistence" in results.nth(k).inner_text() for k in range(5))
    before = page.url
    results.first.click()
    page.wait_for_url(lambda url: url != before)
    assert "ersistence" in page.locator("article").inner_text()


def test_light_and_dark(open_page: Open) -> None:
    def paper() -> str:
        return page.evaluate("() => document.querySelector('.drawn')._fullLayout.paper_bgcolor")

    page = open_page("docs/tutorials/first-forecast.html", scheme="dark")
    page.wait_for_selector(".drawn svg.main-svg")
    assert page.evaluate(SCHEME) == "slate"  # as the system has it
    dark = paper()
    page.get_by_title("Switch to light mode").click()
    page.wait_for_function(f"({SCHEME})() === 'default'")
    page.wait_for_function(
        "dark => document.querySelector('.drawn')._fullLayout.paper_bgcolor !== dark", arg=dark
    )
    page.reload()
    page.wait_for_selector(".drawn svg.main-svg")
    assert page.evaluate(SCHEME) == "default" and paper() != dark  # it is remembered


@pytest.mark.parametrize("name", TUTORIALS)
def test_figures_are_drawn_live(open_page: Open, name: str) -> None:
    page = open_page(f"docs/tutorials/{name}.html", width=NARROW)
    figures = page.locator(".live .drawn")
    page.wait_for_selector(".drawn svg.main-svg")
    assert figures.count() >= 1 and page.locator(".live img").count() == 0
    for k in range(figures.count()):
        box = figures.nth(k).bounding_box()
        assert box["height"] > 150 and 200 < box["width"] <= NARROW
        assert figures.nth(k).locator("g.trace").count() >= 1
