"""The report as a reader meets it: in a browser, from disk, without network."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from itertools import pairwise

import pandas as pd
import pytest

from made_results import HOSTILE, NAMES, make_comparison, make_graph, make_page, make_report, raised
from mvlstm import plot
from mvlstm.bench.document import Section, Table
from mvlstm.report import (
    FigureBlock,
    TableBlock,
    comparison_page,
    experiments_page,
    graph_page,
    render_report,
)
from processes import wait_for

pytestmark = pytest.mark.browser

SECTIONS = ("next", "quality", "drivers", "when", "trust", "making")

# Text whose colour is too close to what lies behind it (WCAG: 4.5, or 3 for large text).
FAINT_TEXT = """
() => {
  const parse = (c) => (c.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const bad = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || !e.checkVisibility() || e.closest("script, style, svg")) continue;
    const style = getComputedStyle(e), [a, b] = [light(parse(style.color)), light(behind(e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const least = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
    if (contrast < least) bad.push([text.slice(0, 40), contrast]);
  }
  for (const t of document.querySelectorAll(".plot svg text")) {
    if (!t.textContent.trim() || !t.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(t).fill)), light(behind(t.closest(".plot")))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 3) bad.push([t.textContent.slice(0, 40), contrast]);
  }
  return bad;
}
"""

BEYOND_THE_EDGE = """
() => [...document.querySelectorAll("main *")].filter((e) => {
  const box = e.getBoundingClientRect();
  return box.width > 0 && box.right > innerWidth + 1 && !e.closest(".plot, .scroll, .rows");
}).map((e) => `${e.tagName} ${e.className}: ${e.getBoundingClientRect().right}`)
"""


def numbers(text: str) -> float:
    return float(text.replace("\u2212", "-").replace(",", "").replace("+", ""))


def table_rows(page, selector: str) -> list[list[str]]:
    page.locator(f"{selector} tr").first.wait_for()  # a table is filled when it is opened
    rows = page.query_selector_all(f"{selector} tr")
    return [[c.inner_text().strip() for c in r.query_selector_all("th, td")] for r in rows]


def read_csv(download) -> list[list[str]]:
    text = download.path().read_bytes().decode("utf-8")
    return list(csv.reader(io.StringIO(text)))


def embedded(page) -> dict:
    return page.evaluate("() => JSON.parse(document.getElementById('page-data').textContent)")


def click_point(page, key: str, trace: str, index: int) -> str:
    """Click on a drawn point and return its time."""
    place = page.evaluate(
        """([key, name, index]) => {
          const g = document.getElementById(`figure-${key}`);
          g.scrollIntoView({ block: "center", behavior: "instant" });
          const t = g.data.find((t) => t.name === name);
          const at = index < 0 ? t.x.length + index : index;
          const { xaxis, yaxis } = g._fullLayout, box = g.getBoundingClientRect();
          return [String(t.x[at]), box.left + xaxis._offset + xaxis.d2p(t.x[at]),
            box.top + yaxis._offset + yaxis.d2p(t.y[at])];
        }""",
        [key, trace, index],
    )
    page.mouse.move(place[1] - 3, place[2])
    page.mouse.move(place[1], place[2])
    page.wait_for_timeout(150)
    page.mouse.click(place[1], place[2])
    page.wait_for_timeout(100)
    return place[0]


def test_opens_from_disk_without_network_or_complaint(open_page):
    page = open_page()
    page.wait_for_timeout(300)
    assert page.seen.complaints == []
    assert [u for u in page.seen.requests if not u.startswith(("file:", "data:", "blob:"))] == []
    assert len([u for u in page.seen.requests if u.startswith("file:")]) == 1
    for key in SECTIONS:
        assert page.locator(f"section#{key} h2").is_visible()
    drawn = page.locator("[data-figure]")
    assert drawn.count() >= 14
    for index in range(drawn.count()):
        assert drawn.nth(index).locator("svg.main-svg").count() >= 1


@pytest.mark.parametrize("index", [0, 4, -1])
def test_clicking_a_point_takes_that_forecast_apart(open_page, index):
    page = open_page()
    time = click_point(page, "forecast", "explained: choose one", index)
    assert page.locator("#explorer").get_attribute("data-time") == time
    assert page.seen.complaints == []
    page.locator("#explorer-numbers summary").click()
    rows = table_rows(page, "#explorer-table")
    parts, total = [numbers(r[1]) for r in rows[1:-1]], numbers(rows[-1][1])
    assert {r[0] for r in rows[2:-1]} == set(NAMES)
    assert sum(parts) == pytest.approx(total, abs=0.05)
    drawn = embedded(page)["tables"]["forecast"]
    columns = dict(zip(drawn["columns"], drawn["data"], strict=True))
    assert total == pytest.approx(columns["mean"][columns["time"].index(time)], rel=1e-3)
    assert f"forecast for {time}" in rows[-1][0]
    bars = page.evaluate("() => document.getElementById('explorer-waterfall').data[1].x")
    assert sum(bars) + parts[0] == pytest.approx(total, abs=0.05)
    with page.expect_download() as caught:
        page.locator("#explorer-csv").click()
    exact = [float(r[1]) for r in read_csv(caught.value)[1:]]
    assert sum(exact[:-1]) == pytest.approx(exact[-1], abs=1e-4)


def test_the_next_forecast_can_be_clicked(open_page):
    page = open_page()
    page.locator("#explorer-back").click()
    time = click_point(page, "forecast", "next", 0)
    assert page.locator("#explorer").get_attribute("data-time") == time
    assert "still to come" in page.locator("#explorer-text").inner_text()


def test_a_point_without_contributions_leads_to_the_nearest(open_page):
    page = open_page()
    asked = click_point(page, "forecast", "forecast", -60)
    text = page.locator("#explorer-text").inner_text()
    assert text.startswith(f"Nearest explained time to {asked[:10]}")


def test_forecasts_can_be_chosen_by_keyboard(open_page):
    page = open_page()
    times = [p["time"] for p in embedded(page)["explorer"]["points"]]
    assert page.locator("#explorer").get_attribute("data-time") == times[-1]
    page.locator("#explorer-back").focus()
    page.keyboard.press("Enter")
    assert page.locator("#explorer").get_attribute("data-time") == times[-2]
    page.locator("#explorer-time").select_option(index=0)
    assert page.locator("#explorer").get_attribute("data-time") == times[0]
    assert page.locator("#explorer-back").is_disabled()


def test_the_first_of_several_steps_is_shown_first(open_page, tmp_path):
    path = tmp_path / "steps.html"
    path.write_text(render_report(make_report(horizon=3)), encoding="utf-8")
    page = open_page(path)
    ahead = [p["time"] for p in embedded(page)["explorer"]["points"] if p["next"]]
    assert len(ahead) == 3
    assert page.locator("#explorer").get_attribute("data-time") == ahead[0]
    assert page.locator(".card .note").first.inner_text().startswith(ahead[0])


def test_small_differences_on_a_high_level_are_shown(open_page, tmp_path):
    path = tmp_path / "level.html"
    path.write_text(render_report(raised(make_report(), 1e8)), encoding="utf-8")
    page = open_page(path)
    point = embedded(page)["explorer"]["points"][-1]
    words = page.locator("#explorer-text").inner_text()
    low, high = re.search(r"runs from (\S+) to (\S+)\. ", words).groups()
    assert numbers(low) == pytest.approx(point["low"], abs=0.5)
    assert numbers(high) == pytest.approx(point["high"], abs=0.5)
    details = page.locator("details[data-table=forecast]")
    details.locator("summary").click()
    rows = table_rows(page, "details[data-table=forecast] .rows tbody")
    place = embedded(page)["tables"]["forecast"]["columns"].index("mean")
    exact = embedded(page)["tables"]["forecast"]["data"][place][-100:]
    assert [numbers(r[place]) for r in rows] == pytest.approx(exact, abs=1e-3)


def test_tables_sort_by_mouse_and_keyboard(open_page):
    page = open_page()
    table = "table[data-sortable=scores]"

    def methods() -> list[str]:
        return [r[0] for r in table_rows(page, f"{table} tbody")]

    assert methods() == ["MVLSTM", "persistence", "AR"]
    button = page.locator(f"{table} th button", has_text="rmse")
    button.click()
    assert methods() == ["MVLSTM", "AR", "persistence"], "the smallest error first"
    header = button.locator("..")
    assert header.get_attribute("aria-sort") == "ascending"
    button.focus()
    page.keyboard.press("Enter")
    assert methods() == ["persistence", "AR", "MVLSTM"]
    assert header.get_attribute("aria-sort") == "descending"
    page.locator(f"{table} th button", has_text="skill").click()
    assert methods() == ["MVLSTM", "AR", "persistence"], "but the largest skill"
    page.locator(f"{table} th button", has_text="method").click()
    assert methods() == ["AR", "MVLSTM", "persistence"]


def test_csv_holds_the_tables_numbers(open_page):
    page = open_page()
    data = make_report()
    with page.expect_download() as caught:
        page.locator("[data-csv=importance-table]").click()
    head, *rows = read_csv(caught.value)
    assert caught.value.suggested_filename == "importance-table.csv"
    table = data.explanation.importance
    assert head == list(table.columns)
    assert [r[0] for r in rows] == list(table["variable"])
    for row, (_, expected) in zip(rows, table.iterrows(), strict=True):
        assert float(row[1]) == pytest.approx(expected["importance"])
        assert float(row[8]) == pytest.approx(expected["error_increase_high"])
        assert row[9] == expected["verdict"]


def test_every_figure_gives_its_data(open_page):
    page = open_page()
    for key in embedded(page)["figures"]:
        details = page.locator(f"details[data-table='{key}']")
        details.locator("summary").click()
        details.locator(".rows tbody tr").first.wait_for()
        details.locator("[data-csv]").scroll_into_view_if_needed()
        page.wait_for_timeout(200)  # figures that come into view are drawn, and move the button
        with page.expect_download() as caught:
            details.locator("[data-csv]").click()
        assert len(read_csv(caught.value)) > 1, key
    assert page.seen.complaints == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_legible_in_light_and_dark_wide_and_narrow(open_page, scheme, width):
    options = {"has_touch": True, "is_mobile": True} if width == 390 else {}
    page = open_page(width=width, color_scheme=scheme, **options)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(BEYOND_THE_EDGE) == []
    assert page.evaluate(FAINT_TEXT) == []
    paper = page.evaluate("document.getElementById('figure-forecast')._fullLayout.paper_bgcolor")
    assert paper == {"light": "#ffffff", "dark": "#161b21"}[scheme]
    smallest = page.evaluate(
        "Math.min(...[...document.querySelectorAll('main p, main td, main dd, main li')]"
        ".filter((e) => e.checkVisibility()).map((e) => parseFloat(getComputedStyle(e).fontSize)))"
    )
    assert smallest >= 12


def test_no_half_of_the_page_is_empty(open_page, tmp_path):
    path = tmp_path / "report.html"
    settings = {f"setting_{k}": k for k in range(40)}
    path.write_text(render_report(replace(make_report(), settings=settings)), encoding="utf-8")
    spare = open_page(path, width=1280).evaluate(
        "[...document.querySelectorAll('.block')].map((e) => e.getBoundingClientRect().bottom"
        " - e.lastElementChild.getBoundingClientRect().bottom)"
    )
    assert spare and max(spare) < 150


def test_the_theme_can_be_switched(open_page):
    page = open_page()
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    assert page.locator("#theme").get_attribute("aria-pressed") == "false"
    page.locator("#theme").click()
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    assert page.evaluate(colour) != before
    paper = page.evaluate("document.getElementById('figure-pit')._fullLayout.paper_bgcolor")
    assert paper == "#161b21"
    assert page.evaluate(FAINT_TEXT) == []
    page.reload()
    page.wait_for_selector("html[data-ready=true]")
    assert page.evaluate(colour) != before, "the choice is kept"
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"


def test_a_hostile_name_does_nothing(open_page):
    page = open_page()
    click_point(page, "forecast", "explained: choose one", 0)
    page.locator("#explorer-numbers summary").click()
    page.locator("details[data-table=importance] summary").click()
    page.locator("#figure-importance").hover()
    assert page.seen.dialogs == []
    assert page.evaluate("document.scripts.length") == 3
    assert page.locator("table[data-sortable=importance-table]").get_by_text(HOSTILE).count() == 1
    assert page.locator("#explorer-table").get_by_text(HOSTILE).count() == 1
    ticks = page.locator("#figure-importance .ytick text").all_text_contents()
    assert ticks.count("<script>ale\u2026)</script>") == 1
    assert ticks.count("%{x} <b>win\u2026> & 'rain'") == 1


def test_views_of_the_forecast(open_page):
    page = open_page()
    ranges = "document.getElementById('figure-forecast')._fullLayout.xaxis.range[0]"
    latest = page.evaluate(ranges)
    page.get_by_role("button", name="Everything").click()
    assert page.evaluate(ranges) < latest
    assert page.get_by_role("button", name="Everything").get_attribute("aria-pressed") == "true"


def test_usable_by_keyboard_and_screen_reader(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.locator("html").get_attribute("lang") == "en"
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, select, summary, a')].filter((e) => "
        "!(e.textContent.trim() || e.ariaLabel || e.labels?.length)).map((e) => e.outerHTML)"
    )
    assert [e for e in nameless if "modebar" not in e] == []
    figures = page.locator("[role=img]")
    for index in range(figures.count()):
        assert len(figures.nth(index).get_attribute("aria-label")) > 10
    levels = page.evaluate("[...document.querySelectorAll('h1,h2,h3')].map((h) => +h.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))


def test_prints_to_a_clean_pdf(open_page, tmp_path):
    page = open_page(color_scheme="dark")
    pdf = page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert pdf.startswith(b"%PDF")
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 4 <= pages <= 20
    widest = "Math.max(...[...document.querySelectorAll('.main-svg')].map((s) => s.clientWidth))"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(widest) <= 660, "figures fit the paper, whatever the window's width"
    paper = page.evaluate("document.getElementById('figure-pit')._fullLayout.paper_bgcolor")
    assert paper == "#ffffff"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    wait_for(lambda: page.evaluate(widest) > 660)  # they come back to the screen's width
    page.emulate_media(media="print")
    assert not page.locator(".contents").is_visible()
    assert not page.locator("[data-csv]").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_printed_tables_show_every_column(open_page):
    page = open_page(width=688)  # A4 less its margins
    page.emulate_media(media="print")
    cut = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter((s) => s.scrollWidth > s.clientWidth + 1)"
        ".map((s) => s.firstElementChild.dataset.sortable)"
    )
    assert cut == []
    box = "document.querySelector('[data-sortable=importance-table]').getBoundingClientRect().right"
    assert page.evaluate(box) <= 688
    style = "getComputedStyle(document.querySelector('.scroll'))"
    assert page.evaluate(f"{style}.overflowX") == "visible"
    page.emulate_media(media="screen")
    assert "gradient" in page.evaluate(f"{style}.backgroundImage"), "more lies beyond the edge"


def test_the_last_forecast_is_said_to_have_happened(open_page, tmp_path):
    data = make_report()
    path = tmp_path / "last.html"
    known = replace(data, future=data.forecast.take(slice(-1, None)))
    path.write_text(render_report(known), encoding="utf-8")
    page = open_page(path)
    assert page.locator("#explorer-time option").last.inner_text().endswith("(last)")
    assert "What happened:" in page.locator("#explorer-text").inner_text()
    page.locator("#explorer-time").select_option(index=0)
    time = click_point(page, "forecast", "last", 0)
    assert page.locator("#explorer").get_attribute("data-time") == time


def test_texts_sort_by_their_number_and_empty_cells_come_last(open_page, tmp_path):
    cells = ["", "20.09 \u00b1 0.02", "failed", "3.1", "1,000 (best)", None, "<0.001"]
    table = TableBlock("t", "t", "", pd.DataFrame({"rmse": cells}))
    path = tmp_path / "tables.html"
    path.write_text(make_page(table), encoding="utf-8")
    page = open_page(path)
    button = page.locator("table th button")
    order = ["<0.001", "3.1", "20.09 \u00b1 0.02", "1,000 (best)"]
    button.click()
    shown = [r[0] for r in table_rows(page, "table tbody")]
    assert shown == [*order, "failed", "", ""]
    button.click()
    shown = [r[0] for r in table_rows(page, "table tbody")]
    assert shown == [*order[::-1], "failed", "", ""]


def test_names_with_numbers_sort_by_these(open_page, tmp_path):
    names = ["Shop 1", "Shop 10", "Shop 2"]
    table = TableBlock("t", "t", "", pd.DataFrame({"series": names}))
    path = tmp_path / "tables.html"
    path.write_text(make_page(table), encoding="utf-8")
    page = open_page(path)
    page.locator("table th button").click()
    assert table_rows(page, "table tbody") == [["Shop 1"], ["Shop 2"], ["Shop 10"]]


def test_labels_of_the_axes_do_not_touch_at_the_corner(open_page):
    touching = """() => {
      const box = (t) => t.getBoundingClientRect();
      const [x, y] = ["x", "y"].map((a) =>
        [...document.querySelectorAll(`#figure-attention-over-time .${a}tick text`)].map(box));
      const meet = (a, b) => a.left < b.right && a.right > b.left && a.top < b.bottom - 2;
      return x.some((a) => y.some((b) => meet(a, b)));
    }"""
    assert not open_page().evaluate(touching)


def test_a_long_page_draws_what_comes_into_view(open_page, tmp_path):
    rows = pd.DataFrame({"method": ["a"], "rmse": [1.0]})
    panels = [
        FigureBlock(f"figure-{i}", f"figure {i}", "", "one", plot.comparison(rows), rows, wide=True)
        for i in range(40)
    ]
    path = tmp_path / "long.html"
    path.write_text(make_page(*panels), encoding="utf-8")
    page = open_page(path)
    drawn = page.locator("[data-figure] svg.main-svg")
    page.locator("[data-figure].js-plotly-plot").first.wait_for()
    assert page.locator("[data-figure].js-plotly-plot").count() < 40
    last = page.locator("[data-figure]").last
    last.scroll_into_view_if_needed()
    last.locator("svg.main-svg").first.wait_for()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("[data-figure].js-plotly-plot").count() == 40, "paper has all of them"
    assert drawn.count() >= 40
    assert page.seen.complaints == []


def test_the_menu_of_many_sections_scrolls(open_page, tmp_path):
    table = Table("scores", *[pd.DataFrame({"method": ["a"], "rmse": ["1.0"]})] * 2)
    names = [f"part {i} with a name of many words: errors" for i in range(30)]
    sections = [Section("Suite mine", level=1), *(Section(n, tables=(table,)) for n in names)]
    path = tmp_path / "experiments.html"
    path.write_text(experiments_page("Results", sections), encoding="utf-8")
    page = open_page(path)
    box = "document.querySelector('.contents')"
    assert page.evaluate(f"{box}.clientHeight") <= 844
    assert page.evaluate(f"{box}.scrollHeight") > 1_500
    page.evaluate("scrollTo({ top: 1e6, behavior: 'instant' })")
    page.locator(".contents a[aria-current=true]", has_text="part 2").wait_for()
    assert page.evaluate(f"{box}.scrollTop") > 0, "the menu follows"
    page = open_page(path, width=390, has_touch=True, is_mobile=True)
    assert (
        page.locator(".contents a").first.inner_text() == "mine, part 0 with a name\u2026, errors"
    )
    assert page.evaluate(f"{box}.clientHeight") < 400


def test_no_text_of_a_figure_is_cut_on_a_narrow_screen(open_page):
    page = open_page(width=390, has_touch=True, is_mobile=True)
    for key in (
        "figure-importance",
        "figure-stability",
        "figure-attention-over-time",
        "explorer-waterfall",
    ):
        cut = page.evaluate(
            """(id) => {
              const box = document.getElementById(id).getBoundingClientRect();
              return [...document.querySelectorAll(`#${id} svg text`)].filter((t) => {
                const own = t.getBoundingClientRect();
                return own.width > 0 && (own.left < box.left - 1 || own.right > box.right + 1);
              }).map((t) => t.textContent);
            }""",
            key,
        )
        assert cut == [], key


def test_many_long_names_fit_a_narrow_screen(open_page, tmp_path):
    names = tuple(f"{i}_a_rather_long_name_without_any_space_{i}" for i in range(18))
    path = tmp_path / "many.html"
    path.write_text(render_report(make_report(horizon=3, names=names)), encoding="utf-8")
    page = open_page(path, width=390, has_touch=True, is_mobile=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(BEYOND_THE_EDGE) == []
    assert page.seen.complaints == []


def test_a_comparison_opens_as_well(open_page, tmp_path):
    rows = pd.DataFrame({"method": ["MVLSTM", HOSTILE], "rmse": [1.0, 2.0], "crps": [0.5, 0.9]})
    path = tmp_path / "methods.html"
    path.write_text(comparison_page(make_comparison(rows)), encoding="utf-8")
    page = open_page(path, color_scheme="dark")
    table = "table[data-sortable=methods]"
    for order in (["MVLSTM", HOSTILE], [HOSTILE, "MVLSTM"]):
        page.locator(f"{table} th button", has_text="rmse").click()
        assert [r[0] for r in table_rows(page, f"{table} tbody")] == order
    assert page.seen.complaints == [] and page.seen.dialogs == []
    assert page.evaluate(FAINT_TEXT) == []


@pytest.mark.parametrize("width", [1280, 390])
def test_a_graph_opens_as_well(open_page, tmp_path, width):
    path = tmp_path / "graph.html"
    names = ("rain", HOSTILE, "a rather long name of a column", "level")
    path.write_text(graph_page(make_graph(names)), encoding="utf-8")
    page = open_page(path, width=width, color_scheme="dark")
    for key in ("network", "matrix"):
        page.locator(f"#figure-{key}").scroll_into_view_if_needed()
        page.wait_for_selector(f"#figure-{key} svg")
    rows = table_rows(page, "table[data-sortable=links-table] tbody")
    assert len(rows) == 12 and rows[0][:2] == ["rain", HOSTILE]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.seen.complaints == [] and page.seen.dialogs == []
    assert page.evaluate(BEYOND_THE_EDGE) == []
    assert page.evaluate(FAINT_TEXT) == []
