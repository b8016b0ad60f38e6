"""`mvlstm explain`: which variables matter, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from mvlstm.cli import options as cli
from mvlstm.cli.pieces import running, tell
from mvlstm.cli.session import Output, first_of, table
from mvlstm.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

EXAMPLE = "Example: mvlstm explain model.safetensors air.csv --out importance.csv"
SHOWN = ("variable", "importance", "low", "high", "error_increase", "posterior", "verdict")
SHARES = ("importance", "low", "high", "posterior")

GROUPS_SHOWN = ("group", "error_increase", "error_increase_low", "error_increase_high", "verdict")
MANY_SHOWN = ("variable", "importance", "low", "high", "error_increase", "series", "verdict")
MANY_SHARES = ("importance", "low", "high", "series")
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
    into: cli.Into = None,
    memory: cli.Memory = None,
    engine: cli.Engine = "local",
    retry: cli.Retry = False,
    quiet: cli.Quiet = False,
) -> None:
    """Rank the variables by how much worse forecasts get without their information.

    With --into, DATA is a Parquet dataset of any number of series, read in pieces and explained
    block by block; the same command again does what is missing.
    """
    told = running(data, into, memory, engine, retry=retry, quiet=quiet)
    if told is not None:
        if time_limit is not None or control != "family":
            raise ParameterError(
                "--time-limit and --control are for one table, and --into for many series. Leave "
                "out one or the other."
            )
        assert into is not None
        _explain_many(output, model, data, into, out, {**told, "effort": effort})
        return

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
    for words in (result.overall, result.sensitivity, order_words(result.stability)):
        if words:
            output.show(words)
    output.notes(result.notes)
    output.wrote(out)


def _explain_many(
    output: Output, model: Path, data: Path, into: Path, out: Path | None, told: dict[str, Any]
) -> None:
    """Explain all series of a dataset; show the table of all together."""
    from mvlstm.many.explaining import explain as explain_many

    found = explain_many(model, data, into, **told)
    tell(output, found, "explained")
    if found.importance is not None:
        output.write_table(out, found.importance)
        output.data = {
            **cast(dict[str, Any], output.data),
            "importance": found.importance.to_dict(orient="records"),
        }
        shown = found.importance[[*MANY_SHOWN]]
        output.show(table(shown, title="Importance over all series", digits=3, shares=MANY_SHARES))
    output.show(f"of each series: {into / 'importance'}")


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
