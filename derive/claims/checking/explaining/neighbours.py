"""Similar forwards: is a wrong gradient right for a forward that differs slightly?

The definition itself is edited, one place after the other: a size that divides by one more or one
less, a number or a factor left out, a sum along another axis, a scalar that stands outside of a
root, a statistic through which nothing flows. Each edited forward is differentiated like any other,
and the claim, read with the names of the edited forward, is compared with its gradient. Nothing
here is a list of known mistakes: the edits know operators, not functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from sympy import Add, Expr, Mul, Pow, S, sign

from derive.claims.checking.explaining.atomised import atomised
from derive.claims.checking.numbers.arithmetic import Floating, Undefined, Unevaluable
from derive.claims.checking.numbers.comparison import difference_at
from derive.claims.checking.numbers.evaluation import Evaluation, Point
from derive.claims.checking.numbers.tables import UNDEFINED
from derive.claims.checking.words.spoken import called, formula, now_spoken
from derive.gradient.chain.chain import Chain, adjoint_of, derive_chain
from derive.language.nodes import Reduction, Sum
from derive.language.notation.definition import Definition
from derive.language.symbols import (
    Axis,
    Tensor,
    axes_of,
    is_constant,
    is_number_or_size,
    tensors_in,
)

EXACT = 1e-30  # relative; of numbers of fifty digits
MOST_PAIRS = 60  # more pairs of edits would take longer than an answer may


@dataclass(frozen=True)
class Neighbour:
    """A forward that differs by ``change``, and its chain; ``tensors`` maps tensors whose axes
    changed.
    """

    change: str
    chain: Chain = field(repr=False)
    tensors: tuple[tuple[Tensor, Tensor], ...] = ()

    def explains(self, of: Tensor, claimed: Expr, points: Sequence[Point]) -> bool:
        """Whether ``claimed`` is the gradient of ``of`` in this forward, to 30 digits."""
        arriving = {adjoint_of(old): adjoint_of(new) for old, new in self.tensors}
        read = claimed.xreplace(dict(self.tensors) | arriving)
        if not axes_of(read) <= set(of.home) or not self._names_all(read):
            return False
        evaluations = [Evaluation(self.chain, point, Floating()) for point in points]
        try:
            if difference_at(evaluations, of, read) > EXACT:
                return False
            gradients = [t for t in tensors_in(read) if t.role == "adjoint"]
            return not any(_is_zero(evaluations[0], e) for e in (read, *gradients))
        except (Undefined, Unevaluable):
            return False

    def _names_all(self, e: Expr) -> bool:
        """Whether every statement in ``e``, and every gradient of one, has the same axes here."""
        definition = self.chain.definition
        homes = {s.name: s.tensor.home for s in definition.statements}
        homes |= {f"d{name}": home for name, home in homes.items()}
        return all(homes.get(t.name, t.home) == t.home for t in tensors_in(e))


def _is_zero(evaluation: Evaluation, e: Expr) -> bool:
    """Whether no gradient flows in this forward, so that agreement is meaningless."""
    entries = evaluation.table(e).entries.values()
    return all(entry is UNDEFINED or abs(entry) < EXACT for entry in entries)


def neighbour_of(
    definition: Definition, of: Tensor, claimed: Expr, points: Sequence[Point]
) -> Neighbour | None:
    """The most similar forward for which ``claimed`` is right."""
    few = list(points[:2])
    for neighbour in neighbours(definition, of):
        if neighbour.explains(of, claimed, few) and neighbour.explains(of, claimed, points):
            return neighbour
    return None


def neighbours(definition: Definition, of: Tensor) -> Iterator[Neighbour]:
    """Single edits first, then pairs of those that change a statement."""
    singles = list(edits(definition, of))
    yield from map(_neighbour, singles)
    yield from constants(definition, of)
    pairs = list(combinations(singles, 2))
    for a, b in pairs if len(pairs) <= MOST_PAIRS else ():
        if a.name != b.name:
            both = edited(a.definition, b.name, b.expression.xreplace(dict(a.tensors)))
            if both is not None:
                change = f"{a.change}, and {b.change}"
                yield _neighbour(replace(both, change=change, tensors=_one_by_one(a, both)))


def _one_by_one(a: EditedDefinition, both: EditedDefinition) -> tuple[tuple[Tensor, Tensor], ...]:
    """The tensors of the first edit as the second leaves them, then those of the second."""
    second = dict(both.tensors)
    first = {old: second.get(new, new) for old, new in a.tensors}
    return tuple((second | first).items())


@dataclass(frozen=True)
class EditedDefinition:
    """A definition in which the statement ``name`` has another expression."""

    change: str
    name: str
    expression: Expr
    definition: Definition
    tensors: tuple[tuple[Tensor, Tensor], ...]


def _neighbour(edit: EditedDefinition) -> Neighbour:
    return Neighbour(edit.change, derive_chain(edit.definition), edit.tensors)


def edits(definition: Definition, of: Tensor) -> Iterator[EditedDefinition]:
    """Every edit of one place in a statement that depends on ``of``."""
    depending = definition.depending_on(of.name)
    for statement in definition.statements:
        if statement.name not in depending or statement.name == of.name:
            continue
        seen = {statement.expression}
        for e in _edited_expressions(statement.expression):
            if e in seen:
                continue
            seen.add(e)
            edit = edited(definition, statement.name, e)
            if edit is not None:
                yield edit


def edited(definition: Definition, name: str, expression: Expr) -> EditedDefinition | None:
    """The definition with another expression for one statement; None if that is not a forward with
    the same output.
    """
    tensors: dict[Tensor, Tensor] = {}
    statements = []
    for statement in definition.statements:
        e = expression if statement.name == name else statement.expression
        e = _along_other_axes(e, tensors)
        if e is None:
            return None
        tensor = statement.tensor
        if axes_of(e) != set(tensor.home) and statement.tensor not in definition.outputs:
            signs = {"positive": True} if tensor.is_positive else {}
            tensor = Tensor(tensor.name, definition.in_order(axes_of(e)), role="statement", **signs)
            tensors[statement.tensor] = tensor
        if not axes_of(e) <= set(tensor.home):
            return None
        statements.append(replace(statement, tensor=tensor, expression=e))
    old = definition.by_name[name].expression
    change = f"{_equals(name)}{formula(expression)} in place of {_equals(name)}{formula(old)}"
    result = replace(definition, statements=tuple(statements))
    return EditedDefinition(change, name, expression, result, tuple(tensors.items()))


def _equals(name: str) -> str:
    """``name = ``; empty for an unnamed statement."""
    return "" if name in now_spoken().made else f"{called(name)} = "


def _along_other_axes(e: Expr, tensors) -> Expr | None:
    """``e`` with tensors whose axes changed; None if a sum would have no axis left."""
    e = e.xreplace(tensors)
    fits = all(set(node.axes) <= axes_of(node.operand) for node in e.atoms(Reduction))
    return e if fits else None


def _edited_expressions(e: Expr) -> Iterator[Expr]:
    """``e`` with one edit of one node."""
    for edit in node_edits:
        for node in _nodes(e):
            for other in edit(node):
                yield e.xreplace({node: other})


def _nodes(e: Expr) -> list[Expr]:
    """The nodes of ``e``, outermost first, without the operands of an index."""
    nodes = [e]
    for arg in e.args:
        if isinstance(arg, Expr):
            nodes += [node for node in _nodes(arg) if node not in nodes]
    return nodes


def _other_divisor(node: Expr) -> Iterator[Expr]:
    """Swap 1/(N - 1) and 1/N: Bessel's correction."""
    if isinstance(node, Pow) and is_number_or_size(node.base) and node.exp.is_negative:
        for step in (1, -1):
            if node.base.has(Axis) and (node.base + step).has(Axis):
                yield (node.base + step) ** node.exp


def _scalar_beside_root(node: Expr) -> Iterator[Expr]:
    """Swap (a + s)**p and (a**|p| + s)**sign(p)."""
    if isinstance(node, Pow) and node.exp.is_Rational and not node.exp.is_Integer:
        terms = Add.make_args(node.base)
        scalars = [t for t in terms if is_constant(t) and not is_number_or_size(t)]
        for scalar in scalars:
            inside = node.base - scalar
            yield (inside ** abs(node.exp) + scalar) ** sign(node.exp)
    if isinstance(node, Add):
        roots = [t for t in node.args if isinstance(t, Pow) and t.exp.is_Rational]
        for root in (r for r in roots if not r.exp.is_Integer):
            rest = node - root
            if is_constant(rest):
                yield (root.base + rest) ** root.exp


def _term_left_out(node: Expr) -> Iterator[Expr]:
    """Drop an added constant."""
    if isinstance(node, Add):
        yield from (node - t for t in node.args if is_constant(t))


def _factor_left_out(node: Expr) -> Iterator[Expr]:
    """Drop a number, a size or an input from a product."""
    if isinstance(node, Mul):
        for factor in node.args:
            if factor != -1 and (
                is_constant(factor) or (isinstance(factor, Tensor) and factor.role == "input")
            ):
                yield node / factor


def _other_axis(node: Expr) -> Iterator[Expr]:
    """Sum along another axis, and divide by its size."""
    for total in [node, *Mul.make_args(node)]:
        if isinstance(total, Sum) and len(total.axes) == 1:
            (axis,) = total.axes
            for other in sorted(axes_of(total.operand) - {axis}, key=str):
                rest = node / total if total is not node else S.One
                if is_number_or_size(rest):
                    yield rest.xreplace({axis: other}) * Sum.over(total.operand, [other])


node_edits: tuple[Callable[[Expr], Iterator[Expr]], ...] = (
    _other_divisor,
    _scalar_beside_root,
    _factor_left_out,
    _term_left_out,
    _other_axis,
)


def constants(definition: Definition, of: Tensor) -> Iterator[Neighbour]:
    """Treat a value as a constant: no gradient flows through it."""
    chain = derive_chain(atomised(definition))
    parts = {s.name: s.expression for s in chain.definition.statements}
    parts = {name: e for name, e in parts.items() if name not in definition.by_name}
    depending, outputs = chain.definition.depending_on(of.name), chain.definition.outputs
    between = [
        s.tensor
        for s in chain.definition.statements
        if s.name in depending and s.tensor not in outputs and s.name != of.name
    ]
    statistics = [t for t in between if set(t.home) < set(of.home)] or between
    own = [t for t in statistics if t.name in definition.by_name]
    groups = [(t,) for t in own] + list(combinations(own, 2)) + [own] + [(t,) for t in between]
    for group in dict.fromkeys(map(tuple, groups)):
        if not group:
            continue
        names = {f"d{t.name}" for t in group}
        adjoints = tuple(
            replace(a, contributions=()) if a.name in names else a for a in chain.adjoints
        )
        listed = " and ".join(called(t.name, parts) for t in group)
        are = "is" if len(group) == 1 else "are"
        yield Neighbour(
            f"{listed} {are} treated as constant, so no gradient flows through",
            replace(chain, adjoints=adjoints),
        )
