"""`mvlstm bench`: experiments written as TOML, such as the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mvlstm._words import counted
from mvlstm.cli import options as cli
from mvlstm.cli.session import Output
from mvlstm.cli.words import NamedPage, SpacedLists, numbers, words
from mvlstm.errors import ParameterError, reachable
from mvlstm.settings import RUNNING, MVLSTMSettings

app = typer.Typer(
    help="The paper's experiments, and any others: run jobs, then make tables.",
    epilog="Example: mvlstm bench run --suite paper --budget quick --datasets synthetic --out out",
    no_args_is_help=True,
)
RUN_EXAMPLE = (
    "Example: mvlstm bench run --suite paper --budget quick --datasets synthetic --windows 10 "
    "--out out"
)
TABLES_EXAMPLE = "Example: mvlstm bench tables out --html tables.html"
WHAT = "What to run"


@app.command("run", cls=SpacedLists, epilog=RUN_EXAMPLE)
@cli.command
def run(
    output: Output,
    out: Annotated[Path, cli.option("Folder of records; new ones are added.", "DIR")],
    running: cli.Running,
    place: Annotated[cli.Given, cli.option_group(MVLSTMSettings, "device")],
    suite: Annotated[
        str,
        cli.option(
            "A TOML file, or the name of one in ./experiments/suites.", "NAME|FILE.toml", WHAT
        ),
    ] = "paper",
    budget: Annotated[
        str | None,
        cli.option(
            "How much each method may tune and train, such as quick. Default: the suite's first.",
            "NAME",
            WHAT,
        ),
    ] = None,
    datasets: Annotated[
        list[str] | None, cli.option("Only these data sets.", "NAME...", WHAT)
    ] = None,
    methods: Annotated[list[str] | None, cli.option("Only these methods.", "NAME...", WHAT)] = None,
    windows: Annotated[
        list[str] | None, cli.option("Only these window lengths.", "T...", WHAT)
    ] = None,
    protocol: Annotated[
        list[str] | None,
        cli.option("Only these protocols, such as chronological.", "NAME...", WHAT),
    ] = None,
    parts: Annotated[list[str] | None, cli.option("Only these parts.", "NAME...", WHAT)] = None,
    repeats: Annotated[
        int | None, cli.option("Repeats with other seeds, in place of the suite's.", panel=WHAT)
    ] = None,
    members: Annotated[
        int | None, cli.option("Networks per ensemble, in place of the suite's.", panel=WHAT)
    ] = None,
    seed: Annotated[int | None, cli.option("Seed of all random numbers.", panel=WHAT)] = None,
    retry_failed: Annotated[
        bool, cli.option("Also run jobs that failed before.", panel=RUNNING, name="--retry-failed")
    ] = False,
    dry_run: Annotated[
        bool, cli.option("List the jobs, run none.", panel=RUNNING, name="--dry-run")
    ] = False,
    quiet: cli.Quiet = False,
) -> None:
    """Run a suite's jobs that are not done yet; each finished job leaves a durable record.

    After an interruption, even a kill, the same command continues where it was.
    """
    from mvlstm.bench.run import run_suite
    from mvlstm.bench.suite_files import load_suite

    chosen = load_suite(suite, budget=budget, repeats=repeats, members=members, seed=seed)
    chosen = chosen.select(
        datasets=words(datasets),
        methods=words(methods),
        windows=numbers("--windows", windows, int, "10 20 30"),
        protocols=words(protocol),
        parts=words(parts),
    )
    if dry_run:
        output.data = {"jobs": [{"key": job.key, **job.to_dict()} for job in chosen.jobs]}
        output.show(*(job.key for job in chosen.jobs))
        return
    summary = run_suite(
        chosen, out, **running, **place, retry_failed=retry_failed, verbose=0 if quiet else 1
    )
    for problem in summary.problems:
        output.warn(problem)
    output.data = {
        "folder": str(summary.folder),
        "done": summary.done,
        "failed": summary.failed,
        "skipped": summary.skipped,
        "failed_before": summary.failed_before,
        "errors": summary.errors,
    }
    counts = f"{counted(summary.done, 'job')} done, {summary.failed} failed"
    earlier = f"{summary.skipped - summary.failed_before} were done before"
    lost = f", {summary.failed_before} had failed before" if summary.failed_before else ""
    output.show(f"{counts}, {earlier}{lost}")
    output.show(*(f"failed: {key}: {output.worded(why)}" for key, why in summary.errors.items()))
    if summary.failed or summary.failed_before:
        output.show("Failed jobs are run again with --retry-failed.")
    output.show(f"tables: mvlstm bench tables {out}")
    output.code = 1 if summary.failed or summary.failed_before else 0


@app.command("tables", cls=NamedPage, epilog=TABLES_EXAMPLE)
@cli.command
def tables(
    output: Output,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of records.")] = Path(
        "experiments"
    )
    / "records",
    suite: Annotated[str | None, cli.option("Only the records of this suite.", "NAME")] = None,
    html: Annotated[
        Path | None,
        cli.option(
            "Write an .html page; tables.html if no file is named.", "[FILE]", name="--html"
        ),
        cli.Written(cli.PAGE_SUFFIXES),
    ] = None,
    out: Annotated[
        Path | None, cli.option("Write tables.md and a CSV file for each table.", "DIR")
    ] = None,
    attention: Annotated[
        bool,
        cli.option(
            "Include histograms of attention, where a suite's study makes them.",
            name="--attention/--no-attention",
        ),
    ] = True,
) -> None:
    """Make tables from records, with published numbers if the suite has some; prints Markdown."""
    if out is not None and reachable(out).exists() and not out.is_dir():
        raise ParameterError(f"--out '{out}' is a file; tables are written into a folder.")
    from mvlstm.bench.tables import make_tables

    document = make_tables(folder, suite=suite, attention=attention)
    for problem in document.problems:
        output.warn(problem)
    if out is not None:
        output.data = {"written": [str(path) for path in document.write(out)]}
    if html is not None:
        from mvlstm.report import experiments_page
        from mvlstm.storage import write_atomic

        write_atomic(html, experiments_page(document.title, document.sections))
    if output.as_json:
        from mvlstm.results._tables import plain

        output.data = {
            "tables": [
                {"title": t.title, "rows": plain(t.numbers.to_dict(orient="records"))}
                for t in document.tables
            ]
        }
    if out is None and html is None:
        output.show(document.markdown().rstrip("\n"))
    output.wrote(out, html)
