"""What the definitions of a forward say about its values, in the form in which rewriting uses it.

- *Parts*: a sum or a reduction inside a statement is a value of its own, although nobody named it
  (``x - mean`` in ``(x - mean) * inv_std``). Parts are given names, so that nothing is multiplied
  out that belongs together: ``Sum(dy*(x - mean))`` must not become the difference of two large
  numbers.
- *Eliminations*: a statement that is a product is a relation between its factors. From ``xhat =
  diff*inv_std`` follows ``diff = xhat/inv_std``, so that the value nearer the output is used.
- *Recognitions*: a reduction that is the definition of a statement, or a multiple of it, is that
  statement.
- *Scales*: what grows with an exponential is followed as a moderate factor times that exponential
  (``scaled.py``); the factors that are reductions are values too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from sympy import Add, Expr, Function, Mul, Pow, exp

from derive.definition import Definition
from derive.forward import known_signs
from derive.nodes import Max, Reduction, Reshaping, Sum, renamed
from derive.scaled import Scales
from derive.symbols import Axis, Tensor, axes_of, is_number_or_size, tensors_in
from derive.traversal import everywhere


@dataclass(frozen=True)
class Value:
    """A value of the forward, named by the user or a part: its tensor and its definition in
    earlier values.
    """

    tensor: Tensor
    expression: Expr


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
        return _with_names(e, self.parts) if self.parts else e

    def with_values(self, e: Expr) -> Expr:
        """``e`` with every value of the forward that stands in it by definition under its name."""
        return _with_names(e, self.values)

    def unfolded(self, tensor: Tensor) -> Expr:
        """The definition of a value, along the axes along which it is met."""
        value = self.by_name[tensor.name]
        return renamed(value.expression, dict(zip(tensor.home, tensor.axes, strict=True)))

    @cached_property
    def eliminations(self) -> dict[str, tuple[Expr, Value]]:
        """For a tensor, what it equals in terms of the last product it is a factor of, and that
        product.
        """
        found: dict[str, tuple[Expr, Value]] = {}
        for value in reversed(self.values):
            if value.tensor.name in self.scales.made:
                continue
            for factor, rest in self._solvable_factors(value):
                if factor.name not in found:
                    found[factor.name] = (rest, value)
                    break
        return found

    def _solvable_factors(self, value: Value) -> Iterable[tuple[Tensor, Expr]]:
        powers = value.expression.as_powers_dict()
        tensors = [base for base in powers if isinstance(base, Tensor)]
        if (
            any(not isinstance(b, Tensor) and not is_number_or_size(b) for b in powers)
            or not tensors
        ):
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
        if not isinstance(factor, Tensor):
            return True
        if power.is_positive:
            return True
        value = self.by_name.get(factor.name)
        e = value.expression if value else None
        statistic = set(factor.axes) < set(product.axes)
        return statistic and isinstance(e, Pow) and e.exp.is_negative is True

    @cached_property
    def recognitions(self) -> dict[Expr, tuple[Expr, Value]]:
        """Reductions that are, up to a number or a size, the definition of a named value."""
        found: dict[Expr, tuple[Expr, Value]] = {}
        for value in self.values:
            reductions = [f for f in Mul.make_args(value.expression) if isinstance(f, (Sum, Max))]
            if len(reductions) != 1:
                continue
            rest = value.expression / reductions[0]
            if is_number_or_size(rest):
                forms = [reductions[0], self._monomials_unfolded(reductions[0])]
                for form in forms:
                    found.setdefault(form, (value.tensor / rest, value))
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


def relations_of(definition: Definition) -> Relations:
    """Name the parts of every statement and collect the values in order."""
    parts = _Parts(definition)
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
    return Relations(definition, tuple(values), named, scales.finished())


class _Parts:
    """Finds the parts of one statement after the other, and names them."""

    def __init__(self, definition: Definition):
        self.definition = definition
        self.found: dict[Expr, Tensor] = {}
        self.statement = ""
        names = [t.name for t in definition.inputs] + [t.name for t, _ in definition.scalars]
        names += [s.name for s in definition.statements]
        self.taken = {
            *names,
            *(f"d{name}" for name in names),
            *(axis.name for axis in definition.axes),
        }
        met: Counter[Expr] = Counter()
        for statement in definition.statements:
            met.update(_exponentials(statement.expression))
        self.repeated = {e for e, count in met.items() if count > 1}

    def top(self, statement) -> Expr:
        """The expression of ``statement`` with everything below its top under a name."""
        self.statement = statement.name
        e = statement.expression
        if isinstance(e, Pow):
            return e.func(self.inside(e.base), e.exp)
        return e.func(self.inside(e.args[0])) if isinstance(e, exp) else self.rebuilt(e)

    def inside(self, e: Expr) -> Expr:
        """A sum, a reduction or a root that is an operand of something else is a part."""
        if not e.args or not tensors_in(e):
            return e
        e = self.rebuilt(e)
        carries_data = any(t.role != "scalar" for t in tensors_in(e))
        root = isinstance(e, Pow) and e.exp.is_Rational and not e.exp.is_Integer
        return self.part(e) if (isinstance(e, (Add, Reduction)) or root) and carries_data else e

    def rebuilt(self, e: Expr) -> Expr:
        if isinstance(e, Reduction):
            return e.on(self.rebuilt(e.operand))
        if isinstance(e, Reshaping):
            return e.on(self.inside(e.operand))
        if isinstance(e, Add):
            return e.func(
                *(self.product(a) if isinstance(a, Mul) else self.rebuilt(a) for a in e.args)
            )
        if isinstance(e, Mul):
            return self.product(e)
        if isinstance(e, (Pow, Function)) and not e.is_Piecewise:
            rebuilt = e.func(*(self.inside(arg) for arg in e.args))
            return self.part(rebuilt) if e in self.repeated else rebuilt
        return e

    def product(self, e: Expr) -> Expr:
        """A lone reduction with constant factors stays what it is; other sums in a product are
        parts.
        """
        lone = [f for f in e.args if not is_number_or_size(f)]
        if len(lone) == 1 and isinstance(lone[0], Reduction):
            return e.func(*(self.rebuilt(f) for f in e.args))
        return e.func(*(self.inside(f) for f in e.args))

    def part(self, e: Expr) -> Tensor:
        same = _with_names(e, self.found_values())
        if not isinstance(e, Tensor) and same == e:
            return self.named(e, self.name_of(e))
        return same

    def scaled(self, e: Expr, words: str) -> Tensor:
        """The value ``e`` that follows from the others; one for all that are equal."""
        known = [t for expression, t in self.found.items() if expression == e]
        known += [s.tensor for s in self.definition.statements if s.expression == e]
        return known[0] if known else self.named(e, words)

    def named(self, e: Expr, words: str) -> Tensor:
        """A new value ``e``, called ``words``, or so with a number where that name is taken."""
        name, number = words, 2
        while name in self.taken:
            name, number = f"{words}_{number}", number + 1
        axes = self.definition.in_order(axes_of(e))
        tensor = Tensor(name, axes, role="statement", **known_signs(e))
        self.taken.add(name)
        self.found[e] = tensor
        return tensor

    def found_values(self) -> tuple[Value, ...]:
        return tuple(Value(tensor, e) for e, tensor in self.found.items())

    def name_of(self, e: Expr) -> str:
        """A name that says what the part is: ``x_minus_mean``, ``counts_sum``, ``y_root``."""
        kind = "root" if isinstance(e, Pow) else "sum" if isinstance(e, Sum) else "term"
        name = f"{self.statement}_{kind}"
        if isinstance(e, Reduction) and isinstance(e.operand, Tensor):
            name = f"{e.operand.name}_{type(e).__name__.lower()}"
        elif isinstance(e, exp):
            name = f"exp_{e.exp.name}" if isinstance(e.exp, Tensor) else f"{self.statement}_exp"
        elif isinstance(e, Add) and len(e.args) == 2:
            name = _name_of_two(*e.args) or name
        return name


def _exponentials(e: Expr) -> list[Expr]:
    """Every exponential that is written in ``e``, each as often as it is written."""
    own = [e] if isinstance(e, exp) and tensors_in(e) else []
    return own + [found for arg in e.args for found in _exponentials(arg)]


def _name_of_two(a: Expr, b: Expr) -> str | None:
    first, second = sorted((a, b), key=lambda e: (e.could_extract_minus_sign(), _scalar(e)))
    sign = "minus" if second.could_extract_minus_sign() else "plus"
    second = -second if sign == "minus" else second
    plain = all(isinstance(e, Tensor) or (e.is_Integer and e >= 0) for e in (first, second))
    name = f"{getattr(first, 'name', first)}_{sign}_{getattr(second, 'name', second)}"
    return name if plain and name.isidentifier() and len(name) <= 30 else None


def _scalar(e: Expr) -> bool:
    return getattr(e, "role", "scalar") == "scalar"


def _with_names(e: Expr, parts: Iterable[Value]) -> Expr:
    """``e`` with the parts in it under their names: a part, a multiple of it, or a whole power
    of it.
    """
    exact = {part.expression: part.tensor for part in parts}
    sums = {_primitive(a)[1]: (_primitive(a)[0], t) for a, t in exact.items() if isinstance(a, Add)}
    roots = {part.expression.base: part for part in parts if isinstance(part.expression, Pow)}

    def named(node):
        if node in exact:
            return exact[node]
        if isinstance(node, Add):
            factor, primitive = _primitive(node)
            if primitive in sums:
                own, tensor = sums[primitive]
                return factor / own * tensor
        if (
            isinstance(node, Pow)
            and node.base in roots
            and node.exp.is_Rational
            and not node.exp.is_Integer
        ):
            part = roots[node.base]
            ratio = node.exp / part.expression.exp
            return part.tensor**ratio if ratio.is_Integer else None
        return None

    return everywhere(e, named)


def _primitive(e: Add) -> tuple[Expr, Expr]:
    """``e`` as a number times a sum without common divisors, which is the same sum for ``e`` and
    ``-e``.
    """
    content, primitive = e.primitive()
    if primitive.could_extract_minus_sign():
        return -content, Add(*(-term for term in primitive.args))
    return content, primitive
