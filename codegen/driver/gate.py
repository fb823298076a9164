"""The last gate: runs generated text against autograd and the class body. Nothing here imports
torch before it is called.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING

from codegen.files.quality import Rounding
from codegen.program import Program
from codegen.targets.languages import Compares, Tries
from derive.language.errors import QuestionError, UnprovedError
from derive.language.notation.definition import Definition
from derive.language.notation.forward import Forward, reduced_forward
from derive.language.notation.reduced import words_of
from derive.proof.proving.proved import Proved

if TYPE_CHECKING:
    from torch import Tensor

TOLERANCE = 1e-10  # in float64: rounding is far below it, errors far above
EMITTED = "; nothing was emitted$"  # says an error where it is one


@dataclass(frozen=True)
class Generated:
    """A module that is ready to be written: its file name and text, and its facts. ``whole`` is the
    program that all languages are printed from, ``program`` that of this text.
    """

    file: str
    text: str
    proved: Proved
    program: Program
    whole: Program
    largest_difference: float
    rounding: Rounding
    seconds: float
    kernels: tuple[str, ...] = ()
    slow: str = ""  # why there are none, where those were asked for
    chain: str | None = None  # of statements, in a file beside it, where that was asked for


def file_of(forward: type[Forward]) -> str:
    """The file name of a forward's module."""
    return f"{forward.definition.snake}.py"


def compared(forward: type[Forward], program: Program, text: str, target: Compares) -> float:
    """The largest difference of the text's gradients from autograd's, beyond autograd's own
    rounding: the gate of all code.

    Raises `UnprovedError` where it is too large, where the text does not even run, or where the
    mathematics differs from the class body.
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
    """Raise `UnprovedError` if a forward was misread."""
    from codegen.as_written import difference_from_body  # torch takes a second

    for word in words_of(forward.definition) or (None,):
        if said := difference_from_body(reduced_forward(forward, word), program):
            raise UnprovedError(
                f"{forward.__name__}: the class body was taken for another one: {said}. That is an "
                "error in gradform itself: please report it; a line of its own for each part may "
                "be read as it is written; nothing was emitted"
            )


def goes_wrong(
    forward: type[Forward], program: Program, text: str, target: Tries
) -> tuple[str, ...]:
    """Problems found in trials, in words: where float32 ends, at hard points, and where the class
    body as it is typed does better.
    """
    from codegen.as_written import digits_lost_by_order, wider_than_body  # torch takes a second
    from codegen.targets.torch.square import undefined_where_singular

    definition = forward.definition
    found = target.extremes(text, definition, program)
    as_typed = forward, program, target.function(text, program)
    with undefined_where_singular(definition):
        return (*found, *digits_lost_by_order(*as_typed), *wider_than_body(*as_typed))


def edges_of(function: Callable, definition: Definition, program: Program) -> tuple[str, ...]:
    """Where float32 ends for a ``function``, and its results at hard points, in words."""
    from codegen.targets.torch.extremes import extremes  # torch takes a second
    from codegen.targets.torch.square import undefined_where_singular
    from codegen.targets.torch.taken import taken

    def statements(**arguments: object) -> Tensor | tuple[Tensor, ...]:
        found = taken(definition, arguments)
        values = tuple(found[name] for name in program.outputs)
        return values if len(values) > 1 else values[0]

    with undefined_where_singular(definition):
        return extremes(function, statements, definition, program)


def empty_in_words(function: Callable, definition: Definition, program: Program) -> tuple[str, ...]:
    """Results of a ``function`` that are NaN where an axis is empty."""
    from codegen.targets.torch.empty import nan_where_empty  # torch takes a second
    from codegen.targets.torch.hard_points import in_words

    return in_words(nan_where_empty(function, definition, program))


def reason_of(error: QuestionError | UnprovedError) -> str:
    """The reason why second derivatives or kernels are missing, on one line."""
    lines = re.sub(EMITTED, "", str(error)).splitlines()
    return "; ".join(filter(None, (" ".join(line.split()) for line in lines)))
