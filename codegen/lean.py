"""The driver: from a forward to a file that may be written.

    outside_of                 Definition -> Outside    what torch does outside is set apart
    derive_definition          Definition -> Proved     derived, and confirmed independently
    written                    Proved  -> Program, str  every decision; then a printer
    largest_difference         str     -> float     the text is run beside autograd
    check_every_use            str     -> words     in every way, twice differentiated too
    extremes                   str     -> words     where float32 ends: said in the text
    nan_where_empty            str     -> words     and of nothing
    rounding                   str     -> Rounding  and beside it in float32
    chain_module               Proved  -> str       every statement and its gradient, compared
    write_modules              texts   -> files     all of them or none

`generate` takes one forward through all but the last; ``tests/test_codegen.py`` holds it to this.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from torch import Tensor

from codegen.beside import reason_of
from codegen.chain import chain_module
from codegen.driver import Generated, compared, file_of, goes_wrong
from codegen.loading import loaded
from codegen.program import Program
from codegen.quality import Rounding
from codegen.targets import Kernels
from codegen.targets.lean.check import check_every_use, largest_difference, rounding
from codegen.targets.lean.held import with_arguments_held
from codegen.targets.lean.kept import with_little_kept
from codegen.targets.lean.outside import Outside, outside_of
from codegen.targets.lean.target import module_text, whole_program, written
from codegen.targets.torch.empty import nan_where_empty
from codegen.targets.torch.extremes import extremes
from codegen.targets.torch.hard_points import in_words
from codegen.targets.torch.square import undefined_where_singular
from codegen.targets.torch.taken import taken
from codegen.targets.torch.within_reach import largest_difference as within_reach
from derive.derivation import derive_definition
from derive.language.errors import QuestionError
from derive.notation.definition import Definition
from derive.notation.forward import Forward
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
    chain: bool = False,
    kernels: Kernels | None = None,
) -> Generated:
    """Derive, prove, print and compare one forward as a lean module; with its ``chain``, and with
    the ``kernels`` of a language. Writes no file.

    ``limit`` is in wall-clock seconds, for derivation and proof. Raises `QuestionError` for
    mathematics that is not supported, and `UnprovedError` if a proof fails or the code does not
    agree with autograd.
    """
    start = time.perf_counter()
    outside = outside_of(forward.definition)
    proved = derive_definition(outside.inside, progress, limit)
    made = lean_module(forward, outside, proved, progress)
    off = rounding_of_module(made, outside)
    seconds = time.perf_counter() - start
    whole = whole_program(forward, proved)
    beside = chain_module(forward, outside, whole, progress) if chain else None
    known = proved, {}, made.program, made.difference
    more = {"is_lean": True, "whole": whole, "chain": beside}
    if kernels is not None:
        fast, slow = with_kernels(forward, whole, made.text, kernels, progress)
        more |= {"kernels": fast, "slow": slow}
    return Generated(file_of(forward), made.text, *known, off, seconds, **more)


def with_kernels(
    forward: type[Forward],
    whole: Program,
    text: str,
    kernels: Kernels,
    progress: Callable[[str], None] = lambda what: None,
) -> tuple[tuple[str, ...], str]:
    """The kernels of a ``whole`` program whose module was compared, as they are too; or why there
    are none.
    """
    progress("building kernels")
    program, outside = with_little_kept(whole), outside_of(forward.definition)
    try:
        texts = kernels.texts(program, text, outside)
    except QuestionError as error:
        return (), reason_of(error)
    if not texts:
        return (), "no loop is left in it beside what libraries compute"
    compared(forward, program, text, kernels.beside(texts))
    return texts, ""


def lean_module(
    forward: type[Forward],
    outside: Outside,
    proved: Proved,
    progress: Callable[[str], None] = lambda what: None,
) -> Lean:
    """The module, compared with autograd in every way that it is used.

    Raises `UnprovedError` where they differ.
    """
    tried = lean_tried(forward, outside, proved, progress)
    progress("trying hard points")
    return tried.with_edges()


def lean_tried(
    forward: type[Forward],
    outside: Outside,
    proved: Proved,
    progress: Callable[[str], None] = lambda what: None,
) -> Tried:
    """The module as it is before the edges are looked for.

    Raises `UnprovedError` where it differs from autograd.
    """
    progress("writing")
    program, _ = written(forward, outside, proved)
    progress("comparing with autograd")
    tried = Tried(forward, outside, program)
    if tried.unsafe and (held := with_arguments_held(program)) != program:
        other = Tried(forward, outside, held)
        tried = other if len(other.unsafe) < len(tried.unsafe) else tried
    return tried


class Tried:
    """A module that was compared; ``unsafe`` is what is infinite or NaN where the mathematics is
    finite.
    """

    def __init__(self, forward: type[Forward], outside: Outside, program: Program):
        self.forward, self.outside, self.program = forward, outside, program
        self.text = module_text(program, outside)
        self.runs = _Lean()
        self.difference = compared(forward, program, self.text, self.runs)
        with undefined_where_singular(forward.definition):
            self.unsafe = check_every_use(self.text, outside, program)

    def with_edges(self) -> Lean:
        """With all that was shown to be unsafe in its docstring."""
        text, definition = self.text, self.forward.definition
        program = replace(self.program, unsafe=(*self.program.unsafe, *self.unsafe))
        unsafe = goes_wrong(self.forward, program, text, self.runs)
        empty = nan_where_empty(self.runs.function(text, program), definition, program)
        program = replace(program, unsafe=unsafe + in_words(empty))
        return Lean(module_text(program, self.outside), program, self.difference)


def rounding_of_module(made: Lean, outside: Outside) -> Rounding:
    """How far the module is off in float32."""
    with undefined_where_singular(outside.inside):
        return rounding(loaded(made.text, made.program.name), outside, made.program)


class _Lean:
    """Runs the public function of a lean module, with the default reduction where none is said."""

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        load = partial(loaded, name=program.name)
        with undefined_where_singular(definition):
            return within_reach(text, definition, program, load, largest_difference)

    def extremes(self, text: str, definition: Definition, program: Program) -> tuple[str, ...]:
        def statements(**arguments: object) -> Tensor | tuple[Tensor, ...]:
            found = taken(definition, arguments)
            values = tuple(found[name] for name in program.outputs)
            return values if len(values) > 1 else values[0]

        with undefined_where_singular(definition):
            return extremes(self.function(text, program), statements, definition, program)

    def function(self, text: str, program: Program) -> Callable:
        return getattr(loaded(text, program.name), program.name)
