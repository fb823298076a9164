"""Runs the kernels of a module beside autograd, and beside the lines that they stand for."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count, product
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from codegen.program import Program
from codegen.targets.cpp.training import batch_axis
from codegen.targets.torch.check import DRAWS, arguments_of, dims_tried, largest_difference_of
from codegen.writing import ENDS
from derive.language.errors import QuestionError, UnprovedError
from derive.notation.definition import Definition

# Of the largest entry: rounding is far below it, what is wrong far above.
FORMATS = {torch.float64: 1e-9, torch.float32: 1e-3}
SMALLEST = 1e-6  # what is smaller throughout is compared with this
LONG = 2.0**20  # the rate of a step: beside it a parameter is no more than rounding
PACKAGES = count(1)


@dataclass(frozen=True)
class Beside:
    """A module of the torch target in which kernels have the places of lines."""

    texts: tuple[str, ...]
    shared: Mapping[str, str]

    def largest_difference(self, text: str, definition: Definition, program: Program) -> float:
        """That to autograd in double precision. Raises `QuestionError` where no compiler is, and
        `UnprovedError` where nothing was run by a kernel, or one in single precision is far from
        the lines that it stands for.
        """
        with _imported(text, self.texts, self.shared, program.name) as (module, kernels):
            _build(kernels, program.name)
            wrapper = importlib.import_module(f"{kernels.__name__}.{program.name}")
            called = _counting(wrapper)
            with kernels.use("cpp"):
                difference = largest_difference_of(module, definition, program)
                if not difference <= FORMATS[torch.float32]:
                    return difference
                apart = _from_lines(module, kernels, definition, program)
            if hasattr(wrapper, "training_step"):
                stepped = _step_apart(module, wrapper.training_step, definition, program)
                apart = {dtype: max(apart[dtype], stepped[dtype]) for dtype in FORMATS}
            silent = sorted(set(wrapper._run.__self__.counts) - called)
            if silent:
                raise UnprovedError(f"{definition.name}: no call reached {', '.join(silent)}")
            for dtype, allowed in FORMATS.items():
                if not apart[dtype] <= allowed:
                    raise UnprovedError(
                        f"{definition.name}: the kernels are {apart[dtype]:.1e} away from the lines"
                        f" of torch in {dtype} (at most {allowed:.0e} is allowed); nothing was "
                        "emitted"
                    )
        return difference


@contextmanager
def _imported(
    text: str, texts: tuple[str, ...], shared: Mapping[str, str], name: str
) -> Iterator[tuple[ModuleType, ModuleType]]:
    """The module and the package of its kernels, from files that are gone afterwards."""
    package = f"gradform_kernels_{next(PACKAGES)}"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / package / "kernels"
        folder.mkdir(parents=True)
        files = {**shared} | {f"{name}{end}": text for end, text in zip(ENDS, texts, strict=False)}
        for file, content in files.items():
            (folder / file).write_text(content)
        (folder.parent / "__init__.py").write_text("")
        (folder.parent / f"{name}.py").write_text(text)
        sys.path.insert(0, place)
        try:
            importlib.invalidate_caches()
            module = importlib.import_module(f"{package}.{name}")
            yield module, importlib.import_module(f"{package}.kernels")
        finally:
            sys.path.remove(place)
            for known in [known for known in sys.modules if known.split(".")[0] == package]:
                del sys.modules[known]


def _build(kernels: ModuleType, name: str) -> None:
    building = importlib.import_module(f"{kernels.__name__}._building")
    try:
        building.built(building.FOLDER / f"{name}.cpp", "double")
    except building.NoCompiler as error:
        remedy = "leave --target cpp out: kernels are compared before they are written"
        raise QuestionError(str(error), remedy) from None


def _counting(wrapper: ModuleType) -> set[str]:
    """The names of the kernels that are called from now on."""
    called: set[str] = set()
    run = wrapper._run

    class Counting:
        __self__ = run.__self__

        def __call__(self, name: str, arrays, numbers) -> bool:
            done = run(name, arrays, numbers)
            if done:
                called.add(name)
            return done

    wrapper._run = Counting()
    return called


def _from_lines(module, kernels, definition: Definition, program: Program) -> dict:
    """The largest differences to the lines that kernels stand for, relative to the largest entry,
    by the format: of the loss and of every choice of gradients, with and without options.
    """
    worst = dict.fromkeys(FORMATS, 0.0)
    inputs = [p.name for p in program.forward.parameters if p.role == "input"]
    optional = {p.name for p in program.forward.parameters if p.default is not None}
    every = replace(definition, ignoring=())  # labels that all count, for what is shorter then
    for dims, (left_out, drawn) in product(
        dims_tried(definition), ((set(), definition), (optional, every))
    ):
        generator = torch.Generator().manual_seed(0)
        arguments = arguments_of(drawn, program, DRAWS[1], generator, dims)
        passed = {name: value for name, value in arguments.items() if name not in left_out}
        there = [name for name in inputs if name in passed]
        for wanted, dtype in product(_choices(there), FORMATS):
            with kernels.use("cpp"):
                ours = _outcome(module, program, passed, wanted, dtype)
            with kernels.use("torch"):
                theirs = _outcome(module, program, passed, wanted, dtype)
            for own, other in zip(ours, theirs, strict=True):
                if other.numel() and bool(other.isfinite().all()):
                    worst[dtype] = max(worst[dtype], _gap(own, other))
    return worst


def _step_apart(module, training_step, definition: Definition, program: Program) -> dict:
    """The largest difference of what a step takes off a parameter to the gradient of the lines,
    relative to the largest entry, by the format.
    """
    worst = dict.fromkeys(FORMATS, 0.0)
    axis = batch_axis(program.forward.parameters)
    examples = next(
        p.name for p in program.forward.parameters if p.layout and p.layout[0].axis.name == axis
    )
    for dims, dtype in product(dims_tried(definition), FORMATS):
        generator = torch.Generator().manual_seed(0)
        arguments = arguments_of(definition, program, DRAWS[1], generator, dims)
        leaves = _leaves(arguments, dtype)
        own = {
            name: value.clone(memory_format=torch.contiguous_format)
            for name, value in leaves.items()
            if isinstance(value, Tensor)
        }
        batch = len(own[examples])
        picks = torch.randint(batch, (batch,), generator=generator)
        step = training_step(**{**leaves, **own}, batch=batch)
        loss = step(picks, LONG)
        picked = {name: leaves[name][picks] for name in step.data}
        shared = {name: leaves[name].requires_grad_() for name in step.parameters}
        theirs = getattr(module, program.name)(**{**leaves, **picked, **shared})
        gradients = torch.autograd.grad(theirs, [*shared.values()])
        pairs = [(torch.tensor(loss), theirs.detach().double())]
        pairs += [
            ((before.detach() - own[name]) / LONG, gradient)
            for (name, before), gradient in zip(shared.items(), gradients, strict=True)
        ]
        worst[dtype] = max(worst[dtype], *(_gap(*pair) for pair in pairs))
    return worst


def _choices(names: list[str]) -> list[tuple[str, ...]]:
    """All of them, each alone, and all but the first."""
    found = [tuple(names), *((name,) for name in names), tuple(names[1:])]
    return [choice for choice in dict.fromkeys(found) if choice]


def _gap(own: Tensor, other: Tensor) -> float:
    """The largest difference, relative to the largest entry."""
    gap = ((own - other).abs().max() / other.abs().max().clamp(min=SMALLEST)).item()
    return gap if gap == gap else float("inf")


def _leaves(arguments: Mapping[str, object], dtype: torch.dtype) -> dict[str, object]:
    return {
        name: value.detach().to(dtype)
        if isinstance(value, Tensor) and value.is_floating_point()
        else value
        for name, value in arguments.items()
    }


def _outcome(module, program: Program, arguments: Mapping[str, object], wanted, dtype):
    """The output and the gradients, these twice: a loss hands them out once."""
    leaves = _leaves(arguments, dtype)
    for name in wanted:
        leaves[name] = leaves[name].requires_grad_()
    output = getattr(module, program.name)(**leaves)
    inputs = [leaves[name] for name in wanted]
    generator = torch.Generator().manual_seed(1)
    upstream = torch.randn(output.shape, generator=generator).to(dtype)
    found = [output.detach()]
    for _ in range(2):
        gradients = torch.autograd.grad(
            output, inputs, upstream, retain_graph=True, allow_unused=True
        )
        found += [g for g in gradients if g is not None]
    return found
