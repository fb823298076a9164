"""Generating from a file in a test, and comparing what comes out with a reference typed by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import torch
from forwards import forward_file as forward_file
from rich.console import Console

from codegen.driver.gate import Generated
from codegen.driver.lean import generate
from codegen.targets.torch.interpret import interpreted
from derive import forward_from
from derive.proof.proving.proof import Proved
from derive.show import document_of
from derive.show.formats import FORMATS
from derive.show.terminal import rendered

TOLERANCE = 1e-12


def module_from(text: str, folder: Path, name: str) -> ModuleType:
    """The generated ``text`` as a module."""
    file = folder / f"generated_{name}.py"
    file.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"gradform.generated.for_test_{name}", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def generated(file: Path, folder: Path):
    """(differentiable function, module, `Generated`) for the one forward in ``file``."""
    result: Generated = generate(forward_from(file))
    module = module_from(result.text, folder, result.program.name)
    return getattr(module, result.program.name), module, result


def stated(result: Generated):
    """The values of all statements, by their names, as torch computes them."""
    names = [p.name for p in result.program.forward.parameters]

    def run(*args, **named):
        return interpreted(result.proved.definition, dict(zip(names, args, strict=False)) | named)

    return run


def pages(proved: Proved) -> dict[str, str]:
    """What ``show`` writes, in every format."""
    document = document_of(proved)
    console = Console(width=160, color_system=None)
    with console.capture() as captured:
        console.print(rendered(document))
    return {"text": captured.get()} | {name: page(document) for name, page in FORMATS.items()}


def assert_same_gradients(ours, reference, *inputs, seed=0, **scalars):
    """Value and all gradients agree in float64, for a random upstream gradient; shapes must be
    the same.
    """
    generator = torch.Generator().manual_seed(seed)

    def run(function, **numbers):
        leaves = [t.clone().requires_grad_() if t.is_floating_point() else t for t in inputs]
        output = function(*leaves, **numbers)
        return output, [leaf for leaf in leaves if leaf.requires_grad]

    output, leaves = run(ours, **scalars)
    expected, expected_leaves = run(reference)
    assert output.shape == expected.shape
    torch.testing.assert_close(output, expected, rtol=TOLERANCE, atol=TOLERANCE)
    upstream = torch.randn(tuple(output.shape), generator=generator, dtype=torch.float64)
    actual = torch.autograd.grad(output, leaves, upstream)
    wanted = torch.autograd.grad(expected, expected_leaves, upstream)
    for one, other in zip(actual, wanted, strict=True):
        assert one.shape == other.shape
        gap, largest = (one - other).abs().max(), other.abs().max()
        assert gap <= TOLERANCE * max(float(largest), 1.0), (float(gap), float(largest))


def draw(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def labels(n, c, seed=2):
    return torch.randint(c, (n,), generator=torch.Generator().manual_seed(seed))
