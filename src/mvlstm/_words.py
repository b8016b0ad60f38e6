"""Numbers and names in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from math import floor, isfinite, log10

MINUS = "−"
MOST_DECIMALS = 12
MOST_NAMES = 8  # of a list in a message
LEAST_P = 0.001  # smaller p-values are not written out
FINEST_SHARE = 1e-8  # of the largest number; what is smaller need not show next to it


def counted(count: int, word: str) -> str:
    """Write a number of things.

    Examples
    --------
    >>> counted(1, "gap"), counted(2067, "gap")
    ('1 gap', '2,067 gaps')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def decimals(largest: float, digits: int, finest: float = 0.0) -> int:
    """Return the decimals with which numbers up to ``largest`` have this many digits.

    ``finest`` is a size that must show too, with two digits, such as the width of an interval.

    Examples
    --------
    >>> decimals(20.4, 4), decimals(1234.5, 4), decimals(1000.0, 4, finest=0.003)
    (2, 0, 4)
    """
    found = digits - 1 - (floor(log10(largest)) if largest > 0 else 0)
    if finest > 0 and isfinite(finest):
        finest = max(finest, largest * FINEST_SHARE)
        found = max(found, 1 - floor(log10(finest)))
    return min(max(found, 0), MOST_DECIMALS)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Ask whether a name that is near was meant, in a sentence to be added; empty if none is.

    Examples
    --------
    >>> did_you_mean("mvlstn", ["ar", "mvlstm"]), did_you_mean("x", ["ar"])
    (" Did you mean 'mvlstm'?", '')
    """
    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean '{near[0]}'?" if near else ""


def significant(largest: float, digits: int, finest: float = 0.0) -> int:
    """Return the digits that numbers up to ``largest`` need so that ``finest`` shows next to them.

    Examples
    --------
    >>> significant(1.001e10, 4), significant(1.001e10, 4, finest=2e7), significant(2e-9, 4, 1e-9)
    (4, 5, 4)
    """
    if not (largest > 0 and finest > 0 and isfinite(finest)):
        return digits
    finest = max(finest, largest * FINEST_SHARE)
    return max(digits, floor(log10(largest)) - floor(log10(finest)) + 2)


def name_list(names: Sequence[str]) -> str:
    """Write names as a list, shortened when there are many.

    Examples
    --------
    >>> name_list(["a", "b"])
    "['a', 'b']"
    """
    shown = ", ".join(f"'{name}'" for name in names[:MOST_NAMES])
    return f"[{shown}, ... {len(names)} in all]" if len(names) > MOST_NAMES else f"[{shown}]"


def number(value: float, digits: int = 3, finest: float = 0.0) -> str:
    """Write a number for a person: this many significant digits, thousands marked.

    There are more digits where something as small as ``finest`` must show.

    Examples
    --------
    >>> number(20.368), number(1234.5), number(0.0312), number(0.0), number(2e-7)
    ('20.4', '1,234', '0.0312', '0', '2e−07')
    >>> number(1.00094e13, finest=4e9)
    '1.00094e+13'
    """
    if not isfinite(value):
        return "unknown"
    if value == 0:
        return "0"
    if not -4 <= floor(log10(abs(value))) <= 11:
        return f"{value:.{significant(abs(value), digits, finest)}g}".replace("-", MINUS)
    places = decimals(abs(value), digits, finest)
    return f"{round(value, places) + 0.0:,.{places}f}".replace("-", MINUS)


def quantile_name(q: float) -> str:
    """Name the column of a quantile.

    Examples
    --------
    >>> quantile_name(0.05), quantile_name(0.975)
    ('q05', 'q97.5')
    """
    whole, _, fraction = f"{100 * q:.6g}".partition(".")
    return f"q{whole.zfill(2)}" + (f".{fraction}" if fraction else "")


def p_text(p: float | None) -> str:
    """Write a p-value for a person; empty where there is none.

    Examples
    --------
    >>> p_text(0.0004), p_text(0.0312), p_text(None)
    ('<0.001', '0.031', '')
    """
    if p is None or not isfinite(p):
        return ""
    return f"<{LEAST_P}" if p < LEAST_P else f"{p:.3f}"
