"""From a proof to the text of a lean module that may be run: printed, then compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from torch import Tensor

from codegen.driver import compared, goes_wrong
from codegen.loading import loaded
from codegen.program import Program
from codegen.targets.lean.check import check_every_use, largest_difference
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.target import lean_program, module_text
from codegen.targets.torch.empty import nan_where_empty
from codegen.targets.torch.extremes import extremes
from codegen.targets.torch.hard_points import in_words
from codegen.targets.torch.square import undefined_where_singular
from codegen.targets.torch.taken import taken
from codegen.targets.torch.within_reach import largest_difference as within_reach
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
    text = module_text(program, outside)
    progress("comparing with autograd")
    compared(forward, program, text, _Lean())
    with undefined_where_singular(definition):
        unsafe = check_every_use(text, outside, program)
    program = replace(program, unsafe=(*program.unsafe, *unsafe))
    progress("trying hard points")
    unsafe = goes_wrong(forward, program, text, _Lean())
    unsafe += in_words(nan_where_empty(_Lean().function(text, program), definition, program))
    return module_text(replace(program, unsafe=unsafe), outside)


class _Lean:
    """Runs the public function of a lean module, with the default reduction where none is said."""

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        load = partial(loaded, name=program.name)
        with undefined_where_singular(definition):
            return within_reach(text, definition, program, load, largest_difference)

    def extremes(self, text: str, definition: Definition, program: Program) -> tuple[str, ...]:
        def statements(**arguments: object) -> Tensor | tuple[Tensor, ...]:
            found = taken(definition, arguments)
            values = tuple(found[name] for name in program.outputs)
            return values if len(values) > 1 else values[0]

        with undefined_where_singular(definition):
            return extremes(self.function(text, program), statements, definition, program)

    def function(self, text: str, program: Program) -> Callable:
        return getattr(loaded(text, program.name), program.name)
