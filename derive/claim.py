"""A claim about a derivative, and the two derivations that decide it.

Let ``L`` be the sum over all entries of ``dk * k`` for every tensor ``k`` of an objective. A
`Claim` says that the derivative of ``L`` by its target is its expression. Which statements are
independent scalars for whatever reads them is part of it.

- *small batches* (``small_batch.py``): explicit scalars, SymPy's ``diff``, difference exactly zero;
- *every size* (``every_size.py``): SymPy's derivative of indexed sums with symbolic bounds.

Neither shares code with what makes the claims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sympy import Add, Expr

from derive.chain import adjoint_of
from derive.definition import Definition
from derive.every_size import IndexedForward, NotShown, vanishes
from derive.exact import ZeroTest
from derive.small_batch import SmallBatch, TotalDerivative, with_definitions
from derive.symbols import Axis, Tensor


@dataclass(frozen=True)
class Claim:
    """``expression`` is the derivative by ``target`` of the sum of ``dk * k`` over ``objective``.

    The target and the statements named in ``near`` and ``far`` are independent of each other.
    Where the difference does not vanish for all their values, what is near is replaced by its
    definition, one after the other, and then what is far.
    """

    definition: Definition
    target: Tensor
    expression: Expr
    objective: tuple[Tensor, ...]
    near: tuple[str, ...] = ()
    far: tuple[str, ...] = ()

    @property
    def free(self) -> frozenset[str]:
        return frozenset({self.target.name, *self.near, *self.far})


Batches = list[tuple[dict[Axis, int], ZeroTest]]


@dataclass(frozen=True)
class ProvedGradient:
    """What was proved of one gradient. ``sizes`` are the batches, each a size for every axis."""

    tensor: Tensor
    sizes: tuple[tuple[tuple[str, int], ...], ...]
    every_size: bool


def named_sizes(batches: Batches) -> tuple[tuple[tuple[str, int], ...], ...]:
    """The sizes of batches, with the names of the axes."""
    return tuple(tuple((a.name, int(n)) for a, n in sizes.items()) for sizes, _ in batches)


def holds_on(claim: Claim, sizes: Mapping[Axis, int], test: ZeroTest) -> bool:
    """The difference to SymPy's derivative is exactly zero in every entry, for a batch of these
    sizes: in one of each kind, and so in all that are renumberings of it.
    """
    batch = SmallBatch(claim.definition, sizes, claim.free)

    def unfold(e: Expr, name: str) -> Expr:
        entries = batch.entries(claim.definition.by_name[name].tensor)
        values = zip(entries.values(), batch.computed(name).values(), strict=True)
        return with_definitions(e, dict(values))

    objective = [
        batch.entries(adjoint_of(tensor))[i] * value
        for tensor in claim.objective
        for i, value in batch.computed(tensor.name).items()
    ]
    target = claim.target
    for i in batch.representatives(target.home, claim.expression):
        variable = batch.entries(target)[i]
        derivative = Add(*map(TotalDerivative(variable).of, objective))
        difference = derivative - batch.scalar(claim.expression, target.home, i)
        if not _vanishes_by_definition(difference, claim, unfold, test.is_zero):
            return False
    return True


def holds_for_every_size(claim: Claim) -> bool:
    """The same for sums with symbolic bounds; False also where that could not be shown."""
    try:
        return _is_derivative_of_indexed_sums(claim)
    except (NotShown, RecursionError):
        return False


def _is_derivative_of_indexed_sums(claim: Claim) -> bool:
    target = claim.target
    forward = IndexedForward(claim.definition, claim.free)
    at = {axis: forward.index(axis) for axis in target.home}
    derivative = []
    by_variable = TotalDerivative(forward.entry(target, at))
    for tensor in claim.objective:
        bound = {axis: forward.index(axis, "o") for axis in tensor.home}
        value = forward.entry(adjoint_of(tensor), bound) * forward.computed(tensor.name, bound)
        derivative.append(forward.total(by_variable.of(value), tensor.home, bound))
    difference = Add(*derivative) - forward.written(claim.expression, at)
    return _vanishes_by_definition(difference, claim, forward.unfolded, vanishes)


def _vanishes_by_definition(
    difference: Expr,
    claim: Claim,
    unfold: Callable[[Expr, str], Expr],
    is_zero: Callable[..., bool],
) -> bool:
    """Zero as it stands, or after what was taken as independent is replaced by its definition."""
    try:
        for names in (claim.near, claim.far):
            forms = [difference]
            if is_zero(difference, thorough=False):
                return True
            for name in names:
                difference = unfold(difference, name)
                if difference != forms[-1]:
                    forms.append(difference)
                    if is_zero(difference, thorough=False):
                        return True
            if any(map(is_zero, forms[::-1])):
                return True
    except (ZeroDivisionError, RecursionError, NotImplementedError):
        pass
    return False
