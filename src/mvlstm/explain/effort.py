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

    def repeats_for(self, windows: int) -> int:
        """Return the exchanges for this many windows: up to four times more where these are few."""
        return self.repeats * int(min(4, max(1, self.windows // max(1, windows))))


EFFORTS: dict[str, Effort] = {
    "quick": Effort(windows=600, repeats=2, draws=500),
    "default": Effort(windows=2_000, repeats=2, draws=1_000),
    "full": Effort(windows=10_000, repeats=10, draws=4_000),
}


def get_effort(name: str) -> Effort:
    """Look up a level of effort by name.

    Examples
    --------
    >>> get_effort("default").windows
    2000
    """
    check_option("effort", name, EFFORTS)
    return EFFORTS[name]
