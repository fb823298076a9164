"""The record of a proof, and in words: proved, not proved, and left undone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

from derive.gradient.closing.closed_form import ClosedForm, ClosedStatement
from derive.language.notation.definition import Definition
from derive.proof.proving.claim import ProvedGradient, ShownClaims
from derive.running.limits import Doing

LONGER = "give a longer --limit, or name parts of long statements: each is proved on its own"


@dataclass(frozen=True)
class Proved:
    """A closed form that may be emitted, with the proof of each gradient and of each step of the
    chain rule. ``cut_short`` says what a time limit left undone, empty without one. ``certificate``
    is the file with which Coq accepted the closed form, empty if it has none. ``page`` shows it in
    a notebook.
    """

    closed_form: ClosedForm
    gradients: tuple[ProvedGradient, ...]
    adjoints: tuple[ProvedGradient, ...]
    cut_short: str = ""
    certificate: str = ""
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
        """The proof in words: which sizes, by which route, and by whom."""
        only = ", ".join(str(g.tensor) for g in self.adjoints if not g.every_size)
        steps = "every step of the chain rule as well"
        steps += f", but {only} only at those sizes" if only and self.every_size else ""
        coq = f". Certified by Coq: {self.certificate} of gradform" if self.certificate else ""
        return f"{in_words(self.gradients)}; {steps}{_from_place_to_place(self.definition)}{coq}"


def _from_place_to_place(definition: Definition) -> str:
    """The remark on recurrences: only their steps are proved."""
    if not definition.carried:
        return ""
    axes = " and ".join(dict.fromkeys(c.axis.name for c in definition.carried))
    return (
        f"; all this for the step at each place along {axes}, whatever the state before it is, and "
        "for all of them together by the chain rule, by induction from place to place"
    )


def in_words(gradients: Sequence[ProvedGradient]) -> str:
    """The proof of these gradients of one forward, in words: which sizes, by which route."""
    batches = gradients[0].sizes if gradients else ((),)
    names = "x".join(axis for axis, _ in batches[0])
    if not names:
        small = "exactly zero difference from SymPy's own derivative"
    else:
        shown = ", ".join("x".join(str(size) for _, size in batch) for batch in batches)
        small = (
            "exactly zero difference from SymPy's own derivative, entry by entry at "
            f"{names} = {shown}"
        )
    if all(gradient.every_size for gradient in gradients):
        return f"{small}, and for every size by differentiating indexed sums"
    only = ", ".join(str(g.tensor) for g in gradients if not g.every_size)
    return f"{small}; only those sizes were proved for {only}"


def failure(form: ClosedForm, statement: ClosedStatement, sizes) -> str:
    shown = ", ".join(f"{axis.name} = {n}" for axis, n in sizes.items())
    return (
        f"{form.definition.name}: {statement.tensor} is unproved. Entry by entry at "
        f"{shown}, the derivative of {_outputs(form)} with respect to {statement.of} was "
        f"not shown to be {statement.expression}; nothing was emitted"
    )


def _outputs(form: ClosedForm) -> str:
    return " and ".join(t.name for t in form.definition.results)


def out_of_time(form: ClosedForm, proved: Collection[str], doing: Doing) -> str:
    """The message of a proof that ran out of time: found, proved, and not decided."""
    open_ones = [s.tensor.name for s in form.statements if s.of and s.tensor.name not in proved]
    lines = [
        f"{form.definition.name}: the time limit ran out before the proof was finished",
        *(f"    found: {statement}" for statement in form.statements),
        f"    proved on small batches: {', '.join(proved) or 'nothing'}; for every size: nothing",
        f"    not decided: {', '.join(open_ones) or 'nothing'}",
        f"    in progress: {doing}",
        f"    {LONGER}; nothing was emitted",
    ]
    return "\n".join(lines)


def cut_short(form: ClosedForm, shown: Iterable[ShownClaims]) -> str:
    """Parts of a usable proof that the time limit left undone, in words."""
    undecided = dict.fromkeys(s.tensor.name for s in shown if s.every_size is None)
    undone = [f"whether {', '.join(undecided)} hold for every size"] if undecided else []
    undone += ["whether there is a cheaper closed form"] if form.hurried else []
    if not undone:
        return ""
    words = f"the time limit ran out before it was decided {' and '.join(undone)}"
    return f"{form.definition.name}: {words}"
