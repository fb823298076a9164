"""The proof: two derivations that share no code with the chain must agree with the closed form
exactly.

In: a `ClosedForm`. Out: a `Proved`, or an `UnprovedError` that names what failed.

What is proved of a gradient ``dx``. Let ``L`` be the sum over all entries of ``dk * k``, for the
output and for every tensor ``k`` whose gradient ``dk`` the closed form keeps as a statement. By the
chain rule ``dx`` is the derivative of ``L`` by ``x``, with each such ``k`` taken as independent by
whatever reads it. So every statement is proved by itself, and a long network costs no more than its
longest block. ``claim.py`` decides it, for small batches and for every size.

The first is required. Where the second does not succeed, the record says that only the small
batches were proved. The chain is proved likewise (``chain_proof.py``), since it is emitted too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from sympy import Expr, Integer, Symbol

from derive.chain_proof import prove_chain
from derive.claim import Batches, Claim, ProvedGradient, holds_for_every_size, holds_on, named_sizes
from derive.closed_form import ClosedForm, ClosedStatement
from derive.definition import Definition
from derive.errors import UnprovedError
from derive.exact import ZeroTest, is_zero
from derive.facts import along
from derive.nodes import ArrayNode
from derive.symbols import Axis, Tensor, size_divisors, tensors_in

SMALL = (2, 3, 4)
LARGEST = 12  # the most that is added to them
MOST_FLAT = 8  # along an axis that others were flattened into
MOST_ENTRIES = 24  # of a tensor of three axes or more; so that a proof takes seconds


@dataclass(frozen=True)
class Proved:
    """A closed form that may be emitted, with what was proved of each of its gradients, and of each
    adjoint of its chain.
    """

    closed_form: ClosedForm
    gradients: tuple[ProvedGradient, ...]
    adjoints: tuple[ProvedGradient, ...]

    @property
    def definition(self) -> Definition:
        return self.closed_form.definition

    @property
    def every_size(self) -> bool:
        return all(gradient.every_size for gradient in self.gradients)

    def __repr__(self) -> str:
        return f"<{self.definition.name}, proved: {self.summary}>"

    def _repr_html_(self) -> str:
        from derive.presentation.notebook import html_of

        return html_of(self)

    def _repr_latex_(self) -> str:
        return self.closed_form._repr_latex_()

    @property
    def summary(self) -> str:
        """In words: which sizes, by which route."""
        only = ", ".join(str(g.tensor) for g in self.adjoints if not g.every_size)
        steps = "every step of the chain too"
        steps += f", but {only} for those sizes alone" if only and self.every_size else ""
        return f"{in_words(self.gradients)}; {steps}"


def in_words(gradients: Sequence[ProvedGradient]) -> str:
    """What was proved of these gradients of one forward: which sizes, by which route."""
    batches = gradients[0].sizes if gradients else ((),)
    names = "x".join(axis for axis, _ in batches[0])
    if not names:
        small = "exactly zero difference to SymPy's own derivative"
    else:
        shown = ", ".join("x".join(str(size) for _, size in batch) for batch in batches)
        small = (
            "exactly zero difference to SymPy's own derivative on explicit scalars, "
            f"{names} = {shown}"
        )
    if all(gradient.every_size for gradient in gradients):
        return f"{small}; for every size by the derivative of indexed sums"
    only = ", ".join(str(g.tensor) for g in gradients if not g.every_size)
    return f"{small}; only those sizes were proved for {only}"


def prove(form: ClosedForm, progress: Callable[[str], None] = lambda what: None) -> Proved:
    """Prove every gradient of ``form``, and every step of its chain.

    Raises `UnprovedError` with the name of the first that fails.
    """
    batches = [(sizes, ZeroTest()) for sizes in batches_of(form.definition)]
    proved = []
    for statement in form.statements:
        if statement.of is not None:
            progress(f"proving {statement.tensor}")
            proved.append(proved_gradient(form, statement, batches))
    progress("proving the chain")
    return Proved(form, tuple(proved), prove_chain(form.chain, batches))


def proved_gradient(
    form: ClosedForm, statement: ClosedStatement, batches: Batches | None = None
) -> ProvedGradient:
    """Prove one gradient; the statement need not be one of ``form``'s own.

    Raises `UnprovedError` if it is not the derivative.
    """
    batches = batches or [(sizes, ZeroTest()) for sizes in batches_of(form.definition)]
    cuts = _cuts(form, statement)
    for sizes, test in batches:
        while not holds_on(_claim(form, statement, cuts), sizes, test):
            if not cuts:
                raise UnprovedError(_failure(form, statement, sizes))
            cuts = _without_nearest(form, cuts)
    return ProvedGradient(
        statement.tensor,
        named_sizes(batches),
        holds_for_every_size(_claim(form, statement, cuts)),
    )


def batches_of(definition: Definition) -> list[dict[Axis, int]]:
    """Three small batches: every axis takes each of 2, 3 and 4, neighbours never the same.

    Where the mathematics divides by something that is not positive there, all sizes are larger.
    """
    divisors = [d for s in definition.statements for d in size_divisors(s.expression)]
    for more in range(LARGEST):
        batches = _batches(definition, more)
        whole = [definition.sizes_from(batch) for batch in batches]
        if all(d.xreplace(sizes) > 0 for sizes in whole for d in divisors):
            return batches
    raise UnprovedError(
        f"{definition.name}: no small sizes were found at which {divisors[0]} is positive"
    )


def _batches(definition: Definition, more: int) -> list[dict[Axis, int]]:
    axes = definition.independent_axes
    starts = range(len(SMALL) if axes else 1)
    batches = []
    for start in starts:
        sizes = {axis: SMALL[(start + i) % len(SMALL)] for i, axis in enumerate(axes)}
        for axis in reversed(axes[1:]):  # the first axis keeps its size: that is the batch
            if _largest(definition, sizes) > MOST_ENTRIES:
                sizes[axis] = SMALL[0]
        for flat, parts in definition.flattened:
            for part in reversed([p for p in parts if p in sizes]):
                if definition.sizes_from(sizes)[flat] > MOST_FLAT:
                    sizes[part] = SMALL[0]
        batches.append({axis: Integer(size + more) for axis, size in sizes.items()})
    return batches


def _largest(definition: Definition, sizes: Mapping[Axis, int]) -> int:
    """The entries of the largest tensor."""
    tensors = [*definition.inputs, *(s.tensor for s in definition.statements)]
    whole = definition.sizes_from(sizes)
    return max(prod(whole[axis] for axis in t.home) for t in tensors)


def _cuts(form: ClosedForm, statement: ClosedStatement) -> frozenset[str]:
    """The tensors whose gradients the statement may take as given: kept ones that are computed
    later, from the target.
    """
    position = form.definition.position
    depending = form.definition.depending_on(statement.of.name)
    return frozenset(
        s.of.name
        for s in form.statements
        if s.of is not None
        and s.of.role == "statement"
        and s.of.name in depending
        and position[s.of.name] > position[statement.of.name]
    )


def _without_nearest(form: ClosedForm, cuts: frozenset[str]) -> frozenset[str]:
    """A gradient that was given may not be free: its block is proved together with the next."""
    return cuts - {min(cuts, key=form.definition.position.get)}


def inlined(form: ClosedForm, statement: ClosedStatement, cuts: frozenset[str]) -> Expr:
    """The expression of ``statement`` in the upstream gradient, the gradients of the cuts, and
    named values alone. What is a value computed again is that value, if it is proved to be.
    """
    given = {f"d{name}" for name in cuts} | {form.chain.upstream.name}
    parts = {part.tensor.name: part.expression for part in form.relations.parts}
    values = {t: value for t, value in form.again.items() if _is_computed_again(form, t)}

    def with_values(e: Expr) -> Expr:
        return e.xreplace(
            {t: along(values[t.at_home], t) for t in tensors_in(e) if t.at_home in values}
        )

    e = with_values(statement.expression)
    while True:
        definitions = {
            t: parts[t.name] if t.name in parts else form.by_name[t.name].expression
            for t in tensors_in(e)
            if t.name in parts or (t.role == "adjoint" and t.name not in given)
        }
        if not definitions:
            return e
        e = e.xreplace({t: along(definition, t) for t, definition in definitions.items()})
        e = with_values(e)


def _is_computed_again(form: ClosedForm, again: Tensor) -> bool:
    """Whether a statement of the closed form is proved to be the value that it stands for. Both are
    taken entry by entry, so this holds for every size.
    """
    claim = form.by_name[again.name].expression
    while nested := [t for t in tensors_in(claim) if t.role == "adjoint"]:
        claim = claim.xreplace({t: along(form.by_name[t.name].expression, t) for t in nested})
    value, known = form.again[again], {t.at_home for t in tensors_in(claim)}
    while unknown := [t for t in tensors_in(value) if t.at_home not in known]:
        if any(t.name not in form.relations.by_name for t in unknown):
            return False
        value = value.xreplace({t: form.relations.unfolded(t) for t in unknown})
    return not (value.has(ArrayNode) or claim.has(ArrayNode)) and _are_the_same(value, claim)


@lru_cache(maxsize=256)
def _are_the_same(a: Expr, b: Expr) -> bool:
    """Whether two expressions entry by entry are equal, whatever the entries are."""
    entries = {
        t: Symbol(str(t), real=True, positive=t.is_positive or None)
        for t in {*tensors_in(a), *tensors_in(b)}
    }
    return a == b or is_zero((a - b).xreplace(entries))


def _objective_tensors(
    definition: Definition, target: Tensor, cuts: frozenset[str]
) -> list[Tensor]:
    """The tensors of the objective that are computed from the target without a cut between: the
    derivative of every other term is zero.
    """
    reached, found = {target.name}, []
    for statement in definition.statements:
        if reached.isdisjoint(t.name for t in tensors_in(statement.expression)):
            continue
        if statement.name in cuts or statement.tensor == definition.output:
            found.append(statement.tensor)
        if statement.name not in cuts:
            reached.add(statement.name)
    return found


def _claim(form: ClosedForm, statement: ClosedStatement, cuts: frozenset[str]) -> Claim:
    """That ``statement`` is the derivative of what is computed from its target up to the cuts.

    The cuts and the target itself are near, what does not depend on the target at all is far,
    latest first.
    """
    definition, target = form.definition, statement.of
    depending = definition.depending_on(target.name)
    names = [s.name for s in reversed(definition.statements)]
    near = tuple(name for name in names if name in cuts or name == target.name)
    far = tuple(name for name in names if name not in depending and name not in near)
    objective = tuple(_objective_tensors(definition, target, cuts))
    return Claim(definition, target, inlined(form, statement, cuts), objective, near, far)


def _failure(form: ClosedForm, statement: ClosedStatement, sizes) -> str:
    shown = ", ".join(f"{axis.name} = {n}" for axis, n in sizes.items())
    return (
        f"{form.definition.name}: {statement.tensor} is unproved. On explicit scalars with "
        f"{shown} the derivative of {form.definition.output} by {statement.of} is not "
        f"{statement.expression}; nothing was emitted"
    )
