r"""Does a variable add anything? One test for every pair of forecasts, with it and without.

With forecasts f with the variable and f' without, errors e' = y - f' and g = f - f', a variable
that adds nothing leaves :math:`E[g e'] = 0` (Clark and West 2007; Lundborg and others' projected
covariance measure). Every product is divided by how large errors have been just before, so that a
few wild hours do not decide. The long-run variance comes from the lowest cosine frequencies and
Student's t has as many degrees of freedom (Lazarus and others 2018), which holds the level where
errors and variables are slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.signal import lfilter
from scipy.special import stdtr, stdtrit

from mvlstm.metrics import benjamini_hochberg
from mvlstm.types import FloatArray

SIGNIFICANCE = 0.05
POWER = 0.8  # with which an effect as large as the detectable one would have been found
MEMORY = 20  # rows over which recent errors are averaged, about
# Cosine frequencies of the long-run variance, times n^(2/3). A model that stays as it is errs
# slowly where levels drift: with 0.4, walks seem to act in one table of eight.
STAYING, LEARNING = 0.1, 0.4
FEWEST_FREQUENCIES = 6
MANY = 1_000  # degrees of freedom that are as good as any number


class Finding(NamedTuple):
    """What a test says of one family of variables."""

    p_value: float  # one-sided
    spread: float  # standard error of the mean product, in the units of squared errors
    degrees: int

    @classmethod
    def of(cls, p_value: float, least: float, tests: int) -> Finding:
        """Return what a test says that would have found ``least`` among this many tests."""
        return cls(p_value, least / cls(p_value, 1.0, MANY).detectable(tests), MANY)

    def times(self, square: float) -> Finding:
        """Return it in another unit."""
        return self._replace(spread=self.spread * square)

    def detectable(self, tests: int) -> float:
        """Return the rise that would have been found among this many tests, with 80 % power."""
        quantiles = stdtrit(self.degrees, [1.0 - SIGNIFICANCE / max(1, tests), POWER])
        return float(self.spread * quantiles.sum())


def recent_size(errors: FloatArray) -> FloatArray:
    """Return the mean square of errors (n, H) at each row, half of it that of the rows before.

    Nothing of a row itself or of later ones enters but the overall mean.
    """
    H = errors.shape[1]
    squares = errors**2
    whole = np.maximum(squares.mean(axis=0), np.finfo(np.float64).tiny)
    keep = 1.0 - 1.0 / MEMORY
    recent = lfilter([1.0 - keep], [1.0, -keep], squares - whole, axis=0) + whole
    known = np.concatenate([np.broadcast_to(whole, (min(H, len(errors)), H)), recent[:-H]])
    return np.asarray(0.5 * (whole + known))


def judge(products: FloatArray, size: FloatArray, *, frequencies: float) -> Finding:
    """Test the mean of products (n, H) of g and e', in time order, against zero."""
    scale = float(1.0 / np.mean(1.0 / size))
    series = np.mean(products / size, axis=1) * scale  # (n,)
    n = len(series)
    count = int(min(max(FEWEST_FREQUENCIES, frequencies * n ** (2 / 3)), max(1, n // 3)))
    variance, silent = float(series.var()), 1e-24 * float(np.mean(size)) ** 2
    if variance <= silent:
        return Finding(1.0, 0.0, count)
    waves = np.cos(np.pi * np.arange(1, count + 1)[:, None] * (np.arange(n) + 0.5) / n)
    slow = float(np.mean((np.sqrt(2.0 / n) * waves @ series) ** 2))
    spread = float(np.sqrt(max(slow, variance) / n))
    return Finding(float(stdtr(count, -series.mean() / spread)), spread, count)


def either(findings: Sequence[Finding]) -> Finding:
    """Combine findings from several sources (Bonferroni); the sharpest says what is detectable."""
    p = min(1.0, len(findings) * min(one.p_value for one in findings))
    heard = [one for one in findings if one.spread > 0] or list(findings)
    return min(heard, key=lambda one: one.spread)._replace(p_value=p)


Control = Literal["family", "fdr"]  # what verdicts hold at the level


def top_down(
    whole: float,
    groups: Sequence[tuple[tuple[int, ...], float]],
    single: FloatArray,
    control: Control = "family",
) -> tuple[float, list[float], FloatArray]:
    """Adjust p-values from the top down: all variables, correlated groups, single variables.

    A group of g among N variables has the share g/N of the level, and nothing is found within what
    was not found (Meinshausen 2008), so that the chance of any false finding is at most the level.
    A whole also counts as found if one of its parts is, by itself, at half the level.

    Parameters
    ----------
    whole : float
        P-value of all variables together.
    groups : sequence of (variables, p-value)
    single : array (N,)
    control : {"family", "fdr"}
        With "fdr", not the chance of any false finding is held, but the expected share of false
        ones among the variables found, and among the groups (Benjamini and Hochberg).
    """
    N = max(1, single.size)

    def of(p: float, parts: FloatArray) -> float:
        least = parts.size * float(parts.min(initial=1.0))
        return min(1.0, 2.0 * min(p, least)) if parts.size > 1 else min(p, least)

    root = of(whole, single)
    own = [np.array(members) for members, _ in groups]
    joint = np.array([of(p, single[one]) for one, (_, p) in zip(own, groups, strict=True)])
    if control == "fdr":
        adjusted, together = benjamini_hochberg(single), benjamini_hochberg(joint)
    else:
        adjusted = single * N
        together = joint * N / np.array([len(one) for one in own])
    adjusted = np.clip(adjusted, root, 1.0)
    together = np.clip(together, root, 1.0)
    for one, found in zip(own, together, strict=True):
        adjusted[one] = np.maximum(adjusted[one], found)
    return root, together.tolist(), adjusted
