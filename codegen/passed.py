"""The lines of code beside a derivation: those of a text that passed the gate, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import codegen.driver
from codegen.beside import Beside
from codegen.cache import Cache, cache_folder
from codegen.driver import compared, file_of, written
from codegen.targets import targets
from derive.language.errors import QuestionError, UnprovedError
from derive.notation.forward import Forward
from derive.presentation.document import Lines
from derive.proving.proved import Proved
from derive.running.writing import current

# The modules that come with gradform, in a wheel inside its package, in a checkout beside it; none
# is written before it was compared.
PACKAGE = Path(codegen.driver.__file__).parents[1] / "gradform"
INSIDE, BESIDE = PACKAGE / "generated", PACKAGE.with_name("generated")
SHIPPED = INSIDE if INSIDE.is_dir() else BESIDE


def lines_of_code(forward: type[Forward], proved: Proved) -> Lines:
    """What the statements of the closed form became.

    The text is compared with autograd unless one with the very same backward has been: it is then
    in the cache, or it is what the gallery holds. Torch is imported for the comparison alone.
    """
    try:
        program, text = written(forward, proved, Beside())
        if not _has_passed(forward, text):
            compared(forward, program, text)
        lines = _lines_in(text, targets["torch"].backward_lines(program))
    except (QuestionError, UnprovedError) as error:
        why = str(error)
        return Lines(f"There is no code to show. {why[0].upper()}{why[1:]}.", refused=why)
    words = (
        f"These lines are from {program.backward.name}. Its module was compared with autograd on "
        "random data in float64; every gradient agrees within "
        f"{codegen.driver.TOLERANCE:.0e} of its largest entry, beyond autograd's own rounding."
    )
    return Lines(words, lines)


def _lines_in(text: str, lines: Mapping[str, str]) -> Mapping[str, str]:
    """The lines, each of which stands in the text that was compared."""
    written = {line.strip() for line in text.split("\n")}
    for line in "\n".join(lines.values()).split("\n"):
        if line.strip() not in written:
            raise UnprovedError(f"{line.strip()} is not a line of the module; nothing was emitted")
    return lines


def _has_passed(forward: type[Forward], text: str) -> bool:
    """Whether a module that was compared has the same backward: it may hold more than ``text``."""
    kept = Cache(cache_folder()).get(forward)
    known = [kept.text] if kept is not None else []
    known.append(current(SHIPPED / file_of(forward)) or "")
    start = text.index(f"def {forward.definition.snake}_backward(")
    backward = text[start : text.index("\n\n\n", start)]
    return any(backward in other for other in known)
