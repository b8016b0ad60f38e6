"""`.plot()` of results, which know nothing of figures: what draws them is loaded by its name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import plotly.graph_objects as go

BACKEND = "mvlstm.plot"  # a module with a function `draw`


class Drawable:
    """A result that draws itself."""

    def plot(self, **options: Any) -> go.Figure:
        """Return the figure that shows this result first; ``options`` are those of its function.

        `mvlstm.plot` has these functions and further figures. `mvlstm.plot.draw` says which is
        which.
        """
        return import_module(BACKEND).draw(self, **options)
