"""A fixed sweep of points at which formulas break: 0, equal entries, large numbers of one sign, all
labels ignored, numbers at the ends of their domains. Failures are named, and the derivation's
warnings are tried there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch
from sympy import Expr, Integer
from torch import Tensor

from codegen.program import Program
from codegen.targets.torch.interpret import Interpreter
from derive.gradient.closing.risks import Risk
from derive.language.notation.definition import Definition
from derive.language.symbols import Axis, tensors_in

EQUAL = 47 / 64  # no number that formulas have
CONSTANTS = (EQUAL, 0.0, 1.0, -1.0, 100.0, -100.0, 1e20, 1e30, -1e30)  # of all entries
BESIDE = (0.0, 1.0, 100.0, -100.0)  # a number at an end of its domain
FAR = 1e10  # from here on `extremes` has tried the same magnitude with both signs
USUAL = (0, 1)  # ends of a number without a domain
MIXED, DRAWN = (0.0, 1.0, -1.0, 100.0, -100.0), 4  # entries of points at which neighbours differ
STEPS = 30  # of a search for numbers at which a divisor is 0
NEAR, GROWN = 1e-2, 1e6  # relative to where that began: may well be 0; may well overflow
TINY, LARGEST = torch.finfo(torch.float32).tiny, torch.finfo(torch.float32).max


@dataclass(frozen=True)
class HardPoint:
    """Arguments of a function, with their description: all entries of the inputs ``of`` are a
    ``number``, if there are any. With ``always``, infinities of the mathematics itself are named
    too.
    """

    said: str
    arguments: Mapping[str, object]
    of: tuple[str, ...] = ()
    number: float = 0.0
    always: bool = False

    @property
    def is_far(self) -> bool:
        return abs(self.number) > FAR

    @property
    def covered(self) -> Iterator[tuple[float, str]]:
        """Points that cover this one: of one input alone, or of any equal entries."""
        for name in self.of:
            yield EQUAL, name
            yield self.number, name


def hard_points(
    definition: Definition, program: Program, arguments: Mapping[str, object], sizes: Mapping
) -> Iterator[HardPoint]:
    """Each input alone and all of them together, then labels and masks, then numbers."""
    inputs = [p.name for p in program.forward.parameters if p.role == "input"]
    for names in _alone_and_together(inputs):
        for number in CONSTANTS:
            those = f"all entries of {' and '.join(names)} are {number:g}"
            words = those if number != EQUAL else f"all entries of {' and '.join(names)} are equal"
            own = {n: torch.full_like(arguments[n], number) for n in names}
            always = abs(number) <= 1
            yield HardPoint(f"where {words}", {**arguments, **own}, names, number, always)
    ignored = {i.label.name: i.default for i in definition.ignoring if i.label.name in arguments}
    for names in _alone_and_together(ignored):
        own = {n: torch.full_like(arguments[n], ignored[n]) for n in names}
        words = f"where {' and '.join(names)} ignore every entry"
        if len(names) == 1:
            words = f"where every entry of {names[0]} is ignored"
        yield HardPoint(words, {**arguments, **own}, always=True)
    for name in (p.name for p in program.forward.parameters if p.role == "given"):
        own = {name: torch.zeros_like(arguments[name])}
        words = f"where all entries of {name} are 0"
        yield HardPoint(words, {**arguments, **own}, always=True)
    for name, end in _ends(definition, sizes):
        own = {**arguments, name: float(end)}
        yield HardPoint(f"for {name} = {end}", own, always=True)
        for number in BESIDE:
            far = {n: torch.full_like(arguments[n], number) for n in inputs}
            words = f"for {name} = {end} where all inputs are {number:g}"
            yield HardPoint(words, {**own, **far})


def _alone_and_together(names: Iterable[str]) -> list[tuple[str, ...]]:
    names = tuple(names)
    return [(name,) for name in names] + [names] * (len(names) > 1)


def _ends(definition: Definition, sizes: Mapping[Axis, int]) -> Iterator[tuple[str, Expr]]:
    """The ends of each number's domain, one at a time."""
    defaults = definition.defaults_at(sizes)
    known = {axis: Integer(n) for axis, n in definition.sizes_from(sizes).items()}
    for tensor, _ in definition.scalars:
        bounds = [b for d in definition.demands if d.expression == tensor for b in d.domain.bounds]
        ends = {Integer(n) for n in USUAL} | {b.limit.xreplace(known) for b in bounds}
        for end in sorted(e for e in ends if e.is_number and e.is_finite):
            if definition.permits({**defaults, tensor.name: end}, sizes):
                yield tensor.name, end


def in_words(found: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """One line for all points with the same failure, in words."""
    lines: dict[str, list[str]] = {}
    for where, what in found:
        lines.setdefault(what, []).append(where)
    return tuple(f"{what} {' or '.join(where)}" for what, where in lines.items())


def mixed_points(arguments: Mapping[str, object], inputs: Iterable[str]) -> Iterator[HardPoint]:
    """Points at which neighbours are far apart, which may confirm a risk that no other point does:
    ``exp(x - m)`` is 1 wherever all entries are equal.
    """
    generator = torch.Generator().manual_seed(0)
    numbers = torch.tensor(MIXED, dtype=torch.float64)
    for _ in range(DRAWN):
        own = {}
        for name in inputs:
            places = torch.randint(len(MIXED), arguments[name].shape, generator=generator)
            own[name] = numbers[places] + arguments[name] / 2
        yield HardPoint("", {**arguments, **own})


def refuted(
    risks: Iterable[Risk],
    definition: Definition,
    points: Iterable[tuple[HardPoint, bool]],
    inputs: Iterable[str],
) -> Iterator[Risk]:
    """The ``risks`` that cannot be confirmed: the expression stays in its range at all ``points``,
    and descent does not lead it out; or it leaves it, and no result is infinite or NaN then. Each
    point stands with whether one is.
    """
    points = list(points)
    seen: dict[Risk, list[tuple[Tensor, bool]]] = {risk: [] for risk in risks}
    for point, fails in points:
        for risk, value in _values(seen, definition, point):
            seen[risk].append((value, fails))
    for risk, values in seen.items():
        gone = [fails for value, fails in values if _leaves_range(risk, value)]
        harmless = len(gone) > 0 and not any(gone)
        if values and (harmless or not (gone or _may_leave(risk, values))):
            starts = () if harmless or not risk.divides else (points[0][0], points[-1][0])
            if not any(_is_led_to_0(risk, definition, start, [*inputs]) for start in starts):
                yield risk


def _leaves_range(risk: Risk, value: Tensor) -> bool:
    """True if a divisor is 0 in float32, or a value that may overflow does."""
    size = value.abs()
    return bool(((size < TINY) if risk.divides else (size > LARGEST)).any())


def any_shows(risks: Iterable[Risk], definition: Definition, point: HardPoint) -> bool:
    """True if one of the ``risks`` makes a result infinite or NaN at a point."""
    return any(_leaves_range(risk, value) for risk, value in _values(risks, definition, point))


def _may_leave(risk: Risk, values: Iterable[tuple[Tensor, bool]]) -> bool:
    """True if it is 0 somewhere in between, or grows."""
    known = torch.cat([value.flatten() for value, _ in values])
    if risk.divides:
        return bool((known > 0).any() and (known < 0).any())
    return bool((known.abs() > GROWN).any())


def _is_led_to_0(risk: Risk, definition: Definition, start: HardPoint, inputs: list[str]) -> bool:
    """True if descent along its slope brings a divisor near 0, as for ``(x - 3)**2``, which is
    never negative. A divisor without a slope may be anything.
    """
    here = {name: start.arguments[name].double() for name in inputs}
    size, slopes = _slopes(risk, definition, {**start.arguments, **here}, inputs)
    first, step = size, 1.0
    for _ in range(STEPS):
        steepest = max((float(s.abs().max()) for s in slopes), default=0.0)
        if not 0 < steepest < torch.inf:
            return True
        moves = [step / steepest * slope for slope in slopes]
        further = {n: here[n] - move for n, move in zip(inputs, moves, strict=True)}
        found, others = _slopes(risk, definition, {**start.arguments, **further}, inputs)
        if found < NEAR * first:
            return True
        if found < size:
            here, size, slopes, step = further, found, others, 2 * step
        else:
            step /= 2
    return False


def _slopes(
    risk: Risk, definition: Definition, arguments: Mapping[str, object], inputs: list[str]
) -> tuple[float, list[Tensor]]:
    """The entry of a divisor closest to 0, and its gradients."""
    leaves = {name: arguments[name].detach().requires_grad_() for name in inputs}
    with torch.enable_grad():
        ((_, value),) = _values([risk], definition, HardPoint("", {**arguments, **leaves}))
        least = value.abs().min()
        if not least.requires_grad:
            return float(least), []
        found = torch.autograd.grad(
            least, [*leaves.values()], materialize_grads=True, allow_unused=True
        )
    return float(least.detach()), [*found]


def _values(
    risks: Iterable[Risk], definition: Definition, point: HardPoint
) -> Iterator[tuple[Risk, Tensor]]:
    """Values of the risks at a point, as far as they can be computed on their own."""
    interpreter = Interpreter(definition, point.arguments)
    interpreter.run()
    for risk in risks:
        if {t.name for t in tensors_in(risk.expression)} <= {*interpreter.values}:
            yield risk, interpreter.value(risk.expression)
