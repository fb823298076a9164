"""Kernels in Triton inside of what torch.compile makes, without a GPU: Dynamo traces every function
whole, forward and backward, and its launches are nodes of the graph. Nothing is run.

    PYTHONPATH=.:tests python tests/test_triton_traced.py [NAME ...]

prints each function with the number of its launches and of those that compute in float64, or what
Dynamo says. Inductor passes a number as float64: a row that met one would be computed in that, and
a sum over a loop would not compile. torch recognizes Triton's kernels only where it finds a GPU
when it is imported: it is told so, in a process of its own.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
import torch
from gallery import EVERYTHING, Emitted

import generated

ROOT = Path(__file__).resolve().parents[1]
TRACED, WIDE, ELSEWHERE = "launches", "in float64", "elsewhere"
KINDS = {torch.float32: "fp32", torch.float64: "fp64", torch.int64: "i64", torch.bool: "i1"}
pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no Triton"),
    pytest.mark.skipif("TRITON_INTERPRET" in os.environ, reason="this process interprets"),
]


class NotRun(Exception):
    """What was traced is not computed: there is no GPU."""


def is_in_float64(launch: torch.fx.Node) -> bool:
    """Whether a kernel computes an array in float64 as Inductor launches it."""
    import triton
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernel = kernel_side_table.get_kernel(launch.kwargs["kernel_idx"])
    while not isinstance(kernel, triton.JITFunction):
        kernel = kernel.fn
    known = kernel_side_table.get_constant_args(launch.kwargs["constant_args_idx"])
    arrays = {n: t.meta["example_value"].dtype for n, t in launch.kwargs["kwargs"].items()}
    given = {**known, **arrays}
    constexpr = {p.name for p in kernel.params if p.is_constexpr}
    ones = {name for name, value in given.items() if type(value) is int and value == 1}
    constants = {n: v for n, v in given.items() if n in constexpr | ones or v is None}
    signature = {
        name: "constexpr" if name in constants else kind_of(given[name])
        for name in kernel.arg_names
    }
    if "fp64" not in signature.values():
        return False
    source = ASTSource(kernel, signature, constants, {})
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32))
    return "xf64>" in made.asm["ttir"]


def kind_of(given) -> str:
    """Triton's name for what Inductor says an argument is."""
    if isinstance(given, torch.dtype):
        return f"*{KINDS[given]}"
    return "i1" if isinstance(given, bool) else "fp64" if isinstance(given, float) else "i32"


def traced(emitted: Emitted) -> list[torch.fx.Node]:
    """The launches in the graph of a function and its backward."""
    found: list[torch.fx.Node] = []

    def noted(graph: torch.fx.GraphModule, examples) -> Callable:
        for module in graph.modules():
            if isinstance(module, torch.fx.GraphModule):
                found.extend(n for n in module.graph.nodes if "triton_kernel" in str(n.target))

        def run(*given):
            raise NotRun

        return run

    assert emitted.module and emitted.definition.outputs  # Dynamo sees through no lock
    torch._dynamo.reset()
    leaves = emitted.leaves(dtype=torch.float32)
    compiled = torch.compile(
        lambda **given: emitted.function(**given), backend=noted, fullgraph=True
    )
    with suppress(NotRun):
        compiled(**leaves)
    return found


def main(names: list[str]) -> None:
    kernels, running = (import_module(f"generated.triton{own}") for own in ("", "._running"))
    kernels.problem = lambda: ""
    with generated.use("triton"):
        print(ELSEWHERE, len(traced(EVERYTHING[0])), TRACED, flush=True)
        running.DEVICE = "cpu"
        for emitted in EVERYTHING:
            if str(emitted) in (names or [str(emitted)]):
                try:
                    launches = traced(emitted)
                    wide = sum(map(is_in_float64, launches))
                    print(emitted, len(launches), TRACED, wide, WIDE, flush=True)
                except Exception as error:
                    print(emitted, "failed:", " ".join(str(error).split()), flush=True)


@pytest.fixture(scope="module")
def lines() -> dict[str, str]:
    """What is printed of each function."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests"), *sys.path])
    known = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, __file__]
    said = subprocess.run(command, env=known, capture_output=True, text=True, check=True).stdout
    return dict(line.split(" ", 1) for line in said.splitlines())


@pytest.mark.parametrize("emitted", EVERYTHING, ids=str)
def test_every_launch_is_in_the_graph(emitted, lines):
    count, _, rest = lines[str(emitted)].partition(" ")
    assert rest.startswith(TRACED) and int(count) > 0, lines[str(emitted)]


def test_tensors_that_are_not_on_the_gpu_are_traced_without_a_warning(lines):
    assert lines[ELSEWHERE] == f"0 {TRACED}"


@pytest.mark.parametrize("emitted", EVERYTHING, ids=str)
def test_no_row_is_computed_in_float64(emitted, lines):
    """The inputs are in float32."""
    assert lines[str(emitted)].endswith(f" 0 {WIDE}"), lines[str(emitted)]


if __name__ == "__main__":
    import torch.utils._triton

    torch.utils._triton.has_triton = lambda: True  # before Dynamo is imported
    main(sys.argv[1:])
