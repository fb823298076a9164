"""From a forward to the text of a lean module that may be written: printed, then compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType

from torch import Tensor

from codegen.beside import reason_of
from codegen.driver import Generated, compared, file_of, goes_wrong
from codegen.loading import loaded
from codegen.program import Program
from codegen.targets import WrongUse
from codegen.targets.lean.check import OfEntries, check_every_use, largest_difference, rounding
from codegen.targets.lean.held import with_arguments_held
from codegen.targets.lean.outside import Outside, outside_of
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.target import lean_program, module_text
from codegen.targets.torch.empty import nan_where_empty
from codegen.targets.torch.extremes import extremes
from codegen.targets.torch.hard_points import in_words
from codegen.targets.torch.square import undefined_where_singular
from codegen.targets.torch.taken import taken
from codegen.targets.torch.traffic import moved
from codegen.targets.torch.within_reach import largest_difference as within_reach
from derive.derivation import closed_form_of, derive_definition
from derive.language.errors import UndecidedError, UnprovedError
from derive.notation.definition import Definition
from derive.notation.forward import Forward
from derive.notation.library import source_hash
from derive.notation.specialised import without_options
from derive.orders import FIRST
from derive.proving.proof import prove
from derive.proving.proved import Proved, cut_short
from derive.running.limits import limited, seconds_of

LONGEST_WITHOUT_OPTIONS = 60  # seconds: calls that pass nothing optional then take the long way
WITHOUT_OPTIONS = "calls that pass nothing optional"
WORTH = 0.7  # of the traffic: calls without options that move no more have a pair of their own


@dataclass(frozen=True)
class Lean:
    """A lean module that was compared: its first pair, and how far it was from autograd.
    ``cut_short`` says what a time limit left undone.
    """

    text: str
    pair: Pair
    difference: float
    cut_short: str = ""


def generate(
    forward: type[Forward],
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> Generated:
    """Derive, prove, print and compare one forward as a lean module. Writes no file.

    ``limit`` is in wall-clock seconds, for derivation and proof. Raises `QuestionError` for
    mathematics that is not supported, and `UnprovedError` if a proof fails or the code does not
    agree with autograd.
    """
    start = time.perf_counter()
    outside = outside_of(forward.definition)
    proved = derive_definition(outside.inside, progress, limit)
    made = lean_module(forward, outside, proved, progress, limit)
    with undefined_where_singular(outside.inside):
        off = rounding(loaded(made.text, made.pair.program.name), made.pair)
    seconds = time.perf_counter() - start
    known = replace(proved, cut_short=made.cut_short), {}, made.pair.program, made.difference
    return Generated(file_of(forward), made.text, *known, off, seconds, is_lean=True)


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
    definition = forward.definition
    progress("writing")
    file = Path(definition.place.file)
    source = file if file.exists() else Path(definition.name)  # no name of a notebook's cell
    pair = Pair(lean_program(proved, source, source_hash(forward)), outside)
    plain, undone = _without_options(pair, proved, limit, progress)
    undone = "; ".join(filter(None, (proved.cut_short, undone)))
    pairs = [pair, plain] if plain else [pair]
    progress("comparing with autograd")
    tried = _tried(forward, pairs)
    for i, pair in enumerate(tried.pairs):
        if tried.unsafe[i] and (held := with_arguments_held(pair.program)) != pair.program:
            pairs = [*tried.pairs]
            pairs[i] = replace(pair, program=held)
            other = _tried(forward, pairs)
            better = len(other.unsafe[i]) < len(tried.unsafe[i])
            tried = other if better and other.twice >= tried.twice else tried
    progress("trying hard points")
    return replace(tried.with_edges(), cut_short=undone)


def _tried(forward: type[Forward], pairs: Sequence[Pair]) -> _Tried:
    """The module, which refuses second derivatives where those of its lines are wrong."""
    try:
        return _Tried(forward, pairs)
    except WrongUse as error:
        if error.order == FIRST or not pairs[0].twice:
            raise
        why = reason_of(error)
        once = [replace(p, program=replace(p.program, without_second=why)) for p in pairs]
        return _Tried(forward, once)


def _without_options(
    pair: Pair, proved: Proved, limit: float | None, progress: Callable[[str], None]
) -> tuple[Pair | None, str]:
    """The pair of the calls that pass nothing optional, unless it moves hardly less or is proved
    for fewer sizes; and what a time limit left undone of it.
    """
    own = pair.definition
    definition = None if own.ignoring else without_options(own)
    if definition is None:
        return None, ""
    progress("without options")
    try:
        with limited(min(seconds_of(limit) or LONGEST_WITHOUT_OPTIONS, LONGEST_WITHOUT_OPTIONS)):
            closed = closed_form_of(definition, progress)
            first = Proved(closed, (), (), cut_short(closed, ()))
            if moved(_program_like(pair, first)) > WORTH * moved(pair.program):
                return None, _of_calls_without_options(first)
            plain = prove(closed, progress)
    except UndecidedError:
        said = f"{definition.name}: the time limit ran out before it was derived"
        return None, f"{said} for {WITHOUT_OPTIONS}"
    except UnprovedError:
        return None, ""
    if proved.every_size and not plain.every_size:
        return None, _of_calls_without_options(plain)
    left = {t.name for t in definition.arguments} | {t.name for t, _ in definition.scalars}
    found = Pair(
        _program_like(pair, plain),
        replace(pair.outside, inside=definition),
        absent=tuple(t.name for t, _ in own.optional if t.name not in left),
        zero=tuple(t.name for t, _ in own.scalars if t.name not in left),
    )
    return found, _of_calls_without_options(plain)


def _program_like(pair: Pair, proved: Proved) -> Program:
    return lean_program(proved, Path(pair.program.source), pair.program.source_hash)


def _of_calls_without_options(proved: Proved) -> str:
    return proved.cut_short and f"{proved.cut_short}, for {WITHOUT_OPTIONS}"


class _Tried:
    """A module that was compared; ``unsafe`` is what is infinite or NaN where the mathematics is
    finite, of each of its pairs.
    """

    def __init__(self, forward: type[Forward], pairs: Sequence[Pair]):
        self.forward, self.pairs = forward, tuple(pairs)
        self.text, self.program = module_text(*pairs), pairs[0].program
        self.runs, self.twice = _Lean(), pairs[0].twice
        self.difference = compared(forward, self.program, self.text, self)
        with undefined_where_singular(forward.definition):
            self.unsafe = [check_every_use(self.text, pair) for pair in pairs]

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        """Of the public function, also where it calls another pair than the first."""
        found = [self.runs.largest_difference(text, definition, program)]
        for pair in self.pairs[1:]:
            found.append(_Lean(pair).largest_difference(text, pair.definition, pair.program))
        return max(found)

    def with_edges(self) -> Lean:
        """With all that was shown to be unsafe in its docstring."""
        pairs = [*map(self._with_edges, self.pairs, self.unsafe)]
        return Lean(module_text(*pairs), pairs[0], self.difference)

    def _with_edges(self, pair: Pair, unsafe: tuple[str, ...]) -> Pair:
        text, is_first = self.text, pair is self.pairs[0]
        program = replace(pair.program, unsafe=(*pair.program.unsafe, *unsafe))
        runs = self.runs if is_first else _Lean(pair)
        definition = self.forward.definition if is_first else pair.definition
        if is_first:
            unsafe = goes_wrong(self.forward, program, text, runs)
        else:
            unsafe = runs.extremes(text, definition, program)
        empty = nan_where_empty(runs.function(text, program), definition, program)
        return replace(pair, program=replace(program, unsafe=unsafe + in_words(empty)))


class _Lean:
    """Runs the public function of a lean module, with the default reduction where none is said; for
    the calls of one ``pair``, with every entry.
    """

    def __init__(self, pair: Pair | None = None):
        self.pair = pair

    def _load(self, text: str, name: str) -> ModuleType | OfEntries:
        module = loaded(text, name)
        return OfEntries(module, self.pair) if self.pair else module

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        load = partial(self._load, name=program.name)
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
        return getattr(self._load(text, program.name), program.name)
