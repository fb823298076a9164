"""The proof: statement by statement, the closed form is SymPy's own derivative.

In: a `ClosedForm`. Out: a `Proved`, or an `UnprovedError` that names what failed.

What is proved of a gradient ``dx``. By the chain rule it is the sum, over the statements that read
``x``, of the derivative of ``Sum(dk * k)`` by ``x``. That every step of the chain is that
derivative is proved on the statement alone (``chain_proof.py``). That the closed form of ``dx`` has
the value of that sum, in which the closed form of each ``dk`` stands, is proved as an equality
between values of the forward; each ``dk`` the same, up to the upstream gradients. So a long network
costs as much as its statements do, one after the other. The statements are those of the forward
with its parts (``forward_in_parts.py``), each proved to say what the user's says; a step of the
chain through a statement that has parts is equal to what the steps through these come to.

Values of the forward are independent in an equality until their definitions are needed. An equality
that takes long at once is proved from each expression of the recorded derivation to the next.
``claim.py`` decides, for small batches and for every size. The first is required. Where the second
does not succeed, the record says that only the small batches were proved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import pairwise

from sympy import Expr, exp

from derive.gradient.chain.chain import Adjoint, Chain, adjoint_of
from derive.gradient.closing.closed_form import ClosedForm, ClosedStatement
from derive.language.choices import without_minus_infinity, written_in
from derive.language.detached import attached
from derive.language.errors import UndecidedError, UnprovedError
from derive.language.nodes import along
from derive.language.symbols import Axis, Tensor, tensors_in
from derive.proof.proving.alike import shown_by_parts
from derive.proof.proving.batch_sizes import batches_of
from derive.proof.proving.chain_proof import shown_adjoint
from derive.proof.proving.claim import (
    Batch,
    Equality,
    ProvedGradient,
    ShownClaims,
    may_hold,
    needed_on,
)
from derive.proof.proving.forward_in_parts import ForwardInParts
from derive.proof.proving.inner_gradients import shown_gradients
from derive.proof.proving.proved import Proved, cut_short, failure, out_of_time
from derive.proof.proving.written_out import (
    adjoints_in,
    are_the_same,
    computed_again,
    inlined,
    without_parts,
)
from derive.proof.zero.exact import WITHIN
from derive.running.limits import Doing, Stage


def prove(form: ClosedForm, progress: Callable[[str], None] = lambda what: None) -> Proved:
    """Prove every gradient of ``form``, and every step of its chain.

    Raises `UnprovedError` with the name of the first that fails, and `UndecidedError` where the
    time is out before all are proved for small batches.
    """
    proofs, doing = Proofs(form), Doing(progress)
    with Stage() as required:
        inner = shown_gradients(form.definition)
        for adjoint in form.chain.adjoints:
            doing(f"proving {adjoint.tensor}")
            proofs.step(adjoint)
            proofs.closed(adjoint.name)
        gradients = [proofs.closed(s.tensor.name) for s in form.statements if s.of is not None]
    if required.is_over:
        raise UndecidedError(out_of_time(form, proofs.proved, doing))
    adjoints = [*inner, *(proofs.step(adjoint) for adjoint in form.chain.adjoints)]
    with Stage() as further:
        for shown in [*adjoints, *gradients]:
            doing(f"proving {shown.tensor} for every size")
            shown.decide()
    batches = proofs.batches
    return Proved(
        form,
        tuple(shown.on(batches) for shown in gradients),
        tuple(shown.on(batches) for shown in adjoints),
        cut_short(form, [*gradients, *adjoints] if further.is_over else []),
    )


def proved_gradient(form: ClosedForm, statement: ClosedStatement) -> ProvedGradient:
    """Prove one gradient; the statement need not be one of ``form``'s own.

    Raises `UnprovedError` if it is not the derivative.
    """
    proofs = Proofs(form, of_values=True)
    shown = proofs.gradient(statement)
    shown.decide()
    return shown.on(proofs.batches)


class Proofs:
    """Proofs about a closed form: each made once, and only on request.

    Detached values are free in every equality, so that a closed form may be differentiated again;
    but not in one ``of_values``, as a claim is.
    """

    def __init__(self, form: ClosedForm, of_values: bool = False):
        self.form, self.of_values = form, of_values
        self.sizes = batches_of(form.definition)
        self.batches = [Batch(form.definition, sizes) for sizes in self.sizes]
        self.kept = {
            s.of.name for s in form.statements if s.of is not None and s.of.role == "statement"
        }
        self.parts = ForwardInParts(form, self.batches)
        self._steps: dict[Adjoint, ShownClaims] = {}
        self._closed: dict[str, ShownClaims] = {}

    @property
    def proved(self) -> list[str]:
        """Closed forms proved on the small batches so far, and all that they rest on."""
        return [shown.tensor.name for shown in self._closed.values()]

    def chain_of(self, name: str) -> Chain:
        """The chain that defines an adjoint: of the parts, or the chain as written for a mere other
        name of one.
        """
        return self.parts.chain if name in self.parts.chain.by_name else self.form.chain

    def step(self, adjoint: Adjoint) -> ShownClaims:
        """Prove that ``adjoint`` is the derivative of the statements that read its tensor."""
        if adjoint not in self._steps:
            chain, batches = self.form.chain, self.batches
            if not self._is_as_written(adjoint):
                chain, batches = self.parts.chain, self.parts.batches
            shown = self._step_by_parts(adjoint) or shown_adjoint(chain, adjoint, batches)
            self._steps[adjoint] = shown
        return self._steps[adjoint]

    def _step_by_parts(self, adjoint: Adjoint) -> ShownClaims | None:
        """The same of a gradient that the forward has otherwise with its parts, where it is equal
        to what the steps through the parts come to, each of which is small. None where that is not
        shown.
        """
        written, parts = self.form.chain, self.parts.chain.by_name
        own = parts.get(adjoint.name)
        if own is None or own == adjoint or written.by_name.get(adjoint.name) != adjoint:
            return None
        steps, e = [own], own.expression
        known = {*written.by_name, *(t.name for t in written.upstreams)}
        while inner := [t for t in adjoints_in(e) if t.name not in known]:
            steps += [parts[t.name] for t in inner]
            e = written_in(e, {t: along(parts[t.name].expression, t) for t in inner})
        claim = Equality(self.parts.definition, adjoint.of.home, adjoint.expression, e)
        relations = self.form.relations
        unnamed = [
            p.tensor.name for p in relations.parts if p.tensor.name not in relations.scales.made
        ]
        found = shown_by_parts(claim, self.parts.batches, unnamed)
        grounds = [*map(self.step, dict.fromkeys(steps)), *self.parts.respelled]
        return None if found is None else ShownClaims(adjoint.tensor, found, grounds)

    def _is_as_written(self, adjoint: Adjoint) -> bool:
        """Whether the chain of the forward as written has this step."""
        written, parts = self.form.chain, self.parts.chain
        if written.by_name.get(adjoint.name) != adjoint:
            return False
        if parts.by_name.get(adjoint.name) != adjoint:
            return True
        return _readers(adjoint.of, written) == _readers(adjoint.of, parts)

    def closed(self, name: str) -> ShownClaims:
        """The closed form of an adjoint of the chain, under its name or inserted where it is
        read.
        """
        if name not in self._closed:
            adjoint = self.chain_of(name).by_name[name]
            inserted = ClosedStatement(adjoint.tensor, self.form.closed[name], adjoint.of)
            self._closed[name] = self.gradient(self.form.by_name.get(name) or inserted)
        return self._closed[name]

    def gradient(self, statement: ClosedStatement) -> ShownClaims:
        """Prove that ``statement`` follows from the chain, with the proved closed form of every
        adjoint that is read.
        """
        chain = self.chain_of(adjoint_of(statement.of).name)
        adjoint = chain.by_name[adjoint_of(statement.of).name]
        written = self._inlined(statement.expression, self.kept - {statement.of.name})
        met = {t.name for e in (adjoint.expression, written) for t in adjoints_in(e)}
        read = [a.name for a in chain.adjoints if a.name in met and a is not adjoint]
        grounds = [self.step(adjoint), *map(self.closed, read), *self.parts.respelled]
        return ShownClaims(statement.tensor, self._equality(adjoint, statement), grounds)

    def _equality(
        self, adjoint: Adjoint, statement: ClosedStatement
    ) -> list[tuple[Equality, set[str]]]:
        """The claims that are proved for small batches, each with the statements that it needed: at
        once, or step by step as it was derived where that takes long. Raises `UnprovedError`.
        """
        for most in WITHIN:
            if found := self._first_shown(self.claims(adjoint, statement), most):
                return found
            if not self._may_hold(adjoint, statement):
                break
            if found := self._by_steps(adjoint, statement, most):
                return found
        raise UnprovedError(failure(self.form, statement, self.sizes[0]))

    def _first_shown(
        self, claims: Iterable[Equality], most: int | None
    ) -> list[tuple[Equality, set[str]]] | None:
        """The first of the claims that is proved, if one is."""
        shown = (self._shown(claim, most) for claim in claims)
        return next(([found] for found in shown if found is not None), None)

    def _shown(self, claim: Equality, most: int | None) -> tuple[Equality, set[str]] | None:
        """The claim with the statements that it needed, if it is proved on all batches."""
        needed = needed_on(claim, self.compared, most)
        return None if needed is None else (claim, needed)

    def _may_hold(self, adjoint: Adjoint, statement: ClosedStatement) -> bool:
        """Whether the claim holds at random numbers, with all that is known of the gradients."""
        *_, claim = self.claims(adjoint, statement)
        return all(may_hold(claim, batch) for batch in self.compared)

    @cached_property
    def compared(self) -> list[Batch]:
        """Small batches on which both sides of an equality are written out."""
        if not self.of_values:
            return self.parts.batches
        definition = self.parts.definition
        statements = (replace(s, expression=attached(s.expression)) for s in definition.statements)
        definition = replace(definition, statements=tuple(statements))
        return [Batch(definition, batch.sizes) for batch in self.batches]

    def _equality_of(self, home: tuple[Axis, ...], left: Expr, right: Expr) -> Equality:
        if self.of_values:
            left, right = attached(left), attached(right)
        return Equality(self.compared[0].definition, home, left, right)

    def _by_steps(
        self, adjoint: Adjoint, statement: ClosedStatement, most: int | None
    ) -> list[tuple[Equality, set[str]]] | None:
        """The same from each expression of the recorded derivation to the next, if each is proved:
        a step needs to know little of the forward. What the record says is not relied upon.
        """
        free = self.kept - {statement.of.name}
        written = [adjoint.expression]
        written += [step.after for step in self.form.steps_to(adjoint.tensor)]
        known = {*self.form.by_name, *self.form.closed, *self.form.chain.arriving}
        written = [e for e in written if {t.name for t in adjoints_in(e)} <= known]
        written.append(statement.expression)
        lines = [self._in_parts(self._inlined(e, free)) for e in written]
        found = []
        for right, left in pairwise(dict.fromkeys(lines)):
            shown = self._shown(self._equality_of(statement.of.home, left, right), most)
            if shown is None:
                return None
            found.append(shown)
        return found

    def claims(self, adjoint: Adjoint, statement: ClosedStatement) -> Iterator[Equality]:
        """The equality with gradients that keep their names free, then with one of them after the
        other replaced by its closed form, the nearest first: what holds may need to know it.

        Both sides are brought to the same names before anything is tried.
        """
        form, free = self.form, self.kept - {statement.of.name}
        while True:
            left, right = (
                self._in_parts(self._inlined(e.expression, free)) for e in (statement, adjoint)
            )
            here, there = ({t.name[1:] for t in adjoints_in(e)} & free for e in (left, right))
            one_sided = here ^ there if here and there else set()
            if not one_sided:
                yield self._equality_of(statement.of.home, left, right)
            if not here | there:
                return
            free = free - {min(one_sided or here | there, key=form.relations.position.get)}

    @cached_property
    def again(self) -> dict[Tensor, Tensor]:
        return computed_again(self.form)

    def _inlined(self, e: Expr, cuts: Collection[str]) -> Expr:
        return inlined(self.form, e, cuts, self.again)

    def _in_parts(self, e: Expr) -> Expr:
        """``e`` with the parts of the forward under their names, if it is the same then; scores
        masked with -oo are 0 in an exponential, as in the forward with its parts.
        """
        relations = self.form.relations
        e = e.replace(lambda part: isinstance(part, exp), without_minus_infinity)
        named = relations.with_parts(e, among_others=True)
        both = (without_parts(named, relations), without_parts(e, relations))
        return named if named == e or are_the_same(*both) else e


def _readers(tensor: Tensor, chain: Chain) -> list[tuple[str, Expr]]:
    """The statements that read ``tensor``, with their expressions."""
    statements = ((s.name, s.expression) for s in chain.definition.statements)
    return [s for s in statements if any(t.name == tensor.name for t in tensors_in(s[1]))]
