"""Kernels in Triton inside of what torch.compile makes, without a GPU: Dynamo traces every function
whole, forward and backward, and its launches are nodes of the graph. Nothing is run.

    PYTHONPATH=.:tests python tests/test_triton_traced.py [NAME ...]

prints each function with the number of its launches, or what Dynamo says. torch recognizes Triton's
kernels only where it finds a GPU when it is imported: it is told so, in a process of its own.
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
TRACED = "launches"
pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no Triton"),
    pytest.mark.skipif("TRITON_INTERPRET" in os.environ, reason="this process interprets"),
]


class NotRun(Exception):
    """What was traced is not computed: there is no GPU."""


def traced(emitted: Emitted) -> int:
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
    return len(found)


def main(names: list[str]) -> None:
    kernels, running = (import_module(f"generated.triton{own}") for own in ("", "._running"))
    kernels.problem = lambda: ""
    running.DEVICE = "cpu"
    with generated.use("triton"):
        for emitted in EVERYTHING:
            if str(emitted) in (names or [str(emitted)]):
                try:
                    print(emitted, traced(emitted), TRACED, flush=True)
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


@pytest.mark.xfail(strict=True, reason="the lines compute while torch compiles")
@pytest.mark.parametrize("emitted", EVERYTHING, ids=str)
def test_every_launch_is_in_the_graph(emitted, lines):
    count, _, rest = lines[str(emitted)].partition(" ")
    assert rest == TRACED and int(count) > 0, lines[str(emitted)]


if __name__ == "__main__":
    import torch.utils._triton

    torch.utils._triton.has_triton = lambda: True  # before Dynamo is imported
    main(sys.argv[1:])
