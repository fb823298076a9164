"""From a proof to the text of a lean module that may be run: printed, then compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from codegen.driver import compared
from codegen.loading import loaded
from codegen.program import Program
from codegen.targets.lean.check import check_every_use, largest_difference
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.target import lean_program, module_text
from codegen.targets.torch.square import undefined_where_singular
from derive.notation.definition import Definition
from derive.notation.forward import Forward
from derive.notation.library import source_hash
from derive.proving.proved import Proved


def lean_module(
    forward: type[Forward],
    outside: Outside,
    proved: Proved,
    progress: Callable[[str], None] = lambda what: None,
) -> str:
    """The text of the module, compared with autograd in every way that it is used.

    Raises `UnprovedError` where they differ.
    """
    definition = forward.definition
    progress("writing")
    file = Path(definition.place.file)
    source = file if file.exists() else Path(definition.name)  # no name of a notebook's cell
    program = lean_program(proved, source, source_hash(forward))
    text = module_text(program, outside)
    progress("comparing with autograd")
    compared(forward, program, text, _Lean())
    with undefined_where_singular(definition):
        unsafe = check_every_use(loaded(text, program.name), outside, program)
    if not unsafe:
        return text
    return module_text(replace(program, unsafe=(*program.unsafe, *unsafe)), outside)


class _Lean:
    """Compares the public function of a lean module."""

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        with undefined_where_singular(definition):
            return largest_difference(loaded(text, program.name), definition, program)
