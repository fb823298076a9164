"""The sections of a derivation, put together from the record that was proved.

In: a `Proved`. Out: a `Document`. Nothing is derived a second time for show: the steps are those
that the closed form was found by, the facts those that it used, the matrices those of the proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from sympy import Expr, Symbol

from derive.chain import Adjoint, adjoint_of
from derive.closed_form import ClosedForm, ClosedStatement
from derive.definition import Definition
from derive.exact import Indicator
from derive.findings import Balance, NoInfluence, findings_of
from derive.layout import layouts_of, shape
from derive.matrix_example import recognised_products
from derive.nodes import Sum
from derive.presentation.document import (
    Block,
    Code,
    Derivation,
    Document,
    Equation,
    Equations,
    Graph,
    Matrix,
    Node,
    Prose,
    Section,
)
from derive.presentation.paths import paths_to
from derive.proof import Proved, inlined
from derive.small_batch import SmallBatch
from derive.steps import Fact, Step
from derive.symbols import Tensor, tensors_in
from derive.text import formula

FORWARD, CHAIN = "The forward", "The chain"

# Rules that multiply out and collect: a reader follows several of them at once.
ROUTINE = frozenset({"distribute", "linear", "constant factor", "nested sums"})
TOGETHER = "multiplied out; what does not vary along an axis moves out of its sum"


def document_of(
    proved: Proved,
    of: str | None = None,
    code: Mapping[str, str] | None = None,
    entries: int = 3,
) -> Document:
    """The derivation of ``proved``; with ``of`` that of one input's gradient alone.

    ``entries`` is the size of the first axis in the small batch. ``code`` has the line of a program
    for every statement of the closed form, by its name.
    """
    definition = proved.definition
    wanted = _on_the_way(proved, of)
    sections = [
        Section(FORWARD, (*_forward(definition), _graph(proved))),
        Section(CHAIN, tuple(_chain(proved, wanted, of))),
        Section("To the closed form", tuple(_closed_form(proved, wanted))),
        Section("What else was found", tuple(_found(definition, wanted))),
        Section("The small batch", tuple(_small_batches(proved, wanted, of, entries))),
        Section("What was proved", tuple(_proof(proved, wanted))),
    ]
    if code:
        lines = tuple((name, line) for name, line in code.items() if name in wanted)
        sections.append(Section("The code", (Code(lines),)))
    sections = tuple(section for section in sections if section.blocks)
    return Document(definition.name, _printable(definition.doc), sections)


def _printable(text: str) -> str:
    """Without control characters, which a terminal would obey."""
    return "".join(c for c in text if c.isprintable() or c == "\n")


def _on_the_way(proved: Proved, of: str | None) -> set[str]:
    """The gradients that are shown: all, or those that one of them is made of."""
    form = proved.closed_form
    adjoints = {a.name: a.expression for a in form.chain.adjoints}
    closed = {s.tensor.name: s.expression for s in form.statements}
    if of is None:
        return set(adjoints) | set(closed)
    wanted, pending = set(), [f"d{of}"]
    while pending:
        name = pending.pop()
        if name not in wanted and (name in adjoints or name in closed):
            wanted.add(name)
            for e in (adjoints.get(name), closed.get(name)):
                pending += [t.name for t in tensors_in(e)] if e is not None else []
    return wanted


def _forward(definition: Definition) -> Iterator[Block]:
    layouts = layouts_of(definition)
    users: dict[str, list[str]] = {}
    for statement in definition.statements:
        for name in dict.fromkeys(t.name for t in tensors_in(statement.expression)):
            users.setdefault(name, []).append(statement.name)

    def used_by(name: str) -> str:
        return f"used by {', '.join(users[name])}" if name in users else "the output"

    given = [f"{t} {shape(layouts[t.name])}" for t in definition.inputs]
    given += [f"{t} = {default}" for t, default in definition.scalars]
    yield Prose(f"Given {', '.join(given)}.")
    yield Equations(
        tuple(
            Equation(s.tensor, s.expression, used_by(s.name), shape(layouts[s.name]))
            for s in definition.statements
        )
    )


def _graph(proved: Proved) -> Graph:
    definition, chain = proved.definition, proved.closed_form.chain
    layouts = layouts_of(definition)
    tensors = [*definition.inputs, *(t for t, _ in definition.scalars)]
    tensors += [s.tensor for s in definition.statements]
    edges = {
        (t.name, s.name): None for s in definition.statements for t in tensors_in(s.expression)
    }
    passes = {(a.of.name, c.via) for a in chain.adjoints for c in a.contributions}
    nodes = tuple(Node(t.name, t.role, shape(layouts[t.name])) for t in tensors)
    return Graph(nodes, tuple(edges), frozenset(passes))


def _chain(proved: Proved, wanted: set[str], of: str | None) -> Iterator[Block]:
    form = proved.closed_form
    layouts = layouts_of(form.definition)
    yield Prose(f"{form.chain.upstream} arrives; one gradient for every tensor, in reverse.")
    lines = []
    for adjoint in form.chain.adjoints:
        if adjoint.name in wanted:
            lines += _adjoint_lines(adjoint, shape(layouts[adjoint.of.name]))
    yield Equations(tuple(lines))
    for adjoint in form.chain.adjoints:
        if adjoint.of.role == "input" and of in (None, adjoint.of.name):
            yield from _paths(form.definition, adjoint)


def _adjoint_lines(adjoint: Adjoint, shape: str) -> Iterator[Equation]:
    if not adjoint.contributions:
        yield Equation(adjoint.tensor, adjoint.expression, "nothing depends on it", shape)
        return
    left: Tensor | str = adjoint.tensor
    for contribution in adjoint.contributions:
        remark = f"through {contribution.via}: {contribution.reason}"
        yield Equation(left, contribution.expression, remark, shape)
        left, shape = "+", ""


def _paths(definition: Definition, adjoint: Adjoint) -> Iterator[Block]:
    paths = paths_to(definition, adjoint.of)
    if paths:
        count = len(paths)
        yield Prose(
            f"{adjoint.of} reaches {definition.output} on {count} paths; what arrives on each, "
            "in closed form:"
        )
        yield Equations(
            tuple(
                Equation(
                    adjoint.tensor if i == 0 else "+",
                    path.contribution,
                    "directly" if path.via is None else f"through {path.via}",
                )
                for i, path in enumerate(paths)
            )
        )


def _closed_form(proved: Proved, wanted: set[str]) -> Iterator[Block]:
    form = proved.closed_form
    steps = [step for step in form.steps if step.target.name in wanted]
    for adjoint in form.chain.adjoints:
        own = _without_detours([step for step in steps if step.target == adjoint.tensor])
        if own:
            yield _derivation(f"{adjoint.tensor}", adjoint.tensor, own, form.facts)
    for fact in form.facts:
        if any(fact.claim in step.before.atoms(type(fact.claim)) for step in steps):
            yield _fact(fact)
    yield Prose("The closed form, as it is computed:")
    yield Equations(
        tuple(
            Equation(s.tensor, s.expression)
            for s in form.statements
            if s.tensor.name in wanted or s.of is None
        )
    )


def _derivation(title: str, left, steps: list[Step], facts: Iterable[Fact] = ()) -> Derivation:
    return Derivation(
        title,
        Equation(left, steps[0].before),
        tuple(Equation("", step.after, remark) for step, remark in _grouped(steps, facts)),
    )


def _without_detours(steps: list[Step]) -> list[Step]:
    """Without the steps after which an expression is again what it was before them."""
    kept: list[Step] = []
    for step in steps:
        kept.append(step)
        places = [i for i, earlier in enumerate(kept) if earlier.before == step.after]
        if places:
            del kept[places[0] :]
    return kept


def _remark(step: Step, facts: Iterable[Fact]) -> str:
    """Which rule, or which fact, and why it holds."""
    used = [f for f in facts if step.rule == "fact" and f.claim in step.before.atoms(Sum)]
    return f"because {', '.join(map(_claimed, used))}" if used else f"{step.rule}: {step.why}"


def _claimed(fact: Fact) -> str:
    return f"{formula(fact.claim)} = {formula(fact.value)}"


def _grouped(steps: Iterable[Step], facts: Iterable[Fact]) -> Iterator[tuple[Step, str]]:
    """Each step with its remark; of neighbouring routine steps only the last."""
    held: Step | None = None
    for step in steps:
        if held is not None and step.rule not in ROUTINE:
            yield held, TOGETHER
            held = None
        if step.rule in ROUTINE:
            held = step
        else:
            yield step, _remark(step, facts)
    if held is not None:
        yield held, TOGETHER


def _fact(fact: Fact) -> Derivation:
    return _shown_from_its_claim(f"Why {_claimed(fact)}", fact.claim, fact.steps, ())


def _shown_from_its_claim(title: str, claim: Expr, steps, facts) -> Derivation:
    """The first line needs no step of its own: its left side is the claim itself."""
    (first, remark), *others = _grouped(steps, facts)
    lines = tuple(Equation("", step.after, why) for step, why in others)
    return Derivation(title, Equation(claim, first.after, remark), lines)


def _found(definition: Definition, wanted: set[str]) -> Iterator[Block]:
    """What the derivation says besides the gradients, each with the steps that show it."""
    for finding in findings_of(definition):
        if isinstance(finding, NoInfluence):
            title = f"Why {finding}, although {finding.of} is computed from {finding.by}"
            left = f"{adjoint_of(finding.by)} through {finding.of}"
            yield _derivation(title, left, list(finding.steps), finding.facts)
        elif isinstance(finding, Balance) and finding.gradient.name in wanted:
            total = Sum.over(finding.gradient, [finding.axis])
            yield _shown_from_its_claim(f"Why {finding}", total, finding.steps, finding.facts)


def _small_batches(
    proved: Proved, wanted: set[str], of: str | None, entries: int
) -> Iterator[Block]:
    """The gradients on explicit scalars, entry by entry."""
    form, definition = proved.closed_form, proved.definition
    axes = definition.independent_axes
    sizes = definition.sizes_from({axis: entries if axis == axes[0] else 2 for axis in axes})
    shown = ", ".join(f"{axis} = {size}" for axis, size in sizes.items())
    yield Prose(
        f"Written out for {shown}, where the difference to SymPy's own derivative of the forward "
        "on the same scalars is zero in every entry:"
    )
    for statement in form.statements:
        if statement.of is not None and of in (None, statement.of.name):
            yield _small_batch(form, statement, sizes)
    for product in recognised_products(definition):
        if product.gradient.name in wanted:
            yield Matrix(product.gradient, product.entries, f"two by two entries: {product}")


def _small_batch(form: ClosedForm, statement: ClosedStatement, sizes) -> Matrix:
    """A closed form on explicit scalars: one for each entry of every value of the forward."""
    kept = {s.of.name for s in form.statements if s.of is not None and s.of.role == "statement"}
    batch = SmallBatch(form.definition, sizes, free=frozenset(form.definition.by_name))
    tensors = [form.chain.upstream, *(adjoint_of(form.definition.by_name[n].tensor) for n in kept)]
    values = {tensor.name: batch.symbols(tensor) for tensor in tensors}
    expression = inlined(form, statement, frozenset(kept - {statement.of.name}))
    entries = batch.written_out(expression, statement.of.home, values)
    named = {i: _with_readable_indicators(e) for i, e in entries.items()}
    return Matrix(statement.tensor, _rows(named, len(statement.of.home)))


def _with_readable_indicators(e: Expr) -> Expr:
    """``[labels_1 = 2]`` for the indicator that the first label is the second class."""
    names = {}
    for indicator in e.atoms(Indicator):
        if found := re.fullmatch(r"(\w+)\[([\d, ]*)\] of \w+, (\d+)", indicator.name):
            label, place, entry = found.groups()
            entry_of = "_".join([label, *re.findall(r"\d+", place)])
            names[indicator] = Symbol(f"[{entry_of} = {int(entry) + 1}]")
    return e.xreplace(names)


def _rows(entries: Mapping[tuple[int, ...], Expr], rank: int) -> tuple[tuple[Expr, ...], ...]:
    rows: dict[tuple[int, ...], list[Expr]] = {}
    for index, e in entries.items():
        rows.setdefault(index[: max(rank - 1, 0)], []).append(e)
    return tuple(map(tuple, rows.values()))


def _proof(proved: Proved, wanted: set[str]) -> Iterator[Block]:
    yield Prose(f"{proved.summary[0].upper()}{proved.summary[1:]}.")
