"""Claims about a forward, and the two ways in which each is decided.

A `Derivative` says what the derivative through one statement is; an `Equality` says that two
expressions have the same value. The statements of the forward are independent of each other in a
claim; where it does not hold for all their values, those that it needs are replaced by their
definitions.

- *small batches* (``small_batch.py``): explicit scalars, SymPy's ``diff``, difference exactly zero;
- *every size* (``every_size.py``): indexed sums with symbolic bounds, of which SymPy takes the
  derivative.

Neither shares code with what makes the claims.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sympy import Expr

from derive.gradient.chain.chain import adjoint_of
from derive.language.notation.definition import Definition
from derive.language.symbols import Axis, Tensor
from derive.proof.proving.contraction import vanishes
from derive.proof.proving.every_size import IndexedForward, NotShown
from derive.proof.proving.random_point import RandomPoints
from derive.proof.proving.small_batch import SmallBatch, TotalDerivative, with_definitions
from derive.proof.zero.exact import ZeroTest
from derive.proof.zero.fractions import TooLarge
from derive.proof.zero.indicator import Indicator
from derive.running.limits import look


@dataclass(frozen=True)
class Derivative:
    """``expression`` is the derivative by ``target`` of the sum of all ``ds * s``, for the tensor
    ``s`` of one statement.
    """

    definition: Definition
    target: Tensor
    expression: Expr
    of: Tensor

    def on(self, batch: SmallBatch) -> Iterator[Expr]:
        """Differences that must vanish, for one entry of each kind."""
        upstream = batch.entries(adjoint_of(self.of))
        objective = [upstream[i] * value for i, value in batch.computed(self.of.name).items()]
        for i in batch.representatives(self.target.home, self.expression):
            derivative = TotalDerivative(batch.entries(self.target)[i]).of_sum(objective)
            yield derivative - batch.scalar(self.expression, self.target.home, i)

    def indexed(self, forward: IndexedForward) -> Expr:
        """The difference in indexed sums."""
        at = {axis: forward.index(axis) for axis in self.target.home}
        bound = {axis: forward.index(axis, "o") for axis in self.of.home}
        value = forward.entry(adjoint_of(self.of), bound) * forward.computed(self.of.name, bound)
        derivative = TotalDerivative(forward.entry(self.target, at)).of(value)
        total = forward.total(derivative, self.of.home, bound)
        return total - forward.written(self.expression, at)


@dataclass(frozen=True)
class Equality:
    """``left`` and ``right`` have one value in every entry along ``home``."""

    definition: Definition
    home: tuple[Axis, ...]
    left: Expr
    right: Expr

    def on(self, batch: SmallBatch) -> Iterator[Expr]:
        """Differences that must vanish, for one entry of each kind."""
        for i in batch.representatives(self.home, self.left - self.right):
            yield batch.scalar(self.left, self.home, i) - batch.scalar(self.right, self.home, i)

    def indexed(self, forward: IndexedForward) -> Expr:
        """The difference in indexed sums."""
        at = {axis: forward.index(axis) for axis in self.home}
        return forward.written(self.left, at) - forward.written(self.right, at)


Claim = Derivative | Equality
NOT_DECIDED = (ZeroDivisionError, RecursionError, NotImplementedError, TooLarge)
POINTS = 6  # so that no sign or place that is drawn hides a difference
FEW = 2  # where it is found out which definitions may be needed: the proof decides


class Batch:
    """A forward of a size for every axis, on explicit scalars, of which those of its statements are
    independent until they are replaced by their definitions.
    """

    def __init__(self, definition: Definition, sizes: Mapping[Axis, int]):
        self.definition, self.sizes, self.test = definition, sizes, ZeroTest()
        self.scalars = SmallBatch(definition, sizes, frozenset(definition.by_name))
        self._definitions: dict[str, dict[Expr, Expr]] = {}
        self._points = RandomPoints(self.defining)

    @cached_property
    def named_sizes(self) -> tuple[tuple[str, int], ...]:
        """The sizes, with the names of the axes."""
        return tuple((axis.name, int(size)) for axis, size in self.sizes.items())

    @cached_property
    def statement_of(self) -> dict[Expr, str]:
        """The statement whose entry a scalar is."""
        statements = self.definition.statements
        return {e: s.name for s in statements for e in self.scalars.entries(s.tensor).values()}

    def definitions(self, name: str) -> dict[Expr, Expr]:
        """The definition of every entry of a statement."""
        if name not in self._definitions:
            entries = self.scalars.entries(self.definition.by_name[name].tensor).values()
            computed = self.scalars.computed(name).values()
            self._definitions[name] = dict(zip(entries, computed, strict=True))
        return self._definitions[name]

    def met(self, e: Expr, deep: int | None = None) -> list[str]:
        """Statements that ``e`` is made of, the latest first: all, or as far as ``deep`` nested
        definitions tell.
        """
        found, level = self._named_in([e]), 1
        new = found
        while new and level != deep:
            inside = [value for name in new for value in self.definitions(name).values()]
            new, level = self._named_in(inside) - found, level + 1
            found = found | new
        return self._latest_first(found)

    def _named_in(self, values: Iterable[Expr]) -> set[str]:
        """Statements whose entries are in ``values``, as written."""
        scalars: set[Expr] = set()
        pending = {*values}
        while pending:
            new = set().union(*(e.free_symbols for e in pending)) - scalars
            scalars |= new
            pending = {v for s in new if isinstance(s, Indicator) for v in s.values}
        return {self.statement_of[s] for s in scalars if s in self.statement_of}

    def unfolded(self, e: Expr, names: Collection[str]) -> Expr:
        """``e`` with these statements replaced by their definitions."""
        for name in self._latest_first(names):
            e = with_definitions(e, self.definitions(name))
        return e

    def may_vanish(self, e: Expr, names: Collection[str], points: int = POINTS) -> bool:
        """Whether ``e`` is zero at random numbers, with these statements computed."""
        return all(self._points.at(seed, names).may_vanish(e) for seed in range(points))

    def defining(self, names: Collection[str]) -> dict[Expr, Expr]:
        """Definitions of all entries of these statements."""
        return {s: value for name in names for s, value in self.definitions(name).items()}

    def _latest_first(self, names: Collection[str]) -> list[str]:
        return [s.name for s in reversed(self.definition.statements) if s.name in names]


@dataclass(frozen=True)
class ProvedGradient:
    """A gradient with its proof: ``sizes`` are the batches, each a size for every axis."""

    tensor: Tensor
    sizes: tuple[tuple[tuple[str, int], ...], ...]
    every_size: bool


class ShownClaims:
    """A proof on the small batches: ``claims``, each with the statements that it needed. Whether it
    holds for every size too is decided later, on the same ``grounds``.
    """

    def __init__(
        self,
        tensor: Tensor,
        claims: Sequence[tuple[Claim, Collection[str]]],
        grounds: Sequence[ShownClaims] = (),
    ):
        self.tensor, self.claims, self.grounds = tensor, claims, grounds
        self.every_size: bool | None = None  # not decided yet

    def decide(self) -> bool:
        """Decide whether it is proved for every size."""
        if self.every_size is None:
            self.every_size = all(holds_for_every_size(*claim) for claim in self.claims) and all(
                ground.decide() for ground in self.grounds
            )
        return self.every_size

    def on(self, batches: Sequence[Batch]) -> ProvedGradient:
        """The record, for these batches; an undecided gradient is not proved for every size."""
        sizes = tuple(batch.named_sizes for batch in batches)
        return ProvedGradient(self.tensor, sizes, bool(self.every_size))


def proved_on(
    claim: Claim, batch: Batch, most: int | None = None, needed: Collection[str] = ()
) -> set[str] | None:
    """The statements whose definitions the claim needs, where its difference is exactly zero in
    every entry for this batch: in one of each kind, and so in all that are renumberings of it.
    None where it is not shown to be, in at most so many products of terms for each if ``most`` is
    given. What it ``needed`` elsewhere is tried first.
    """
    needed = set(needed)
    batch.test.most = most
    for difference in claim.on(batch.scalars):
        look()
        found = _proved_with(difference, batch, needed)
        if found is None:
            return None
        needed.update(found)
    return needed


def needed_on(claim: Claim, batches: Sequence[Batch], most: int | None = None) -> set[str] | None:
    """The statements whose definitions the claim needs on any of the batches, where it is proved on
    all of them; else None.
    """
    needed: set[str] = set()
    for batch in batches:
        found = proved_on(claim, batch, most, needed)
        if found is None:
            return None
        needed |= found
    return needed


def may_hold(claim: Claim, batch: Batch) -> bool:
    """Whether the difference is zero at random numbers; if not, the claim is refuted."""
    return all(batch.may_vanish(e, batch.met(e)) for e in claim.on(batch.scalars))


def holds_for_every_size(claim: Claim, needed: Collection[str]) -> bool:
    """Whether the claim holds as sums with symbolic bounds, given the definitions that it
    ``needed``; False also where that could not be shown.
    """
    if isinstance(claim, Equality) and claim.left == claim.right:
        return True
    definition = claim.definition
    forward = IndexedForward(definition, frozenset(definition.by_name))
    try:
        difference = claim.indexed(forward)
        for statement in reversed(definition.statements):
            if statement.name in needed:
                difference = forward.unfolded(difference, statement.name)
        return vanishes(difference)
    except (NotShown, *NOT_DECIDED):
        return False


def _proved_with(e: Expr, batch: Batch, likely: Collection[str]) -> Collection[str] | None:
    """The fewest statements by whose definitions ``e`` is shown to be zero, or None; or those that
    are ``likely``, where they do.

    Which they might be is tried at random numbers. If they do not do, the others are added, one
    after the other, the latest first: a definition may tell a sign.
    """
    if e == 0:
        return []
    try:
        needed = _needed(e, batch, likely)
        if needed is None:
            return None
        while not batch.test.is_zero(batch.unfolded(e, needed)):
            more = next((name for name in batch.met(e) if name not in needed), None)
            if more is None:
                return None
            needed.append(more)
        return needed
    except NOT_DECIDED:
        return None


def _needed(e: Expr, batch: Batch, likely: Collection[str]) -> list[str] | None:
    """The fewest statements that have to be computed for ``e`` to be zero at random numbers, or
    those that are ``likely``; None where it is not even if all of them are.
    """
    if batch.may_vanish(e, ()):
        return []
    if likely and batch.may_vanish(e, likely, FEW):
        return [*likely]
    met, deep = batch.met(e, 1), 1
    while not batch.may_vanish(e, met):
        before, deep = met, 2 * deep
        met = batch.met(e, deep)
        if met == before:
            return None

    def do(names: Collection[str]) -> bool:
        return batch.may_vanish(e, names, FEW)

    needed = met[: bisect_left(range(len(met)), True, key=lambda n: do(met[:n]))]
    for name in needed[:-1]:
        rest = [other for other in needed if other != name]
        if do(rest):
            needed = rest
    return needed
