"""Parts of a `Verdict`: one answer with its reason for every gradient that a text claims."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Protocol

from sympy import Expr

from derive.claims.checking.explaining.edits import Edited
from derive.claims.checking.explaining.neighbours import Neighbour
from derive.claims.checking.explaining.terms import TermComparison
from derive.claims.checking.numbers.example import Counterexample
from derive.claims.checking.numbers.further import ExactAgreement
from derive.claims.checking.numbers.narrowing import Narrowing
from derive.claims.checking.words.spoken import AS_NAMED, Spoken
from derive.claims.reading import Misaligned, TextLine
from derive.language.notation.definition import Definition
from derive.language.symbols import Tensor
from derive.proof.proving.proof import ProvedGradient

Outcome = Literal["right", "narrower", "undecided", "wrong"]


@dataclass(frozen=True)
class Refutation:
    """Why a claim is wrong: ``misaligned`` if torch would align axes against the intention, else a
    counterexample. Explanations are computed on demand.
    """

    misaligned: Misaligned | None = None
    counterexample: Counterexample | None = None
    explanations: Explanations | None = None

    @property
    def unexplained(self) -> Refutation:
        return replace(self, explanations=None)

    @cached_property
    def comparison(self) -> TermComparison | None:
        """The differing terms, if they can be determined."""
        return self.explanations and self.explanations.comparison()

    @cached_property
    def edit(self) -> Edited | None:
        """The replacement of one value, if that says more than the terms."""
        found = self.comparison
        if self.explanations is None or (found is not None and found.is_one_finding):
            return None
        edit = self.explanations.edit()
        is_said = found is not None and len(found.differences) + bool(found.factor) == 1
        return edit if edit and (not is_said or edit.is_plain) else None

    @cached_property
    def neighbour(self) -> Neighbour | None:
        """A similar forward for which the claim is right."""
        return self.explanations and self.explanations.neighbour()

    @cached_property
    def hints(self) -> tuple[str, ...]:
        """Further hints about the mistake."""
        return self.explanations.hints() if self.explanations else ()


class Explanations(Protocol):
    """Source of the explanations of a wrong claim."""

    def comparison(self) -> TermComparison | None: ...
    def edit(self) -> Edited | None: ...
    def neighbour(self) -> Neighbour | None: ...
    def hints(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Answer:
    """The verdict on one gradient, which ``line`` of the text says is ``claimed``.

    ``conditions`` are what it is right under (``eps = 1e-05``), ``inherits`` tells that it is right
    only if the wrong lines above are fixed, ``difference`` is the largest that was found between
    claim and gradient, relative to the gradient, in numbers of 50 digits. ``agreement`` tells what
    was found at further sizes, where the proof is one for the small batches alone. ``narrowing``
    says where the formula has a value, if the gradient has one elsewhere too; the outcome is
    "narrower" where that is more than single numbers. ``cut_short`` says what a time limit left
    undone, ``sampled`` where it was compared with data and not proved, ``rounded`` which numbers
    are constants up to rounding, ``called`` by which name the gradient goes if not by ``d`` and
    that of its tensor, ``lines`` what the text named on the way.
    """

    of: Tensor
    line: int
    source: str
    outcome: Outcome
    claimed: Expr | None = None
    proved: ProvedGradient | None = None
    refutation: Refutation | None = None
    difference: float | None = None
    agreement: ExactAgreement | None = None
    narrowing: Narrowing | None = None
    conditions: tuple[str, ...] = ()
    inherits: bool = False
    note: str = ""
    cut_short: str = ""
    sampled: tuple[str, ...] = ()
    rounded: tuple[str, ...] = ()
    called: str = ""
    lines: tuple[TextLine, ...] = field(default=(), repr=False)

    @property
    def name(self) -> str:
        return self.called or f"d{self.of.name}"


@dataclass(frozen=True)
class Answers:
    """The answers in the order of lines; ``single`` if the text was one formula.

    ``shapes`` are those that decided, where inputs may have any number of dimensions,
    ``other_shapes`` what came of others; ``in_every_shape`` says that this is the same.
    ``remarks`` tell what torch does with the text and that is not seen in it, ``spoken`` in which
    words all this is said.
    """

    definition: Definition
    answers: tuple[Answer, ...]
    single: bool = True
    shapes: str = ""
    other_shapes: tuple[str, ...] = ()
    in_every_shape: bool = True
    remarks: tuple[str, ...] = ()
    spoken: Spoken = AS_NAMED
    outcome: Outcome = field(init=False)

    def __post_init__(self):
        outcomes = [answer.outcome for answer in self.answers]
        worst = next((o for o in ("wrong", "undecided", "narrower") if o in outcomes), "right")
        object.__setattr__(self, "outcome", worst)

    @property
    def right(self) -> bool | None:
        """True if everything is proved, False if something is refuted, None otherwise, or if a
        formula is undefined for a part of the data.
        """
        return {"right": True, "wrong": False}.get(self.outcome)

    @property
    def status(self) -> int:
        """The exit status: 0 right, 1 wrong, undecided or narrower."""
        return 0 if self.right else 1

    @property
    def unexplained(self) -> Answers:
        """The same without explanations, which take time."""
        why = "the time limit ran out before it was explained"
        bare = [
            replace(a, refutation=a.refutation.unexplained, cut_short=why) if a.refutation else a
            for a in self.answers
        ]
        return replace(self, answers=tuple(bare))

    @property
    def first_wrong(self) -> Answer | None:
        return next((a for a in self.answers if a.outcome == "wrong"), None)
