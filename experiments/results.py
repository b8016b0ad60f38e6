"""RESULTS.md: the tables that a reader wants first, out of all that the records give.

    python -m experiments.results [experiments/records] > RESULTS.md

Every number is that of `mvlstm bench tables experiments/records`, which prints all tables.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from mvlstm.bench.document import Document, Table
from mvlstm.bench.tables import make_tables

RECORDS = Path(__file__).with_name("records")
TITLE = "# Results"
INTRODUCTION = """\
`make results` generates this page from the [records](experiments/records). All other tables (single
networks, windows of 10 and 20, every measure of importance, Granger tests, settings chosen) are printed by
`mvlstm bench tables experiments/records`. [Accuracy](docs/accuracy.md) says what the tables show,
[experiments](docs/experiments.md) how to run them again."""
ACCURACY = """\
Chronological split, a window of 30 rows, one step ahead; the last 20 % of the rows are scored on. Mean ±
standard error over ten seeds; "mean of k" is the mean forecast of k networks or fits. Coverage is that of
the 90 % interval, overall and in its worst month; skill is the share of persistence's RMSE removed. Behind:
RMSE less that of MVLSTM, over paired seeds; p: Diebold-Mariano test, after Holm, that MVLSTM is more
accurate; seconds: to tune and fit."""
ORIGINS = "Fitted anew at each of five origins; mean ± standard error over the origins."
HORIZONS = "RMSE over all steps, from one split in time order."
AUTHORS = """\
Rows and label filter of the authors' notebooks ([the two protocols](docs/experiments.md#the-two-protocols)),
window 30: the package's default and a search on validation rows. The absolute error is that of the mean, as in
the paper (without ±: of the first repeat, whose errors are kept). Single fits of every method of the paper stand next
to its 264 printed numbers in [the paper beside ours](docs/replication.md)."""
ABLATION = """\
The same tools for five networks, on the last 3,000 rows of PM2.5 (2,100 train, 600 are scored on), twelve epochs at
most: a size that a CPU carries. What it says, and what larger runs say, is in
[accuracy](docs/accuracy.md#architecture-or-tools)."""
TRUTH = """\
Series whose links are known (suite `granger`). AUROC is the chance that a true link ranks above a pair
without one (1: all do, 0.5: chance); found: true links that are called important; any false: files in which
any other is. [Importance](docs/importance.md#what-it-finds-where-the-truth-is-known) says what the methods are."""

PRICES = """\
The two protocols of the field for electricity prices, in the suite `epf`; published rows stand beside ours."""


def results(document: Document) -> str:
    """Return the page as Markdown, made of the tables of all records."""
    accuracy = "Suite accuracy"
    cells = find(document, accuracy, "One step ahead", ": every cell")
    origins = find(document, accuracy, "Five rolling origins", ": errors", "RMSE, window 30")
    horizons = find(document, accuracy, "Several steps ahead", ": errors", "RMSE, window 30")
    horizons = [table for table in horizons if ", 24 steps" in table.title]
    ours = find(document, accuracy, "The authors' protocol", ": errors", ", window 30")
    ours = [table for table in ours if "MAE of the median" not in table.title]
    truth = find(document, "Suite granger", "", ": links and verdicts")
    tools = find(document, "Suite ablation, budget short", "The last", "architecture and tools")
    facts = next(one.text[1] for one in document.sections if one.title == accuracy)
    blocks = [TITLE, INTRODUCTION]
    blocks += ["## Accuracy, tests, coverage and time", ACCURACY, facts, *map(of_means, cells)]
    blocks += ["## Rolling origins", ORIGINS, *map(of_means, origins)]
    blocks += ["## Several steps ahead", HORIZONS, *map(of_means, horizons)]
    blocks += ["## The authors' protocol, with the printed numbers", AUTHORS]
    blocks += [table.markdown() for table in ours]
    blocks += ["## Architecture and tools", ABLATION, *(table.markdown() for table in tools)]
    if found := prices(document):
        blocks += ["## Electricity prices", PRICES, *found]
    blocks += ["## Importance on known truth", TRUTH]
    truth += find(document, "Suite granger", "omitted", ": explain and refits")
    blocks += [table.markdown() for table in truth]
    return "\n\n".join(blocks) + "\n"


def prices(document: Document) -> list[str]:
    """Return the text and the tables of each protocol of the suite ``epf``."""
    found = [one for one in document.sections if one.title.startswith("Electricity prices,")]
    return [text for one in found for text in (*one.text, *map(of_whole, one.tables))]


def of_whole(table: Table) -> str:
    """Write a table without the published networks and LEAR models that make an ensemble."""
    kept = table.shown[~table.shown["method"].str.fullmatch(r"(DNN|LEAR) \d+")]
    return replace(table, shown=kept).markdown()


def find(document: Document, suite: str, part: str, kind: str, words: str = "") -> list[Table]:
    """Return the tables with these words in their title, from one section of a suite's part."""
    found: list[Table] = []
    chapter = ""
    for one in document.sections:
        chapter = one.title if one.level == 1 else chapter
        if chapter == suite and one.title.startswith(part) and one.title.endswith(kind):
            found += [table for table in one.tables if words in table.title]
    if not found:
        raise LookupError(f"The records give no table '{words}' in '{part}{kind}' of '{suite}'.")
    return found


def of_means(table: Table) -> str:
    """Write a table without the single networks of what has a mean of several."""
    titles = list(table.shown["method"])
    averaged = {title.partition(", mean of")[0] for title in titles if ", mean of" in title}
    kept = table.shown[~table.shown["method"].isin(averaged)]
    notes = tuple(note for note in table.notes if " are compared with " not in note)
    return replace(table, shown=kept, notes=notes).markdown()


def main(folder: str = str(RECORDS)) -> None:
    """Print the page."""
    sys.stdout.write(results(make_tables(folder, attention=False)))


if __name__ == "__main__":
    main(*sys.argv[1:])
