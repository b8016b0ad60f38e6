"""`mvlstm evaluate`: scores on unseen rows, with naive forecasts for comparison."""

from __future__ import annotations

from typing import Annotated

from mvlstm.cli import options as cli
from mvlstm.cli.session import Output, first_of, table

EXAMPLE = "Example: mvlstm evaluate model.safetensors air.csv"

SERIES_SHOWN = 50  # on a screen; --json and --out have all
TIMES_SHOWN = 12  # on a screen; --json has up to 100


@cli.command
def evaluate(
    output: Output,
    model: cli.ModelFile,
    data: cli.DataFile,
    reading: cli.Reading,
    since: Annotated[
        str | None,
        cli.option(
            "Score only rows from then on, by period; say whether the model has become worse.",
            "TIME",
        ),
    ] = None,
    out: cli.TableFile = None,
) -> None:
    """Score the model on rows it has not seen, next to naive forecasts.

    These repeat the last value (persistence) and the last cycle, if there is one (seasonal).
    More scores than on the screen are in --json and --out. Series that stay on disk are scored by
    mvlstm forecast --into.
    """
    from mvlstm import load
    from mvlstm.model.monitoring import read_time
    from mvlstm.results.coverage import spread_rows
    from mvlstm.results.evaluation import SCORES_SHOWN
    from mvlstm.table.files import read_table
    from mvlstm.table.spacing import describe_time

    rows = read_table(data, **reading)
    fitted = load(model)
    result = fitted.evaluate(rows, since=since)
    scores = result.scores.rename_axis("model").reset_index()
    output.write_table(out, result.to_rows())

    output.data = {**result.to_dict(), "out": None if out is None else str(out)}
    first, last = result.period
    start = "" if since is None else f" since {describe_time(read_time(fitted.fitted_, since))}"
    title = f"Scores for {result.target} on {result.part} rows{start}, {first} to {last}"
    shown = [*SCORES_SHOWN, "n"]
    output.show(table(scores[["model", *shown]], title=title))
    if result.by_step is not None:
        output.show(table(result.by_step[["step", *shown]], title="Scores by step ahead"))
    if result.paths is not None:
        output.show(table(result.paths, title="Scores of joint paths over all steps"))
    if result.by_series is not None:
        title = f"Scores by series{first_of(len(result.by_series), SERIES_SHOWN)}"
        few = result.by_series[["series", *shown]].head(SERIES_SHOWN)
        output.show(table(few, title=title))
    if result.periods is not None:
        word = str(result.periods.columns[0])  # "from" where times are integers
        title = f"Scores by {'period' if word == 'from' else word}"
        output.show(table(result.periods[[word, *shown]], title=title))
    if result.rolling is not None:
        title = "Rolling coverage of the 90 % interval, and where it should lie"
        output.show(table(spread_rows(result.rolling, TIMES_SHOWN), title=title))
    output.notes(result.notes)
    output.wrote(out)
