"""From a proof to the text of its statements and chain that may be written: printed, then compared.

They are those of a lean module (``lean.py``), so what torch differentiates outside of it, such as
the mean of a loss, is none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from codegen.build import program_of
from codegen.cache import STARTED, keep, recalled
from codegen.dependencies import fingerprint, last_change, machinery_hash
from codegen.digest import digest
from codegen.driver import compared
from codegen.loading import loaded
from codegen.program import Program
from codegen.targets.lean.chain import chain_text
from codegen.targets.lean.chain_check import chain_difference
from codegen.targets.lean.outside import Outside, outside_of
from codegen.targets.torch.square import undefined_where_singular
from derive.derivation import derive_definition
from derive.notation.definition import Definition
from derive.notation.forward import Forward
from derive.notation.library import source_hash
from derive.proving.proved import Proved

FOLDER = "chain"  # beside the modules


@dataclass(frozen=True)
class Chain:
    """The text of a file, and what a time limit left unproved."""

    text: str
    cut_short: str = ""


def kept_chain(
    forward: type[Forward],
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
    cached: bool = True,
) -> Chain:
    """The file of one forward: derived, proved, printed and compared, unless it was before. Writes
    nothing but the cache.

    ``limit`` is in wall-clock seconds, for derivation and proof. Raises `QuestionError` for
    mathematics that is not supported, and `UnprovedError` if a proof fails or the code does not
    agree with autograd.
    """
    file = Path(forward.definition.place.file)
    asked = f"{fingerprint(file, machinery_hash())} {forward.__name__} {FOLDER}"
    name = digest(asked)
    text = recalled(name) if cached else None
    if isinstance(text, str):
        return Chain(text)
    outside = outside_of(forward.definition)
    proved = derive_definition(outside.inside, progress, limit)
    text = chain_module(forward, outside, proved, progress)
    if cached and not proved.cut_short and last_change(file) < STARTED:
        keep(name, text)
    return Chain(text, proved.cut_short)


def chain_module(
    forward: type[Forward],
    outside: Outside,
    proved: Proved,
    progress: Callable[[str], None] = lambda what: None,
) -> str:
    """The text of the file, of which every statement and every gradient was compared with
    autograd's.

    Raises `UnprovedError` where they differ.
    """
    progress("writing")
    program = program_of(proved, Path(forward.definition.place.file), source_hash(forward))
    text = chain_text(program, outside)
    progress("comparing with autograd")
    compared(forward, program, text, _Chain(outside.inside))
    return text


@dataclass(frozen=True)
class _Chain:
    """Compares the two functions, of the mathematics that is ``inside``."""

    inside: Definition

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        module = loaded(text, f"{program.name}_chain")
        with undefined_where_singular(definition):
            return chain_difference(module, self.inside, program)
