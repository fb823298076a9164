"""The table of spellings.

An entry receives a `Pen` on a forward and writes all of its lines. ``same`` says that what comes
out is the same mathematics, so that it has to cost the same; else it is a relative, which has to be
as safe. Either has to be proved for every size where the forward itself is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sympy import Add, Expr, Mul, Piecewise, exp, log, preorder_traversal

from derive.language.declarations import Input
from derive.language.nodes import ArrayNode, OneHot, Position, Reduction, Sum
from derive.language.notation.definition import Definition, Statement
from derive.language.notation.forward import Forward
from derive.language.operations import is_contraction
from derive.language.symbols import Axis, is_constant, tensors_in
from respelling.writing import Pen


@dataclass(frozen=True)
class Spelling:
    """``name`` is what is done; ``applies`` says whether there is anything to do it to, ``pen``
    makes the pen that ``write`` writes with.
    """

    name: str
    same: bool
    write: Callable[[Pen], None]
    applies: Callable[[Definition], object] = lambda definition: True
    pen: Callable[[Definition], Pen] = Pen


def _may_be_renamed(definition: Definition) -> bool:
    """Not where the size of an axis is a formula of the names of others."""
    return not definition.derived


def respelled(definition: Definition, spelling: Spelling) -> type[Forward]:
    """The forward in another spelling, which applies to it."""
    pen = spelling.pen(definition)
    spelling.write(pen)
    return pen.finished()


def inlined(pen: Pen) -> None:
    """Every name but those of the outputs is replaced by what it stands for."""
    outputs = pen.returned or [pen.definition.output.name]
    for statement in pen.definition.statements:
        if statement.name in outputs:
            pen.state(statement, pen.line(statement))
        else:
            pen.meanings[statement.name] = pen.line(statement)


def all_named(pen: Pen) -> None:
    """Every operation is a line, a matrix product being one, and a choice with all that is only
    computed where it is chosen.
    """

    def named(statement: Statement, e: Expr) -> Expr:
        return e if is_constant(e) or isinstance(e, OneHot) else pen.part(statement, e)

    for statement in pen.definition.statements:
        pen.state(statement, _top(pen.line(statement), lambda e, s=statement: named(s, e)))


def _top(e: Expr, named: Callable[[Expr], Expr]) -> Expr:
    """``e`` on operands that are ``named``, each of them likewise."""

    def operand(arg: Expr) -> Expr:
        atom = not arg.args or is_constant(arg) or _is_sign(arg)
        return arg if atom else named(_top(arg, named))

    if isinstance(e, (OneHot, Position, Piecewise)) or is_contraction(e):
        return e
    if isinstance(e, ArrayNode):
        return e.through(operand)
    return e.func(*map(operand, e.args))


def _is_sign(e: Expr) -> bool:
    return isinstance(e, Mul) and len(e.args) == 2 and e.args[0] == -1 and not e.args[1].args


def as_it_is(pen: Pen) -> None:
    for statement in pen.definition.statements:
        pen.state(statement, pen.line(statement))


def others_first(pen: Pen) -> None:
    """What may come later does, and the lines are as they were."""
    for statement in _latest_first(pen.definition.statements):
        pen.state(statement, pen.line(statement))


def _latest_first(statements: Iterable[Statement]) -> list[Statement]:
    """In another order: of those that might be next always the one that was written last."""
    *pending, output = statements
    done: list[Statement] = []
    while pending:
        open_names = {s.name for s in pending}
        ready = [s for s in pending if not open_names & {t.name for t in tensors_in(s.expression)}]
        done.append(ready[-1])
        pending.remove(ready[-1])
    return [*done, output]


def _with_names(definition: Definition, backwards: bool) -> Pen:
    """A pen that gives all tensors and axes other names, in the same order or the other way
    round.
    """
    sizes = [name for name, _ in definition.size_arguments]
    names = sorted([*definition.position, *sizes], reverse=backwards)
    naming = {name: f"t{number:03}" for number, name in enumerate(names)}
    axes = sorted(definition.axes, key=lambda axis: axis.name, reverse=backwards)
    along = {axis: (_called(f"A{number:02}", axis),) for number, axis in enumerate(axes)}
    return Pen(definition, lambda name: naming.get(name, name), along)


def _called(name: str, axis: Axis) -> Axis:
    return type(axis)(name) if axis.length is None else type(axis)(name, axis.length)


def in_base_2(pen: Pen) -> None:
    """exp(u) = 2**v with v = u/log(2) on a line before; log(u) = w*log(2) with w = log(u)/log(2)
    on one, but not in a choice, which may choose not to take the logarithm.
    """

    def spelled(statement: Statement, e: Expr, chosen: bool) -> Expr:
        if is_constant(e):
            return e
        if isinstance(e, exp):
            return 2 ** pen.part(statement, e.exp / log(2))
        if isinstance(e, log) and not chosen:
            return log(2) * pen.part(statement, e / log(2))
        return e

    _rewrite_all(pen, spelled)


def added(pen: Pen) -> None:
    """a - b = a + m with m = -b on a line before."""

    def spelled(statement: Statement, e: Expr, chosen: bool) -> Expr:
        if not isinstance(e, Add) or chosen:
            return e
        return Add(*(pen.part(statement, a) if _is_subtracted(a) else a for a in e.args))

    _rewrite_all(pen, spelled)


def _is_subtracted(e: Expr) -> bool:
    return bool(tensors_in(e)) and not is_constant(e) and e.could_extract_minus_sign()


def two_for_one(pen: Pen) -> None:
    """1 + u becomes 2 + u."""

    def spelled(statement: Statement, e: Expr, chosen: bool) -> Expr:
        return e + 1 if _has_one(e) else e

    _rewrite_all(pen, spelled)


def _has_one(e: Expr) -> bool:
    return isinstance(e, Add) and 1 in e.args and bool(tensors_in(e))


def doubled_lines(pen: Pen) -> None:
    """h = u becomes h = 2*u, which is used as h/2."""
    outputs = pen.returned or [pen.definition.output.name]
    for statement in pen.definition.statements:
        if statement.name in outputs:
            pen.state(statement, pen.line(statement))
        else:
            tensor = pen.state(statement, 2 * pen.line(statement))
            pen.meanings[statement.name] = tensor / 2


def doubled_inputs(pen: Pen) -> None:
    """x is used as h/2, with h = 2*x on the first line."""
    first = pen.definition.statements[0]
    for t in pen.definition.differentiable:
        pen.meanings[t.name] = pen.part(first, 2 * pen.meanings[t.name]) / 2
    as_it_is(pen)


def weighted(pen: Pen) -> None:
    """Every sum along one axis counts its entries with weights, or where nothing is summed every
    entry of the first input has one.
    """
    axis = _summed(pen.definition)
    first = pen.definition.differentiable[0]
    axes = first.home if axis is None else (axis,)
    default = 1 if pen.definition.optional else None  # what may be left out stands last
    weights = pen.declare(pen.free("weights"), Input(*axes, default=default))
    if axis is None:
        line = pen.definition.statements[0]
        pen.meanings[first.name] = pen.part(line, weights * pen.meanings[first.name])

    def spelled(statement: Statement, e: Expr, chosen: bool) -> Expr:
        return e.on(weights * e.operand) if isinstance(e, Sum) and axis in e.axes else e

    _rewrite_all(pen, spelled)


def _summed(definition: Definition) -> Axis | None:
    """The first axis of an input along which anything is summed."""
    own = {axis for t in definition.inputs for axis in t.home}
    for statement in definition.statements:
        for node in preorder_traversal(statement.expression):
            if isinstance(node, Sum) and not node.has(OneHot):
                found = [axis for axis in node.axes if axis in own]
                if found:
                    return found[0]
    return None


def _reduced(definition: Definition) -> Axis | None:
    """An axis that may as well be two: that something is reduced along, if there is one."""
    nodes = [n for s in definition.statements for n in s.expression.atoms(ArrayNode)]
    fixed = {axis for pair in definition.twins for axis in pair}
    fixed |= {a for flat, parts in definition.flattened for a in (flat, *parts)}
    fixed |= {a for n in nodes if isinstance(n, (OneHot, Position)) for a in n.brings}
    fixed |= {axis for _, axis in definition.size_arguments}
    free = [axis for axis in definition.axes if axis not in fixed and axis.length is None]
    reduced = {axis for n in nodes if isinstance(n, Reduction) for axis in n.axes}
    return min(free, key=lambda axis: axis not in reduced, default=None)


def _along_two(definition: Definition) -> Pen:
    axis = _reduced(definition)
    return Pen(definition, along={axis: (axis, Axis(f"{axis.name}_2"))})


def _rewrite_all(pen: Pen, spelled: Callable[[Statement, Expr, bool], Expr]) -> None:
    """Every line with ``spelled`` of every node from within; the last argument says whether the
    node stands in a choice.
    """

    def rewritten(statement: Statement, e: Expr, chosen: bool = False) -> Expr:
        if not e.args or isinstance(e, (OneHot, Position)):
            return e
        inside = chosen or isinstance(e, Piecewise)
        if isinstance(e, ArrayNode):
            e = e.through(lambda operand: rewritten(statement, operand, inside))
        else:
            e = e.func(*(rewritten(statement, arg, inside) for arg in e.args))
        return spelled(statement, e, chosen) if isinstance(e, Expr) else e

    for statement in pen.definition.statements:
        pen.state(statement, rewritten(statement, pen.line(statement)))


def _holds(*kinds: type) -> Callable[[Definition], bool]:
    return lambda definition: any(s.expression.has(*kinds) for s in definition.statements)


def _anywhere(test: Callable[[Expr], bool]) -> Callable[[Definition], bool]:
    return lambda definition: any(
        test(node) for s in definition.statements for node in preorder_traversal(s.expression)
    )


def _has_several(definition: Definition) -> bool:
    return len(definition.statements) > 1


def _subtracts(e: Expr) -> bool:
    return isinstance(e, Add) and any(map(_is_subtracted, e.args))


spellings: tuple[Spelling, ...] = (
    Spelling("inlined", True, inlined, _has_several),
    Spelling("all named", True, all_named),
    Spelling("renamed", True, as_it_is, _may_be_renamed, lambda d: _with_names(d, False)),
    Spelling("reordered", True, others_first, _may_be_renamed, lambda d: _with_names(d, True)),
    Spelling("base 2", True, in_base_2, _holds(exp, log)),
    Spelling("doubled lines", True, doubled_lines, _has_several),
    Spelling("doubled inputs", True, doubled_inputs),
    Spelling("added", True, added, _anywhere(_subtracts)),
    Spelling("two for one", False, two_for_one, _anywhere(_has_one)),
    Spelling("along two", False, as_it_is, _reduced, _along_two),
    Spelling("weighted", False, weighted),
)
