"""What a class body declares: tensors with and without a gradient, labels and numbers."""

from __future__ import annotations

import math

from sympy import Expr

from derive.errors import NotationError, shortened
from derive.symbols import Axis, Tensor, check_axes, checked_name, is_number_or_size


class Declaration:
    """What stands right of the ``=`` where a class body declares a tensor; its name is the left-
    hand side.
    """

    role = ""

    def __init__(self, *axes: Axis, default: float | None = None, broadcast: bool = False):
        self.broadcast = broadcast
        self.default = None if default is None else _number(type(self).__name__, default)
        for axis in axes:
            if not isinstance(axis, Axis):
                raise NotationError(
                    f"{type(self).__name__}({axis!r}): {axis!r} is not an axis",
                    'axes are named, not numbered: N = Axis("N")',
                )
        if len(set(axes)) != len(axes):
            raise NotationError(
                f"{type(self).__name__} has the same axis twice",
                "give the second one a name of its own",
            )
        written = f"{type(self).__name__}({', '.join(axis.name for axis in axes)})"
        check_axes(axes, written)
        self.axes = axes

    def named(self, name: str) -> Tensor:
        return Tensor(checked_name(name, "a tensor"), self.axes, role=self.role)

    def _operator(self, *_):
        raise NotationError(
            f"{type(self).__name__}(...) stands inside an expression",
            "give it a line and a name of its own: x = Input(N, C)",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _operator
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = _operator


class Input(Declaration):
    """``x = Input(N, C)``: a differentiable tensor; ``Input()`` is a scalar tensor.

    ``bias = Input(C, default=0)`` may be left out: then it is that number everywhere. With
    ``broadcast=True`` a size may be 1, or a dimension at the front be missing, as torch broadcasts.
    """

    role = "input"


class Given(Declaration):
    """``weight = Given(C)``: a tensor without gradient, such as a mask, weights or a target.

    The generated functions take booleans and integers for it too, as the numbers that they are.
    ``Given(C, default=1)`` may be left out, and ``Given(B, T, S, broadcast=True)`` broadcast, as an
    `Input` may.
    """

    role = "given"


class Label(Declaration):
    """``labels = Label(N)``: integers that index an axis, met as ``OneHot(labels, C)``.

    With ``Label(N, ignored=-100)`` a label of that number picks nothing: its row of the one-hot is
    0, and so is ``Kept(labels)``, which is 1 in the others. The number is the default of an
    argument ``ignore_index`` of the generated functions.
    """

    role = "label"

    def __init__(self, *axes: Axis, ignored: int | None = None):
        super().__init__(*axes)
        if ignored is not None and (isinstance(ignored, bool) or not isinstance(ignored, int)):
            raise NotationError(
                f"Label: the label {ignored!r} that is ignored is not an integer",
                "write labels = Label(N, ignored=-100)",
            )
        self.ignored = ignored

    def named(self, name: str) -> Tensor:
        return Tensor(checked_name(name, "a label"), self.axes, role="label", integer=True)


class Size(Declaration):
    """``groups = Size(G)``: the size of an axis that no input has, an argument of the generated
    function. In the class body the name is the axis itself, which stands for its size.
    """

    role = "size"

    def __init__(self, axis: Axis):
        super().__init__(axis)
        if axis.length is not None:
            raise NotationError(
                f"Size({axis}): {axis} always has {axis.length} entries",
                "leave the argument out",
            )

    @property
    def axis(self) -> Axis:
        return self.axes[0]


class Scalar(Declaration):
    """``eps = Scalar(1e-5)``: a number with a default, an argument of the generated function,
    not differentiated.

    The default may be an expression in sizes: ``scale = Scalar(1 / sqrt(E))``.
    """

    role = "scalar"

    def __init__(self, default: float | Expr):
        super().__init__()
        in_sizes = isinstance(default, Expr) and bool(default.atoms(Axis))
        if in_sizes and is_number_or_size(default) and default.free_symbols <= default.atoms(Axis):
            self.default: float | Expr = default
        else:
            self.default = _number("Scalar", default)


def _number(kind: str, default) -> float:
    """A default as a number of Python's."""
    try:
        number = None if isinstance(default, (bool, str)) else float(default)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or not math.isfinite(number):
        raise NotationError(
            f"{kind}({shortened(default)}): the default is not a finite number",
            "write eps = Scalar(1e-5), scale = Scalar(1 / sqrt(E)) with an axis E, or "
            "weight = Given(C, default=1)",
        )
    exact = isinstance(default, int) and abs(default) <= 2**53
    return default if exact else number
