"""`Graph`: which columns of a table act on which, every column in turn the target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from mvlstm.results._tables import Drawable, page, plain, records

if TYPE_CHECKING:
    import plotly.graph_objects as go

LINK_COLUMNS = (*("from", "to", "lag", "strength", "low", "high", "p", "verdict", "detectable"),)
OWN_COLUMNS = ("variable", *LINK_COLUMNS[2:])
SHOWN = LINK_COLUMNS[:-1]
CONTROLS = {
    "family": "the chance of any false link in the whole graph is at most 5 % (Holm)",
    "fdr": "of the links called important, 5 % are false on average (Benjamini and Hochberg)",
}


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Drawable):
    """Links between the columns of a table.

    ``links`` has one row per link, the strongest first: where it comes ``from`` and leads ``to``;
    the ``lag`` in rows at which the forecast moves most with the source; ``strength``, the share of
    the squared error one step ahead that the source takes away when all other columns are known,
    with its 90 % interval from ``low`` to ``high``; ``p`` (adjusted, see ``control``); a
    ``verdict`` as for importance; and ``detectable``, the least strength that these rows would
    have shown in four of five tables. ``own`` says the same of each column's own past.
    """

    links: pd.DataFrame
    own: pd.DataFrame
    variables: tuple[str, ...]
    targets: tuple[str, ...]
    control: Literal["family", "fdr"]
    rows: int  # that the regressions rest on
    window: int  # lags that they read
    notes: tuple[str, ...] = ()  # what to bear in mind

    def __post_init__(self) -> None:
        assert tuple(self.links.columns) == LINK_COLUMNS, tuple(self.links.columns)
        assert tuple(self.own.columns) == OWN_COLUMNS, tuple(self.own.columns)

    @property
    def important(self) -> pd.DataFrame:
        """The links that are called important, the strongest first."""
        return self.links[self.links["verdict"] == "important"].reset_index(drop=True)

    def matrix(self, column: str = "strength") -> pd.DataFrame:
        """Return a column of the links as a table: a row per target, a column per source."""
        wide = self.links.pivot(index="to", columns="from", values=column)
        return wide.reindex(index=list(self.targets), columns=list(self.variables))

    def plot(self, kind: str = "network", **options: Any) -> go.Figure:
        """Draw the important links as a "network", or all strengths as a "matrix".

        ``theme`` is the look, "light" or "dark".
        """
        return super().plot(kind=kind, **options)

    def to_frame(self) -> pd.DataFrame:
        """Return a copy of the links."""
        return self.links.copy()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return {
            "links": records(self.links),
            "own": records(self.own),
            "variables": list(self.variables),
            "targets": list(self.targets),
            "control": self.control,
            "rows": plain(self.rows),
            "window": plain(self.window),
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        found = self.important
        head = (
            f"Graph({len(self.variables)} columns, {len(found)} of {len(self.links)} links "
            f"important, {self.rows} rows)"
        )
        if not len(found):
            return head
        table = found[list(SHOWN)].to_string(index=False, float_format=lambda x: f"{x:.3g}")
        return f"{head}\n{table}"

    def _repr_html_(self) -> str:
        return page(repr(self).splitlines()[0], self.links[list(SHOWN)], self.notes)
