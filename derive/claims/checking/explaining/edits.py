"""The smallest edit that makes a wrong claim right, and its description.

In: a claim as written, line by line. Out: an `Edited`: a value in one line that must be replaced,
and what it lacks: a factor, a term, a projection, a sum along another axis.

Guesses are made in float64 (``guesses.py``), tested at random points of several sizes with fifty
digits, and reported only if they hold there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from sympy import Add, Expr, Float, S, Symbol

from derive.claims.checking.explaining.fitting import ValueNames, in_full_precision, size_function
from derive.claims.checking.explaining.guesses import (
    ANOTHER,
    FACTOR,
    ITSELF,
    PROJECTION,
    GuessedEdit,
    Guesses,
)
from derive.claims.checking.explaining.known import KnownValues
from derive.claims.checking.explaining.needs import Needs
from derive.claims.checking.explaining.written import Spot, WrittenClaim, replaced
from derive.claims.checking.numbers.arithmetic import Unevaluable
from derive.claims.checking.numbers.comparison import difference_at
from derive.claims.checking.numbers.doubles import Doubles
from derive.claims.checking.numbers.evaluation import Evaluation
from derive.claims.checking.numbers.points import UNLIKE_NUMBERS, random_points
from derive.gradient.chain.chain import adjoint_of
from derive.gradient.values.naming import written_out
from derive.language.array_node import ArrayNode
from derive.language.notation.definition import Definition
from derive.language.symbols import Tensor, axes_of, is_constant, is_number_or_size, tensors_in

MOST_WORK = 600_000  # entries computed during the search
MOST_TRIED = 10  # guesses per phase that are tested with fifty digits
MOST_KNOWN = 60  # candidate values for a missing one
LONGEST_KNOWN = 8  # operations of a part of the claim that may be a candidate
LONGEST = 12  # operations of a value that is written twice
SHORT = 6  # terms of a sum that is shown with its wrong term
BRIEF = 7  # maximum cost of an edit that ends the search
PLAIN = 4  # maximum cost of an edit that is clearer than a missing term
EXACT = 1e-30  # relative; of numbers of fifty digits
PLACEHOLDERS = "ghvabc"  # names for a long value without another name


@dataclass(frozen=True)
class Edited:
    """An edit that repairs a claim, in ``words``; ``line`` is the line of ``source``."""

    kind: str
    line: int
    source: str
    words: str
    cost: int

    @property
    def is_plain(self) -> bool:
        """Whether it says more than that a term is missing."""
        return self.kind in (PROJECTION, FACTOR) and self.cost <= PLAIN


def smallest_edit(
    names: ValueNames, of: Tensor, written: WrittenClaim, original: Definition
) -> Edited | None:
    """The cheapest edit that holds; once one is short, later phases are skipped."""
    needs = _needs(names, of, written)
    if needs is None:
        return None
    known, holding = (
        KnownValues(needs.at, base_of(written, names, original)),
        Holding(names, of, written),
    )
    best: GuessedEdit | None = None
    for phase in Guesses(needs, known, names.chain.definition).phases():
        found: list[GuessedEdit] = []
        with suppress(Unevaluable):  # out of budget: use the edits found so far
            found += phase
        cheaper = [e for e in found if best is None or e.cost < best.cost]
        best = _best(cheaper, holding) or best
        if best is not None and best.cost <= BRIEF:
            break
    return best and in_words(best, written)


def _needs(names: ValueNames, of: Tensor, written: WrittenClaim) -> Needs | None:
    """The values that the claim needs at the first random point where it is defined; else None."""
    definition = names.chain.definition
    for point in random_points(definition, patterns=UNLIKE_NUMBERS):
        at = Evaluation(names.chain, point, Doubles(), MOST_WORK)
        needs = Needs(at, of, written)
        try:
            at.entries_or_undefined(written.whole, of.home)
            if needs.is_defined:
                return needs
        except (Unevaluable, ArithmeticError):
            continue
    return None


def _best(found: Iterable[GuessedEdit], holding: Holding) -> GuessedEdit | None:
    """The first edit that holds. Several factors of one product often hold alike, so one of them is
    tested first.
    """
    held: list[GuessedEdit] = []
    first: dict[tuple, GuessedEdit] = {}
    cheapest = sorted(found, key=lambda e: e.cost)
    again = [e for e in cheapest if first.setdefault(e.key, e) is not e]
    for edit in (*list(first.values())[:MOST_TRIED], *again[:MOST_TRIED]):
        if held and (edit.cost > held[0].cost or not held[0].number.args):
            break
        settled = holding.settled(edit)
        if settled is not None:
            held.append(settled)
    return min(held, key=lambda e: e.cost, default=None)


class Holding:
    """Test edits of one claim at random points, with fifty digits."""

    def __init__(self, names: ValueNames, of: Tensor, written: WrittenClaim):
        self.names, self.of, self.written = names, of, written

    def settled(self, edit: GuessedEdit) -> GuessedEdit | None:
        """The edit if it holds, with a function of the sizes in place of its number where that
        fits: a half may be 1/sqrt(D) at D = 4.
        """
        if not isinstance(edit.number, Float) and self._holds(edit):
            return edit
        exact = self._exact(edit)
        return exact if exact is not None and self._holds(exact) else None

    def _holds(self, edit: GuessedEdit) -> bool:
        e = self.written.plain(self.written.with_other(edit.spot, edit.value))
        if not axes_of(e) <= set(self.of.home):
            return False
        try:
            return difference_at(self.names.evaluations, self.of, e) < EXACT
        except (Unevaluable, ArithmeticError):
            return False

    @in_full_precision
    def _exact(self, edit: GuessedEdit) -> GuessedEdit | None:
        ratios = []
        for at in self.names.evaluations:
            try:
                ratio = self._number(edit, Needs(at, self.of, self.written, plain=True))
            except (Unevaluable, ArithmeticError):
                ratio = None
            if ratio is None:
                return None
            ratios.append(ratio)
        exact = size_function(self.names.chain.definition, self.names.points, ratios)
        if not exact:
            return None
        size = self.written.size(exact) if exact.args else 0
        return replace(edit, number=exact, cost=edit.cost + size)

    def _number(self, edit: GuessedEdit, needs: Needs):
        """The number of the edit at one point."""
        factors, _ = needs.factors(edit.spot) if needs.is_defined else (None, False)
        if factors is None:
            return None
        rest = needs.entries(edit.rest.xreplace({ITSELF: edit.spot.node}))
        value = needs.entries(edit.old) if edit.kind != FACTOR else {}
        for i, factor in factors.items():
            if factor is not None and rest[i]:
                if edit.kind == FACTOR:
                    return factor / rest[i]
                return (factor if edit.kind == ANOTHER else factor - 1) * value[i] / rest[i]
        return None


def base_of(written: WrittenClaim, names: ValueNames, original: Definition) -> list[Expr]:
    """Candidates for a missing value: first values that the text names, then those of the forward,
    then short parts of both.
    """
    definition = names.chain.definition
    own = original.by_name
    unnamed = {s.name: s.expression for s in definition.statements if s.name not in own}
    found = [
        *written.named,
        *(t for t in definition.inputs if t.role not in ("label", "kept")),
        *(t for t, _ in definition.scalars),
        *(s.tensor for s in definition.statements if s.name in own),
        *map(adjoint_of, definition.outputs),
        *slopes_of(original),
        *(spot.node for spot in written.spots),
        *(written_out(s.tensor, unnamed) for s in definition.statements if s.name in unnamed),
    ]
    short = (e for e in found if not e.args or written.size(e) <= LONGEST_KNOWN)
    return [e for e in dict.fromkeys(short) if not is_number_or_size(e)][:MOST_KNOWN]


def slopes_of(definition: Definition) -> Iterator[Expr]:
    """The derivatives of pointwise statements with respect to their operands."""
    for statement in definition.statements:
        e = statement.expression
        for t in tensors_in(e) if not e.has(ArrayNode) else ():
            slope = e.diff(t)
            if slope.args and not is_constant(slope):
                yield slope


# In words


def in_words(edit: GuessedEdit, written: WrittenClaim) -> Edited:
    line = written.line(edit.spot)
    words = _words(edit, written)
    return Edited(edit.kind, line.number, line.source.strip(), words, edit.cost)


def _words(edit: GuessedEdit, written: WrittenClaim) -> str:
    node, by, value = edit.spot.node, edit.by, edit.value
    if edit.kind == PROJECTION:
        itself = _called(edit, written)
        taken = written.text(-edit.number * edit.rest.xreplace({ITSELF: itself}))
        where = "" if itself == node else f", where {itself} = {written.text(node)}"
        shown = written.text(itself)
        return f"the projection is missing: {shown} must be {shown} - {taken}{where}"
    if value == 0 and (extra := _extra(edit.spot, written)) is not None:
        return f"the term {written.text(extra)} is extra: remove it"
    if edit.kind == ANOTHER:
        return f"{written.text(edit.old)} must be {written.text(by)}"
    if edit.kind == FACTOR and by == -1:
        return f"the sign of {written.text(node)} is wrong: it must be {written.text(value)}"
    what, around, where = _lacks(edit, written), edit.spot.within, ""
    if written.size(node) > LONGEST:
        return f"{what} in {written.text(node)}"
    if isinstance(around, Add) and written.size(around) <= SHORT:
        node, value = around, around.xreplace({node: value})
    elif edit.spot.parent is not None:
        where = f" in {written.text(edit.spot.parent)}"
    return f"{what}: {written.text(node)} must be {written.text(value)}{where}"


def _extra(spot: Spot, written: WrittenClaim) -> Expr | None:
    """The term of a sum that vanishes with the value at a spot, and nothing else does."""
    body = written.body(spot.holder)
    for e in sorted(body.atoms(Add), key=written.size):
        without = replaced(e, spot.parent or spot.node, S.Zero)
        gone = {*e.args} - {*Add.make_args(without)}
        if len(gone) == 1 and e - without in gone:
            return gone.pop()
    return None


def _lacks(edit: GuessedEdit, written: WrittenClaim) -> str:
    """``the factor w is missing``, or is extra."""
    if edit.kind != FACTOR:
        return f"the term {written.text(edit.by)} is missing"
    if written.size(edit.value) < written.size(edit.spot.node):
        return f"the factor {written.text(1 / edit.by)} is too many"
    above, below = edit.by.as_numer_denom()
    if above == 1 and below != 1:
        return f"the divisor {written.text(below)} is missing"
    return f"the factor {written.text(edit.by)} is missing"


def _called(edit: GuessedEdit, written: WrittenClaim) -> Expr:
    """The name of the value at a spot; a long value gets a letter."""
    node = edit.spot.node
    if not node.args or node.func in written.lines:
        return node
    taken = {t.name for t in tensors_in(written.shown(written.whole))}
    taken |= {line.name for line in written.lines.values()}
    return Symbol(next(c for c in PLACEHOLDERS if c not in taken))
