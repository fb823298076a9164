"""Runs the kernels of a module beside autograd, and beside the lines that they stand for."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor

from codegen.program import Program
from codegen.targets.torch.check import DRAWS, arguments_of, dims_tried, largest_difference_of
from derive.language.errors import QuestionError, UnprovedError
from derive.notation.definition import Definition

SINGLE = 1e-3  # of the largest entry: rounding is far below it, what is wrong far above
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
                if not difference <= SINGLE:
                    return difference
                single = _single(module, kernels, definition, program)
            silent = sorted(set(wrapper._run.__self__.counts) - called)
            if silent:
                raise UnprovedError(f"{definition.name}: no call reached {', '.join(silent)}")
            if not single <= SINGLE:
                raise UnprovedError(
                    f"{definition.name}: the kernels are {single:.1e} away from the lines of torch "
                    f"in single precision (at most {SINGLE:.0e} is allowed); nothing was emitted"
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
        files = {**shared, f"{name}.cpp": texts[0], f"{name}.py": texts[1]}
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
    try:
        kernels.built(kernels.FOLDER / f"{name}.cpp")
    except kernels.NoCompiler as error:
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


def _single(module, kernels, definition: Definition, program: Program) -> float:
    """The largest difference to the lines in single precision, relative to the largest entry."""
    worst = 0.0
    for dims in dims_tried(definition):
        generator = torch.Generator().manual_seed(0)
        arguments = arguments_of(definition, program, DRAWS[1], generator, dims)
        with kernels.use("cpp"):
            ours = _in_single(module, program, arguments)
        with kernels.use("torch"):
            theirs = _in_single(module, program, arguments)
        for own, other in zip(ours, theirs, strict=True):
            if other.numel() and bool(other.isfinite().all()):
                gap = ((own - other).abs().max() / other.abs().max().clamp(min=1e-6)).item()
                worst = max(worst, gap if gap == gap else float("inf"))
    return worst


def _in_single(module, program: Program, arguments: Mapping[str, object]) -> list[Tensor]:
    """The output and the gradients."""
    differentiable = {p.name for p in program.forward.parameters if p.role == "input"}
    leaves = {
        name: value.float().requires_grad_(name in differentiable)
        if isinstance(value, Tensor) and value.is_floating_point()
        else value
        for name, value in arguments.items()
    }
    output = getattr(module, program.name)(**leaves)
    inputs = [leaves[name] for name in sorted(differentiable) if leaves.get(name) is not None]
    generator = torch.Generator().manual_seed(1)
    upstream = torch.randn(output.shape, generator=generator)
    gradients = torch.autograd.grad(output, inputs, upstream, allow_unused=True)
    return [output.detach(), *(g for g in gradients if g is not None)]
