"""From the atomic chain to a closed form: a short program, as a person would write it after two
pages of algebra.

In: a `Chain`. Out: a `ClosedForm`, statements for the gradients of the inputs (and the few tensors
on the way that are worth their name), over the upstream gradient and values of the forward, with
the record of every step.

Before all, the forward is brought to one spelling (``canonical.py``), in which every part is a
statement (``parts.py``), and the adjoints of that are taken: what comes out does not depend on how
an exponential or a share is written, nor on what has a name. The chain of the forward as it is
written is what the record begins with, and what is generated.

1. *name*: at first every gradient has a name; names are removed, as long as nothing is risked more
   and the whole costs no more (``search.py``, ``risks.py``, ``cost.py``);
2. *insert*: an adjoint without a name is replaced by its own closed form (``drafting.py``);
3. *rewrite*: the identities, until none applies, with the facts about the forward that are found on
   the way;
4. *factor*: common factors move outside (``simplifying.py``);
5. *arrange*: what the statements have in common is computed once, what could overflow is written
   in values that do not, and what follows from what is read anyway is not saved; that is a table
   of moves, which the cost accepts or not (``stages.py``).

Where that risks something, names of the forward that hide nothing are done without, and all is done
once more. In the cheapest, what equals a statement of the forward goes by its name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from sympy import Expr, Mul

from derive.gradient.chain.chain import Adjoint, Chain, derive_chain
from derive.gradient.closing.cost import Cost
from derive.gradient.closing.drafting import Draft, draft_keeping, read_for
from derive.gradient.closing.facts import Facts
from derive.gradient.closing.recomputation import named, under_their_names, with_users_names
from derive.gradient.closing.risks import Preference, preference
from derive.gradient.closing.search import names_kept
from derive.gradient.closing.sharing import in_order_of_use
from derive.gradient.closing.simplifying import Simplifier
from derive.gradient.closing.stages import Arrangement, arranged, safe
from derive.gradient.closing.steps import Fact, Pairs, Record, RewriteStep
from derive.gradient.values.relations import Relations, relations_of
from derive.language.called import words_of
from derive.language.formulas.latex import latex_statements
from derive.language.nodes import Sum, along
from derive.language.notation.definition import Definition, Statement
from derive.language.symbols import Tensor, tensors_in
from derive.running.limits import Stage

SEARCHED = 0.5  # of the time that is left, where there is a limit: the rest is for the proof


@dataclass(frozen=True)
class ClosedStatement:
    """``tensor = expression``; ``tensor`` is the adjoint of ``of``, or a shared value where
    ``of`` is None.
    """

    tensor: Tensor
    expression: Expr
    of: Tensor | None = None

    def __str__(self) -> str:
        return f"{self.tensor} = {self.expression}"


@dataclass(frozen=True, repr=False)
class ClosedForm:
    """The backward as a short program in the order of computation, and how it was found.

    ``chain`` is that of the forward as it is written, ``spelled`` that of the same in its one
    spelling, in which every part is a statement: the steps speak of the gradients of both.
    ``closed`` has the closed form of every adjoint of the chain, also of those that are not
    computed; what keeps a name stands in it by that name. ``again`` says which value of the forward
    a statement computes again. ``hurried``: the time was out before the cheapest was found.
    """

    chain: Chain
    spelled: Chain
    statements: tuple[ClosedStatement, ...]
    closed: Mapping[str, Expr]
    knowledge: Facts = field(compare=False)
    steps: tuple[RewriteStep, ...]
    facts: tuple[Fact, ...]
    cost: Cost
    again: Mapping[Tensor, Tensor] = field(default_factory=dict, compare=False)
    hurried: bool = False

    @property
    def relations(self) -> Relations:
        return self.knowledge.relations

    @property
    def definition(self) -> Definition:
        return self.chain.definition

    @cached_property
    def draft(self) -> ClosedForm:
        """The `draft` of the same chain."""
        return draft(self.chain)

    @cached_property
    def by_name(self) -> dict[str, ClosedStatement]:
        return {statement.tensor.name: statement for statement in self.statements}

    @cached_property
    def with_parts(self) -> tuple[tuple[Tensor, Expr], ...]:
        """The statements, with the parts of the forward that they read and nobody named."""
        d = self.definition
        known = {t.name for t in (*d.inputs, *(t for t, _ in d.scalars))} | d.by_name.keys()
        parts = {v.tensor.name: v for v in self.relations.values}
        found: dict[str, tuple[Tensor, Expr]] = {}

        def read(e: Expr) -> None:
            for t in tensors_in(e):
                if t.name in parts and t.name not in known | found.keys():
                    part = parts[t.name]
                    read(part.expression)
                    found[t.name] = part.tensor, part.expression

        for s in self.statements:
            read(s.expression)
            found[s.tensor.name] = s.tensor, s.expression
        return tuple(found.values())

    @cached_property
    def parts_shown(self) -> dict[Tensor, Tensor]:
        """Display names of values that nobody named. A gradient of one is called what it is
        computed as, ``gain_times_dy``, or ``d_x_over_rms``.
        """
        own = {t.name for t in self.definition.inputs} | self.definition.by_name.keys()
        pairs = [(s.tensor, s.expression) for s in self.statements]
        shown = under_their_names(pairs, self.again, self.definition.at_hand)
        taken = {t.name for tensor, e in (*pairs, *shown) for t in (tensor, *tensors_in(e))}
        taken |= own | self.closed.keys()
        found: dict[Tensor, Tensor] = {}
        for s, (_, e) in zip(self.statements, shown, strict=True):
            if s.tensor in self.again or (s.of is not None and s.of.name in own):
                continue
            e = e.xreplace(
                {t: along(found[t.at_home], t) for t in tensors_in(e) if t.at_home in found}
            )
            names = [words_of(e), s.of and f"d_{s.of.name}"]
            free = [n for n in names if n and n not in taken]
            if free:
                found[s.tensor] = named(s.tensor, free[0])
                taken.add(free[0])
        return found

    @cached_property
    def shown(self) -> list[tuple[Tensor, Expr]]:
        """The statements as a reader has them."""
        pairs = [(s.tensor, s.expression) for s in self.statements]
        at_hand = self.definition.at_hand
        return under_their_names(pairs, self.again, at_hand, self.parts_shown)

    @cached_property
    def saved(self) -> tuple[Tensor, ...]:
        """Tensors of the forward that the backward reads: inputs, labels, scalars and values, in
        order of definition.
        """
        used = {t.name: t.at_home for s in self.statements for t in tensors_in(s.expression)}
        known = [
            t for t in used.values() if t.role != "adjoint" and t.name in self.relations.position
        ]
        return tuple(sorted(known, key=lambda t: self.relations.position[t.name]))

    @cached_property
    def preference(self) -> Preference:
        """Sort key of closed forms: the least is preferred."""
        pairs = [(s.tensor, s.expression) for s in self.statements]
        return preference(pairs, self.relations)

    def steps_to(self, tensor: Tensor) -> tuple[RewriteStep, ...]:
        """The recorded steps towards one gradient."""
        return tuple(step for step in self.steps if step.target == tensor)

    def _repr_latex_(self) -> str:
        return latex_statements(self.shown)

    def __str__(self) -> str:
        return "\n".join(f"{tensor} = {e}" for tensor, e in self.shown)

    __repr__ = __str__  # all that it knows would fill pages


def close(chain: Chain) -> ClosedForm:
    """The cheapest closed form that is found for ``chain``: in a share of the time that is left,
    where there is a limit, and then said to be ``hurried``.
    """
    known = Facts(relations_of(chain.definition))
    first, *others = _simplifiers(chain, known)
    found: list[ClosedForm] = []
    named = _finished(first, frozenset(a.name for a in first.spelled.adjoints))
    with Stage(SEARCHED) as search:
        for form in _found(first, *others):
            found.append(form)
    best = min([*found, named], key=lambda form: form.preference)
    return replace(_in_users_words(best), hurried=search.is_over)


def _in_users_words(form: ClosedForm) -> ClosedForm:
    """The same, where what equals a statement of the forward goes by its name."""
    pairs, of = [(s.tensor, s.expression) for s in form.statements], dict(form.by_name)
    taken = {*form.relations.position, *of}
    pairs, again = with_users_names(pairs, form.again, taken, form.knowledge)
    statements = (
        ClosedStatement(t, e, of[t.name].of if t.name in of else None)
        for t, e in in_order_of_use(pairs)
    )
    return replace(form, statements=tuple(statements), again=again)


def _found(*simplifiers: Simplifier) -> Iterator[ClosedForm]:
    """The closed forms with the names that the search finds; with none; and without those of
    products, which the moves give back where sums have no more in common without them.
    """
    for simplifier in simplifiers:
        kept = names_kept(simplifier)
        yield _finished(simplifier, kept)
        yield _finished(simplifier, frozenset())  # what cancels in one line may not in two
        products = {n for n in kept if _is_product(simplifier.spelled.by_name[n].expression)}
        if products:
            yield _finished(simplifier, kept - products)
        if simplifier.eliminate and not simplifier.eliminated:
            return  # without eliminations it is the same


def _is_product(e: Expr) -> bool:
    return isinstance(e, Mul) and not e.has(Sum)


def draft(chain: Chain) -> ClosedForm:
    """A closed form for ``chain`` without the search for the cheapest: matrix products alone keep
    a name.
    """
    simplifier, _ = _simplifiers(chain, Facts(relations_of(chain.definition)))
    return _finished(simplifier, frozenset())


def _simplifiers(chain: Chain, knowledge: Facts) -> list[Simplifier]:
    """Simplifiers with eliminations and without."""
    spelled = _spelled(chain, knowledge.relations)
    return [Simplifier(chain, spelled, knowledge, eliminate) for eliminate in (True, False)]


def _spelled(chain: Chain, relations: Relations) -> Chain:
    """The chain of the same forward in its one spelling, in which every part is a statement."""
    left_out, place = {*relations.scales.made, *relations.aliases}, chain.definition.place
    values = [value for value in relations.values if value.tensor.name not in left_out]
    statements = (Statement(value.tensor, value.expression, place) for value in values)
    return derive_chain(replace(chain.definition, statements=tuple(statements)))


def _finished(simplifier: Simplifier, kept: frozenset[str]) -> ClosedForm:
    """The closed form with these names kept. Parts that could overflow are brought to a stable form
    before the statements share common parts, or after it, whichever is better.
    """
    knowledge, adjoints = simplifier.knowledge, simplifier.spelled.adjoints
    drafted = draft_keeping(simplifier, kept)
    wanted = [adjoint for adjoint in adjoints if adjoint.of.role == "input"]
    read = read_for(wanted, drafted)
    stated = [*(a for a in adjoints if a.name in read), *wanted]
    pairs = [(a.tensor, drafted.closed[a.name]) for a in stated]
    early = replace(drafted, record=Record([*drafted.record.steps]))
    stable = [(tensor, safe(tensor, e, knowledge, early.record)) for tensor, e in pairs]
    ways = [(pairs, drafted)] if stable == pairs else [(pairs, drafted), (stable, early)]
    known = simplifier.arranged
    for pairs, draft in ways:
        if tuple(pairs) not in known:
            known[tuple(pairs)] = _arranged(simplifier, draft, pairs, stated)
    return min((known[tuple(pairs)] for pairs, _ in ways), key=lambda form: form.preference)


def _arranged(
    simplifier: Simplifier, drafted: Draft, pairs: Pairs, stated: list[Adjoint]
) -> ClosedForm:
    """``pairs`` with shared parts computed once, in values that are safe and cheap."""
    chain, knowledge, record = simplifier.spelled, simplifier.knowledge, drafted.record
    own = simplifier.chain.by_name.keys() - {a.name for a in stated}
    of = {a.tensor: a.of for a in chain.adjoints}
    depending = {a.of.name: chain.definition.depending_on(a.of.name) for a in chain.adjoints}
    found = arranged(
        Arrangement(
            pairs,
            knowledge,
            record,
            wanted={a.tensor for a in stated if a.of.role == "input"},
            products={a.tensor: drafted.closed[a.name] for a in chain.adjoints if a.name in own},
            flows=lambda a, target: target in of and of[a].name in depending[of[target].name],
            taken=set(knowledge.relations.position),
        )
    )
    return ClosedForm(
        simplifier.chain,
        simplifier.spelled,
        tuple(ClosedStatement(tensor, e, of.get(tensor)) for tensor, e in found.pairs),
        drafted.closed,
        knowledge,
        tuple(record.steps),
        tuple(fact for fact in knowledge.found.values() if fact),
        preference(found.pairs, knowledge.relations)[1],
        found.again,
    )
