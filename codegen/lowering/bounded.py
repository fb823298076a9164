"""Clamps arguments in branches that are not taken, so that functions of them are finite.

Autograd multiplies gradients through such a branch by 0: that is NaN where a derivative is infinite
there, in every order. ``where(x > 0, log(where(x > 0, x, 1)), 0)`` has the same value, and its
derivatives are finite wherever the mathematics is. A named value that is read in such branches
alone is in these itself. Held are values that the choice may be made for: those made of the same
inputs as the condition, and inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from fractions import Fraction

from codegen.lowering.frames import broadcast
from codegen.lowering.paths import Path, in_any, left_out, with_test
from codegen.program import NUMBERS, Function
from codegen.program.parts import is_number, operands, values_in, with_replaced
from codegen.program.steps import Assign, Step
from codegen.program.values import (
    Apply,
    Choose,
    Clamp,
    Combine,
    Gate,
    Load,
    MulAdd,
    Number,
    Plus,
    Power,
    Times,
    Value,
)
from codegen.targets.functions import IN_TARGETS
from derive.language.functions import TABLE

# Where each function and its derivatives are finite, of those that are not everywhere.
SAFE = {row.name: row.safe_at for row in TABLE if row.safe_at is not None}
SAFE |= {name: row.safe_at for name, row in IN_TARGETS.items() if row.safe_at is not None}
GROWING = ("exp", "expm1")  # which overflow above alone
ENTRYWISE = (Plus, Times, MulAdd, Power, Apply, Choose, Clamp, Gate, Load, Number)

MOST_NAMES = 20  # of a condition that is written out


def with_bounded_arguments(
    function: Function,
    saved: Mapping[str, frozenset[str]] | None = None,
    choice: type[Choose] = Choose,
) -> Function:
    """``function`` for autograd to differentiate line by line; ``saved`` values, made of other
    names, may be infinite or NaN where they are not read. A ``choice`` holds the arguments.
    """
    return _Bounded(function, saved or {}, choice).function


class Origins:
    """Origins of values: the names of a function's arguments that each depends on, and their own
    origins in turn.
    """

    def __init__(self, function: Function, given: Mapping[str, frozenset[str]]):
        labels = (p.name for p in function.parameters if p.role in ("label", "kept"))
        self.found = {**given, **dict.fromkeys(labels, frozenset())}  # by which no number is finite

    def note(self, step: Step) -> None:
        if isinstance(step, Assign):
            self.found[step.name] = self.of(step.value)

    def of(self, value: Value) -> frozenset[str]:
        names = names_in(value)
        return frozenset().union(*(self.found.get(name, frozenset([name])) for name in names))


class _Bounded:
    """Walks the steps backwards, so that all reads of a value are known before it is met."""

    def __init__(
        self, function: Function, saved: Mapping[str, frozenset[str]], choice: type[Choose]
    ):
        self.choice = choice
        self.origins = Origins(function, saved)
        for step in function.steps:
            self.origins.note(step)
        self.inputs = {p.name for p in function.parameters if p.role == "input"}
        self.numbers = {p.name for p in function.parameters if p.role in NUMBERS}
        self.saved, self.results = saved, {*function.results}
        self.reads: dict[str, list[Path]] = {}
        self.known = {p.name for p in function.parameters}
        self.places = {step.name: i for i, step in enumerate(function.steps)}
        self.made = {s.name: s.value for s in function.steps if isinstance(s, Assign)}
        steps, names = [], [step.name for step in function.steps]
        self.again = {name for name in names if names.count(name) > 1}
        for step in reversed(function.steps):
            if isinstance(step, Assign):
                path = self._path_of(step)
                if path and step.name in self.results:
                    own, held = self._free(f"{step.name}_held"), self._held(step.value, path)
                    if held != self._held(step.value, ()):  # as a result it is unchanged
                        steps = [_reading(each, step.name, own) for each in steps]
                        steps.append(replace(step, name=own, value=held))
                    path = ()
                self._read(step.value, path)
                step = replace(step, value=self._held(step.value, path))
            else:
                for value in values_in(step):
                    self._read(value, ())
            steps.append(step)
        self.function = replace(function, steps=tuple(reversed(steps)))

    def _free(self, name: str) -> str:
        while name in self.known or name in self.places:
            name += "_"
        return name

    def _path_of(self, step: Assign) -> Path:
        """Path of the branches in which alone a step is read, with tests known before it."""
        paths = [*dict.fromkeys(self.reads.get(step.name, [()]))]
        if step.name in self.again or not all(paths):
            return ()
        before = self.known | {n for n, i in self.places.items() if i < self.places[step.name]}
        paths = [tuple((self._in_full(t, before), holds) for t, holds in path) for path in paths]
        path = in_any(paths)
        fits = all(
            names_in(test) <= before
            and broadcast([test.dims, step.value.dims]) == broadcast([step.value.dims])
            for test, _ in path
        )
        return path if fits else ()

    def _in_full(self, test: Value, before: set[str]) -> Value:
        """A condition with names of values computed later replaced by their values."""
        later = {n: v for n, v in self.made.items() if n not in before and n not in self.again}
        while (names := names_in(test) & {*later}) and len(names_in(test)) < MOST_NAMES:
            test = with_replaced(
                test,
                lambda v: later[v.name] if isinstance(v, Load) and v.name in names else None,
            )
        return test

    def _read(self, value: Value, path: Path) -> None:
        """Note where each name in ``value`` is read."""
        if isinstance(value, Load):
            self.reads.setdefault(value.name, []).append(path)
        for part, own in self._parts(value, path):
            self._read(part, own)

    def _parts(self, value: Value, path: Path) -> list[tuple[Value, Path]]:
        """Operands of a value, each with the conditions under which it counts."""
        match value:
            case Choose(condition=test, yes=yes, no=no) if not is_number(test, self.numbers):
                return [
                    (test, ()),
                    (yes, with_test(path, test, True)),
                    (no, with_test(path, test, False)),
                ]
            case Gate(value=kept, measure=measure, threshold=threshold):
                test = left_out(measure, threshold)
                return [(measure, ()), (threshold, ()), (kept, with_test(path, test, False))]
        inside = path if isinstance(value, ENTRYWISE) else ()  # along other dimensions, as far as
        return [(part, inside) for part in operands(value)]  # is known here

    def _held(self, value: Value, path: Path) -> Value:
        """``value`` with the arguments in it held under the conditions of the ``path``."""
        match value:
            case Load(name=name) if path and name in self.saved:
                return self._where(path, value, 1)
            case Choose(yes=Number(), no=Load()) | Choose(yes=Load(), no=Number()):
                return value
        parts = {id(part): own for part, own in self._parts(value, path)}

        def change(each):
            if isinstance(each, tuple):
                return tuple(map(change, each))
            return self._held(each, parts[id(each)]) if id(each) in parts else each

        found = {f.name: change(getattr(value, f.name)) for f in fields(value)}
        if any(found[f.name] is not getattr(value, f.name) for f in fields(value)):
            value = _made_of(value, **found)
        return self._singular(value, path) if path else value

    def _singular(self, value: Value, path: Path) -> Value:
        match value:
            case Apply(function=name, operand=u) if name in SAFE and self._moves(u):
                if not (name == "log" and is_positive(u)) and not (name in GROWING and _low(u)):
                    return _made_of(value, operand=self._where(path, u, SAFE[name]))
            case Power(base=u, exponent=n) if not is_whole(n) and self._moves(u):
                if not is_positive(u):
                    return _made_of(value, base=self._where(path, u, 1))
            case Times(factors=factors):
                held = tuple(
                    (self._where(path, f, 1), True)
                    if divides and self._moves(f) and not is_positive(f)
                    else (f, divides)
                    for f, divides in factors
                )
                return _made_of(value, factors=held) if held != factors else value
        return value

    def _where(self, path: Path, u: Value, safe: int) -> Value:
        other, names = Number(Fraction(safe)), self.origins.of(u)
        inner = u.base if isinstance(u, Power) else u
        if u == other or (_is_held(inner) and other in (inner.yes, inner.no)):
            return u
        for test, holds in reversed(path):
            if names & self.origins.of(test) or names_in(u) <= self.inputs:
                yes, no = (u, other) if holds else (other, u)
                u = self.choice(test, yes, no, dims=broadcast([test.dims, u.dims]))
        return u

    def _moves(self, u: Value) -> bool:
        return not is_number(u, self.numbers)


def _made_of(value: Value, /, **parts) -> Value:
    """``value`` with other parts: conditions may lie along more dimensions than what they hold."""
    value = replace(value, **parts)
    if not isinstance(value, ENTRYWISE):
        return value
    return replace(value, dims=broadcast([value.dims, *(part.dims for part in operands(value))]))


def _reading(step: Step, name: str, other: str) -> Step:
    """``step`` which reads the ``other`` value."""
    return with_replaced(
        step, lambda v: replace(v, name=other) if isinstance(v, Load) and v.name == name else None
    )


def _is_held(u: Value) -> bool:
    """True if it is a choice, but no exception for one number (``powers.py``)."""
    if type(u) is not Choose:
        return isinstance(u, Choose)  # of the kind that was asked for
    return getattr(u.condition, "relation", "") != "=="


def names_in(value: Value) -> set[str]:
    return {v.name for v in (value, *values_in(value)) if isinstance(v, Load)}


def is_whole(exponent: Value) -> bool:
    return isinstance(exponent, Number) and exponent.value >= 0 and exponent.value.denominator == 1


def is_positive(u: Value, strictly: bool = True) -> bool:
    """True if its form shows that it is above 0; at least 0 if not ``strictly``."""
    match u:
        case Number(value=n):
            return n > 0 or (n == 0 and not strictly)
        case Apply(function="exp" | "cosh"):
            return True
        case Apply(function="Abs"):
            return not strictly
        case Power(exponent=Number(value=n)) if n.denominator == 1 and n % 2 == 0:
            return not strictly
        case Power(base=base):
            return is_positive(base, strictly)
        case Clamp(low=low) if low is not None:
            return is_positive(low, strictly)
        case Plus(terms=terms):
            known = all(is_positive(t, False) and not minus for t, minus in terms)
            return known and (not strictly or any(is_positive(t) for t, _ in terms))
        case Times(factors=factors):
            return all(is_positive(f, strictly or divides) for f, divides in factors)
    return False


def _low(u: Value) -> bool:
    """True if its form shows that it is bounded above."""
    match u:
        case Clamp(high=high):
            return high is not None
        case Times(factors=((Number(value=n), False), *rest)) if n < 0:
            return all(is_positive(f, divides) for f, divides in rest)
        case Plus(terms=((first, True),)):
            return is_positive(first, False)
        case Combine():
            return False
    return False
