"""Nodes that count entries differently: several axes as one, one axis as several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sympy import Expr

from derive.language.array_node import (
    ArrayNode,
    Gradients,
    check_carried,
    check_single,
    checked_operand,
    expression_of,
)
from derive.language.entries import EntryReader, Places
from derive.language.errors import NotationError
from derive.language.symbols import Along, Axis, Tensor, axes_of
from derive.language.words import word


class Reindexing(ArrayNode):
    """A node with the entries of its operand at other positions: some axes become others."""

    @property
    def binds(self) -> tuple[Axis, ...]:
        return self.axes


class Reshaping(Reindexing):
    """A node that keeps all entries but changes how they are indexed: some axes become others.

    The order of its axes matters: the last one runs fastest, as in ``torch.flatten``.
    """

    @classmethod
    def over(cls, operand: Expr, axes: Iterable[Axis], into: Iterable[Axis]) -> Expr:
        if not axes_of(operand) & frozenset(axes):
            return operand  # the same everywhere, however it is counted
        return Expr.__new__(cls, operand, Along(axes), Along(into))

    @property
    def into(self) -> tuple[Axis, ...]:
        """The axes of the result that replace those it binds."""
        return self.args[2].axes

    @property
    def brings(self) -> tuple[Axis, ...]:
        return self.into

    @property
    def chooses_from(self) -> tuple[Expr, ...]:
        return self.operands

    def entry(self, by: EntryReader, at: Places) -> Any:
        return by.at(self.operand, {**at, **by.reshaped(self, at)})

    def _sympystr(self, printer):
        operand, axes, into = map(printer._print, self.args)
        into = into if len(self.into) == 1 else f"({into})"
        return f"{type(self).__name__}({operand}, {axes}, into={into})"


@word("Flatten(x, T, E, into=K), as the mathematics does", "into", axes="reshaped")
class Flatten(Reshaping):
    """``Flatten(e, T, E, into=I)``: the axes ``T`` and ``E`` as one axis ``I`` of size T*E.

    Source: ``torch.flatten``; entry (t, e) becomes entry t*E + e.
    """

    USAGE = "Flatten(x, T, E, into=K)"
    reason = "unflattened into {axes}, because they were flattened there"
    is_equivariant = True

    def adjoint(self, upstream: Expr) -> Gradients:
        # y[t*E + e] = x[t, e]  =>  dx[t, e] = dy[t*E + e]
        return [(self.operand, Unflatten.over(upstream, self.into, self.axes))]

    def __new__(cls, *args: Expr, into: Axis | None = None, **other: object) -> Expr:
        if len(args) > 1 and isinstance(args[1], Along):  # SymPy rebuilds a node from its args
            return cls.over(args[0], *(along.axes for along in args[1:]))
        if other:
            raise NotationError(f"Flatten has no {next(iter(other))}=", f"write {cls.USAGE}")
        if not args:
            raise NotationError("Flatten of nothing", f"write {cls.USAGE}")
        operand, axes = expression_of(args[0], "Flatten"), args[1:]
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
        checked_operand("Flatten", operand, axes)
        if isinstance(operand, Tensor) and operand.role == "label":
            raise NotationError(
                f"{written}: {operand} is a label", "flatten what was picked with it"
            )
        check_carried("Flatten", operand, axes, written)
        if into in axes_of(operand):
            raise NotationError(
                f"{written}: {into} is an axis of {operand} already", "give the new axis a new name"
            )
        check_single("Flatten", into)
        return cls.over(operand, axes, (into,))

    @property
    def flat(self) -> Axis:
        return self.into[0]

    @property
    def parts(self) -> tuple[Axis, ...]:
        """The axes that are one axis flattened."""
        return self.axes


@word("Unflatten(x, K, into=(T, E))", "into", axes="reshaped")
class Unflatten(Reshaping):
    """``Unflatten(e, I, into=(T, E))``: one axis as several, the last one fastest.

    Source: ``torch.unflatten``; entry t*E + e becomes entry (t, e).
    """

    USAGE = "Unflatten(x, C, into=(G, K))"
    reason = "{axes} flattened again"
    is_equivariant = True

    def adjoint(self, upstream: Expr) -> Gradients:
        # y[t, e] = x[t*E + e]  =>  dx[t*E + e] = dy[t, e]
        return [(self.operand, Flatten.over(upstream, self.into, self.axes))]

    def __new__(cls, *args: Expr, into: Sequence[Axis] | None = None, **other: object) -> Expr:
        if len(args) > 1 and isinstance(args[1], Along):  # SymPy rebuilds a node from its args
            return cls.over(args[0], *(along.axes for along in args[1:]))
        written = f"Unflatten({', '.join(map(str, args))}, into={into})"
        if other or len(args) != 2:
            raise NotationError(f"{written} is not one axis that becomes several", cls.USAGE)
        operand, axes = expression_of(args[0], "Unflatten"), args[1:]
        if not isinstance(into, (tuple, list)) or len(into) < 2:
            raise NotationError(f"{written} does not name the new axes", f"write {cls.USAGE}")
        checked_operand("Unflatten", operand, axes)
        checked_operand("Unflatten", operand, into)
        if isinstance(operand, Tensor) and operand.role == "label":
            raise NotationError(f"{written}: {operand} is a label", "split what was picked with it")
        check_carried("Unflatten", operand, axes, written)
        taken = [axis.name for axis in into if axis in axes_of(operand)]
        if taken:
            raise NotationError(
                f"{written}: {taken[0]} is an axis of {operand} already", "give it a new name"
            )
        return cls.over(operand, axes, into)

    @property
    def flat(self) -> Axis:
        return self.axes[0]

    @property
    def parts(self) -> tuple[Axis, ...]:
        return self.into
