"""Three lessons, written out: python examples/lessons/write.py [--check]

The words are ours; every result in them is read off the derivation of the lesson's forward.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sympy import Piecewise, latex

import derive
from derive.findings import Balance, NoInfluence
from derive.presentation import document_of
from derive.presentation.latex import latex_formula
from derive.presentation.markdown import markdown
from derive.proof import Proved
from derive.writing import current, write_all

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Lesson:
    """A forward in a file of its own, and the words around its derivation."""

    file: str
    title: str
    words: Callable[[Proved], str]


def clamped_loss(proved: Proved) -> str:
    closed = proved.closed_form.by_name["dguess"].expression
    (choice,) = closed.atoms(Piecewise)
    (inside, condition), (outside, _) = choice.args
    above = closed.xreplace({choice: outside})
    below = closed.xreplace({choice: inside})
    return (
        "Clamping the *loss* of an example from above looks like a way to keep its gradient small. "
        f"The derivation says otherwise. Where ${latex_formula(condition)}$ the gradient is "
        f"${latex_formula(below)}$, as if nothing had been clamped; everywhere else it is "
        f"${latex_formula(above)}$. The examples that are most wrong teach nothing at all. "
        "Clipping the gradient would have kept their direction and made it shorter."
    )


def saturated_tanh(proved: Proved) -> str:
    step = proved.closed_form.by_name["du"].expression
    h = proved.definition.output
    at_ends = {end: step.subs(h, end) for end in (-1, 1)}
    values = " and ".join(
        f"${latex(value)}$ for $h = {end}$" for end, value in sorted(at_ends.items())
    )
    return (
        f"What a tanh passes back is ${latex_formula(step)}$: its own output decides. That is "
        f"{values}, whatever arrives. A unit whose output is close to one of its ends for every "
        "example is dead: no gradient reaches the weights in front of it. So the first weights "
        "are drawn small, or normalised."
    )


def row_maximum(proved: Proved) -> str:
    found = derive.findings(HERE / "row_maximum.py")
    unmoved = next(f for f in found if isinstance(f, NoInfluence))
    balance = next(f for f in found if isinstance(f, Balance))
    closed = proved.closed_form.by_name["dlogits"].expression
    return (
        f"The row's maximum is subtracted so that no exponential overflows. "
        f"{str(unmoved).capitalize()}, although every entry is computed from it: it may be "
        "treated as a constant, and the arg max need not be looked for. What is left is "
        f"$\\mathrm{{d}}\\mathrm{{logits}} = {latex_formula(closed)}$. For the same reason "
        f"{balance}: a number added to a whole row changes nothing."
    )


LESSONS = (
    Lesson("clamped_loss.py", "Clamping the loss is not clipping the gradient", clamped_loss),
    Lesson("saturated_tanh.py", "A saturated tanh passes no gradient", saturated_tanh),
    Lesson("row_maximum.py", "Why subtracting the row maximum changes nothing", row_maximum),
)


def written(lesson: Lesson) -> str:
    """The lesson in Markdown: the words, then the derivation."""
    proved = derive.derive(HERE / lesson.file)
    _, _, body = markdown(document_of(proved)).partition("\n")
    return f"# {lesson.title}\n\n{lesson.words(proved)}\n\nThe forward is `{lesson.file}`.\n{body}"


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if out of date")
    options = parser.parse_args(arguments)
    texts = {HERE / lesson.file.replace(".py", ".md"): written(lesson) for lesson in LESSONS}
    if options.check:
        outdated = [path.name for path, text in texts.items() if current(path) != text]
        sys.stderr.write(f"out of date: {', '.join(outdated)}\n" if outdated else "")
        return int(bool(outdated))
    write_all(texts, "make the folder writable")
    return 0


if __name__ == "__main__":
    sys.exit(main())
