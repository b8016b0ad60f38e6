"""Build the documentation site from the pages of the repository: `make docs`.

The pages are copied as they lie in the repository, so that every link between them holds there and
on the site; Zensical renders them and refuses broken links. Formulas become drawings, and figures
of tutorials are drawn live; nothing is loaded from elsewhere. Links to other sites are not
followed: a build needs no network, and does not fail with somebody else's server. Needs the extra
``docs``::

    python docs/make_site.py [FOLDER]
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import ziamath
from make_reference import pages as reference_pages

from mvlstm.plot.theme import DARK, LIGHT
from mvlstm.report.build import plotly_library

PROJECT = Path(__file__).parents[1]
PARTS = PROJECT / "docs" / "site"
NAV: dict[str, list[str]] = {
    "Home": ["README.md"],
    "Tutorials": [
        f"docs/tutorials/{name}.md"
        for name in ("first-forecast", "day-ahead", "which-variables", "many-series", "production")
    ]
    + ["docs/dirty-table.md"],
    "Guide": [
        f"docs/{name}.md"
        for name in (
            *("guide", "options", "cli", "importance", "intervals", "graph", "compare", "gallery"),
            *("ecosystem", "scikit-learn", "serving", "automation", "reliability"),
            "scale",
        )
    ],
    "Reference": ["docs/api.md"],  # and what make_reference.py adds
    "Results": [
        *("docs/accuracy.md", "RESULTS.md", "docs/replication.md", "docs/trials.md"),
        *("docs/experiments.md", "experiments/README.md", "benchmarks/README.md"),
    ],
    "Behind it": [
        *("docs/mathematics.md", "docs/code-map.md", "CONTRIBUTING.md", "SECURITY.md"),
        "CHANGELOG.md",
    ],
}
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
FORMULA = re.compile(r'<(span|div) class="arithmatex">(.*?)</\1>', re.DOTALL)
LETTER = re.compile(r'<symbol id="([^"]+)"(?:[^>]*/>|.*?</symbol>)', re.DOTALL)
SIZE = 16.0  # pixels of the formulas' letters, from which all their measures come
EDGE = 1.0  # which a drawing has around it
CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
OPTION = re.compile(r"--[a-z][\w-]*")
PICTURE = re.compile(r'<img[^>]*src="([^"]*?figures/[\w-]+)\.svg"[^>]*>')


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    nav = stage(folder / "pages")
    (folder / "zensical.toml").write_text(settings(nav), encoding="utf-8")
    words = [sys.executable, "-m", "zensical", "build", "--strict"]
    subprocess.run(words, cwd=folder, check=True, env={**os.environ, "NO_COLOR": "1"})
    built = folder / "html"
    for page in built.rglob("*.html"):
        page.write_text(finished(page), encoding="utf-8")
    if faults := check(built):
        raise SystemExit("\n".join(faults))
    print(f"{len(list(built.rglob('*.html')))} pages: {built / 'index.html'}")


def stage(pages: Path) -> dict[str, list[str]]:
    """Copy the pages, with what they link to, and return them in order."""
    nav = {title: list(names) for title, names in NAV.items()}
    known = {name for names in nav.values() for name in names}
    there = {str(p.relative_to(PROJECT)) for p in PROJECT.glob("docs/**/*.md")}
    if missing := there - known:
        raise SystemExit(f"Pages without a place in NAV: {sorted(missing)}")
    for name in known:
        _copy(name, pages)
    for name, text in reference_pages().items():
        path = pages / "docs" / "reference" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        nav["Reference"].append(f"docs/reference/{name}")
    assets = pages / "assets"
    assets.mkdir()
    for path in (PARTS / "site.css", PARTS / "figures.js"):
        shutil.copy(path, assets)
    (assets / "plotly-cartesian.min.js").write_text(plotly_library(), encoding="utf-8")
    return nav


def _copy(name: str, pages: Path) -> None:
    """Copy a page and the files it links to; a link to a folder becomes plain text."""

    def replaced(link: re.Match[str]) -> str:
        source = (PROJECT / name).parent / unquote(link[2])
        if source.is_dir():
            return link[1]
        if source.is_file() and source.suffix != ".md":  # what is not there Zensical tells
            target = pages / os.path.relpath(source.resolve(), PROJECT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        return link[0]

    path = pages / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(LINK.sub(replaced, (PROJECT / name).read_text(encoding="utf-8")), "utf-8")


def settings(nav: dict[str, list[str]]) -> str:
    """Return the settings with the pages in their order."""
    text = (PARTS / "zensical.toml").read_text(encoding="utf-8")
    groups = [
        f'  {{ "{title}" = {json.dumps(names[0] if title == "Home" else names)} }},'
        for title, names in nav.items()
    ]
    text = text.replace(
        "[project.theme]", "\n".join(["nav = [", *groups, "]", "", "[project.theme]"]), 1
    )
    tomllib.loads(text)
    return text


def finished(page: Path) -> str:
    """Return a page with formulas drawn and with live figures."""
    text = CODE.sub(_unbroken, page.read_text(encoding="utf-8"))
    text = _once(FORMULA.sub(_formula, text))
    live = PICTURE.sub(lambda found: _live(found, page), text)
    if live == text:
        return text
    colours = dict(zip(LIGHT.colours(), DARK.colours(), strict=True))
    look = json.dumps({"template": LIGHT.template(), "colours": colours})
    root = os.path.relpath(next(p for p in page.parents if p.name == "html"), page.parent)
    scripts = "".join(
        f'<script src="{root}/assets/{name}"></script>'
        for name in ("plotly-cartesian.min.js", "figures.js")
    )
    end = f'<script type="application/json" id="figure-look">{look}</script>{scripts}</body>'
    return live.replace("</body>", end)


def _unbroken(code: re.Match[str]) -> str:
    """Keep lines from ending between the hyphens of an option."""
    return OPTION.sub(r'<span class="option">\g<0></span>', code[0])


def _formula(found: re.Match[str]) -> str:
    """Return a formula as a picture in the colour of the text, as high as the text is."""
    latex = html.unescape(found[2]).strip()
    display = latex.startswith(r"\[")
    drawn = ziamath.Latex(latex[2:-2], size=SIZE, color="currentColor", inline=not display)
    (width, height), below = (edge + 2 * EDGE for edge in drawn.getsize()), drawn.getyofst() - EDGE
    style = f"width:{width / SIZE:.2f}em;height:{height / SIZE:.2f}em"
    if not display:
        style += f";vertical-align:{below / SIZE:.2f}em"
    words = html.escape(" ".join(latex[2:-2].split()))
    start = f'<svg class="formula" role="img" aria-label="{words}" style="{style}"'
    picture = drawn.svg().replace("<svg", start, 1)
    return f'<div class="formula">{picture}</div>' if display else picture


def _once(text: str) -> str:
    """Keep the first drawing of each letter on a page: all later ones refer to it."""
    seen: set[str] = set()

    def first(found: re.Match[str]) -> str:
        known = found[1] in seen
        seen.add(found[1])
        return "" if known else found[0]

    return LETTER.sub(first, text)


def _live(found: re.Match[str], page: Path) -> str:
    spec = page.parent / f"{found[1]}.json"
    source = PROJECT / spec.relative_to(next(p for p in page.parents if p.name == "html"))
    text = source.read_text(encoding="utf-8").replace("<", "\\u003c")
    figure = f'<span class="drawn"></span><script type="application/json">{text}</script>'
    return f'<span class="live">{found[0]}{figure}</span>'


class Links(HTMLParser):
    """The links, resources and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag in ("link", "script", "img", "iframe"):
            self.loaded += [values[name] for name in ("href", "src") if name in values]


def check(site: Path) -> list[str]:
    """Return what is wrong: links to nothing, and anything loaded from elsewhere."""
    found = {p: Links(p.read_text(encoding="utf-8")) for p in site.rglob("*.html")}
    faults = [
        f"{page.relative_to(site)}: loads {url} from elsewhere"
        for page, one in found.items()
        for url in one.loaded
        if urlsplit(url).netloc
    ]
    for page, one in found.items():
        for url in (*one.links, *one.loaded):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc or page.name == "404.html":
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page.resolve()
            target = target / "index.html" if target.is_dir() else target
            anchors = found[target].anchors if target in found else None
            if not target.exists() or (
                parts.fragment and anchors is not None and unquote(parts.fragment) not in anchors
            ):
                faults.append(f"{page.relative_to(site)}: no {url}")
    return faults


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else PROJECT / "build" / "docs").resolve())
