"""What the definitions of a forward say about its values, in the form in which rewriting uses it.

- *Eliminations*: a statement that is a product is a relation between its factors. From ``xhat =
  diff*inv_std`` follows ``diff = xhat/inv_std``, so that the value nearer the output is used.
- *Inversions*: a statement that is linear in a function of earlier values gives that function.
  From ``s = 1 + exp(-x)`` follows ``exp(-x) = s - 1``, which is not evaluated again.
- *Recognitions*: a reduction that is the definition of a statement, or a multiple of it, is that
  statement.
- *Aliases*: a statement that is a positive multiple of another value is another name for it, and
  all else is said of the value.
- *Scales*: what grows with an exponential is followed as a moderate factor times that exponential
  (``scaled.py``); the factors that are reductions are values too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from sympy import Add, Basic, Dummy, Expr, Function, Mul, Piecewise, Pow, S, exp, log

from derive.bounds import Bounds
from derive.cost import is_evaluated
from derive.definition import Definition
from derive.nodes import Max, Sum, along
from derive.parts import Parts, Value, in_full, resolved, with_names
from derive.scaled import Scales
from derive.symbols import Axis, Tensor, axes_of, is_constant, is_number_or_size, tensors_in


@dataclass(frozen=True)
class Relations:
    """All values of a forward in order, and the rewritings that their definitions allow.

    ``parts`` are the values that the user did not name; those of them that ``scales`` made are not
    met in the mathematics as it is written.
    """

    definition: Definition
    values: tuple[Value, ...]
    parts: tuple[Value, ...]
    scales: Scales
    aliases: Mapping[str, Expr]  # statements that are multiples of other values

    @cached_property
    def same(self) -> dict[str, Expr]:
        """Values that are computed as an earlier one is, with that one."""
        found: dict[str, Expr] = {}
        first: dict[Expr, Tensor] = {}
        for value in self.values:
            if value.tensor.name not in self.aliases:
                tensor = first.setdefault(resolved(value.expression, found), value.tensor)
                if tensor != value.tensor:
                    found[value.tensor.name] = tensor
        return found

    @cached_property
    def known(self) -> tuple[Value, ...]:
        """The values, each under one name, in values of which that is so too."""
        other = {*self.aliases, *self.same}
        own = (v for v in self.values if v.tensor.name not in other)
        return tuple(Value(v.tensor, resolved(v.expression, self.same)) for v in own)

    def resolved(self, e: Expr) -> Expr:
        """``e`` with each value under its one name."""
        return resolved(resolved(e, self.aliases), self.same)

    @cached_property
    def scales_after(self) -> Scales:
        """The scales for the backward, which has all values at hand."""
        return self.scales.after_forward()

    def bounds(self, e: Expr) -> Bounds:
        """Between which numbers ``e`` lies."""
        return self.scales.values.bounds(e)

    @cached_property
    def risked(self) -> dict[Expr, frozenset]:
        """What expressions risk, of those for which that was asked (``alternatives.py``)."""
        return {}

    @cached_property
    def by_name(self) -> dict[str, Value]:
        return {value.tensor.name: value for value in self.values}

    @cached_property
    def position(self) -> dict[str, int]:
        """The order in which values become known: inputs first."""
        names = [t.name for t in self.definition.inputs] + [
            t.name for t, _ in self.definition.scalars
        ]
        return {name: i for i, name in enumerate(names + [v.tensor.name for v in self.values])}

    def size(self, axis: Axis) -> Axis:
        return self.definition.size(axis)

    def with_parts(self, e: Expr) -> Expr:
        """``e`` with every part of the forward under its name, also where a number stands before
        it.
        """
        return with_names(e, self.parts) if self.parts else e

    def with_values(self, e: Expr) -> Expr:
        """``e`` with every value of the forward that stands in it by definition under its name."""
        return with_names(e, self.known)

    def is_made_of(self, name: str, other: str) -> bool:
        """Whether the value ``name`` is computed from the value ``other``, or is that."""
        return other in self._made_of(name)

    def _made_of(self, name: str) -> frozenset[str]:
        if name not in self.made_of:
            value = self.by_name.get(name)
            read = tensors_in(value.expression) if value else ()
            self.made_of[name] = frozenset({name}).union(*(self._made_of(t.name) for t in read))
        return self.made_of[name]

    @cached_property
    def made_of(self) -> dict[str, frozenset[str]]:
        """All that values are computed from, of those for which that was asked."""
        return {}

    def unfolded(self, tensor: Tensor) -> Expr:
        """The definition of a value, along the axes along which it is met."""
        value = self.by_name[tensor.name]
        return along(value.expression, tensor)

    @cached_property
    def eliminations(self) -> dict[str, Expr]:
        """For a tensor, what it equals in terms of the last product it is a factor of."""
        found: dict[str, Expr] = {}
        for value in reversed(self.known):
            if value.tensor.name in self.scales.made:
                continue
            for factor, rest in self._solvable_factors(value):
                if factor.name not in found:
                    found[factor.name] = rest
                    break
        for value in self.known:  # where an exponential overflows, what is made of it need not
            solved = self.inversions.get(value.expression)
            if isinstance(value.expression, exp) and value.tensor not in tensors_in(solved):
                found.setdefault(value.tensor.name, solved)
        return found

    def _solvable_factors(self, value: Value) -> Iterable[tuple[Tensor, Expr]]:
        powers = value.expression.as_powers_dict()
        tensors = [base for base in powers if isinstance(base, Tensor)]
        if any(not isinstance(b, Tensor) and not is_constant(b) for b in powers) or not tensors:
            return
        if not all(map(is_constant, powers.values())):  # exp(x) is the number E to the power of x
            return
        for base in sorted(tensors, key=lambda t: (t.role == "input", self.position[t.name])):
            power = powers[base]
            if (
                base.axes != base.home
                or set(base.axes) != set(value.tensor.axes)
                or base.role in ("scalar", "given", "kept")
            ):
                continue
            if not power.is_Rational or not (1 / power).is_Integer:
                continue
            rest = [(b, -powers[b] / power) for b in powers if b != base]
            if power.is_negative and not all(is_number_or_size(b) for b, _ in rest):
                continue  # a divisor as a quotient: the forward does not divide by its numerator
            if all(self._may_multiply(b, p, value.tensor) for b, p in rest):
                yield base, (value.tensor * value.expression**-1 * base**power) ** (1 / power)

    def _may_multiply(self, factor: Expr, power: Expr, product: Tensor) -> bool:
        """Whether ``factor**power`` may be put where the product's own factor stood.

        Multiplying is always allowed: the forward divides by it. Dividing is allowed by sizes, and
        by a statistic that is a power such as (var + eps)**(-1/2); not by what is only positive on
        paper: an exponential as large as the product underflows to zero.
        """
        if power.is_positive:
            return True
        if is_number_or_size(factor):
            return factor.is_zero is False
        if not isinstance(factor, Tensor):
            return False
        value = self.by_name.get(factor.name)
        e = value.expression if value else None
        statistic = set(factor.axes) < set(product.axes)
        return statistic and isinstance(e, Pow) and e.exp.is_negative is True

    @cached_property
    def inversions(self) -> dict[Expr, Expr]:
        """For a function of forward values, what it equals in terms of a value that is linear in
        it, or the reciprocal of that.

        Nothing new is divided by: the slope is a number, or stands below the line in the function.
        """
        found: dict[Expr, Expr] = {}
        names = {v.expression: v.tensor for v in self.known if isinstance(v.expression, Function)}
        for value in self.known:
            if value.expression in names:
                continue
            e, output = self._with_its_function(value.expression), value.tensor
            if isinstance(e, Pow) and e.exp == -1:
                e, output = e.base, 1 / output
            functions = [
                f for f in e.atoms(Function) if is_evaluated(f) and axes_of(f) == axes_of(e)
            ]
            outermost = [f for f in functions if not any(f in g.args for g in functions)]
            if len(outermost) != 1:
                continue
            (function,), place = outermost, Dummy()
            line = e.xreplace({function: place})
            if not all(t.role == "scalar" for t in tensors_in(line)):
                continue
            slope, rest = line.diff(place), line.xreplace({place: S.Zero})
            if place not in slope.free_symbols and self._may_divide_by(slope, function):
                found.setdefault(function, (output - rest) / slope)
        return {f: name for f, name in names.items() if is_evaluated(f)} | found

    def _with_its_function(self, e: Expr) -> Expr:
        """``e`` with the one value in it written out, up to the function that it is computed from,
        if there is nothing else in it.
        """
        while not any(map(is_evaluated, e.atoms(Function))):
            read = [t for t in tensors_in(e) if t.role != "scalar"]
            if len(read) != 1 or read[0].name not in self.by_name or e.has(Sum, Max):
                break
            e = e.xreplace({read[0]: self.unfolded(read[0])})
        return e

    @cached_property
    def logarithms(self) -> dict[str, tuple[Tensor, Expr, Value]]:
        """For a tensor ``s``, its logarithm in terms of a value that is linear in that:
        ``log(s) = y - z`` from ``y = z + log(s)``.
        """
        found: dict[str, tuple[Tensor, Expr, Value]] = {}
        for value in self.known:
            for term in Add.make_args(value.expression):
                logarithms = [f for f in Mul.make_args(term) if isinstance(f, log)]
                if len(logarithms) != 1:
                    continue
                inside, factor = logarithms[0].args[0], term / logarithms[0]
                rest = value.expression - term
                factor_divides = any(p.is_negative for p in (1 / factor).as_powers_dict().values())
                known = isinstance(inside, Tensor) and inside not in tensors_in(rest)
                factor_divides = factor_divides or factor.has(Piecewise)  # 0 in one of its cases
                if known and (factor.is_number or not factor_divides):
                    found[inside.name] = (inside, (value.tensor - rest) / factor, value)
        return found

    @staticmethod
    def _may_divide_by(slope: Expr, function: Expr) -> bool:
        powers = {p.base for p in function.atoms(Pow) if p.exp.is_negative}
        return all(is_number_or_size(factor) or factor in powers for factor in Mul.make_args(slope))

    @cached_property
    def divisors(self) -> frozenset[Expr]:
        """What the forward divides by, or takes the logarithm of: nowhere may that be zero."""
        expressions = [value.expression for value in self.values]
        powers = [p for e in expressions for p in e.atoms(Pow) if p.exp.could_extract_minus_sign()]
        logarithms = [node.args[0] for e in expressions for node in e.atoms(log)]
        found = {*(p.base for p in powers), *logarithms}
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

    @cached_property
    def chosen_divisors(self) -> frozenset[tuple[Expr, Basic]]:
        """What the forward divides by as the branch of a choice, with the condition of that."""
        named = {v.tensor: v.expression for v in self.values}
        chosen = [named[divisor] for divisor in self.divisors if divisor in named]
        branches = (branch for e in chosen if isinstance(e, Piecewise) for branch in e.args)
        return frozenset((value, condition) for value, condition in branches)

    @cached_property
    def growing(self) -> frozenset[Expr]:
        """What the output grows with, however it is written: exponentials, and values made of
        them.
        """
        found: set[Expr] = {self.definition.output}
        pending: list[Expr] = [self.definition.output]
        while pending:
            e = pending.pop()
            if isinstance(e, Tensor):
                new = self.scales.risks(self.scales.safe(self.unfolded(e)))
                pending += new - found
                found |= new
        return frozenset(found.union(map(self.with_values, found)))

    @cached_property
    def recognitions(self) -> dict[Expr, Expr]:
        """Reductions that are, up to a number or a size, the definition of a named value."""
        found: dict[Expr, Expr] = {}
        for value in self.known:
            reductions = [f for f in Mul.make_args(value.expression) if isinstance(f, (Sum, Max))]
            if len(reductions) != 1:
                continue
            rest = value.expression / reductions[0]
            if is_number_or_size(rest) and rest.is_zero is False:
                forms = [reductions[0], self._monomials_unfolded(reductions[0])]
                for form in forms:
                    found.setdefault(form, value.tensor / rest)
        return found

    def _monomials_unfolded(self, reduction: Expr) -> Expr:
        """The reduction of diff2 is also met as the reduction of diff**2."""
        powers = {}
        for tensor in tensors_in(reduction.operand):
            value = self.by_name.get(tensor.name)
            if (
                value is not None
                and isinstance(value.expression, Pow)
                and tensor.axes == tensor.home
            ):
                powers[tensor] = value.expression
        return type(reduction).over(reduction.operand.xreplace(powers), reduction.axes)


def relations_of(definition: Definition, merged: bool = False) -> Relations:
    """Name the parts of every statement and collect the values in order. ``merged``: without the
    names of statements that are read once, where they would be seen as a whole all the same.
    """
    parts = Parts(definition, merged)
    values: list[Value] = []
    scales = Scales(parts.scaled)
    for statement in definition.statements:
        before = len(parts.found)
        expression = parts.top(statement)
        new = [Value(tensor, e) for e, tensor in list(parts.found.items())[before:]]
        for value in [*new, Value(statement.tensor, expression)]:
            before = len(parts.found)
            scales.learn(value.tensor, value.expression)
            values += [Value(tensor, e) for e, tensor in list(parts.found.items())[before:]]
            values.append(value)
    named = tuple(Value(tensor, e) for e, tensor in parts.found.items())
    return Relations(definition, tuple(values), named, scales.finished(), parts.aliases)
