"""The module that computes in chunks of an axis: the public function as every lean module has it,
the functions with the loops, and an autograd Function that calls them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from codegen.chunking import Chunked
from codegen.chunking.nodes import MAPPED
from codegen.chunking.passes import Passes
from codegen.chunking.proofs import relied_on
from codegen.files.header import header
from codegen.program import NUMBERS, Function, Program
from codegen.targets.lean.autograd import METHOD
from codegen.targets.lean.loops_of_chunks import ChunkWriter, names_it, names_of
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.page import LeanPage
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.plain import FunctionText, doc, listed, returning
from codegen.targets.lean.target import WIDTH, rendered
from codegen.targets.torch.documentation import formula_lines, item, part, safe
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.wrapping import unpacked, wrapped
from derive.language.notation.definition import Definition

INNER = STEP * 3  # the margin of a line of a method, in a block


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


class ChunkedPage(LeanPage):
    """The functions of a module as text; ``plain`` are those of calls without options."""

    def __init__(self, chunked: Chunked, pair: Pair, plain: PlainChunks | None = None):
        super().__init__(pair)
        if plain is not None:
            own = Pair(plain.chunked.program, Outside(plain.definition), plain.absent, plain.zero)
            self.plain = ChunkedPage(plain.chunked, own)
        self.chunked, self.way = chunked, f"chunks of {chunked.axis}"
        self.own, self.is_pointwise = names_of(chunked), False
        count = len(self.outputs)
        self.of_gradients = chunked.function.results[count:]
        results = self.program.backward.results
        self.gradients = dict(zip(self.of_gradients, results, strict=True))

    # -- the public function ---------------------------------------------------------------

    def _picking(self) -> list[str]:
        """Labels that pick along the chunked axis; one that is in no chunk would pick nothing."""
        sizes = dict(self.program.sizes)
        own = [n for n, axis in self.program.labels if sizes[axis] == sizes[self.chunked.axis]]
        return [*dict.fromkeys(own)]

    def guarded(self, function: Function, label: str) -> bool:
        axes = {axis for name, axis in self.program.labels if name == label}
        found = len(axes) == 1 and label in self._picking()
        return found or super().guarded(function, label)

    def _ranges_asked(self) -> list[str]:
        size = self.printer(self.program.forward).sizes[self.chunked.axis]
        own = [f"{name} = _runtime.looked_up({name}, {size})" for name in self._picking()]
        return [*super()._ranges_asked(), *own]

    @property
    def _further(self) -> list[str]:
        return [f"{self.own['chunk']}: int | None = None"]

    def _asked_first(self) -> list[str]:
        name = self.own["chunk"]
        said = f'f"{self.name}: chunk must be a positive int, got {{{name}}}"'
        test = f"if {name} is not None and (not isinstance({name}, int) or {name} < 1):"
        return [test, STEP + broken(f"raise ValueError({said})", METHOD), *super()._asked_first()]

    @property
    def is_apart(self) -> bool:
        """False: one function has the checks and the call."""
        return False

    def _run(self, run: str, margin: str = STEP) -> list[str]:
        how = f"({self.own['chunk']}, torch.is_grad_enabled())"
        names = [how, *(p.name for p in self.inner)]
        head = "return" if self._is_at_once else f"{', '.join(self.outputs)} ="
        called = wrapped(f"{head} {self.program.title}.apply", names, indent=len(margin))
        return [margin.removeprefix(STEP) + called]

    # -- the functions -----------------------------------------------------------------------

    def chunk_printer(self) -> Printer:
        found = super().printer(self.chunked.function)
        return Printer(found.sizes, found.numbers, found.like, found.around)

    def texts(self) -> list[FunctionText]:
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
        printed = self.writer(kind, passes, inputs, needs).lines()
        like = f"{self.floats[0]}.new_empty((), dtype={own['wide']})"
        lines = [f"{own['dtype']}, {own['wide']}, {own['narrow']} = {own['formats']}"]
        flags = [f"need_{p.name}" for p in self.inner if p.role == "input"]
        lines += [f"{unpacked(flags)} = {own['needs']}"] * is_backward
        lines += [f"{own['like']} = {like}", *printed]
        results = []
        for r, name in last.items():
            is_rows = self.is_stored(passes, name)
            if r in self.gradients:
                text = name if is_rows else f"{name}.to({inputs[name]}.dtype)"
                results.append(f"{text} if need_{inputs[name]} else None")
            else:
                results.append(name if is_rows else f"{name}.to({own['dtype']})")
        results += more
        ups = [p.name for p in self.program.upstreams] if is_backward else []
        typed = [*self._typed(self.inner), *(f"{name}: Tensor" for name in (*ups, *known))]
        typed = [f"{own['formats']}: tuple", f"{own['chunk']}: int | None", *typed]
        typed += [f"{own['needs']}: tuple"] * is_backward
        several = f"def {self.name}_{kind}"
        body = _used([*lines, *_returned(results)], own)
        return FunctionText(wrapped(several, typed, " -> tuple:"), doc(said), tuple(body))

    def writer(
        self, kind: str, passes: Passes, inputs: Mapping[str, str], needs: Mapping[str, str]
    ) -> ChunkWriter:
        return ChunkWriter(self.chunked, passes, self.chunk_printer(), inputs, needs)

    def is_stored(self, passes: Passes, name: str) -> bool:
        """True for a result whose rows were written to memory of its dtype."""
        node = passes.nodes.get(name)
        return node is not None and node.kind == MAPPED

    def rule(self) -> dict[str, object]:
        """The autograd Function in the form of the template."""
        return {
            "title": self.program.title,
            "doc": doc(f"What autograd sees of {self.name}."),
            "ctx": self.called["ctx"],
            "inner": ", ".join(p.name for p in self.inner),
            "forward": self.forward_lines(),
            "upstreams": ", ".join(p.name for p in self.program.upstreams),
            "backward": self.backward_lines(),
        }

    # -- autograd ------------------------------------------------------------------------------

    def forward_lines(self) -> list[str]:
        own, ctx = self.own, self.called["ctx"]
        names = [p.name for p in self.inner]
        tensors = ", ".join(p.name for p in self.tensors)
        numbers = [p.name for p in self.inner if p.role in NUMBERS]
        floats = ", ".join(self.floats)
        held = [own["chunk"], own["formats"], *numbers]
        lines = [
            f"{own['chunk']}, recorded = how",
            f"{own['formats']} = _runtime.formats({floats})",
            *[f"{ctx}.save_for_backward({tensors})"] * (not self.chunked.kept),
            f"{ctx}.held, {ctx}.gradients = ({unpacked(held)}), None",
        ]
        given = [own["formats"], own["chunk"], *names]
        uncast = f"with _runtime.uncast({self.floats[0]}):"
        outs, called = ", ".join(self.outputs), f"{self.name}_output"
        if not self.chunked.both:
            return [
                *lines,
                uncast,
                STEP + wrapped(f"{outs}, *kept = {called}", given, indent=len(INNER)),
                *[f"{ctx}.save_for_backward({tensors}, *kept)"] * bool(self.chunked.kept),
                f"return {outs}",
            ]
        output = wrapped(f"({outs},) = {called}", given, indent=len(INNER + STEP))
        given += ["one", own["needs"]]
        both = f"{outs}, *{ctx}.gradients = {self.name}_both"
        both = wrapped(both, given, indent=len(INNER + STEP))
        return [
            *lines,
            self._asked_for(),
            uncast,
            f"{STEP}if recorded and any({own['needs']}) and {own['formats']}[2] != torch.float16:",
            f"{METHOD}one = torch.ones((), device={self.floats[0]}.device)",
            METHOD + both,
            f"{STEP}else:  # in float16 an upstream gradient scales what would be too small",
            METHOD + output,
            f"return {outs}",
        ]

    def _asked_for(self) -> str:
        """The line that says which gradients are needed."""
        places = [i for i, p in enumerate(self.inner, 1) if p.role == "input"]
        flags = f"{self.called['ctx']}.needs_input_grad"
        if places == [*range(1, len(places) + 1)]:
            return f"{self.own['needs']} = {flags}[1:{len(places) + 1}]"
        needs = ", ".join(f"{flags}[{i}]" for i in places) + "," * (len(places) == 1)
        return broken(f"{self.own['needs']} = ({needs})", METHOD)

    def backward_lines(self) -> list[str]:
        own, ctx = self.own, self.called["ctx"]
        ups = [p.name for p in self.program.upstreams]
        names = [p.name for p in self.inner]
        numbers = [p.name for p in self.inner if p.role in NUMBERS]
        held = [own["chunk"], own["formats"], *numbers]
        saved = [*(p.name for p in self.tensors), *["*kept"] * bool(self.chunked.kept)]
        made = [*self.program.backward.results]
        back = ["None", *(f"d{p.name}" if p.role == "input" else "None" for p in self.inner)]
        said = f'"{self.name}: no second derivatives in {self.way.split()[0]}"'
        lines = [
            "if torch.is_grad_enabled():",
            STEP + wrapped("raise NotImplementedError", [said], indent=len(INNER)),
        ]
        again = [own["formats"], own["chunk"], *names, *ups]
        if self.chunked.both:
            lines += [
                f"if {ctx}.gradients is not None:  # handed out once; then computed again",
                f"{STEP}gradients, {ctx}.gradients = {ctx}.gradients, None",
                broken(
                    f"{STEP}{unpacked(made)} = (None if g is None else g.mul_({ups[0]}) for g in"
                    " gradients)",
                    INNER,
                ),
                STEP + returning(back),
            ]
            call, head = f"{self.name}_both", f"_, {', '.join(made)}"
        else:
            call, head = f"{self.name}_gradients", unpacked(made)
            again += ["*kept"] * bool(self.chunked.kept)
        again.append(own["needs"])
        lines += [
            broken(f"{unpacked(saved)} = {ctx}.saved_tensors", METHOD),
            f"{unpacked(held)} = {ctx}.held",
            self._asked_for(),
            f"with _runtime.uncast({self.floats[0]}):",
            STEP + wrapped(f"{head} = {call}", again, indent=len(INNER)),
            returning(back),
        ]
        return lines


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


def chunked_text(chunked: Chunked, outside: Outside, plain: PlainChunks | None = None) -> str:
    """The text of the module, which is not to be trusted before it was compared."""
    page = ChunkedPage(chunked, Pair(chunked.program, outside), plain)
    pages = [page, *filter(None, [page.plain])]
    program = chunked.program
    return rendered(
        "chunked.py.jinja",
        header=header(program.source, program.source_hash),
        title=program.title,
        way=f"chunks of {chunked.axis}",
        kernels=(),
        documentation=documentation(chunked, _how(chunked), plain),
        functions=[page.entry(), *(text for each in pages for text in each.texts())],
        rules=[each.rule() for each in pages],
    )


def _how(chunked: Chunked) -> str:
    axis, back = chunked.axis, chunked.both or chunked.gradients
    counts = [_passes_in_words(p.count) for p in (chunked.output, back)]
    how = f"Computed in chunks of {axis}, of which only one is in memory at a time: "
    if chunked.both:
        return how + f"{counts[0]} for the output alone, {counts[1]} for output and gradients."
    return how + f"{counts[0]} for the output, {counts[1]} for the gradients."


def documentation(chunked: Chunked, how: str, plain: PlainChunks | None) -> tuple[str, ...]:
    """The lines of the docstring after the first; ``how`` it is computed."""
    program = chunked.program
    of_both = [chunked, *([plain.chunked] if plain else [])]
    words = dict.fromkeys(each for own in of_both for each in relied_on(own))
    proofs = [f"- {line}" for each in words for line in _indented(each)]
    edges = ["Second derivatives are refused.", *(f"{line}." for line in program.unsafe)]
    return (
        *part(safe(program.doc).split("\n") if program.doc else ()),
        *part(wrap(how, WIDTH)),
        *part(["The closed form:", *formula_lines(program.formulas)]),
        *part(wrap(f"Proved: {program.proved}.", WIDTH)),
        *(part(["Proved for any chunks, of any lengths:", *proofs]) if proofs else ()),
        *part([line for words in edges for line in item(words)]),
    )


def _passes_in_words(count: int) -> str:
    return f"{count} pass{'es' * (count != 1)}"


def _indented(words: str) -> list[str]:
    return ["\n  ".join(wrap(words, WIDTH))]
