"""Results made by hand, for figures and reports: no model behind them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from mvlstm.report import FigureBlock, Page, ReportData, Section, TableBlock, render_page
from mvlstm.results import (
    IMPORTANCE_COLUMNS,
    VERDICTS,
    Comparison,
    Evaluation,
    Explanation,
    Forecast,
    Graph,
    History,
)
from mvlstm.results.comparison import COLUMNS

HOSTILE = "<script>alert(1)</script>"
NAMES = ("temp", HOSTILE, "%{x} <b>wind</b> & \u2028 'rain'", "pm")
LAGS = 5


def make_times(rows: int, *, integer: bool = False, tz: str | None = None) -> pd.Index:
    if integer:
        return pd.RangeIndex(100, 100 + rows, name="t")
    return pd.date_range("2024-01-01", periods=rows, freq="h", tz=tz, name="when")


def make_forecast(
    rows: int = 300, horizon: int = 1, *, target: str = "pm", future: bool = False, **kind: object
) -> Forecast:
    """Origins 0 .. rows-1 of a wave; with ``future`` only the last origin, nothing known of it."""
    rng = np.random.default_rng(1)
    times = make_times(rows + 2 * horizon, **kind)
    ahead = np.arange(rows)[:, None] + 1 + np.arange(horizon)
    level = 50 + 30 * np.sin(ahead / 9.0)
    members = level[None] + rng.normal(size=(3, rows, horizon))
    actual = level + 4 * rng.normal(size=level.shape)
    border = np.searchsorted(np.array([0.6, 0.75]), ahead / rows, side="right")
    part = np.array(["train", "validation", "new"])[border]
    shape = (rows, horizon, 3)
    chosen = slice(rows - 1, rows) if future else slice(None)
    return Forecast(
        origin=times[:rows][chosen],
        time=times.to_numpy()[ahead][chosen],
        target=target,
        weights=np.full(shape, 1 / 3)[chosen],
        means=np.moveaxis(members, 0, -1)[chosen],
        variances=np.full(shape, 16.0)[chosen],
        members=members[:, chosen],
        part=np.full((1, horizon), "new") if future else part,
        actual=np.full((1, horizon), np.nan) if future else actual,
        notes=("Closed 2 gaps.",),
    )


def make_explanation(
    forecast: Forecast,
    future: Forecast | None = None,
    *,
    names: tuple[str, ...] = NAMES,
    contributions: int = 12,
    window: int = LAGS,
) -> Explanation:
    """Random attention; contributions that add up to the forecasts of the last origins."""
    rng = np.random.default_rng(2)
    n, horizon = len(names), forecast.horizon
    share = np.sort(rng.dirichlet(np.ones(n)))
    table = pd.DataFrame(
        {
            "variable": names,
            "importance": share,
            "low": share * 0.8,
            "high": share * 1.1,
            "posterior": rng.dirichlet(np.ones(n)),
            "prior": 1 / n,
            "error_increase": share * 30,
            "error_increase_low": share * 20,
            "error_increase_high": share * 40,
            "verdict": ["not distinguishable from noise", *["important"] * (n - 1)],
        }
    ).sort_values("importance", ascending=False, ignore_index=True)
    new = np.flatnonzero((forecast.part == "new").all(axis=1))
    columns = pd.Index(names, name="variable")
    index: pd.Index = forecast.origin[new].rename("origin")
    if horizon > 1:
        steps = range(1, horizon + 1)
        index = pd.MultiIndex.from_product([index, steps], names=["origin", "step"])
    prior, posterior = (
        pd.DataFrame(rng.dirichlet(np.full(n, 3.0), len(index)), index=index, columns=columns)
        for _ in range(2)
    )
    extra = {}
    if contributions:
        rows, means = forecast.origin[-contributions:], forecast.members.mean(axis=0)
        means = means[-contributions:]
        if future is not None:
            means = np.concatenate([means[:-1], future.members.mean(axis=0)])
        background = tuple(40.0 + h for h in range(horizon))
        parts = rng.normal(size=(len(rows), horizon, n, window))
        missing = means - background - parts.sum(axis=(2, 3))
        parts[..., -1, 0] += missing
        place: pd.Index = rows.rename("origin")
        if horizon > 1:
            place = pd.MultiIndex.from_product(
                [place, range(1, horizon + 1)], names=["origin", "step"]
            )
        both = pd.MultiIndex.from_product([names, range(1, window + 1)], names=["variable", "lag"])
        contribution = pd.DataFrame(parts.reshape(-1, n * window), index=place, columns=both)
        extra = {"contribution": contribution, "background": background}
    square = rng.dirichlet(np.ones(n), n)
    return Explanation(
        target=names[-1],
        importance=table[list(IMPORTANCE_COLUMNS)],
        prior=prior,
        posterior=posterior,
        temporal=pd.DataFrame(
            rng.dirichlet(np.ones(window - 1), n),
            index=columns,
            columns=pd.RangeIndex(2, window + 1, name="lag"),
        ),
        leakage=pd.DataFrame(square, index=columns.rename("expert"), columns=columns),
        stability={
            "error_increase_kendall_tau": 0.8,
            "error_increase_top_overlap": 1.0,
            "posterior_kendall_tau": 0.1,
            "posterior_top_overlap": 0.4,
            "order_settled": False,
            "unsettled": [f"{names[1]} ~ {names[2]}"],
        },
        lags=make_lags(names, window),
        n_windows=len(new),
        notes=("Importance is predictive, not causal.",),
        **extra,
    )


def make_lags(names: tuple[str, ...], window: int = LAGS) -> pd.DataFrame:
    """Contributions and attention by variable and lag, with intervals."""
    index = pd.MultiIndex.from_product([names, range(1, window + 1)], names=["variable", "lag"])
    size = np.random.default_rng(3).uniform(1.0, 2.0, len(index))
    columns = {"contribution": size, "low": 0.9 * size, "high": 1.1 * size, "share": size / window}
    return pd.DataFrame(columns, index).reset_index()


def make_history() -> History:
    valid = np.array([[3.0, 2.0, 2.5], [3.5, 2.6, np.nan]])
    return History(valid + 1, valid, np.array([2, 2]), 12.0)


def make_report(
    horizon: int = 1,
    *,
    names: tuple[str, ...] = NAMES,
    contributions: int = 12,
    rows: int = 300,
    window: int = LAGS,
    **kind: object,
) -> ReportData:
    target = names[-1]
    forecast = make_forecast(rows, horizon, target=target, **kind)
    future = make_forecast(rows, horizon, target=target, future=True, **kind)
    known = forecast.take(slice(0, len(forecast) - 1))
    scores = pd.DataFrame(
        {
            "rmse": [4.0, 5.0, 4.2],
            "mae": [3.0, 4.0, 3.2],
            "crps": [2.0, 3.0, 2.2],
            "coverage": [0.91, 0.90, 0.99],
            "skill": [0.2, 0.0, 0.16],
            "n": [75, 75, 75],
        },
        index=["MVLSTM", "persistence", "AR"],
    )
    return ReportData(
        model="MVLSTM",
        forecast=known,
        future=future,
        evaluation=Evaluation(target, scores, "new", (known.origin[-75], known.origin[-1])),
        explanation=make_explanation(
            forecast, future, names=names, contributions=contributions, window=window
        ),
        history=make_history(),
        settings={"window": LAGS, "seed": 0},
        facts={"Period": "2024", "Rows": "300 rows"},
        profile=pd.DataFrame({"variable": names, "lowest": 0.0, "highest": 1.5}),
        command=f"mvlstm fit DATA.csv --target {target}",
        notes=(f"Left out the column {HOSTILE}.",),
    )


def raised(data: ReportData, by: float) -> ReportData:
    """Return the same report on another level."""
    forecast, future = (
        replace(f, means=f.means + by, members=f.members + by, actual=f.actual + by)
        for f in (data.forecast, data.future)
    )
    background = tuple(by + start for start in data.explanation.background)
    explanation = replace(data.explanation, background=background)
    return replace(data, forecast=forecast, future=future, explanation=explanation)


def make_comparison(rows: pd.DataFrame, references: dict[str, str] | None = None) -> Comparison:
    """Rows with the columns of a comparison; those not given are empty."""
    given = rows if "kind" in rows else rows.assign(kind="single")
    whole = given.reindex(columns=COLUMNS)
    whole["top_variables"] = [()] * len(whole)
    return Comparison("y", whole, pd.DataFrame(), references or {}, (0, 9))


def make_graph(names: tuple[str, ...] = ("a", "b", "c", "d"), found: int = 3) -> Graph:
    """A link between every two columns, the strongest ``found`` of them important."""
    pairs = [(one, other) for one in names for other in names if one != other]
    strength = 0.6 * 0.7 ** np.arange(len(pairs))
    verdicts = np.where(np.arange(len(pairs)) < found, VERDICTS[0], VERDICTS[2])
    numbers = {
        "lag": 1,
        "strength": strength,
        "low": strength - 0.05,
        "high": strength + 0.05,
        "p": np.where(verdicts == VERDICTS[0], 0.001, 0.4),
        "verdict": verdicts,
        "detectable": 0.08,
    }
    links = pd.DataFrame(pairs, columns=["from", "to"]).assign(**numbers)
    own = links.iloc[: len(names)].drop(columns=["from", "to"])
    own.insert(0, "variable", names)
    return Graph(links, own, names, names, "family", 500, 3, ("A note.",))


def make_page(*blocks: TableBlock | FigureBlock) -> str:
    """Return a page of tables and figures."""
    return render_page(Page("T", "", [], [Section("blocks", "Results", "", list(blocks))]))


def contribution_sums(explanation: Explanation) -> pd.Series:
    """Return what the contributions of each (origin, step) add up to, background included."""
    table = explanation.contribution
    steps = table.index.get_level_values("step") if table.index.nlevels > 1 else [1] * len(table)
    keys = pd.MultiIndex.from_arrays(
        [table.index.get_level_values("origin"), steps], names=["origin", "step"]
    )
    start = np.array([explanation.background[step - 1] for step in steps])
    return pd.Series(table.to_numpy().sum(axis=1) + start, index=keys)
