"""Points where a class body is undefined as written, and the function made of it has a value:
``exp(log(x))`` is x to SymPy, even for negative x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import torch

from codegen.as_written.comparing import FEW, LENGTHS, said_by
from codegen.as_written.entries import Unreadable
from codegen.program import Program
from codegen.targets.torch.check import DRAWS, arguments_of, dims_tried
from derive.language.notation.forward import Forward

SIDES = (
    ("is negative", lambda t: -t.abs()),
    ("is 0", torch.zeros_like),
    ("is large", lambda t: 10 + t.abs()),
)
BASES = (lambda t: t, lambda t: 10 + t.abs(), lambda t: -10 - t.abs())


def wider_than_body(
    forward: type[Forward], program: Program, function: Callable
) -> tuple[str, ...]:
    """Points, in words, where an output of the function has numbers and the body has none."""
    try:
        return _wider(forward, program, function)
    except Unreadable:
        return ()


def _wider(forward: type[Forward], program: Program, function: Callable) -> tuple[str, ...]:
    definition = forward.definition
    dims = next(dims_tried(definition, LENGTHS[0]))
    sizes = {axis: n for axis, (n, *more) in dims.items() if not more}
    lines: dict[tuple[str, ...], list[str]] = {}
    inputs = [p.name for p in program.forward.parameters if p.role == "input"]
    for given in defined(forward, program, inputs, dims, sizes):
        for name, (side, moved) in product(inputs, SIDES):
            own = {**given, name: moved(given[name])}
            y = function(**own)
            found = (y,) if isinstance(y, torch.Tensor) else y
            said = zip(definition.results, found, said_by(forward, own, sizes), strict=True)
            names = tuple(
                t.name
                for t, value, body in said
                if value.isfinite().all() and body.value.isnan().any()
            )
            if names:
                lines.setdefault(names, []).append(f"{name} {side}")
    return tuple(
        f"{', '.join(names)} as written is NaN where {' or '.join(where)}, and a number here"
        for names, where in lines.items()
    )


def defined(forward: type[Forward], program: Program, inputs: list, dims, sizes) -> Iterator[dict]:
    """Draws of arguments at which the class body has numbers, if any of those tried."""
    for moved, draw in product(BASES, DRAWS[:FEW]):
        generator = torch.Generator().manual_seed(0)
        given = arguments_of(forward.definition, program, draw, generator, dims)
        given |= {name: moved(given[name]) for name in inputs}
        if all(own.value.isfinite().all() for own in said_by(forward, given, sizes)):
            yield given
            return
