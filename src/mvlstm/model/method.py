"""`AbstractMethod`: settings, and what learns with them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import DTypeLike

from mvlstm.errors import ParameterError, check_option
from mvlstm.model.arguments import told
from mvlstm.model.fitted import BACKGROUND
from mvlstm.model.learned import Learned, Saved
from mvlstm.model.transform_choice import TRANSFORM_CHOICES, TransformChoice
from mvlstm.problem.problem import Problem
from mvlstm.problem.windows import check_window
from mvlstm.settings import FILL_LIMIT, Adapting, Duplicates, Gaps, Missing
from mvlstm.table.encoding import check_calendar
from mvlstm.table.layout import Layout
from mvlstm.table.settings import Calendar
from mvlstm.transforms import read_bounds

if TYPE_CHECKING:

    class BaseEstimator:
        """What is used of scikit-learn's class of this name, which has no types."""

        def get_params(self, deep: bool = True) -> dict[str, Any]:
            """Return the constructor's arguments."""

        def set_params(self, **params: Any) -> Self:
            """Change some of them."""
else:
    from sklearn.base import BaseEstimator

Difference = Literal["none", "auto"]
SPARE = 2**22  # numbers of a model file besides its windows, and a network's weights


class AbstractMethod(BaseEstimator, ABC):
    """What a forecaster's class supplies: its settings, and `learn` and `restore`.

    The constructor takes keywords only and stores its arguments untouched.
    """

    window: Any  # a whole number, or "auto"
    horizon: int
    missing: Missing
    gaps: Gaps
    fill_limit: int = FILL_LIMIT
    duplicates: Duplicates = "error"
    difference: Difference = "none"
    calendar: Calendar = "none"
    holidays: Calendar = "none"
    transform: TransformChoice = "none"
    bounds: Sequence[float | None] | None = None
    calibration: Adapting = "adaptive"
    verbose: int
    ensemble: ClassVar[bool] = False  # whether there are members with seeds of their own
    members_differ: ClassVar[bool] = False  # whether each of them may have settings of its own
    seed_matters: ClassVar[bool] = True  # whether another seed, if there is one, fits another model
    local: ClassVar[bool] = True  # whether a forecast depends on its window alone
    one_series: ClassVar[bool] = False  # whether a table of several series is refused
    copies_windows: ClassVar[bool] = False  # whether all those of training are held at once
    precision: DTypeLike = np.float64  # of the prepared table

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls).get("__annotations__", {}).values()  # settings get a constructor later
        made_later = any("ClassVar" not in str(one) for one in own)
        if cls.__init__ is not object.__init__ and not made_later:
            cls.__init__ = told(cls.__init__)  # type: ignore[method-assign]

    @abstractmethod
    def learn(self, problem: Problem) -> Learned:
        """Learn from the training windows, choosing on the stopping ones."""

    @abstractmethod
    def restore(self, saved: Saved) -> Learned:
        """Rebuild what was learned from a model file, checking every shape."""

    def learn_again(self, learned: Any, problem: Problem) -> Learned:
        """Learn from all training windows of a problem, with the settings chosen before."""
        return self.learn(problem)

    def check(self) -> None:
        """Raise `ParameterError` for a setting with a value it cannot have."""
        check_window(2 if self.window == "auto" else self.window, self.horizon)
        if not isinstance(self.verbose, int | np.integer):
            raise ParameterError(f"verbose={self.verbose!r} must be a whole number; 0 is silent.")
        check_option("difference", self.difference, ("none", "auto"))
        check_calendar(self.calendar, self.holidays)
        check_option("transform", self.transform, TRANSFORM_CHOICES)
        read_bounds(self.bounds)
        check_option("calibration", self.calibration, ("adaptive", "static"))

    def most_numbers(self, layout: Layout) -> float:
        """Most numbers that a file of such a model can hold, and some to spare."""
        background = 4 * BACKGROUND * int(self.window) * int(self.horizon) * len(layout.inputs)
        return SPARE + background + int(self.horizon) ** 2  # the steps' dependence
