"""What a class body declares: tensors with and without a gradient, labels and numbers."""

from __future__ import annotations

import math

from sympy import Expr

from derive.language.domain import domain_of
from derive.language.errors import NotationError, shortened
from derive.language.float_range import exact_number
from derive.language.names import checked_name
from derive.language.symbols import Axis, Tensor, check_axes, is_number_or_size

LARGEST_EXACT = 2**53  # up to which float64 holds every whole number


class Declaration:
    """What stands right of the ``=`` where a class body declares a tensor; its name is the left-
    hand side.
    """

    role = ""

    def __init__(self, *axes: Axis, default: float | None = None, broadcast: bool = False):
        self.broadcast = broadcast
        self.default = (
            None
            if default is None
            else _number(f"{type(self).__name__}({shortened(default)})", default)
        )
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

    ``bias = Input(C, default=0)`` is optional, and filled with 0. With ``broadcast=True`` it is
    broadcast by torch's rules: a size may be 1, and leading dimensions may be missing.
    """

    role = "input"


class Given(Declaration):
    """``weight = Given(C)``: a tensor without gradient, such as a mask, weights or a target.

    The generated functions also accept booleans and integers for it. ``Given(C, default=1)`` is
    optional and ``Given(B, T, S, broadcast=True)`` may be broadcast, as for `Input`.
    """

    role = "given"


class Label(Declaration):
    """``labels = Label(N)``: integers that index an axis, used as ``OneHot(labels, C)``.

    With ``Label(N, ignored=-100)`` labels of that value are ignored: their row of the one-hot is 0,
    and so is ``Kept(labels)``, which is 1 for the others. The value is the default of the argument
    ``ignore_index`` of the generated functions.
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

    The default may be an expression in sizes: ``scale = Scalar(1 / sqrt(E))``. ``above``,
    ``at_least``, ``below`` and ``at_most`` restrict its values, each a number or an expression in
    sizes: ``Scalar(0, at_least=0, at_most=1)``, ``Scalar(1, below=C)``. The derivation relies on
    this: the generated functions raise ValueError for other values.
    """

    role = "scalar"

    def __init__(
        self,
        default: float | Expr,
        *,
        above: float | Expr | None = None,
        at_least: float | Expr | None = None,
        below: float | Expr | None = None,
        at_most: float | Expr | None = None,
    ):
        super().__init__()
        self.default: float | Expr = _number_or_sizes(default, "the default")
        limits = {"above": above, "at_least": at_least, "below": below, "at_most": at_most}
        written = f"Scalar({shortened(default)})"
        self.domain = domain_of(
            written,
            {
                kind: None if limit is None else exact(_number_or_sizes(limit, kind))
                for kind, limit in limits.items()
            },
        )
        if self.domain.holds(exact(self.default)) is False:
            raise NotationError(
                f"{written}: the default is not {self.domain}",
                "choose a default that is, or declare a wider domain",
            )

    def named(self, name: str) -> Tensor:
        return Tensor(checked_name(name, "a tensor"), (), role="scalar", **self.domain.signs())


def exact(number: float | Expr) -> Expr:
    """A number as it is written, ``1e-5`` as 1/100000; an expression as it is."""
    return number if isinstance(number, Expr) else exact_number(number)


def _number_or_sizes(value, what: str) -> float | Expr:
    """What a scalar is declared with: a number of Python's, or an expression in sizes."""
    in_sizes = isinstance(value, Expr) and bool(value.atoms(Axis))
    if in_sizes and is_number_or_size(value) and value.free_symbols <= value.atoms(Axis):
        return value
    shown = shortened(value)
    written = f"Scalar({shown})" if what == "the default" else f"Scalar(..., {what}={shown})"
    return _number(written, value, what)


def _number(written: str, value, what: str = "the default") -> float:
    """A default or a bound as a number of Python's; ``written`` is where it stands."""
    try:
        number = None if isinstance(value, (bool, str)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or not math.isfinite(number):
        raise NotationError(
            f"{written}: {what} is not a finite number",
            "write eps = Scalar(1e-5), scale = Scalar(1 / sqrt(E)) with an axis E, or "
            "weight = Given(C, default=1)",
        )
    is_exact = isinstance(value, int) and abs(value) <= LARGEST_EXACT
    return value if is_exact else number
