"""`mvlstm demo`: the main job on built-in data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mvlstm.cli import options as cli
from mvlstm.cli.explain import importance_table
from mvlstm.cli.session import Output, table

EXAMPLE = "Example: mvlstm demo --out mvlstm-demo"


@cli.command
def demo(
    output: Output,
    out: Annotated[Path, cli.option("Folder for the files it writes.", "FOLDER")] = Path(
        "mvlstm-demo"
    ),
    quiet: cli.Quiet = False,
) -> None:
    """Fit, forecast and explain data whose true drivers are known, in about a minute."""
    from mvlstm.demo import run_demo

    result = run_demo(out, verbose=0 if quiet else 1)

    output.data = result.to_dict()
    importance = result.importance()
    importance["variable"] += importance["truth"].map(lambda t: " *" * (t == "true driver"))
    output.show(
        table(result.scores(), title="Scores on unseen rows"),
        importance_table(importance, title="Importance; * marks the true drivers"),
        f"True drivers: {', '.join(result.drivers)}. Called important: "
        f"{', '.join(result.called_important) or 'none'}.",
    )
    output.notes(result.explanation.notes)
    output.show(*(f"wrote {path}" for path in result.files), f"took {result.seconds:.0f} s")
