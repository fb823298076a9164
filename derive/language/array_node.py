"""Base of the array nodes: their axes, and the checks made when a user writes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from sympy import Expr, Float, Piecewise, sympify

from derive.language.axes_meant import names_meant, unknown
from derive.language.declarations import Declaration
from derive.language.entries import EntryReader, Places, Row
from derive.language.errors import NotationError
from derive.language.float_range import exact_number
from derive.language.symbols import Along, Axes, Axis, axes_of, ordered, same_name

Gradients = list[tuple[Expr, Expr]]


def nowhere(node: Expr, upstream: Expr) -> Gradients:
    """The adjoint of a node that is piecewise constant, or cancels: no gradient passes."""
    return []


class ArrayNode(Expr):
    """A node that knows about axes: ``args`` are the operand and the axes it is taken along.

    A subclass states what is peculiar to it: `entry` and `adjoint`, which the proof compares, so
    that neither may be made of the other, and the facts below.
    """

    is_commutative = True
    reason = ""  # for the form of its adjoint, in a few words; without one it is not differentiated
    image: tuple[float, float] | None = None  # bounds of all its entries, whatever the operands are
    is_equivariant = False  # whether permuting the places of an axis permutes its entries alike

    def __init_subclass__(cls, **options: object) -> None:
        """A proof may rest on it, so that each class states it for itself: one that is derived may
        have other entries.
        """
        super().__init_subclass__(**options)
        cls.is_equivariant = vars(cls).get("is_equivariant", False)

    def entry(self, by: EntryReader, at: Places) -> Any:
        """Return the entry at the places ``at``, in the words of the reader ``by``."""
        raise NotImplementedError(f"{type(self).__name__} does not define its entries")

    def adjoint(self, upstream: Expr) -> Gradients:
        """Return the operands that a gradient flows to, each with its gradient *before* anything
        is summed: the caller sums over the axes that an operand lacks.

        ``upstream`` is the gradient of the node, an expression along its axes at most: along an
        axis that it lacks it is the same everywhere.
        """
        raise NotImplementedError(f"{type(self).__name__} has no adjoint")

    @property
    def chooses_from(self) -> tuple[Expr, ...]:
        """Expressions of which every entry of the node is one, so that it has their sign and lies
        within their bounds; empty where it is computed.
        """
        return ()

    def _eval_is_positive(self):
        return _in_common(e.is_positive for e in self.chooses_from)

    def _eval_is_nonnegative(self):
        return _in_common(e.is_nonnegative for e in self.chooses_from)

    def row(self, by: EntryReader, at: Places) -> Row:
        """The entries of the operand at ``at`` and further places."""
        return lambda more: by.at(self.operand, {**at, **more})

    def __new__(cls, operand: Expr | float, *axes: Axis, **numbered: object) -> Expr:
        if numbered:
            raise NotationError(
                f"{cls.__name__} has no {next(iter(numbered))}=",
                f"write {named(cls.__name__, operand, axes)}: tensors broadcast by the names of "
                "their axes, so that no dimension is kept",
            )
        if axes and isinstance(axes[0], Along):  # SymPy rebuilds a node from its args
            return cls.over(operand, *(along.axes for along in axes))
        operand = checked_operand(cls.__name__, operand, axes, cls._instead)
        cls._check(operand, axes)
        return cls.over(operand, axes)

    @classmethod
    def over(cls, operand: Expr, axes: Iterable[Axis]) -> Expr:
        """Build the node itself, its axes in canonical order, unchecked: for internal code, not for
        users.
        """
        return Expr.__new__(cls, operand, Along(ordered(axes)))

    @classmethod
    def _instead(cls, operand, axes) -> str:
        """The remedy where one of ``axes`` is not an axis, or where none are given."""
        return along_axes(cls.__name__, operand, axes)

    @classmethod
    def _check(cls, operand, axes) -> None:
        """Raise `NotationError` for an operand or axes that make no sense."""

    def _eval_is_real(self):  # not ``is_real = True``, which no kind of node could take back
        return True

    def has(self, *patterns: object) -> bool:
        """Like SymPy's ``has``, but a choice inside does not count: its condition varies along axes
        that the node binds. ``piecewise_fold``, the only caller that asks, would move it out.
        """
        return patterns != (Piecewise,) and super().has(*patterns)

    @property
    def operand(self) -> Expr:
        return self.args[0]

    @property
    def operands(self) -> tuple[Expr, ...]:
        """All operands of the node."""
        return self.args[:1]

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes the node is taken along."""
        return self.args[1].axes

    @property
    def binds(self) -> tuple[Axis, ...]:
        """The axes of the operand that end inside of the node."""
        return ()

    @property
    def brings(self) -> tuple[Axis, ...]:
        """The axes that the node has and its operand need not have."""
        return ()

    @property
    def free_axes(self) -> frozenset[Axis]:
        return (axes_of(self.operand) - frozenset(self.binds)) | frozenset(self.brings)

    @property
    def inside(self) -> frozenset[Axis]:
        """The axes along which its operands are evaluated."""
        return axes_of(self.operand) | frozenset(self.binds)

    def around(self, operand: Expr) -> frozenset[Axis]:
        """The axes along which one of its operands is evaluated."""
        return self.inside

    def on(self, operand: Expr) -> Expr:
        """The same node on another operand; the first one is replaced where there are several."""
        return self.func(operand, *self.args[1:])

    def through(
        self,
        change: Callable[[Expr], Expr],
        names: Mapping[Axis, Axis] | None = None,
        brought: Mapping[Axis, Axis] | None = None,
    ) -> Expr:
        """The same node with ``change`` applied to its operands and its own axes renamed by
        ``names``; ``brought`` renames the axes that it brings, where one of them shares its name
        with an axis that ends inside it.
        """
        names, operands = names or {}, self.operands
        alongs = (along.axes for along in self.args[len(operands) :])
        own = ([names.get(axis, axis) for axis in axes] for axes in alongs)
        return type(self).over(*map(change, operands), *own)

    def _sympystr(self, printer):
        return f"{type(self).__name__}({', '.join(map(printer._print, self.args))})"


class Reduction(ArrayNode):
    """A node that removes the axes it is taken along."""

    @property
    def binds(self) -> tuple[Axis, ...]:
        return self.axes

    @classmethod
    def _check(cls, operand, axes):
        check_carried(cls.__name__, operand, axes)


class Whole(ArrayNode):
    """A node computed from whole arrays: each entry depends on many entries of the operands."""

    word, is_step = "", False

    @property
    def subject(self) -> Expr:
        """The operand that a name for the node mentions."""
        return self.operand


def _in_common(facts: Iterable[bool | None]) -> bool | None:
    """The fact, if it is the same of all."""
    known = set(facts)
    return known.pop() if len(known) == 1 else None


def named(node: str, operand, axes: Iterable[object] = ()) -> str:
    """The node as written along the axes that are meant, or along each axis of the operand."""
    names = names_meant(axes)
    if names:
        return f"{node}({operand}, {', '.join(names)})"
    own = ordered(axes_of(operand)) if isinstance(operand, Expr) else []
    return " or ".join(f"{node}({operand}, {axis})" for axis in own) or f"{node}(x, axis)"


def along_axes(node: str, operand: Expr, axes: Iterable[object]) -> str:
    """A remedy: the node as written along the axes that are meant, with their declarations."""
    if isinstance(operand, Axis) and axes:
        return f"the tensor comes first: write {named(node, axes[0], [operand])}"
    names = names_meant(axes) or ()
    return f"write {named(node, operand, axes)}{unknown(names, axes_of(operand))}"


def checked_operand(node: str, operand, axes, instead: Callable[..., str] | None = None) -> Expr:
    """The operand as a user wrote it, if it and its axes are valid; else `NotationError`."""
    operand = expression_of(operand, node)
    instead = instead or partial(along_axes, node)
    if not axes:
        raise NotationError(f"{node} of {operand} names no axis", instead(operand, axes))
    for axis in axes:
        if not isinstance(axis, Axis):
            raise NotationError(
                f"{node}({operand}, {axis!r}): {axis!r} is not an axis",
                instead(operand, axes),
            )
    if len(set(axes)) != len(axes):
        once = named(node, operand, dict.fromkeys(axes))
        raise NotationError(f"{node} takes the same axis twice", f"write {once}")
    return operand


def expression_of(value, where: str) -> Expr:
    if isinstance(value, Declaration):
        value._operator()
    if isinstance(value, (bool, str)) or not isinstance(value, (Expr, int, float)):
        raise NotationError(
            f"{where} of {value!r}: that is not an expression",
            "write it in tensors and SymPy functions",
        )
    e = sympify(value, strict=True)
    return exact_number(e) if isinstance(e, Float) else e


def check_carried(node: str, operand: Expr, axes, written: str = "") -> None:
    same_name(axes_of(operand).union(axes))
    missing = [axis.name for axis in axes if axis not in axes_of(operand)]
    if missing:
        has = ", ".join(axis.name for axis in ordered(axes_of(operand))) or "none"
        raise NotationError(
            f"{written or f'{node}({operand}, {missing[0]})'}: there is no axis {missing[0]} in it",
            f"the axes of {operand} are: {has}"
            + (f"; write {named(node, operand)}" if axes_of(operand) and not written else ""),
        )


def check_single(node: str, new: Axis) -> None:
    """Refuse a new axis that stands for several dimensions: no argument gives their number."""
    if isinstance(new, Axes):
        raise NotationError(
            f"{node} makes one axis, and {new} stands for any number of dimensions",
            f'make it a single axis: {new} = Axis("{new}")',
        )
