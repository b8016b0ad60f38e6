"""One self-contained page from finished results: no model, no torch, no network.

`render_report` turns a `ReportData` into HTML; `comparison_page` and `experiments_page` give the
same look to comparisons of methods and to tables of experiments.
"""

from __future__ import annotations

from mvlstm.report.build import check_libraries, render_page, render_report
from mvlstm.report.data import Page, Panel, ReportData, Section, Table
from mvlstm.report.experiments import experiments_page
from mvlstm.report.pages import comparison_page

__all__ = [
    "Page",
    "Panel",
    "ReportData",
    "Section",
    "Table",
    "check_libraries",
    "comparison_page",
    "experiments_page",
    "render_page",
    "render_report",
]
