"""The values of a forward as its lines say them: each in its one spelling, and without the names
behind which something cancels.

A line is a macro for whoever reads it. Its name stays a value where that costs nothing; where the
lines are shorter without it, as ``r*w`` with ``e = exp(x)`` and ``r = 1/e`` is ``exp(-x)*w``, it is
another name for what it stands for, and so is that of a multiple of a value.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator
from functools import lru_cache

from sympy import Add, Basic, Expr, Mul, Piecewise, Pow, exp, preorder_traversal

from derive.gradient.values.aliases import is_other_name, number_apart, resolved
from derive.gradient.values.canonical import canonical
from derive.gradient.values.moments import MomentValues, about_means
from derive.gradient.values.read_back import read_at_entries
from derive.language.called import names_of
from derive.language.choices import Compared, written_in
from derive.language.names import first_unused
from derive.language.nodes import ArrayNode, Whole, along
from derive.language.notation.definition import Definition, Statement
from derive.language.notation.statements import known_signs
from derive.language.symbols import Tensor, axes_of, is_constant, tensors_in


class ForwardNames:
    """The names of a forward, and those that its parts are given: the gradient of a value has one
    of its own too.
    """

    def __init__(self, definition: Definition):
        self.definition = definition
        names = [t.name for t in definition.inputs] + [t.name for t, _ in definition.scalars]
        names += [s.name for s in definition.statements]
        self.taken = {
            *names,
            *(f"d{name}" for name in names),
            *(axis.name for axis in definition.axes),
        }

    def tensor(self, e: Expr, names: Iterable[str]) -> Tensor:
        """The tensor of a new value ``e``, under the first of the ``names`` that is free."""
        name = first_unused(names, lambda name: bool({name, f"d{name}"} & self.taken))
        axes = self.definition.in_order(axes_of(e))
        self.taken.add(name)
        return Tensor(name, axes, role="statement", **known_signs(e))


class ValueGraph:
    """``spelled`` has every value by its name, ``aliases`` what is only another name for one, and
    ``made`` the values that nobody named, by the statement that needs them.
    """

    def __init__(self, definition: Definition, names: ForwardNames):
        self.definition = definition
        self.names = names
        self.spelled: dict[str, Expr] = {}
        self.aliases: dict[str, Expr] = {}
        self.made: dict[str, dict[Expr, Tensor]] = {s.name: {} for s in definition.statements}
        known: dict[Tensor, Expr] = {}
        self.moments = MomentValues(known, definition.size, self._mean)
        self.statement = ""
        for statement in definition.statements:
            self.statement = statement.name
            e = read_at_entries(resolved(statement.expression, self.aliases), known)
            e = canonical(e)
            e = known[statement.tensor] = about_means(e, self.moments)
            self._note(statement, e)
        about = (t for e in self.moments.made.values() for t in tensors_in(e))
        self.stay = {t.name for t in (*definition.outputs, *about)} | definition.at_hand
        self._remove(self._read_no_more())
        for name in [*self.spelled]:
            self._see_through(name)

    def _mean(self, e: Expr) -> Tensor:
        """A value ``e`` that the statement needs, before its parts are looked for."""
        known = next((made[e] for made in self.made.values() if e in made), None)
        return self._made(e) if known is None else known

    def _made(self, e: Expr) -> Tensor:
        tensor = self.names.tensor(e, names_of(e, self.statement))
        self.made[self.statement][e] = tensor
        self.spelled[tensor.name] = e
        return tensor

    def _note(self, statement: Statement, e: Expr) -> None:
        """Record the spelling of ``statement``; it is only another name if it is a multiple of
        another value, one over a root or a reduction, or chosen by what is given.
        """
        self.spelled[statement.name] = e
        outputs = self.definition.outputs
        if statement.name in self.definition.at_hand or statement.tensor in outputs:
            return
        number, rest = number_apart(e)
        if number != 1:
            del self.spelled[statement.name]
            e = self.spelled[statement.name] = number * self._made(rest)
        if is_other_name(statement, e, self.spelled):
            self.aliases[statement.name] = self.spelled.pop(statement.name)

    def _read_no_more(self) -> list[str]:
        """The statements that others read as they are written, and none in its one spelling."""
        written = (s.expression for s in self.definition.statements)
        before = {t.name for e in written for t in tensors_in(e)}
        spelled = (e for values in (self.spelled, self.aliases) for e in values.values())
        after = {t.name for e in spelled for t in tensors_in(e)}
        return [n for n in self.spelled if n in before - after - self.stay]

    # -- names behind which something cancels -----------------------------------------

    def _see_through(self, name: str) -> None:
        """Write out in the value ``name`` one of those that are read for it alone, or several, in
        the way in which the lines become shortest; and an exponential all the same.
        """
        while name in self.spelled:
            ways = [way for gone in self._read_for(name) for way in self._shorter(name, gone)]
            if not ways:
                return
            saved, gone, whole = max(ways, key=lambda way: way[0])
            for other in gone if len(gone) > 1 else []:  # with which nothing cancels, it stays
                kept = self._made_of(other, gone)
                for way in self._shorter(name, [n for n in gone if n not in kept]):
                    saved, gone, whole = way if way[0] >= saved else (saved, gone, whole)
            self._remove(gone)
            self.spelled[name] = whole

    def _made_of(self, name: str, among: Collection[str]) -> set[str]:
        read = {t.name for t in tensors_in(self.spelled[name])} & {*among}
        return {name}.union(*(self._made_of(other, among) for other in read))

    def _shorter(self, name: str, gone: list[str]) -> Iterator[tuple[int, list[str], Expr]]:
        """Number of steps saved by the value without these names, the names, and its new form;
        nothing where it is not shorter. Steps shared with other values are computed all the same.
        """
        whole = canonical(self._written_out(self.spelled[name], gone))
        before = steps_in(self.spelled[n] for n in (name, *gone))
        after = steps_in([whole])
        others = steps_in(e for n, e in self.spelled.items() if n not in (name, *gone))
        saved = steps(before - after - others) - steps(after - before)
        if saved > 0 or (saved == 0 and self._is_plain_exponential(name, gone, others)):
            yield saved, gone, whole

    def _is_plain_exponential(self, name: str, gone: list[str], others: Container[Basic]) -> bool:
        """Whether ``gone`` is an exponential that stands in one place: it needs no name, unless a
        recurrence reads it.
        """
        if self.spelled[name].has(Whole):
            return False
        written = [n for n in preorder_traversal(self.spelled[name]) if isinstance(n, Tensor)]
        values, places = [self.spelled[n] for n in gone], [n for n in written if n.name in gone]
        grows = all(isinstance(e, exp) and e not in others for e in values)
        return grows and len(places) == len(gone) == 1

    def _read_for(self, name: str) -> list[list[str]]:
        """The values that are read for ``name`` alone, each by itself; and together those of them
        that are taken entry by entry, where products of values are seen through, and exponentials
        in all of these. No reduction is written out in another one: that would undo what is
        computed in logarithms, step by step.
        """
        readers: dict[str, set[str]] = {other: set() for other in self.spelled}
        for reader, e in self.spelled.items():
            for t in tensors_in(e):
                readers.get(t.name, set()).add(reader)
        together, through = [name], {name}
        for other in reversed([n for n in readers if readers[n] and n not in self.stay]):
            e = self.spelled[other]
            met = bool(readers[other] & through) or isinstance(e, exp)
            if met and readers[other] <= {*together} and not e.has(ArrayNode):
                together.append(other)
                through |= {other} if _is_product(e) else set()
        reduces = self.spelled[name].has(ArrayNode)
        own = [n for n, read in readers.items() if read == {name} and n not in self.stay]
        single = [[n] for n in own if not (reduces and self.spelled[n].has(ArrayNode))]
        return [*single, together[1:]] if len(together) > 1 else single

    def _written_out(self, e: Expr, names: Container[str]) -> Expr:
        """``e`` with what these values stand for."""
        while met := [t for t in tensors_in(e) if t.name in names]:
            e = written_in(e, {t: along(self.spelled[t.name], t) for t in met})
        return e

    def _remove(self, gone: Collection[str]) -> None:
        """Make these values other names for their expressions."""
        names = {n: self.spelled[n] for n in gone if n in self.definition.by_name}
        self.aliases = {n: self._written_out(e, gone) for n, e in (self.aliases | names).items()}
        for n in gone:
            del self.spelled[n]
        for made in self.made.values():
            for e in [e for e, tensor in made.items() if tensor.name in gone]:
                del made[e]


def _is_product(e: Expr) -> bool:
    """Whether ``e`` is a product of powers of values, and nothing else."""
    return all(isinstance(base, Tensor) or is_constant(base) for base in e.as_powers_dict())


def steps_in(lines: Iterable[Expr]) -> set[Basic]:
    """Distinct operations in ``lines``."""
    return set().union(*map(_nodes, lines))


@lru_cache(maxsize=4096)
def _nodes(e: Basic) -> frozenset[Basic]:
    """All in ``e`` that varies and is more than a tensor."""
    if not e.args or isinstance(e, Tensor) or is_constant(e):
        return frozenset()
    return frozenset({e}).union(*map(_nodes, e.args))


def steps(nodes: Iterable[Basic]) -> int:
    """Cost of the nodes, the same whichever part has a name: numbers, signs, reciprocals and
    comparisons are free.
    """
    return sum(map(_steps, nodes))


def _is_indicator(e: Basic) -> bool:
    """Whether ``e`` says where something counts, which may be said twice for nothing."""
    return isinstance(e, Piecewise) and all(value.is_number for value, _ in e.args)


def _steps(e: Basic) -> int:
    if isinstance(e, (Add, Mul)):
        return sum(not (is_constant(arg) or _is_indicator(arg)) for arg in e.args) - 1
    if isinstance(e, Pow) and e.exp == -1:
        return 0
    return int(isinstance(e, Expr) and not isinstance(e, Compared))
