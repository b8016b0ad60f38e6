"""The page of a graph: who drives whom."""

from __future__ import annotations

from mvlstm import plot
from mvlstm._words import counted, number
from mvlstm.report.build import render_page
from mvlstm.report.encode import percent
from mvlstm.report.page import AnyBlock, Block, Card, Page, Section, TableBlock
from mvlstm.report.words import heat_alt, joined, listed, panel
from mvlstm.results import Graph
from mvlstm.results.graph import CONTROLS

MOST_ROWS = 60  # of the table of links; the graph itself has all
NAMED = 5  # links named in the summary
CAVEAT = "Links are predictive, not causal."
LEAD = (
    "An arrow says that the past of one column helps to forecast the next value of another when "
    "all other columns are known. The wider, the larger the share of the squared error that it "
    "takes away; the colour is that of where it starts. Only links called important are drawn."
)
MATRIX = "A row per target; a dot marks the links that are called important."
TABLE = (
    "Strength is the share of the squared error that the source takes away, with its 90 % "
    "interval. p is adjusted: {}. Lag is where the forecast moves most with the source. "
    "Detectable is the least strength that these rows would have shown in four of five tables."
)
OWN = "The same for each column's own past, without which the others would have to forecast it."


def graph_page(graph: Graph, *, title: str = "Who drives whom") -> str:
    """Return a graph as one HTML page."""
    notes = [Block("notes", "Notes", list(graph.notes))]
    return render_page(
        Page(
            title=title,
            subtitle=(
                f"{counted(len(graph.variables), 'column')}, {counted(graph.rows, 'row')}, "
                f"{counted(graph.window, 'lag')}"
            ),
            summary=_summary(graph),
            sections=[
                Section("links", "Which columns drive which?", LEAD, _pictures(graph), "Links"),
                Section("all", "All links", "", _tables(graph), "Table"),
                Section("notes", "What to bear in mind", "", notes, "Notes"),
            ],
            cards=_cards(graph),
            caveat=CAVEAT,
            footer="Made with mvlstm",
        )
    )


def _summary(graph: Graph) -> list[str]:
    found = graph.important
    if not len(found):
        least = float(graph.links["detectable"].median())
        return [
            f"No column is found to act on another. Links that take away about {percent(least, 0)} "
            "of the error or more would have been found."
        ]
    words = [f"{a} to {b}" for a, b in zip(found["from"], found["to"], strict=True)]
    alone = sorted(set(graph.variables) - {*found["from"], *found["to"]}, key=graph.variables.index)
    return [
        f"{len(found):,} of {len(graph.links):,} links are important. The strongest: "
        f"{joined(words, NAMED)}.",
        *([f"Not linked to any other: {joined(alone, NAMED)}."] if alone else []),
    ]


def _cards(graph: Graph) -> list[Card]:
    found = graph.important
    cards = [Card("Important links", f"{len(found):,}", f"of {len(graph.links):,} possible ones")]
    if len(found):
        first = found.iloc[0]
        drives = found["from"].value_counts()
        strongest = number(float(first["strength"]))
        cards += [
            Card("Strongest", strongest, f"{first['from']} to {first['to']}, lag {first['lag']}"),
            Card("Drives most", str(drives.index[0]), counted(int(drives.iloc[0]), "column")),
        ]
    return cards


def _pictures(graph: Graph) -> list[AnyBlock]:
    found = graph.important
    named = found.assign(link=found["from"] + " to " + found["to"])
    return [
        panel(
            "network",
            "Network",
            "Hover over an arrow's head for its numbers.",
            plot.network(graph),
            found,
            alt=listed(named, "link", "strength") or "no link is important",
            narrow=plot.network(graph, narrow=True),
            wide=True,
        ),
        panel(
            "matrix",
            "Strength of every link",
            MATRIX,
            plot.link_matrix(graph),
            graph.matrix().rename_axis(columns=None).reset_index(),
            alt=heat_alt(graph.matrix()),
            wide=True,
        ),
    ]


def _tables(graph: Graph) -> list[AnyBlock]:
    words = TABLE.format(CONTROLS[graph.control])
    links = graph.links.head(MOST_ROWS)
    if len(graph.links) > MOST_ROWS:
        words = f"The strongest {MOST_ROWS} of {len(graph.links):,}. {words}"
    return [
        TableBlock("links-table", "Links", words, links),
        TableBlock("own", "Own past", OWN, graph.own),
    ]
