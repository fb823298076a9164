"""From a proof to the text of its statements and chain: printed, then compared.

They are those of a lean module (``lean.py``), without the parts that torch differentiates outside
of it, such as the mean of a loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from codegen.driver.cache import STARTED, keep, recalled
from codegen.driver.gate import compared
from codegen.files.dependencies import fingerprint, last_change, machinery_hash
from codegen.files.digest import digest
from codegen.files.loading import loaded
from codegen.program import Program
from codegen.targets.lean.chain import chain_text
from codegen.targets.lean.chain_check import chain_difference
from codegen.targets.lean.outside import Outside, outside_of
from codegen.targets.lean.target import whole_program
from codegen.targets.torch.square import undefined_where_singular
from derive.derivation import derive_definition
from derive.language.notation.definition import Definition
from derive.language.notation.forward import Forward

FOLDER = "chain"  # beside the modules


@dataclass(frozen=True)
class ChainText:
    """The text of a file, and what a time limit left unproved."""

    text: str
    cut_short: str = ""


def kept_chain(
    forward: type[Forward],
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
    cached: bool = True,
) -> ChainText:
    """The file of one forward: derived, proved, printed and compared, unless it was before. Writes
    nothing but the cache.

    ``limit`` is in wall-clock seconds, for derivation and proof. Raises `QuestionError` for
    mathematics that is not supported, and `UnprovedError` if a proof fails or the code does not
    agree with autograd.
    """
    text = recalled_chain(forward) if cached else None
    if text is not None:
        return ChainText(text)
    outside = outside_of(forward.definition)
    proved = derive_definition(outside.inside, progress, limit)
    text = chain_module(forward, outside, whole_program(forward, proved), progress)
    if cached and not proved.cut_short:
        keep_chain(forward, text)
    return ChainText(text, proved.cut_short)


def recalled_chain(forward: type[Forward], folder: Path | None = None) -> str | None:
    """The cached text."""
    text = recalled(_kept_as(forward), folder)
    return text if isinstance(text, str) else None


def keep_chain(forward: type[Forward], text: str, folder: Path | None = None) -> None:
    """Store the text, unless the file of its forward was edited since the process began."""
    if last_change(Path(forward.definition.place.file)) < STARTED:
        keep(_kept_as(forward), text, folder)


def _kept_as(forward: type[Forward]) -> str:
    file = Path(forward.definition.place.file)
    asked = f"{fingerprint(file, machinery_hash())} {forward.__name__} {FOLDER}"
    return digest(asked)


def chain_module(
    forward: type[Forward],
    outside: Outside,
    program: Program,
    progress: Callable[[str], None] = lambda what: None,
) -> str:
    """The text of a ``program``'s chain file; every statement and every gradient was compared with
    autograd's.

    Raises `UnprovedError` where they differ.
    """
    progress("writing")
    text = chain_text(program, outside)
    progress("comparing with autograd")
    compared(forward, program, text, _Chain(outside.inside))
    return text


@dataclass(frozen=True)
class _Chain:
    """Compares the two functions, with the mathematics ``inside``."""

    inside: Definition

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        module = loaded(text, f"{program.name}_chain")
        with undefined_where_singular(definition):
            return chain_difference(module, self.inside, program)
