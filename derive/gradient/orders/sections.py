"""Second derivatives as a document: how they are made, their lines, steps and proof.

In: a `SecondOrder`. Out: a `Document` of the records of the first order: the two programs are
closed forms like any other, shown by the same sections (``presentation/sections.py``), with 1 for
the upstream gradient of the total and the names by which the results go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from sympy import Expr, Integer

from derive.gradient.orders.second import Behind, SecondOrder
from derive.gradient.orders.third import ThirdOrder
from derive.language.formulas.words import Words, joined
from derive.language.symbols import Tensor, tensors_in
from derive.proof.proving.forward_plan import forward_plan
from derive.proof.proving.proved import in_words
from derive.show.document import Block, Document, Equation, Equations, Prose, Section
from derive.show.renamed import Renaming
from derive.show.sections import (
    CHAIN,
    CLOSED_FORM,
    FORWARD,
    PROVED,
    RESULT,
    SMALL_BATCH,
    document_of,
)

SECOND, BACKWARD, PULLBACK = "Second order", "Double backward", "The pullback"
THIRD = "Third order"
STEPS = RESULT, FORWARD, CHAIN, CLOSED_FORM, SMALL_BATCH


def document_of_second(
    order: SecondOrder,
    of: str | None = None,
    entries: int = 3,
    titles: Collection[str] = STEPS,
) -> Document:
    """The derivation of the second derivatives; with ``of``, the pullback to that input alone.

    ``titles`` are the sections that are wanted of either program, as far as they are of ``STEPS``;
    ``entries`` is the size of the first axis in a small batch.
    """
    first = document_of(order.first, titles=())
    behind = _steps(order.second, None, entries, titles)
    pulled = _steps(order.pullback, of, entries, titles)
    closed = CLOSED_FORM in titles
    sections = [Section(SECOND, (*_construction(order), *(_lines(order, of) if closed else ())))]
    sections += _titled(BACKWARD, behind) + _titled(PULLBACK, pulled)
    if closed:
        said = f"{order.summary[0].upper()}{order.summary[1:]}, for the gradients of both parts."
        sections.append(Section(PROVED, (Prose(said),)))
    overview = of is None and (behind.overview or pulled.overview)
    return replace(first, sections=tuple(sections), overview=overview)


def document_of_third(
    order: ThirdOrder, entries: int = 3, titles: Collection[str] = STEPS
) -> Document:
    """The derivation of the third derivatives, behind each program of the second order;
    ``entries`` and ``titles`` as in `document_of_second`.
    """
    first = document_of(order.second.first, titles=())
    closed, sections = CLOSED_FORM in titles, []
    for of, again in zip((BACKWARD, PULLBACK), order.programs, strict=True):
        name = f"{of}, differentiated"
        program = again.program
        definition = program.proved.definition
        total = definition.statements[-1]
        blocks: list[Block] = [
            Prose("The second order is itself a function; multiply each result by a vector:"),
            Equations((Equation(total.tensor, total.expression),)),
        ]
        if closed:
            at_hand = {t.name for t in definition.inputs}
            blocks.append(Prose("The gradients of that sum with respect to all its arguments:"))
            blocks.append(Equations(tuple(_computed(program, at_hand, {}))))
        sections.append(Section(f"{THIRD}: {name[0].lower()}{name[1:]}", tuple(blocks)))
        sections += _titled(name, _steps(program, None, entries, titles))
    if closed:
        proofs = [g for again in order.programs for g in again.program.proved.gradients]
        said = in_words(proofs)
        sections.append(Section(PROVED, (Prose(f"{said[0].upper()}{said[1:]}."),)))
    return replace(first, sections=tuple(sections), overview=False)


def _steps(program: Behind, of: str | None, entries: int, titles: Collection[str]) -> Document:
    """The sections of a program, as those of a first order."""
    proved = replace(program.proved, closed_form=program.form)
    wanted = [title for title in STEPS if title in titles]
    document = document_of(proved, of, entries=entries, titles=wanted)
    known: dict[str, Expr] = {f"d{proved.definition.output.name}": Integer(1)}
    known |= {f"d{name}": tensor for name, tensor in program.results.items()}
    renaming = Renaming(known, _inserted(program))
    return replace(document, sections=tuple(map(renaming.section, document.sections)))


def _inserted(program: Behind) -> dict[str, Expr]:
    """The values that stand in the lines of the program where its proof has a name for them."""
    form = program.proved.closed_form
    one = {f"d{form.definition.output.name}": Integer(1)}
    kept = {*program.form.by_name, *(f"d{name}" for name in program.results)}
    dropped = (s for s in form.statements if s.tensor.name not in kept)
    return {s.tensor.name: Renaming(one).formula(s.expression) for s in dropped}


def _titled(program: str, document: Document) -> list[Section]:
    return [
        replace(s, title=f"{program}: {s.title[0].lower()}{s.title[1:]}") for s in document.sections
    ]


def _construction(order: SecondOrder) -> Iterator[Block]:
    total, outputs = order.second.proved.definition.statements[-1], order.first.definition.outputs
    upstreams = [*order.upstreams.values()]
    several = len(outputs) > 1
    arriving = ", the upstream gradients of " if several else ", the upstream gradient of "
    tangents = " are the tangents of " if several else " is the tangent of "
    yield Prose(
        (
            *("The backward is itself a function: of ", *joined(upstreams), arriving),
            *(*joined(outputs), ", and of the inputs. Multiply each of its gradients, g_ and the "),
            "name of an input, by a vector, and add up:",
        )
    )
    yield Equations((Equation(total.tensor, total.expression),))
    yield Prose(
        (
            *("The gradients" if several else "The gradient", " of this with respect to "),
            *(*joined(upstreams), tangents, *joined(outputs), " (JVP). The gradients with "),
            "respect to the inputs are the double backward, the Hessian times the vectors: every "
            "saved value gets a cotangent, and the pullback takes those to the inputs.",
        )
    )


def _lines(order: SecondOrder, of: str | None) -> Iterator[Block]:
    """The equations of both programs, with a remark on each result."""
    definition = order.first.definition
    saved = {t.name for t in order.first.closed_form.saved}
    remarks: dict[str, Words] = {}
    pairs = zip(order.upstreams.values(), definition.outputs, strict=True)
    upstreams = {g.name: output for g, output in pairs}
    for name, tensor in order.second.results.items():
        remark: Words = ("the cotangent of ", Tensor(name))
        if name in upstreams:
            remark = ("the tangent of ", upstreams[name])
        elif name in order.pullback.results:
            remark += (", added to ", order.pullback.results[name])
        remarks[tensor.name] = remark
    yield Prose("The double backward:")
    yield Equations(tuple(_computed(order.second, saved, remarks)))
    yield Prose("The pullback:")
    wanted = None if of is None else {order.pullback.results[of].name}
    yield Equations(tuple(_computed(order.pullback, saved, {}, wanted)))
    cotangents = {t: order.cotangents[t.name] for t in definition.outputs}
    for output, cotangent in cotangents.items():
        if cotangent.name not in remarks:
            yield Prose((cotangent, " is 0 here, since ", output, " is not saved."))
    pairs = zip(cotangents.values(), order.upstreams.values(), strict=True)
    given = joined(((c, " = ", g) for c, g in pairs))
    yield Prose(("With ", *given, " and no other cotangent, this is the first backward."))


def _computed(
    program: Behind,
    saved: Collection[str],
    remarks: Mapping[str, Words],
    wanted: Collection[str] | None = None,
) -> Iterator[Equation]:
    """The lines that the results need, or of these those ``wanted``, with the values of the
    program's own forward that they read.
    """
    total = program.proved.definition.output.name
    pairs = [(v.tensor, v.expression) for v in forward_plan(program.form) if v.tensor.name != total]
    pairs += [(s.tensor, s.expression) for s in program.statements]
    needed = set(wanted or (t.name for t in program.results.values()))
    kept: list[Equation] = []
    for tensor, e in reversed(pairs):
        if tensor.name in needed - set(saved):
            kept.append(Equation(tensor, e, remarks.get(tensor.name, "")))
            needed |= {t.name for t in tensors_in(e)}
    return reversed(kept)
