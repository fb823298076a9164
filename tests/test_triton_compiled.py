"""Kernels in Triton, compiled for GPUs that are not there: every function, and that nothing of it
spills. What the interpreter runs a compiler may refuse: `make test-triton` does both.
"""

import importlib.util
import os
from importlib import import_module

import pytest
import torch
from compiled_kernels import NAMES, Compiled, functions_of, is_counted

import generated

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no Triton"),
    pytest.mark.skipif("TRITON_INTERPRET" in os.environ, reason="this process interprets"),
]

# Bytes for each thread that do not fit into registers, by module and function.
SPILLS = {
    ("cross_entropy_softcap", "loss_2"): 8,
    ("cross_entropy_softcap", "loss_2_in_chunks"): 8,
    ("cross_entropy_softcap", "plain_forward_in_chunks"): 8,
    ("cross_entropy_softcap", "plain_loss_in_chunks"): 16,
    ("cross_entropy_z_loss", "forward_in_chunks"): 8,
    ("mlp", "forward_7"): 48,
    ("softmax_nll", "loss"): 16,
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("arch", "dtype", "odd"), [(90, "fp32", 0), (80, "bf16", 1)])
def test_every_function_compiles_and_nothing_spills(name, arch, dtype, odd):
    """At the longest rows that lie in registers, and at longer ones in chunks; of a length that 16
    divides, and of an odd one. Triton keeps what it compiled: what is counted in it costs nothing.
    What spills depends on Triton's version.
    """
    every, exact = functions_of(name)
    for own in every:
        found = Compiled(own, exact, own.sizes(own.longest(odd)), arch, dtype)
        registers, spilled = found.used()
        most = SPILLS.get((name, own.name), 0)
        assert spilled <= most or not is_counted(), (own.name, registers, spilled)


@pytest.mark.parametrize("name", NAMES)
def test_every_function_compiles_where_all_sizes_are_1(name):
    """Triton makes constants of them, which have no methods."""
    every, exact = functions_of(name)
    for own in every:
        Compiled(own, exact, dict.fromkeys(own.sizes(1), 1), 90, "fp32")


@pytest.fixture
def driver(monkeypatch):
    """That of a GPU which is not there: torch asks it what it compiles for."""
    from triton.backends.compiler import GPUTarget
    from triton.backends.driver import DriverBase
    from triton.runtime import driver

    class Absent(DriverBase):
        def __init__(self):
            """There is nothing to open."""

        def get_current_target(self):
            return GPUTarget("cuda", 90, 32)

        is_active = classmethod(lambda cls: True)
        map_python_to_cpp_type = get_active_torch_device = get_benchmarker = lambda *given: None

    monkeypatch.setattr(driver, "_active", Absent())
    monkeypatch.setattr("generated.triton.problem", lambda: "")
    with generated.use("triton"):
        yield


def launched(function, *arguments, **how) -> list[tuple[str, set[str]]]:
    """In the graph that Inductor gets: which kernels write into which arrays, and operations."""
    from torch._functorch.aot_autograd import aot_export_module
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    class Module(torch.nn.Module):
        def forward(self, *given):
            return tuple(function(*given))

    graph, _ = aot_export_module(Module(), arguments, trace_joint=False, **how)
    found = []
    for node in graph.graph.nodes:
        if "triton_kernel_wrapper" in str(node.target):
            kernel = kernel_side_table.get_kernel(node.kwargs["kernel_idx"])
            found.append((kernel.fn.__name__, {*node.kwargs["tensors_to_clone"]}))
        elif "gradform" in str(node.target):
            found.append((str(node.target).split(".")[1], set()))
    return found


def test_torch_sees_kernels_whose_numbers_are_sizes(driver):
    """Inductor gives others in float64. Where sizes are not known, launches are not, either."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    own = import_module("generated.triton._operation")

    def operation(start: str):
        (name,) = [n for n in own.OPERATIONS if n.rpartition("_")[0] == start]
        return getattr(torch.ops.gradform, own.registered(name)).default

    softmax, norm = operation("softmax_forward"), operation("rms_norm_forward")
    backward, needs = operation("rms_norm_backward"), [True, True, False]
    with FakeTensorMode():
        x, gain, rms, double = (
            torch.empty(*shape, device="cuda", dtype=dtype)
            for shape, dtype in (
                ((64, 512), torch.half),
                ((512,), torch.half),
                ((64, 1), torch.float),
                ((64, 512), torch.double),
            )
        )
    assert launched(softmax, x) == [("forward", {"y_ptr"})]
    assert launched(lambda *given: backward(*given, needs), x, x, gain, rms) == [
        ("backward", {"dgain_ptr", "dx_ptr"}),
        ("add_parts", {"result_ptr"}),
    ]
    assert launched(lambda *given: norm(*given, 1e-5), x, gain)[0][0] == norm.name().split("::")[1]
    ((name, _),) = launched(softmax, double)
    assert name == f"{softmax.name().split('::')[1]}_whole"
    launchable = import_module("generated.triton._running").launchable
    assert launchable((x, 3)) and not launchable((x, torch.SymInt(None)))
