"""Second derivatives as a document: their lines first, then how they are made, steps and proof.

In: a `SecondOrder`. Out: a `Document` of the records of the first order: the two programs are
closed forms like any other, shown by the same sections (``presentation/sections.py``), with 1 for
the upstream gradient of the total and the names by which the results go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from sympy import Expr, Integer

from derive.gradient.orders.second import Behind, SecondOrder
from derive.gradient.orders.third import ThirdOrder
from derive.gradient.orders.together import in_one_program, lines_of
from derive.language.formulas.words import Words, joined
from derive.language.symbols import Tensor
from derive.proof.proving.proved import in_words
from derive.show.document import Block, Document, Equation, Equations, Prose, Section
from derive.show.names import explained
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
    answer = Section(SECOND, tuple(_answer(order, of, closed)))
    sections = [*explained([answer], order.first.closed_form)]
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
            blocks.append(
                Equations(tuple(Equation(*li) for li in lines_of(program, at_hand).items()))
            )
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


def _answer(order: SecondOrder, of: str | None, closed: bool) -> Iterator[Block]:
    """The total, its gradients in one block, and the two programs in which they are found."""
    total, outputs = order.second.proved.definition.statements[-1], order.first.definition.outputs
    upstreams = [*order.upstreams.values()]
    several = len(outputs) > 1
    arriving = ", the upstream gradients of " if several else ", the upstream gradient of "
    yield Prose(
        (
            *("The backward is itself a function: of ", *joined(upstreams), arriving),
            *(*joined(outputs), ", and of the inputs. Multiply each of its gradients, g_ and the "),
            "name of an input, by a vector, and add up:",
        )
    )
    yield Equations((Equation(total.tensor, total.expression),))
    if closed:
        yield Prose("The gradients of this, as one program:")
        yield Equations(tuple(_in_one_block(order, of)), steps=True)
    tangents = " are the tangents of " if several else " is the tangent of "
    yield Prose(
        (
            *(*joined(order.tangents), tangents, *joined(outputs), " (JVP); the gradients of the "),
            "inputs are the Hessian times the vectors. They are derived in two steps: the double "
            "backward gives every saved value a cotangent, c_ and its name, and the pullback takes "
            "those to the inputs.",
        )
    )
    if closed:
        cotangents = {t: order.cotangents[t.name] for t in outputs}
        for output, cotangent in cotangents.items():
            if output.name not in order.second.results:
                yield Prose((cotangent, " is 0 here, since ", output, " is not saved."))
        pairs = zip(cotangents.values(), upstreams, strict=True)
        given = joined(((c, " = ", g) for c, g in pairs))
        alone = " and no other cotangent, the pullback is the first backward."
        yield Prose(("With ", *given, alone))


def _in_one_block(order: SecondOrder, of: str | None) -> Iterator[Equation]:
    """The lines of all second derivatives, with a remark on each result."""
    outputs = order.first.definition.outputs
    found = order.second.results.items()
    remarks: dict[str, Words] = {t.name: ("the cotangent of ", Tensor(name)) for name, t in found}
    pairs = zip(order.tangents, outputs, strict=True)
    remarks |= {tangent.name: ("the tangent of ", output) for tangent, output in pairs}
    for tensor, e in in_one_program(order, of).items():
        yield Equation(tensor, e, remarks.get(tensor.name, ""))
