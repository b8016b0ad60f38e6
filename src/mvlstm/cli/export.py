"""`mvlstm export`: a model as an ONNX file, for serving without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from mvlstm.cli import options as cli
from mvlstm.cli.session import Output
from mvlstm.cli.words import numbers

EXAMPLE = "Example: mvlstm export model.safetensors --out model.onnx --data air.csv"


@cli.command
def export(
    output: Output,
    model: cli.ModelFile,
    reading: cli.Reading,
    out: Annotated[
        Path, cli.option("The .onnx file to write.", "FILE", name="--out"), cli.Written((".onnx",))
    ] = Path("model.onnx"),
    quantiles: Annotated[
        str | None, cli.option("Quantiles besides 0.05, 0.5 and 0.95, such as 0.1,0.9.", "Q[,Q...]")
    ] = None,
    data: Annotated[
        Path | None,
        cli.option("Table by which the file tells scores and importance too.", "FILE"),
        cli.Read(),
    ] = None,
) -> None:
    """Write a model as one ONNX graph, from raw rows to mean, quantiles and members."""
    levels = numbers("--quantiles", quantiles and [quantiles], float, "0.1,0.9")

    from mvlstm import load

    table = None
    if data is not None:
        from mvlstm.table.files import read_table

        table = read_table(data, **reading)
    load(model).export(out, quantiles=(0.05, 0.5, 0.95, *levels), table=table)
    output.data = {"out": str(out), "bytes": out.stat().st_size}
    output.show(f"wrote {out} ({out.stat().st_size / 1e6:.2f} MB)")
