"""Lines of code beside a derivation: only those of a module that passed the gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from codegen.driver import gate
from codegen.driver.cache import Cache, cache_folder
from codegen.driver.gate import file_of
from codegen.targets.lean.held import with_arguments_held
from codegen.targets.lean.outside import Outside, outside_of, proved_inside
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.target import backward_lines, lean_program, module_text
from derive.language.errors import FACE, QuestionError, UnprovedError
from derive.language.notation.forward import Forward
from derive.proof.proving.proved import Proved
from derive.running.writing import current
from derive.show.document import ProgramLines

# The modules that come with gradform, in a wheel inside its package, in a checkout beside it; none
# is written before it was compared.
INSIDE, BESIDE = FACE / "generated", FACE.with_name("generated")
SHIPPED = INSIDE if INSIDE.is_dir() else BESIDE


def lines_of_code(forward: type[Forward], proved: Proved) -> ProgramLines:
    """The code for each statement of the closed form. For a reduced loss these are the statements
    of every entry, which is what its module holds.

    The module is compared with autograd unless one with the very same backward has been: it is then
    in the cache, or in the gallery. Torch is imported for the comparison alone.
    """
    outside = outside_of(forward.definition)
    try:
        inside = proved_inside(outside, proved)
        pair, text = _passed(forward, outside, inside)
        lines = _lines_in(text, backward_lines(pair))
    except (QuestionError, UnprovedError) as error:
        why = str(error)
        return ProgramLines(f"There is no code to show. {why[0].upper()}{why[1:]}.", refused=why)
    words = (
        f"These lines are from {pair.program.backward.name}. Its module was compared with autograd "
        "on random data in float64; every gradient agrees within "
        f"{gate.TOLERANCE:.0e} of its largest entry, beyond autograd's own rounding."
    )
    if outside.reductions:
        words += " It is the gradient of every entry; torch takes the sum or the mean."
    return ProgramLines(words, lines)


def _lines_in(text: str, lines: Mapping[str, str]) -> Mapping[str, str]:
    """The lines, each checked to be in the text that was compared."""
    written = {line.strip() for line in text.split("\n")}
    for line in "\n".join(lines.values()).split("\n"):
        if line.strip() not in written:
            raise UnprovedError(f"{line.strip()} is not a line of the module; nothing was emitted")
    return lines


def _passed(forward: type[Forward], outside: Outside, proved: Proved) -> tuple[Pair, str]:
    """The module that passed: a known one, or it is compared now."""
    known, plain = [*_known(forward)], lean_program(forward, proved)
    for program in dict.fromkeys((plain, with_arguments_held(plain))):
        pair = Pair(program, outside)
        text = module_text(pair)
        start = text.index(f"def {forward.definition.snake}_backward(")
        backward = text[start : text.index("\n\n\n", start)]
        if any(backward in other for other in known):
            return pair, text
    from codegen.driver.lean import lean_tried  # torch takes a second

    tried = lean_tried(forward, outside, proved)
    return tried.pairs[0], tried.text


def _known(forward: type[Forward]) -> Iterator[str]:
    """Texts of the modules that were compared; they may hold more."""
    kept = Cache(cache_folder()).get(forward)
    if kept is not None:
        yield kept.text
    yield current(SHIPPED / file_of(forward)) or ""
