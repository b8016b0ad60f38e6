"""One self-contained page from finished results: no model, no torch, no network.

`render_report` turns a `ReportData` into HTML; `comparison_page`, `graph_page` and
`experiments_page` give the same look to comparisons of methods, to graphs and to tables of
experiments.
"""

from __future__ import annotations

from mvlstm.report.build import check_libraries, render_page, render_report
from mvlstm.report.comparison import comparison_page
from mvlstm.report.data import ReportData
from mvlstm.report.experiments import experiments_page
from mvlstm.report.graph import graph_page
from mvlstm.report.page import FigureBlock, Page, Section, TableBlock

__all__ = [
    "FigureBlock",
    "Page",
    "ReportData",
    "Section",
    "TableBlock",
    "check_libraries",
    "comparison_page",
    "experiments_page",
    "graph_page",
    "render_page",
    "render_report",
]
