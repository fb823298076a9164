"""Expressions along other axes."""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Basic, Expr

from derive.language.array_node import ArrayNode, check_single, expression_of, named
from derive.language.axes_meant import declared, names_meant
from derive.language.errors import NotationError
from derive.language.symbols import Axis, Tensor, axes_of, ordered, same_name
from derive.language.words import word


@word("Rename(x, N, M), M an axis of the same size that x lacks", axes="renamed")
def Rename(e: Expr, old: Axis, new: Axis | None = None) -> Expr:
    """``Rename(x, N, M)``: the same tensor along ``M`` instead of ``N``: pairs, or the keys of an
    attention.

    ``N`` and ``M`` have the same size from then on.
    """
    e = expression_of(e, "Rename")
    for axis in (old, new):
        if not isinstance(axis, Axis):
            new_name, *_ = [*(names_meant([new]) or ()), "M"]
            raise NotationError(
                f"Rename({e}, {old}, {new}): {axis!r} is not an axis",
                f"write {named('Rename', e, [old, new_name])}, with {declared([new_name])}",
            )
    axes = axes_of(e)
    same_name(axes | {old})
    check_single("Rename", new)
    if old not in axes:
        has = ", ".join(axis.name for axis in ordered(axes)) or "none"
        raise NotationError(
            f"Rename({e}, {old}, {new}): there is no axis {old} to rename",
            f"the axes of {e} are: {has}",
        )
    if new in axes:
        raise NotationError(
            f"Rename({e}, {old}, {new}): {new} is an axis of it already",
            f"choose an axis that it lacks: Rename({e}, {old}, {new}2), with "
            f"{declared([f'{new}2'])}",
        )
    return renamed(e, {old: new}, throughout=True)


def renamed(e: Basic, mapping: Mapping[Axis, Axis], throughout: bool = False) -> Basic:
    """``e`` with its free axes renamed simultaneously; bound axes that would capture a new name are
    renamed. ``throughout`` also renames inside nodes that read along such an axis and have it:
    the tensor there determines the size of the new one.

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
        aside = {bound: _left_free(bound, mapping) for bound in e.binds}
        if throughout:
            aside |= {
                axis: mapping[axis] for axis in e.binds if axis in e.brings and axis in mapping
            }
        names = {**mapping, **aside}
        return e.through(lambda operand: renamed(operand, names, throughout), names, mapping)
    return e.func(*(renamed(arg, mapping, throughout) for arg in e.args))


def along(e: Expr, tensor: Tensor) -> Expr:
    """``e``, written for ``tensor`` along its own axes, renamed to the axes of this occurrence."""
    return renamed(e, dict(zip(tensor.home, tensor.axes, strict=True)))


def _left_free(bound: Axis, mapping: Mapping[Axis, Axis]) -> Axis:
    """The name that a bound axis takes where free axes are renamed: its own, or if that is taken
    the one freed in exchange: where K becomes N and N becomes ``bound``, K.

    A renaming preserves sizes, and so does this one.
    """
    before = {new: old for old, new in mapping.items()}
    while bound in before:
        bound = before[bound]
    return bound
