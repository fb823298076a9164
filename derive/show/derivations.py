"""The recorded steps, line by line: of neighbouring routine steps the last, each with its reason.

In: the `RewriteStep`s towards a gradient, or the `Fact`s and findings with steps of their own. Out:
`Derivation`s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from sympy import Eq, Expr

from derive.gradient.chain.chain import Adjoint, adjoint_of
from derive.gradient.closing.closed_form import ClosedForm
from derive.gradient.closing.steps import Fact, RewriteStep
from derive.gradient.found.findings import NoInfluence, zero_gradients
from derive.language.formulas.words import Words, joined
from derive.language.nodes import Sum, along
from derive.language.notation.definition import Definition, Statement
from derive.language.symbols import Tensor, tensors_in
from derive.proof.proving.proved import Proved
from derive.show.document import Block, Derivation, Equation, Equations

# Rules that multiply out and collect: a reader follows several of them at once.
ROUTINE = frozenset({"distribute", "linear", "constant factor", "nested sums"})
SHARE = "share"
TOGETHER = "multiplied out; what does not vary along an axis moves out of its sum"
# Rules that hold because of a line of the forward.
BY_DEFINITION = frozenset({"definition", "nearer the output", "unfold"})


def derivations_of(proved: Proved, wanted: set[str]) -> Iterator[Block]:
    """The steps to every gradient, then why the facts hold that they use."""
    form = proved.closed_form
    steps = [step for step in form.steps if step.target.name in wanted]
    at_once: list[Equation] = []
    for adjoint in _in_order(form, steps):
        own = _without_detours([step for step in steps if step.target == adjoint.tensor])
        lines = tuple(_lines(own, form, form.facts))
        if len(lines) == 1:  # the line before it stands in the chain
            at_once.append(replace(lines[0], left=adjoint.tensor))
        elif lines:
            yield from _together(at_once)
            yield Derivation("", Equation(adjoint.tensor, own[0].before), lines)
    yield from _together(at_once)
    yield from _facts_used(steps, form.facts, form)


def _in_order(form: ClosedForm, steps: Iterable[RewriteStep]) -> Iterable[Adjoint]:
    """The adjoints of the chain, in its order, each behind those of parts that its steps read."""
    parts = {a.name: a for a in form.spelled.adjoints if a.name in form.by_name}
    read: dict[str, dict[str, None]] = {}
    for step in steps:
        read.setdefault(step.target.name, {}).update((t.name, None) for t in tensors_in(step.after))
    found: dict[str, Adjoint] = {}
    waiting: set[str] = set()

    def add(adjoint: Adjoint) -> None:
        waiting.add(adjoint.name)
        for name in read.get(adjoint.name, ()):
            if name in parts.keys() - form.chain.by_name.keys() - waiting:
                add(parts[name])
        found[adjoint.name] = adjoint

    for adjoint in (form.chain.by_name | parts).values():
        if adjoint.name not in waiting:
            add(adjoint)
    return found.values()


def _together(lines: list[Equation]) -> Iterator[Block]:
    """The gradients that took one step, as one block; the list is empty afterwards."""
    if lines:
        yield Equations(tuple(lines))
        lines.clear()


def _facts_used(
    steps: Iterable[RewriteStep], facts: Iterable[Fact], form: ClosedForm
) -> Iterator[Block]:
    for fact in facts:
        if any(fact.claim in step.before.atoms(type(fact.claim)) for step in steps):
            yield _from_its_claim(("Why ", _claimed(fact)), fact.claim, fact.steps, form)


def findings_in(proved: Proved, wanted: set[str]) -> Iterator[Block]:
    """Findings besides the gradients, each with the steps that show it, and the reasons for the
    facts that only these use.
    """
    form = proved.closed_form
    known = {fact.claim for fact in form.facts}
    zero = [g for g in proved.gradients if form.by_name[g.tensor.name].expression == 0]
    for finding in zero_gradients(form.draft, zero, wanted):
        if isinstance(finding, NoInfluence):
            title = f"Why {finding}, although {finding.of} is computed from {finding.by}"
            left = (adjoint_of(finding.by), " through ", finding.of)
            lines = _lines(finding.steps, form, finding.facts)
            yield Derivation(title, Equation(left, finding.steps[0].before), tuple(lines))
        else:
            total = Sum.over(finding.gradient, [finding.axis])
            yield _from_its_claim(f"Why {finding}", total, finding.steps, form, finding.facts)
        new = [fact for fact in finding.facts if fact.claim not in known]
        known |= {fact.claim for fact in new}
        yield from _facts_used(finding.steps, new, form)


def _from_its_claim(
    title: Words,
    claim: Expr,
    steps: Iterable[RewriteStep],
    form: ClosedForm,
    facts: Iterable[Fact] = (),
) -> Derivation:
    """The first line needs no step of its own: its left side is the claim itself."""
    first, *others = _lines(steps, form, facts)
    return Derivation(title, Equation(claim, first.right, first.remark), tuple(others))


def _without_detours(steps: list[RewriteStep]) -> list[RewriteStep]:
    """Drop detours: steps after which an expression is the same as before them."""
    kept: list[RewriteStep] = []
    for step in steps:
        kept.append(step)
        places = [i for i, earlier in enumerate(kept) if earlier.before == step.after]
        if places:
            del kept[places[0] :]
    return kept


def _lines(
    steps: Iterable[RewriteStep], form: ClosedForm, facts: Iterable[Fact]
) -> Iterator[Equation]:
    """A line for each step; neighbours that a reader follows at once have one together."""
    for kind, neighbours in groupby(enumerate(steps), _kind):
        together = [step for _, step in neighbours]
        remark: Words = TOGETHER
        if kind == SHARE:
            remark = f"{SHARE}: {', '.join(step.why for step in together)}"
        elif kind != TOGETHER:
            remark = _remark(together[0], form, facts)
        yield Equation("", together[-1].after, remark)


def _kind(numbered: tuple[int, RewriteStep]) -> str | int:
    """A key shared by neighbouring steps that are shown together; else a unique one."""
    number, step = numbered
    return TOGETHER if step.rule in ROUTINE else SHARE if step.rule == SHARE else number


def _remark(step: RewriteStep, form: ClosedForm, facts: Iterable[Fact]) -> Words:
    """The rule, fact or line of the forward behind a step, and why it holds."""
    used = [f for f in facts if step.rule == "fact" and f.claim in step.before.atoms(Sum)]
    if used:
        return ("because ", *joined(map(_claimed, used)))
    # Of the forward as it is written, or else with its parts as lines of their own.
    written = (form.definition, form.spelled.definition) if step.rule in BY_DEFINITION else ()
    lines = next(filter(None, (_lines_used(step, definition) for definition in written)), [])
    if lines:
        equations = (Eq(s.tensor, s.expression, evaluate=False) for s in lines)
        return (f"{step.rule}: ", *joined(equations))
    return f"{step.rule}: {step.why}"


def _lines_used(step: RewriteStep, definition: Definition) -> list[Statement]:
    """The lines of the forward by which the step holds: one whose name was replaced by what it
    stands for, or that has a name for what is there no more.
    """
    unfolded = [t for t in tensors_in(step.before) if _replaced(step, t, definition)]
    if unfolded:
        return [definition.by_name[t.name] for t in unfolded]
    gone = _things_in(step.before) - _things_in(step.after)
    named = [s for s in definition.statements if gone & _things_in(s.expression)]
    come = _things_in(step.after)
    return [s for s in named if s.tensor in come] or [
        s for s in named if s.tensor in gone and gone & s.expression.atoms(Sum)
    ]


def _replaced(step: RewriteStep, tensor: Tensor, definition: Definition) -> bool:
    statement = definition.by_name.get(tensor.name)
    if statement is None:
        return False
    return step.before.xreplace({tensor: along(statement.expression, tensor)}) == step.after


def _things_in(e: Expr) -> set[Expr]:
    return set(tensors_in(e)) | e.atoms(Sum)


def _claimed(fact: Fact) -> Expr:
    return Eq(fact.claim, fact.value, evaluate=False)
