"""Readings of a backward that passes a gradient through rounding, floors, signs or jumps.

Their derivative is 0 wherever it exists, and nobody wants that for a quantizer: its backward is
that of the forward in which these pass the gradient on, by definition. It is read that way if it is
not the gradient of the forward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from sympy import Abs, Expr, Function, Integer, Piecewise, sign

from codegen.backwards.claims import Backward, GradientClaim
from derive.claims.checking.ground import ground_of
from derive.claims.checking.verdict import Verdict
from derive.gradient.chain.chain import adjoint_of
from derive.language.functions import KNOWN
from derive.language.notation.definition import Definition

DEFINED, UNCHECKED = "by definition", "not checked"
PASSED = (
    "by definition: {steps} in the forward of {function} is read as {way}. This is no derivative: "
    "that is 0 wherever it exists"
)
NEITHER = (
    "{steps} in the forward of {function} has the derivative 0 wherever it exists, for which the "
    "backward is wrong, and so it is where it is read as straight through, by definition:"
)
SURROGATE = (
    "not checked: {names} of {function} is a surrogate gradient. The forward has the gradient 0 "
    "wherever it exists; what the backward gives in its place does not follow from the forward"
)
STEPS = {row.function: row.in_torch[0] for row in KNOWN.values() if row.stepped}


@dataclass(frozen=True)
class StepReading:
    """The reading of steps without a derivative, where it is not a derivative of 0."""

    outcome: str = ""
    words: str = ""

    def qualified(self, words: str) -> str:
        """The words of a verdict, with the reading that it depends on."""
        return words.replace("right: ", "right by this: ", 1) if self.outcome == DEFINED else words


DERIVATIVE = StepReading()


def unchecked(names: Sequence[str], function: str) -> StepReading:
    """A reading for gradients that replace one that is 0."""
    return StepReading(UNCHECKED, SURROGATE.format(names=" and ".join(names), function=function))


@dataclass(frozen=True)
class Passing:
    """A reading of steps without a derivative: ``slope`` counts as the derivative, in ``words``."""

    words: str
    slope: Callable[[Expr], Expr]

    def read(self, backward: Backward) -> Backward:
        """The same forward and gradients, with steps that pass the gradient through."""
        definition = backward.definition
        kinds = {type(n) for s in definition.statements for n in s.expression.atoms(*STEPS)}
        kinds |= {Abs} if sign in kinds else set()

        def passing(e: Expr) -> Expr:
            return e.replace(lambda n: type(n) in kinds, lambda n: self._kind(type(n))(*n.args))

        def said(s: GradientClaim) -> GradientClaim:
            if s.expression is None:
                return s
            again = s.with_numbers and (lambda numbers: passing(s.with_numbers(numbers)))
            return replace(s, expression=passing(s.expression), with_numbers=again)

        statements = (replace(s, expression=passing(s.expression)) for s in definition.statements)
        return replace(
            backward,
            definition=replace(definition, statements=tuple(statements)),
            said=tuple(map(said, backward.said)),
        )

    def _kind(self, step: type) -> type[Function]:
        return _passing(step, self.slope)


@cache
def _passing(step: type, slope: Callable[[Expr], Expr]) -> type[Function]:
    """The function of the same name that passes gradients; a magnitude keeps its sign."""

    def derivative(self, x):
        (u,) = self.args
        return (_passing(sign, slope)(u) if step is Abs else slope(u)) * u.diff(x)

    return type(step.__name__, (step,), {"_eval_derivative": derivative})


WAYS = (
    Passing("straight through: its derivative counts as 1", lambda u: Integer(1)),
    Passing(
        "straight through from -1 to 1: its derivative counts as 1 there, and elsewhere as 0",
        lambda u: Piecewise((1, Abs(u) <= 1), (0, True)),
    ),
)


def steps_in(definition: Definition) -> tuple[str, ...]:
    """Steps of the forward without a derivative that may pass one through, by their torch names."""
    found = {type(n) for s in definition.statements for n in s.expression.atoms(*STEPS)}
    return tuple(name for kind, name in STEPS.items() if kind in found)


def jumps_in(definition: Definition) -> bool:
    """True if the forward has a sign, or a condition used as a number, with surrogates."""
    return any(_jumps(s.expression) for s in definition.statements)


def _jumps(e: Expr) -> bool:
    return bool(e.atoms(sign)) or any(
        all(value.is_number for value, _ in choice.args) for choice in e.atoms(Piecewise)
    )


def by_definition(
    backward: Backward,
    function: str,
    judged: Callable[[Backward], list[Verdict]],
    progress: Callable[[str], None],
) -> tuple[list[Verdict], StepReading]:
    """Verdicts on the true derivative; if the forward has steps without one and these are not
    right, verdicts for the first reading by which they are.
    """
    verdicts = judged(backward)
    steps = " and ".join(steps_in(backward.definition))
    if all(v.right for v in verdicts):
        return verdicts, DERIVATIVE
    nearest = None
    for way in WAYS if steps else ():
        progress(f"reading {steps} as straight through")
        found = judged(way.read(backward))
        if all(v.right for v in found):
            words = PASSED.format(steps=steps, function=function, way=way.words)
            return found, StepReading(DEFINED, words)
        nearest = nearest or found
    closed = ground_of(backward.definition).form.closed
    wrong = [answer for v in verdicts if not v.right for answer in v.answers]
    if jumps_in(backward.definition) and not any(closed.get(adjoint_of(a.of).name) for a in wrong):
        names = [answer.name for answer in wrong]
        return [v for v in verdicts if v.right], unchecked(names, function)
    if nearest is None:
        return verdicts, DERIVATIVE
    return nearest, StepReading("", NEITHER.format(steps=steps, function=function))
