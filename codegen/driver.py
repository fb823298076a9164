"""The driver: from a forward to a file that may be written.

    derive                     Forward -> Proved    derived, and confirmed independently
    program_of                 Proved  -> Program   shapes, indices, checks: every decision
    Target.render              Program -> str       a printer; templates that only loop and print
    Target.largest_difference  str     -> float     the text is run beside autograd
    write_modules              texts   -> files     all of them or none

`generate` takes one forward through all but the last; ``tests/test_codegen.py`` holds it to this.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from codegen.build import program_of
from codegen.program import Program
from codegen.targets import Target, targets
from derive.definition import Definition
from derive.derivation import derive
from derive.errors import UnprovedError
from derive.forward import Forward
from derive.library import source_hash
from derive.proof import Proved

TOLERANCE = 1e-10


@dataclass(frozen=True)
class Generated:
    """A module that is ready to be written: its file name and text, and what is known of it."""

    file: str
    text: str
    proved: Proved
    program: Program
    largest_difference: float
    seconds: float


def generate(
    forward: type[Forward],
    target: Target = targets["torch"],
    progress: Callable[[str], None] = lambda what: None,
) -> Generated:
    """Derive, prove, print and compare one forward. Writes nothing.

    Raises `QuestionError` for mathematics that was not understood or that the target cannot print,
    `UnprovedError` where a proof fails or the printed code does not compute what autograd does.
    """
    start = time.perf_counter()
    proved = derive(forward, progress)
    progress("writing")
    definition = forward.definition
    program = program_of(proved, Path(definition.place.file), source_hash(forward))
    text = target.render(program)
    progress("comparing with autograd")
    file = f"{definition.snake}{target.suffix}"
    difference = _compared(target, file, text, definition, program)
    if not difference <= TOLERANCE:
        raise UnprovedError(
            f"{definition.name}: the code that was written is {difference:.1e} away from autograd "
            f"in double precision (at most {TOLERANCE:.0e} is allowed); nothing was emitted"
        )
    return Generated(file, text, proved, program, difference, time.perf_counter() - start)


def _compared(
    target: Target, file: str, text: str, definition: Definition, program: Program
) -> float:
    with tempfile.TemporaryDirectory(prefix="gradform-") as folder:
        path = Path(folder) / file
        path.write_text(text, encoding="utf-8")
        return target.largest_difference(path, definition, program)
