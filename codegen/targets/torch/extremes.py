"""Float32 limits of a function: the magnitudes of its inputs at which a result is infinite, NaN or
inaccurate, although it is a float32 number.

``x**2/(1 + x**2)`` is 1 for large x, and NaN where the square overflows. The mathematics does not
say where: it depends on every line as it was printed. So the module is run in float32, and beside
it in float64, in which squares and cubes of all float32 numbers are finite. Rounding alone, as in a
difference that cancels, does not count, unless the statements, line by line, are far better.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from codegen.program import Program
from codegen.targets.torch.failing import AtHardPoints
from codegen.targets.torch.hard_points import in_words
from codegen.targets.torch.measure import (
    LARGEST,
    Arguments,
    Measure,
    Run,
    in_dtype,
    positive,
    signed,
)
from derive.language.nodes import Sum
from derive.language.notation.definition import Definition

# Powers of ten that entries are multiplied by; the first that fails is looked for between them.
LARGE, SMALL = (4, 7, 10, 15, 20, 30, 37, 39), (-4, -7, -10, -15, -20, -30, -37)
LAST = 37  # here sums and differences are infinite: no more is asked of them than of the statements
NEIGHBOURS = 2.0**24  # from here on whole numbers have gaps
SPREAD = 256.0  # of entries around that: some of them are equal, the others a few gaps apart
FAR, BETTER = 1e-3, 100.0  # relative to the largest entry; that many times as exact as another
SPLITTING = 2.0**29 + 1  # leaves 24 of 53 binary digits (Dekker 1971, section 5)
SMALLEST = 1e-37  # smaller numbers may be rounded to 0
MOST = 0.9 * LARGEST  # that entries are multiplied by

SUMS = tuple(getattr(torch.ops.aten, name) for name in ("sum", "mm", "addmm", "bmm", "baddbmm"))


@dataclass(frozen=True)
class Fault:
    """A wrong result; ``far``: it is finite all the same."""

    name: str
    far: bool


@dataclass(frozen=True)
class RangeEdge:
    """The magnitude of the inputs ``names`` from which results are wrong: ``beyond`` a power of
    ten, or below it.
    """

    names: tuple[str, ...]
    power: int
    faults: tuple[Fault, ...]


def extremes(
    function: Run, statements: Run, definition: Definition, program: Program
) -> tuple[str, ...]:
    """Unsafe cases of a ``function``, compared line by line with its ``statements``, in words: the
    program's own warnings that trials confirm, and problems in float32 at large and small inputs,
    and at hard points.
    """
    run = function, statements, definition, program
    measures = [_Edges(*run, draw) for draw in (signed, positive)]
    measure = next((m for m in measures if m.is_defined), None)
    if measure is None:
        return program.unsafe
    edges = [*measure.edges()]
    known = frozenset(name for edge in edges if edge.power > 0 for name in edge.names)
    at_hard_points = AtHardPoints(next((m for m in measures if m.is_whole), measure))
    failures = in_words(at_hard_points.failures(known))
    return (*at_hard_points.shown(), *_in_words(edges), *failures)


class _Edges(Measure):
    """Finds magnitudes of inputs at which a module goes wrong."""

    def edges(self) -> Iterator[RangeEdge]:
        """Edges of each input while the others are around 1; else, or where that is at the end of
        float32, of those together that are along the same axes: an overflowing product of any two
        need not be reported. Else of all: their product may be a logit.
        """
        alike: dict[frozenset, list[str]] = {}
        for p in self.program.forward.parameters:
            if p.name in self.inputs:
                alike.setdefault(frozenset(dim.axis for dim in p.layout), []).append(p.name)
        for powers in (LARGE, SMALL):
            found = []
            for names in alike.values():
                alone = [self._edge((name,), powers) for name in names]
                if len(names) > 1 and all(e is None or abs(e.power) >= LAST for e in alone):
                    together = self._edge(tuple(names), powers)
                    if together is not None and abs(together.power) < LAST:
                        alone = [together] if all(alone) else [*alone, together]
                found += filter(None, alone)
            if powers is LARGE and len(alike) > 1 and not found:
                found += filter(self._is_bounded, [self._edge(self.inputs, powers)])
            yield from found
        near = {n: NEIGHBOURS + (SPREAD * self.arguments[n]).round() for n in self.inputs}
        if faults := self._faults(self.arguments | near):
            yield RangeEdge(self.inputs, 0, faults)

    def _is_bounded(self, edge: RangeEdge | None) -> bool:
        """True if the outputs just beyond the edge, if any, fit float32."""
        if edge is None:
            return False
        scaled = {name: self.arguments[name] * 10.0 ** (edge.power + 1) for name in edge.names}
        truth = self.found(self.arguments | scaled, self.ours, torch.float64)
        return all(bool((truth[n].abs() <= LARGEST).all()) for n in self.program.outputs)

    def _edge(self, names: tuple[str, ...], powers: tuple[int, ...]) -> RangeEdge | None:
        """The last power of ten before the first that fails."""
        good, step = 0, 1 if powers[0] > 0 else -1
        for power in powers:
            faults = self._faults_at(names, power)
            if faults:
                break
            good = power
        else:
            return None
        bad = power
        while abs(bad - good) > 1:
            middle = good + step * (abs(bad - good) // 2)
            found = self._faults_at(names, middle)
            if found:
                bad, faults = middle, (*found, *faults)
            else:
                good = middle
        beyond = [p for p in powers if abs(p) > abs(power)]  # large errors may become NaN later
        faults = (*faults, *(fault for p in beyond for fault in self._faults_at(names, p)))
        return RangeEdge(names, good, faults)

    def _faults_at(self, names: tuple[str, ...], power: int) -> tuple[Fault, ...]:
        scale = min(10.0**power, MOST)
        scaled = {name: self.arguments[name] * scale for name in names}
        sums = any(s.expression.has(Sum) for s in self.definition.statements)
        last = LAST if sums or len(names) > 1 else torch.inf
        return self._faults(self.arguments | scaled, power >= last)

    def _faults(self, arguments: Arguments, last: bool = False) -> tuple[Fault, ...]:
        rounded = in_dtype(torch.float32, arguments)
        truth = self.found(rounded, self.ours, torch.float64)
        found = self.found(rounded, self.ours, torch.float32)
        outputs = {name: truth[name] for name in self.program.outputs}
        if not all((value.abs() <= LARGEST).all() for value in outputs.values()):
            truth = outputs  # no gradients of infinities
        gaps = {name: _gap(found[name], value) for name, value in truth.items()}
        wrong = {name: gap for name, gap in gaps.items() if not gap <= FAR}
        if any(gap < torch.inf for gap in wrong.values()) or (wrong and last):
            lines = self.found(rounded, self.statements, torch.float32)
            others = {n: _gap(lines[n], truth[n]) for n in wrong}
            if not last:
                with SinglePrecision():
                    without_ends = self.found(rounded, self.ours, torch.float64)
                gaps = {n: _gap(without_ends[n], truth[n]) for n in wrong}
                others = {n: min(other, gaps[n]) for n, other in others.items()}
            wrong = {n: gap for n, gap in wrong.items() if gap > BETTER * others[n]}
        return tuple(Fault(name, gap < torch.inf) for name, gap in wrong.items())


class SinglePrecision(TorchDispatchMode):
    """Rounds the result of every operation in float64 to the digits of float32: float32 without its
    limits.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled in this mode; to say otherwise imports the compiler, in seconds."""
        return False

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **kwargs or {})
        if not isinstance(result, Tensor) or not result.is_floating_point():
            return result
        if torch.Tag.pointwise not in operation.tags and operation.overloadpacket not in SUMS:
            return result
        larger = result * SPLITTING
        rounded = larger - (larger - result)
        return torch.where(rounded.isfinite(), rounded, result)


def _gap(found: Tensor, truth: Tensor) -> float:
    """The largest difference relative to the largest entry, where the truth fits float32."""
    there = truth.abs() <= LARGEST
    gaps = torch.where(there, found - truth, 0).abs()
    if not gaps.isfinite().all():
        return torch.inf
    scale = torch.where(there, truth, 0).abs().max().item()
    return gaps.max().item() / scale if scale > SMALLEST else 0.0


def _in_words(edges: list[RangeEdge]) -> tuple[str, ...]:
    """One line for all findings: the numbers beyond which results may be wrong."""
    if not edges:
        return ()
    sides: dict[str, list[str]] = {}
    for edge in edges:
        sides.setdefault(_numbers(edge.power), []).extend(edge.names)
    where = " or ".join(
        f"{', '.join(dict.fromkeys(names))} {numbers}" for numbers, names in sides.items()
    )
    faults = [fault for edge in edges for fault in edge.faults]
    results = ", ".join(dict.fromkeys(fault.name for fault in faults))
    wrong = "inaccurate" if all(fault.far for fault in faults) else "infinite or NaN"
    if len({fault.far for fault in faults}) > 1:
        wrong = "infinite, NaN or inaccurate"
    return (f"float32: {results} may be {wrong} for {where}",)


def _numbers(power: int) -> str:
    if power == 0:
        return f"around {NEIGHBOURS:.0e}".replace("e+0", "e")
    return f"beyond 1e{power}" if power > 0 else f"below 1e{power}"
