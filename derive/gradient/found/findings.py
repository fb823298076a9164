"""Findings of the derivation besides the gradients, for the reader to take away.

In: a `Forward`. Out: findings, each an exact statement that was found by closing the chain and then
proved as a gradient is, on explicit scalars and for every size. Nothing is looked for by name:

- *no influence*: two statements with a path between them, and yet the derivative is zero. The
  variance does not change with the mean; a bias in front of a normalisation changes nothing.
- *balance*: the entries of a gradient sum to zero along an axis. The gradient of the logits pulls
  up as strongly as it pushes down.
- *matrix products*: the gradients of a matrix product, written out for two by two entries, are
  matrix products themselves (``matrix_example.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sympy import Expr, Integer

from derive.gradient.chain.chain import Adjoint, Chain, derive_chain, up_to
from derive.gradient.closing.closed_form import ClosedForm, ClosedStatement, draft
from derive.gradient.closing.identities import elimination, identities
from derive.gradient.closing.rewriting import normal_form
from derive.gradient.closing.steps import Fact, Record, RewriteStep
from derive.gradient.found.matrix_example import AxisSum, MatrixProduct, recognised_products
from derive.language.errors import UnprovedError
from derive.language.nodes import ArrayNode, Sum
from derive.language.notation.definition import Definition, Statement
from derive.language.notation.forward import Forward
from derive.language.notation.library import as_forward
from derive.language.symbols import Axis, Tensor, axes_of, tensors_in
from derive.proof.proving.claim import ProvedGradient
from derive.proof.proving.proof import proved_gradient


@dataclass(frozen=True)
class NoInfluence:
    """The derivative of ``of`` by ``by`` is zero, although ``of`` is computed from it."""

    of: Tensor
    by: Tensor
    steps: tuple[RewriteStep, ...]
    facts: tuple[Fact, ...]
    proved: ProvedGradient

    def __str__(self) -> str:
        return f"the derivative of {self.of} by {self.by} is zero"


@dataclass(frozen=True)
class Balance:
    """The entries of ``gradient`` sum to zero along ``axis``."""

    gradient: Tensor
    axis: Axis
    steps: tuple[RewriteStep, ...]
    facts: tuple[Fact, ...]
    proved: ProvedGradient

    def __str__(self) -> str:
        return f"{self.gradient} sums to zero along {self.axis}"


Finding = NoInfluence | Balance | MatrixProduct | AxisSum


def findings(forward: type[Forward] | str | Path) -> tuple[Finding, ...]:
    """Proved facts about ``forward``: a `Forward`, a NAME, or a file that holds one.

    Raises `QuestionError` for mathematics that is not supported. What cannot be proved is left out.
    """
    forward = as_forward(forward)
    return findings_of(forward.definition)


def findings_of(definition: Definition) -> tuple[Finding, ...]:
    """The same for a definition."""
    whole = draft(derive_chain(definition))
    return (*zero_gradients(whole), *recognised_products(definition))


def zero_gradients(
    whole: ClosedForm, proved: Sequence[ProvedGradient] = (), wanted: Collection[str] | None = None
) -> Iterator[NoInfluence | Balance]:
    """Find derivatives and balances that are zero, given the `draft` of a whole chain.

    ``proved`` are gradients that are known to be zero already, which are not proved again; of the
    balances only those of the gradients called ``wanted`` are looked for.
    """
    yield from _without_influence(whole, {gradient.tensor: gradient for gradient in proved})
    yield from _balanced(whole, wanted)


def _without_influence(
    whole: ClosedForm, known: Mapping[Tensor, ProvedGradient]
) -> Iterator[NoInfluence]:
    """Pairs of which one does not change with the other, at the first statement where that is so
    and at the output.
    """
    chain, definition, unmoved = whole.chain, whole.definition, {}
    for count, statement in enumerate(definition.statements, 1):
        at_output = definition.outputs == (statement.tensor,)
        if not at_output and _moves_with_what_it_reads(statement, chain):
            read = [t.name for t in tensors_in(statement.expression)]
            unmoved[statement.name] = set().union(*(unmoved.get(name, ()) for name in read))
            continue
        form = whole if at_output else draft(up_to(chain, count))
        unmoved[statement.name] = {
            adjoint.of.name
            for adjoint in form.chain.adjoints
            if adjoint.contributions and form.closed[adjoint.name] == 0
        }
        for name in sorted(unmoved[statement.name], key=definition.position.get):
            adjoint = form.chain.by_name[f"d{name}"]
            if at_output or not _follows(statement, adjoint, unmoved, form.chain):
                proved = (known.get(adjoint.tensor) if at_output else None) or _proved_zero(
                    form, adjoint
                )
                if proved is not None:
                    steps = form.steps_to(adjoint.tensor)
                    yield NoInfluence(statement.tensor, adjoint.of, steps, form.facts, proved)


def _moves_with_what_it_reads(statement: Statement, chain: Chain) -> bool:
    """Whether it is pointwise, in tensors that are computed from nothing in common: no entry of
    it stands still while what it reads moves, so that there is nothing to find.
    """
    read = [t for t in tensors_in(statement.expression) if t.role in ("input", "statement")]
    reached = [{c.via for c in chain.by_name[f"d{t.name}"].contributions} for t in read]
    if statement.expression.has(ArrayNode) or any(statement.name not in via for via in reached):
        return False
    sources = [_sources(chain.definition, t.name) for t in read]
    return sum(map(len, sources)) == len(set().union(*sources))


def _sources(definition: Definition, name: str) -> set[str]:
    """The tensor called ``name``, and all that it is computed from."""
    found = {name}
    for statement in reversed(definition.statements):
        if statement.name in found:
            found.update(t.name for t in tensors_in(statement.expression) if t.role != "scalar")
    return found


def _follows(statement: Statement, adjoint: Adjoint, unmoved, chain: Chain) -> bool:
    """Whether everything that the statement reads is unmoved already, or does not depend at all."""
    name = adjoint.of.name
    moving = {t.name for t in tensors_in(statement.expression)} & chain.definition.depending_on(
        name
    )
    return name not in moving and all(name in unmoved.get(other, ()) for other in moving)


def _total_vanishes(form: ClosedForm, adjoint: Adjoint, axis: Axis) -> tuple[RewriteStep, ...]:
    """The steps by which a gradient is found to sum to zero along ``axis``, if it is."""
    whole = Sum.over(adjoint.tensor, [axis])
    total, rules = Sum.over(form.closed[adjoint.name], [axis]), (elimination, *identities)
    record = Record()
    record.add(adjoint.tensor, "closed form", whole, total, f"that of {adjoint.tensor} is inserted")
    vanishes = normal_form(total, adjoint.tensor, rules, form.knowledge, record) == 0
    return tuple(record.steps) if vanishes else ()


def _balanced(form: ClosedForm, wanted: Collection[str] | None) -> Iterator[Balance]:
    """Gradients that sum to zero along an axis; of equal ones the last."""
    seen: set[tuple[Expr, Axis]] = set()
    for adjoint in reversed(form.chain.adjoints):
        closed = form.closed[adjoint.name]
        for axis in adjoint.of.home:
            if (closed, axis) in seen or closed == 0 or axis not in axes_of(closed):
                continue
            seen.add((closed, axis))
            if wanted is not None and adjoint.name not in wanted:
                continue
            steps = _total_vanishes(form, adjoint, axis)
            if not steps:
                continue
            moved = draft(derive_chain(_shifted(form.definition, adjoint.of, axis)))
            shift = moved.chain.adjoints[-1]
            proved = _proved_zero(moved, shift)
            if proved is not None:
                facts = tuple(filter(None, form.knowledge.found.values()))
                yield Balance(adjoint.tensor, axis, steps, facts, proved)


def _shifted(definition: Definition, tensor: Tensor, axis: Axis) -> Definition:
    """The same forward with one number added to ``tensor`` all along ``axis``.

    The derivative by that number is the sum of the gradient of ``tensor`` along the axis.
    """
    shift = Tensor(f"{tensor}_shift", [a for a in tensor.home if a != axis])
    inputs = (*definition.inputs, shift)
    place = definition.place
    statements = list(definition.statements)
    if tensor.role == "statement":
        at = [s.name for s in statements].index(tensor.name)
        statements[at] = replace(statements[at], expression=statements[at].expression + shift)
        return replace(definition, inputs=inputs, statements=tuple(statements))
    moved = Tensor(f"{tensor}_shifted", tensor.home, role="statement")
    for i, statement in enumerate(statements):
        met = [t for t in tensors_in(statement.expression) if t.at_home == tensor]
        expression = statement.expression.xreplace({t: moved.along(t.axes) for t in met})
        statements[i] = replace(statement, expression=expression)
    first = Statement(moved, tensor + shift, place)
    return replace(definition, inputs=inputs, statements=(first, *statements))


def _proved_zero(form: ClosedForm, adjoint: Adjoint) -> ProvedGradient | None:
    """The proof that the gradient is zero, or None."""
    try:
        return proved_gradient(form, ClosedStatement(adjoint.tensor, Integer(0), adjoint.of))
    except UnprovedError:
        return None
