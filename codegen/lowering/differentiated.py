"""Lines that torch may differentiate one by one: in forward mode, and under a compiled transform.

Where the lines of a function decide by values that gradients flow to, the derivatives of the lines
need not be those of the function: ``log(1 + exp(x))`` as ``max(x, 0) + log(1 + exp(-|x|))`` is
smooth, and neither of its parts is. Where the statements decide the same, lines and statements are
on the same side of the kink.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from codegen.lowering.bounded import with_bounded_arguments
from codegen.lowering.frames import broadcast
from codegen.program import NUMBERS, Function, Program
from codegen.program.arrays import ArgMaxOf, Detached
from codegen.program.parts import is_number, operands, values_in, with_replaced
from codegen.program.steps import Assign
from codegen.program.values import (
    Apply,
    Bend,
    Choose,
    Clamp,
    Combine,
    Compare,
    Extreme,
    Gate,
    Load,
    MulAdd,
    Plus,
    Pullback,
    Slope,
    Times,
    Value,
)
from derive.language.functions import KNOWN

DECIDING = {name for name, row in KNOWN.items() if not row.is_smooth}


def lines_to_differentiate(program: Program) -> Function:
    """The function that may be differentiated line by line, to any order: the forward, which is
    finite where the mathematics is, or the statements where the forward decides otherwise.
    """
    statements = {step.name for step in program.atoms.steps}
    own, written = (decisions_of(f, statements) for f in (program.forward, program.atoms))
    return program.forward if own <= written else program.atoms


def with_lines_to_differentiate(program: Program) -> Program:
    """``program`` with arguments held in branches that are not taken (``bounded.py``), and the
    forward `taken_apart` if that is the function.
    """
    atoms = with_bounded_arguments(program.atoms)
    if lines_to_differentiate(program) is not program.forward:
        return replace(program, atoms=atoms)
    held = with_bounded_arguments(program.forward)
    found = replace(program, forward=taken_apart(held))
    return (
        found if lines_to_differentiate(found) is found.forward else replace(program, atoms=atoms)
    )


def taken_apart(function: Function) -> Function:
    """``function`` with fused operations split in two: a product that is subtracted, if an input
    flows into only some of its three values; one that is added, if a factor is a difference.

    torch 2.13 ends the process where it compiles forward mode of the one operation.
    """
    numbers = {p.name for p in function.parameters if p.role in NUMBERS}
    flowing = [_flowing(function, p.name) for p in function.parameters if p.role == "input"]

    def change(value: Value) -> Value | None:
        if not isinstance(value, MulAdd) or not value.negative or is_number(value.left, numbers):
            return None
        three = value.addend, value.left, value.right
        if all(len({_flows(v, names) for v in three}) == 1 for names in flowing):
            return None
        value = replace(value, addend=with_replaced(value.addend, change))
        for name in ("left", "right"):
            factor = getattr(value, name)
            if isinstance(factor, Plus) and [sign for _, sign in factor.terms] == [False, True]:
                (first, _), (second, _) = factor.terms
                turned = replace(factor, terms=((second, False), (first, True)))
                return replace(value, **{name: turned}, negative=False)
        dims = broadcast([value.left.dims, value.right.dims])
        product = Times(((value.left, False), (value.right, False)), dims=dims)
        return Plus(((value.addend, False), (product, True)), dims=value.dims)

    return replace(function, steps=tuple(with_replaced(s, change) for s in function.steps))


def _flowing(function: Function, name: str) -> set[str]:
    """Names that a gradient can flow through to the input of that name, with the input itself."""
    found = {name}
    for step in function.steps:
        if isinstance(step, Assign) and _flows(step.value, found):
            found.add(step.name)
    return found


def decisions_of(function: Function, statements: Collection[str]) -> set:
    """Decisions that depend on an input, in terms of the names of ``statements`` alone.

    The largest of a row is none: where it is subtracted to be added again, its derivative is 0, and
    elsewhere a statement asks for it.
    """
    flowing = {p.name for p in function.parameters if p.role == "input"}
    named: dict[str, Value] = {}
    found = set()
    for step in function.steps:
        if not isinstance(step, Assign):
            continue
        value = with_replaced(
            step.value, lambda v: named.get(v.name) if isinstance(v, Load) else None
        )
        for part in (value, *values_in(value)):
            found |= {d for by, d in _decided(part) if any(_flows(v, flowing) for v in by)}
        if step.name not in statements:
            named[step.name] = value
        elif _flows(value, flowing):
            flowing.add(step.name)
    return found


def _decided(value: Value) -> Iterator[tuple[tuple[Value, ...], object]]:
    """The deciding values, and a key of the decision. Torch's clamp keeps its bounds."""
    match value:
        case Choose():
            for test in (value.condition, *values_in(value.condition)):
                if isinstance(test, Compare):
                    yield (test.left, test.right), at_equality(test)
        case Clamp():
            for bound, relation in ((value.low, ">="), (value.high, "<=")):
                if bound is not None:
                    yield (value.operand,), at_equality(Compare(value.operand, relation, bound))
        case Extreme():
            yield (value.left, value.right), value
        case ArgMaxOf():
            yield (value.operand,), value
        case Gate() | Bend() | Slope():
            yield (value.measure,), value
        case Pullback():  # its derivative may be written for the values alone
            yield (value,), value
        case Apply() if value.function in DECIDING:
            yield (value.operand, *value.others), value


def at_equality(test: Compare) -> tuple:
    """Two values, and the side that includes equality: ``a < b`` leaves it to ``a >= b``."""
    if test.relation in ("==", "!="):
        return "==", frozenset((test.left, test.right))
    first = test.relation in (">=", "<")
    return (test.left, test.right) if first else (test.right, test.left)


def _flows(value: Value, names: Collection[str]) -> bool:
    """True if a gradient can flow through a value to one of the names: tests pass none."""
    if isinstance(value, Load):
        return value.name in names
    if isinstance(value, (Compare, Combine, Detached)):
        return False
    return any(_flows(v, names) for v in operands(value))
