"""Compares a lean module on kernels with autograd, and with the lines that they replace."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count, product
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from codegen.program import Program
from codegen.targets.lean.check import largest_difference
from codegen.targets.lean.chunk_check import CHUNKS, ComparedInChunks
from codegen.targets.torch.check import DRAWS, arguments_of, dims_tried, largest_of
from codegen.targets.torch.oracle import Dims
from codegen.targets.torch.square import undefined_where_singular
from derive.language.errors import UnprovedError
from derive.language.notation.definition import REDUCTION, Definition
from derive.language.notation.reduced import words_of
from derive.language.symbols import Axes

# Of the largest entry: rounding is far below it, errors far above.
FORMATS = {torch.float64: 1e-9, torch.float32: 1e-3}
SMALLEST = 1e-6  # scale of a smaller tensor
ROUNDED = 8  # times
PACKAGES = count(1)


@dataclass(frozen=True)
class KernelModule:
    """A lean module with kernels instead of lines: the ``texts`` of its files in a ``folder``,
    whose names have these ``ends``, beside those that are ``shared``.
    """

    texts: tuple[str, ...]
    shared: Mapping[str, str]
    target: str
    folder: str
    ends: tuple[str, ...]

    def prepare(self, kernels: ModuleType, name: str) -> None:
        """Prepare a run. Raises `QuestionError` if nothing can be run."""

    def others(
        self, module, wrapper: ModuleType, definition: Definition, program: Program
    ) -> Mapping[torch.dtype, float]:
        """Errors of the parts of a file other than functions, by dtype."""
        return dict.fromkeys(FORMATS, 0.0)

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        """The largest difference from autograd in float64. Raises `QuestionError` if nothing can be
        run, and `UnprovedError` if a kernel was not reached, or is far from its lines.
        """
        imported, singular = (
            self._imported(text, program.name),
            undefined_where_singular(definition),
        )
        with imported as (module, kernels), singular:
            self.prepare(kernels, program.name)
            wrapper = importlib.import_module(f"{kernels.__name__}.{program.name}")
            running = importlib.import_module(f"{kernels.__name__}._running")
            apart = dict.fromkeys(FORMATS, 0.0)
            with kernels.use(self.target), running.watched(wrapper) as called:
                difference = largest_difference(module, definition, program)
                if not difference <= FORMATS[torch.float32]:
                    return difference
                for word in words_of(definition) or (None,):
                    way = kernels, self.target, module, definition, program, word
                    found = _from_lines(*way)
                    apart = {dtype: max(apart[dtype], found[dtype]) for dtype in FORMATS}
            others = self.others(module, wrapper, definition, program)
            apart = {dtype: max(apart[dtype], others[dtype]) for dtype in FORMATS}
            _check(definition.name, running.every(wrapper) - {*called}, apart)
        return difference

    def largest_difference_in_chunks(
        self, text: str, known: Sequence[tuple[Definition, Program]], name: str
    ) -> float:
        """The same of a module in chunks, called ``name``, for the mathematics of all calls and of
        those without options: in chunks of any length.
        """
        with self._imported(text, name) as (module, kernels):
            self.prepare(kernels, name)
            wrapper = importlib.import_module(f"{kernels.__name__}.{name}")
            running = importlib.import_module(f"{kernels.__name__}._running")
            apart, difference = dict.fromkeys(FORMATS, 0.0), 0.0
            with kernels.use(self.target), running.watched(wrapper) as called:
                for definition, program in known:
                    own = ComparedInChunks(getattr(module, name), definition, program, CHUNKS)
                    difference = max(difference, largest_of(own, definition))
                    whole = replace(program, name=name)
                    found = _from_lines(kernels, self.target, module, definition, whole, None)
                    apart = {dtype: max(apart[dtype], found[dtype]) for dtype in FORMATS}
            _check(name, running.every(wrapper) - {*called}, apart)
        return difference

    @contextmanager
    def _imported(self, text: str, name: str) -> Iterator[tuple[ModuleType, ModuleType]]:
        """The module and the package of its kernels, from temporary files."""
        package = f"gradform_kernels_{next(PACKAGES)}"
        pairs = zip(self.ends, self.texts, strict=False)
        files = {**self.shared} | {f"{name}{end}": text for end, text in pairs}
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / package / self.folder
            folder.mkdir(parents=True)
            for file, content in files.items():
                (folder / file).write_text(content)
            (folder.parent / "__init__.py").write_text("")
            (folder.parent / f"{name}.py").write_text(text)
            sys.path.insert(0, place)
            try:
                importlib.invalidate_caches()
                module = importlib.import_module(f"{package}.{name}")
                yield module, importlib.import_module(f"{package}.{self.folder}")
            finally:
                sys.path.remove(place)
                for known in [known for known in sys.modules if known.split(".")[0] == package]:
                    del sys.modules[known]


def _check(name: str, silent: Collection[str], apart: Mapping[torch.dtype, float]) -> None:
    """Raise `UnprovedError` if a kernel was not reached, or differs from the lines."""
    if silent:
        raise UnprovedError(f"{name}: no test call reached {', '.join(sorted(silent))}")
    for dtype, allowed in FORMATS.items():
        if not apart[dtype] <= allowed:
            raise UnprovedError(
                f"{name}: the kernels differ from the torch code by {apart[dtype]:.1e} in {dtype} "
                f"(tolerance {allowed:.0e}); nothing was emitted"
            )


def _from_lines(
    kernels, target: str, module, definition: Definition, program: Program, word: str | None
) -> dict[torch.dtype, float]:
    """Distance of kernels from the lines that they replace (`beyond`), by dtype: the output and
    every choice of gradients, with and without options.
    """
    worst = dict.fromkeys(FORMATS, 0.0)
    inputs = [p.name for p in program.forward.parameters if p.role == "input"]
    optional = {p.name for p in program.forward.parameters if p.default is not None}
    more = {} if word is None else {REDUCTION: word}
    every = replace(definition, ignoring=())  # labels that all count, for shorter code
    sizes = [*dims_tried(definition), *_without_axes(definition)]
    for dims, (left_out, drawn) in product(sizes, ((set(), definition), (optional, every))):
        generator = torch.Generator().manual_seed(0)
        arguments = arguments_of(drawn, program, DRAWS[1], generator, dims)
        passed = {name: value for name, value in arguments.items() if name not in left_out}
        there = [name for name in inputs if name in passed]
        for wanted in (*_choices(there), ()):
            exact = None
            for dtype in FORMATS:  # float64 first
                given = leaves_of(passed, dtype) | more
                with kernels.use(target):
                    ours = _outcome(module, program, given, wanted)
                with kernels.use("torch"):
                    lines = _outcome(module, program, given, wanted)
                exact = exact or lines
                worst[dtype] = max(worst[dtype], *map(beyond, ours, lines, exact))
    return worst


def _without_axes(definition: Definition) -> Iterator[Dims]:
    """Sizes at which each axis of any number of dimensions has none."""
    for dims in dims_tried(definition):
        own = {a: () if isinstance(a, Axes) else lengths for a, lengths in dims.items()}
        sizes = {axis: 1 if isinstance(axis, Axes) else n for axis, (n, *_) in dims.items()}
        sizes = definition.sizes_from(sizes)
        if own != dims and definition.permits(definition.defaults_at(sizes), sizes):
            yield {axis: (size,) for axis, size in sizes.items()} | own
        return


def _choices(names: list[str]) -> list[tuple[str, ...]]:
    """All names, each alone, and all but the first or the last."""
    found = [tuple(names), *((name,) for name in names), tuple(names[1:]), tuple(names[:-1])]
    return [choice for choice in dict.fromkeys(found) if choice]


def beyond(own: Tensor, line: Tensor, exact: Tensor) -> float:
    """Distance of a result from the lines in float64, beyond `ROUNDED` times that of the lines in
    its dtype: cancellation costs as much in any order of sums.
    """
    if not line.numel() or not bool(line.isfinite().all() and exact.isfinite().all()):
        return 0.0
    return max(0.0, _gap(own, exact) - ROUNDED * _gap(line, exact))


def _gap(own: Tensor, other: Tensor) -> float:
    """The largest difference, relative to the largest entry."""
    gap = ((own - other).abs().max() / other.abs().max().clamp(min=SMALLEST)).item()
    return gap if gap == gap else float("inf")


def leaves_of(arguments: Mapping[str, object], dtype: torch.dtype) -> dict[str, object]:
    return {
        name: value.detach().to(dtype)
        if isinstance(value, Tensor) and value.is_floating_point()
        else value
        for name, value in arguments.items()
    }


def _outcome(module, program: Program, given: Mapping[str, object], wanted):
    """The output and the gradients, twice; and those from some of several outputs."""
    leaves = {**given}
    for name in wanted:
        leaves[name] = leaves[name].clone().requires_grad_()
    outputs = getattr(module, program.name)(**leaves)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    inputs = [leaves[name] for name in wanted]
    generator = torch.Generator().manual_seed(1)
    arriving = [torch.randn(o.shape, generator=generator).to(o.dtype) for o in outputs]
    found = [output.detach() for output in outputs]
    every = [*range(len(outputs))]
    for given in (every, every, every[1:], *([i] for i in every if every[1:])):
        own = [outputs[i] for i in given if outputs[i].requires_grad]
        if own:
            upstreams = [arriving[i] for i in given if outputs[i].requires_grad]
            how = {"retain_graph": True, "allow_unused": True}
            gradients = torch.autograd.grad(own, inputs, upstreams, **how)
            found += [g for g in gradients if g is not None]
    return found
