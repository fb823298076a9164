"""The driver: from a forward to a file that may be written.

    outside_of                 Definition -> Outside    what torch does outside is set apart
    derive_definition          Definition -> Proved     derived, and confirmed independently
    whole_program              Proved  -> Program   every decision that languages share
    module_text                Program -> str       what is kept and what stands outside; a printer
    largest_difference         str     -> float     the text is run beside autograd
    check_every_use            str     -> words     in every way, twice differentiated too
    edges_of                   str     -> words     where float32 ends: said in the text
    empty_in_words             str     -> words     and of nothing
    rounding                   str     -> Rounding  and beside it in float32
    chain_module               Proved  -> str       every statement and its gradient, compared
    write_modules              texts   -> files     all of them or none

`generate` takes one forward through all but the last; ``tests/test_codegen.py`` holds it to this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType

from codegen.chunking import ChunkedAxis
from codegen.driver.chain import chain_module
from codegen.driver.chunks import in_chunks, kernels_in_chunks, parts_of
from codegen.driver.gate import (
    Generated,
    compared,
    edges_of,
    empty_in_words,
    file_of,
    goes_wrong,
    reason_of,
)
from codegen.files.loading import loaded
from codegen.files.quality import Rounding
from codegen.program import Program
from codegen.targets.languages import KernelLanguage
from codegen.targets.lean.check import (
    EntriesFunction,
    check_every_use,
    largest_difference,
    rounding,
)
from codegen.targets.lean.held import with_arguments_held
from codegen.targets.lean.kept import with_little_kept
from codegen.targets.lean.outside import Outside, outside_of
from codegen.targets.lean.pair import Pair, pairs_of
from codegen.targets.lean.target import lean_program, module_text, whole_program
from codegen.targets.torch.square import undefined_where_singular
from codegen.targets.torch.traffic import moved
from codegen.targets.torch.within_reach import largest_difference as within_reach
from codegen.targets.torch.wrong import WrongUse
from derive.derivation import closed_form_of, derive_definition
from derive.gradient.orders import FIRST
from derive.language.errors import QuestionError, UndecidedError, UnprovedError
from derive.language.notation.definition import Definition
from derive.language.notation.forward import Forward
from derive.language.notation.specialised import without_options
from derive.proof.proving.proof import prove
from derive.proof.proving.proved import Proved, cut_short
from derive.running.limits import limited, seconds_of

LONGEST_WITHOUT_OPTIONS = 60  # seconds: calls that pass nothing optional then take the long way
WITHOUT_OPTIONS = "calls that pass nothing optional"
WORTH = 0.7  # of the traffic: calls without options that move no more have a pair of their own


@dataclass(frozen=True)
class Lean:
    """A lean module that was compared: the ``whole`` program that its pairs are made of, the first
    of these, and its distance from autograd. ``cut_short`` says what a time limit left undone.
    """

    text: str
    whole: Program
    pair: Pair
    difference: float
    cut_short: str = ""


def generate(
    forward: type[Forward],
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
    chain: bool = False,
    kernels: KernelLanguage | None = None,
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
    made = lean_module(forward, outside, proved, progress, limit)
    if forward.definition.chunked:
        made = _in_chunks(forward, made, progress)
    off = rounding_of_module(made)
    seconds = time.perf_counter() - start
    beside = chain_module(forward, outside, made.whole, progress) if chain else None
    fast, slow = (), ""
    if kernels is not None:
        fast, slow = with_kernels(forward, made.whole, made.text, kernels, progress)
    proved = replace(proved, cut_short=made.cut_short)
    known = proved, made.pair.program, made.whole, made.difference, off, seconds
    return Generated(file_of(forward), made.text, *known, fast, slow, beside)


def _in_chunks(forward: type[Forward], made: Lean, progress: Callable[[str], None]) -> Lean:
    """The module in chunks of the axis that the class body says, in place of that of the whole."""
    whole = replace(made.whole, unsafe=made.pair.program.unsafe)
    name, walk = forward.definition.snake, ChunkedAxis(forward.definition.chunked)
    found = in_chunks(forward, whole, walk, progress, name)
    return replace(made, text=found.text, difference=found.difference)


def with_kernels(
    forward: type[Forward],
    whole: Program,
    text: str,
    kernels: KernelLanguage,
    progress: Callable[[str], None] = lambda what: None,
) -> tuple[tuple[str, ...], str]:
    """The kernels of a ``whole`` program whose module was compared, after a comparison of their
    own; or the reason why there are none.
    """
    progress("building kernels")
    if axis := forward.definition.chunked:
        return _with_kernels_in_chunks(forward, whole, text, ChunkedAxis(axis), kernels, progress)
    pairs = pairs_of(whole, outside_of(forward.definition))
    try:
        texts = kernels.texts(pairs, text)
    except QuestionError as error:
        return (), reason_of(error)
    if not texts:
        return (), "no loop is left in it beside what libraries compute"
    compared(forward, pairs[0].program, text, kernels.beside(texts))
    return texts, ""


def _with_kernels_in_chunks(
    forward: type[Forward],
    whole: Program,
    text: str,
    walk: ChunkedAxis,
    kernels: KernelLanguage,
    progress: Callable[[str], None],
) -> tuple[tuple[str, ...], str]:
    """The same for a class that says ``chunked``."""
    name, parts = parts_of(forward, whole, walk, progress, forward.definition.snake)
    try:
        texts = kernels_in_chunks(name, parts, text, kernels)
    except QuestionError as error:
        return (), reason_of(error)
    return texts, "" if texts else "no loop is left in a chunk beside what libraries compute"


def lean_module(
    forward: type[Forward],
    outside: Outside,
    proved: Proved,
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> Lean:
    """The module, compared with autograd in every way that it is used.

    Raises `UnprovedError` where they differ.
    """
    tried = lean_tried(forward, outside, proved, progress, limit)
    progress("trying hard points")
    return tried.with_edges()


def lean_tried(
    forward: type[Forward],
    outside: Outside,
    proved: Proved,
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> Tried:
    """The module before its edges are searched.

    Raises `UnprovedError` where it differs from autograd.
    """
    progress("writing")
    whole = whole_program(forward, proved)
    plain, undone = _without_options(forward, outside.inside, proved, whole, limit, progress)
    whole = replace(whole, without_options=plain)
    progress("comparing with autograd")
    tried = _tried(forward, whole, pairs_of(whole, outside))
    for i, pair in enumerate(tried.pairs):
        if tried.unsafe[i] and (held := with_arguments_held(pair.program)) != pair.program:
            pairs = [*tried.pairs]
            pairs[i] = replace(pair, program=held)
            other = _tried(forward, whole, pairs)
            better = len(other.unsafe[i]) < len(tried.unsafe[i])
            tried = other if better and other.twice >= tried.twice else tried
    tried.cut_short = "; ".join(filter(None, (proved.cut_short, undone)))
    return tried


def _tried(forward: type[Forward], whole: Program, pairs: Sequence[Pair]) -> Tried:
    """The module; it raises for second derivatives where those of its lines are wrong."""
    try:
        return Tried(forward, whole, pairs)
    except WrongUse as error:
        if error.order == FIRST or not pairs[0].twice:
            raise
        why = reason_of(error)
        once = [replace(p, program=replace(p.program, without_second=why)) for p in pairs]
        return Tried(forward, whole, once)


def _without_options(
    forward: type[Forward],
    own: Definition,
    proved: Proved,
    whole: Program,
    limit: float | None,
    progress: Callable[[str], None],
) -> tuple[Program | None, str]:
    """Derive the calls that pass nothing optional, unless this saves little memory traffic or is
    proved for fewer sizes; also returns what a time limit left undone.
    """
    definition = None if own.ignoring else without_options(own)
    if definition is None:
        return None, ""
    progress("without options")
    most = WORTH * moved(with_little_kept(whole))
    try:
        with limited(min(seconds_of(limit) or LONGEST_WITHOUT_OPTIONS, LONGEST_WITHOUT_OPTIONS)):
            closed = closed_form_of(definition, progress)
            first = Proved(closed, (), (), cut_short(closed, ()))
            if moved(lean_program(forward, first)) > most:
                return None, _of_calls_without_options(first)
            plain = prove(closed, progress)
    except UndecidedError:
        said = f"{definition.name}: the time limit ran out before it was derived"
        return None, f"{said} for {WITHOUT_OPTIONS}"
    except UnprovedError:
        return None, ""
    if proved.every_size and not plain.every_size:
        return None, _of_calls_without_options(plain)
    return whole_program(forward, plain), _of_calls_without_options(plain)


def _of_calls_without_options(proved: Proved) -> str:
    return proved.cut_short and f"{proved.cut_short}, for {WITHOUT_OPTIONS}"


class Tried:
    """A module that was compared; ``unsafe`` lists, for each pair, results that are infinite or NaN
    where the mathematics is finite.
    """

    def __init__(self, forward: type[Forward], whole: Program, pairs: Sequence[Pair]):
        self.forward, self.whole, self.pairs = forward, whole, tuple(pairs)
        self.text, self.program = module_text(*pairs), pairs[0].program
        self.runs, self.twice, self.cut_short = Runs(), pairs[0].twice, ""
        self.difference = compared(forward, self.program, self.text, self)
        with undefined_where_singular(forward.definition):
            self.unsafe = [check_every_use(self.text, pair) for pair in pairs]

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        """For the public function, also where it calls another pair than the first."""
        found = [self.runs.largest_difference(text, definition, program)]
        for pair in self.pairs[1:]:
            found.append(Runs(pair).largest_difference(text, pair.definition, pair.program))
        return max(found)

    def with_edges(self) -> Lean:
        """The module with all known unsafe cases in its docstring."""
        pairs = [*map(self._with_edges, self.pairs, self.unsafe)]
        text = module_text(*pairs)
        return Lean(text, self.whole, pairs[0], self.difference, self.cut_short)

    def _with_edges(self, pair: Pair, unsafe: tuple[str, ...]) -> Pair:
        text, is_first = self.text, pair is self.pairs[0]
        program = replace(pair.program, unsafe=(*pair.program.unsafe, *unsafe))
        runs = self.runs if is_first else Runs(pair)
        definition = self.forward.definition if is_first else pair.definition
        if is_first:
            unsafe = goes_wrong(self.forward, program, text, runs)
        else:
            unsafe = runs.extremes(text, definition, program)
        empty = empty_in_words(runs.function(text, program), definition, program)
        return replace(pair, program=replace(program, unsafe=unsafe + empty))


def rounding_of_module(made: Lean) -> Rounding:
    """Rounding error of the module in float32."""
    with undefined_where_singular(made.pair.definition):
        return rounding(loaded(made.text, made.pair.program.name), made.pair)


class Runs:
    """Runs the public function of a lean module, with the default reduction if none is given; for
    the calls of one ``pair``, with every entry.
    """

    def __init__(self, pair: Pair | None = None):
        self.pair = pair

    def _load(self, text: str, name: str) -> ModuleType | EntriesFunction:
        module = loaded(text, name)
        return EntriesFunction(module, self.pair) if self.pair else module

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        load = partial(self._load, name=program.name)
        with undefined_where_singular(definition):
            return within_reach(text, definition, program, load, largest_difference)

    def extremes(self, text: str, definition: Definition, program: Program) -> tuple[str, ...]:
        return edges_of(self.function(text, program), definition, program)

    def function(self, text: str, program: Program) -> Callable:
        return getattr(self._load(text, program.name), program.name)
