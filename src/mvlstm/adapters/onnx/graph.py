"""A graph of ONNX under construction, written the way numpy is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

OPSET, IR_VERSION = 21, 10  # onnxruntime 1.18 and later read them
TEXT = np.dtype(object)
Operand: TypeAlias = "Value | NDArray[Any] | float | int"


@dataclass(eq=False)
class Graph:
    """The nodes and constants gathered so far, of which each name is used once."""

    nodes: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    constants: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def input(self, name: str, dtype: DTypeLike, shape: Sequence[int | str]) -> Value:
        """Declare an input; a name in its shape stands for any length."""
        from onnx import helper

        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return Value(self, name, np.dtype(dtype))

    def constant(self, array: Any, dtype: DTypeLike) -> Value:
        """Return an array that the graph holds, once however often it is asked for."""
        from onnx import helper, numpy_helper

        made = np.ascontiguousarray(array, dtype=dtype).reshape(np.shape(array))
        held = tuple(made.reshape(-1)) if made.dtype == TEXT else made.tobytes()
        key = (made.dtype.str, made.shape, held)
        if key not in self.constants:
            name = f"c{len(self.constants)}"
            tensor: Any = helper.make_tensor  # declared for numbers alone
            self.constants[key] = (
                tensor(name, 8, made.shape, [str(text).encode() for text in held])
                if made.dtype == TEXT
                else numpy_helper.from_array(made, name)
            )
        return Value(self, self.constants[key].name, made.dtype)

    def several(
        self, kind: str, *operands: Value | None, outputs: int, used: Sequence[int], **more: Any
    ) -> list[Value]:
        """Add a node of several outputs, of which some are used, and return these."""
        from onnx import helper

        start = len(self.nodes)
        names = [f"n{start}_{k}" if k in used else "" for k in range(outputs)]
        given = ["" if one is None else one.name for one in operands]
        while given and not given[-1]:
            given.pop()
        last = max(used) + 1
        self.nodes.append(helper.make_node(kind, given, names[:last], **more))
        first = next(one for one in operands if one is not None)
        return [Value(self, names[k], first.dtype) for k in used]

    def apply(
        self, kind: str, *operands: Value | None, dtype: DTypeLike | None = None, **more: Any
    ) -> Value:
        """Add a node of one output, of the first operand's type unless said otherwise."""
        (made,) = self.several(kind, *operands, outputs=1, used=[0], **more)
        return made if dtype is None else Value(self, made.name, np.dtype(dtype))

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        """Join values along an axis."""
        return parts[0] if len(parts) == 1 else self.apply("Concat", *parts, axis=axis)


def _operator(kind: str, *, swap: bool = False) -> Callable[[Value, Operand], Value]:
    """Return a method that adds a node of two operands, the other one first with ``swap``."""

    def apply(self: Value, other: Operand) -> Value:
        operands = (self._of(other), self) if swap else (self, self._of(other))
        return self.graph.apply(kind, *operands)

    return apply


@dataclass(frozen=True, eq=False)
class Value:
    """What a node gives; operations on it add nodes."""

    graph: Graph
    name: str
    dtype: np.dtype[Any]

    __array_ufunc__ = None  # an array on the left leaves the operation to this class

    def _of(self, other: Operand) -> Value:
        return other if isinstance(other, Value) else self.graph.constant(other, self.dtype)

    __add__, __radd__ = _operator("Add"), _operator("Add", swap=True)
    __sub__, __rsub__ = _operator("Sub"), _operator("Sub", swap=True)
    __mul__, __rmul__ = _operator("Mul"), _operator("Mul", swap=True)
    __truediv__, __rtruediv__ = _operator("Div"), _operator("Div", swap=True)
    __mod__, __matmul__ = _operator("Mod"), _operator("MatMul")
    least, most = _operator("Min"), _operator("Max")  # the smaller and the larger of two

    def __lt__(self, other: Operand) -> Value:
        return self.graph.apply("Less", self, self._of(other), dtype=bool)

    def equals(self, other: Any) -> Value:
        """Compare element by element."""
        return self.graph.apply("Equal", self, self._of(other), dtype=bool)

    def where(self, one: Value, other: Operand) -> Value:
        """Take one value where this is true, and another where it is not."""
        return self.graph.apply("Where", self, one, one._of(other), dtype=one.dtype)

    def map(self, kind: str, **more: Any) -> Value:
        """Apply a function of one operand, such as Tanh."""
        return self.graph.apply(kind, self, **more)

    def sinh(self) -> Value:
        """Take the hyperbolic sine, which onnxruntime has in single precision only."""
        return (self.map("Exp") - (0.0 - self).map("Exp")) * 0.5

    def asinh(self) -> Value:
        """Take the inverse of the hyperbolic sine."""
        size = self.map("Abs")
        return self.map("Sign") * (size + (size * size + 1.0).map("Sqrt")).map("Log")

    def clip(self, low: float, high: float) -> Value:
        """Bring values between two limits."""
        return self.most(low).least(high)

    def cast(self, dtype: DTypeLike) -> Value:
        """Change the type of number."""
        from onnx import helper

        if self.dtype == np.dtype(dtype):
            return self
        to = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.graph.apply("Cast", self, dtype=dtype, to=to)

    def _axes(self, axes: Sequence[int]) -> Value:
        return self.graph.constant(list(axes), np.int64)

    def total(self, *axes: int, kind: str = "Sum", keep: bool = False) -> Value:
        """Add up along axes; or take their Max or Min."""
        return self.graph.apply(f"Reduce{kind}", self, self._axes(axes), keepdims=int(keep))

    def spread(self, *axes: int) -> Value:
        """Insert axes of length one."""
        return self.graph.apply("Unsqueeze", self, self._axes(axes))

    def squeezed(self, *axes: int) -> Value:
        """Leave out axes of length one."""
        return self.graph.apply("Squeeze", self, self._axes(axes))

    def reshaped(self, *shape: int) -> Value:
        """Lay out anew; 0 keeps a length, -1 takes what is left."""
        return self.graph.apply("Reshape", self, self._axes(shape))

    def moved(self, *axes: int) -> Value:
        """Put axes into another order."""
        return self.graph.apply("Transpose", self, perm=list(axes))

    def cut(self, axis: int, start: int, stop: int | None = None) -> Value:
        """Take a stretch along an axis."""
        end = np.iinfo(np.int64).max if stop is None else stop
        return self.graph.apply("Slice", self, *(self._axes([n]) for n in (start, end, axis)))

    def take(self, axis: int, places: Sequence[int]) -> Value:
        """Take places along an axis, in this order."""
        return self.graph.apply("Gather", self, self._axes(places), axis=axis)
