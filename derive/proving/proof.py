"""The proof: statement by statement, the closed form is SymPy's own derivative.

In: a `ClosedForm`. Out: a `Proved`, or an `UnprovedError` that names what failed.

What is proved of a gradient ``dx``. By the chain rule it is the sum, over the statements that read
``x``, of the derivative of ``Sum(dk * k)`` by ``x``. That every step of the chain is that
derivative is proved on the statement alone (``chain_proof.py``). That the closed form of ``dx`` has
the value of that sum, in which the closed form of each ``dk`` stands, is proved as an equality
between values of the forward; each ``dk`` likewise, up to the upstream gradient. So a long network
costs as much as its statements do, one after the other. The statements are those of the forward
with its parts (`Proofs.values`), each proved to say what the user's says; a step of the chain as it
is written is equal to what the steps through the parts come to.

Values of the forward are independent in an equality until their definitions are needed. What takes
long at once is proved from each expression of the recorded derivation to the next.
``claim.py`` decides, for small batches and for every size. The first is required. Where the second
does not succeed, the record says that only the small batches were proved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from math import prod

from sympy import Add, Dummy, Expr, Integer, Mul, Piecewise, S, exp

from derive.chain.chain import Adjoint, Chain, adjoint_of, derive_chain
from derive.closing.closed_form import ClosedForm, ClosedStatement
from derive.language.choices import with_args, without_minus_infinity, written_in
from derive.language.errors import UndecidedError, UnprovedError
from derive.language.nodes import ArrayNode, Peak, along
from derive.language.symbols import Axis, Tensor, size_divisors, tensors_in
from derive.language.traversal import everywhere
from derive.notation.definition import Definition, Statement
from derive.proving.chain_proof import shown_adjoint
from derive.proving.claim import Batch, Equality, ProvedGradient, Shown, may_hold, proved_on
from derive.running.limits import Doing, Stage
from derive.values.naming import in_full
from derive.values.relations import Relations
from derive.zero.exact import WITHIN, is_zero

SMALL = (2, 3, 4)
LARGEST = 12  # the most that is added to them
MOST_FLAT = 8  # along an axis that others were flattened into
MOST_ENTRIES = 24  # of a tensor of three axes or more; so that a proof takes seconds
LONGER = "give a longer --limit, or names to parts of long statements: each is proved by itself"


@dataclass(frozen=True)
class Proved:
    """A closed form that may be emitted, with what was proved of each of its gradients, and of each
    adjoint of its chain. ``cut_short`` says what a limit of time left undone; nothing without one.
    ``page`` shows it in a notebook.
    """

    closed_form: ClosedForm
    gradients: tuple[ProvedGradient, ...]
    adjoints: tuple[ProvedGradient, ...]
    cut_short: str = ""
    page: Callable[[Proved], str] | None = field(default=None, repr=False, compare=False)

    @property
    def definition(self) -> Definition:
        return self.closed_form.definition

    @property
    def every_size(self) -> bool:
        return all(gradient.every_size for gradient in self.gradients)

    def __repr__(self) -> str:
        return f"<{self.definition.name}, proved: {self.summary}>"

    def _repr_html_(self) -> str:
        return self.page and self.page(self)

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

    Raises `UnprovedError` with the name of the first that fails, and `UndecidedError` where the
    time is out before all are proved for small batches.
    """
    proofs, doing = Proofs(form), Doing(progress)
    stated = [s for s in form.statements if s.of is not None]
    with Stage() as required:
        for adjoint in form.chain.adjoints:
            doing(f"proving {adjoint.tensor}")
            proofs.step(adjoint)
            proofs.closed(adjoint.name)
        gradients = [proofs.closed(statement.tensor.name) for statement in stated]
    if required.is_over:
        raise UndecidedError(_out_of_time(proofs, doing))
    adjoints = [proofs.step(adjoint) for adjoint in form.chain.adjoints]
    with Stage() as further:
        for shown in [*adjoints, *gradients]:
            doing(f"proving {shown.tensor} for every size")
            shown.decide()
    batches = proofs.batches
    return Proved(
        form,
        tuple(shown.on(batches) for shown in gradients),
        tuple(shown.on(batches) for shown in adjoints),
        _cut_short(form, [*gradients, *adjoints] if further.is_over else []),
    )


def proved_gradient(form: ClosedForm, statement: ClosedStatement) -> ProvedGradient:
    """Prove one gradient; the statement need not be one of ``form``'s own.

    Raises `UnprovedError` if it is not the derivative.
    """
    proofs = Proofs(form)
    shown = proofs.gradient(statement)
    shown.decide()
    return shown.on(proofs.batches)


class Proofs:
    """What has been proved of a closed form so far: everything once, and only what is asked for."""

    def __init__(self, form: ClosedForm):
        self.form = form
        self.sizes = batches_of(form.definition)
        self.batches = [Batch(form.definition, sizes) for sizes in self.sizes]
        self.kept = {
            s.of.name for s in form.statements if s.of is not None and s.of.role == "statement"
        }
        self._steps: dict[Adjoint, Shown] = {}
        self._closed: dict[str, Shown] = {}

    @property
    def proved(self) -> list[str]:
        """The closed forms that are proved on the small batches so far, and all that they rest
        on.
        """
        return [shown.tensor.name for shown in self._closed.values()]

    @property
    def values(self) -> Definition:
        """The forward with its parts as statements too. The definition of a value is the user's, in
        which parts stand under their names, or what is proved to be equal to it.
        """
        return self._respelled[0]

    @property
    def respelled(self) -> list[Shown]:
        """The statements that `values` says in other words, each shown to be equal."""
        return self._respelled[1]

    @cached_property
    def _respelled(self) -> tuple[Definition, list[Shown]]:
        definition, values, equal = self.form.definition, [], []
        for value in self.form.relations.values:
            written = definition.by_name.get(value.tensor.name)
            expression = value.expression
            own = without_parts(expression, self.form.relations)
            if written is not None and own != written.expression:
                claim = Equality(definition, value.tensor.home, own, written.expression)
                found = [proved_on(claim, batch) for batch in self.batches]
                if None in found:
                    expression = written.expression
                else:
                    equal.append(Shown(value.tensor, [(claim, set().union(*found))]))
            if value.tensor.name in self.form.relations.scales.made:
                expression = self._unmasked(expression)
            values.append(Statement(value.tensor, expression, definition.place))
        return replace(definition, statements=tuple(values)), equal

    def _unmasked(self, e: Expr) -> Expr:
        """``e`` as a choice, if it is the exponential of one between a number and -oo."""
        if not isinstance(e, exp):
            return e
        relations = self.form.relations
        made = [part for part in relations.parts if part.tensor.name in relations.scales.made]
        exponent = in_full(e.exp, [part for part in made if not isinstance(part.expression, Peak)])
        whole = exp(exponent)  # a product where a logarithm stands in the exponent
        chosen = without_minus_infinity(whole) if isinstance(whole, exp) else whole
        return chosen if isinstance(chosen, Piecewise) else e

    @cached_property
    def batches_of_values(self) -> list[Batch]:
        """The batches of the forward with its parts."""
        return [Batch(self.values, sizes) for sizes in self.sizes]

    @cached_property
    def chain(self) -> Chain:
        """The chain of the forward with its parts, but for what is not met in it: other names for
        parts, and what only scales have.
        """
        relations, met, statements = self.form.relations, set(), []
        for s in reversed(self.values.statements):
            other = s.name in relations.aliases and s.name not in met
            if not other and s.name not in relations.scales.made:
                statements.append(s)
                met |= {t.name for t in tensors_in(s.expression)}
        return derive_chain(replace(self.values, statements=tuple(reversed(statements))))

    def chain_of(self, name: str) -> Chain:
        """The chain that says what an adjoint is: of the parts, or as it is written for what is
        only another name for one.
        """
        return self.chain if name in self.chain.by_name else self.form.chain

    def step(self, adjoint: Adjoint) -> Shown:
        """What a chain says of ``adjoint``: it is the derivative of the statements that read its
        tensor.
        """
        if adjoint not in self._steps:
            chain, batches = self.form.chain, self.batches
            if not self._is_as_written(adjoint):
                chain, batches = self.chain, self.batches_of_values
            shown = self._step_by_parts(adjoint) or shown_adjoint(chain, adjoint, batches)
            self._steps[adjoint] = shown
        return self._steps[adjoint]

    def _step_by_parts(self, adjoint: Adjoint) -> Shown | None:
        """The same of a gradient as the chain of the forward as it is written has it, where it is
        equal to what the steps through the parts come to: each of them is small. None where that
        is not shown.
        """
        written, parts = self.form.chain, self.chain.by_name
        own = parts.get(adjoint.name)
        if own in (None, adjoint):
            return None
        steps, e = [own], own.expression
        known = {*written.by_name, written.upstream.name}
        while inner := [t for t in _adjoints_in(e) if t.name not in known]:
            steps += [parts[t.name] for t in inner]
            e = written_in(e, {t: along(parts[t.name].expression, t) for t in inner})
        left, right = map(self._in_parts, (adjoint.expression, e))
        claim = Equality(self.values, adjoint.of.home, left, right)
        found = next(filter(None, (self._shown(claim, most) for most in WITHIN[:-1])), None)
        grounds = [*map(self.step, dict.fromkeys(steps)), *self.respelled]
        return None if found is None else Shown(adjoint.tensor, [found], grounds)

    def _is_as_written(self, adjoint: Adjoint) -> bool:
        """Whether the chain of the forward as it is written says this of the gradient."""
        written, parts = self.form.chain, self.chain
        if written.by_name.get(adjoint.name) != adjoint:
            return False
        if parts.by_name.get(adjoint.name) != adjoint:
            return True
        return _readers(adjoint.of, written) == _readers(adjoint.of, parts)

    def closed(self, name: str) -> Shown:
        """The closed form of an adjoint of the chain, under its name or inserted where it is
        read.
        """
        if name not in self._closed:
            adjoint = self.chain_of(name).by_name[name]
            inserted = ClosedStatement(adjoint.tensor, self.form.closed[name], adjoint.of)
            self._closed[name] = self.gradient(self.form.by_name.get(name) or inserted)
        return self._closed[name]

    def gradient(self, statement: ClosedStatement) -> Shown:
        """``statement`` is what the chain says of its tensor, in which the closed form of every
        adjoint that is read is proved likewise.
        """
        chain = self.chain_of(adjoint_of(statement.of).name)
        adjoint = chain.by_name[adjoint_of(statement.of).name]
        written = self._inlined(statement.expression, self.kept - {statement.of.name})
        met = {t.name for e in (adjoint.expression, written) for t in _adjoints_in(e)}
        read = [a.name for a in chain.adjoints if a.name in met and a is not adjoint]
        grounds = [self.step(adjoint), *map(self.closed, read), *self.respelled]
        return Shown(statement.tensor, self._equality(adjoint, statement), grounds)

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
        raise UnprovedError(_failure(self.form, statement, self.sizes[0]))

    def _first_shown(
        self, claims: Iterable[Equality], most: int | None
    ) -> list[tuple[Equality, set[str]]] | None:
        """The first of the claims that is proved, if one is."""
        shown = (self._shown(claim, most) for claim in claims)
        return next(([found] for found in shown if found is not None), None)

    def _shown(self, claim: Equality, most: int | None) -> tuple[Equality, set[str]] | None:
        """The claim with the statements that it needed, if it is proved on all batches."""
        needed: set[str] = set()
        for batch in self.batches_of_values:
            found = proved_on(claim, batch, most, needed)
            if found is None:
                return None
            needed |= found
        return claim, needed

    def _may_hold(self, adjoint: Adjoint, statement: ClosedStatement) -> bool:
        """Whether it holds at random numbers, with all that is known of the gradients."""
        *_, claim = self.claims(adjoint, statement)
        return all(may_hold(claim, batch) for batch in self.batches_of_values)

    def _by_steps(
        self, adjoint: Adjoint, statement: ClosedStatement, most: int | None
    ) -> list[tuple[Equality, set[str]]] | None:
        """The same from each expression of the recorded derivation to the next, if each is proved:
        a step needs to know little of the forward. What the record says is not relied upon.
        """
        free = self.kept - {statement.of.name}
        written = [adjoint.expression]
        written += [step.after for step in self.form.steps_to(adjoint.tensor)]
        known = {*self.form.by_name, *self.form.closed, self.form.chain.upstream.name}
        written = [e for e in written if {t.name for t in _adjoints_in(e)} <= known]
        written.append(statement.expression)
        lines = [self._in_parts(self._inlined(e, free)) for e in written]
        found = []
        for right, left in pairwise(dict.fromkeys(lines)):
            shown = self._shown(Equality(self.values, statement.of.home, left, right), most)
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
            here, there = ({t.name[1:] for t in _adjoints_in(e)} & free for e in (left, right))
            one_sided = here ^ there if here and there else set()
            if not one_sided:
                yield Equality(self.values, statement.of.home, left, right)
            if not here | there:
                return
            free = free - {min(one_sided or here | there, key=form.relations.position.get)}

    @cached_property
    def again(self) -> dict[Tensor, Tensor]:
        return computed_again(self.form)

    def _inlined(self, e: Expr, cuts: Collection[str]) -> Expr:
        return inlined(self.form, e, cuts, self.again)

    def _in_parts(self, e: Expr) -> Expr:
        """``e`` with what is a part of the forward under its name, if it is the same then."""
        relations = self.form.relations
        named = relations.with_parts(e, among_others=True)
        both = (without_parts(named, relations), without_parts(e, relations))
        return named if named == e or _are_the_same(*both) else e


def _readers(tensor: Tensor, chain: Chain) -> list[tuple[str, Expr]]:
    """The statements that read ``tensor``, and what they say."""
    statements = ((s.name, s.expression) for s in chain.definition.statements)
    return [s for s in statements if any(t.name == tensor.name for t in tensors_in(s[1]))]


def _adjoints_in(e: Expr) -> list[Tensor]:
    return [t for t in tensors_in(e) if t.role == "adjoint"]


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


def without_parts(e: Expr, relations: Relations) -> Expr:
    """``e`` in the user's values: what is a part stands by its definition."""
    return in_full(e, relations.parts)


def inlined(
    form: ClosedForm, e: Expr, cuts: Collection[str], again: Mapping[Tensor, Tensor]
) -> Expr:
    """``e`` in the upstream gradient, the gradients of the cuts, and values of the forward alone;
    what is computed ``again`` is that value.
    """
    given = {f"d{name}" for name in cuts} | {form.chain.upstream.name}
    while True:
        e = e.xreplace({t: along(again[t.at_home], t) for t in tensors_in(e) if t.at_home in again})
        inner = [t for t in _adjoints_in(e) if t.name not in given]
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
    """Whether the statement ``again`` is ``value``, as the user wrote it; what it reads of those
    that are ``shown`` is the value that they are.
    """

    def read(t: Tensor) -> Expr:
        return along(shown.get(t.at_home, form.by_name[t.name].expression), t)

    claim = again.expression
    while nested := _adjoints_in(claim):
        claim = written_in(claim, {t: read(t) for t in nested})
    claim, written = (without_parts(e, form.relations) for e in (claim, value))
    known, definitions = {t.at_home for t in tensors_in(claim)}, form.definition.by_name
    while unknown := [t for t in tensors_in(written) if t.at_home not in known]:
        if any(t.name not in definitions for t in unknown):
            return False
        by_definition = {t: along(definitions[t.name].expression, t) for t in unknown}
        written = written_in(written, by_definition)
    return _are_the_same(written, claim)


@lru_cache(maxsize=256)
def _are_the_same(a: Expr, b: Expr) -> bool:
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


def _failure(form: ClosedForm, statement: ClosedStatement, sizes) -> str:
    shown = ", ".join(f"{axis.name} = {n}" for axis, n in sizes.items())
    return (
        f"{form.definition.name}: {statement.tensor} is unproved. On explicit scalars with "
        f"{shown} the derivative of {form.definition.output} by {statement.of} is not "
        f"shown to be {statement.expression}; nothing was emitted"
    )


def _out_of_time(proofs: Proofs, doing: Doing) -> str:
    """What was found, what was proved of it, and what is not decided."""
    form = proofs.form
    proved = proofs.proved
    open_ones = [s.tensor.name for s in form.statements if s.of and s.tensor.name not in proved]
    lines = [
        f"{form.definition.name}: the limit of time was over before the proof was done",
        *(f"    found: {statement}" for statement in form.statements),
        f"    proved on small batches: {', '.join(proved) or 'nothing'}; for every size: nothing",
        f"    not decided: {', '.join(open_ones) or 'nothing'}",
        f"    being done: {doing}",
        f"    {LONGER}; nothing was emitted",
    ]
    return "\n".join(lines)


def _cut_short(form: ClosedForm, shown: Iterable[Shown]) -> str:
    """What the limit of time left undone of a proof that may be used, in words."""
    undecided = dict.fromkeys(s.tensor.name for s in shown if s.every_size is None)
    undone = [f"whether {', '.join(undecided)} hold for every size"] if undecided else []
    undone += ["whether there is a cheaper closed form"] if form.hurried else []
    if not undone:
        return ""
    words = f"the limit of time was over before it was decided {' and '.join(undone)}"
    return f"{form.definition.name}: {words}"
