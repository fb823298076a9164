"""Calls of the notation's own nodes inside a formula; nodes name their axes and align by name."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial

from sympy import Expr, Integer

from derive.claims.reading.composed import total
from derive.claims.reading.diagonals import diagonal, identity
from derive.claims.reading.entries_at import READS, joined, new_axis, read_along
from derive.claims.reading.matrices import MATRICES, of_matrix
from derive.claims.reading.names import TextNames
from derive.claims.reading.operations.choosing import maximum, minimum, where
from derive.claims.reading.operations.picking import hot, indices, kept_of
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.usage import USAGE
from derive.claims.reading.values import INDEX, MASK, NUMBER, Extent, Space, TextValue, number
from derive.language.errors import NotationError
from derive.language.kept_labels import with_ignored
from derive.language.lexicon import WORDS
from derive.language.nodes import (
    ArgMax,
    Flatten,
    Max,
    Position,
    Unflatten,
    renamed,
)
from derive.language.segments import SEGMENTS
from derive.language.symbols import Axis, axes_of
from derive.language.words import NotationWord

# Words that a text in torch's names may have too.
ANYWHERE = frozenset({"Min", "Rational", "Piecewise", "Axis"})


def uses_notation(tree: ast.AST) -> bool:
    """Whether a text uses the notation, so that its values align by axis name."""
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(func, ast.Name) and func.id in CALLS.keys() - ANYWHERE for func in calls)


class Notation:
    """Reads calls of the notation's nodes; ``read`` reads any expression, ``size`` the name of a
    size.
    """

    def __init__(self, space: Space, names: TextNames, read: Callable, local: Callable):
        self.space, self.names, self.read, self.local = space, names, read, local

    def call(self, node: ast.Call) -> TextValue:
        name = node.func.id
        keywords = {k.arg: k.value for k in node.keywords}
        allowed = WORDS[name].options if name in WORDS else frozenset()
        if set(keywords) - allowed or any(isinstance(a, ast.Starred) for a in node.args):
            raise Refusal(f"{name} has no such argument", USAGE[name])
        try:
            return CALLS[name](self, *node.args, **keywords)
        except TypeError as error:
            if "argument" not in str(error):
                raise
            raise Refusal(f"{name} takes other arguments", USAGE[name]) from None

    def operand(self, node: ast.AST) -> TextValue:
        value = self.read(node)
        if not isinstance(value, TextValue):
            raise Refusal("this is not an expression", "write it in tensors and functions", node)
        return value

    def axis(self, node: ast.AST, among: TextValue | None = None, what: str = "") -> Axis:
        """The axis that ``node`` names, restricted to the axes of ``among`` if given."""
        axis = self.known_axis(node)
        if axis is None:
            raise Refusal(
                "this is not an axis",
                f"axes are named, not numbered: {', '.join(self.names.axes)}; in torch .sum(0)",
                node,
            )
        if among is not None and among.kind != NUMBER and axis not in among.dims:
            has = ", ".join(a.name for a in among.axes) or "none"
            raise Refusal(f"{what}: the operand has no axis {axis}", f"its axes are: {has}", node)
        return axis

    def known_axis(self, node: ast.AST) -> Axis | None:
        if not isinstance(node, ast.Name):
            return None
        local = self.local(node.id)
        if isinstance(local, TextValue):
            return local.expression if isinstance(local.expression, Axis) else None
        own = self.names.ours(node.id)
        return self.names.axis(own) or self.known_axis_named(own)

    def known_axis_named(self, name: str) -> Axis | None:
        return {axis.name: axis for axis in self.space.definition.axes}.get(name)

    def value(self, e, axes, of: TextValue, kind: str = "tensor") -> TextValue:
        dims = self.space.definition.in_order(set(axes))
        return self.space.made(e, dims, of.extent.inside(), kind=kind, by_name=True)

    def sum(self, operand, *axes) -> TextValue:
        x = self.operand(operand)
        gone = [self.axis(node, x, "Sum") for node in axes]
        if not gone or len(set(gone)) != len(gone):
            raise Refusal("Sum names each axis once", USAGE["Sum"])
        left = set(x.axes) - set(gone)
        return self.value(total(x.expression, gone, self.space.size), left, x)

    def max(self, operand, *others) -> TextValue:
        if len(others) == 1 and self.known_axis(others[0]) and not self._is_value(others[0]):
            x = self.operand(operand)
            axis = self.axis(others[0], x, "Max")
            e = Max.over(x.expression, [axis]) if axis in axes_of(x.expression) else x.expression
            return self.value(e, set(x.axes) - {axis}, x)
        return self._extreme(maximum, operand, others)

    def min(self, operand, *others) -> TextValue:
        return self._extreme(minimum, operand, others)

    def _is_value(self, node: ast.Name) -> bool:
        return self.names.ours(node.id) in self.names.tensors or bool(self.local(node.id))

    def _extreme(self, choose: Callable, operand, others) -> TextValue:
        result = self.operand(operand)
        for other in others:
            result = choose(self.space, result, self.operand(other))
        return result

    def arg_max(self, operand, axis) -> TextValue:
        x = self.operand(operand)
        along = self.axis(axis, x, "ArgMax")
        e = ArgMax.over(x.expression, [along])
        return self.value(e, set(x.axes) - {along}, x, INDEX)

    def one_hot(self, index, axis) -> TextValue:
        i = indices(self.operand(index), "what OneHot takes")
        along = self.axis(axis)
        if along in i.axes:
            raise Refusal(f"the index lies along {along} itself", USAGE["OneHot"])
        kept = {t.kept.name: t.kept for t in self.space.definition.ignoring}
        return self.value(with_ignored(hot(i.expression, along), kept), {*i.axes, along}, i)

    def by_label(self, operand, index, axis, name: str) -> TextValue:
        x, i = self.operand(operand), indices(self.operand(index), f"what {name} takes")
        along = self.axis(axis)
        try:
            e = SEGMENTS[name](x.expression, i.expression, along)
        except NotationError as error:
            raise Refusal(error.problem, error.remedy) from None
        kept = {t.kept.name: t.kept for t in self.space.definition.ignoring}
        return self.value(with_ignored(e, kept), axes_of(e), x)

    def kept(self, labels) -> TextValue:
        i = indices(self.operand(labels), "what Kept takes")
        return self.value(kept_of(self.space, i), i.axes, i)

    def position(self, axis) -> TextValue:
        along = self.axis(axis)
        return self.space.made(Position.over(Integer(0), [along]), (along,), Extent(), by_name=True)

    def broadcast(self, operand, *axes) -> TextValue:
        x = self.operand(operand)
        return self.value(x.expression, {*x.axes, *(self.axis(node) for node in axes)}, x)

    def rename(self, operand, old, new) -> TextValue:
        x = self.operand(operand)
        before = self.axis(old, x, "Rename")
        after = self.known_axis(new)
        if after is None and isinstance(new, ast.Name) and not self._is_value(new):
            after = self.space.named_twin(new.id, before)
        if after is None or self.space.size(after) != self.space.size(before) or after in x.dims:
            raise Refusal(f"{before} cannot be renamed to this", USAGE["Rename"], new)
        return self.value(
            renamed(x.expression, {before: after}), {*x.axes, after} - {before}, x, x.kind
        )

    def flatten(self, operand, *axes, into) -> TextValue:
        x = self.operand(operand)
        parts = [self.axis(node, x, "Flatten") for node in axes]
        flat = self.axis(into)
        if self.space.flat_of(parts) != self.space.size(flat):
            raise Refusal(f"{flat} is not these axes flattened", USAGE["Flatten"], into)
        return self.value(Flatten.over(x.expression, parts, [flat]), {*x.axes, flat} - {*parts}, x)

    def unflatten(self, operand, axis, into) -> TextValue:
        x = self.operand(operand)
        flat = self.axis(axis, x, "Unflatten")
        if not isinstance(into, ast.Tuple):
            raise Refusal("put the resulting axes in brackets", USAGE["Unflatten"], into)
        parts = [self.axis(node) for node in into.elts]
        if self.space.flat_of(parts) != self.space.size(flat):
            raise Refusal(f"{flat} is not these axes flattened", USAGE["Unflatten"], into)
        return self.value(
            Unflatten.over(x.expression, [flat], parts), {*x.axes, *parts} - {flat}, x
        )

    def along(self, *operands, make: Callable, **options) -> TextValue:
        if not operands:
            raise Refusal("this takes a tensor and an axis", USAGE["CumSum"])
        *operands, axis = operands
        values = [self.operand(node) for node in operands]
        along = self.axis(axis)
        if not values or not any(along in x.axes for x in values):
            raise Refusal(f"the operand has no axis {along}", USAGE["CumSum"], axis)
        axes = {along}.union(*(x.axes for x in values))
        given = {}
        for name, node in options.items():
            if name == "initial":
                given[name] = self.operand(node).expression
            elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
                given[name] = node.value
            else:
                raise Refusal(f"{name} is True or False", USAGE["CumSum"], node)
        try:
            e = make(*(x.expression for x in values), along, **given)
        except NotationError as error:
            raise Refusal(error.problem, error.remedy, axis) from None
        return self.value(e, axes, values[0])

    def rational(self, above, below=None) -> TextValue:
        parts = [self.read(part) for part in (above, below) if part is not None]
        if not all(isinstance(p, TextValue) and p.expression.is_Rational for p in parts):
            raise Refusal("Rational takes numbers", USAGE["Rational"])
        if len(parts) == 2 and parts[1].expression == 0:
            raise Refusal("this divides by 0", USAGE["Rational"])
        return number(parts[0].expression / (parts[1].expression if below else Integer(1)))

    def piecewise(self, *choices) -> TextValue:
        """Build a piecewise value from the last choice to the first."""
        result = None
        for choice in reversed(choices):
            if not isinstance(choice, ast.Tuple) or len(choice.elts) != 2:
                raise Refusal(
                    "each choice is a pair (value, condition)", USAGE["Piecewise"], choice
                )
            value, condition = self.operand(choice.elts[0]), choice.elts[1]
            last = isinstance(condition, ast.Constant) and condition.value is True
            if last != (result is None):
                raise Refusal(
                    "the last choice must be (value, True)", USAGE["Piecewise"], condition
                )
            if last:
                result = value
                continue
            mask = self.operand(condition)
            if mask.kind != MASK:
                raise Refusal("this is not a condition", "compare: x > 0", condition)
            result = where(self.space, mask, value, result)
        if result is None:
            raise Refusal("Piecewise has no choices", USAGE["Piecewise"])
        return result


def _made(word: NotationWord) -> Callable[..., Expr]:
    """How an expression is made; a node as it stands in a derivative, unchecked."""
    kind = word.make
    return (lambda x, axis: kind.over(x, [axis])) if isinstance(kind, type) else kind


CALLS: dict[str, Callable[..., TextValue]] = {
    "Sum": Notation.sum,
    "Max": Notation.max,
    "Min": Notation.min,
    "ArgMax": Notation.arg_max,
    "OneHot": Notation.one_hot,
    "Kept": Notation.kept,
    "Position": Notation.position,
    "Identity": identity,
    "Diagonal": diagonal,
    "Broadcast": Notation.broadcast,
    "Rename": Notation.rename,
    "Flatten": Notation.flatten,
    "Unflatten": Notation.unflatten,
    "Rational": Notation.rational,
    "Piecewise": Notation.piecewise,
    "Axis": new_axis,
    "Concat": joined,
    **{name: partial(read_along, name=name) for name in READS},
    **{name: partial(Notation.by_label, name=name) for name in SEGMENTS},
    **{name: partial(of_matrix, name=name) for name in MATRICES},
    **{n: partial(Notation.along, make=_made(w)) for n, w in WORDS.items() if w.runs_along},
}
