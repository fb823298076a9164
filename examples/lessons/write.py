"""Write the four lessons: python examples/lessons/write.py [--check | --html DIR] [--force]

The prose is written here; every result in it comes from the derivation of the lesson's forward.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from sympy import Eq, Piecewise

import derive
from derive.commands.site import pages_of
from derive.gradient.found.findings import Balance, NoInfluence
from derive.language.formulas.words import Words, joined
from derive.language.notation.library import files_read
from derive.proof.proving.proved import Proved
from derive.running.command import add_force, guarded
from derive.running.writing import current, write_all
from derive.show import document_of
from derive.show.document import Document
from derive.show.markdown import markdown

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Lesson:
    """A forward in its own file, and the prose around its derivation."""

    file: str
    title: str
    words: Callable[[Proved], Words]


def clamped_loss(proved: Proved) -> Words:
    closed = proved.closed_form.by_name["dguess"].expression
    (choice,) = closed.atoms(Piecewise)
    (inside, condition), (outside, _) = choice.args
    if inside == 0:
        inside, condition, outside = outside, condition.negated, inside
    return (
        "Clamping the loss of an example looks like a way to keep its gradient small. It is not. "
        "Where ",
        condition,
        " the gradient is ",
        closed.xreplace({choice: inside}),
        ", the same as without clamping; everywhere else it is ",
        closed.xreplace({choice: outside}),
        ". The worst examples contribute nothing. Clipping the gradient would have kept its "
        "direction and reduced its length.",
    )


def saturated_tanh(proved: Proved) -> Words:
    step = proved.closed_form.by_name["du"].expression
    h = proved.definition.output
    values = ((step.subs(h, end), " for ", Eq(h, end, evaluate=False)) for end in (-1, 1))
    return (
        "The gradient that a tanh passes back, ",
        step,
        ", depends on its own output. It is ",
        *joined(values, " and "),
        ", whatever the upstream gradient. A unit that is saturated for every example is dead: no "
        "gradient reaches its weights. So weights are initialized small, or inputs normalized.",
    )


def row_maximum(proved: Proved) -> Words:
    found = derive.findings(HERE / "row_maximum.py")
    unmoved = next(f for f in found if isinstance(f, NoInfluence))
    balance = next(f for f in found if isinstance(f, Balance))
    statement = proved.closed_form.by_name["dlogits"]
    return (
        "Subtracting the row's maximum prevents overflow. "
        f"{str(unmoved).capitalize()}, although every entry depends on it: you may treat it as a "
        "constant, and need no argmax. What remains is ",
        Eq(statement.tensor, statement.expression, evaluate=False),
        f". For the same reason {balance}: adding a number to a whole row changes nothing.",
    )


def softmax_twice(proved: Proved) -> Words:
    """The formulas are those for an upstream gradient of 1."""
    once = dict.fromkeys(proved.closed_form.chain.upstreams, 1)
    shown = [
        Eq(s.tensor, s.expression.xreplace(once), evaluate=False)
        for s in proved.closed_form.statements
    ]
    return (
        "A backward pass is a computation like any other, so it has a backward pass itself. Take "
        "the dot product of a softmax's gradient and a vector v: a number in which y depends on x. "
        "Its gradients in closed form: ",
        *joined(shown, " and "),
        ". The gradient with respect to g is the change of y as x moves along v: forward mode from "
        "two backward passes. The gradient with respect to x is the Hessian-vector product, "
        "without the Hessian.",
    )


LESSONS = (
    Lesson("clamped_loss.py", "Clamping the loss is not clipping the gradient", clamped_loss),
    Lesson("saturated_tanh.py", "A saturated tanh passes no gradient", saturated_tanh),
    Lesson("row_maximum.py", "Why subtracting the row maximum changes nothing", row_maximum),
    Lesson("softmax_twice.py", "The backward of a softmax is a forward again", softmax_twice),
)
ABOUT = "Four short forwards, and what their gradients teach."


def documents() -> Iterator[tuple[Lesson, Document]]:
    """Each lesson's derivation, with its title and prose on top."""
    for lesson in LESSONS:
        proved = derive.derive(HERE / lesson.file)
        derivation = document_of(proved)
        words = (lesson.words(proved), f"The forward is {lesson.file}.", *derivation.summary)
        yield lesson, replace(derivation, name=lesson.title, summary=words)


def in_markdown() -> dict[Path, str]:
    """The lessons as Markdown, beside their forwards."""
    return {
        HERE / lesson.file.replace(".py", ".md"): markdown(document)
        for lesson, document in documents()
    }


def as_pages(folder: Path, home: str = "", playground: str = "") -> dict[Path, str]:
    """A page for every lesson, and an index; they lead to the index of the gradients and to the
    playground, if there are any.
    """
    by_file = {lesson.file.replace(".py", ".html"): document for lesson, document in documents()}
    links = ((home, "All gradients"), (playground, "Playground"))
    links = tuple(link for link in links if link[0])
    pages = pages_of({"The lessons": by_file}, "Lessons", ABOUT, links, playground)
    return {folder / file: text for file, text in pages.items()}


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    chosen.add_argument("--html", type=Path, metavar="DIR", help="write pages, and an index")
    parser.add_argument("--home", default="", metavar="ADDRESS", help="of the gradients' index")
    parser.add_argument("--playground", default="", metavar="ADDRESS", help="linked on each page")
    add_force(parser)
    options = parser.parse_args(arguments)
    return guarded(lambda: _write(options))


def _write(options: argparse.Namespace) -> int:
    if options.html is None:
        texts = in_markdown()
    else:
        texts = as_pages(options.html, options.home, options.playground)
    if options.check:
        outdated = [path.name for path, text in texts.items() if current(path) != text]
        sys.stderr.write(f"out of date: {', '.join(outdated)}\n" if outdated else "")
        return int(bool(outdated))
    write_all(texts, "choose another folder", files_read(), options.force)
    return 0


if __name__ == "__main__":
    sys.exit(main())
