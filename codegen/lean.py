"""From a proof to the text of a lean module that may be run: printed, then compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from codegen.driver import compared
from codegen.loading import loaded
from codegen.program import Program
from codegen.targets.lean.check import check_every_use, largest_difference
from codegen.targets.lean.held import with_arguments_held
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
    program = lean_program(proved, Path(definition.place.file), source_hash(forward))

    def tried(program: Program) -> tuple[str, tuple[str, ...]]:
        """The text, and what is infinite or NaN where the mathematics is finite."""
        text = module_text(program, outside)
        compared(forward, program, text, _Lean())
        with undefined_where_singular(definition):
            return text, check_every_use(loaded(text, program.name), outside, program)

    progress("comparing with autograd")
    text, unsafe = tried(program)
    if unsafe and (held := with_arguments_held(program)) != program:
        other, left = tried(held)
        if len(left) < len(unsafe):
            program, text, unsafe = held, other, left
    if not unsafe:
        return text
    return module_text(replace(program, unsafe=(*program.unsafe, *unsafe)), outside)


class _Lean:
    """Compares the public function of a lean module."""

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        with undefined_where_singular(definition):
            return largest_difference(loaded(text, program.name), definition, program)
