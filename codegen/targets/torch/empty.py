"""Axes without entries: results that are NaN there, such as a mean of none."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from codegen.program import Program
from codegen.targets.torch.check import arguments_of
from codegen.targets.torch.measure import Measure, Run, positive
from codegen.targets.torch.second_oracle import dims_with
from derive.language.notation.definition import Definition


def nan_where_empty(
    function: Run, definition: Definition, program: Program
) -> Iterator[tuple[str, str]]:
    """Axes of size 0 with the results of a ``function`` that are NaN there, or the reason why it
    raises, in words.
    """
    measure = Measure(function, function, definition, program, positive)
    indexed = {axis for _, axis in program.labels}  # no label is there
    for axis in definition.independent_axes:
        dims = next(dims_with(definition, {axis: (0,)}), None)
        if dims is None or any(0 in n for other, n in dims.items() if other.name in indexed):
            continue
        arguments = arguments_of(definition, program, positive, torch.Generator(), dims)
        try:
            found = measure.found(arguments, function, torch.float64)
        except (IndexError, RuntimeError, ValueError):  # it is refused
            continue
        except ArithmeticError as error:
            yield f"if {axis} is 0", type(error).__name__
            continue
        if names := [name for name, value in found.items() if value.isnan().any()]:
            yield f"if {axis} is 0", f"{', '.join(names)} {'are' if names[1:] else 'is'} NaN"
