"""Compare a claimed gradient with the gradient, entry by entry, at a point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sympy import Expr

from derive.claims.checking.numbers.arithmetic import CONTEXT, Arithmetic, Floating, Unevaluable
from derive.claims.checking.numbers.evaluation import Evaluation, Point
from derive.claims.checking.numbers.exact_numbers import Exact
from derive.claims.checking.numbers.points import RANGES, RandomData, generic_point
from derive.claims.checking.numbers.residues import Residues
from derive.claims.checking.numbers.tables import UNDEFINED, Index
from derive.gradient.chain.chain import Chain, adjoint_of
from derive.language.symbols import Tensor, tensors_in

MOST_OPERATIONS = 10**6  # of one comparison, so that it terminates

VISIBLE = CONTEXT.mpf(10) ** -40  # relative to the largest entry, well above rounding
NEGLIGIBLE = CONTEXT.mpf(10) ** -15  # a residue of cancelling terms is measured relative to them


@dataclass(frozen=True)
class Comparison:
    """The gradient and the claim at a point, entry by entry."""

    arithmetic: Arithmetic
    expected: Mapping[Index, object]
    got: Mapping[Index, object]
    at_kink: bool
    operations: int
    scale: object = 1  # the largest intermediate number; used by fifty digits only

    @property
    def is_defined(self) -> bool:
        return all(value is not UNDEFINED for value in self.expected.values())

    @property
    def undefined(self) -> list[Index]:
        """Indices at which the claim is undefined."""
        return [i for i, value in self.got.items() if value is UNDEFINED]

    @property
    def largest_difference(self):
        """The largest difference relative to the largest entry; for fifty digits only."""
        differences = [abs(self.expected[i] - self.got[i]) for i in self.expected]
        return max(differences, default=0) / self._largest_entry

    @property
    def different(self) -> list[Index]:
        """The entries that differ."""
        if isinstance(self.arithmetic, Exact):
            return [i for i, a, b in self._pairs if self.arithmetic.compare(a, b)]
        if isinstance(self.arithmetic, Residues):
            return [i for i, a, b in self._pairs if a != b]
        visible = VISIBLE * self._largest_entry
        return [i for i, a, b in self._pairs if abs(a - b) > visible]

    @property
    def is_visibly_different(self) -> bool:
        """Whether differing residues belong to different real numbers."""
        pairs = [(a.real, b.real) for _, a, b in self._pairs]
        entries = [abs(number) for pair in pairs for number in pair]
        visible = VISIBLE * max([*entries, NEGLIGIBLE * self.scale])
        return any(abs(a - b) > visible for a, b in pairs)

    @property
    def _pairs(self) -> list[tuple[Index, object, object]]:
        """The entries for which both have a value."""
        return [(i, self.expected[i], got) for i, got in self.got.items() if got is not UNDEFINED]

    @property
    def _largest_entry(self):
        """The largest entry; if all are rounding errors, a small fraction of the
        cancelled terms.
        """
        entries = [v for v in (*self.expected.values(), *self.got.values()) if v is not UNDEFINED]
        return max([abs(v) for v in entries] + [NEGLIGIBLE * self.scale])


@dataclass(frozen=True)
class GradientQuestion:
    """Is ``claimed`` the gradient of ``of``?"""

    chain: Chain
    of: Tensor
    claimed: Expr
    usual: dict = field(default_factory=dict, compare=False, repr=False)  # `_usual_ties` by sizes

    def compared(
        self,
        point: Point,
        arithmetic: Arithmetic,
        limit: int = MOST_OPERATIONS,
        of_claim: Arithmetic | None = None,
    ) -> Comparison:
        """Both sides at a point; the claim may use a separate arithmetic.

        Kinks are determined by the gradient: a claim that is different for x = 17 is wrong there,
        unless the gradient has a kink at 17. Raises `Unevaluable`.
        """
        evaluation = Evaluation(self.chain, point, arithmetic, limit)
        home = self.of.home
        expected = evaluation.entries_or_undefined(adjoint_of(self.of), home)
        at_kink = evaluation.at_kink or evaluation.ties > self._usual_ties(point, evaluation.ties)
        claim = evaluation
        if of_claim is not None:
            claim = Evaluation(self.chain, point, of_claim, limit)
        got = claim.entries_or_undefined(self.claimed, home)
        operations = evaluation.operations + (claim.operations if claim is not evaluation else 0)
        scale = 1 if isinstance(arithmetic, Exact) else evaluation.largest
        found = Comparison(of_claim or arithmetic, expected, got, at_kink, operations, scale)
        if isinstance(arithmetic, Floating) and scale * VISIBLE > 1 and of_claim is None:
            return self._with_more_digits(found, point, limit)
        return found

    def _with_more_digits(self, found: Comparison, point: Point, limit: int) -> Comparison:
        """The same with more digits: if huge exponentials occur, their size does not bound the
        rounding error, but twice the digits must reproduce all entries.
        """
        with CONTEXT.workdps(2 * CONTEXT.dps):
            evaluation = Evaluation(self.chain, point, found.arithmetic, limit)
            home, pairs = self.of.home, []
            for e, before in ((adjoint_of(self.of), found.expected), (self.claimed, found.got)):
                again = evaluation.entries_or_undefined(e, home)
                pairs += [(before[i], value) for i, value in again.items()]
        numbers = [(a, b) for a, b in pairs if UNDEFINED not in (a, b)]
        largest = max((abs(b) for _, b in numbers), default=0)
        if any(abs(a - b) > VISIBLE * largest for a, b in numbers):
            return found
        return replace(found, scale=1, operations=found.operations + evaluation.operations)

    def _usual_ties(self, point: Point, ties: int) -> int:
        """The number of ties in the gradient's conditions at random data of the same sizes; 0
        without ``ties``.
        """
        if ties and point.sizes not in self.usual:
            definition, chosen = self.chain.definition, dict(point.sizes)
            sizes = {a: chosen[a.name] for a in definition.independent_axes}
            found = [0]
            for kind in range(len(RANGES)):
                drawn = generic_point(definition, sizes, {}, RandomData(0, kind))
                evaluation = Evaluation(self.chain, drawn, Floating(), MOST_OPERATIONS)
                with suppress(Unevaluable):
                    evaluation.entries_or_undefined(adjoint_of(self.of), self.of.home)
                    found.append(evaluation.ties)
            self.usual[point.sizes] = max(found)
        return self.usual.get(point.sizes, 0) if ties else 0

    def statements(self) -> list[Tensor]:
        """The statements that gradient and claim depend on, in order."""
        read = self.read_by([adjoint_of(self.of), self.claimed])
        return [s.tensor for s in self.chain.definition.statements if s.tensor in read]

    def formulas(self) -> list[Expr]:
        """The claim, and all formulas that it and the gradient depend on."""
        read = self.read_by([adjoint_of(self.of), self.claimed])
        named = [(s.tensor, s.expression) for s in self.chain.definition.statements]
        named += [(a.tensor, a.expression) for a in self.chain.adjoints]
        return [self.claimed, *(e for t, e in named if t in read)]

    def read_by(self, formulas: Iterable[Expr]) -> set[Tensor]:
        """The tensors that ``formulas`` depend on, directly or not."""
        definition = self.chain.definition
        read, unread = set(), {t.at_home for e in formulas for t in tensors_in(e)}
        while unread:
            t = unread.pop()
            read.add(t)
            known = self.chain.by_name if t.role == "adjoint" else definition.by_name
            if t.name in known:
                unread |= {s.at_home for s in tensors_in(known[t.name].expression)} - read
        return read


def largest_difference(chain: Chain, of: Tensor, claimed: Expr, points: Sequence[Point]) -> float:
    """The largest difference between claim and gradient, relative to the largest entry.

    Points where either is undefined are skipped. Raises `Unevaluable` if no point is left.
    """
    return difference_at([Evaluation(chain, p, Floating()) for p in points], of, claimed)


def difference_at(evaluations: Sequence[Evaluation], of: Tensor, claimed: Expr) -> float:
    """`largest_difference` for an evaluated forward, shared by many claims."""
    differences, why = [], "there is no real number"
    for evaluation in evaluations:
        try:
            expected = evaluation.entries_or_undefined(adjoint_of(of), of.home)
            got = evaluation.entries_or_undefined(claimed, of.home)
        except Unevaluable as error:
            why = str(error)
            continue
        found = Comparison(evaluation.arithmetic, expected, got, False, 0, evaluation.largest)
        if found.is_defined and not found.undefined:
            differences.append(found.largest_difference)
    if not differences:
        raise Unevaluable(f"the claim cannot be evaluated at any point: {why}")
    return float(max(differences))
