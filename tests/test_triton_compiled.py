"""Kernels in Triton, compiled for GPUs that are not there: every function, and that nothing of it
spills. What the interpreter runs a compiler may refuse: `make test-triton` does both.
"""

import importlib.util
import os

import pytest
from compiled_kernels import NAMES, Compiled, functions_of, is_counted

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no Triton"),
    pytest.mark.skipif("TRITON_INTERPRET" in os.environ, reason="this process interprets"),
]

# Bytes for each thread that do not fit into registers, by module and function.
HALF = 32768  # of the registers of a multiprocessor
SPILLS = {("mlp", "forward_7"): 48}
OF_CHUNKS = 64  # of a loop over chunks, whose compiler leaves registers free


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("arch", "dtype", "odd"), [(90, "fp32", 0), (80, "bf16", 1)])
def test_every_function_compiles_and_little_spills(name, arch, dtype, odd):
    """At the longest rows that lie in registers, and at longer ones in chunks; of a length that 16
    divides, and of an odd one. Nothing spills that half of the registers hold, and of longer rows
    no more than each value once. Triton keeps what it compiled: what is counted in it costs
    nothing. What spills depends on Triton's version.
    """
    for own in functions_of(name):
        found = Compiled(own, own.sizes(own.longest(odd)), arch, dtype)
        registers, spilled = found.used()
        held = found.entries * (own.function.alive + 1 + odd)
        most = held * 4 // (32 * found.launch.warps) if held > HALF else 0
        most = OF_CHUNKS if own.function.chunked else most
        most = max(most, SPILLS.get((name, own.name), 0))
        assert spilled <= most or not is_counted(), (own.name, registers, spilled)


@pytest.mark.parametrize("name", NAMES)
def test_every_function_compiles_where_all_sizes_are_1(name):
    """Triton makes constants of them, which have no methods."""
    for own in functions_of(name):
        Compiled(own, dict.fromkeys(own.sizes(1), 1), 90, "fp32")
