"""A line of torch at both doors: read as text, and traced; beside what torch makes of it.

Axes are those of ``--axes``: ``x: N C, y: N int``. Labels are of the first of V and C that the
tensors have.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

from codegen.importing.asked import arguments_of
from codegen.importing.driver import imported
from codegen.targets.torch.interpret import Interpreter
from derive import forward_from
from derive.claims.reading.names import TextNames
from derive.claims.reading.notation import uses_notation
from derive.claims.reading.pasted import pasted_in
from derive.claims.reading.program import TextProgram
from derive.claims.reading.source import Source
from derive.claims.reading.values import Space, TextValue

SIZES = {"B": 3, "N": 4, "C": 6, "V": 6, "T": 8, "K": 3, "H": 5, "W": 7, "D": 2, "E": 4, "S": 4}
LABELS_OF = ("V", "C")


def name_of(axis: str) -> str:
    return f"A{axis}" if axis.isdigit() else axis


@functools.cache
def definition_of(axes: str, folder: Path):
    """A mathematics whose inputs are those tensors."""
    arguments = arguments_of(axes)
    every = dict.fromkeys(a for argument in arguments for a in argument.axes)
    declared = [
        f'{name_of(a)} = Axis("{name_of(a)}"{f", {a}" if a.isdigit() else ""})' for a in every
    ]
    classes = next(a for a in (*LABELS_OF, *every) if a in every)
    lines, used = [], []
    for argument in arguments:
        own = [name_of(a) for a in argument.axes]
        for i, axis in enumerate(own):
            if axis in own[:i]:  # a twin of it
                own[i] = f"{axis}_{i}"
                declared.append(f'{own[i]} = Axis("{own[i]}", {axis})')
        along = ", ".join(own)
        role = {"int": "Label", "bool": "Given"}.get(argument.kind, "Input")
        lines.append(f"{argument.name} = {role}({along})")
        read = f"OneHot({argument.name}, {classes})" if role == "Label" else argument.name
        axes_of = ", ".join(dict.fromkeys(own + [classes] * (role == "Label")))
        used.append(f"Sum({read}, {axes_of})" if axes_of else read)
    if all(line.split(" = ")[1].startswith("Label") for line in lines):
        raise ValueError(axes)
    body = "".join(f"    {line}\n" for line in lines)
    text = "from derive import *\n\n{}\n\n\nclass Mine(Forward):\n{}    loss = {}\n"
    file = folder / f"of_{abs(hash(axes))}.py"
    file.write_text(text.format("\n".join(declared), body, " + ".join(used)))
    return forward_from(file).definition


def numbers_of(axes: str) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    found = {}
    for argument in arguments_of(axes):
        shape = [int(a) if a.isdigit() else SIZES[a] for a in argument.axes]
        if argument.kind == "int":
            found[argument.name] = torch.randint(SIZES["C"], shape, generator=generator)
        else:
            drawn = torch.randn(shape, generator=generator, dtype=torch.float64)
            found[argument.name] = drawn > 0 if argument.kind == "bool" else drawn
    return found


def by_torch(axes: str, lines: str):
    """What torch makes of lines that end with ``result = ...``."""
    scope = {"math": math, "torch": torch, "F": F, **numbers_of(axes)}
    exec(lines, scope)
    return scope["result"]


def by_text(axes: str, lines: str, folder: Path) -> torch.Tensor:
    """What is read in the lines, in numbers; raises what refuses it."""
    definition, given = definition_of(axes, folder), numbers_of(axes)
    interpreter = Interpreter(
        definition, {n: x.double() if x.dtype == torch.bool else x for n, x in given.items()}
    )
    interpreter.run()
    source = Source(lines, "text")
    space = Space(definition, uses_notation(source.parsed()))
    program = TextProgram(source, space, TextNames(definition, {}), definition.differentiable[0])
    program.run(list(pasted_in(source.parsed()).lines))
    cell = program.cells["result"]
    if cell.broken is not None:
        raise AssertionError(str(cell.broken))
    value = cell.value
    assert isinstance(value, TextValue)
    interpreter.definition = space.definition
    interpreter.sizes = space.definition.sizes_from(interpreter.sizes)
    order = interpreter.definition.axes
    found = interpreter.value(value.expression)
    wanted = [order.index(axis) for axis in value.axes]
    shape = [interpreter.size(a) if a in value.axes else 1 for a in order]
    rest = [i for i in range(len(order)) if i not in wanted]
    found = found.broadcast_to(shape).permute(wanted + rest)
    return found.reshape([1 if a is None else interpreter.size(a) for a in value.dims])


def function_of(axes: str, lines: str, folder: Path):
    """The lines as a function of a file, as a user has it."""
    names = ", ".join(a.name for a in arguments_of(axes))
    body = "".join(f"    {line}\n" for line in lines.replace("result = ", "return ").split("\n"))
    name = f"line_{abs(hash((axes, lines)))}"
    file = folder / f"{name}.py"
    head = "import math\nimport torch\nimport torch.nn.functional as F\n\n\n"
    file.write_text(f"{head}def mine({names}):\n{body}")
    spec = importlib.util.spec_from_file_location(name, file)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.mine


def by_trace(axes: str, lines: str, folder: Path):
    """How far the imported function is from torch: values, gradients; raises what refuses it."""
    return imported(function_of(axes, lines, folder), axes).agreement
