"""The second derivatives as one short program.

In: a `SecondOrder`. Out: lines: the tangents of the outputs and the gradients of the inputs, from
the upstream gradients, the vectors, the inputs and what the forward saved. It is the double
backward, then the pullback of its cotangents, where a value has one name and is computed once, and
the cotangents of outputs that are not saved are 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sympy import Expr, Integer

from derive.gradient.closing.factoring import factored
from derive.gradient.closing.recomputation import named
from derive.gradient.orders.forwards import FreeNames
from derive.gradient.orders.second import Behind, SecondOrder
from derive.language.choices import written_in
from derive.language.nodes import Reindexing, Sum, along
from derive.language.symbols import Tensor, is_constant, tensors_in
from derive.language.traversal import everywhere
from derive.proof.proving.forward_plan import forward_plan

LINEAR = Sum, Reindexing


def lines_of(
    program: Behind, saved: Collection[str], wanted: Collection[str] = ()
) -> dict[Tensor, Expr]:
    """The lines that the results need, or of these those ``wanted``, in a reader's names, with the
    values of the program's own forward that they read.
    """
    total = program.proved.definition.output.name
    plan = {v.tensor: v.expression for v in forward_plan(program.form) if v.tensor.name != total}
    computed = {t.name for t in plan}
    own = {t: e for t, e in program.form.shown if t.name not in computed}
    return _needed(plan | own, {*wanted} or {t.name for t in program.results.values()}, saved)


def in_one_program(order: SecondOrder, of: str | None = None) -> dict[Tensor, Expr]:
    """The lines of everything; with ``of``, those of one input's gradient."""
    saved = {t.name for t in order.first.closed_form.saved}
    lines, reached = lines_of(order.second, saved), order.second.results
    known: dict[str, Expr] = {t.name: t.at_home for e in lines.values() for t in tensors_in(e)}
    arriving = {t.name for t in reached.values()}
    known |= {c.name: Integer(0) for c in order.cotangents.values() if c.name not in arriving}
    results = {t.name: reached.get(name) for name, t in order.pullback.results.items()}
    free = FreeNames((t.name for t in lines), results)
    for tensor, written in lines_of(order.pullback, saved).items():
        e = _with(known, written)
        same = (t for t, other in lines.items() if (other, t.home) == (e, tensor.home))
        if tensor.name in results:
            direct = results[tensor.name]
            lines[tensor] = e if direct is None else factored(e + lines[direct])
        elif isinstance(e, Tensor) or is_constant(e):
            known[tensor.name] = e
        elif (earlier := next(same, None)) is not None:
            known[tensor.name] = earlier
        else:
            own = known[tensor.name] = named(tensor, free(tensor.name))
            lines[own] = e
    asked = {*results, *(t.name for t in order.tangents)}
    return _needed(lines, asked if of is None else {order.pullback.results[of].name}, saved)


def _with(known: Mapping[str, Expr], e: Expr) -> Expr:
    """``e`` with the ``known`` for the tensors of their names, and without sums of 0."""
    met = {t: along(known[t.name], t) for t in tensors_in(e) if t.name in known}
    return everywhere(
        written_in(e, met),
        lambda node: Integer(0) if isinstance(node, LINEAR) and node.operand == 0 else None,
    )


def _needed(
    lines: dict[Tensor, Expr], wanted: Collection[str], at_hand: Collection[str]
) -> dict[Tensor, Expr]:
    """The lines of what is ``wanted``, and of what these read and is not at hand."""
    needed, kept = {*wanted}, []
    for tensor, e in reversed(lines.items()):
        if tensor.name in needed - {*at_hand}:
            kept.append((tensor, e))
            needed |= {t.name for t in tensors_in(e)}
    return dict(reversed(kept))
