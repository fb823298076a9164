"""The driver: from a forward to a file that may be written.

    derive                     Forward -> Proved    derived, and confirmed independently
    program_of                 Proved  -> Program   shapes, indices, checks: every decision
    Target.render              Program -> str       a printer; templates that only loop and print
    Target.largest_difference  str     -> float     the text is run beside autograd
    difference_from_body       Forward -> words     its class body, run once more with numbers
    Target.check_every_use     str     -> None      in every way, twice differentiated too
    Target.extremes            str     -> words     where float32 ends: said in the text
    Target.rounding            str     -> Rounding  and beside it in float32
    write_modules              texts   -> files     all of them or none

`generate` takes one forward through all but the last; ``tests/test_codegen.py`` holds it to this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

from codegen.beside import Beside, beside_of, reason_of
from codegen.build import program_of
from codegen.program import Program
from codegen.quality import Rounding
from codegen.targets import Compares, Target, Tries, WrongUse, targets
from derive.derivation import derive
from derive.language.errors import QuestionError, UnprovedError
from derive.notation.definition import Definition
from derive.notation.forward import Forward, reduced_forward
from derive.notation.library import source_hash
from derive.notation.reduced import reduced, words_of
from derive.orders import SECOND
from derive.proving.proved import Proved

TOLERANCE = 1e-10  # in float64: rounding is far below it, what is wrong far above

# What was proved and what stands beside it, for each reduction; for "" where there are none.
Found = dict[str, tuple[Proved, Beside | None]]


@dataclass(frozen=True)
class Generated:
    """A module that is ready to be written: its file name and text, and all that is known of it."""

    file: str
    text: str
    proved: Proved
    others: Mapping[str, Proved]  # what was proved of the other reductions
    program: Program
    largest_difference: float
    rounding: Rounding
    seconds: float
    refused: str = ""  # why it cannot be differentiated again, where that was asked for
    kernels: tuple[str, ...] = ()
    slow: str = ""  # why there are none, where those were asked for
    is_lean: bool = False
    whole: Program | None = None  # what all languages are printed from, where that is another one
    chain: str | None = None  # of statements, in a file beside it, where that was asked for


def generate(
    forward: type[Forward],
    target: Target = targets["torch"],
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
    order: int = SECOND,
) -> Generated:
    """Derive, prove, print and compare one forward. Writes no file.

    ``limit`` is in wall-clock seconds, for derivation and proof. ``order`` is the highest order
    with a closed form; with order 1 the generated function has no double backward.

    Raises `QuestionError` for mathematics that is not supported, and `UnprovedError` if a proof
    fails or the generated code does not agree with autograd.
    """
    start = time.perf_counter()
    found = found_of(forward, progress, limit, order)
    found, program, text, difference = _tried(forward, found, target, progress)
    definition = forward.definition
    proved, beside = found.pop(definition.reduction)
    others = {word: own for word, (own, _) in found.items()}
    program, text = with_extremes(forward, program, text, target)
    rounding = _rounding(target, text, definition, program)
    seconds = time.perf_counter() - start
    file = file_of(forward, target)
    known = proved, others, program, difference
    return Generated(file, text, *known, rounding, seconds, beside.refused)


def found_of(
    forward: type[Forward],
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
    order: int = SECOND,
) -> Found:
    """What is derived of ``forward``, for each of its reductions, the default first."""
    proved = derive(forward, progress, limit)
    progress("writing")
    own = proved, beside_of(proved, progress, limit, order)
    return {forward.definition.reduction: own, **others_of(forward, progress, limit, order)}


def others_of(
    forward: type[Forward],
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
    order: int = SECOND,
) -> Found:
    """The same for the reductions beside that of ``forward`` itself."""
    found: Found = {}
    for word in words_of(forward.definition):
        if word != forward.definition.reduction:
            proved = derive(reduced_forward(forward, word), progress, limit)
            found[word] = proved, beside_of(proved, progress, limit, order)
    return found


def _tried(
    forward: type[Forward], found: Found, target: Target, progress: Callable[[str], None]
) -> tuple[Found, Program, str, float]:
    """What is written, as far as every use of it is right: an order of derivatives of which one
    fails is left out, and what is infinite or NaN is named.

    Raises `UnprovedError` where the first order is wrong.
    """
    own, *others = found.items()
    program, text = written(forward, *own[1], target, dict(others))
    progress("comparing with autograd")
    difference = compared(forward, program, text, target)

    def uses(text: str, definition: Definition, program: Program) -> tuple[str, ...]:
        return (*program.unsafe, *target.check_every_use(text, definition, program))

    try:
        program, text = _said(forward, program, text, uses, target)
    except WrongUse as error:
        left = {w: (p, b.without(error.order, reason_of(error))) for w, (p, b) in found.items()}
        if any(beside is None for _, beside in left.values()):
            raise
        return _tried(forward, left, target, progress)
    return found, program, text, difference


def _said(
    forward: type[Forward],
    program: Program,
    text: str,
    asked: Callable[[str, Definition, Program], tuple[str, ...]],
    target: Target,
) -> tuple[Program, str]:
    """The program and its text, where what is unsafe is as ``asked`` of each reduction."""
    own = replace(program, unsafe=asked(text, forward.definition, program))
    others = [
        (word, replace(other, unsafe=asked(text, reduced(forward.definition, word), other)))
        for word, other in program.reductions
    ]
    found = replace(own, reductions=tuple(others))
    return (program, text) if found == program else (found, target.render(found))


def with_extremes(
    forward: type[Forward], program: Program, text: str, target: Target = targets["torch"]
) -> tuple[Program, str]:
    """The program and its text, which was `compared`, with what `goes_wrong`."""

    def tried(text: str, definition: Definition, program: Program) -> tuple[str, ...]:
        own = reduced_forward(forward, definition.reduction or None)
        return goes_wrong(own, program, text, target)

    return _said(forward, program, text, tried, target)


def goes_wrong(
    forward: type[Forward], program: Program, text: str, target: Tries
) -> tuple[str, ...]:
    """In words, what was tried and goes wrong: where float32 ends, what breaks at hard points, and
    where the class body as it is typed does better.
    """
    from codegen.as_written import digits_lost_by_order, wider_than_body  # torch takes a second
    from codegen.targets.torch.square import undefined_where_singular

    definition = forward.definition
    found = target.extremes(text, definition, program)
    as_typed = forward, program, target.function(text, program)
    with undefined_where_singular(definition):
        return (*found, *digits_lost_by_order(*as_typed), *wider_than_body(*as_typed))


def file_of(forward: type[Forward], target: Target = targets["torch"]) -> str:
    """The name of the file that a forward's module is written to."""
    return f"{forward.definition.snake}{target.suffix}"


def written(
    forward: type[Forward],
    proved: Proved,
    beside: Beside | None = None,
    target: Target = targets["torch"],
    others: Found | None = None,
) -> tuple[Program, str]:
    """What was proved as a program and as text, which nobody may see before it was `compared`; the
    ``others`` are its further reductions, without which there is no choice.

    Raises `QuestionError` where the target cannot print it.
    """
    source, digest = Path(forward.definition.place.file), source_hash(forward)
    program = program_of(proved, source, digest, beside)
    programs = {
        word: program_of(proved, source, digest, own)
        for word, (proved, own) in (others or {}).items()
    }
    program = replace(program, reductions=tuple(programs.items()))
    return program, target.render(program)


def compared(
    forward: type[Forward], program: Program, text: str, target: Compares = targets["torch"]
) -> float:
    """The largest difference of the text's gradients to autograd's, beyond what the latter rounds
    off: the gate of all code.

    Raises `UnprovedError` where it is too large, where the text does not even run, or where the
    mathematics is not what the class body says.
    """
    definition = forward.definition
    refused = f"{definition.name}: the generated code"
    try:
        difference = target.largest_difference(text, definition, program)
    except (QuestionError, UnprovedError):
        raise
    except Exception as error:  # whatever a wrong line of code leads torch to
        what = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise UnprovedError(f"{refused} does not run ({what}); nothing was emitted") from error
    if not isfinite(difference):
        raise UnprovedError(
            f"{refused} or autograd's gradient is infinite or NaN at all numbers that were tried "
            "(around 0; between 0 and 1, above 1, and the same below 0), or a result has the wrong "
            "shape; nothing was emitted"
        )
    if difference > TOLERANCE:
        raise UnprovedError(
            f"{refused} differs from autograd by {difference:.1e} in float64 (tolerance "
            f"{TOLERANCE:.0e}); nothing was emitted"
        )
    _check_as_written(forward, program)
    return difference


def _check_as_written(forward: type[Forward], program: Program) -> None:
    """Raises `UnprovedError` where a forward was taken for another one."""
    from codegen.as_written import difference_from_body  # torch takes a second

    for word in words_of(forward.definition) or (None,):
        if said := difference_from_body(reduced_forward(forward, word), program):
            raise UnprovedError(
                f"{forward.__name__}: the class body was taken for another one: {said}. That is an "
                "error in gradform itself: please report it; a line of its own for each part may "
                "be read as it is written; nothing was emitted"
            )


def _rounding(target: Target, text: str, definition: Definition, program: Program) -> Rounding:
    """How far float32 is off. Raises `UnprovedError` where it does not run."""
    try:
        return target.rounding(text, definition, program)
    except RuntimeError as error:
        what = " ".join(str(error).split())
        raise UnprovedError(
            f"{definition.name}: the generated code does not run in float32 ({what}): give its "
            "scalars defaults that float32 can represent; nothing was emitted"
        ) from error
