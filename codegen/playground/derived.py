"""Sends a derivation piece by piece: the part that a reader waits for comes first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from codegen.driver.gate import file_of
from codegen.files.quality import Traffic
from codegen.playground.question import Question
from codegen.program import Program
from codegen.targets.lean.outside import outside_of, proved_inside
from codegen.targets.lean.target import backward_lines, saved_in, written
from codegen.targets.torch.traffic import counts as counts_of
from derive.derivation import derive
from derive.gradient.orders import FIRST
from derive.gradient.orders.second import SecondOrder, second_order
from derive.gradient.orders.sections import document_of_second
from derive.language.errors import QuestionError, UnprovedError
from derive.language.notation.forward import Forward
from derive.proof.proving.proved import Proved
from derive.running.limits import Doing, limited
from derive.show.document import Document, Section, TensorGraph
from derive.show.html import parts
from derive.show.markdown import markdown
from derive.show.sections import CODE, FOUND, TITLES, document_of, equations_of

LATER = (
    FOUND,
    CODE,
)  # sections not shown with the steps: slow ones, and torch

# Beside proofs, on the page and in every text that leaves it.
NOT_RUN = "Proved; not run beside autograd, which needs torch: gradform on your own machine does."


def told_of_derivation(
    forward: type[Forward], question: Question, tell: Callable[..., None]
) -> None:
    doing = Doing(lambda what: tell("stage", what=what))
    proved = derive(forward, doing, question.limit)
    tell("parts", parts=_closed_form(proved))
    doing("writing the code")
    tell("parts", parts=_code(forward, proved, question.limit))
    doing("showing the steps")
    document = document_of(proved, titles=[title for title in TITLES if title not in LATER])
    shown = _shown(document)
    tell("parts", parts=shown)
    second = None
    if question.order != FIRST:
        second = _second(proved, question.limit, doing, tell)
    doing("looking for what else there is to show")
    with limited(question.limit):
        found = document_of(proved, titles=(FOUND,))
    before = sum(TITLES.index(section.title) < TITLES.index(FOUND) for section in document.sections)
    document, shown = _joined((document, shown), (found, _shown(found)), before)
    if second is not None:
        again = document_of_second(second)
        document, shown = _joined((document, shown), (again, _shown(again)), len(shown["sections"]))
    tell("parts", parts={"sections": shown["sections"]})
    doing("writing Markdown")
    tell("parts", parts={"markdown": markdown(document)})


Pages = tuple[Document, dict[str, object]]  # a document, and its shown form


def _joined(pages: Pages, more: Pages, place: int) -> Pages:
    """``more`` inserted among the sections, which are not rendered again."""
    (document, shown), (other, others) = pages, more
    sections = (*document.sections[:place], *other.sections, *document.sections[place:])
    written = shown["sections"][:place] + others["sections"] + shown["sections"][place:]
    return replace(document, sections=sections), shown | {"sections": written}


def _second(
    proved: Proved, limit: float, doing: Doing, tell: Callable[..., None]
) -> SecondOrder | None:
    """Second derivatives; None where they are not proved, which is reported."""
    try:
        second = second_order(proved, doing, limit)
    except UnprovedError as error:
        tell("parts", parts={"second": f"Second derivatives are not proved. {error}"})
        return None
    tell("parts", parts={"second": f"Second derivatives: {second.summary}."})
    return second


def _closed_form(proved: Proved) -> dict[str, object]:
    form = proved.closed_form
    closed = Document("", (), (Section("", (equations_of(form.statements),)),))
    ((_, page),) = parts(closed)
    return {
        "title": proved.definition.name,
        "closed": page,
        "latex": form._repr_latex_(),
        "proof": f"{proved.summary[0].upper()}{proved.summary[1:]}.",
        "every_size": proved.every_size,
        "note": proved.cut_short,
        "said": NOT_RUN,
        "second": "",
    }


def _code(forward: type[Forward], proved: Proved, limit: float) -> dict[str, object]:
    """The module, its saved tensors and its costs; or the reason why there is none."""
    outside = outside_of(forward.definition)
    try:
        pair, text = written(forward, outside, proved_inside(outside, proved, limit=limit))
    except QuestionError as error:
        return {"torch": "", "refused": f"{error.problem}. {error.remedy}"}
    except UnprovedError as error:  # of every entry, where a sum or a mean was proved
        return {"torch": "", "refused": f"{error}."}
    return {
        "file": file_of(forward),
        "torch": f"# {NOT_RUN}\n{text}",
        "backward": "\n".join(backward_lines(pair).values()),
        "refused": "",
        "saved": list(saved_in(pair)),
        "costs": _costs(pair.program),
    }


def _costs(program: Program) -> list[tuple[str, str]]:
    """Counts, each with its description."""
    counts = counts_of(program)
    return [
        ("a tensor of full size", counts.full),
        ("reductions and products of the backward", ", ".join(counts.reductions) or "none"),
        ("the forward reads and writes, of full size", _moved(counts.forward)),
        ("the backward reads and writes, of full size", _moved(counts.backward)),
        *[("may be infinite or NaN", words) for words in program.unsafe],
    ]


def _moved(traffic: Traffic) -> str:
    kernel, lines = traffic.kernel, traffic.lines
    return (
        f"{kernel.reads} + {kernel.writes} as one kernel, {lines.reads} + {lines.writes} line by "
        "line"
    )


def _shown(document: Document) -> dict[str, object]:
    """The sections, and the picture by itself."""
    picture, steps = [], []
    for section in document.sections:
        drawn = [block for block in section.blocks if isinstance(block, TensorGraph)]
        picture += drawn[: not picture]
        others = tuple(block for block in section.blocks if block not in drawn)
        steps.append(replace(section, blocks=others))
    drawn = Document("", (), (Section("", tuple(picture)),))
    ((_, page),) = parts(drawn)
    return {"picture": page, "sections": [*parts(replace(document, sections=tuple(steps)))]}
