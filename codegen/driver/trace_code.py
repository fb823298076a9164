"""The records at the doors of `codegen`, for ``trace.py``: a Program, its loops, its text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from codegen.program import Function, Program
from codegen.program.parts import operands
from codegen.program.steps import Assign
from codegen.program.values import Value
from codegen.schedule.flattening import flat
from codegen.schedule.nodes import LibraryNode
from codegen.schedule.plan import Plan, Sweep
from codegen.schedule.planning import planned
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.target import backward_lines
from derive.language.errors import QuestionError
from derive.language.notation.layout import shape
from derive.show.document import Block, Code, Prose


def program_blocks(program: Program) -> Iterator[Block]:
    functions = (program.forward, program.backward, program.atoms, program.chain)
    yield Prose(f"sizes: {', '.join(name for _, name in program.sizes) or 'none'}")
    needs = [
        f"of {', '.join(axis for axis, _ in r.axes)}: {r.name} {r.use}"
        for r in program.requirements
    ]
    yield Prose(f"requirements on sizes: {'; '.join(needs) or 'none'}")
    yield Prose(f"not safe: {'; '.join(program.unsafe) or 'nothing'}")
    yield Code(tuple((function.name, _function(function)) for function in functions))
    yield Prose(f"the steps of {program.backward.name}:")
    steps = (step for step in program.backward.steps if isinstance(step, Assign))
    yield Code(
        tuple((step.name, f"{shape(step.value.dims)} {_tree(step.value)}") for step in steps)
    )


def schedules(program: Program) -> Iterator[tuple[Callable, object, tuple[Block, ...]]]:
    """The loops of each function's kernel: their maker, the plan, and words."""
    for function in (program.forward, program.backward):
        try:
            plan = planned(flat(program, function))
        except QuestionError as error:
            yield flat, function, (Prose(str(error)),)
        else:
            yield planned, plan, tuple(_plan(function, plan))


def _plan(function: Function, plan: Plan) -> Iterator[Block]:
    count = sum(isinstance(stage, Sweep) for stage in plan.stages)
    yield Prose(f"{function.name}: {count} {'sweep' if count == 1 else 'sweeps'} over memory")
    yield Code(tuple(line for stage in plan.stages for line in _stage(stage)))


def _stage(stage: Sweep | LibraryNode) -> Iterator[tuple[str, str]]:
    if isinstance(stage, LibraryNode):
        yield "a library", f"{stage.name}: {type(stage.value).__name__}"
        return
    rows = ", ".join(stage.parallel) or "one row"
    tiles = ", in tiles" if stage.tiles else ""
    yield "parallel", f"{rows}{tiles}; writes {', '.join(stage.stored)}"
    for nest in stage.nests:
        along = f"pass over {', '.join(nest.axes)}" if nest.axes else "once in a row"
        names = (f"{n.name} (a {n.kind})" if n.kind else n.name for n in nest.nodes)
        yield f"  {along}", ", ".join(names)


def _function(function: Function) -> str:
    """Its arguments, results, and numbers of steps by kind."""
    kinds = Counter(type(step).__name__ for step in function.steps)
    steps = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    arguments = ", ".join(p.name for p in function.parameters)
    return f"({arguments}) -> {', '.join(function.results)}: {steps}"


def _tree(value: Value) -> str:
    """The classes of a value and its operands: ``Reduce(Times(Load, Load))``."""
    inside = ", ".join(map(_tree, operands(value)))
    name = type(value).__name__
    return f"{name}({inside})" if inside else name


def text_blocks(text: str, pair: Pair) -> Iterator[Block]:
    yield Prose(f"{len(text.splitlines())} lines; of these the closed form:")
    yield Code(tuple(backward_lines(pair).items()))
