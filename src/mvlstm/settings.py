"""The settings of every forecaster, each declared once: name, type, default, and what it does.

The constructors, the "Parameters" section of their docstrings and the options of the command line
derive from these declarations. Nothing heavy is imported, so that ``mvlstm fit --help`` is quick.

Examples
--------
>>> [one.name for one in declared(ARSettings)][:3]
['window', 'horizon', 'missing']
>>> ARSettings(window=12).window
12
"""

# Annotations are read when this module is loaded, hence no `from __future__ import annotations`.
import dataclasses
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType, NoneType, UnionType
from typing import (
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
)

from mvlstm.errors import ArgumentError, unknown_argument

MODEL, TRAINING, TABLE, PROGRESS = "Model", "Training", "Columns and rows", "Progress"
RUNNING = "How to run it"
PANELS = (MODEL, TRAINING, TABLE, PROGRESS, RUNNING)  # the order in which settings are listed
DOC_WIDTH = 96
NEEDED: Any = dataclasses.MISSING  # the default of what must be given

Value = TypeVar("Value")
Class = TypeVar("Class")

# ---------------------------------------------------------------------------------- the mechanism


@dataclass(frozen=True)
class Setting:
    """One declared setting."""

    name: str
    type: Any  # as annotated; `Literal` names the choices
    default: Any
    doc: str  # what it does, for the docstring and for ``--help``
    panel: str  # heading it is listed under


def setting(*, default: Value = NEEDED, doc: str, panel: str = "") -> Value:
    """Declare a setting in a dataclass, such as a class decorated with `settings`.

    A subclass that only has another default writes it as usual, ``dropout: float = 0.2``, and
    keeps the text. Its panel is by default that of the class.
    """
    told = {"doc": doc, "panel": panel} if panel else {"doc": doc}
    field: Any = dataclasses.field(default=default, metadata=told)
    return field  # type: ignore[no-any-return]


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(setting,))
def settings(*, panel: str, frozen: bool = False) -> Callable[[type[Class]], type[Class]]:
    """Turn a class of declarations into one with a keyword-only constructor that stores them.

    The ``panel`` is the heading that settings declared in this class are listed under.

    Examples
    --------
    >>> @settings(panel="Model")
    ... class Rounding:
    ...     digits: int = setting(default=2, doc="Digits to keep.")
    >>> Rounding(digits=3).digits
    3
    """

    def declare(cls: type[Class]) -> type[Class]:
        for value in vars(cls).values():
            if isinstance(value, dataclasses.Field):
                value.metadata = MappingProxyType({"panel": panel, **value.metadata})
        made = dataclass(kw_only=True, eq=frozen, repr=frozen, frozen=frozen)(cls)
        return documented(made)

    return declare


def declared(cls: type) -> tuple[Setting, ...]:
    """Return the settings of a class, those of its bases included, in the order of the panels."""
    found = [_setting(cls, field) for field in dataclasses.fields(cls)]
    return tuple(sorted(found, key=lambda one: [*PANELS, one.panel].index(one.panel)))


def declared_in(cls: type, name: str) -> Any:
    """Declare a setting as another class does, with its default and text."""
    (one,) = (one for one in declared(cls) if one.name == name)
    return setting(default=one.default, doc=one.doc, panel=one.panel)


def documented(cls: type[Class]) -> type[Class]:
    """Add the "Parameters" section to a class's docstring; for use as a decorator."""
    cls.__doc__ = _with_parameters(cls, cls)
    return cls


def expanded(**groups: type) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Let arguments of a function that are groups of settings be given one setting at a time.

    Signature and docstring name every setting.

    Examples
    --------
    >>> @expanded(rows=AheadSettings)
    ... def needed(rows: AheadSettings, *, spare: int = 0) -> int:
    ...     "Return how many rows are needed."
    ...     return rows.window + rows.horizon + spare
    >>> needed(window=5, spare=2), list(inspect.signature(needed).parameters)
    (8, ['window', 'horizon', 'spare'])
    """

    def wrap(function: Callable[..., Value]) -> Callable[..., Value]:
        whole = inspect.signature(function)
        parameters: list[inspect.Parameter] = []
        for one in whole.parameters.values():
            own = declared(groups[one.name]) if one.name in groups else ()
            parameters += [_parameter(each) for each in own] if own else [one]
        parameters.sort(key=lambda one: one.kind)
        whole = whole.replace(parameters=parameters)

        @functools.wraps(function)
        def called(*args: Any, **given: Any) -> Value:
            for name in given:
                if name not in whole.parameters:
                    said = unknown_argument(called.__name__, name, whole.parameters)
                    raise ArgumentError(said)
            try:
                values = whole.bind(*args, **given).arguments
            except TypeError as error:
                raise ArgumentError(f"{called.__name__}() {error}.") from None
            for name, cls in groups.items():
                own = [one.name for one in declared(cls) if one.name in values]
                values[name] = cls(**{each: values.pop(each) for each in own})
            return function(**values)

        called.__signature__ = whole  # type: ignore[attr-defined]
        called.__doc__ = _with_parameters(function, *groups.values())
        return called

    return wrap


def _parameter(one: Setting) -> inspect.Parameter:
    """Return a setting as a parameter: by name alone unless it must be given."""
    if one.default is NEEDED:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Parameter(one.name, kind, annotation=one.type)
    only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(one.name, only, default=one.default, annotation=one.type)


def _with_parameters(what: Any, *classes: type) -> str:
    """Return a docstring with the settings of some classes in its "Parameters" section."""
    text = inspect.cleandoc(what.__doc__ or "")
    head, *rest = re.split(r"\n\n(?=(?!Parameters\n)[^\n]+\n-{3,}\n)", text, maxsplit=1)
    own = "\nParameters\n-----" in head
    sections = [parameters_section(cls).splitlines() for cls in classes]
    lines = [line for section in sections for line in section[2:]]
    start = [] if own else sections[0][:2]
    return "\n\n".join(["\n".join([head, *([] if own else [""]), *start, *lines]), *rest])


def parameters_section(cls: type) -> str:
    """Return the section of a docstring that describes the settings of a class.

    Examples
    --------
    >>> parameters_section(GBTSettings).splitlines()[2:4]
    ['window : int, default 30', '    Rows that a forecast is made from.']
    """
    lines = ["Parameters", "----------"]
    for one in declared(cls):
        lines.append(f"{one.name} : {_type_text(one)}")
        lines += textwrap.wrap(one.doc, DOC_WIDTH, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def choices(kind: Any) -> tuple[Any, ...]:
    """Return the words that a type allows: those of a `Literal`, also as part of a union.

    Examples
    --------
    >>> choices(float | Literal["auto"]), choices(int)
    (('auto',), ())
    """
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(word for part in _parts(kind) if part is not kind for word in choices(part))


def _setting(cls: type, field: "dataclasses.Field[Any]") -> Setting:
    """Return what a field declares; text and panel come from the nearest class that has them."""
    told = [vars(base).get("__dataclass_fields__", {}).get(field.name) for base in cls.__mro__]
    full: Mapping[str, Any] = next(
        (one.metadata for one in told if one is not None and "doc" in one.metadata), {}
    )
    doc, panel = full.get("doc", ""), full.get("panel", MODEL)
    return Setting(field.name, field.type, field.default, doc, panel)


def _parts(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _type_text(one: Setting) -> str:
    """Describe type and default as numpydoc does."""
    if one.default is NEEDED:
        return _kind_text(one.type)
    if one.default is None:
        return f"{_kind_text(one.type)}, optional"
    default = f'"{one.default}"' if isinstance(one.default, str) else f"{one.default}"
    return f"{_kind_text(one.type)}, default {default}"


def _kind_text(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "{" + ", ".join(f'"{word}"' for word in get_args(kind)) + "}"
    parts = [part for part in _parts(kind) if part is not NoneType]
    if len(parts) > 1:
        words = [w for p in parts for w in ([f'"{c}"' for c in choices(p)] or [_kind_text(p)])]
        return f"{', '.join(words[:-1])} or {words[-1]}"
    origin = get_origin(parts[0])
    if origin is not None:
        name = {tuple: "tuple"}.get(origin, "sequence")
        return f"{name} of {_kind_text(get_args(parts[0])[0])}"
    return getattr(parts[0], "__name__", str(parts[0]))


# --------------------------------------------------------------------------------- shared settings

Missing = Literal["error", "drop", "fill", "mask"]
Gaps = Literal["error", "close", "respect", "insert"]
Duplicates = Literal["error", "first", "last", "mean"]
FILL_LIMIT = 24  # rows: a day of hours; a longer hole is more guess than gap
Adapting = Literal["adaptive", "static"]
Transform = Literal["none", "log1p", "asinh", "auto"]
Link = Literal["none", "last", "linear"]
Effort = Literal["quick", "default", "best"]
Schedule = Literal["constant", "annealed"]
DEVICE = 'Where to train: "auto", "cpu" or "cuda".'


@settings(panel=MODEL)
class AheadSettings:
    """From how many rows to forecast how many."""

    window: int | Literal["auto"] = setting(
        default=30,
        doc='Rows that a forecast is made from. "auto" takes as many as linear maps make use of on '
        "validation rows.",
    )
    horizon: int = setting(default=1, doc="Steps ahead to forecast.")


@settings(panel=MODEL)
class IntervalSettings(AheadSettings):
    """How intervals are calibrated."""

    calibration: Adapting = setting(
        default="adaptive",
        doc='Intervals follow the outcomes of earlier forecasts in the table ("adaptive"), or stay '
        'as wide as the validation rows asked for ("static").',
    )


@settings(panel=PROGRESS)
class ForecastingSettings(IntervalSettings):
    """What every forecaster has."""

    verbose: int = setting(default=1, doc="0 shows no progress.")


@settings(panel=TABLE)
class CleaningSettings:
    """What to do about a table with holes."""

    missing: Missing = setting(
        default="error",
        doc='What to do about missing values: "error" stops, "drop" drops their rows, "fill" '
        'repeats the last value, "mask" repeats it too and tells the model where it did; missing '
        "text is a level of its own then.",
    )
    fill_limit: int = setting(
        default=FILL_LIMIT,
        doc='Most rows in a row that missing="fill" fills, or gaps="insert" inserts. Longer holes '
        'are gaps, if gaps="error" does not refuse these.',
    )
    gaps: Gaps = setting(
        default="error",
        doc='What to do about irregular times: "error" stops, "close" takes the rows as '
        'consecutive, "respect" lets no window cross a gap, "insert" inserts missing times with '
        "the last values and respects longer gaps.",
    )
    duplicates: Duplicates = setting(
        default="error",
        doc='What to do about times that occur twice: "error" stops; or keep their "first" row, '
        'the "last", or the "mean" of them.',
    )


@settings(panel=TABLE)
class CalendarSettings(CleaningSettings):
    """Those and the clock as a variable."""

    calendar: str | Sequence[str] = setting(
        default="none",
        doc='Cycles of the clock to add as one variable that is known ahead: "hour", "weekday", '
        '"yearday", or the "days" of the week as categories; "auto" takes the cycles that the '
        'times span at least twice (paper: "none").',
    )
    holidays: str | Sequence[str] = setting(
        default="none",
        doc='Countries (or parts of one, "DE-BY") whose public holidays the calendar tells, by the '
        "library holidays.",
    )


@settings(panel=TABLE)
class TransformSettings:
    """The scale on which the target is modelled."""

    transform: Transform = setting(
        default="none",
        doc='"log1p" models log(1 + y) of a target that is never negative; "asinh" models '
        "asinh((y - median) / spread), for heavy tails on both sides, of the measured inputs too; "
        '"auto" takes the scale on which a linear map errs least on the last training rows (paper: '
        '"none").',
    )
    bounds: Sequence[float | None] | None = setting(
        default=None,
        doc="Least and greatest value that the target can have, such as [0, None]: forecasts, "
        "intervals and scores keep within them.",
    )


@settings(panel=TRAINING)
class SeedSettings:
    """Chance."""

    seed: int = setting(default=0, doc="Seed of all random numbers.")


@settings(panel=TABLE)
class WindowedSettings(TransformSettings, CalendarSettings, ForecastingSettings):
    """Forecasters that look at windows of all variables."""


@settings(panel=TRAINING)
class ComparingSettings(SeedSettings, WindowedSettings):
    """What the methods of a comparison share; each takes what it has an argument for."""

    members: int = setting(default=3, doc="Networks in each ensemble.")
    device: str = setting(default="auto", doc=DEVICE)


ENGINE = '"local", "ray", or the address of a Ray cluster, HOST:PORT.'


@settings(panel=RUNNING)
class RunningSettings:
    """Where jobs are run."""

    engine: str = setting(default="local", doc=ENGINE)
    address: str | None = setting(
        default=None, doc="An existing Ray cluster; without it Ray starts here."
    )
    workers: int = setting(default=1, doc="Processes side by side (engine local).")


@settings(panel=TRAINING)
class NetworkSettings(SeedSettings, WindowedSettings):
    """Ensembles of networks, trained side by side."""

    difference: Literal["none", "auto"] = setting(
        default="none",
        doc='"auto" takes differences of the columns in which ADF and KPSS tests find a unit root.',
        panel=TABLE,
    )
    dropout: float = setting(
        default=0.0, doc="Share of the network's summary that is dropped in training (paper: 0.5)."
    )
    l2: float = setting(default=1e-4, doc="Penalty on the squared weights, added to the mean loss.")
    members: int = setting(
        default=5, doc="Networks in the ensemble, trained from different seeds (paper: 10)."
    )
    device: str = setting(default="auto", doc=DEVICE)


AVERAGING = (
    "Decay of the running mean of the weights, which is what is used; 0 uses the weights as they "
    "are (paper)."
)

# ---------------------------------------------------------------------------------- each forecaster


@settings(panel=TRAINING)
class StepSettings(NetworkSettings):
    """How long networks are trained, told outright."""

    learning_rate: float = setting(default=5e-3, doc="Step size of Adam.")
    batch_size: int = setting(default=64, doc="Windows per training step (paper: 64).")
    max_epochs: int = setting(default=100, doc="Most passes over the training rows.")
    patience: int = setting(
        default=15, doc="Epochs without improvement before a network stops (paper: 10)."
    )


@dataclass(frozen=True)
class Budget:
    """How long networks are trained where the arguments leave it open."""

    learning_rate: float
    batch_size: int
    max_epochs: int
    patience: int
    schedule: Schedule


EFFORTS: Mapping[Effort, Budget] = {
    "quick": Budget(0.015, 128, 8, 6, "annealed"),
    "default": Budget(0.015, 128, 24, 6, "annealed"),
    "best": Budget(0.005, 64, 100, 15, "constant"),
}


def _by_effort(name: str) -> str:
    """Say what an argument is for each effort.

    Examples
    --------
    >>> _by_effort("batch_size")
    'By default 128; 64 with effort="best".'
    """
    values = {effort: getattr(one, name) for effort, one in EFFORTS.items()}
    usual = values.pop("default")
    others = [f'{v} with effort="{effort}"' for effort, v in values.items() if v != usual]
    return f"By default {usual}; {', '.join(others)}."


@settings(panel=TRAINING)
class EffortSettings(NetworkSettings):
    """How long networks are trained, in one word."""

    effort: Effort = setting(
        default="default",
        doc="How much training: sets those of the five arguments below that are not given. "
        '"quick" takes a third of the time of "default" and is for a first look; "best" takes '
        "several times as long and gains about half a per cent of the error on long tables.",
    )
    learning_rate: float | None = setting(
        default=None,
        doc="Step size of Adam, the largest one of a schedule (paper: a grid). "
        + _by_effort("learning_rate"),
    )
    batch_size: int | None = setting(
        default=None, doc="Windows per training step (paper: 64). " + _by_effort("batch_size")
    )
    max_epochs: int | None = setting(
        default=None,
        doc="Most passes over the training rows. "
        + _by_effort("max_epochs")
        + " An annealed run over a short table is stretched.",
    )
    patience: int | None = setting(
        default=None,
        doc="Epochs without improvement before a network stops (paper: 10). "
        + _by_effort("patience"),
    )
    schedule: Schedule | None = setting(
        default=None,
        doc='The step size during a fit: "constant" (paper), or "annealed": it rises in the first '
        "tenth of the steps and falls in a line to zero, and the first half of the epochs read the "
        "latest third of each window only. " + _by_effort("schedule"),
    )


@settings(panel=MODEL)
class MVLSTMSettings(EffortSettings):
    """Settings of `mvlstm.MVLSTM`."""

    hidden_size: int | None = setting(
        default=None,
        doc="Hidden units per variable (paper: 10 to 25). By default 15; of more than 20 variables "
        "each has its share of 300 in all, but 2 at least.",
    )
    layers: int = setting(default=1, doc="Stacked recurrent layers (paper: 1).")
    cell: Literal["lstm", "gru"] = setting(default="lstm", doc='Recurrent cell (paper: "lstm").')
    gates: Literal["full", "variable"] = setting(
        default="full",
        doc='Whether the gates of a variable see all variables ("full", paper) or only their own '
        '("variable", MV-Indep).',
    )
    attention: Literal["bounded", "free"] = setting(
        default="free",
        doc='Scores of the attention over variables: through tanh ("bounded", paper) or as they '
        'are ("free").',
    )
    head: Literal["mixture", "fusion"] = setting(
        default="mixture",
        doc='Combine the forecasts of the variables ("mixture", paper) or their states ("fusion", '
        "MV-Fusion).",
    )
    loss: Literal["nll", "mse", "nll+mse"] = setting(
        default="nll+mse",
        doc='Training loss: negative log-likelihood of the mixture ("nll", paper), squared error '
        'of its mean ("mse"), or both.',
    )
    sigma: float | Literal["learned", "predicted", "calibrated"] = setting(
        default="predicted",
        doc="Standard deviation of the mixture's components, in standard deviations of the "
        'target: a fixed number (paper: 1), one "learned" with the weights, "predicted" for every '
        'component and window (learned where there is no mixture), or "calibrated" on the '
        "validation rows afterwards.",
    )
    target_scale: Literal["standard", "raw"] = setting(
        default="standard",
        doc="Scale that sigma refers to: standard deviations of the target, or its own units.",
    )
    link: Literal["none", "last", "linear", "auto"] = setting(
        default="auto",
        doc="Simple forecast that the network corrects: none (paper), the last value, or a "
        '"linear" map of the latest rows, robust to outliers. With "auto" and five members, four '
        "read the variables sparingly and two of these do without the map, if that forecasts the "
        "validation rows better.",
    )
    isolation: float = setting(
        default=1e-3,
        doc="Penalty on the weights by which other variables reach the gates of a variable (paper: "
        "0). It makes the attention over variables more faithful; a large one approaches "
        'gates="variable". Members without a link get ten times as much.',
    )
    clock_penalty: float = setting(
        default=3e-3,
        doc="Penalty on the weights that read the calendar, by which a network could learn a few "
        "weeks by heart (paper: no calendar).",
    )
    states: Literal["shared", "own"] = setting(
        default="shared",
        doc="What several steps ahead read: all the window's last states, or each step its "
        '"own" of the variables known in advance, too, at the row that it forecasts.',
    )
    l2_sum: bool = setting(
        default=False,
        doc="Add the penalty l2 to the sum of the losses over all windows, as the paper does, "
        "instead of to their mean.",
    )
    averaging: float = setting(default=0.995, doc=AVERAGING)
    finish: float = setting(
        default=0.1,
        doc="Share of the learning rate to continue with from the best weights, once a network has "
        "stopped improving or reached the last fifth of max_epochs, until five epochs no longer "
        "help; 0 stops there (paper).",
    )
    leave_out: float = setting(
        default=0.0,
        doc="Share of the training rows, a stretch of its own, that each network leaves out and "
        "also stops on (paper: 0). It steadies networks on a drifting series; a short one needs "
        "the rows.",
    )


@settings(panel=MODEL)
class LSTMSettings(StepSettings):
    """Settings of `mvlstm.LSTM`."""

    hidden_size: int = setting(default=64, doc="Hidden units per layer.")
    layers: int = setting(default=1, doc="Stacked recurrent layers.")
    loss: Literal["mse", "nll", "nll+mse"] = setting(
        default="nll+mse",
        doc="Training loss: squared error, negative log-likelihood of a normal distribution with a "
        "learned variance, or both.",
    )
    link: Link = setting(
        default="linear",
        doc='Simple forecast that the network corrects: none, the last value, or a "linear" map of '
        "the latest rows, robust to outliers.",
    )
    averaging: float = setting(default=0.995, doc=AVERAGING)


@settings(panel=MODEL)
class RivalNetworkSettings(StepSettings):
    """Networks of other papers."""

    hidden_size: int = setting(default=32, doc="Hidden units (paper: 16 to 512).")
    link: Link = setting(
        default="none",
        doc="Simple forecast that the network corrects: none (paper), the last value, or a "
        '"linear" map of the latest rows, robust to outliers.',
    )
    dropout: float = 0.2
    l2: float = 1e-5
    learning_rate: float = 3e-3
    batch_size: int = setting(
        default=256, doc="Most windows per training step, fewer on a short table (paper: 64)."
    )
    max_epochs: int = 40
    patience: int = 6


DUALSettings: TypeAlias = RivalNetworkSettings
RETAINSettings: TypeAlias = RivalNetworkSettings


@settings(panel=MODEL)
class CLSTMSettings(RivalNetworkSettings):
    """Settings of `mvlstm.CLSTM`."""

    penalties: Sequence[float] | None = setting(
        default=None,
        doc="Penalties to try, in units of the scaled target's squared error; by default eight "
        "from 1 down to 0.001.",
    )
    tolerance: float = setting(
        default=1.0,
        doc="Standard errors by which the squared error of a larger penalty, which keeps fewer "
        "variables, may exceed the least one. 0 takes the least, however many variables it keeps.",
    )
    dropout: float = 0.0


@settings(panel=MODEL)
class ARSettings(WindowedSettings):
    """Settings of `mvlstm.AR`."""


@settings(panel=MODEL)
class ENETSettings(WindowedSettings):
    """Settings of `mvlstm.ENET`."""

    grid: Literal["paper", "extended", "quick"] = setting(
        default="extended",
        doc="Pairs of penalties to try: the paper's 81, which are all large on a standardised "
        'target; these and 1e-4 to 1e-2 as well (144, "extended"); or 18 of the latter ("quick").',
    )


@settings(panel=MODEL)
class TreeSettings(SeedSettings, WindowedSettings):
    """What trees learn."""

    link: Link = setting(
        default="none",
        doc='Grow trees from the values themselves ("none"), their change from the last value '
        '("last"), or from what a linear map leaves ("linear").',
    )


@settings(panel=MODEL)
class RFSettings(TreeSettings):
    """Settings of `mvlstm.RF`."""

    grid: Literal["paper", "quick"] = setting(
        default="paper",
        doc='Depths to try: 3 to 10 ("paper"), or 5 and 10 ("quick"); each with 3, 10, 25, 50, 100 '
        "and 200 trees.",
    )
    max_trees: int = setting(default=200, doc="Most trees (paper: 200).")
    n_jobs: int = setting(
        default=-1,
        doc="Trees grown at the same time; -1 uses every core. Forecasts do not depend on it.",
    )


@settings(panel=MODEL)
class XGTSettings(TreeSettings):
    """Settings of `mvlstm.XGT`."""

    grid: Literal["paper", "quick"] = setting(
        default="paper",
        doc='Settings to try: depths 3 to 10 and six penalties ("paper"), or three of each '
        '("quick").',
    )
    max_rounds: int = setting(default=200, doc="Most trees (paper: 200).")
    learning_rate: float = setting(
        default=0.1, doc="Share of every tree that counts; the paper does not state it."
    )
    n_jobs: int = setting(
        default=-1,
        doc="Threads; -1 uses every core, or a single one if the windows hold at most 100,000 "
        "values, where more threads gain little and wait for one another.",
    )


@settings(panel=MODEL)
class GBTSettings(TreeSettings):
    """Settings of `mvlstm.GBT`."""

    grid: Literal["default", "quick"] = setting(
        default="default", doc="Settings to try: six, or two."
    )
    max_rounds: int = setting(default=300, doc="Most trees.")


@settings(panel=MODEL)
class StateSpaceSettings(TransformSettings, CleaningSettings, ForecastingSettings):
    """Models that filter the whole past."""

    window: int = setting(default=30, doc="Rows skipped at the start.")
    fit_rows: int | None = setting(
        default=None, doc="Fit only to this many of the last training rows; by default to all."
    )
    max_iterations: int = setting(default=50, doc="Most iterations of the maximisation.")


@settings(panel=MODEL)
class STRXSettings(StateSpaceSettings):
    """Settings of `mvlstm.STRX`."""


@settings(panel=MODEL)
class ARIMAXSettings(StateSpaceSettings):
    """Settings of `mvlstm.ARIMAX`."""

    order: tuple[int, int, int] | None = setting(
        default=None, doc="Orders p, d and q; by default found from the training rows."
    )


@settings(panel=MODEL)
class PersistenceSettings(CleaningSettings, ForecastingSettings):
    """Settings of `mvlstm.Persistence`."""

    window: int = setting(
        default=30, doc="Rows skipped at the start, so that forecasts are for the rows of a model."
    )


@settings(panel=MODEL)
class SeasonalPersistenceSettings(PersistenceSettings):
    """Settings of `mvlstm.SeasonalPersistence`."""

    period: int | Literal["auto"] = setting(
        default="auto",
        doc='Rows of a cycle. "auto" tries a day, a week and the like, as the step of the times '
        "suggests, and the strongest cycle of the autocorrelation; the one with the least error on "
        "the training rows is taken.",
    )
