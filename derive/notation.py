"""The notation: what SymPy lacks for writing a network down, and no more.

A tensor is a SymPy symbol that carries *named axes*; it broadcasts by name, so there is no
dimension number and no keepdim to get wrong. An axis stands for its own size: ``Sum(x, N) / N`` is
the mean over ``N``. ``exp``, ``log``, ``sqrt``, ``Piecewise`` and all other pointwise functions are
SymPy's own.

    >>> N, C = Axis("N"), Axis("C")
    >>> x = Tensor("x", (N, C))
    >>> x - Sum(x, N) / N
    x - Sum(x, N)/N
    >>> [str(axis) for axis in axes_of(Sum(x, N))]
    ['C']

The array nodes are `Sum`, `Max`, `OneHot` and `ArgMax` (which only derivatives contain). The rules
for their adjoints are in ``rules.py``.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from sympy import Atom, Basic, Expr, Integer, Pow, Rational, S, Symbol
from sympy.core.cache import cacheit

from derive.errors import NotationError

RESERVED = frozenset(
    {"torch", "math", "Tensor", "NamedTuple", "self", "ctx", "None", "True", "False"}
)


def checked_name(name: object, what: str) -> str:
    """``name`` if it can stand in code as it is, else a `NotationError`; nothing else may reach
    a template.
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise NotationError(
            f"{name!r} cannot be the name of {what}",
            "a name is a Python identifier: letters, digits and _, not a keyword",
        )
    if name in RESERVED or name.startswith("_"):
        raise NotationError(
            f"{name!r} cannot be the name of {what}",
            "names that begin with _ and "
            + ", ".join(sorted(RESERVED - {"None", "True", "False"}))
            + " are taken by the generated code",
        )
    return name


class Axis(Symbol):
    """A named axis, which is also the positive integer symbol of its own size.

    ``Axis("N")`` written twice is the same axis.
    """

    __slots__ = ()

    def __new__(cls, name: str) -> Axis:
        return Symbol.__xnew__(cls, checked_name(name, "an axis"), integer=True, positive=True)

    def __getnewargs_ex__(self):
        return (self.name,), {}


class Tensor(Symbol):
    """A named tensor, seen along ``axes``.

    ``home`` are the axes under which it was declared, in the order of its dimensions; they differ
    from ``axes`` only where an axis was renamed (the same tensor met a second time along another
    axis). ``role`` is one of 'input', 'label', 'scalar', 'statement', 'adjoint'.
    """

    __slots__ = ("axes", "home", "role")

    def __new__(cls, name, axes=(), home=None, role="input", **assumptions):
        assumptions.setdefault("real", True)
        self = Symbol.__xnew__(cls, name, **assumptions)
        self.axes = tuple(axes)
        self.home = tuple(axes if home is None else home)
        self.role = role
        return self

    def __getnewargs_ex__(self):
        return (self.name, self.axes, self.home, self.role), self._assumptions_orig

    def _hashable_content(self):
        along = (
            *tuple(axis.name for axis in self.axes),
            "of",
            *tuple(axis.name for axis in self.home),
        )
        return (self.name, self.role, " ".join(along), *self._assumptions0)

    @cacheit
    def sort_key(self, order=None):
        """Tells the same tensor along other axes apart, so that printing has one order only."""
        return self.class_key(), (1, (str(self), self.role)), S.One.sort_key(), S.One

    def along(self, axes: Iterable[Axis]) -> Tensor:
        """The same tensor, met along other axes."""
        return Tensor(self.name, tuple(axes), self.home, self.role, **self._assumptions_orig)

    @property
    def at_home(self) -> Tensor:
        """The tensor as it was declared."""
        return self.along(self.home)

    def _sympystr(self, printer):
        if self.axes == self.home:
            return self.name
        return f"{self.name}[{', '.join(axis.name for axis in self.axes)}]"


class Along(Atom):
    """The axes a node binds. An atom, so that substituting a *size* never touches a bound axis."""

    __slots__ = ("axes",)

    def __new__(cls, axes: Iterable[Axis]) -> Along:
        self = super().__new__(cls)
        self.axes = tuple(axes)
        return self

    def __getnewargs__(self):
        return (self.axes,)

    def _hashable_content(self):
        return tuple(axis.name for axis in self.axes)

    def _sympystr(self, printer):
        return ", ".join(axis.name for axis in self.axes)


class ArrayNode(Expr):
    """A node that knows about axes: ``args`` are the operand and the axes it is taken along."""

    is_commutative = True
    is_real = True

    def __new__(cls, operand, *axes, **numbered):
        if numbered:
            raise NotationError(
                f"{cls.__name__} has no {next(iter(numbered))}=",
                f"name the axis: {cls.__name__}(x, N)",
            )
        if len(axes) == 1 and isinstance(axes[0], Along):  # SymPy rebuilds a node from its args
            return Expr.__new__(cls, operand, axes[0])
        operand = _expression(operand, cls.__name__)
        if not axes:
            raise NotationError(
                f"{cls.__name__} of {operand} names no axis", f"write {cls.__name__}({operand}, N)"
            )
        for axis in axes:
            if not isinstance(axis, Axis):
                raise NotationError(
                    f"{cls.__name__}(..., {axis}): {axis} is not an axis",
                    'axes are named, not numbered: N = Axis("N")',
                )
        if len(set(axes)) != len(axes):
            raise NotationError(f"{cls.__name__} takes the same axis twice", "name each axis once")
        cls._check(operand, axes)
        return cls.over(operand, axes)

    @classmethod
    def over(cls, operand, axes: Iterable[Axis]) -> Expr:
        """The node itself, in canonical order of its axes and unchecked: for the machinery, not
        for users.
        """
        return Expr.__new__(cls, operand, Along(sorted(axes, key=lambda axis: axis.name)))

    @classmethod
    def _check(cls, operand, axes) -> None:
        """Refuse what cannot be meant."""

    @property
    def operand(self) -> Expr:
        return self.args[0]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes the node is taken along."""
        return self.args[1].axes

    def _sympystr(self, printer):
        return (
            f"{type(self).__name__}({printer._print(self.operand)}, {printer._print(self.args[1])})"
        )


class Reduction(ArrayNode):
    """A node that removes the axes it is taken along."""

    @classmethod
    def _check(cls, operand, axes):
        missing = [axis.name for axis in axes if axis not in axes_of(operand)]
        if missing:
            has = ", ".join(axis.name for axis in ordered(axes_of(operand))) or "none"
            raise NotationError(
                f"{cls.__name__}({operand}, {missing[0]}): there is no axis {missing[0]} in it",
                f"the axes of {operand} are: {has}",
            )


class Sum(Reduction):
    """``Sum(e, *axes)``: the sum of ``e`` along the axes. Source: the sigma sign."""

    def _eval_is_positive(self):
        return self.operand.is_positive

    def _eval_is_nonnegative(self):
        return self.operand.is_nonnegative


class Max(Reduction):
    """``Max(e, axis)``: the largest entry along one axis; of equals the first counts, as in
    ``torch.max(dim)``.
    """

    def _eval_is_positive(self):
        return self.operand.is_positive

    @classmethod
    def _check(cls, operand, axes):
        if len(axes) != 1:
            raise NotationError("Max takes one axis", "for two axes write Max(Max(e, W), H)")
        super()._check(operand, axes)


class ArgMax(Reduction):
    """``ArgMax(e, axis)``: the index of the first largest entry.

    Derivatives of `Max` contain it.
    """

    is_integer = True


class OneHot(ArrayNode):
    """``OneHot(labels, C)``: 1 where the index along ``C`` equals the label, else 0."""

    is_integer = True
    is_nonnegative = True

    @classmethod
    def _check(cls, operand, axes):
        if len(axes) != 1:
            raise NotationError("OneHot takes one axis", "write OneHot(labels, C)")
        if not (isinstance(operand, Tensor) and operand.role == "label"):
            raise NotationError(
                f"OneHot({operand}, {axes[0]}): {operand} is not a label",
                f"declare it as integers: {operand} = Label(N)",
            )

    @property
    def axis(self) -> Axis:
        return self.axes[0]


class Declaration:
    """What stands right of the ``=`` where a class body declares a tensor; its name is the left-
    hand side.
    """

    role = ""

    def __init__(self, *axes: Axis):
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
    """``x = Input(N, C)``: a differentiable tensor; ``Input()`` is a scalar tensor."""

    role = "input"


class Label(Declaration):
    """``labels = Label(N)``: integers that index an axis, met as ``OneHot(labels, C)``."""

    role = "label"

    def named(self, name: str) -> Tensor:
        return Tensor(checked_name(name, "a label"), self.axes, role="label", integer=True)


class Scalar(Declaration):
    """``eps = Scalar(1e-5)``: a number with a default, an argument of the generated function,
    not differentiated.
    """

    role = "scalar"

    def __init__(self, default: float):
        super().__init__()
        try:
            number = None if isinstance(default, (bool, str)) else float(default)
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None or not math.isfinite(number):
            raise NotationError(
                f"Scalar({default!r}): the default is not a finite number",
                "write eps = Scalar(1e-5)",
            )
        self.default = int(number) if isinstance(default, int) else number


class Broadcast(ArrayNode):
    """``Broadcast(e, K)``: ``e`` repeated along ``K``. It says that two sides with different axes
    are meant.

    Only a mark for the reader and for the check of sums: by name, everything broadcasts already.
    """

    def _eval_is_positive(self):
        return self.operand.is_positive


def Rename(e, old: Axis, new: Axis) -> Expr:
    """``Rename(x, N, M)``: the same tensor along ``M`` instead of ``N``: pairs, or the keys of an
    attention.

    ``N`` and ``M`` have the same size from then on.
    """
    e = _expression(e, "Rename")
    for axis in (old, new):
        if not isinstance(axis, Axis):
            raise NotationError(f"Rename: {axis!r} is not an axis", 'axes are named: M = Axis("M")')
    axes = axes_of(e)
    if old not in axes:
        has = ", ".join(axis.name for axis in ordered(axes)) or "none"
        raise NotationError(
            f"Rename({e}, {old}, {new}): there is no axis {old} to rename", f"the axes are: {has}"
        )
    if new in axes:
        raise NotationError(
            f"Rename({e}, {old}, {new}): {new} is an axis of it already",
            "choose an axis that it lacks",
        )
    return renamed(e, {old: new})


def _expression(value, where: str) -> Expr:
    if isinstance(value, Declaration):
        value._operator()
    if isinstance(value, (bool, str)) or not isinstance(value, (Expr, int, float)):
        raise NotationError(
            f"{where} of {value!r}: that is not an expression",
            "write it in tensors and SymPy functions",
        )
    return value if isinstance(value, Expr) else Rational(str(value))


def ordered(axes: Iterable[Axis]) -> list[Axis]:
    return sorted(axes, key=lambda axis: axis.name)


@lru_cache(maxsize=65536)
def axes_of(e: Basic) -> frozenset[Axis]:
    """The axes along which ``e`` varies.

    An axis that stands for its size is a number and does not count.
    """
    if isinstance(e, Tensor):
        return frozenset(e.axes)
    if isinstance(e, Reduction):
        return axes_of(e.operand) - frozenset(e.axes)
    if isinstance(e, (OneHot, Broadcast)):
        return axes_of(e.operand) | frozenset(e.axes)
    return frozenset().union(*map(axes_of, e.args)) if e.args else frozenset()


@cacheit
def _has_tensor(e: Basic) -> bool:
    return isinstance(e, Tensor) or any(map(_has_tensor, e.args))


def is_number_or_size(e: Basic) -> bool:
    """Whether ``e`` is built of numbers and sizes alone, so that it is known before any data is."""
    return not _has_tensor(e)


def size_divisors(e: Basic) -> list[Expr]:
    """The expressions in sizes alone that ``e`` divides by."""
    found = {
        power.base
        for power in e.atoms(Pow)
        if is_number_or_size(power.base) and power.base.atoms(Axis) and power.exp.is_negative
    }
    return sorted(found, key=lambda e: e.sort_key())


def tensors_in(e: Basic) -> list[Tensor]:
    """The tensors met in ``e``, each in every way it is met, in canonical order."""
    return sorted(e.atoms(Tensor), key=lambda t: (t.name, str(t)))


def summed(e: Expr, axes: Iterable[Axis], size=lambda axis: axis) -> Expr:
    """``e`` summed along ``axes``; along an axis that ``e`` does not carry that is a multiple."""
    axes = tuple(axes)
    carried = [axis for axis in axes if axis in axes_of(e)]
    for axis in axes:
        if axis not in carried:
            e = e * size(axis)
    coefficient, rest = e.as_coeff_Mul()
    return coefficient * Sum.over(rest, carried) if carried and e != 0 else e


def renamed(e: Basic, mapping: Mapping[Axis, Axis]) -> Basic:
    """``e`` with its free axes renamed; bound axes that would capture a new name step aside.

    Sizes are numbers and keep their names.
    """
    free = axes_of(e) if isinstance(e, Expr) else frozenset()
    mapping = {old: new for old, new in mapping.items() if old != new and old in free}
    if not mapping:
        return e
    if isinstance(e, Tensor):
        axes = tuple(mapping.get(axis, axis) for axis in e.axes)
        if len(set(axes)) != len(axes):
            raise NotationError(
                f"renaming an axis of {e} makes the same axis appear twice", "choose another name"
            )
        return e.along(axes)
    if isinstance(e, OneHot):
        inner = renamed(e.operand, mapping)
        return OneHot.over(inner, [mapping.get(e.axis, e.axis)])
    if isinstance(e, Broadcast):
        return Broadcast.over(renamed(e.operand, mapping), [mapping.get(a, a) for a in e.axes])
    if isinstance(e, Reduction):
        bound, operand = list(e.axes), e.operand
        for old, new in mapping.items():
            if new in bound:  # the old name is free no longer, so the bound axis can take it
                operand = _swapped(operand, old, new)
                bound[bound.index(new)] = old
                mapping = {o: n for o, n in mapping.items() if o != old}
        return type(e).over(renamed(operand, mapping), bound)
    return e.func(*(renamed(arg, mapping) for arg in e.args))


def _swapped(e: Expr, a: Axis, b: Axis) -> Expr:
    swap = {a: b, b: a}
    if isinstance(e, Tensor):
        return e.along(swap.get(axis, axis) for axis in e.axes)
    if isinstance(e, ArrayNode):
        return type(e).over(_swapped(e.operand, a, b), [swap.get(axis, axis) for axis in e.axes])
    return e.func(*(_swapped(arg, a, b) for arg in e.args)) if e.args else e


def with_sizes(e: Expr, sizes: Mapping[Axis, Expr]) -> Expr:
    """``e`` with the sizes of some axes written otherwise; axes as such are untouched."""
    return e.xreplace({axis: Integer(1) * size for axis, size in sizes.items()})
