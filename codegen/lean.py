"""From a proof to the text of a lean module that may be run: printed, then compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from codegen.driver import compared
from codegen.loading import loaded
from codegen.program import Program
from codegen.targets.lean.check import OfEntries, check_every_use, largest_difference
from codegen.targets.lean.options import WithoutOptions
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.target import lean_program, module_text
from codegen.targets.torch.square import undefined_where_singular
from codegen.targets.torch.traffic import moved
from derive.derivation import closed_form_of
from derive.language.errors import UnprovedError
from derive.notation.definition import Definition
from derive.notation.forward import Forward
from derive.notation.library import source_hash
from derive.notation.specialised import without_options
from derive.proving.proof import prove
from derive.proving.proved import Proved
from derive.running.limits import limited

LONGEST_WITHOUT_OPTIONS = 60  # seconds: calls that pass nothing optional then take the long way
WORTH = 0.7  # of the traffic: calls without options that move no more have a pair of their own


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
    plain = _without_options(program, outside, proved, progress)
    text = module_text(program, outside, plain)
    progress("comparing with autograd")
    compared(forward, program, text, _Lean(plain))
    unsafe = []
    with undefined_where_singular(definition):
        for pair in _pairs(program, outside, plain):
            unsafe += check_every_use(loaded(text, program.name), *pair)
    if not unsafe:
        return text
    unsafe = tuple(dict.fromkeys([*program.unsafe, *unsafe]))
    return module_text(replace(program, unsafe=unsafe), outside, plain)


def _pairs(
    program: Program, outside: Outside, plain: WithoutOptions | None
) -> list[tuple[Outside, Program]]:
    return [(outside, program), *([(plain.outside, plain.program)] if plain else [])]


def _without_options(
    program: Program, outside: Outside, proved: Proved, progress: Callable[[str], None]
) -> WithoutOptions | None:
    """The program of the calls that pass nothing optional; None where it moves hardly less, or is
    proved for fewer sizes.
    """
    own = outside.inside
    definition = None if own.ignoring else without_options(own)
    if definition is None:
        return None
    progress("without options")

    def program_of(proved: Proved) -> Program:
        return lean_program(proved, Path(program.source), program.source_hash)

    try:
        with limited(LONGEST_WITHOUT_OPTIONS):
            closed = closed_form_of(definition, progress)
            if moved(program_of(Proved(closed, (), ()))) > WORTH * moved(program):
                return None
            plain = prove(closed, progress)
    except UnprovedError:
        return None
    if proved.every_size and not plain.every_size:
        return None
    passed = {t.name for t in definition.arguments}
    numbers = {t.name for t, _ in definition.scalars}
    return WithoutOptions(
        program_of(plain),
        replace(outside, inside=definition),
        absent=tuple(t.name for t, _ in own.optional if t.name not in passed),
        zero=tuple(t.name for t, _ in own.scalars if t.name not in numbers),
    )


class _Lean:
    """Compares the public function of a lean module, also where nothing optional is passed."""

    def __init__(self, plain: WithoutOptions | None):
        self.plain = plain

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        module = loaded(text, program.name)
        with undefined_where_singular(definition):
            found = [largest_difference(module, definition, program)]
            if self.plain:
                entries = OfEntries(module, program.name, self.plain.outside)
                inside = self.plain.outside.inside
                found.append(largest_difference(entries, inside, self.plain.program))
        return max(found)
