"""`mvlstm bench`: experiments written as TOML, such as the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mvlstm._words import counted
from mvlstm.cli.files import PAGE_SUFFIXES, check_output
from mvlstm.cli.options import AsJson, Debug, Quiet
from mvlstm.cli.session import session
from mvlstm.cli.words import NamedPage, SpacedLists, whole_numbers, words
from mvlstm.errors import ParameterError

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
WHAT, HOW = "What to run", "How to run it"


@app.command("run", cls=SpacedLists, epilog=RUN_EXAMPLE)
def run(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of records; new ones are added.")
    ],
    suite: Annotated[
        str,
        typer.Option(
            metavar="NAME|FILE.toml",
            help="A TOML file, or the name of one in ./experiments/suites.",
            rich_help_panel=WHAT,
        ),
    ] = "paper",
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="How much each method may tune and train, such as quick. Default: the suite's "
            "first.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    datasets: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME...", help="Only these data sets.", rich_help_panel=WHAT),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME...", help="Only these methods.", rich_help_panel=WHAT),
    ] = None,
    windows: Annotated[
        list[str] | None,
        typer.Option(metavar="T...", help="Only these window lengths.", rich_help_panel=WHAT),
    ] = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME...",
            help="Only these protocols, such as chronological.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    parts: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME...", help="Only these parts.", rich_help_panel=WHAT),
    ] = None,
    repeats: Annotated[
        int | None,
        typer.Option(
            help="Repeats with other seeds, in place of the suite's.", rich_help_panel=WHAT
        ),
    ] = None,
    members: Annotated[
        int | None,
        typer.Option(help="Networks per ensemble, in place of the suite's.", rich_help_panel=WHAT),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random numbers.", rich_help_panel=WHAT)
    ] = None,
    engine: Annotated[
        str,
        typer.Option(metavar="local|ray", help="This machine, or Ray.", rich_help_panel=HOW),
    ] = "local",
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="An existing Ray cluster; without it Ray starts here.",
            rich_help_panel=HOW,
        ),
    ] = None,
    workers: Annotated[
        int, typer.Option(help="Processes side by side (engine local).", rich_help_panel=HOW)
    ] = 1,
    device: Annotated[
        str,
        typer.Option(metavar="auto|cpu|cuda", help="Where to train networks.", rich_help_panel=HOW),
    ] = "auto",
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed", help="Also run jobs that failed before.", rich_help_panel=HOW
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the jobs, run none.", rich_help_panel=HOW)
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Run a suite's jobs that are not done yet; each finished job leaves a durable record.

    Killed or interrupted, the same command goes on where it was.
    """
    with session(as_json=as_json, debug=debug) as output:
        from mvlstm.bench.run import run_suite
        from mvlstm.bench.suite_files import load_suite

        chosen = load_suite(suite, budget=budget, repeats=repeats, members=members, seed=seed)
        chosen = chosen.select(
            datasets=words(datasets),
            methods=words(methods),
            windows=whole_numbers("--windows", windows),
            protocols=words(protocol),
            parts=words(parts),
        )
        if dry_run:
            output.data = {"jobs": [{"key": job.key, **job.to_dict()} for job in chosen.jobs]}
            output.show(*(job.key for job in chosen.jobs))
            return
        summary = run_suite(
            chosen,
            out,
            engine=engine,
            address=address,
            workers=workers,
            device=device,
            retry_failed=retry_failed,
            verbose=0 if quiet else 1,
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
        output.show(*(f"failed: {key}: {reason}" for key, reason in summary.errors.items()))
        if summary.failed or summary.failed_before:
            output.show("Failed jobs are run again with --retry-failed.")
        output.show(f"tables: mvlstm bench tables {out}")
        output.code = 1 if summary.failed or summary.failed_before else 0


@app.command("tables", cls=NamedPage, epilog=TABLES_EXAMPLE)
def tables(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of records.")],
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="[FILE]",
            help="Write an .html page; tables.html if no file is named.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write tables.md and a CSV file for each table."),
    ] = None,
    attention: Annotated[
        bool,
        typer.Option(
            "--attention/--no-attention",
            help="Include histograms of attention, where a suite's study makes them.",
        ),
    ] = True,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Make tables from records, with published numbers if the suite has some; prints Markdown."""
    with session(as_json=as_json, debug=debug) as output:
        if out is not None and out.exists() and not out.is_dir():
            raise ParameterError(f"--out '{out}' is a file; tables are written into a folder.")
        if html is not None:
            check_output(html, suffixes=PAGE_SUFFIXES, inputs=(), option="--html")
        from mvlstm.bench.tables import make_tables

        document = make_tables(folder, attention=attention)
        for problem in document.problems:
            output.warn(problem)
        if out is not None:
            output.data = {"written": [str(path) for path in document.write(out)]}
        if html is not None:
            from mvlstm.report import experiments_page
            from mvlstm.storage import write_atomic

            write_atomic(html, experiments_page(document.title, document.sections))
        if as_json:
            from mvlstm.results._tables import plain

            output.data = {
                "tables": [
                    {"title": t.title, "rows": plain(t.numbers.to_dict(orient="records"))}
                    for t in document.tables
                ]
            }
        if out is None and html is None:
            output.show(document.markdown().rstrip("\n"))
        output.show(*(f"wrote {path}" for path in (out, html) if path is not None))
