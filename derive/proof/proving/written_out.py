"""Expand closed forms: in the upstream gradient and values of the forward alone, or in the values
that the user wrote. And compare two expressions entry by entry.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache

from sympy import Add, Dummy, Expr, Mul, S

from derive.gradient.closing.closed_form import ClosedForm, ClosedStatement
from derive.gradient.values.naming import in_full
from derive.gradient.values.relations import Relations
from derive.language.choices import with_args, written_in
from derive.language.nodes import ArrayNode, along
from derive.language.symbols import Tensor, tensors_in
from derive.language.traversal import everywhere
from derive.proof.zero.exact import is_zero


def adjoints_in(e: Expr) -> list[Tensor]:
    return [t for t in tensors_in(e) if t.role == "adjoint"]


def without_parts(e: Expr, relations: Relations) -> Expr:
    """``e`` in the user's values, with parts replaced by their definitions."""
    return in_full(e, relations.parts)


def inlined(
    form: ClosedForm, e: Expr, cuts: Collection[str], again: Mapping[Tensor, Tensor]
) -> Expr:
    """``e`` in the upstream gradient, the gradients of the cuts, and values of the forward alone;
    tensors computed ``again`` become those values.
    """
    given = {f"d{name}" for name in cuts} | form.chain.arriving
    while True:
        e = e.xreplace({t: along(again[t.at_home], t) for t in tensors_in(e) if t.at_home in again})
        inner = [t for t in adjoints_in(e) if t.name not in given]
        if not inner:
            return e
        e = written_in(e, {t: along(_of_backward(form, t.name), t) for t in inner})


def _of_backward(form: ClosedForm, name: str) -> Expr:
    """The expression of an adjoint, or of a value that only the backward has."""
    return form.by_name[name].expression if name in form.by_name else form.closed[name]


def computed_again(form: ClosedForm) -> dict[Tensor, Tensor]:
    """The statements of the closed form that are proved to be a value of the forward, with that
    value: entry by entry, so for every size.
    """
    shown: dict[Tensor, Tensor] = {}
    for statement in form.statements:
        value = form.again.get(statement.tensor)
        if value is not None and _is_computed_again(form, statement, value, shown):
            shown[statement.tensor] = value
    return shown


def _is_computed_again(
    form: ClosedForm, again: ClosedStatement, value: Tensor, shown: Mapping[Tensor, Tensor]
) -> bool:
    """Whether the statement ``again`` is ``value``, as the user wrote it; statements already
    ``shown`` are read as their values.
    """

    def read(t: Tensor) -> Expr:
        return along(shown.get(t.at_home, form.by_name[t.name].expression), t)

    claim = again.expression
    while nested := adjoints_in(claim):
        claim = written_in(claim, {t: read(t) for t in nested})
    claim, written = (without_parts(e, form.relations) for e in (claim, value))
    known, definitions = {t.at_home for t in tensors_in(claim)}, form.definition.by_name
    while unknown := [t for t in tensors_in(written) if t.at_home not in known]:
        if any(t.name not in definitions for t in unknown):
            return False
        by_definition = {t: along(definitions[t.name].expression, t) for t in unknown}
        written = written_in(written, by_definition)
    return are_the_same(written, claim)


@lru_cache(maxsize=256)
def are_the_same(a: Expr, b: Expr) -> bool:
    """Whether two expressions are equal entry by entry, whatever the entries of their tensors, and
    the values of the sums and other nodes in them, are.
    """
    entries: dict[Expr, Dummy] = {}

    def entry(e: Expr) -> Expr:
        if isinstance(e, (Tensor, ArrayNode)):
            return entries.setdefault(e, Dummy(real=True, positive=e.is_positive or None))
        return with_args(e, map(entry, e.args)) if e.args else e

    a, b = (everywhere(e, _with_numbers_outside, opaque=()) for e in (a, b))
    return a == b or is_zero(entry(a) - entry(b))


def _with_numbers_outside(e: Expr) -> Expr | None:
    """``(2*a + 2*b)*c`` as ``2*(a + b)*c``."""
    if not isinstance(e, Mul) or not any(isinstance(f, Add) for f in e.args):
        return None
    parts = [f.primitive() if isinstance(f, Add) else (S.One, f) for f in e.args]
    return Mul(*(number for number, _ in parts), *(f for _, f in parts))
