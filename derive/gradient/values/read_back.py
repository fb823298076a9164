"""A label reads a function of its own segment's sum: rewritten as that function of the sum read.

In a segment that an entry belongs to the sum is not empty, so the function is taken where it has a
value: 1/0 and log(0) of empty segments are not met in the mathematics.
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Add, Expr, Mul, Pow, log

from derive.language.nodes import OneHot, Sum, along
from derive.language.segments import own_segment_of, picked_of
from derive.language.symbols import Tensor, axes_of
from derive.language.traversal import everywhere


def read_at_entries(e: Expr, known: Mapping[Tensor, Expr]) -> Expr:
    """Sum(OneHot(i, C)*a/s**k, C) = Sum(OneHot(i, C)*a, C)/Sum(OneHot(i, C)*s, C)**k, and so for
    log(s), where s = Sum(OneHot(i, C)*b, N), by definition too; ``known`` has the definitions.
    """

    def defined(value: Expr) -> Expr:
        known_as = known.get(value.at_home) if isinstance(value, Tensor) else None
        return value if known_as is None else defined(along(known_as, value))

    def at_label(factor: Expr, hot: OneHot) -> Expr | None:
        """The function of the sum that the label reads, or None."""
        taken = defined(factor)
        if not isinstance(taken, log) and not (isinstance(taken, Pow) and taken.exp.is_negative):
            return None
        read = Sum.over(hot * taken.args[0], [hot.axis])
        return None if own_segment_of(read, defined) is None else taken.func(read, *taken.args[1:])

    def rewritten(node: Expr) -> Expr | None:
        hot, row = picked_of(node) or (None, node)
        if hot is None:
            return None
        for whole in dict.fromkeys((row, defined(row))):
            terms = [term_of(Mul.make_args(term), hot) for term in Add.make_args(whole)]
            if any(turned != 1 for turned, _ in terms):
                return Add(*(turned * read(rest, hot) for turned, rest in terms))
        return None

    def term_of(factors: tuple[Expr, ...], hot: OneHot) -> tuple[Expr, Expr]:
        found = {f: at_label(f, hot) for f in factors}
        turned = {f: e for f, e in found.items() if e is not None}
        return Mul(*turned.values()), Mul(*(f for f in factors if f not in turned))

    def read(e: Expr, hot: OneHot) -> Expr:
        factors = Mul.make_args(e)
        inside = [f for f in factors if hot.axis in axes_of(f)]
        outside = Mul(*(f for f in factors if f not in inside))
        return outside * Sum.over(hot * Mul(*inside), [hot.axis]) if inside else outside

    return everywhere(e, rewritten)
