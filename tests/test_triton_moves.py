"""What kernels in Triton move, as REPORT.md has it: bytes for each entry of a row, counted in the
instructions, beside the least; registers, and what does not fit into them.

    PYTHONPATH=. python tests/test_triton_moves.py

counts those anew that changed. It needs Triton, and no GPU.
"""

from __future__ import annotations

import sys

import pytest
from compiled_kernels import COUNTED, FOLDER, LABEL, NAMES, Compiled, Own, functions_of, is_counted
from test_triton_compiled import pytestmark as of_compiled

from codegen.report.moves import Moved, hash_of, is_outdated, moves_in, put_moves

pytestmark = [
    *of_compiled,
    pytest.mark.skipif(not is_counted(), reason=f"counted with Triton {COUNTED}"),
]
ARCH, DTYPE = 90, "fp32"
# Why a kernel moves more than each array once, by its module, or by its module and name.
PLACES = "entries are read at two places"
EACH = "each thread reads what has not all axes of a row"
PARTS = "a sum is read in the parts that a kernel before it made"
TILES = "a thread has a part of a row, and reads for itself what lies along rows or columns alone"
TWICE = "the compiler writes the loop twice, and a thread runs one"
WHY = {
    "rotary_embedding": PLACES,
    "cox": PLACES,
    "gaussian_process": PLACES,
    **dict.fromkeys(("batch_norm forward_4", "mlp forward_3", "mlp forward_4"), TWICE),
}


def counted(own: Own) -> tuple[Moved, bool]:
    """What a function moves, and whether that is no more than every array once."""
    found = Compiled(own, own.sizes(own.longest()), ARCH, DTYPE)
    least, moved, (registers, spilled) = own.least(), found.moved(), found.used()
    of_row = least.others * LABEL * 32 * found.launch.warps / found.entries
    once, each = (
        all(moved[kind] <= most[kind] + of_row for kind in moved)
        for most in (least.bytes, least.each)
    )
    tiles = found.launch.constants.get("ROWS", 1) > 1
    reads, writes = (round(least.bytes[kind], 1) for kind in ("ld", "st"))
    counts = moved["ld"], reads, moved["st"], writes
    return Moved(
        own.name, own.longest(), *counts, registers, spilled, why(own, once, each, tiles)
    ), once


def why(own: Own, once: bool, each: bool, tiles: bool) -> str:
    if once:
        return ""
    if own.passes > 1:
        return f"{own.passes} passes over the row"
    if each:
        return EACH
    if any(name.endswith("_count") for name in own.function.function.arg_names):
        return PARTS
    if tiles:
        return TILES
    module = own.module
    return WHY.get(f"{module} {own.name}", WHY.get(module, ""))


def every(name: str) -> list[tuple[Moved, bool]]:
    return [counted(function) for function in functions_of(name) if function.function.inner]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_more_than_every_array_once_has_a_reason(name):
    """And what was counted is what the report has."""
    found = every(name)
    for row, once in found:
        assert once or row.why, row
    assert moves_in(FOLDER)[name] == (hash_of(FOLDER, name), [row for row, _ in found]), (
        "make moves"
    )


if __name__ == "__main__":
    if not is_counted():
        sys.exit(f"kernels are counted with Triton {COUNTED}: pip install triton=={COUNTED}")
    known = {n: rows for n, rows in moves_in(FOLDER).items() if not is_outdated(FOLDER, n)}
    known = {} if "--all" in sys.argv else known  # where it is counted or said otherwise
    fresh = {n: (hash_of(FOLDER, n), [r for r, _ in every(n)]) for n in NAMES if n not in known}
    put_moves(FOLDER, {n: (known | fresh)[n] for n in NAMES})
