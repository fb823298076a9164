"""From a proof to the text of a lean module that may be run: printed, then compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import isfinite
from pathlib import Path

from codegen.as_written import difference_from_body
from codegen.loading import loaded
from codegen.program import Program
from codegen.targets.lean.check import check_every_use, largest_difference
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.target import lean_program, module_text
from codegen.targets.torch.square import undefined_where_singular
from derive.language.errors import QuestionError, UnprovedError
from derive.notation.forward import Forward, reduced_forward
from derive.notation.library import source_hash
from derive.notation.reduced import words_of
from derive.proving.proved import Proved

TOLERANCE = 1e-10  # in float64: rounding is far below it, what is wrong far above


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
    refused = f"{definition.name}: the generated code"
    with undefined_where_singular(definition):
        try:
            module = loaded(text, program.name)
            difference = largest_difference(module, definition, program)
        except (QuestionError, UnprovedError):
            raise
        except Exception as error:  # whatever a wrong line of code leads torch to
            what = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise UnprovedError(f"{refused} does not run ({what})") from error
        if not isfinite(difference) or difference > TOLERANCE:
            how = f"by {difference:.1e} in float64 (tolerance {TOLERANCE:.0e})"
            raise UnprovedError(f"{refused} differs from autograd {how}")
        unsafe = check_every_use(module, outside, program)
    _check_as_written(forward, program)
    if not unsafe:
        return text
    return module_text(replace(program, unsafe=(*program.unsafe, *unsafe)), outside)


def _check_as_written(forward: type[Forward], program: Program) -> None:
    """Raises `UnprovedError` where a forward was taken for another one."""
    for word in words_of(forward.definition) or (None,):
        if said := difference_from_body(reduced_forward(forward, word), program):
            raise UnprovedError(
                f"{forward.__name__}: the class body was taken for another one: {said}. That is an "
                "error in gradform itself: please report it"
            )
