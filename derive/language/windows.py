"""The words for what is read along an axis: each is one `At`, or two.

d = Slice(x, T, into=D, start=1) - Slice(x, T, into=D)      with D = Axis("D", T - 1)
u = Window(x, T, into=(To, K), stride=2, padding=1)          with To = Axis("To", (T - K) // 2 + 2)
"""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Expr, Integer, sympify

from derive.language.errors import NotationError
from derive.language.nodes import Position
from derive.language.reading_at import At
from derive.language.symbols import Axis
from derive.language.words import word

WINDOW = "Window(x, T, into=(To, K), stride=2, padding=1)"


@word("Flip(x, T)", axes="read")
def Flip(x: Expr, axis: Axis) -> Expr:
    """``Flip(x, T)``: the entries along ``T`` in reverse, as ``torch.flip`` has them."""
    _check_axis("Flip", x, axis)
    return At(x, axis, axis - 1 - Position(axis))


@word("Shift(x, T, 1)", "by", "fill", axes="read")
def Shift(x: Expr, axis: Axis, by: Expr | int = 1, fill: Expr | float = 0) -> Expr:
    """``Shift(x, T, 1)``: every entry one place later, and ``fill`` where none comes from."""
    _check_axis("Shift", x, axis)
    return At(x, axis, Position(axis) - by, fill=fill)


@word("Slice(x, T, into=D, start=1)", "into", "start", "step", axes="read")
def Slice(
    x: Expr, axis: Axis, *, into: Axis | None = None, start: Expr | int = 0, step: Expr | int = 1
) -> Expr:
    """``Slice(x, T, into=D, start=1, step=2)``: every second entry from entry 1 on, as many as
    ``D`` has.
    """
    _check_axis("Slice", x, axis, into)
    if getattr(start, "is_negative", None) or (isinstance(start, int) and start < 0):
        raise NotationError(
            f"Slice({x}, {axis}, start={start}): entries are counted from 0",
            f"write start={axis} - {-start}, or Pad(x, {axis}, into=D, before={-start})",
        )
    return At(x, axis, _in_whole(start, into) + step * Position(into))


def _in_whole(start: Expr | int, into: Axis) -> Expr | int:
    """A half or a third of an axis as a multiple of the part that is as long."""
    parts = start / into.formula if into.formula is not None else None
    return parts * into if getattr(parts, "is_Integer", False) else start


@word("Pad(x, T, into=P, before=1)", "into", "before", "fill", axes="read")
def Pad(
    x: Expr, axis: Axis, *, into: Axis | None = None, before: Expr | int = 0, fill: Expr | float = 0
) -> Expr:
    """``Pad(x, T, into=P, before=1)``: as many entries as ``P`` has, the first of them ``fill``."""
    _check_axis("Pad", x, axis, into)
    return At(x, axis, Position(into) - before, fill=fill)


@word(
    "Window(x, T, into=(To, K), stride=2, padding=1)",
    "into",
    "stride",
    "dilation",
    "padding",
    "fill",
    axes="read",
)
def Window(
    x: Expr,
    axis: Axis,
    *,
    into: Sequence[Axis] = (),
    stride: Expr | int = 1,
    dilation: Expr | int = 1,
    padding: Expr | int = 0,
    fill: Expr | float = 0,
) -> Expr:
    """``Window(x, T, into=(To, K), stride=2, padding=1)``: windows of ``K`` entries, ``To`` of
    them, as a convolution or a pooling reads them; ``padding`` is what comes before the first.

    Long: it takes what a convolution takes, under the names that torch has for it.
    """
    _check_axis("Window", x, axis)
    if not isinstance(into, (tuple, list)) or len(into) != 2:
        raise NotationError(
            f"Window({x}, {axis}) does not name where a window is and the entries in it",
            f"write {WINDOW}",
        )
    at, inside = into
    return At(x, axis, stride * Position(at) + dilation * Position(inside) - padding, fill=fill)


@word("Concat((a, N), (b, M), into=K)", "into", axes="joined")
def Concat(*parts: tuple[Expr, Axis], into: Axis | None = None) -> Expr:
    """``Concat((a, N), (b, M), into=K)``: tensors one after the other along an axis, with
    ``K = Axis("K", N + M)``, as ``torch.cat`` has them.
    """
    whole, before = 0, 0
    for part in parts:
        if not isinstance(part, tuple) or len(part) != 2:
            raise NotationError(
                f"Concat of {part}: each tensor comes with its axis",
                "write Concat((a, N), (b, M), into=K)",
            )
        x, axis = part
        _check_axis("Concat", x, axis)
        whole += At(x, axis, Position(into) - before)
        before += axis
    if not isinstance(into, Axis) or (_in_full(into) - _in_full(before)).expand() != 0:
        raise NotationError(
            f"Concat into {into}: its length is not that of the parts together",
            f'write {into} = Axis("{into}", {before or "N + M"})',
        )
    return whole


def _in_full(length: Expr | int) -> Expr:
    """A length with those of its axes that are made of others written out."""
    length = sympify(length, strict=True)
    made = {a: a.formula for a in length.atoms(Axis) if a.formula is not None}
    fixed = {a: Integer(a.length) for a in length.atoms(Axis) if a.length is not None}
    return _in_full(length.xreplace(made | fixed)) if made else length.xreplace(fixed)


def _check_axis(word: str, x: Expr, axis: object, into: object = ...) -> None:
    if not isinstance(axis, Axis):
        raise NotationError(
            f"{word}({x}, {axis}): {axis!r} is not an axis", f"write {word}({x}, T, ...)"
        )
    if into is not ... and not isinstance(into, Axis):
        raise NotationError(
            f"{word}({x}, {axis}) does not name the new axis",
            f'write {word}({x}, {axis}, into=D, ...), with D = Axis("D", {axis} - 1) or the like',
        )
