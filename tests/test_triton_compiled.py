"""Kernels in Triton, compiled for GPUs that are not there: every function, and how many registers
and bytes it takes. What the interpreter runs a compiler may refuse: `make test-triton` does both.
"""

import importlib.util
import math
import os
import re
import subprocess
import tempfile
from importlib import import_module
from pathlib import Path

import pytest
import torch

import generated

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no Triton"),
    pytest.mark.skipif("TRITON_INTERPRET" in os.environ, reason="this process interprets"),
]

FOLDER = Path(generated.__file__).parent / "triton"
NAMES = sorted(file.stem for file in FOLDER.glob("[a-z]*.py"))
ROWS = 4096  # more than there are programs
FEW, MOST = 8, 16384  # entries along the other axes of a row, and along the last one
LABEL = 8  # its bytes
# Bytes for each thread that do not fit into registers at the longest rows, by what has more than a
# few: js_div has three logarithms of everything at once.
FEW_BYTES, SPILLS = 100, {"js_div": 704}
NOT_ONCE = {
    *("group_norm", "gru_cell", "lstm_cell", "mlp"),  # whose tables have two axes as one
    "rotary_embedding",  # which reads entries at other places too
}
LONGEST = 32768  # entries of a row in registers, times those alive
ACCESS = re.compile(r"\b(ld|st)\.global((?:\.[a-z0-9_:]+)*)")


class Own:
    """A function in Triton of the module ``name``: that of a ``record``, or one for long rows."""

    def __init__(self, name: str, record, function):
        from generated.triton._reading import read

        self.table = import_module(f"generated.triton.{name}").table
        self.record, self.function, self.name = record, function, function.function.__name__
        steps = (step for row in self.table.rows for step in row.steps if isinstance(step, str))
        self.step = next(read(step) for step in steps if step.startswith(f"{record.name}("))
        self.axes = self.table.shapes.axes | self.step.shapes

    def sizes(self, inner: int) -> dict[str, int]:
        """``inner`` entries in a row, and many rows."""
        of, fixed = self.function.sizes, self.table.shapes.fixed
        *before, last = [of[axis] for axis in self.function.inner] or [""]
        found = dict.fromkeys([*self.step.numbers[: self.step.sizes], *of.values()], ROWS)
        *of_one, last = last.split("*")  # several axes that are one
        return found | dict.fromkeys(before, FEW) | dict.fromkeys(of_one, 1) | {last: inner} | fixed

    def kind(self, pointer: str, exact: set[str], dtype: str) -> str:
        aside = exact | self.function.parts.keys() | self.function.keeps.keys()
        return "fp32" if pointer in aside else "i64" if pointer in self.whole else dtype

    @property
    def whole(self) -> set[str]:
        return self.table.shapes.whole | self.places

    @property
    def places(self) -> set[str]:
        """Of the largest entries, which torch finds: one for each row."""
        lines = (step for row in self.table.rows for step in row.steps if isinstance(step, tuple))
        return {name for name, line in lines if "argmax" in line.__code__.co_names}

    def least(self) -> tuple[dict[str, int], int]:
        """How many bytes for each entry of a row it reads and writes if it does so once for every
        array that has one, and how many other arrays there are. A label for each entry of a row
        picks an entry of these.
        """
        of, fixed = self.function.sizes, self.table.shapes.fixed
        row = {size for axis in self.function.inner for size in of[axis].split("*")}
        found, others, picks = {"ld": 0, "st": 0}, 0, False
        for kind, names in (("ld", self.step.takes), ("st", self.step.makes)):
            for name in names:
                axes = self.axes.get(name, row)  # of lines of torch: all
                if name in self.places or not row.intersection(axes):
                    others += 1
                    continue
                several = math.prod(fixed[axis] for axis in axes if axis in fixed)
                found[kind] += several * (LABEL if name in self.whole else 4)
                picks |= name in self.whole
        return {"ld": found["ld"] + 4 * others * picks, "st": found["st"]}, others


class Compiled:
    """A function as it is launched for some sizes: compiled for ``arch``."""

    def __init__(self, own: Own, exact: set[str], sizes: dict[str, int], arch: int, dtype: str):
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        self.launch, function = own.function.launch(sizes), own.function
        signature, constants, aligned = {}, {}, {}
        real = {"REAL": triton.language.float32, **self.launch.constants}
        numbers = {**sizes, **self.launch.lengths, "rows": self.launch.rows}
        for i, name in enumerate(function.function.arg_names):
            if name in function.constants:
                signature[name], constants[name] = "constexpr", real[name]
            elif name.endswith("_ptr"):
                signature[name] = f"*{own.kind(name.removesuffix('_ptr'), exact, dtype)}"
                aligned[i,] = [["tt.divisibility", 16]]
            elif numbers.get(name) == 1:
                signature[name], constants[name] = "constexpr", 1
            elif name in numbers:
                signature[name] = "i32"
                aligned |= {} if numbers[name] % 16 else {(i,): [["tt.divisibility", 16]]}
            else:
                signature[name] = "fp32"
        source = ASTSource(function.function, signature, constants, aligned)
        target, options = GPUTarget("cuda", arch, 32), {"num_warps": self.launch.warps}
        self.reader = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
        self.made = triton.compile(source, target=target, options=options)

    def used(self) -> tuple[int, int]:
        """Registers, and bytes of what did not fit into them, as the binary says."""
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(self.made.asm["cubin"])
            file.flush()
            command = [self.reader, "-res-usage", file.name]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        registers, stack = re.search(r"REG:(\d+) STACK:(\d+)", said).groups()
        return int(registers), int(stack)

    def moved(self) -> dict[str, float]:
        """Bytes that instructions read and write, for each entry of what a program computes."""
        bytes_of = {"ld": 0, "st": 0}
        for kind, how in ACCESS.findall(self.made.asm["ptx"]):
            several, width = re.search(r"\.v(\d)", how), re.search(r"\.[bfus](\d+)", how)
            bytes_of[kind] += (int(several[1]) if several else 1) * int(width[1]) // 8
        threads = 32 * self.launch.warps
        return {kind: count * threads / self.entries for kind, count in bytes_of.items()}

    @property
    def entries(self) -> int:
        """Those that a program computes at once."""
        sizes = self.launch.constants
        return math.prod(sizes[name] for name in sizes if name == "ROWS" or "BLOCK" in name)


def functions_of(name: str) -> tuple[list[Own], set[str]]:
    """Those of all kernels of a module, and what is exact in it."""
    import_module(f"generated.triton.{name}")
    records = import_module("generated.triton._launching").records
    own = [record for (file, _), record in records.items() if Path(file).stem == name]
    every = [Own(name, r, function) for r in own for function in (r.first, *r.longer)]
    return every, set().union(*(record.exact for record in own))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("arch", "dtype", "odd"), [(90, "fp32", 0), (80, "bf16", 1)])
def test_every_function_compiles_and_hardly_spills(name, arch, dtype, odd):
    """At the longest rows that lie in registers, and at longer ones in chunks; of a length that 16
    divides, and of an odd one.
    """
    every, exact = functions_of(name)
    for own in every:
        longest = LONGEST // own.function.alive
        longest //= FEW ** max(0, len(own.function.inner) - 1)
        inner = min(1 << longest.bit_length() - 1, MOST) - odd
        inner = 4 * LONGEST + odd if own.function.chunked else inner
        found = Compiled(own, exact, own.sizes(inner), arch, dtype)
        registers, spilled = found.used()
        assert spilled <= SPILLS.get(name, FEW_BYTES), (own.name, registers, spilled)


@pytest.mark.parametrize("name", NAMES)
def test_every_function_compiles_where_all_sizes_are_1(name):
    """Triton makes constants of them, which have no methods."""
    every, exact = functions_of(name)
    for own in every:
        Compiled(own, exact, dict.fromkeys(own.sizes(1), 1), 90, "fp32")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NOT_ONCE])
def test_no_more_is_read_and_written_than_each_array_once(name):
    """A row in registers, or what the grid cuts: counted in the instructions. What a row has one of
    each thread reads, or writes, for itself.
    """
    every, exact = functions_of(name)
    for own in every:
        if own.function is not own.record.first or len(own.function.inner) != 1:
            continue
        found = Compiled(own, exact, own.sizes(4096), 90, "fp32")
        fewest, others = own.least()
        for kind, count in found.moved().items():
            once = others * LABEL * 32 * found.launch.warps / found.entries
            assert count <= fewest[kind] + once, (own.name, kind, count, fewest, once)


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
