"""The gradient of a statement inside of a forward: more statements, by the chain rule.

    f = Sum(tanh(Sum(x * w, D)) * v, H)
    g = Gradient(f, x)

Between ``f`` and ``x`` each statement has a slope, the gradient of the sum of ``f`` by it: ``f_h``
for ``h``. One that is a number or a tensor is written where it is read. What is only computed to be
differentiated is left out of the forward; the lines and their slopes are kept beside it
(`InnerGradient`), so that these are proved as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from sympy import Dummy, Expr, Function, Integer, Piecewise, Pow, exp

from derive.gradient.chain.chain import derive_chain
from derive.language.array_node import ArrayNode
from derive.language.detached import Detach
from derive.language.errors import NotationError, Place
from derive.language.formulas.text import formula
from derive.language.gradient import PendingGradient
from derive.language.names import unused
from derive.language.nodes import OneHot, Sum, along, summed
from derive.language.notation.definition import Definition, InnerGradient, Statement
from derive.language.notation.made_axes import flattened_in, twins_in
from derive.language.notation.placing import placed_in
from derive.language.notation.slope import TotalGradient
from derive.language.notation.statements import known_signs
from derive.language.pending import Pending
from derive.language.symbols import Axis, Tensor, axes_of, is_constant, ordered, tensors_in


@dataclass
class Differentiated:
    """The gradients taken in a class body, by what they are of and by; the slopes, by expression
    and axes; and what there is to prove of these, and of those that are ``called``.
    """

    gradients: dict[tuple[Expr, Tensor], Tensor] = field(default_factory=dict)
    slopes: dict[tuple[Expr, tuple[Axis, ...]], Tensor] = field(default_factory=dict)
    inner: list[InnerGradient] = field(default_factory=list)
    called: list[InnerGradient] = field(default_factory=list)


def placed_gradient(body, gradient: PendingGradient, name: str, place: Place) -> Tensor:
    """The slopes between the two join ``body``, and the gradient under the ``name``."""
    of, by = gradient.of, gradient.by
    inner = unused(of.own_name if isinstance(of, Pending) else f"{name}_of", body.has)
    of = placed_in(body, inner, of, place)
    if body.tensors.get(by.name) != by:
        raise NotationError(
            f"{gradient.written}: {by} is not a tensor of this forward",
            "differentiate by an input or a statement of it",
        )
    found = body.differentiated.gradients.get((of, by))
    if found is None:
        found = body.differentiated.gradients[of, by] = _Slopes(body, of, by, name, place).stated()
    elif name == body.last[0]:
        found = body.state(name, found, place)  # once more, under a name of its own
    return found


@dataclass
class _Slopes:
    """The slopes between ``of`` and ``by``, as statements of ``body``."""

    body: object
    of: Expr
    by: Tensor
    name: str
    place: Place
    known: dict[str, Expr] = field(default_factory=dict)  # by the name of what it is a slope by

    def stated(self) -> Tensor:
        """The gradient, after the other slopes that it needs. Raises `NotationError` where it is
        the same number everywhere.
        """
        lines = self.lines
        chain = derive_chain(_as_input(lines, self.by))
        self.known[lines.output.name] = Integer(1)
        steps = [TotalGradient(lines.output, Integer(1), Integer(1))]
        own = {s.name for s in lines.statements}
        adjoints = [a for a in chain.adjoints if a.of.name in own]
        (last,) = (a for a in chain.adjoints if a.of.name == self.by.name)
        for k, adjoint in enumerate(adjoints):
            value = self._written(adjoint.expression)
            later = (a.expression for a in (*adjoints[k:], last))
            whole = any(_is_reshaped(e, adjoint.name) for e in later)
            read = self.known[adjoint.of.name] = self._slope(adjoint.of, value, whole)
            steps.append(TotalGradient(adjoint.of, read, value))
        value = self._written(last.expression)
        if is_constant(value):
            raise NotationError(
                f"Gradient({self.of}, {self.by}) is {value} everywhere", f"write {value}"
            )
        found = self._state(self.name, self.by.home, value)
        steps.append(TotalGradient(self.by, found, value))
        self.body.differentiated.inner.append(InnerGradient(lines, tuple(steps)))
        return found

    @cached_property
    def lines(self) -> Definition:
        """The statements on the way from ``by`` to the sum of ``of``, in order, and that sum."""
        statements = self.body.statements
        total = Tensor(unused("total", self.body.has), (), role="statement")
        whole = summed(self.of, ordered(axes_of(self.of)))
        last = self._with_names(Statement(total, whole, self.place), self.name)
        for s in self._before(last)[:-1]:
            named = self._with_names(s, s.name)
            statements[statements.index(s)] = named
        return _part(self.body, self._before(last), self.by)

    def _before(self, last: Statement) -> list[Statement]:
        """``last`` and the statements from ``by`` to there, in order. Raises `NotationError` where
        there is no way.
        """
        depending = {self.by.name}
        for s in self.body.statements:
            if s.name != self.by.name and depending & {t.name for t in tensors_in(s.expression)}:
                depending.add(s.name)
        needed, found = {last.name}, []
        for s in (last, *reversed(self.body.statements)):
            if s.name in needed and (s is last or s.name in depending - {self.by.name}):
                needed |= {t.name for t in tensors_in(s.expression)}
                found.append(s)
        if self.by.name not in needed:
            raise NotationError(
                f"Gradient({self.of}, {self.by}): {self.of} is not computed from {self.by}",
                "differentiate by what it is computed from, or write 0",
            )
        self._check_no_recurrence(needed)
        return found[::-1]

    def _check_no_recurrence(self, needed: set[str]) -> None:
        """Refuse a recurrence on the way: its state before is held fixed in a step."""
        for s in reversed(self.body.statements):
            if s.name in needed - {self.by.name}:
                needed |= {t.name for t in tensors_in(s.expression)}
        if states := needed & {before for before, _ in self.body.recurrences.following()}:
            raise NotationError(
                f"Gradient({self.of}, {self.by}) would go through the recurrence of {min(states)}",
                "write its places out in a for loop over a fixed count, or a linear one as Scan",
            )

    def _with_names(self, statement: Statement, name: str) -> Statement:
        """``statement`` with names for the `_parts` of it, which are stated before."""
        body, e = self.body, statement.expression
        while parts := _parts(e):
            part, own = parts[0]
            before = body.statements
            if statement in before:
                before = before[: before.index(statement)]
            known = {s.expression: s.tensor for s in before}
            if part not in known:
                own = unused(f"{name}_{own}", body.has)
                tensor = Tensor(own, ordered(axes_of(part)), role="statement", **known_signs(part))
                known[part] = body.append(
                    Statement(tensor, part, self.place, self.name), len(before)
                )
            e = e.xreplace({part: known[part]})
        return replace(statement, expression=e)

    def _written(self, e: Expr) -> Expr:
        """``e`` with slopes for what the chain calls gradients, and tensors as they are here; a sum
        along an axis that is gone with that is a multiple.
        """
        if isinstance(e, Tensor) and e.role == "adjoint":
            return along(self.known[e.name.removeprefix("d")], e)
        if isinstance(e, Tensor):
            return self.body.tensors[e.name].along(e.axes)
        if isinstance(e, Sum):
            return summed(self._written(e.operand), e.axes, self.lines.size)
        if isinstance(e, ArrayNode):
            return e.through(self._written)
        return e.func(*map(self._written, e.args)) if e.args else e

    def _slope(self, by: Tensor, value: Expr, whole: bool) -> Expr:
        """The slope by a statement: the expression itself where that is short, else its name; along
        all axes of the statement, if ``whole``.
        """
        rest = value.as_coeff_Mul()[1]
        if value == 0 or (not whole and (is_constant(value) or isinstance(rest, (Tensor, OneHot)))):
            return value
        axes = {*by.home} if whole else axes_of(value)
        home = tuple(axis for axis in by.home if axis in axes)
        if (value, home) not in self.body.differentiated.slopes:
            of = self.of if isinstance(self.of, Tensor) else self.name
            name = unused(f"{of}_{by}", self.body.has)
            self.body.differentiated.slopes[value, home] = self._state(name, home, value)
        return self.body.differentiated.slopes[value, home]

    def _state(self, name: str, home, value: Expr) -> Tensor:
        tensor = Tensor(name, home, role="statement", **known_signs(value))
        return self.body.append(Statement(tensor, value, self.place, self.name))


def _part(body, statements: Sequence[Statement], by: Tensor) -> Definition:
    """Some statements of ``body`` as a forward of their own."""
    expressions = [s.expression for s in (*body.statements, statements[-1])]
    twins = twins_in(expressions)
    flattened = flattened_in(expressions, twins)
    own = {s.name for s in statements}
    read = {t.at_home for s in statements for t in tensors_in(s.expression)}
    inputs = {t for t in read if t.role != "scalar" and t.name not in own} | {by}
    return Definition(
        body.name,
        "",
        statements[-1].place,
        tuple(sorted(inputs, key=str)),
        tuple(body.scalars),
        tuple(statements),
        tuple(body.ordered_axes(expressions, twins, flattened)),
        tuple(twins.items()),
        tuple(flattened.items()),
        size_arguments=tuple(body.sizes),
    )


def _as_input(lines: Definition, by: Tensor) -> Definition:
    """``lines`` where ``by`` has a gradient, whatever it is in the forward."""
    own = Tensor(by.name, by.home, role="input", **by._assumptions_orig)

    def read(e: Expr) -> Expr:
        return e.xreplace({t: own.along(t.axes) for t in tensors_in(e) if t.name == by.name})

    statements = tuple(replace(s, expression=read(s.expression)) for s in lines.statements)
    return replace(lines, inputs=(own,), statements=statements)


def _parts(e: Expr) -> list[tuple[Expr, str]]:
    """The functions in ``e`` whose slope is written in their own value, as that of tanh(u) is
    1 - tanh(u)**2, and the sums in which others are taken: what the slopes would hold several
    times. Each with what it may be called, the smallest first.
    """
    parts: dict[Expr, str] = {}
    for f in e.atoms(Function, Pow):
        if isinstance(f, (ArrayNode, Detach, Piecewise)) or is_constant(f):
            continue
        u = f.args[0]
        if f != e and _has_own_slope(f):
            parts[f] = "share" if isinstance(f, Pow) else type(f).__name__
        elif (
            isinstance(f, Function) and not isinstance(u, Tensor) and u.has(Sum) and not u.has(exp)
        ):
            parts[u] = "in"
    return sorted(parts.items(), key=lambda part: (part[0].count_ops(), part[0].sort_key()))


def _has_own_slope(f: Function | Pow) -> bool:
    """Whether the derivative of ``f`` by its argument is written in ``f`` alone, as that of 1/(1 +
    exp(-u)) is. An exponential's is too, but that may overflow, and is followed through its
    readers.
    """
    if isinstance(f, Pow):
        return f.exp == -1 and isinstance(f.base.as_coeff_Add()[1], exp)
    u, value = Dummy(real=True), Dummy(real=True)
    slope = f.func(u).diff(u).xreplace({f.func(u): value}) if len(f.args) == 1 else u
    return not isinstance(f, exp) and value in slope.free_symbols and u not in slope.free_symbols


def _is_reshaped(e: Expr, name: str) -> bool:
    """Whether the tensor called ``name`` is met inside of an array node that is no sum."""
    nodes = (node for node in e.atoms(ArrayNode) if not isinstance(node, Sum))
    return any(t.name == name for node in nodes for t in tensors_in(node))


def without_idle(body) -> list[Statement]:
    """The statements of ``body`` without those only computed to be differentiated."""
    inside = {s.name for inner in body.differentiated.inner for s in inner.definition.statements}
    inside |= {t.name for t in body.differentiated.slopes.values()}
    needed = {*(body.returned or [body.statements[-1].name])}
    needed |= {t.name for s in body.reductions.values() for t in tensors_in(s.expression)}
    found = []
    for s in reversed(body.statements):
        if s.name in needed or s.name not in inside:
            needed |= {t.name for t in tensors_in(s.expression)}
            found.append(s)
    return found[::-1]


def what_is_said(body, before: Sequence[Statement], after: Sequence[Statement]) -> list[str]:
    """Remarks on the gradients among the statements: of what, and by what; ``after`` are these
    under their final names.
    """
    names = {old.name: new.name for old, new in zip(before, after, strict=True)}
    lines = (s for inner in body.differentiated.inner for s in inner.definition.statements)
    left_out = {s.name: s.expression for s in lines if s.name not in names}
    said = []
    for (of, by), tensor in body.differentiated.gradients.items():
        if tensor.name in names:
            what = names.get(str(of), formula(of))
            where = f", with {of} = {formula(left_out[of.name])}" if str(of) in left_out else ""
            by = names.get(by.name, by.name)
            said.append(f"{names[tensor.name]} is the gradient of {what} by {by}{where}.")
    return said
