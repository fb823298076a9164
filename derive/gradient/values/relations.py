"""Relations between the values of a forward, in the form in which rewriting uses them.

- *Equations*: a definition is solved for another of its members (``equations.py``). From ``xhat =
  diff*inv_std`` follows ``diff = xhat/inv_std``, so that the value nearer the output is used; from
  ``s = 1 + exp(-x)`` follows ``exp(-x) = s - 1``, which is not evaluated again; a reduction that is
  the definition of a statement, or a multiple of it, is that statement.
- *Aliases*: a statement that is a positive multiple of another value is another name for it, and
  all else is said of the value; so is one whose name only hides what cancels (``graph.py``).
- *Scales*: what grows with an exponential is followed as a moderate factor times that exponential
  (``scaled.py``); the factors that are reductions are values too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from sympy import Basic, Expr, Piecewise, exp, log

from derive.gradient.range.bounds import Bounds
from derive.gradient.range.scaled import Scales
from derive.gradient.values.aliases import resolved
from derive.gradient.values.equations import table
from derive.gradient.values.naming import NamedValue, in_full, with_names
from derive.gradient.values.parts import Parts
from derive.language.choices import branches_of, written_in
from derive.language.divisors import divisors_in
from derive.language.nodes import Whole, along
from derive.language.notation.definition import Definition
from derive.language.symbols import Axis, Tensor, tensors_in


@dataclass(frozen=True)
class Relations:
    """All values of a forward in order, and the rewritings that their definitions allow.

    ``parts`` are the values that the user did not name; those of them that ``scales`` made are not
    met in the mathematics as it is written.
    """

    definition: Definition
    values: tuple[NamedValue, ...]
    parts: tuple[NamedValue, ...]
    scales: Scales
    aliases: Mapping[str, Expr]  # statements that are no values, with what they stand for
    about: Mapping[
        Expr, Expr
    ]  # sums with what they are about the means; unsafe as they are: with that
    behind: frozenset[str] = frozenset()  # the output and its parts, where no backward finds them

    @cached_property
    def same(self) -> dict[str, Expr]:
        """Values computed like an earlier one, each with that one."""
        found: dict[str, Expr] = {}
        first: dict[Expr, Tensor] = {}
        for value in self.values:
            if value.tensor.name not in self.aliases:
                tensor = first.setdefault(resolved(value.expression, found), value.tensor)
                if tensor != value.tensor:
                    found[value.tensor.name] = tensor
        return found

    @cached_property
    def known(self) -> tuple[NamedValue, ...]:
        """Values, each under one name, in terms of values under one name."""
        other = {*self.aliases, *self.same, *self.behind}
        own = (v for v in self.values if v.tensor.name not in other)
        return tuple(NamedValue(v.tensor, resolved(v.expression, self.same)) for v in own)

    @cached_property
    def results(self) -> frozenset[str]:
        """Names of the requested gradients."""
        return frozenset(f"d{t.name}" for t in self.definition.differentiable)

    def resolved(self, e: Expr) -> Expr:
        """``e`` with each value under its one name."""
        return resolved(resolved(e, self.aliases), self.same)

    def bounds(self, e: Expr) -> Bounds:
        """Bounds of ``e``."""
        return self.scales.values.bounds(e)

    @cached_property
    def risked(self) -> dict[Expr, frozenset]:
        """Cache of the risks of expressions (``risks.py``)."""
        return {}

    @cached_property
    def exposed(self) -> dict[Expr, frozenset]:
        """Cache of the unguarded divisors of expressions."""
        return {}

    @cached_property
    def by_name(self) -> dict[str, NamedValue]:
        return {value.tensor.name: value for value in self.values}

    @cached_property
    def position(self) -> dict[str, int]:
        """The order in which values become known: inputs first."""
        names = [t.name for t in self.definition.inputs] + [
            t.name for t, _ in self.definition.scalars
        ]
        return {name: i for i, name in enumerate(names + [v.tensor.name for v in self.values])}

    @property
    def cancelling(self) -> tuple[Expr, ...]:
        """The differences of sums that may cancel: they could not be taken about the means."""
        return tuple(node for node, about in self.about.items() if node == about)

    def about_means(self, e: Expr) -> tuple[Expr, list[tuple[Expr, Expr]]]:
        """``e`` with the sums in it about the means, and what each of these is."""
        made = {node: in_full(about, self.parts) for node, about in self.about.items()}
        met = {node: about for node, about in made.items() if node != about and e.has(node)}
        return written_in(e, met), [*met.items()]

    def size(self, axis: Axis) -> Axis:
        return self.definition.size(axis)

    def with_parts(self, e: Expr, among_others: bool = False) -> Expr:
        """``e`` with every part of the forward under its name, also where a number stands before
        it, and if that is asked for among other terms and factors.
        """
        parts = self._with_outputs
        return with_names(e, parts, among_others) if parts else e

    @cached_property
    def _with_outputs(self) -> tuple[NamedValue, ...]:
        """The parts, also as they read with the names of the outputs."""
        own = (NamedValue(p.tensor, resolved(p.expression, self._returned)) for p in self.parts)
        return tuple(dict.fromkeys([*self.parts, *own]))

    @cached_property
    def _returned(self) -> dict[str, Expr]:
        """The outputs that others read under another name, by that name."""
        stated = (self.definition.by_name[name] for name in self.definition.returned)
        return {s.renames.name: s.tensor for s in stated if s.renames is not None}

    @cached_property
    def known_to_readers(self) -> tuple[NamedValue, ...]:
        """The values, also as they read with the names of the outputs."""
        own = (NamedValue(v.tensor, resolved(v.expression, self._returned)) for v in self.known)
        return tuple(dict.fromkeys([*self.known, *own]))

    def with_values(self, e: Expr) -> Expr:
        """``e`` with definitions of the forward's values replaced by their names."""
        return with_names(e, self.known)

    def is_made_of(self, name: str, other: str) -> bool:
        """Whether the value ``name`` is, or is computed from, the value ``other``."""
        return other in self._made_of(name)

    def _made_of(self, name: str) -> frozenset[str]:
        if name not in self.made_of:
            value = self.by_name.get(name)
            read = tensors_in(value.expression) if value else ()
            self.made_of[name] = frozenset({name}).union(*(self._made_of(t.name) for t in read))
        return self.made_of[name]

    @cached_property
    def made_of(self) -> dict[str, frozenset[str]]:
        """Cache of the values from which values are computed."""
        return {}

    def unfolded(self, tensor: Tensor) -> Expr:
        """The definition of a value, along the axes along which it is met; an output that others
        read under another name is read as that output.
        """
        value = self.by_name[tensor.name]
        known = {} if value.tensor in self._returned.values() else self._returned
        return along(resolved(resolved(value.expression, known), self.same), tensor)

    @cached_property
    def solved(self) -> dict[str, dict[Expr, tuple[Expr, NamedValue]]]:
        """Solved definitions, by the way in which they are solved (``equations.py``). Of several
        for one factor or function, the one nearer the output is used.
        """
        last_first = self.known[::-1]
        written = [v for v in last_first if v.tensor.name not in self.scales.made]
        orders = {"factor": written, "function": last_first}
        return {name: way.of(orders.get(name, self.known), self) for name, way in table.items()}

    @cached_property
    def eliminations(self) -> dict[Expr, Expr]:
        """Tensors in terms of the last product that they are a factor of; an exponential that
        overflows, of a value made of it that need not.
        """
        found = {factor: equal for factor, (equal, _) in self.solved["factor"].items()}
        for value in self.known:
            equal = self.inversions.get(value.expression)
            if isinstance(value.expression, exp) and value.tensor not in tensors_in(equal):
                found.setdefault(value.tensor, equal)
        return found

    @cached_property
    def inversions(self) -> dict[Expr, Expr]:
        """Functions of forward values in terms of a value."""
        return {function: equal for function, (equal, _) in self.solved["function"].items()}

    @cached_property
    def recognitions(self) -> dict[Expr, Expr]:
        """Reductions and recurrences that are, up to a number or a size, the definition of a named
        value, or one place before it.
        """
        found = self.solved["reduction of powers"] | self.solved["state before"]
        found |= self.solved["reduction"]
        known = {reduction: equal for reduction, (equal, _) in found.items()}
        whole = {in_full(e, self.parts): known[e] for e in known if isinstance(e, Whole)}
        return whole | known

    @cached_property
    def divisors(self) -> frozenset[Expr]:
        """Divisors and arguments of logarithms in the forward: none of them may be zero."""
        expressions = [value.expression for value in self.values]
        found = {node.args[0] for e in expressions for node in e.atoms(log)}
        found = found.union(*map(divisors_in, expressions))
        for without in (self.scales.of, self.scales.guarded):  # an exponential, which is never zero
            found |= {without(e).factor for e in found}
        pending = list(found)
        while pending:  # a product is not zero, and no root is: so are what they are made of
            e = pending.pop()
            if isinstance(e, Tensor) and e.name in self.by_name:
                e = self.unfolded(e)
            new = {b for b, power in e.as_powers_dict().items() if power.is_positive} - found
            pending += new
            found |= new
        return frozenset(found)

    @cached_property
    def divisors_in_full(self) -> frozenset[Expr]:
        """The same in the user's values."""
        return frozenset(in_full(e, self.parts) for e in self.divisors)

    def is_divided_by(self, e: Expr) -> bool:
        """True if the forward itself divides by ``e``, also as an output."""
        given_out = {s.name: s.renames for s in self.definition.statements if s.renames}
        return in_full(resolved(e, given_out), self.parts) in self.divisors_in_full

    @cached_property
    def chosen_divisors(self) -> frozenset[tuple[Expr, frozenset[Basic]]]:
        """Divisors of the forward that are branches of a choice, with their conditions."""
        named = {v.tensor: v.expression for v in self.values}
        chosen = [named[divisor] for divisor in self.divisors if divisor in named]
        branches = (b for e in chosen if isinstance(e, Piecewise) for b in branches_of(e))
        return frozenset(branches)

    @cached_property
    def growing(self) -> frozenset[Expr]:
        """Exponentials that the outputs grow with, however written, and values made of them."""
        found: set[Expr] = {*self.definition.outputs}
        pending: list[Expr] = [*self.definition.outputs]
        while pending:
            e = pending.pop()
            if isinstance(e, Tensor):
                new = self.scales.risks(self.scales.safe(self.unfolded(e)))
                pending += new - found
                found |= new
        return frozenset(found.union(map(self.with_values, found)))


def relations_of(definition: Definition) -> Relations:
    """Name the parts of every statement and collect the values in order."""
    parts = Parts(definition)
    values: list[NamedValue] = []
    scales = Scales(parts.scaled)
    for statement in definition.statements:
        first = len(values)
        before = len(parts.found)
        expression = parts.top(statement)
        new = [NamedValue(tensor, e) for e, tensor in list(parts.found.items())[before:]]
        for value in [*new, NamedValue(statement.tensor, expression)]:
            before = len(parts.found)
            scales.learn(value.tensor, value.expression)
            values += [NamedValue(tensor, e) for e, tensor in list(parts.found.items())[before:]]
            values.append(value)
    named = tuple(NamedValue(tensor, e) for e, tensor in parts.found.items())
    last = frozenset(value.tensor.name for value in values[first:])
    at_hand = definition.at_hand.issuperset(t.name for t in definition.outputs)
    behind = frozenset() if at_hand else last
    made = parts.graph.aliases, parts.graph.moments.made
    return Relations(definition, tuple(values), named, scales.finished(), *made, behind)
