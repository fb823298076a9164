"""Runs a module at hard points: confirms risks that the derivation names, and finds others."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import torch
from torch import Tensor

from codegen.targets.torch.hard_points import (
    HardPoint,
    any_shows,
    hard_points,
    mixed_points,
    refuted,
)
from codegen.targets.torch.measure import LARGEST, Found, Measure, is_finite
from derive.gradient.closing.risks import Risk


class AtHardPoints:
    """Findings of a ``measure`` at hard points."""

    def __init__(self, measure: Measure):
        self.measure, self.program = measure, measure.program
        self.definition, self.inputs = measure.definition, measure.inputs

    @cached_property
    def hard(self) -> list[tuple[HardPoint, Found | Exception]]:
        """Hard points, with the module's float32 results, or the error that it raises."""
        own = self.measure
        points = hard_points(self.definition, self.program, own.arguments, own.sizes)
        return [*map(self._tried, points)]

    def _tried(self, point: HardPoint) -> tuple[HardPoint, Found | Exception]:
        try:
            return point, self.measure.found(point.arguments, self.measure.ours, torch.float32)
        except (ArithmeticError, RuntimeError, ValueError) as error:
            return point, error

    @cached_property
    def refuted(self) -> frozenset[Risk]:
        """The program's risks that no point confirms."""
        risks = self.program.risks
        if not risks:
            return frozenset()
        arguments = self.measure.arguments
        first = self._tried(HardPoint("", arguments))
        others = map(self._tried, mixed_points(arguments, self.inputs))
        fails = [
            (point, not all(map(is_finite, found.values())))
            for point, found in (first, *self.hard, *others)
            if not isinstance(found, Exception)
        ]
        return frozenset(refuted(risks, self.definition, fails, self.inputs))

    def shown(self) -> Iterator[str]:
        """The program's warnings without those risks."""
        gone = {*map(str, self.refuted)}
        return (line for line in self.program.unsafe if line not in gone)

    def failures(self, known: frozenset[str]) -> Iterator[tuple[str, str]]:
        """Hard points at which the module is not finite although the mathematics is, line by line,
        or always; and the failure. Left out are large numbers if these are ``known`` to fail,
        failures that a risk covers, and results that are not finite around 1.
        """
        shown = [risk for risk in self.program.risks if risk not in self.refuted]
        told: set[tuple[str, float, str]] = set()  # of each input
        for point, found in self.hard:
            if point.is_far and not known.isdisjoint(point.of):
                continue
            if point.of and any_shows(shown, self.definition, point):
                continue
            what = self._failure(point, found)
            if what and not any((what, n, name) in told for n, name in point.covered):
                told |= {(what, point.number, name) for name in point.of}
                yield point.said, what

    def _failure(self, point: HardPoint, found: Found | Exception) -> str:
        """The failure in words, or empty."""
        if isinstance(found, Exception):
            return type(found).__name__.strip("_") if point.always else ""
        usual = (name for name, value in self.measure.usual.items() if is_finite(value))
        broken = [name for name in usual if not is_finite(found[name])]
        if not broken:
            return ""
        truth = self._truth(point)
        if point.always and not all(is_finite(truth[name]) for name in broken):
            return f"{', '.join(broken)} may be infinite or NaN"
        if not all((truth[name].abs() <= LARGEST).all() for name in self.program.outputs):
            return ""  # infinities are not compared
        wrong = [name for name in broken if _lacks_numbers(found[name], truth[name])]
        return f"float32: {', '.join(wrong)} may be infinite or NaN" if wrong else ""

    def _truth(self, point: HardPoint) -> Found:
        """The float64 results, line by line; the module's own where an exponential overflows."""
        own = self.measure.found(point.arguments, self.measure.ours, torch.float64)
        try:
            lines = self.measure.found(point.arguments, self.measure.statements, torch.float64)
        except ValueError:  # a number by which they divide is 0
            return own
        return {n: torch.where(v.isfinite(), v, own[n]) for n, v in lines.items()}


def _lacks_numbers(found: Tensor, truth: Tensor) -> bool:
    """True if an entry is infinite or NaN where float32 has a number."""
    return bool((~found.isfinite() & (truth.abs() <= LARGEST)).any())
