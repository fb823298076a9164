"""The sections of a derivation, put together from the record that was proved.

In: a `Proved`. Out: a `Document`. Nothing is derived a second time for show: the steps are those
that the closed form was found by, the facts those that it used, the matrices those of the proof.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from sympy import Basic, Eq, Expr

from derive.gradient.chain.chain import Adjoint, Chain, adjoint_of
from derive.gradient.chain.ties import ties_backward, ties_forward
from derive.gradient.closing.closed_form import ClosedForm, ClosedStatement
from derive.language.errors import MATH
from derive.language.formulas.words import Words, joined
from derive.language.notation.definition import Definition
from derive.language.notation.layout import layouts, layouts_of, shape
from derive.language.symbols import Axes, Tensor, tensors_in
from derive.proof.proving.proved import Proved
from derive.show.derivations import derivations_of, findings_in
from derive.show.divisors import divisors_explained
from derive.show.document import (
    Block,
    Checkable,
    Code,
    Document,
    Equation,
    Equations,
    Foldable,
    Numbered,
    ProgramLines,
    Prose,
    Section,
    TensorGraph,
    TensorNode,
)
from derive.show.names import explained
from derive.show.paths import branching, paths_to
from derive.show.renamed import Renaming
from derive.show.small import small_batches
from derive.show.stable import computed_forward

# What is given, what was looked for, why it may be trusted, how it comes about, and what is run.
TITLES = FORWARD, RESULT, PROVED, CHAIN, CLOSED_FORM, FOUND, SMALL_BATCH, STABLE, CODE = (
    "The forward",
    "The closed form",
    "What was proved",
    "The chain",
    "To the closed form",
    "What else was found",
    "The small batch",
    "The forward, as it is computed",
    "The code, compared with autograd",
)

LONGEST_WHOLE = 12  # statements; of a longer forward an overview is shown


def document_of(
    proved: Proved,
    of: str | None = None,
    code: ProgramLines | None = None,
    entries: int = 3,
    titles: Collection[str] = TITLES,
) -> Document:
    """The derivation of ``proved``; with ``of`` that of one input's gradient alone.

    ``entries`` is the size of the first axis in the small batch. ``code`` are the lines that the
    statements of the closed form became, where there are any. ``titles`` are the sections that
    are wanted.
    """
    definition = proved.definition
    wanted = _on_the_way(proved, of)
    overview = of is None and len(definition.statements) > LONGEST_WHOLE
    blocks: dict[str, Iterator[Block]] = {
        FORWARD: _forward(proved, overview, entries),
        RESULT: _result(proved, wanted),
        PROVED: _proof(proved),
        CHAIN: _chain(proved, wanted, of, overview),
        CLOSED_FORM: derivations_of(proved, wanted),
        FOUND: findings_in(proved, wanted),
        SMALL_BATCH: small_batches(proved, wanted, of, entries, overview),
        STABLE: _computed_forward(proved, overview),
        CODE: _code(code, wanted),
    }
    sections = (Section(title, tuple(blocks[title])) for title in TITLES if title in titles)
    sections = (section for section in sections if section.blocks)
    form, asked = proved.closed_form, definition.differentiable[:1]
    shown = _as_shown(form)
    sections = tuple(map(shown.section, explained(sections, form)))
    headline = next(iter(equations_of(s for s in form.statements if s.of in asked).lines), None)
    headline = headline and shown.equation(headline)
    summary, checkable = _paragraphs(definition.doc), _checkable(definition)
    shared = (sections, overview, headline, checkable, proved.certificate)
    return Document(definition.name, summary, *shared)


def _checkable(definition: Definition) -> Checkable | None:
    """None where the forward has no file of its own that could be named or read again."""
    file = Path(definition.place.file)
    if not file.is_file():
        return None
    asked = definition.snake if file.parent == MATH else f"{file.name}:{definition.name}"
    tensors = (*definition.differentiable, *(s.tensor for s in definition.statements))
    names = tuple(t.name for t in tensors)
    return Checkable(asked, definition.name, file.read_text("utf-8"), names)


def _as_shown(form: ClosedForm) -> Renaming:
    """Renaming of recomputed statements to the values they equal, and of gradients of parts."""
    pairs = zip(form.statements, form.shown, strict=True)
    called = {s.tensor: t for s, (t, _) in pairs if t != s.tensor}
    return Renaming({t.name: form.again.get(t, shown) for t, shown in called.items()})


def _paragraphs(text: str) -> tuple[str, ...]:
    """Paragraphs without control characters, which a terminal would obey."""
    plain = "".join(c for c in text if c.isprintable() or c == "\n")
    return tuple(" ".join(p.split()) for p in plain.split("\n\n") if p.strip())


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


def _forward(proved: Proved, overview: bool, entries: int) -> Iterator[Block]:
    definition = proved.definition
    layouts = layouts_of(definition)
    users: dict[str, list[Tensor]] = {}
    for statement in definition.statements:
        for name in dict.fromkeys(t.name for t in tensors_in(statement.expression)):
            users.setdefault(name, []).append(statement.tensor)

    def used_by(name: str) -> Words:
        if name in users:
            return ("used by ", *joined(users[name]))
        if name not in (t.name for t in definition.results):
            return "passed on from place to place"
        return "the output" if len(definition.results) == 1 else "an output"

    given: list[Words] = [(t, f" {shape(layouts[t.name])}") for t in definition.arguments]
    optional = {t.name: f", or {default} everywhere" for t, default in definition.optional}
    optional |= {i.label.name: f", ignored where it is {i.default}" for i in definition.ignoring}
    given = [(t, f"{words}{optional.get(t.name, '')}") for t, words in given]
    domains = _domains(definition)
    for t, default in definition.scalars:
        number = default if isinstance(default, Expr) else str(default)
        domain = (" (", *domains.pop(t), ")") if t in domains else ()
        given.append((t, " = ", number, *domain))
    yield Prose(("Given ", *joined(given), "."))
    for number, domain in domains.items():  # which a block is given
        yield Prose((number, " has to be ", *domain, "."))
    for axis in definition.axes:
        if isinstance(axis, Axes):
            remark = " may be any number of dimensions (even none), flattened into one axis."
            yield Prose((axis, remark))
    lines = {
        s.name: [Equation(s.tensor, s.expression, used_by(s.name), shape(layouts[s.name]))]
        for s in definition.statements
    }
    lines |= {t.name: [Equation(t, e, used_by(t.name))] for t, e in ties_forward(definition)}
    yield from _by_block(definition, lines, overview)
    graph = _graph(proved, entries)
    yield Foldable("the graph of the forward", (graph,)) if overview else graph


def _domains(definition: Definition) -> dict[Expr, tuple[str | Basic, ...]]:
    """The declared bounds of each number, in words."""
    bounds: dict[Expr, list[Words]] = {}
    for demand in definition.demands:
        own = [(f"{bound.words} ", bound.limit) for bound in demand.domain.bounds]
        bounds.setdefault(demand.expression, []).extend(own)
    return {number: joined(dict.fromkeys(own), " and ") for number, own in bounds.items()}


def _graph(proved: Proved, entries: int) -> TensorGraph:
    definition, chain = proved.definition, proved.closed_form.chain
    layouts = layouts_of(definition)
    tensors = [*definition.inputs, *(t for t, _ in definition.scalars)]
    tensors += [s.tensor for s in definition.statements]
    edges = {
        (t.name, s.name): None for s in definition.statements for t in tensors_in(s.expression)
    }
    passes = {(a.of.name, c.via) for a in chain.adjoints for c in a.contributions}
    nodes = tuple(TensorNode(t.name, t.role, shape(layouts[t.name])) for t in tensors)
    return TensorGraph(nodes, tuple(edges), frozenset(passes), Numbered(chain, entries))


def _by_block(
    definition: Definition, lines: Mapping[str, list[Equation]], overview: bool, steps: bool = False
) -> Iterator[Block]:
    """The lines of every tensor, by its name; those inside of a block are together, and of an
    overview a block of several tensors is opened only if it is wanted.
    """
    blocks = {s.name: s.block for s in definition.statements} if overview else {}
    sizes = Counter(blocks[name] for name in lines if name in blocks)

    def group(name: str) -> str:
        block = blocks.get(name, "")
        return block if sizes[block] > 1 and name != block else ""

    for block, names in groupby(lines, group):
        together = Equations(tuple(line for name in names for line in lines[name]), steps)
        title = f"inside of {block}: {len(together.lines)} lines"
        yield Foldable(title, (together,)) if block else together


def _chain(proved: Proved, wanted: set[str], of: str | None, overview: bool) -> Iterator[Block]:
    form = proved.closed_form
    layouts = layouts_of(form.definition)
    arrive = arriving(form.chain)
    known = {s.name: s.tensor for s in form.definition.statements}
    yield Prose((*arrive, "; one gradient for every tensor, in reverse."))
    lines = {
        adjoint.of.name: list(_adjoint_lines(adjoint, shape(layouts[adjoint.of.name]), known))
        for adjoint in form.chain.adjoints
        if adjoint.name in wanted
    }
    ties = ties_backward(form.definition)
    lines |= {t.name: [Equation(t, e, "from the next place")] for t, e in ties}
    yield from _by_block(form.definition, lines, overview, steps=True)
    for tensor in branching(form.definition):
        if of is None or f"d{tensor}" in wanted:
            yield from _paths(form, form.chain.by_name[f"d{tensor}"])


def arriving(chain: Chain) -> Words:
    """A sentence on the upstream gradients."""
    seen = [adjoint_of(t) for t in chain.definition.results]
    verb = " arrives" if len(seen) == 1 else " arrive"
    return (*joined(seen, " and "), verb)


def _adjoint_lines(adjoint: Adjoint, shape: str, known: Mapping[str, Tensor]) -> Iterator[Equation]:
    if not adjoint.contributions:
        yield Equation(adjoint.tensor, adjoint.expression, "nothing depends on it", shape)
        return
    left: Tensor | str = adjoint.tensor
    for contribution in adjoint.contributions:
        remark = ("through ", known.get(via := contribution.via, via), f": {contribution.reason}")
        yield Equation(left, contribution.expression, remark, shape)
        left, shape = "+", ""


def _paths(form: ClosedForm, adjoint: Adjoint) -> Iterator[Block]:
    paths = paths_to(form.definition, adjoint.of, form.draft)
    count = f" on {len(paths)} paths; what arrives on each, in closed form:"
    reached = joined(form.definition.results, " and ")
    yield Prose((adjoint.of, " reaches ", *reached, count))
    lines = []
    for path in paths:
        remark = "directly" if path.via is None else ("through ", path.via)
        lines.append(Equation("+" if lines else adjoint.tensor, path.contribution, remark))
    yield Equations(tuple(lines), steps=True)


def _result(proved: Proved, wanted: set[str]) -> Iterator[Block]:
    """The closed form, as it is computed, and the values of the forward that stand in it."""
    form = proved.closed_form
    known = layouts_of(form.definition)
    shown = [s for s in form.statements if s.tensor.name in wanted or s.of is None]
    known |= {f"d{name}": layout for name, layout in known.items()}
    found = layouts(
        [(s.tensor, s.expression) for s in form.statements], form.definition.axes, known
    )
    lines = tuple(replace(li, shape=shape(found[li.left.name])) for li in equations_of(shown).lines)
    lines = (*(Equation(t, e) for t, e in ties_backward(form.definition)), *lines)
    yield Equations(lines, steps=True)
    met = {t.name for s in shown for t in tensors_in(s.expression)}
    used = [s for s in form.definition.statements if s.name in met]
    if used:
        yield Prose(("where ", *joined(Eq(s.tensor, s.expression, evaluate=False) for s in used)))
    yield from divisors_explained(form.definition, shown)


def equations_of(statements: Iterable[ClosedStatement]) -> Equations:
    return Equations(tuple(Equation(s.tensor, s.expression) for s in statements))


def _computed_forward(proved: Proved, overview: bool) -> Iterator[Block]:
    blocks = tuple(computed_forward(proved))
    yield from (Foldable("the lines that differ", blocks),) if overview and blocks else blocks


def _proof(proved: Proved) -> Iterator[Block]:
    yield Prose(f"{proved.summary[0].upper()}{proved.summary[1:]}.")


def _code(code: ProgramLines | None, wanted: set[str]) -> Iterator[Block]:
    if code is None:
        return
    yield Prose(code.words)
    if code.by_name:
        yield Code(tuple((name, line) for name, line in code.by_name.items() if name in wanted))
