"""Computing each thing once: sums that are gradients already, sums that occur twice, products that
occur twice.

In: the statements of a closed form. Out: statements in the order of computation, in which a value
that occurs in several places has a name. A value that *is* a gradient is used under the gradient's
name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from sympy import Add, Expr, Mul, Piecewise, Pow, S

from derive.gradient.closing.eager import is_computed_once
from derive.gradient.closing.steps import Pairs, Record
from derive.language.called import names_of
from derive.language.choices import Compared
from derive.language.names import first_unused
from derive.language.nodes import OneHot, Recurrence, RecurrenceBefore, Sum, Whole, along
from derive.language.notation.statements import known_signs
from derive.language.operations import is_contraction, operations_in
from derive.language.symbols import (
    Axis,
    Tensor,
    axes_of,
    is_number_or_size,
    tensors_in,
)


def _replaced(
    statements: Pairs, old: Expr, new: Expr, why: str, record: Record, skip: Tensor
) -> Pairs:
    """``statements`` but ``skip`` with ``new`` for ``old``: a tensor along other axes too."""
    result = []
    for tensor, e in statements:
        if tensor != skip:
            places = {old: new}
            if isinstance(old, Tensor):
                places |= {t: along(new, t) for t in tensors_in(e) if t.name == old.name}
            e = record.add(tensor, "share", e, e.xreplace(places), why)
        result.append((tensor, e))
    return result


def copies_removed(statements: Pairs, wanted: set[Tensor], record: Record) -> Pairs:
    """Replace a gradient that merely kept its name by a requested one that equals it."""
    for copy, e in statements:
        expressions = dict(statements)
        if copy in wanted and e in expressions and e not in wanted and e.home == copy.home:
            whole = record.add(copy, "share", e, expressions[e], f"{copy} is {e}")
            rest = [(t, whole if t == copy else b) for t, b in statements if t != e]
            statements = _replaced(rest, e, copy, f"that is {copy}", record, skip=copy)
    return statements


def copies_inserted(statements: Pairs, wanted: set[Tensor], record: Record) -> Pairs:
    """Insert statements that only copy another tensor and are not wanted."""
    for copy, _ in statements:
        e = dict(statements)[copy]
        if isinstance(e, Tensor) and copy not in wanted:
            rest = [(t, b) for t, b in statements if t != copy]
            statements = _replaced(rest, copy, e, f"{copy} is {e}", record, skip=copy)
    return statements


def multiples_reused(statements: Pairs, wanted: set[Tensor], record: Record) -> Pairs:
    """Write a gradient as a multiple of another one: dt = -dx."""
    result: Pairs = []
    first: dict[tuple, tuple[Expr, Tensor]] = {}
    for tensor, e in statements:
        number, rest = _number_apart(e)
        if (rest, tensor.home) in first:
            own, other = first[rest, tensor.home]
            why = f"it is {other}, up to a number"
            e = record.add(tensor, "share", e, number / own * other, why)
        elif tensor in wanted and isinstance(e, (Add, Mul, Sum)):
            first[rest, tensor.home] = number, tensor
        result.append((tensor, e))
    return result


def _number_apart(e: Expr) -> tuple[Expr, Expr]:
    """``e`` as a number times the rest, the signs of sums and choices being part of the number."""
    number, rest = e.as_coeff_Mul(rational=True)
    factors = []
    for factor in Mul.make_args(rest):
        content, factor = factor.primitive() if isinstance(factor, Add) else (S.One, factor)
        opposite = _is_opposite(factor)
        number *= -content if opposite else content
        factors.append(_opposite(factor) if opposite else factor)
    return number, Mul(*factors)


def _is_opposite(e: Expr) -> bool:
    """Whether ``e`` is the opposite one of a sum or choice and its negative."""
    if isinstance(e, Piecewise):
        first = next((value for value, _ in e.args if value != 0), S.One)
        return first.could_extract_minus_sign()
    return isinstance(e, Add) and e.could_extract_minus_sign()


def _opposite(e: Expr) -> Expr:
    if isinstance(e, Piecewise):
        return e.func(*((-value, condition) for value, condition in e.args))
    return -e


def gradients_reused(statements: Pairs, record: Record) -> Pairs:
    """Read a sum or another whole array that is a gradient under its name, also where that is a
    fraction of it.
    """
    for i, (tensor, _) in enumerate(statements):
        factors = Mul.make_args(statements[i][1])
        total = next((f for f in factors if isinstance(f, (Sum, Whole))), None)
        others = [e for t, e in statements if t != tensor]
        if total is None or not any(_reads(e, total) for e in others):
            continue
        rest = [f for f in factors if f is not total]
        if axes_of(total) == set(tensor.home) and all(map(_divides, rest)):
            kind = "sum" if isinstance(total, Sum) else total.word
            why = f"that {kind} is {tensor}" + (", up to its divisor" if rest else "")
            multiple = tensor / Mul(*rest)
            statements = _replaced(statements, total, multiple, why, record, skip=tensor)
            statements = _states_before(statements, total, multiple, tensor, record)
    return statements


def _reads(e: Expr, total: Expr) -> bool:
    before = type(total) is Recurrence and RecurrenceBefore.over(*total.operands, total.axes)
    return e.has(total) or (before and e.has(before))


def _states_before(
    statements: Pairs, total: Expr, state: Expr, tensor: Tensor, record: Record
) -> Pairs:
    """The states before those of the recurrence ``total``, which are ``state``, are read off it."""
    if type(total) is not Recurrence:
        return statements
    before = RecurrenceBefore.over(*total.operands, total.axes)
    read = RecurrenceBefore.over(state, S.Zero, total.initial, total.axes)
    return _replaced(statements, before, read, f"one place before {tensor}", record, skip=tensor)


def _divides(factor: Expr) -> bool:
    return isinstance(factor, Pow) and factor.exp.is_negative is True


def products_named(
    statements: Pairs,
    products: dict[Tensor, Expr],
    flows: Callable[[Tensor, Tensor], bool],
    record: Record,
) -> Pairs:
    """Name full-size products that are needed repeatedly: an adjoint such as dxhat = gain*dy."""
    for tensor, product in products.items():
        factors = set(Mul.make_args(product))
        if len(factors) < 2 or any(is_number_or_size(f) for f in factors) or product.has(Sum):
            continue
        if axes_of(product) == set(tensor.home):
            readers = {target for target, _ in statements if flows(tensor, target)}
            statements = _product_named(statements, tensor, product, record, readers)
    return statements


def _product_named(
    statements: Pairs,
    tensor: Tensor,
    product: Expr,
    record: Record,
    readers: set[Tensor] | None = None,
) -> Pairs:
    """``product`` under the name ``tensor``, in the statements of ``readers`` (None: in all)."""
    factors = set(Mul.make_args(product))
    read = [(t, e) for t, e in statements if readers is None or t in readers]
    uses = sum(_holds(node, factors) for _, e in read for node in _products_in(e))
    if uses < 2:
        return statements

    def with_name(node):
        return Mul(tensor, *(f for f in node.args if f not in factors))

    result = [(tensor, product)]
    for target, e in statements:
        if (target, e) not in read:
            result.append((target, e))
            continue
        after = e.replace(lambda node: isinstance(node, Mul) and _holds(node, factors), with_name)
        why = f"the product is needed {uses} times: it is {tensor}"
        result.append((target, record.add(target, "share", e, after, why)))
    return result


def _products_in(e: Expr) -> list[Expr]:
    """Every product that is written in ``e``, each as often as it is written."""
    found = [e] if isinstance(e, Mul) else []
    return found + [p for arg in e.args for p in _products_in(arg)]


def _holds(node: Expr, factors: set[Expr]) -> bool:
    return factors <= set(Mul.make_args(node))


def repeats_named(
    statements: Pairs,
    taken: set[str],
    record: Record,
    is_cheaper: Callable[[Pairs, Pairs], bool],
    apart: tuple[type, ...] = (),
) -> Pairs:
    """Name reductions, functions and roots that are written more than once where the whole
    ``is_cheaper`` so, except those of the kinds ``apart``; what is a statement by itself has its
    name.
    """
    for tensor, e in statements if apart else ():
        if isinstance(e, apart) and axes_of(e) == {*tensor.home}:
            why = f"it is {tensor}"
            statements = _replaced(statements, e, tensor, why, record, skip=tensor)
    taken, dearer = taken | {tensor.name for tensor, _ in statements}, set()
    while True:
        counts: Counter[Expr] = Counter()
        for _, e in statements:
            counts.update(_nameable(e))
        repeated = {e for e, n in counts.items() if n > 1 and not isinstance(e, apart)} - dearer
        if not repeated:
            return statements
        e = max(repeated, key=lambda e: (operations_in(e), e.sort_key()))
        axes = _axes_in_order(e, statements)
        name = first_unused(names_of(e, _first_with(e, statements)), taken.__contains__)
        tensor, trial = Tensor(name, axes, role="adjoint", **known_signs(e)), Record()
        why = f"computed once, as {name}"
        named = [(tensor, e), *_replaced(statements, e, tensor, why, trial, skip=tensor)]
        if is_cheaper(named, statements):
            statements = named
            taken.add(name)
            record.steps.extend(trial.steps)
        else:
            dearer.add(e)


def _axes_in_order(e: Expr, statements: Pairs) -> list[Axis]:
    """The axes of ``e`` as the tensors have them; those that only a node inside of it brings come
    last.
    """
    met = [a for tensor, other in statements for t in [tensor, *tensors_in(other)] for a in t.home]
    return sorted(axes_of(e), key=lambda a: (met.index(a) if a in met else len(met), a.name))


def _nameable(e: Expr) -> list[Expr]:
    if isinstance(e, (OneHot, Compared)):
        return []
    own = [e] if is_computed_once(e) else []
    return own + [found for arg in e.args for found in _nameable(arg)]


def _first_with(e: Expr, statements: Pairs) -> str:
    """The first value in which ``e`` is written."""
    return next(tensor.name for tensor, whole in statements if whole.has(e))


def in_order_of_use(statements: Pairs) -> Pairs:
    """Sort every statement after those that it reads; otherwise the order is kept."""
    pending, done = list(statements), []
    while pending:
        names = {tensor.name for tensor, _ in pending}
        ready = [p for p in pending if not names & {t.name for t in tensors_in(p[1])}]
        done.append(
            min(
                ready,
                key=lambda p: (
                    not isinstance(p[1], Sum),
                    not is_contraction(p[1]),
                    pending.index(p),
                ),
            )
        )
        pending.remove(done[-1])
    return done
