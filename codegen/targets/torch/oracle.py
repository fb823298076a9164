"""Autograd through the statements, and distances from it.

Autograd's own rounding (``last_place.py``) is determined only where it could matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import torch
from sympy import Piecewise
from torch import Tensor

from codegen.targets.torch.interpret import interpreted
from codegen.targets.torch.last_place import rounding_of
from codegen.targets.torch.place_by_place import StatementValues
from codegen.targets.torch.taken import taken
from derive.language.notation.definition import Definition
from derive.language.notation.layout import layouts_of
from derive.language.symbols import Axis

Dims = Mapping[Axis, tuple[int, ...]]  # the dimensions of every axis, by their lengths

# A difference above the first may be the rounding of a gradient that cancels, as 1 - tanh(9)**2
# does, and the rounding of autograd there is found out; where that is above the second, agreement
# says nothing. The next draw is asked in either case.
TRIFLE, MOST_ROUNDING = 1e-11, 1e-6
NOTHING = 1e-12  # a largest entry that is 0 up to rounding


@dataclass(frozen=True)
class Difference:
    """Distance of a tensor from the expected one, relative to the largest entry; how much of it may
    be autograd's rounding; whether the expected one is finite, or -oo as a masked score, and
    whether it is there at all or 0 up to rounding.
    """

    what: str
    distance: float
    rounding: float = 0.0
    finite: bool = True
    there: bool = True

    @property
    def decides(self) -> bool:
        """False where rounding accounts for it, but would for nearly anything."""
        return self.rounding <= MOST_ROUNDING or self.distance > self.rounding

    @property
    def counted(self) -> float:
        """The distance beyond rounding; all of it where rounding decides nothing."""
        return max(self.distance - self.rounding, 0.0) if self.decides else self.distance


class Oracle:
    """Autograd through the statements, at one point.

    Results are named: a statement by its own name, a gradient by the number of its upstream, "d"
    and a name, the output without optional arguments by "bare" and its own.
    """

    def __init__(
        self,
        definition: Definition,
        leaves: Mapping[str, object],
        required: Mapping[str, object],
        upstreams: tuple[Sequence[Tensor], ...],
        dims: Dims,
    ):
        self.definition, self.dims = definition, dims
        self.leaves, self.required, self.upstreams = leaves, required, upstreams
        self.written = self.found()
        self.expected = self.written | self._mended()

    def _mended(self) -> dict[str, Tensor]:
        """The gradients of inputs where autograd has no finite number, from the derivative where
        that is finite: 0 times the slope of a root in the branch that is not taken is 0.
        """
        inputs = {t.name for t in self.definition.wanted}
        of_inputs = {n: g for n, g in self.written.items() if n.partition(" d")[2] in inputs}
        missing = {n: ~g.isfinite() for n, g in of_inputs.items() if not g.isfinite().all()}
        if not missing or not any(s.expression.has(Piecewise) for s in self.definition.statements):
            return {}
        found = self.found(taken)
        return {n: torch.where(m, found[n], of_inputs[n]) for n, m in missing.items()}

    def found(self, run: Callable = interpreted) -> dict[str, Tensor]:
        values = self.values(self.leaves, run)
        names = [t.name for t in self.definition.results]
        outputs = [self.stored(name, values[name]) for name in names]
        found = {n: self.stored(n, value.detach()) for n, value in values.items()}
        if len(self.required) < len(self.leaves):
            bare = self.values(self.required)
            found |= {f"bare {n}": self.stored(n, bare[n].detach()) for n in names}
        passed = (t.name for t in self.definition.wanted if t.name in self.leaves)
        met = {name: self.leaves[name] for name in passed} | values.met
        for i, upstreams in enumerate(self.upstreams):
            for n, gradient in _gradients(outputs, met, upstreams).items():
                found[f"{i} d{n}"] = self.stored(n, gradient) if n in values else gradient
        return found

    def values(self, leaves: Mapping[str, object], run: Callable = interpreted) -> StatementValues:
        whole = {
            t.name: merged(leaves[t.name], t.home, self.dims)
            for t in self.definition.arguments
            if t.name in leaves
        }
        return run(self.definition, {**leaves, **whole})

    def stored(self, name: str, value: Tensor) -> Tensor:
        return stored(self.definition, name, value, self.dims)

    @cached_property
    def rounding(self) -> Mapping[str, float]:
        with torch.enable_grad():
            return rounding_of(self.found, self.expected)

    def difference(
        self, what: str, actual: Tensor, where_finite: bool = False, as_written: bool = False
    ) -> Difference:
        """Distance of ``actual``; ``where_finite``: only where the expected one is finite,
        ``as_written``: also where autograd has no finite number unless ``actual`` has none either.
        """
        expected = self.expected[what]
        if (where_finite or as_written) and actual.shape == expected.shape:
            there = expected.isfinite()
            if as_written:
                there = ~there | self.written[what].isfinite() | actual.isfinite()
            actual, expected = (torch.where(there, v, 0) for v in (actual, expected))
        found = difference_of(what, actual, expected)
        if not TRIFLE < found.distance < float("inf"):
            return found
        return replace(found, rounding=self.rounding[what] / _scale(expected))


def _gradients(
    outputs: Sequence[Tensor], met: Mapping[str, Tensor], upstreams: Sequence[Tensor]
) -> dict[str, Tensor]:
    """Autograd's gradients of the values ``met`` on the way to the outputs; zero for those that do
    not reach them.
    """
    met = {name: value for name, value in met.items() if value.requires_grad}
    found: tuple[Tensor | None, ...] = (None,) * len(met)
    given = [(o, u) for o, u in zip(outputs, upstreams, strict=True) if o.requires_grad]
    if given:
        outputs, upstreams = zip(*given, strict=True)
        found = torch.autograd.grad(
            outputs, list(met.values()), upstreams, allow_unused=True, retain_graph=True
        )
    return {
        name: torch.zeros_like(value) if gradient is None else gradient
        for (name, value), gradient in zip(met.items(), found, strict=True)
    }


def stored(definition: Definition, name: str, value: Tensor, dims: Dims) -> Tensor:
    """The oracle's value of a statement, in the dimensions that the code gives it."""
    home, layout = definition.by_name[name].tensor.home, layouts_of(definition)[name]
    value = value.permute([home.index(dim.axis) for dim in layout if not dim.one])
    sizes = ((1 if dim.one else size) for dim in layout for size in dims[dim.axis])
    return value.reshape(tuple(sizes))


def merged(tensor: Tensor, axes: Iterable[Axis], dims: Dims) -> Tensor:
    """``tensor`` with one dimension for each of its axes, as in the oracle."""
    return tensor.reshape([prod(dims[axis]) for axis in axes])


def difference_of(what: str, actual: Tensor, expected: Tensor) -> Difference:
    if actual.shape != expected.shape:
        return Difference(what, float("inf"))
    if not expected.numel():
        return Difference(what, 0.0)
    if not (expected.isfinite() | (expected == -torch.inf)).all():
        return Difference(what, float("inf"), finite=False)
    gap = torch.where(actual == expected, 0, actual - expected).abs().max().item()
    distance = gap / _scale(expected) if gap == gap else float("inf")
    return Difference(what, distance, there=_largest(expected) > NOTHING)


def _scale(expected: Tensor) -> float:
    """The scale of a difference: the largest entry, unless that is 0."""
    largest = _largest(expected)
    return largest if largest > NOTHING else 1.0


def _largest(expected: Tensor) -> float:
    return expected.abs().nan_to_num(posinf=0).max().item()
