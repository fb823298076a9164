"""Kernels of tiles, compiled for GPUs that are not there: how many registers each takes, and bytes
that do not fit into them. It needs Triton, which interprets nothing in the same process.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest.mock import patch

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

KINDS = {torch.bfloat16: "bf16", torch.float32: "fp32", torch.int64: "i64", torch.bool: "i1"}
PROCESSORS = 132  # of an H100


class Recorded:
    """Stands for a kernel, and keeps what it is launched with."""

    def __init__(self, kernel, found: dict[str, tuple]):
        self.kernel, self.found, self.__name__ = kernel, found, kernel.__name__

    def __getitem__(self, grid: tuple) -> Callable[..., None]:
        def launched(*given, **how) -> None:
            self.found[self.__name__] = (self.kernel, given, how)

        return launched


def launches(module: ModuleType, function: Callable, shapes: dict[str, tuple], dtype) -> dict:
    """Each kernel of a call of a function and its gradients, with what it is launched with, by its
    name. Arrays of these shapes have no entries; those called ``labels`` are of labels.
    """
    found: dict[str, tuple] = {}
    run, gpu = module._run, SimpleNamespace(multi_processor_count=PROCESSORS)

    def recorded(kernel, *given, **more) -> None:
        run(Recorded(kernel, found), *given, **more)

    with (
        FakeTensorMode(),
        patch.object(module, "_run", recorded),
        patch.object(module, "_check_runs_on"),
        patch.object(torch.cuda, "device_of", lambda _: nullcontext()),
        patch.object(torch.cuda, "get_device_properties", lambda _: gpu),
    ):
        given = {
            name: torch.zeros(shape, dtype=torch.int64)
            if "labels" in name
            else torch.zeros(shape, dtype=dtype, requires_grad=True)
            for name, shape in shapes.items()
        }
        y = function(**given)
        inputs = [t for t in given.values() if t.requires_grad]
        torch.autograd.grad(y, inputs, torch.zeros_like(y), allow_unused=True)
    return found


def used(kernel, given: tuple, how: dict, arch: int) -> tuple[int, int, int]:
    """Registers of a thread, its bytes in memory, and bytes of shared memory of a program."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature, constants, aligned = {}, {}, {}
    for i, (parameter, value) in enumerate(zip(kernel.params, given, strict=True)):
        name, is_any = parameter.name, parameter.do_not_specialize
        is_int = isinstance(value, int) and not parameter.is_constexpr
        if parameter.is_constexpr or value is None or (is_int and value == 1 and not is_any):
            signature[name], constants[name] = "constexpr", value
            continue
        is_array = isinstance(value, torch.Tensor)
        signature[name] = f"*{KINDS[value.dtype]}" if is_array else "i32" if is_int else "fp64"
        if is_array or (is_int and value % 16 == 0 and not is_any):
            aligned[i,] = [["tt.divisibility", 16]]
    source = ASTSource(kernel, signature, constants, aligned)
    made = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=how)
    reader = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(made.asm["cubin"])
        file.flush()
        command = [reader, "-res-usage", file.name]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, stack = re.search(r"REG:(\d+) STACK:(\d+)", said).groups()
    return int(registers), int(stack), made.metadata.shared
