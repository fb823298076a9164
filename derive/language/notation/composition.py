"""Composition: a forward called inside another becomes a block of statements with a name of its
own.

    class Layer(Forward):
        x, ...  = ...
        h = BatchNorm(x, gain, bias)      # statements h_mean, h_diff, ..., and h itself

At the end of the class body they lose the prefix where no other name is in the way
(``block_names.py``).

A call stands for its output until the assignment is known that gives the block its name; inside a
larger expression the block takes the forward's own name. One of several outputs brings the
statements that it needs, where others have not brought them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sympy import Expr, Integer, Mul

from derive.language.declarations import is_array
from derive.language.domain import Demand
from derive.language.errors import NotationError, Place
from derive.language.kept_labels import kept_tensor
from derive.language.nodes import ArrayNode
from derive.language.notation.call_arguments import bound, bound_axes
from derive.language.notation.definition import REDUCTION
from derive.language.notation.made_axes import flattened_in, twins_in
from derive.language.notation.outputs import as_one_block
from derive.language.notation.placing import placed_in
from derive.language.notation.reduced import as_block
from derive.language.notation.splicing import (
    derived_along,
    read_along,
    spliced,
    taken_along,
    the_one,
)
from derive.language.notation.statements import tensors_outside_conditions
from derive.language.pending import Pending
from derive.language.reading_at import At
from derive.language.symbols import Axis, Tensor, is_constant


@dataclass(frozen=True)
class Call:
    """A forward applied to arguments, waiting for its name."""

    definition: object
    arguments: dict[str, Expr]
    axes: dict[Axis, tuple[Axis, ...]]


@dataclass
class Block:
    """A call inlined as a block: its name, and its tensors so far, by the callee's names; none
    before the first of its outputs has a name.
    """

    name: str = ""
    axes: dict[Axis, tuple[Axis, ...]] = field(default_factory=dict)
    tensors: dict[str, Expr] = field(default_factory=dict)


class PendingBlock(Pending):
    """One output of a call whose block has no name yet."""

    __slots__ = ("block", "call", "output")

    def __new__(cls, call: Call, block: Block, output: str, axes, number: int):
        self = super().__new__(cls, f"{call.definition.name} {number}", axes, role="call")
        self.call, self.block, self.output = call, block, output
        return self

    @property
    def written(self) -> str:
        return f"{self.call.definition.name}(...)"

    @property
    def own_name(self) -> str:
        return self.call.definition.snake

    @property
    def arguments(self) -> tuple[Expr, ...]:
        return tuple(self.call.arguments.values())


_calls = 0


def block_call(forward, args, kwargs) -> PendingBlock | tuple[Expr, ...]:
    """``BatchNorm(x, gain, bias, eps=1e-5)``: binds arguments and axes, by position, and takes the
    reduction by name. One for each output, where there are several.
    """
    reduction = kwargs.get(REDUCTION) if forward.definition.reductions else None
    definition = as_block(forward.definition, reduction)
    if forward.definition.reductions:
        kwargs = {name: value for name, value in kwargs.items() if name != REDUCTION}
    arguments = bound(definition, args, kwargs)
    sizes = {axis: arguments.pop(name) for name, axis in definition.size_arguments}
    axes = bound_axes(definition, arguments, sizes)
    return _pending(definition, arguments, axes | derived_along(definition, axes))


def _pending(definition, arguments, axes) -> PendingBlock | tuple[Expr, ...]:
    global _calls
    outputs, (definition, names) = definition.results, as_one_block(definition)
    call, block, found = Call(definition, arguments, axes), Block(), []
    for output in outputs:
        _calls += 1
        along = spliced(output.axes, {a: (a,) for a in definition.axes} | axes)
        name = names.get(output.name, output.name)
        found.append(PendingBlock(call, block, name, along, _calls))
    return tuple(found) if len(found) > 1 else found[0]


def no_expression(name: str, value: object) -> NotationError:
    """Error for a ``value`` that is none: all outputs of a call at once, or an array."""
    if isinstance(value, tuple) and any(isinstance(v, PendingBlock) for v in value):
        return NotationError(
            f"{name} is given {len(value)} outputs at once", "give each a name: y, mean = ..."
        )
    remedy = "write one expression on the line: y = x - Sum(x, N) / N"
    if is_array(value):
        remedy = f"declare it, and pass the array to the function: {name} = Given(C)"
    return NotationError(
        f"{name} is a {type(value).__name__}, not an expression in tensors", remedy
    )


def placed_block(body, pending: PendingBlock, name: str, place: Place) -> Expr:
    """Append to ``body`` the statements of the callee that the output needs and that are not there
    yet; the output has the ``name`` itself, and the first one gives it to the block.
    """
    block, call, output = pending.block, pending.call, pending.output
    if not block.name:
        block.name, block.axes = name, _axes_here(body, name, call)
        block.tensors = _arguments(body, name, call, block.axes, place)
        body.differentiated.called += call.definition.inner
    elif output in block.tensors:  # which another one needs
        found = block.tensors[output]
        if isinstance(found, Tensor) and found.role == "statement":
            body.renamed.setdefault(found.name, name)
        return found
    tensors, needed = block.tensors, call.definition.needed_for(output)
    states = [c for c in call.definition.carried if c.before.name in needed - tensors.keys()]
    for state in states:
        own = f"{block.name}_{state.before.name}"
        along = spliced(state.before.home, block.axes)
        tensors[state.before.name] = body.recurrences.opened(own, along)
    for statement in call.definition.statements:
        if statement.name in tensors or statement.name not in needed:
            continue
        value = translated(statement.expression, tensors, block.axes)
        if is_constant(value):
            tensors[statement.name] = value  # of the numbers that it was called with
            continue
        own = name if statement.name == output else f"{block.name}_{statement.name}"
        if statement.name in call.definition.ordered:
            body.orders[own] = spliced(statement.tensor.home, block.axes)
        tensors[statement.name] = body.state(own, value, place, block.name, known=True)
    for state in states:
        axis = the_one(state.axis, block.axes, "a recurrence goes along it")
        initial = translated(state.initial, tensors, block.axes)
        before, after = (tensors[t.name] for t in (state.before, state.after))
        body.recurrences.close(before, after, axis, initial, (block.name, place))
    return tensors[output]


def _arguments(body, block: str, call: Call, axes, place: Place) -> dict[str, Expr]:
    """The arguments of a call as tensors or numbers, by the callee's names."""
    definition, tensors, passed = call.definition, {}, {}
    for name in call.arguments:
        passed[name], tensors[name] = _passed(body, block, call, name, axes, place)
    for demand in definition.demands:
        value = translated(demand.expression, passed, axes)
        domain = demand.domain.mapped(lambda limit: translated(limit, passed, axes))
        _demand(body, definition, demand, Demand(value, domain), place)
    for ignoring in definition.ignoring:  # where the caller's label may be
        kept = kept_tensor(tensors[ignoring.label.name])
        tensors[ignoring.kept.name] = kept if kept.name in body.tensors else Integer(1)
    return tensors


def _axes_here(body, block: str, call: Call) -> dict[Axis, tuple[Axis, ...]]:
    """Axes of the callee as axes of ``body``: its own ones have names that are free there."""
    definition, axes = call.definition, dict(call.axes)
    for axis in definition.fixed:
        if axis not in axes:
            taken = (axis,) in axes.values()
            axes[axis] = (Axis(f"{axis.name}_{block}", axis.length) if taken else axis,)
    for _, original in definition.twins:
        axes.setdefault(original, (original,))
    for twin, original in definition.twins:
        if twin not in axes:
            one = the_one(original, axes, f"{definition.name} renames it to {twin}")
            axes[twin] = (_axis_for(body, twin, one, spliced(axes, axes), block),)
    for flat, parts in definition.flattened:
        for part in parts if flat in axes else ():
            if part not in axes:
                axes[part] = (_axis_for(body, part, (), spliced(axes, axes), block),)
        if flat not in axes:
            made_of = spliced(parts, axes)
            axes[flat] = (_axis_for(body, flat, made_of, spliced(axes, axes), block),)
    return axes


def _axis_for(body, axis: Axis, made_of, bound: Collection[Axis], block: str) -> Axis:
    """The name here of an axis that a callee made for itself: its own, unless something else
    has it, such as an axis that is ``bound`` to one of the callee's.
    """
    expressions = [s.expression for s in body.statements]
    twins = twins_in(expressions)
    made = twins | flattened_in(expressions, twins)
    taken = {a for t in body.tensors.values() for a in t.axes} | set(bound)
    if made.get(axis, made_of) == made_of and (axis in made or axis not in taken):
        return axis
    return Axis(f"{axis.name}_{block}")


def _passed(body, block: str, call: Call, name: str, axes, place: Place) -> tuple[Expr, Expr]:
    """An argument as passed, and as a tensor or a number: an expression is stated first."""
    definition, value = call.definition, call.arguments[name]
    defaults = {t.name: default for t, default in definition.scalars}
    if value.atoms(Axis) and name in defaults and value == defaults[name]:
        value = translated(value, {}, axes)  # its sizes are those of the callee
    passed = value = placed_in(body, f"{block}_{name}", value, place)
    if not isinstance(value, Tensor) and not is_constant(value):
        value = body.state(f"{block}_{name}", value, place, block)
    if name in {t.name for t in definition.inputs if t.role == "given"}:
        _check_without_gradient(body, definition, name, value)
    return passed, value


def _demand(body, definition, own: Demand, here: Demand, place: Place) -> None:
    """Check a callee's demand on its numbers here, or demand it of this body's scalars."""
    holds = here.domain.holds(here.expression)
    if holds is False or (holds is None and not is_constant(here.expression)):
        wrong = "is not" if holds is False else "is not known to be"
        raise NotationError(
            f"{definition.name}: {own.expression} has to be {own.domain}, and {here.expression} "
            f"{wrong}",
            "pass a number that is, or an expression whose form shows it, such as exp(...)",
        )
    if holds is None:
        body.demands.setdefault(here, place)


def _check_without_gradient(body, definition, name: str, value: Expr) -> None:
    """Refuse a `Given` argument that would lose a gradient."""
    source = differentiable_in(body, value)
    if source is not None:
        raise NotationError(
            f"{definition.name}: {name} passes no gradient on, but {value} is computed from "
            f"{source}, which has one",
            f"declare {name} as Input in {definition.name}, or pass Detach({value})",
        )


def differentiable_in(body, value: Expr) -> Tensor | None:
    """A differentiable input that ``value`` is computed from, or None. Tensors that are only
    compared in a condition pass no gradient on.
    """
    statements = {s.name: s.expression for s in body.statements}
    unread, seen = [value], set()
    while unread:
        for t in tensors_outside_conditions(unread.pop()):
            if t.role == "input":
                return t.at_home
            if t.name in statements and t.name not in seen:
                seen.add(t.name)
                unread.append(statements[t.name])
    return None


def translated(e, tensors: dict[str, Expr], axes: Mapping[Axis, tuple[Axis, ...]]):
    """An expression of the callee in the caller's tensors and axes; a size is the product of the
    sizes of what its axis became.
    """
    if isinstance(e, Tensor):
        target = tensors[e.name]
        if not isinstance(target, Tensor):
            return target
        met = dict(zip(spliced(e.home, axes), spliced(e.axes, axes), strict=True))
        return target.along(met[axis] for axis in target.axes)  # by name: the order is the caller's
    if isinstance(e, Axis):
        return Mul(*axes[e])
    if isinstance(e, At):
        index = translated(e.index, tensors, axes)
        return read_along(e, translated(e.operand, tensors, axes), index, axes)
    if isinstance(e, ArrayNode):
        operands = [translated(operand, tensors, axes) for operand in e.operands]
        return taken_along(e, operands, axes)
    return e.func(*(translated(arg, tensors, axes) for arg in e.args)) if e.args else e
