"""Declarations of a class body: tensors with and without a gradient, labels and numbers."""

from __future__ import annotations

import inspect
import math
import numbers
import sys

from sympy import Expr

from derive.language.axes_meant import declared, names_meant
from derive.language.domain import domain_of
from derive.language.errors import NotationError, is_internal, shortened
from derive.language.float_range import exact_number
from derive.language.names import checked_name
from derive.language.symbols import Axis, Tensor, check_axes, is_number_or_size

LARGEST_EXACT = 2**53  # up to which float64 holds every whole number
SINGLE = 7  # digits that float32 keeps: what was typed before a tensor of torch's rounded it
CALLERS = "the tensors that the function is called with have it"
# What other libraries declare with a tensor, and why it is left out here.
LEFT_OUT = {
    **dict.fromkeys(("dtype", "device", "shape", "size", "layout"), CALLERS),
    "requires_grad": "an Input has a gradient, and a Given has none",
    "name": "the name is what stands left of the =",
}
# What they call what is declared here under another name.
RENAMED = {
    **dict.fromkeys(("ignore_index", "ignore"), "ignored"),
    **dict.fromkeys(("min", "minimum", "ge"), "at_least"),
    **dict.fromkeys(("max", "maximum", "le"), "at_most"),
    "gt": "above",
    "lt": "below",
}


class _Declares(type):
    """Metaclass that explains the arguments of a declaration where they are wrong."""

    def __call__(cls, *args, **given):
        parameters = inspect.signature(cls.__init__)
        try:
            parameters.bind(None, *args, **given)
        except TypeError as error:
            unknown = [name for name in given if name not in parameters.parameters]
            if not unknown:
                raise NotationError(f"{cls.__name__}: {error}", f"write {cls.usage}") from None
            known = {n: v for n, v in given.items() if n not in unknown}
            known |= {RENAMED[n]: given[n] for n in unknown if n in RENAMED}
            named = (f"{name}={value!r}" for name, value in known.items())
            code = f"{cls.__name__}({', '.join([*map(str, args), *named])})"
            why = f": {LEFT_OUT[unknown[0]]}" if unknown[0] in LEFT_OUT else ""
            raise NotationError(
                f"{cls.__name__} has no {unknown[0]}=", f"write {code}{why}"
            ) from None
        return super().__call__(*args, **given)


class Declaration(metaclass=_Declares):
    """The right-hand side of a declaration of a tensor in a class body; its name is the left-hand
    side.
    """

    role = ""
    usage = ""

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
                    _along(type(self).__name__, axes),
                )
        if len(set(axes)) != len(axes):
            twice = next(axis.name for i, axis in enumerate(axes) if axis in axes[:i])
            names = [axis.name for axis in axes]
            names[len(names) - 1 - names[::-1].index(twice)] += "2"
            raise NotationError(
                f"{type(self).__name__} has the axis {twice} twice",
                f"write {type(self).__name__}({', '.join(names)}), with "
                f'{twice}2 = Axis("{twice}2", {twice})',
            )
        written = f"{type(self).__name__}({', '.join(axis.name for axis in axes)})"
        check_axes(axes, written)
        self.axes = axes

    def named(self, name: str) -> Tensor:
        return Tensor(checked_name(name, "a tensor"), self.axes, role=self.role)

    def _operator(self, *_):
        around = _class_that_holds(self)
        if around:
            raise NotationError(
                f"{type(self).__name__}(...) stands in a class that is not a forward",
                f"write class {around}(Forward):",
            )
        raise NotationError(
            f"{type(self).__name__}(...) stands inside an expression",
            f"give it a line and a name of its own: {self.usage}",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _operator
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = _sympy_ = _operator


def _along(kind: str, axes) -> str:
    """A remedy for a declaration with an argument that is not an axis."""
    names = names_meant(axes)
    if names:
        return f"write {kind}({', '.join(names)}), with {declared(names)} above the class"
    return f"name every dimension: write {kind}(N, C), with {declared(['N', 'C'])} above the class"


def _class_that_holds(declaration: Declaration) -> str:
    """The name of the class under definition that has that declaration and is not a forward."""
    frame = sys._getframe(1)
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or type(frame.f_locals) is not dict or "__qualname__" not in frame.f_locals:
        return ""
    is_its = any(value is declaration for value in frame.f_locals.values())
    return frame.f_code.co_name if is_its else ""


class Input(Declaration):
    """``x = Input(N, C)``: a differentiable tensor; ``Input()`` is a scalar tensor.

    ``bias = Input(C, default=0)`` is optional, and filled with 0. With ``broadcast=True`` it is
    broadcast by torch's rules: a size may be 1, and leading dimensions may be missing.
    """

    role = "input"
    usage = "x = Input(N, C)"


class Given(Declaration):
    """``weight = Given(C)``: a tensor without gradient, such as a mask, weights or a target.

    The generated functions also accept booleans and integers for it. ``Given(C, default=1)`` is
    optional and ``Given(B, T, S, broadcast=True)`` may be broadcast, as for `Input`.
    """

    role = "given"
    usage = "weight = Given(C)"


class Label(Declaration):
    """``labels = Label(N)``: integers that index an axis, used as ``OneHot(labels, C)``.

    With ``Label(N, ignored=-100)`` labels of that value are ignored: their row of the one-hot is 0,
    and so is ``Kept(labels)``, which is 1 for the others. The value is the default of the argument
    ``ignore_index`` of the generated functions.
    """

    role = "label"
    usage = "labels = Label(N)"

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
    usage = "groups = Size(G)"

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
    usage = "eps = Scalar(1e-5)"

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
    """A number exactly as written, ``1e-5`` as 1/100000; an expression unchanged."""
    return number if isinstance(number, Expr) else exact_number(number)


def _number_or_sizes(value, what: str) -> float | Expr:
    """The default or bound of a scalar: a Python number, or an expression in sizes."""
    in_sizes = isinstance(value, Expr) and bool(value.atoms(Axis))
    if in_sizes and is_number_or_size(value) and value.free_symbols <= value.atoms(Axis):
        return value
    shown = shortened(value)
    written = f"Scalar({shown})" if what == "the default" else f"Scalar(..., {what}={shown})"
    return _number(written, value, what)


def _number(written: str, value, what: str = "the default") -> float:
    """A default or a bound as a Python float; ``written`` is the declaration for the message."""
    number = _float(value)
    is_text = isinstance(value, (str, list, tuple)) or is_array(value)
    if number is None or is_text or isinstance(value, bool) or not math.isfinite(number):
        raise NotationError(
            f"{written}: {what} is not a finite number", _as_number(written, value, number)
        )
    is_exact = isinstance(value, int) and abs(value) <= LARGEST_EXACT
    return value if is_exact else number


def _float(value) -> float | None:
    """The number in a value, which may be text, or the only entry of a list or a tensor."""
    try:
        return float(value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None


def _as_number(written: str, value, number: float | None) -> str:
    """A remedy for a default that is not a Python number."""
    kind = written.partition("(")[0]
    if kind == "Scalar" and number is not None and math.isfinite(number):
        return f"write Scalar({number:.{SINGLE}g})"
    several = isinstance(value, (list, tuple)) or is_array(value)
    if kind == "Scalar" and several and number is None:
        return "a Scalar is one number; write weight = Given(C) for several, and pass the tensor"
    return (
        "write eps = Scalar(1e-5), scale = Scalar(1 / sqrt(E)) with an axis E, or "
        "weight = Given(C, default=1)"
    )


def is_array(value: object) -> bool:
    """Whether a value is a numpy array or a torch tensor rather than a single number."""
    has_both = hasattr(value, "dtype") and hasattr(value, "shape")
    return has_both and not isinstance(value, numbers.Number)
