"""How much work an explanation may cost."""

from __future__ import annotations

from typing import NamedTuple

from mvlstm.errors import check_option


class Effort(NamedTuple):
    """Limits of one level of effort.

    The time goes into ``windows x repeats`` forecasts per variable. Five members of fourteen
    variables make 2,000 forecasts in about 1 s on two cores, so two repeats take about 28 s.
    """

    windows: int  # most held-out windows used
    repeats: int  # exchanges per variable, R
    draws: int  # bootstrap draws
    rows: int  # most rows that regressions are learned from
    work: float  # most multiplications of all exchanges; two cores take 100 s for 5e12

    def repeats_for(self, windows: int) -> int:
        """Return the exchanges for this many windows: up to four times more where these are few."""
        return self.repeats * int(min(4, max(1, self.windows // max(1, windows))))


EFFORTS: dict[str, Effort] = {
    "quick": Effort(windows=600, repeats=2, draws=500, rows=400, work=1e12),
    "default": Effort(windows=2_000, repeats=2, draws=1_000, rows=1_000, work=5e12),
    "full": Effort(windows=10_000, repeats=10, draws=4_000, rows=2_000, work=1e14),
}


def get_effort(name: str | Effort) -> Effort:
    """Look up a level of effort by name; one that is not a name is given back.

    Examples
    --------
    >>> get_effort("default").windows
    2000
    """
    if isinstance(name, Effort):
        return name
    check_option("effort", name, EFFORTS)
    return EFFORTS[name]
