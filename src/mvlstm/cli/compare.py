"""`mvlstm compare`: the paper's comparison on the user's own data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

from mvlstm._words import p_text
from mvlstm.cli import options as cli
from mvlstm.cli.session import Output, table
from mvlstm.settings import ComparingSettings

if TYPE_CHECKING:
    from mvlstm.results import Comparison

EXAMPLE = (
    "Example: mvlstm compare air.csv --target pm2.5 --time year,month,day,hour --exclude No "
    "--missing drop --gaps close --methods mvlstm,ar,gbt --window 24"
)

METHODS = "Methods"


Settings = Annotated[cli.Given, cli.option_group(ComparingSettings)]
Split = Annotated[
    cli.Given,
    cli.split_options(
        test="0.2",
        test_help="Rows at the end to score on: 0.2 or 500; with --series, times.",
        valid_help="Rows before them, to choose and calibrate on.",
    ),
]


@cli.command
def compare(
    output: Output,
    data: cli.DataFile,
    columns: cli.Columns,
    split: Split,
    settings: Settings,
    reading: cli.Reading,
    methods: Annotated[
        str,
        cli.option(
            "all, or some of mvlstm, paper, indep, fusion, readable, lstm, dual, retain, clstm, "
            "strx, arimax, rf, xgt, enet, ar, gbt, seasonal. Persistence is always there.",
            "NAME[,NAME...]",
            METHODS,
        ),
    ] = "all",
    budget: Annotated[
        str, cli.option("How much each method may tune and train.", "quick|full", METHODS)
    ] = "quick",
    folds: Annotated[
        int,
        cli.option("1: one split in time. More: rolling origins, each with a fit.", panel=METHODS),
    ] = 1,
    every: Annotated[
        int | None,
        cli.option("Forecast every N rows, models brought up to date meanwhile.", "N", METHODS),
    ] = None,
    refit: Annotated[
        str,
        cli.option(
            "With --every: fit anew, go on training, or fit the linear maps alone.",
            "full|update|link",
            METHODS,
        ),
    ] = "full",
    refit_every: Annotated[
        int | None,
        cli.option("Rows between two of these; by default seven times --every.", "N", METHODS),
    ] = None,
    with_file: Annotated[
        Path | None,
        cli.option(
            "Your own one-step forecasts (columns time and value), as a row.",
            "FILE",
            METHODS,
            name="--with",
        ),
        cli.Read(),
    ] = None,
    out: cli.TableFile = None,
    html: Annotated[
        Path | None, cli.option("Also write an .html page.", "FILE"), cli.Written(cli.PAGE_SUFFIXES)
    ] = None,
    engine: cli.Engine = "local",
    checkpoint: cli.Checkpoint = None,
    quiet: cli.Quiet = False,
) -> None:
    """Fit the paper's methods and plain rivals to the same rows, and score them on unseen ones.

    A method that fails is reported in its row, and the rest go on.
    """
    from mvlstm.evaluate.compare import compare as run
    from mvlstm.evaluate.methods import choose_methods
    from mvlstm.table.files import read_table

    choose_methods(methods)  # a wrong name shows before a large file is read
    own = None if with_file is None else read_table(with_file, **reading)
    rows, named = cli.read_rows(data, reading, columns)
    result = run(
        rows,
        **named,
        **split,
        **settings,
        methods=methods,
        budget=cast(Literal["quick", "full"], budget),  # checked there
        folds=folds,
        every=every,
        refit=cast(Literal["full", "update", "link"], refit),
        refit_every=refit_every,
        own=own,
        own_name="own forecasts" if with_file is None else with_file.stem,
        verbose=0 if quiet else 1,
        engine=engine,
        checkpoint=checkpoint,
    )
    output.write_table(out, result.to_frame())
    if html is not None:
        from mvlstm.report import comparison_page
        from mvlstm.storage import write_atomic

        write_atomic(html, comparison_page(result))

    _show(output, result)
    output.wrote(out, html)


def _show(output: Output, result: Comparison) -> None:
    """Tell the scores, what the methods cost, which failed, and how to read all this."""
    from mvlstm.report.encode import are_days, time_text
    from mvlstm.results.comparison import COSTS, SHOWN

    output.data = [{**row, "notes": list(result.notes)} for row in result.to_records()]
    frame = result.to_frame()
    good = frame[frame["error"].isna()]
    days = are_days(result.period)
    first, last = (time_text(t, days=days) for t in result.period)
    title = f"Scores for {result.target} on unseen rows, {first} to {last}"
    pairs = zip(good["method"], good["kind"], strict=True)
    best = [result.best_on_validation.get(kind) == method for method, kind in pairs]
    texts = ["reference" if one else p_text(p) for p, one in zip(good["dm_p"], best, strict=True)]
    scores = good[list(SHOWN)].assign(dm_p=texts)
    output.show(table(scores, title=title, digits=5))
    output.show(table(good[["method", "kind", *COSTS]], title="Cost, and what they rest on"))
    budgets = dict(zip(good["method"], good["budget"], strict=True))
    output.show(*(f"budget of {method}: {words}" for method, words in budgets.items()))
    for method, error in zip(frame["method"], frame["error"], strict=True):
        if error is not None:
            output.show(f"{method} failed: {output.worded(error)}")
    output.notes(result.notes)
