"""The array nodes: what SymPy lacks for writing a network down, and no more.

`Sum`, `Max`, `OneHot`, `Position`, `Flatten` and `Broadcast` are written by users; `ArgMax` and
`Unflatten` occur in derivatives. The rules for their adjoints are in ``rules.py``. A node says
which of its axes it *binds* (they end inside of it) and which it *brings*, and everything else
follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sympy import Basic, Expr, Integer, Rational

from derive.declarations import Declaration
from derive.errors import NotationError
from derive.symbols import Along, Axes, Axis, Tensor, axes_of, ordered, same_name


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
        if axes and isinstance(axes[0], Along):  # SymPy rebuilds a node from its args
            return cls.over(operand, *(along.axes for along in axes))
        operand = _operand(cls.__name__, operand, axes)
        cls._check(operand, axes)
        return cls.over(operand, axes)

    @classmethod
    def over(cls, operand, axes: Iterable[Axis]) -> Expr:
        """The node itself, in canonical order of its axes and unchecked: for the machinery, not
        for users.
        """
        return Expr.__new__(cls, operand, Along(ordered(axes)))

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

    def on(self, operand: Expr, names: Mapping[Axis, Axis] | None = None) -> Expr:
        """The same node on another operand, its own axes under other names."""
        names = names or {}
        own = ([names.get(axis, axis) for axis in along.axes] for along in self.args[1:])
        return type(self).over(operand, *own)

    def _sympystr(self, printer):
        return f"{type(self).__name__}({', '.join(map(printer._print, self.args))})"


class Reduction(ArrayNode):
    """A node that removes the axes it is taken along."""

    @property
    def binds(self) -> tuple[Axis, ...]:
        return self.axes

    @classmethod
    def _check(cls, operand, axes):
        _check_carried(cls.__name__, operand, axes)


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


class Peak(Max):
    """The largest entry along one axis, where any other number would do as well.

    So what is subtracted for safety and cancels; code takes 0 where it is infinite.
    """


class ArgMax(Reduction):
    """``ArgMax(e, axis)``: the index of the first largest entry.

    Derivatives of `Max` contain it.
    """

    is_integer = True


class OneHot(ArrayNode):
    """``OneHot(labels, C)``: 1 where the index along ``C`` equals the label, else 0.

    The label may be a number, where the axis always has that many entries: ``OneHot(0, Gate)``.
    """

    is_integer = True
    is_nonnegative = True

    @classmethod
    def _check(cls, operand, axes):
        if len(axes) != 1:
            raise NotationError("OneHot takes one axis", "write OneHot(labels, C)")
        if operand.is_Integer:
            return _check_entry(operand, axes[0])
        if not (isinstance(operand, Tensor) and operand.role == "label"):
            raise NotationError(
                f"OneHot({operand}, {axes[0]}): {operand} is not a label",
                f"declare it as integers: {operand} = Label(N)",
            )

    @property
    def axis(self) -> Axis:
        return self.axes[0]

    @property
    def brings(self) -> tuple[Axis, ...]:
        return self.axes


class Position(ArrayNode):
    """``Position(N)``: the index along ``N``, from 0 to N - 1; it is met in comparisons."""

    is_integer = True
    is_nonnegative = True

    def __new__(cls, *axes):
        if len(axes) == 2 and isinstance(axes[1], Along):  # SymPy rebuilds a node from its args
            return cls.over(axes[0], axes[1].axes)
        if len(axes) != 1 or not isinstance(axes[0], Axis):
            raise NotationError(
                f"Position({', '.join(map(str, axes))}): it takes one axis", "write Position(N)"
            )
        return cls.over(Integer(0), axes)

    @property
    def axis(self) -> Axis:
        return self.axes[0]

    @property
    def brings(self) -> tuple[Axis, ...]:
        return self.axes

    def _sympystr(self, printer):
        return f"Position({self.axis.name})"


class Broadcast(ArrayNode):
    """``Broadcast(e, K)``: ``e`` repeated along ``K``. It says that two sides with different axes
    are meant.

    Only a mark for the reader and for the check of sums: by name, everything broadcasts already.
    """

    @property
    def brings(self) -> tuple[Axis, ...]:
        return self.axes

    def _eval_is_positive(self):
        return self.operand.is_positive


class Reshaping(ArrayNode):
    """A node that changes how entries are counted and none of them: some axes become others.

    The order of its axes matters: the last one runs fastest, as in ``torch.flatten``.
    """

    @classmethod
    def over(cls, operand, axes: Iterable[Axis], into: Iterable[Axis]) -> Expr:
        if not axes_of(operand) & frozenset(axes):
            return operand  # the same everywhere, however it is counted
        return Expr.__new__(cls, operand, Along(axes), Along(into))

    @property
    def into(self) -> tuple[Axis, ...]:
        """The axes that come out."""
        return self.args[2].axes

    @property
    def binds(self) -> tuple[Axis, ...]:
        return self.axes

    @property
    def brings(self) -> tuple[Axis, ...]:
        return self.into

    def _eval_is_positive(self):
        return self.operand.is_positive

    def _eval_is_nonnegative(self):
        return self.operand.is_nonnegative

    def _sympystr(self, printer):
        operand, axes, into = map(printer._print, self.args)
        into = into if len(self.into) == 1 else f"({into})"
        return f"{type(self).__name__}({operand}, {axes}, into={into})"


class Flatten(Reshaping):
    """``Flatten(e, T, E, into=I)``: the axes ``T`` and ``E`` as one axis ``I`` of size T*E.

    Source: ``torch.flatten``; entry (t, e) becomes entry t*E + e.
    """

    USAGE = "Flatten(x, T, E, into=K)"

    def __new__(cls, *args, into=None, **other):
        if len(args) > 1 and isinstance(args[1], Along):  # SymPy rebuilds a node from its args
            return cls.over(args[0], *(along.axes for along in args[1:]))
        if other:
            raise NotationError(f"Flatten has no {next(iter(other))}=", f"write {cls.USAGE}")
        if not args:
            raise NotationError("Flatten of nothing", f"write {cls.USAGE}")
        operand, axes = _expression(args[0], "Flatten"), args[1:]
        written = f"Flatten({', '.join(map(str, args))})"
        if any(isinstance(axis, (tuple, list)) for axis in axes):
            raise NotationError(
                f"{written}: the axes stand in brackets", f"leave them out: {cls.USAGE}"
            )
        if not isinstance(into, Axis):
            given = (
                "does not say what the new axis is called"
                if into is None
                else (f"is into {into!r}, which is not an axis")
            )
            raise NotationError(f"{written} {given}", f"write {cls.USAGE}")
        written = f"{written[:-1]}, into={into})"
        if len(axes) < 2:
            raise NotationError(f"{written} flattens fewer than two axes", f"write {cls.USAGE}")
        _operand("Flatten", operand, axes)
        if isinstance(operand, Tensor) and operand.role == "label":
            raise NotationError(
                f"{written}: {operand} is a label", "flatten what was picked with it"
            )
        _check_carried("Flatten", operand, axes, written)
        if into in axes_of(operand):
            raise NotationError(
                f"{written}: {into} is an axis of {operand} already", "give the new axis a new name"
            )
        _check_single("Flatten", into)
        return cls.over(operand, axes, (into,))

    @property
    def flat(self) -> Axis:
        return self.into[0]


class Unflatten(Reshaping):
    """``Unflatten(e, I, into=(T, E))``: one axis as several; the last one runs fastest.

    Source: ``torch.unflatten``; entry t*E + e becomes entry (t, e).
    """

    USAGE = "Unflatten(x, C, into=(G, K))"

    def __new__(cls, *args, into=None, **other):
        if len(args) > 1 and isinstance(args[1], Along):  # SymPy rebuilds a node from its args
            return cls.over(args[0], *(along.axes for along in args[1:]))
        written = f"Unflatten({', '.join(map(str, args))}, into={into})"
        if other or len(args) != 2:
            raise NotationError(f"{written} is not one axis that becomes several", cls.USAGE)
        operand, axes = _expression(args[0], "Unflatten"), args[1:]
        if not isinstance(into, (tuple, list)) or len(into) < 2:
            raise NotationError(f"{written} does not name the new axes", f"write {cls.USAGE}")
        _operand("Unflatten", operand, axes)
        _operand("Unflatten", operand, into)
        if isinstance(operand, Tensor) and operand.role == "label":
            raise NotationError(f"{written}: {operand} is a label", "split what was picked with it")
        _check_carried("Unflatten", operand, axes, written)
        taken = [axis.name for axis in into if axis in axes_of(operand)]
        if taken:
            raise NotationError(
                f"{written}: {taken[0]} is an axis of {operand} already", "give it a new name"
            )
        return cls.over(operand, axes, into)

    @property
    def flat(self) -> Axis:
        return self.axes[0]


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
    same_name(axes | {old})
    _check_single("Rename", new)
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


def _operand(node: str, operand, axes) -> Expr:
    """The operand of a node as a user wrote it, if that and its axes can be meant."""
    operand = _expression(operand, node)
    if not axes:
        raise NotationError(f"{node} of {operand} names no axis", f"write {node}({operand}, N)")
    for axis in axes:
        if not isinstance(axis, Axis):
            raise NotationError(
                f"{node}(..., {axis}): {axis} is not an axis",
                'axes are named, not numbered: N = Axis("N")',
            )
    if len(set(axes)) != len(axes):
        raise NotationError(f"{node} takes the same axis twice", "name each axis once")
    return operand


def _expression(value, where: str) -> Expr:
    if isinstance(value, Declaration):
        value._operator()
    if isinstance(value, (bool, str)) or not isinstance(value, (Expr, int, float)):
        raise NotationError(
            f"{where} of {value!r}: that is not an expression",
            "write it in tensors and SymPy functions",
        )
    return value if isinstance(value, Expr) else Rational(str(value))


def _check_entry(number: Expr, axis: Axis) -> None:
    """Whether a number is the index of an entry that an axis always has."""
    if axis.length is None:
        raise NotationError(
            f"OneHot({number}, {axis}): how many entries {axis} has is open",
            f'say it: {axis} = Axis("{axis}", {max(int(number), 0) + 1})',
        )
    if not 0 <= number < axis.length:
        raise NotationError(
            f"OneHot({number}, {axis}): {axis} has the entries 0 .. {axis.length - 1}",
            "pick one of them",
        )


def _check_carried(node: str, operand: Expr, axes, written: str = "") -> None:
    same_name(axes_of(operand).union(axes))
    missing = [axis.name for axis in axes if axis not in axes_of(operand)]
    if missing:
        has = ", ".join(axis.name for axis in ordered(axes_of(operand))) or "none"
        raise NotationError(
            f"{written or f'{node}({operand}, {missing[0]})'}: there is no axis {missing[0]} in it",
            f"the axes of {operand} are: {has}",
        )


def _check_single(node: str, new: Axis) -> None:
    """An axis that is made out of others is one dimension: no argument says of how many."""
    if isinstance(new, Axes):
        raise NotationError(
            f"{node} makes one axis, and {new} stands for any number of dimensions",
            f'make it a single axis: {new} = Axis("{new}")',
        )


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
    free = axes_of(e)  # of a condition too, which is no Expr
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
    if isinstance(e, ArrayNode):
        operand, own = e.operand, dict(mapping)
        for old, new in mapping.items():
            if new in e.binds:  # the old name is free no longer, so the bound axis can take it
                operand, own = _swapped(operand, old, new), {**own, new: old}
                mapping = {o: n for o, n in mapping.items() if o != old}
        return e.on(renamed(operand, mapping), own)
    return e.func(*(renamed(arg, mapping) for arg in e.args))


def _swapped(e: Expr, a: Axis, b: Axis) -> Expr:
    swap = {a: b, b: a}
    if isinstance(e, Tensor):
        return e.along(swap.get(axis, axis) for axis in e.axes)
    if isinstance(e, ArrayNode):
        return e.on(_swapped(e.operand, a, b), swap)
    return e.func(*(_swapped(arg, a, b) for arg in e.args)) if e.args else e
