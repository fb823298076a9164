"""The module that computes in chunks of an axis: the public function as every lean module has it,
and the functions with the loops, which ``targets/torch/_in_chunks.py`` calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from types import MappingProxyType

from codegen.chunking import Chunked
from codegen.chunking.nodes import MAPPED
from codegen.chunking.passes import Passes
from codegen.chunking.proofs import relied_on
from codegen.files.header import header
from codegen.program import Program
from codegen.targets.lean.autograd import METHOD
from codegen.targets.lean.loops_of_chunks import (
    ChunkWriter,
    most_of,
    name_of_ranks,
    names_it,
    names_of,
)
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.page import LeanPage, reduction_asked
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.plain import FunctionText, doc, listed
from codegen.targets.lean.target import WIDTH, rendered
from codegen.targets.torch.documentation import formula_lines, item, part, safe
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.wrapping import public, unpacked, wrapped
from derive.language.notation.definition import NONE, REDUCTION, Definition


@dataclass(frozen=True)
class PlainChunks:
    """The functions of calls that leave out the tensors ``absent`` and in which the scalars
    ``zero`` are 0; ``definition`` and ``program`` are of these calls.
    """

    definition: Definition
    program: Program
    chunked: Chunked
    absent: tuple[tuple[str, float], ...]
    zero: tuple[str, ...]

    @property
    def pair(self) -> Pair:
        return Pair(self.chunked.program, Outside(self.definition), self.absent, self.zero)


@dataclass(frozen=True)
class ChunksOfModule:
    """A module in chunks as it was printed for torch."""

    chunked: Chunked
    outside: Outside
    plain: PlainChunks | None

    @property
    def given(self) -> tuple[Chunked, Outside, PlainChunks | None]:
        return self.chunked, self.outside, self.plain


NO_WORDS: Mapping[str, ChunkedPage] = MappingProxyType({})


class ChunkedPage(LeanPage):
    """The functions of a module as text; ``plain`` are those of calls without options."""

    def __init__(self, chunked: Chunked, pair: Pair, plain: PlainChunks | None = None):
        super().__init__(pair)
        if plain is not None:
            self.plain = type(self)(plain.chunked, plain.pair)
        self.chunked, self.way = chunked, f"chunks of {chunked.axis}"
        self.ranks = [name_of_ranks(axis, chunked) for axis in chunked.groups.of_ranks]
        self.own, self.is_pointwise = names_of(chunked), False
        count = len(self.outputs)
        self.of_gradients = chunked.function.results[count:]
        results = self.program.backward.results
        self.gradients = dict(zip(self.of_gradients, results, strict=True))
        self.alive: dict[str, int] = {}
        self.cut: dict[str, int] = {}  # the same one for all that share states

    @property
    def first_order(self) -> str:
        """The kind of module that autograd differentiates once; empty if it has all uses."""
        return "chunks of ranks" if self.ranks else ""

    @property
    def refused(self) -> str:
        return "Second" if self.first_order else "Third"

    def entries(self) -> list[FunctionText]:
        return [self.entry()]

    # -- the public function ---------------------------------------------------------------

    def _picking(self) -> list[str]:
        """Labels that pick along an axis in parts; one that is in no part would pick nothing."""
        sizes = dict(self.program.sizes)
        codes = {sizes[axis] for axis in self.chunked.groups.axes}
        return [*dict.fromkeys(n for n, axis in self.program.labels if sizes[axis] in codes)]

    def _whole_size(self, axis: str) -> str:
        return self.printer(self.program.forward).sizes[axis]

    @property
    def _looked_up(self) -> Sequence[str]:
        return self._picking() if self.ranks else ()

    def _ranges_asked(self) -> list[str]:
        sizes = {name: self._whole_size(axis) for name, axis in self.program.labels}
        own = [f"{name} = _runtime.looked_up({name}, {sizes[name]})" for name in self._picking()]
        return [*super()._ranges_asked(), *own]

    @property
    def _further(self) -> list[str]:
        return [f"{self.own['chunk']}: int | None = None"]

    def _asked_first(self) -> list[str]:
        name = self.own["chunk"]
        said = f'f"{self.name}: chunk must be a positive int, got {{{name}}}"'
        test = f"if {name} is not None and (not isinstance({name}, int) or {name} < 1):"
        return [test, STEP + broken(f"raise ValueError({said})", METHOD), *super()._asked_first()]

    def by_word(self, name: str, words: Mapping[str, ChunkedPage]) -> FunctionText:
        """The function that is passed a reduction, and calls that of the word."""
        parameters, chunk = self.program.forward.parameters, self.own["chunk"]
        typed = [*public(parameters), f'{REDUCTION}: str = "{next(iter(words))}"', *self._further]
        given = [f"{p.name}={p.name}" for p in parameters if p.role != "shape"]
        given.append(f"{chunk}={chunk}")
        lines = reduction_asked(name, [*words])
        for word, page in words.items():
            called = wrapped(f"return {page.name}", given, indent=len(METHOD))
            lines += [f'if {REDUCTION} == "{word}":', STEP + called]
        lines[-2:] = [lines[-1].removeprefix(STEP)]
        signature = wrapped(f"def {name}", typed, f" -> {self._kind}:")
        return FunctionText(signature, words[NONE]._shapes(reduced=True), tuple(lines))

    @property
    def is_apart(self) -> bool:
        """False: one function has the checks and the call."""
        return False

    def _run(self, run: str, margin: str = STEP) -> list[str]:
        kind, count = "both" if self.chunked.both else "gradients", len(self.outputs)
        given = f"{self.name}_output, {kind}={self.name}_{kind}"
        given += f", outputs={count}" * (count > 1)
        given += f", ranks=({', '.join(self.ranks)},)" * bool(self.ranks)
        given += f', first_order="{self.first_order}"' * bool(self.first_order)
        loops = f"_runtime.LoopsOfChunks({given})"
        names = [loops, self.own["chunk"], *(p.name for p in self.inner)]
        head = "return" if self._is_at_once else f"{', '.join(self.outputs)} ="
        called = wrapped(f"{head} _runtime.in_chunks", names, indent=len(margin))
        return [margin.removeprefix(STEP) + called]

    # -- the functions -----------------------------------------------------------------------

    def chunk_printer(self) -> Printer:
        found = super().printer(self.chunked.function)
        return Printer(found.sizes, found.numbers, found.like, found.around)

    def texts(self) -> list[FunctionText]:
        found = self._texts()
        if any(passes.bordered for passes in self.chunked.all_passes):
            self.cut = self.alive
            found = self._texts()
        return found

    def _texts(self) -> list[FunctionText]:
        chunked = self.chunked
        said = f"The {listed('output', self.outputs)}, in {self.way}"
        said += ", then sums that the backward reads." if chunked.kept else "."
        found = [self._function("output", chunked.output, said, (), chunked.kept)]
        of = listed("gradient", self.differentiable, "of ")
        if chunked.both:
            said = f"{self.outputs[0]} and the {of}, in the same chunks."
            return [*found, self._function("both", chunked.both, said)]
        said = f"The {of}, in {self.way}."
        return [*found, self._function("gradients", chunked.gradients, said, chunked.kept)]

    def writer(self, kind: str, *given) -> ChunkWriter:
        """The writer of the loops of one function."""
        return ChunkWriter(*given)

    def _function(
        self,
        kind: str,
        passes: Passes,
        said: str,
        known: Sequence[str] = (),
        more: Sequence[str] = (),
    ) -> FunctionText:
        """A function of the module; ``known`` are accumulated values that it is passed, ``more``
        those that it returns as well.
        """
        own, count = self.own, len(self.outputs)
        is_backward = kind != "output"
        first = count if kind != "gradients" else 0
        names = self.chunked.function.results
        whole = names[:count] if kind == "output" else names if first else names[count:]
        last = dict(zip(whole, passes.results, strict=True))
        inputs = {last[r]: name[1:] for r, name in self.gradients.items() if r in last}
        needs = {r: f"need_{name}" for r, name in inputs.items()} if is_backward else {}
        writer = self.writer(kind, self.chunked, passes, self.chunk_printer(), inputs, needs)
        printed = self._printed(writer)
        like = f"{self.floats[0]}.new_empty((), dtype={own['wide']})"
        lines = [f"{own['dtype']}, {own['wide']}, {own['narrow']} = {own['formats']}"]
        lines += [f"{self._flags()} = {own['needs']}"] * is_backward
        lines += [f"{own['like']} = {like}", *printed]
        results = []
        for r, name in last.items():
            is_rows = self.is_stored(passes, name)
            if r in self.gradients:
                text = name if is_rows else f"{name}.to({inputs[name]}.dtype)"
                results.append(f"{text} if need_{inputs[name]} else None")
            else:
                results.append(name if is_rows else f"{name}.to({own['dtype']})")
        results += [f"torch.stack({n})" if n in passes.bordered else n for n in more]
        ups = [p.name for p in self.program.upstreams] if is_backward else []
        typed = [*self._typed(self.inner), *(f"{name}: Tensor" for name in (*ups, *known))]
        typed = [f"{own['formats']}: tuple", f"{own['chunk']}: int | None", *self.ranks, *typed]
        typed += [f"{own['needs']}: tuple"] * is_backward
        several = f"def {self.name}_{kind}"
        body = _used([*lines, *_returned(results)], own)
        return FunctionText(wrapped(several, typed, " -> tuple:"), doc(said), tuple(body))

    def is_stored(self, passes: Passes, name: str) -> bool:
        """True for a result whose rows were written to memory of its dtype."""
        node = passes.nodes.get(name)
        return node is not None and node.kind == MAPPED

    def _printed(self, writer: ChunkWriter) -> list[str]:
        writer.cut = self.cut
        lines = writer.lines()
        self.alive = most_of(self.alive, writer.entries)
        return lines

    def _flags(self) -> str:
        """The flags of the gradients, of those for all arguments."""
        flags = [f"need_{p.name}" if p.role == "input" else "_" for p in self.inner]
        while flags[-1] == "_":
            flags.pop()
        return unpacked([*flags, *["*_"] * (len(flags) < len(self.inner))])


def _returned(results: Sequence[str]) -> list[str]:
    if len(results) == 1:
        return [broken(f"return ({results[0]},)")]
    return [wrapped("return ", results, indent=len(STEP))]


def _used(lines: list[str], own) -> list[str]:
    """Without the line of a name that no other line has."""
    text = "\n".join(lines[1:])
    names = [own[name] for name in ("dtype", "wide", "narrow")]
    shown = [name if names_it(text, name) else "_" for name in names]
    first = f"{', '.join(shown)} = {own['formats']}"
    like = next(i for i, each in enumerate(lines) if each.startswith(f"{own['like']} ="))
    rest = "\n".join([*lines[1:like], *lines[like + 1 :]])
    kept = lines[1:] if names_it(rest, own["like"]) else [*lines[1:like], *lines[like + 1 :]]
    return [first, *kept]


def chunked_text(
    page: ChunkedPage,
    name: str = "",
    title: str = "",
    words: Mapping[str, ChunkedPage] = NO_WORDS,
    edges: Sequence[str] | None = None,
) -> str:
    """The text of the module, which is not to be trusted before it was compared. If the caller
    passes a reduction, it is called ``name``, and each of the ``words`` has a page. The ``edges``
    are what was found in trials, in words.
    """
    pages = [each for own in words.values() or [page] for each in (own, own.plain) if each]
    entries = [each for own in words.values() or [page] for each in own.entries()]
    if words:
        entries.insert(0, page.by_word(name, words))
    program = page.program
    return rendered(
        "chunked.py.jinja",
        header=header(program.source, program.source_hash),
        title=title or program.title,
        way=page.way,
        kernels=(),
        documentation=documentation(
            [each.chunked for each in pages], _how(page), page.refused, edges
        ),
        functions=[*entries, *(text for each in pages for text in each.texts())],
    )


def _how(page: ChunkedPage) -> str:
    chunked, groups = page.chunked, page.chunked.groups
    ranks = " or ".join(groups.of_ranks)
    back = chunked.both or chunked.gradients
    counts = [_passes_in_words(p.count) for p in (chunked.output, back)]
    how = f"Computed in {page.way}, of which only one is in memory at a time: "
    how += (
        f"{counts[0]} for the output alone, {counts[1]} for output and gradients."
        if chunked.both
        else f"{counts[0]} for the output, {counts[1]} for the gradients."
    )
    if groups.ring:
        how += (
            f" What lies along {ranks} is this rank's part, and whole along {chunked.axis} where it"
            f" lies along both; all else is the same on all ranks. What lies along {chunked.axis}"
            " goes round, and its gradients with it."
        )
    elif ranks:
        how += (
            f" What lies along {ranks} is this rank's part, all else is the same on all ranks;"
            " their collectives stand in the loops."
        )
    return how


def documentation(
    of_all: Sequence[Chunked], how: str, refused: str, found: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The lines of the docstring after the first, which is that of a call; ``how`` it is computed,
    and which derivatives are ``refused``.
    """
    program = of_all[0].program
    words = dict.fromkeys(each for own in of_all for each in relied_on(own))
    proofs = [f"- {line}" for each in words for line in _indented(each)]
    edges = (f"{refused} derivatives are refused", *(program.unsafe if found is None else found))
    return (
        *part(safe(program.doc).split("\n") if program.doc else ()),
        *part(wrap(how, WIDTH)),
        *part(["The closed form:", *formula_lines(program.formulas)]),
        *part(wrap(f"Proved: {program.proved}.", WIDTH)),
        *(part(["Proved for any chunks, of any lengths:", *proofs]) if proofs else ()),
        *part([line for words in edges for line in item(f"{words}.")]),
    )


def _passes_in_words(count: int) -> str:
    return f"{count} pass{'es' * (count != 1)}"


def _indented(words: str) -> list[str]:
    return ["\n  ".join(wrap(words, WIDTH))]
