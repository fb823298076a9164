"""Explain why a claim is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sympy import Expr

from derive.claims.checking.explaining.edits import Edited, smallest_edit
from derive.claims.checking.explaining.neighbours import Neighbour, neighbour_of
from derive.claims.checking.explaining.terms import TermComparison
from derive.claims.checking.explaining.written import WrittenClaim
from derive.claims.checking.ground import EQUAL, Ground
from derive.claims.checking.numbers.arithmetic import Unevaluable
from derive.claims.checking.numbers.example import Counterexample
from derive.claims.checking.words.spoken import called, now_spoken
from derive.claims.reading import TextLine
from derive.language.symbols import Tensor, tensors_in

NOT_FOUND = (ArithmeticError, RecursionError, NotImplementedError, ValueError, Unevaluable)


@dataclass(frozen=True)
class WrongClaim:
    """A refuted claim. An explanation may be missing; that is not an error."""

    ground: Ground
    of: Tensor
    claimed: Expr
    lines: tuple[TextLine, ...] = ()
    last: TextLine | None = None

    def comparison(self) -> TermComparison | None:
        try:
            return self.ground.terms.compare(self.of, self.claimed)
        except NOT_FOUND:
            return None

    def edit(self) -> Edited | None:
        if self.last is None:
            return None
        written = WrittenClaim(self.claimed, self.lines, self.last)
        ground = self.ground
        try:
            return smallest_edit(ground.names, self.of, written, ground.original)
        except NOT_FOUND:
            return None

    def neighbour(self) -> Neighbour | None:
        ground = self.ground
        try:
            return neighbour_of(ground.original, self.of, self.claimed, ground.names.points)
        except NOT_FOUND:
            return None

    def hints(self) -> tuple[str, ...]:
        try:
            return tuple(self._hints())
        except NOT_FOUND:
            return ()

    def _hints(self) -> Iterator[str]:
        """Say if a wrong claim is the gradient of another tensor, or lacks an upstream gradient."""
        ground, upstreams = self.ground, self.ground.chain.upstreams
        is_read = any(t.role == "adjoint" for t in tensors_in(self.claimed)) or self.claimed == 0
        if not is_read and not any(t.name in now_spoken().ones for t in upstreams):
            names = " and ".join(called(t.name) for t in upstreams)
            words = f"s {names} are" if len(upstreams) > 1 else f" {names} is"
            yield f"the upstream gradient{words} missing"
        for other in ground.definition.differentiable:
            like = other.name != self.of.name and other.home == self.of.home
            if like and ground.difference(other, self.claimed) < EQUAL:
                yield f"it is d{other.name}, the gradient with respect to {other.name}"


@dataclass(frozen=True)
class WrongWhereConditionsChange(WrongClaim):
    """A claim that is right for random data, and wrong where a condition takes the other value."""

    def comparison(self) -> TermComparison | None:
        """None: no term is missing or wrong, only its conditions differ."""
        found = super().comparison()
        said = found and all(d.kind == "extra" for d in found.differences)
        return found if said else None

    def neighbour(self) -> None:
        return None

    def _hints(self) -> Iterator[str]:
        yield ("it is the gradient at random data, but not where a condition takes the other value")


@dataclass(frozen=True)
class WrongAtSizes:
    """A claim that is right for small batches, and wrong at the sizes of a counterexample."""

    counterexample: Counterexample

    def comparison(self) -> None:
        return None

    def edit(self) -> None:
        return None

    def neighbour(self) -> None:
        return None

    def hints(self) -> tuple[str, ...]:
        own = now_spoken().sizes(self.counterexample.point.sizes)
        sizes = ", ".join(f"{axis} = {n}" for axis, n in own.items())
        return (f"it is the gradient for sizes 2, 3 and 4, but not at {sizes}",)


@dataclass(frozen=True)
class ClaimByName:
    """A claim that torch would misalign, read with axes aligned by name."""

    ground: Ground
    of: Tensor
    claimed: Expr

    def comparison(self) -> None:
        return None

    def edit(self) -> None:
        return None

    def neighbour(self) -> None:
        return None

    def hints(self) -> tuple[str, ...]:
        try:
            right = self.ground.difference(self.of, self.claimed) < EQUAL
        except Unevaluable:
            return ()
        by_name = "it is right if dimensions are matched by axis name, as in gradform's notation"
        return (by_name,) if right else ()
