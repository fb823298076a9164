"""The module of a function whose passes along an axis are kernels of tiles: the public function and
the autograd Function are those of a module in chunks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from codegen.chunking import Chunked
from codegen.chunking.passes import Passes
from codegen.files.header import header
from codegen.program.arrays import Contract
from codegen.targets.lean.chunked import ChunkedPage, PlainChunks, documentation
from codegen.targets.lean.loops_of_chunks import ChunkLine, ChunkWriter, under_conditions
from codegen.targets.lean.outside import Outside
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.target import rendered
from codegen.targets.torch.lines import STEP
from codegen.targets.torch.printer import Printer
from codegen.targets.torch.wrapping import wrapped
from codegen.targets.triton.tiles import TileText
from codegen.targets.triton.vocabulary import SHARED
from codegen.tiles import TILES, divided
from codegen.tiles.records import Stored, TileKernel, WholeLine
from codegen.tiles.rows import made_by, reads_of

TEMPLATES = Path(__file__).parent / "templates"
LIBRARIES = ("import triton", "import triton.language as tl")
OF_CUDA = "from triton.language.extra import libdevice"
CALLED = re.compile(r"(?<![.\w])(\w+)\(")
WORD = re.compile(r"(?<![.\w])[^\W\d]\w*")


class TileWriter(ChunkWriter):
    """The lines of a function that launches kernels; ``kernels`` are their texts."""

    def __init__(
        self,
        chunked: Chunked,
        passes: Passes,
        plain: Printer,
        inputs: Mapping[str, str],
        needs: Mapping[str, str],
        name: str,
    ):
        """``name`` is that of the function; the others are those of a `ChunkWriter`."""
        super().__init__(chunked, passes, plain, inputs, needs)
        self.name, self.kernels = name, dict[str, str]()
        self.divided = divided(chunked, passes)
        self.flags = self._flags()
        self.mapped, self.rows = set(), {}  # whole arrays: there are no chunks

    def lines(self) -> list[str]:
        self.name_arguments(())
        body = [ChunkLine(self.printer.step(step)) for step in self.passes.asked]
        for piece in self.divided.found:
            if isinstance(piece, WholeLine):
                body.append(ChunkLine(self.printer.step(piece.step), self.flags[piece.step.name]))
            else:
                body += self._launched(piece)
        texts = under_conditions(body, "")
        code = "\n".join(texts)
        whole = self._whole_arguments(code)
        return self._with_short_names([*self._sizes(code), *whole, *texts])

    def _flags(self) -> dict[str, frozenset[str]]:
        """By the names of the pieces: the flags of the gradients that need them; none where every
        call does. What a kernel reads is there whichever of its results are wanted.
        """
        found: dict[str, frozenset[str]] = {}
        readers: dict[str, list[frozenset[str]]] = {}
        for piece in reversed(self.divided.found):
            names = made_by(piece)
            for name in names:
                found[name] = _either([self._own_flags(name), *readers.get(name, ())])
            by = _either([found[name] for name in names])
            for name in reads_of(piece):
                readers.setdefault(name, []).append(by)
        return found

    def _own_flags(self, name: str) -> frozenset[str]:
        while name not in self.of_needs:
            name = self.divided.of[name]
        return self.of_needs[name]

    def _launched(self, kernel: TileKernel) -> list[ChunkLine]:
        """The memory that a kernel writes, its launch, and sums of what its programs left."""
        function = self.chunked.function
        text = TileText(
            kernel,
            function,
            self.divided.layouts,
            dict(self.chunked.program.sizes),
            self._contiguous(),
        )
        name = f"{self.name}_of_{kernel.own.lower()}"
        name += f"_{len(self.kernels) + 1}" * (name in self.kernels)
        self.kernels[name] = text.text(name)
        stored = [*kernel.stored, *kernel.written]
        needs = _either([self.flags[each.name] for each in stored])
        lines = [self._or_none(self._memory(each, kernel)) for each in stored]
        arrays = [each.name for each in stored]
        given = {
            "kernel": name,
            "formats": self.own["formats"],
            "chunk": self.own["chunk"],
            "own": self.printer.sizes[kernel.own],
            "grid": " * ".join(self.printer.sizes[a] for a in kernel.grid) or "1",
            "inner": _tuple(self.printer.sizes[a] for a in text.inner),
            "products": str(_products(kernel)),
            "given": _tuple(text.strided),
            "made": _tuple([*text.contiguous, *arrays]),
            "numbers": _tuple(code for code, _ in (*text.sizes, *text.numbers)),
        }
        if kernel.long:
            held = ((each.name, self.printer.sizes[each.axes[1]]) for each in kernel.held)
            given["held"] = f"held={_tuple(f'({name}, {size})' for name, size in held)}"
        call = wrapped("_run", [*given.values()], indent=len(STEP))
        lines.append(ChunkLine(call, needs))
        for each in stored:
            if each.more:
                along = _tuple(map(str, range(len(each.more))))
                line = f"{each.name} = {each.name}.sum({along})"
                lines.append(ChunkLine(line, self.flags[each.name]))
        return lines

    def _contiguous(self) -> set[str]:
        """Values that kernels or the forward made."""
        stored = [
            each
            for piece in self.divided.found
            if isinstance(piece, TileKernel)
            for each in (*piece.stored, *piece.written)
        ]
        return {each.name for each in stored if not each.more} | {*self.chunked.kept}

    def _memory(self, each: Stored, kernel: TileKernel) -> ChunkLine:
        """The line that allocates the memory of a result of a kernel."""
        sizes = [self.printer.sizes[a] for a in each.more]
        sizes += ["1" if d.one else self.printer.sizes[d.axis.name] for d in each.dims]
        like, own = self.own["like"], self.own
        way = "new_zeros" if kernel.bounds and each in kernel.written else "new_empty"
        is_result = each.name in self.passes.results and not each.more
        if is_result and each.name in self.inputs:
            text = f"{self.inputs[each.name]}.{way}({_tuple(sizes)})"
        elif is_result and not self._is_read_by_lines(each.name):
            text = f"{like}.{way}({_tuple(sizes)}, dtype={own['dtype']})"
        else:
            text = f"{like}.{way}({_tuple(sizes)})"
        return ChunkLine(f"{each.name} = {text}", self.flags[each.name])

    def _is_read_by_lines(self, name: str) -> bool:
        lines = [piece for piece in self.divided.found if isinstance(piece, WholeLine)]
        return any(name in reads_of(piece) for piece in lines)


def _either(flags: Sequence[frozenset[str]]) -> frozenset[str]:
    """The flags of what is needed for any of several."""
    return frozenset() if frozenset() in flags else frozenset().union(*flags)


def _tuple(names) -> str:
    names = [*names]
    return f"({', '.join(names)}{',' * (len(names) == 1)})"


def _products(kernel: TileKernel) -> int:
    return sum(isinstance(getattr(each, "value", None), Contract) for each in kernel.body)


class TiledPage(ChunkedPage):
    """The functions of a module as text, and its ``kernels``."""

    def __init__(self, chunked: Chunked, pair: Pair, plain: PlainChunks | None = None):
        super().__init__(chunked, pair, plain)
        self.way, self.kernels = f"{TILES} of {chunked.axis}", list[str]()
        self.writers: list[TileWriter] = []

    first_order = TILES

    def writer(self, kind: str, *given) -> ChunkWriter:
        self.writers.append(TileWriter(*given, f"{self.name}_{kind}"))
        return self.writers[-1]

    def _function(self, *given, **known):
        found = super()._function(*given, **known)
        self.kernels += self.writers[-1].kernels.values()
        return found

    def is_stored(self, passes: Passes, name: str) -> bool:
        """False: lines behind the kernels may have computed it in another dtype."""
        return False


def tiled_text(chunked: Chunked, outside: Outside, plain: PlainChunks | None = None) -> str:
    """The text of the module, which is not to be trusted before it was compared; ``plain`` is of
    calls without options.
    """
    page = TiledPage(chunked, Pair(chunked.program, outside), plain)
    pages = [each for each in (page, page.plain) if each]
    functions = [page.entry(), *(text for each in pages for text in each.texts())]
    kernels = [kernel for each in pages for kernel in each.kernels]
    helpers = _helpers("\n".join([*kernels, "_run("]))
    program = chunked.program
    libraries = [*LIBRARIES]
    libraries += [OF_CUDA] * any("libdevice" in helper for helper in helpers)
    return rendered(
        "chunked.py.jinja",
        header=header(program.source, program.source_hash),
        title=program.title,
        way=page.way,
        documentation=documentation([p.chunked for p in pages], _how(page), page.refused),
        libraries=libraries,
        kernels=[*helpers, *kernels],
        functions=functions,
    )


def _how(page: TiledPage) -> str:
    """Which axes the kernels own and walk over, in words."""
    of = {kind: [] for kind in ("output", "gradients")}
    for writer in page.writers:
        pieces = [p for p in writer.divided.found if isinstance(p, TileKernel)]
        of[writer.name.rpartition("_")[2]] += [f"{p.own} (over {p.loop})" for p in pieces]
    parts = [f"for the {kind} by {' and '.join(each)}" for kind, each in of.items() if each]
    return f"Computed in tiles that no memory has, {', '.join(parts)}. Needs a GPU, and Triton."


def _helpers(text: str) -> list[str]:
    """The code that lines call, what that reads first."""
    sources, found = _sources(), {}
    of_cuda = [name for name in dict.fromkeys(CALLED.findall(text)) if name in SHARED - {*sources}]
    waiting = [name for name in dict.fromkeys(CALLED.findall(text)) if name in sources]
    waiting += ["_of_cuda"] * bool(of_cuda)
    while waiting:
        name = waiting.pop(0)
        found[name] = sources[name]
        words = dict.fromkeys(WORD.findall(sources[name]))
        waiting += [word for word in words if word in sources and word not in (*found, *waiting)]
    ordered = sorted(found, key=[*sources].index)
    own = [f'{name} = _of_cuda("{name}")' for name in of_cuda]
    texts = [*dict.fromkeys(found[name] for name in ordered)]
    return [*texts, "\n".join(own)] if own else texts


def _each_name(targets: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for target in targets:
        yield from target.elts if isinstance(target, ast.Tuple) else (target,)


@cache
def _sources() -> dict[str, str]:
    """The code that kernels and their launches may contain, by its names."""
    found: dict[str, str] = {}
    for file in ("functions.py", "tiles.py"):
        text = (TEMPLATES / file).read_text(encoding="utf-8")
        lines = text.split("\n")
        for node in ast.parse(text).body:
            if not isinstance(node, (ast.FunctionDef, ast.Assign)):
                continue
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            while lines[first - 2].startswith("#"):
                first -= 1
            source = "\n".join(lines[first - 1 : node.end_lineno])
            names = [node] if isinstance(node, ast.FunctionDef) else node.targets
            own = [getattr(n, "name", None) or n.id for n in _each_name(names)]
            found |= dict.fromkeys(own, source)
    return found
