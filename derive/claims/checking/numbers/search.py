"""The simplest data, at given sizes, that show a claimed gradient to be wrong.

In: a `GradientQuestion`, sizes and an arithmetic. Out: data, or None. For exact arithmetic without
irrational numbers, the data make every root and exponential rational.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice, product

from sympy import Expr, Integer, Pow

from derive.claims.checking.numbers.arithmetic import Arithmetic, Undefined, Unevaluable
from derive.claims.checking.numbers.comparison import GradientQuestion
from derive.claims.checking.numbers.evaluation import Evaluation, Point
from derive.claims.checking.numbers.points import (
    SCALARS,
    Values,
    data_of,
    fillings,
    indexed_axis,
    indices,
    point_of,
    simpler,
    start,
    upstream_fillings,
)
from derive.claims.checking.numbers.tables import Index
from derive.language.symbols import Axis, Tensor, is_number_or_size, tensors_in

MANY = 24  # entries of a tensor
EACH = 10  # cost of a trial in operations, in addition to those counted
UNEVALUABLE = 20  # approximate operations before an arithmetic refuses
MOST_FILLINGS = 6  # fillings of one input, with the others fixed
NEAREST = 3  # inputs that are changed in pairs


@dataclass
class SearchBudget:
    """A budget of operations; when it is spent, the best result so far stands."""

    left: int

    def spend(self, operations: int) -> None:
        self.left -= operations + EACH


@dataclass
class DataSearch:
    """The simplest data at some sizes for which the claim differs.

    ``of_claim`` is a separate arithmetic for the claim. With ``undefined``, search for data where
    the claim is undefined; with ``kinks``, ties are allowed.
    """

    question: GradientQuestion
    sizes: Mapping[Axis, int]
    settled: Mapping[str, Expr]
    arithmetic: Arithmetic
    budget: SearchBudget
    of_claim: Arithmetic | None = None
    undefined: bool = False
    kinks: bool = False

    def __post_init__(self):
        chain = self.question.chain
        self.definition = chain.definition
        self.whole = self.definition.sizes_from(self.sizes)
        self.data = data_of(self.definition)
        self.upstreams = chain.upstreams
        self.free = [t for t in self.data if t.name not in self.settled]
        self.statements = self.question.statements()

    def places(self, t: Tensor) -> list[Index]:
        return indices(self.definition, self.sizes, t)

    def point(self, values: Values) -> Point:
        return point_of(self.definition, self.sizes, {t.name: values[t.name] for t in self.data})

    def shows(self, values: Values) -> bool:
        """Whether these data show the claim to be wrong."""
        scalars = {t.name: values[t.name][()] for t, _ in self.definition.scalars}
        if not self.definition.permits(scalars, self.sizes):
            return False
        try:
            limit = max(self.budget.left, 0)
            point = self.point(values)
            found = self.question.compared(point, self.arithmetic, limit, self.of_claim)
            self.budget.spend(found.operations)
            if not found.is_defined or (found.at_kink and not self.kinks):
                return False
            return bool(found.undefined if self.undefined else found.different)
        except Unevaluable:
            self.budget.spend(UNEVALUABLE)
            return False

    def rational_data(self) -> Values | None:
        """Simple data for which everything is rational, or a logarithm, and the claim differs."""
        if not self.is_possible():
            return None
        for number, values in enumerate(self.repaired(self.start())):
            for varied in self.variations(values, of_inputs=number == 0):
                if self.shows(varied):
                    return varied
        return None

    def start(self) -> Values:
        values: Values = {}
        for t in self.data:
            axis = indexed_axis(self.definition, t) if t.role == "label" else None
            values[t.name] = start(t, self.whole, axis)
            if t.name in self.settled:
                values[t.name] = dict.fromkeys(self.places(t), self.settled[t.name])
        return values

    def all_equal(self, number: Expr) -> Values:
        """The data of `start` with one number for every input."""
        values = self.start()
        inputs = [t for t in self.free if t.role in ("input", "given")]
        return values | {t.name: dict.fromkeys(values[t.name], number) for t in inputs}

    def variations(self, values: Values, of_inputs: bool = True) -> Iterator[Values]:
        """The data with other upstream gradients, then with other inputs."""
        arriving: Values = {}
        for upstream in self.upstreams:
            fillings_of = [values[upstream.name]]
            if upstream in self.free:
                fillings_of = list(upstream_fillings(self.places(upstream)))
            for filled in fillings_of:
                yield values | {upstream.name: filled}
            arriving[upstream.name] = fillings_of[-1]
        for t in self.free if of_inputs else ():
            for filled in islice(self._fillings(t), MOST_FILLINGS):
                if self.budget.left < 0:
                    return
                yield values | arriving | {t.name: filled}

    def _fillings(self, t: Tensor) -> Iterator[dict[Index, Expr]]:
        if t.role == "scalar":
            return ({(): number} for number in SCALARS)
        return fillings(t, self.whole) if t.role in ("input", "given", "kept") else iter(())

    def repaired(self, values: Values, reached: int | None = None) -> Iterator[Values]:
        """The data, changed in several ways until every statement is rational."""
        if reached is None:
            reached = self.reached(values)
        if reached == len(self.statements):
            yield values
            return
        for changed in self.changes(values, self.statements[reached]):
            if self.budget.left < 0:
                return
            further = self.reached(changed)
            if further > reached:
                yield from self.repaired(changed, further)

    def reached(self, values: Values) -> int:
        """The number of leading statements that can be evaluated."""
        evaluation = Evaluation(self.question.chain, self.point(values), self.arithmetic)
        count = 0
        try:
            for t in self.statements:
                evaluation.entries(t, t.home)
                count += 1
        except (Undefined, Unevaluable):
            pass
        self.budget.spend(evaluation.operations)
        return count

    def changes(self, values: Values, statement: Tensor) -> Iterator[Values]:
        """Other data for the dependencies of ``statement``: one tensor, or two of the nearest, the
        simplest first.
        """
        sources = [t for t in self._sources(statement) if t in self.free and t.role != "label"]
        alone = [list(enumerate((t, filled) for filled in self._fillings(t))) for t in sources]
        singly = [(rank, (change,)) for few in alone for rank, change in few]
        scalars = [few for few, t in zip(alone, sources, strict=True) if t.role == "scalar"]
        near = [few for few in alone if few not in scalars][:NEAREST] + scalars
        doubly = [
            (rank + other_rank + 1, (change, other))
            for few, others in combinations(near, 2)
            for (rank, change), (other_rank, other) in product(few, others)
        ]
        for _, changed in sorted(singly + doubly, key=lambda ranked: ranked[0]):
            yield values | {t.name: filled for t, filled in changed}

    def is_possible(self) -> bool:
        """Whether the sizes allow rational values: the root of a size may be irrational."""
        evaluation = Evaluation(self.question.chain, self.point(self.start()), self.arithmetic)
        formulas = [self.definition.by_name[t.name].expression for t in self.statements]
        try:
            for power in {power for e in formulas for power in e.atoms(Pow)}:
                if is_number_or_size(power):
                    evaluation.table(power)
        except Unevaluable:
            return False
        return True

    def _sources(self, statement: Tensor) -> list[Tensor]:
        """The data that a statement depends on, the nearest first."""
        found, unread, by_name = [], [statement], self.definition.by_name
        while unread:
            t = unread.pop(0)
            if t.name in by_name:
                unread += [s.at_home for s in tensors_in(by_name[t.name].expression)]
            elif t not in found:
                found.append(t)
        return found

    def _of_one_entry(self, values: Values, t: Tensor) -> Values:
        """Set all entries but one to 0 if that works, instead of trying many one by one."""
        places = self.places(t)
        for kept in places[:2] if len(places) > MANY else ():
            trial = {i: n if i == kept else Integer(0) for i, n in values[t.name].items()}
            if self.shows(values | {t.name: trial}):
                return values | {t.name: trial}
        return values

    def shortened(self, values: Values) -> Values:
        """The data simplified as far as possible, tensor by tensor, then entry by entry."""
        for t in (t for t in self.free if t.role in ("input", "given", "adjoint")):
            trial = values | {t.name: dict.fromkeys(values[t.name], Integer(0))}
            values = trial if trial != values and self.shows(trial) else values
            values = self._of_one_entry(values, t)
        for t in self.free:
            for i in self.places(t):
                for number in simpler(values[t.name][i], t):
                    if self.budget.left < 0:
                        return values
                    trial = values | {t.name: {**values[t.name], i: number}}
                    if self.shows(trial):
                        values = trial
                        break
        return values
