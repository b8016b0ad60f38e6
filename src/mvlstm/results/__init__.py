"""What comes back from a forecaster: frozen dataclasses with times and names attached.

Every result turns into a tidy table with ``to_frame()`` and into plain JSON values with
``to_dict()``. Nothing here knows a model; plots, reports and the command line read only these.
"""

from __future__ import annotations

from mvlstm.results.check import Check
from mvlstm.results.comparison import Comparison
from mvlstm.results.evaluation import Evaluation
from mvlstm.results.explanation import IMPORTANCE_COLUMNS, VERDICTS, Explanation
from mvlstm.results.forecast import PARTS, Forecast
from mvlstm.results.graph import Graph
from mvlstm.results.history import History
from mvlstm.results.point import PointExplanation
from mvlstm.results.reference import Reference
from mvlstm.results.update import Update
from mvlstm.transforms import Transform

__all__ = [
    "IMPORTANCE_COLUMNS",
    "PARTS",
    "VERDICTS",
    "Check",
    "Comparison",
    "Evaluation",
    "Explanation",
    "Forecast",
    "Graph",
    "History",
    "PointExplanation",
    "Reference",
    "Transform",
    "Update",
]
