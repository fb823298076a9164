"""Where float32 ends for a module: at which magnitudes of its inputs a result is infinite,
NaN or inaccurate, although it is a float32 number.

``x**2/(1 + x**2)`` is 1 for large x, and NaN where the square overflows. The mathematics does not
say where: it depends on every line as it was printed. So the module is run in float32,
and beside it in double, in which squares and cubes of all float32 numbers are finite. What
rounding alone accounts for, as of a difference that cancels, is not meant, unless the statements,
line by line, are far better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from codegen.program import Program
from codegen.targets.torch.check import arguments_of, dims_tried
from codegen.targets.torch.loading import loaded
from codegen.targets.torch.several import joined
from derive.language.nodes import Sum
from derive.notation.definition import Definition

# Powers of ten that entries are multiplied by; the first that fails is looked for between them.
LARGE, SMALL = (4, 7, 10, 15, 20, 30, 37, 39), (-4, -7, -10, -15, -20, -30, -37)
LAST = 37  # here sums and differences are infinite: no more is asked of them than of the statements
NEIGHBOURS = 2.0**24  # from here on whole numbers have gaps
SPREAD = 256.0  # of entries around that: some of them are equal, the others a few gaps apart
FAR, BETTER = 1e-3, 100.0  # relative to the largest entry; that many times as exact as another
SPLITTING = 2.0**29 + 1  # leaves 24 of 53 binary digits (Dekker 1971, section 5)
LARGEST, SMALLEST = torch.finfo(torch.float32).max, 1e-37  # what is smaller may be rounded to 0
MOST = 0.9 * LARGEST  # that entries are multiplied by

SUMS = tuple(getattr(torch.ops.aten, name) for name in ("sum", "mm", "addmm", "bmm", "baddbmm"))

Found = dict[str, Tensor]
Arguments = Mapping[str, object]


@dataclass(frozen=True)
class Fault:
    """A result that is not what it should be; ``far``: it is a number all the same."""

    name: str
    far: bool


@dataclass(frozen=True)
class Edge:
    """Where numbers of the inputs ``names`` go too far: what comes out wrong ``beyond`` a power of
    ten, or below it.
    """

    names: tuple[str, ...]
    power: int
    faults: tuple[Fault, ...]


def extremes(text: str, definition: Definition, program: Program) -> tuple[str, ...]:
    """What goes wrong in float32 at large and small inputs, in words: one line or none."""
    module = loaded(text, program)
    for draw in (_signed, _positive):
        measure = _Measure(module, definition, program, draw)
        if measure.is_defined:
            return _in_words([*measure.edges()])
    return ()


class _Measure:
    """A module beside itself in float64, with inputs that ``draw`` gives."""

    def __init__(self, module: ModuleType, definition: Definition, program: Program, draw):
        self.module, self.program = module, program
        generator = torch.Generator().manual_seed(0)
        dims = next(dims_tried(definition))
        self.arguments = arguments_of(definition, program, draw, generator, dims)
        self.inputs = tuple(p.name for p in program.forward.parameters if p.role == "input")
        self.sums = any(s.expression.has(Sum) for s in definition.statements)

    @cached_property
    def is_defined(self) -> bool:
        found = self._found(self.arguments, self._ours, torch.float64)
        return all(bool(value.isfinite().any()) for value in found.values())

    def edges(self) -> Iterator[Edge]:
        """Of each input while the others are around 1; else of those together that are along the
        same axes: that a product of any two overflows need not be said.
        """
        alike: dict[frozenset, list[str]] = {}
        for p in self.program.forward.parameters:
            if p.name in self.inputs:
                alike.setdefault(frozenset(dim.axis for dim in p.layout), []).append(p.name)
        for powers in (LARGE, SMALL):
            for names in alike.values():
                alone = [self._edge((name,), powers) for name in names]
                if len(names) > 1 and not any(alone):
                    alone = [self._edge(tuple(names), powers)]
                yield from filter(None, alone)
        near = {n: NEIGHBOURS + (SPREAD * self.arguments[n]).round() for n in self.inputs}
        if faults := self._faults(self.arguments | near):
            yield Edge(self.inputs, 0, faults)

    def _edge(self, names: tuple[str, ...], powers: tuple[int, ...]) -> Edge | None:
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
        beyond = [p for p in powers if abs(p) > abs(power)]  # what is far off may be NaN later
        faults = (*faults, *(fault for p in beyond for fault in self._faults_at(names, p)))
        return Edge(names, good, faults)

    def _faults_at(self, names: tuple[str, ...], power: int) -> tuple[Fault, ...]:
        scale = min(10.0**power, MOST)
        scaled = {name: self.arguments[name] * scale for name in names}
        last = LAST if self.sums or len(names) > 1 else torch.inf
        return self._faults(self.arguments | scaled, power >= last)

    def _faults(self, arguments: Arguments, last: bool = False) -> tuple[Fault, ...]:
        rounded = _in(torch.float32, arguments)
        truth = self._found(rounded, self._ours, torch.float64)
        found = self._found(rounded, self._ours, torch.float32)
        outputs = {name: truth[name] for name in self.program.outputs}
        if not all((value.abs() <= LARGEST).all() for value in outputs.values()):
            truth = outputs  # of what is infinite no gradient is asked
        gaps = {name: _gap(found[name], value) for name, value in truth.items()}
        wrong = {name: gap for name, gap in gaps.items() if not gap <= FAR}
        if any(gap < torch.inf for gap in wrong.values()) or (wrong and last):
            lines = self._found(rounded, self._statements, torch.float32)
            others = {n: _gap(lines[n], truth[n]) for n in wrong}
            if not last:
                with Rounded():
                    without_ends = self._found(rounded, self._ours, torch.float64)
                gaps = {n: _gap(without_ends[n], truth[n]) for n in wrong}
                others = {n: min(other, gaps[n]) for n, other in others.items()}
            wrong = {n: gap for n, gap in wrong.items() if gap > BETTER * others[n]}
        return tuple(Fault(name, gap < torch.inf) for name, gap in wrong.items())

    def _found(self, arguments: Arguments, run: Callable, kind: torch.dtype) -> Found:
        """The outputs, and the gradients of the inputs."""
        leaves = _in(kind, arguments)
        inputs = {name: leaves[name].requires_grad_() for name in self.inputs}
        y = run(**leaves)
        outputs = (y,) if isinstance(y, Tensor) else y
        found = {n: o.detach() for n, o in zip(self.program.outputs, outputs, strict=True)}
        y = joined(y)
        if y.requires_grad:
            upstream = torch.linspace(0.5, 1, y.numel(), dtype=y.dtype).reshape(y.shape)
            gradients = torch.autograd.grad(y, [*inputs.values()], upstream, allow_unused=True)
            pairs = zip(inputs, gradients, strict=True)
            found |= {f"d{name}": g for name, g in pairs if g is not None}
        return {name: value.double() for name, value in found.items()}

    def _ours(self, **leaves: object) -> Tensor:
        return getattr(self.module, self.program.name)(**leaves)

    def _statements(self, **leaves: object) -> Tensor:
        atoms = getattr(self.module, self.program.atoms.name)(**leaves)
        found = [getattr(atoms, name) for name in self.program.outputs]
        return found[0] if len(found) == 1 else tuple(found)


class Rounded(TorchDispatchMode):
    """Rounds the result of every operation in float64 to the digits of single: what that
    would be without its ends.
    """

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled in it; to say otherwise imports the compiler, which takes seconds."""
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


def _signed(shape, *, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    signs = torch.rand(shape, generator=generator, dtype=dtype) - 0.5
    return _positive(shape, generator=generator, dtype=dtype).copysign(signs)


def _positive(shape, *, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """Numbers up to 1, none of them small."""
    return (torch.rand(shape, generator=generator, dtype=dtype) + 1) / 2


def _in(kind: torch.dtype, arguments: Arguments) -> dict[str, object]:
    return {
        name: value.detach().to(kind)
        if isinstance(value, Tensor) and value.is_floating_point()
        else value
        for name, value in arguments.items()
    }


def _gap(found: Tensor, truth: Tensor) -> float:
    """Relative to the largest entry; where the truth can be written down in float32."""
    there = truth.abs() <= LARGEST
    gaps = torch.where(there, found - truth, 0).abs()
    if not gaps.isfinite().all():
        return torch.inf
    scale = torch.where(there, truth, 0).abs().max().item()
    return gaps.max().item() / scale if scale > SMALLEST else 0.0


def _in_words(edges: list[Edge]) -> tuple[str, ...]:
    """One line for all that was found: beyond which numbers what may be wrong."""
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
