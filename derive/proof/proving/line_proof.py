"""Every line that the forward computes is equal to what the user wrote, or is not emitted.

In: the lines of the forward in the order in which they are computed, and the closed form that reads
their values. Out: how each is known to be right. Whatever has rewritten, split, inlined, centred,
left out or reordered them is not asked: what the lines *come to* is compared with the user's
statements, and for a part that the backward reads, with what the proof of the gradients took it
for.

The comparison is exact, on explicit scalars of two small batches; no floating point is in it. Of a
`Peak` nothing is assumed, because any number does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sympy import Add, Expr, Mul, exp

from derive.gradient.closing.closed_form import ClosedForm
from derive.gradient.values.naming import NamedValue, in_full
from derive.gradient.values.relations import Relations
from derive.language.choices import without_minus_infinity, written_in
from derive.language.nodes import Peak, Sum, along
from derive.language.notation.definition import Definition
from derive.language.symbols import axes_of, tensors_in
from derive.proof.proving.batch_sizes import batches_of
from derive.proof.proving.small_batch import SmallBatch
from derive.proof.zero.exact import is_zero

DEEPEST = 3  # definitions, one in the other, that a line of the forward may be proved by
WRITTEN, PROVED, STEP, UNPROVED = "as it is written", "proved equal", "a step", "unproved"


@dataclass(frozen=True)
class ForwardLine(NamedValue):
    """A line of the forward, with the way in which it was proved.

    `WRITTEN`: it is the user's, up to the names of parts; `PROVED`: with the lines that it is made
    of it is equal to the user's; `STEP`: it is a part of others, and nobody else reads it.
    """

    how: str


def proved_lines(values: Iterable[NamedValue], form: ClosedForm) -> tuple[ForwardLine, ...]:
    """The lines, each with the way in which it was proved; one that was not is `UNPROVED`."""
    values, relations = list(values), form.relations
    statements = form.definition.by_name
    computed = {v.tensor.name for v in values}
    saved = {t.name for t in form.saved}
    inside: dict[str, Expr] = {}  # what a part, or a line so far, comes to
    lines, done = [], {t.name for t in form.definition.inputs} | _numbers(form)
    for i, (tensor, e) in enumerate((v.tensor, v.expression) for v in values):
        claim = _with(e, inside)
        in_order = all(t.name in done or t.role in ("kept", "label") for t in tensors_in(e))
        last = all(tensor.name != other.tensor.name for other in values[i + 1 :])
        done.add(tensor.name)
        inside[tensor.name] = claim
        how = STEP
        if last:
            if tensor.name in statements:
                how = _how(statements[tensor.name].expression, claim, relations, computed)
                del inside[tensor.name]  # from here on it is what the user says it is
            elif tensor.name in saved:
                whole = in_statements_and_peaks(
                    relations.by_name[tensor.name].expression, relations
                )
                how = _how(whole, claim, relations, computed)
            if isinstance(e, Peak):
                inside.pop(tensor.name, None)
        lines.append(ForwardLine(tensor, e, how if in_order else UNPROVED))
    return tuple(lines)


def _numbers(form: ClosedForm) -> set[str]:
    return {t.name for t, _ in form.definition.scalars}


def _with(e: Expr, inside: dict[str, Expr]) -> Expr:
    return written_in(e, {t: along(inside[t.name], t) for t in tensors_in(e) if t.name in inside})


def in_statements_and_peaks(e: Expr, relations: Relations) -> Expr:
    """``e`` in the user's values and peaks, as the proof of the gradients reads a part."""
    return in_full(e, [p for p in relations.parts if not isinstance(p.expression, Peak)])


def _how(truth: Expr, claim: Expr, relations: Relations, computed: set[str]) -> str:
    if truth == claim or (isinstance(claim, Peak) and claim.args == truth.args):
        return WRITTEN
    about, pairs = relations.about_means(truth)
    pairs = [*pairs, (about, claim)]
    return PROVED if all(_are_equal(*pair, relations, computed) for pair in pairs) else UNPROVED


def _are_equal(a: Expr, b: Expr, relations: Relations, computed: set[str]) -> bool:
    """Whether two forms of a line are proved equal: by their differing parts, else as a whole."""
    if isinstance(a, (Add, Mul)) and isinstance(b, type(a)):
        left = a.func(*(arg for arg in a.args if arg not in b.args))
        right = a.func(*(arg for arg in b.args if arg not in a.args))
        if left != a and _are_equal(left, right, relations, computed):
            return True
    sums = isinstance(a, Sum) and isinstance(b, Sum) and a.axes == b.axes
    if sums and _are_equal(a.operand, b.operand, relations, computed):
        return True
    return a == b or vanishes(a - b, relations, computed)


def vanishes(total: Expr, relations: Relations, computed: Iterable[str] = ()) -> bool:
    """Whether ``total``, in statements and peaks, is zero on explicit scalars.

    One entry of each kind is enough, as it is for a gradient. Only the definitions at hand are
    used: of what is not among the ``computed`` statements or holds an exponential, then of all that
    is met so as well, then of what is met in those. Everything before them is free, so that a line
    of a long forward is as quick to prove as that of a short one.
    """
    definition = relations.definition
    total = total.replace(lambda e: isinstance(e, exp), without_minus_infinity)
    axes = definition.in_order(axes_of(total))
    sizes_of_batches = batches_of(definition)[:2]
    by_name = definition.by_name
    written_out = set(relations.scales.known) | (by_name.keys() - set(computed or by_name))
    for _ in range(DEEPEST):
        free = frozenset(by_name.keys() - written_out)
        batches = [SmallBatch(definition, sizes, free) for sizes in sizes_of_batches]
        if all(
            is_zero(batch.scalar(total, axes, i))
            for batch in batches
            for i in batch.representatives(axes, total)
        ):
            return True
        written_out |= _met(total, written_out, definition)
    return False


def _met(total: Expr, written_out: set[str], definition: Definition) -> set[str]:
    """The statements in ``total`` and in the definitions that are written out."""
    met: set[str] = set()
    new = {t.name for t in tensors_in(total)}
    while new := (new & definition.by_name.keys()) - met:
        met |= new
        inner = (definition.by_name[name].expression for name in new & written_out)
        new = {t.name for e in inner for t in tensors_in(e)}
    return met
