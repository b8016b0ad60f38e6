"""`mvlstm explain`: which variables matter, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mvlstm.cli import options as cli
from mvlstm.cli.session import Output, first_of, table

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

EXAMPLE = "Example: mvlstm explain model.safetensors air.csv --out importance.csv"
SHOWN = ("variable", "importance", "low", "high", "error_increase", "posterior", "verdict")
SHARES = ("importance", "low", "high", "posterior")

GROUPS_SHOWN = ("group", "error_increase", "error_increase_low", "error_increase_high", "verdict")
SERIES_SHOWN = 50  # on a screen; --json has all


@cli.command
def explain(
    output: Output,
    model: cli.ModelFile,
    data: cli.DataFile,
    reading: cli.Reading,
    effort: cli.Effort = "default",
    time_limit: cli.TimeLimit = None,
    control: Annotated[
        Literal["family", "fdr"],
        cli.option(
            "Hold at 5 %: the chance of any false verdict, or the share of false ones among those "
            "found (for hundreds of variables)."
        ),
    ] = "family",
    out: cli.TableFile = None,
    quiet: cli.Quiet = False,
) -> None:
    """Rank the variables by how much worse forecasts get without their information."""
    from mvlstm import load
    from mvlstm.table.files import read_table

    rows = read_table(data, **reading)
    fitted = load(model)
    fitted.verbose = 0 if quiet else 1
    result = fitted.explain(rows, effort=effort, time_limit=time_limit, control=control)
    output.write_table(out, result.to_frame())

    output.data = {**result.to_dict(), "out": None if out is None else str(out)}
    title = f"Importance for {result.target}, {result.n_windows} {result.part} windows"
    output.show(importance_table(result.to_frame(), title=title))
    if result.by_series is not None:
        wide = result.by_series.pivot(index="series", columns="variable", values="importance")
        title = f"Importance within each series{first_of(len(wide), SERIES_SHOWN)}"
        wide = wide[list(result.variables)].head(SERIES_SHOWN).reset_index()
        output.show(table(wide, title=title, digits=3, shares=result.variables))
    if result.groups is not None:
        joint = result.groups[list(GROUPS_SHOWN)]
        output.show(table(joint, title="Variables that move together, and what they add as one"))
    settled = order_words(result.stability)
    if settled:
        output.show(settled)
    output.notes(result.notes)
    output.wrote(out)


def order_words(stability: Mapping[str, Any]) -> str:
    """Say whether the order of the important variables is settled; nothing if there is none."""
    settled = stability.get("order_settled")
    if settled is None:
        return ""
    if settled:
        return "The order of the important variables is settled."
    pairs = ", ".join(stability["unsettled"])
    return f"The order of the important variables is not settled: {pairs} could change places."


def importance_table(frame: pd.DataFrame, *, title: str) -> RenderableType:
    """Draw the columns of an importance table that a person reads first."""
    shown = frame[list(SHOWN)]
    return table(shown, title=title, digits=3, shares=SHARES, beside=("error_increase",))
