"""From a forward to the text of a lean module that may be written: printed, then compared."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from codegen.driver import Generated, compared, file_of
from codegen.loading import loaded
from codegen.program import Program
from codegen.quality import Rounding
from codegen.targets.lean.check import check_every_use, largest_difference, rounding
from codegen.targets.lean.outside import Outside, outside_of
from codegen.targets.lean.target import lean_program, module_text
from codegen.targets.torch.square import undefined_where_singular
from derive.derivation import derive_definition
from derive.notation.definition import Definition
from derive.notation.forward import Forward
from derive.notation.library import source_hash
from derive.proving.proved import Proved


@dataclass(frozen=True)
class Lean:
    """A lean module that was compared, and how far it was from autograd."""

    text: str
    program: Program
    difference: float


def generate(
    forward: type[Forward],
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> Generated:
    """Derive, prove, print and compare one forward as a lean module. Writes no file.

    ``limit`` is in wall-clock seconds, for derivation and proof. Raises `QuestionError` for
    mathematics that is not supported, and `UnprovedError` if a proof fails or the code does not
    agree with autograd.
    """
    start = time.perf_counter()
    outside = outside_of(forward.definition)
    proved = derive_definition(outside.inside, progress, limit)
    made = lean_module(forward, outside, proved, progress)
    off = _rounding(made, outside)
    seconds = time.perf_counter() - start
    known = proved, {}, made.program, made.difference
    return Generated(file_of(forward), made.text, *known, off, seconds, is_lean=True)


def lean_module(
    forward: type[Forward],
    outside: Outside,
    proved: Proved,
    progress: Callable[[str], None] = lambda what: None,
) -> Lean:
    """The module, compared with autograd in every way that it is used.

    Raises `UnprovedError` where they differ.
    """
    definition = forward.definition
    progress("writing")
    program = lean_program(proved, Path(definition.place.file), source_hash(forward))
    text = module_text(program, outside)
    progress("comparing with autograd")
    difference = compared(forward, program, text, _Lean())
    with undefined_where_singular(definition):
        unsafe = check_every_use(loaded(text, program.name), outside, program)
    if unsafe:
        program = replace(program, unsafe=(*program.unsafe, *unsafe))
        text = module_text(program, outside)
    return Lean(text, program, difference)


def _rounding(made: Lean, outside: Outside) -> Rounding:
    with undefined_where_singular(outside.inside):
        return rounding(loaded(made.text, made.program.name), outside, made.program)


class _Lean:
    """Compares the public function of a lean module."""

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        with undefined_where_singular(definition):
            return largest_difference(loaded(text, program.name), definition, program)
