"""The table of docs/gpu-kernels.md: what kernels in Triton move, in bytes for each entry of a row,
counted in the instructions, beside the least; registers, and what does not fit into them.

    PYTHONPATH=. python tests/test_triton_moves.py

writes the table of today into the page. It needs Triton, and no GPU.
"""

from __future__ import annotations

from pathlib import Path

from test_triton_compiled import Compiled, functions_of, pytestmark

__all__ = ["pytestmark"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "gpu-kernels.md"
NAMES = ("softmax", "rms_norm", "layer_norm", "softmax_nll", "swiglu", "gelu")
ENTRIES, ARCH = 4096, 90
TITLE = "| kernel | reads | at least | writes | at least | registers | spilled |\n"
LINE = "|---|---|---|---|---|---|---|\n"


def table() -> str:
    """Kernels whose rows lie in registers, or are cut by the grid; float32."""
    rows = []
    for name in NAMES:
        every, exact = functions_of(name)
        for own in every:
            if own.function is not own.record.first or len(own.function.inner) != 1:
                continue
            found = Compiled(own, exact, own.sizes(ENTRIES), ARCH, "fp32")
            (least, _), moved, (registers, spilled) = own.least(), found.moved(), found.used()
            cells = [f"{name} `{own.name}`"]
            for kind in ("ld", "st"):
                cells += [f"{moved[kind]:.1f}", str(least[kind])]
            rows.append(f"| {' | '.join([*cells, str(registers), str(spilled)])} |\n")
    return "".join([TITLE, LINE, *rows])


def with_table(page: str) -> str:
    """The page with the table of today instead of the one that it has."""
    before, _, rest = page.partition(TITLE)
    behind = rest.partition("\n\n")[2]
    return f"{before}{table()}\n{behind}"


def test_the_page_has_the_table_of_today():
    assert table() in PAGE.read_text(), "run python tests/test_triton_moves.py"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
