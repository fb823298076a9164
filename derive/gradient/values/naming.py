"""A value of the forward under its name, and an expression in which such values stand.

In: an expression and `NamedValue` records. Out: the expression with every value that is met in it
under its name (`with_names`), or with what the names stand for written out (`in_full`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from sympy import Add, Expr, Mul, Pow

from derive.language.choices import written_in
from derive.language.nodes import Reduction, along
from derive.language.symbols import Tensor, tensors_in
from derive.language.traversal import everywhere


@dataclass(frozen=True)
class NamedValue:
    """A value of the forward, named by the user or a part: its tensor and its definition in
    earlier values.
    """

    tensor: Tensor
    expression: Expr


def with_names(e: Expr, parts: Iterable[NamedValue], among_others: bool = False) -> Expr:
    """``e`` with the parts in it under their names: a part, a multiple of it, or a whole power
    of it; if that is asked for, sums and products among other terms and factors too.
    """
    exact, sums, roots, definitions = _by_form(tuple(parts))

    def named(node):
        if node in exact:
            return exact[node]
        if isinstance(node, Add):
            factor, primitive = _primitive(node)
            if primitive in sums:
                own, tensor = sums[primitive]
                return factor / own * tensor
            if factor != 1 and (found := named(primitive)) is not None:
                return factor * found
            centred = _with_own_sums(node, definitions)
            if centred != node:
                return named(centred) or centred
        if among_others and isinstance(node, (Add, Mul)):
            shorter = next(filter(None, (shortened(node, p, t) for p, t in exact.items())), None)
            return shorter and (named(shorter) or shorter)
        if (
            isinstance(node, Pow)
            and node.base in roots
            and node.exp.is_Rational
            and (not node.exp.is_Integer or roots[node.base].expression.exp == -1)
        ):
            part = roots[node.base]
            ratio = node.exp / part.expression.exp
            matches = ratio.is_Integer and (ratio > 0 or not node.exp.is_Integer)
            return part.tensor**ratio if matches else None
        return None

    return everywhere(e, named, opaque=())


def in_full(e: Expr, parts: Iterable[NamedValue]) -> Expr:
    """``e`` with ``parts`` written out."""
    return written_out(e, {part.tensor.name: part.expression for part in parts})


def written_out(e: Expr, known: Mapping[str, Expr]) -> Expr:
    """Expand the ``known`` names in ``e`` until none of them is left."""
    while met := {t: along(known[t.name], t) for t in tensors_in(e) if t.name in known}:
        e = written_in(e, met)
    return e


@lru_cache(maxsize=64)
def _by_form(parts: tuple[NamedValue, ...]):
    """The tensors of parts by what they are; those of sums, with their factors, by the sum without
    it; the parts that are powers by their base; and the sums by their tensors.
    """
    exact = {part.expression: part.tensor for part in parts}
    sums = {_primitive(a)[1]: (_primitive(a)[0], t) for a, t in exact.items() if isinstance(a, Add)}
    roots = {part.expression.base: part for part in parts if isinstance(part.expression, Pow)}
    return exact, sums, roots, {t: e for e, t in exact.items() if isinstance(e, Add)}


def shortened(e: Expr, part: Expr, tensor: Tensor) -> Expr | None:
    """``e`` with the terms or factors of ``part``, if they are among its own, under their name."""
    if isinstance(e, Add) and isinstance(part, Add):
        for sign in (1, -1):
            terms = {sign * term for term in part.args}
            if terms < {*e.args}:
                return sign * tensor + Add(*(term for term in e.args if term not in terms))
    if isinstance(e, Mul) and isinstance(part, Mul):
        powers = e.as_powers_dict()
        ratios = [powers[base] / power for base, power in part.as_powers_dict().items()]
        if all(ratio.is_number and ratio >= 1 for ratio in ratios):
            return tensor * e / part
    return None


def _with_own_sums(e: Add, definitions: Mapping[Tensor, Add]) -> Expr:
    """``u - Sum(u, N)/N`` where the terms of a part ``u`` stand among those of the whole."""
    for total in reductions_in(e):
        own = definitions.get(total.operand)
        if own is not None and {*own.args} < {*e.args}:
            return total.operand + Add(*(term for term in e.args if term not in own.args))
    return e


def _primitive(e: Add) -> tuple[Expr, Expr]:
    """``e`` as a number times a primitive sum, the same one for ``e`` and ``-e``."""
    content, primitive = e.primitive()
    if primitive.could_extract_minus_sign():
        return -content, Add(*(-term for term in primitive.args))
    return content, primitive


def reductions_in(e: Add) -> set[Expr]:
    """The reductions that are terms of a sum, or factors of its terms."""
    factors = (factor for term in e.args for factor in Mul.make_args(term))
    return {factor for factor in factors if isinstance(factor, Reduction)}
