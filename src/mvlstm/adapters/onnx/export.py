"""`model.export`: a fitted model as one file that onnxruntime runs, described in its metadata."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mvlstm._version import __version__
from mvlstm.adapters.onnx.graph import IR_VERSION, OPSET, Graph, Value
from mvlstm.adapters.onnx.inputs import BATCH, Described, Seen, seen
from mvlstm.adapters.onnx.linear import mapped
from mvlstm.adapters.onnx.networks import say
from mvlstm.adapters.onnx.outputs import Normals, forecasts, scaled_up
from mvlstm.errors import ParameterError, is_number, load_extra
from mvlstm.model.fitted import Fitted
from mvlstm.model.learned import Form, LagForm, LinearForm, NetworkForm
from mvlstm.problem.preparation import FARTHEST
from mvlstm.storage import write_atomic

SCHEMA = 1
FORMAT = "mvlstm.forecast"  # the key of the description among the file's metadata
LEVELS = (0.05, 0.5, 0.95)
LOWEST = 0.001  # level of a quantile: those beyond need more digits than the graph has
TREES = "its trees are no network"
PAST = "it forecasts from the whole past of a table, and not from a window"
OTHER = "it is not one of the methods that have one"
REASONS = {"RF": TREES, "XGT": TREES, "GBT": TREES, "STRX": PAST, "ARIMAX": PAST}


def export(
    model: Any, fitted: Fitted, path: str | Path, *, quantiles: Sequence[float], table: Any = None
) -> None:
    """Write a fitted model to an ``.onnx`` file, whole or not at all."""
    load_extra("onnx", "An export", "export")
    import onnx
    from onnx import helper

    levels, form, graph = _levels(quantiles), _form(fitted), Graph()
    found, inputs = _whole(graph, fitted, form, levels)
    outputs = [_named(graph, name, value) for name, value in found.items()]
    held = list(graph.constants.values())
    body = helper.make_graph(graph.nodes, "mvlstm", graph.inputs, outputs, held)
    made = helper.make_model(
        body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    made.producer_name, made.producer_version = "mvlstm", __version__
    made.doc_string = f"Forecasts of '{fitted.layout.target}' by {fitted.name}"
    told = _description(model, fitted, inputs, levels, table)
    helper.set_model_props(made, {FORMAT: json.dumps(told, allow_nan=False)})
    onnx.checker.check_model(made, full_check=True)
    write_atomic(path, made.SerializeToString())


def _levels(quantiles: Sequence[float]) -> tuple[float, ...]:
    several = np.ndim(quantiles) == 1 and len(quantiles) > 0
    if not several or not all(is_number(q) and LOWEST <= q <= 1 - LOWEST for q in quantiles):
        raise ParameterError(
            f"quantiles={quantiles!r} must be one or more numbers from {LOWEST} to {1 - LOWEST}, "
            "such as [0.05, 0.5, 0.95]."
        )
    return tuple(sorted({*LEVELS, *(float(q) for q in quantiles)}))


def _form(fitted: Fitted) -> Form:
    """Return what the method computes of a window; refuse one that needs more, and say why."""
    form, reason = fitted.learned.form(), REASONS.get(fitted.name, OTHER)
    rows = fitted.window + fitted.preparation.lead
    if isinstance(form, LagForm) and int(form.lags.max()) >= rows:
        reason = f"its cycle is longer than its window of {fitted.window} rows"
        form = None
    if form is None:
        raise ParameterError(
            f"{fitted.name} has no form as an ONNX graph: {reason}. Export a network, AR or ENET, "
            "or serve this model with mvlstm itself."
        )
    return form


# --------------------------------------------------------------------------------------- the graph


def _whole(
    graph: Graph, fitted: Fitted, form: Form, levels: tuple[float, ...]
) -> tuple[dict[str, Value], Described]:
    """Add everything from raw rows to forecasts; return outputs, and what the inputs hold."""
    preparation = fitted.preparation
    sight, inputs = seen(graph, fitted.layout, preparation, fitted.window, fitted.dtype)
    normals = _normals(form, fitted, sight)
    more = (fitted.calibration, preparation.transform, int(preparation.orders[-1]), levels)
    return forecasts(graph, normals, sight, *more), inputs


def _normals(form: Form, fitted: Fitted, sight: Seen) -> Normals:
    """Return what the method says of the labels."""
    T = fitted.window
    if isinstance(form, LinearForm):
        return Normals(mapped(form.linear, sight.windows, T).spread(0))
    if isinstance(form, LagForm):
        last = T + fitted.preparation.lead - 1
        return Normals(sight.target.take(1, (last - form.lags).tolist()).spread(0))
    return scaled_up(form, say(form, sight.windows), _guess(form, sight.windows, T))


def _guess(form: NetworkForm, windows: Value, window: int) -> Value | None:
    """Return the link's share of the labels (B, H), if it has any."""
    link: Any = form.scale.labels.link
    if link.ridge is not None:
        return mapped(link.ridge, windows, window)
    if link.name == "none":
        return None
    last = windows.cut(1, window - 1).cut(2, -1).squeezed(2).cast(np.float64)
    guess: Value = last * link.scale + np.full(link.horizon, link.center)
    return guess


def _named(graph: Graph, name: str, value: Value) -> Any:
    """Give an output its name, and declare it."""
    from onnx import TensorProto, helper

    graph.nodes.append(helper.make_node("Identity", [value.name], [name]))
    rank = 2 if name == "mean" else 3
    shape = [BATCH, "horizon", {"members": "member", "quantiles": "level"}.get(name, "component")]
    return helper.make_tensor_value_info(name, TensorProto.DOUBLE, shape[:rank])


# ------------------------------------------------------------------------------------ its metadata


def _description(
    model: Any, fitted: Fitted, inputs: Described, levels: tuple[float, ...], table: Any
) -> dict[str, Any]:
    """Return what a reader of the file must know, as plain values."""
    preparation, reference = fitted.preparation, fitted.calibration.reference
    shape = fitted.calibration.shape
    return {
        "schema": SCHEMA,
        "version": __version__,
        "method": fitted.name,
        "target": fitted.layout.target,
        "window": fitted.window,
        "horizon": fitted.horizon,
        "lead": preparation.lead,
        "ahead": preparation.ahead,
        "members": fitted.members,
        "inputs": inputs,
        "quantiles": list(levels),
        "layout": fitted.layout.to_dict(),
        "parts": fitted.parts.to_dict(),
        "transform": preparation.transform.to_plain(),
        "calibration": "adaptive" if fitted.adaptive else "static",
        "shape": None if shape is None else shape.tolist(),
        "limits": _limits(fitted),
        "settings": _plain_settings(model),
        "reference": None if reference is None else reference.to_dict(),
        "notes": list(fitted.notes),
        **_told_by(model, table),
    }


def _limits(fitted: Fitted) -> dict[str, list[float]]:
    """Return by column of numbers between what values there is any use in computing."""
    preparation, layout = fitted.preparation, fitted.layout
    if preparation.series is not None or preparation.transform:
        return {}
    scaler = preparation.scaler
    low, high = (scaler.center + sign * FARTHEST * scaler.scale for sign in (-1.0, 1.0))
    numeric = [name for name in layout.columns if name not in layout.categories]
    places = {name: layout.inputs.index(name) for name in numeric}
    return {name: [float(low[k]), float(high[k])] for name, k in places.items()}


def _plain_settings(model: Any) -> dict[str, Any]:
    """Return the constructor's arguments as JSON can hold them."""
    settings: dict[str, Any] = json.loads(json.dumps(model.get_params(deep=False), default=str))
    return settings


def _told_by(model: Any, table: Any) -> dict[str, Any]:
    """Return scores and importance on a table; none without one."""
    if table is None:
        return {"scores": None, "importance": None}
    evaluation = model.evaluate(table).to_dict()
    scores = {name: evaluation[name] for name in ("part", "period", "scores")}
    importance = model.explain(table, effort="quick", contributions=0).to_dict()["importance"]
    return {"scores": scores, "importance": importance}
