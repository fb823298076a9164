"""Launches of an autograd node in C++, as the text that ``node.cpp`` reads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.program import NUMBERS
from codegen.targets.lean.pair import Pair
from codegen.targets.tables.kernel import Kernel
from codegen.targets.tables.page import FunctionOnKernels, KernelLines, KernelPage
from codegen.targets.torch.lines import STEP

LENGTH = re.compile(r"(\w+) = (\w+)\.shape\[(\d+)\]( // \w+)?")
COUNT = re.compile(r"(\w+) = (\w+)\.numel\(\)")
SHAPE = re.compile(r"([\w, ]+?),? = (\w+)\.shape")
OF_A_LENGTH = re.compile(r"if (\w+) == 0:")  # nonempty tensors have no length of 0
NOT_DIVIDED = re.compile(r"if (\w+) < 1 or \w+\.shape\[\d+\] % \1:")  # a check of the node


def nodes_of(pair: Pair, page: KernelPage) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names of nodes, and their statements."""
    if statements := _of_function(pair, page):
        yield pair.program.title, statements
    if page.at_once and (statements := _of_loss(page)):
        yield f"{page.name}_at_once", statements


def _of_loss(page: KernelPage) -> tuple[str, ...]:
    """The statements for a loss with its gradients; none where Python decides."""
    parameters = page.at_once.function.parameters
    takes = [f"{p.name}#" if p.role in NUMBERS else p.name for p in parameters]
    tensors = [p for p in parameters if p.role not in NUMBERS]
    gradients = [f"d{p.name}" if p.role == "input" else "-" for p in tensors]
    first = _launched(page, page.at_once, takes, [*page.outputs, *gradients])
    saves = f"saves {' '.join(p.name for p in tensors)}"
    return (*first, saves, "scales") if first else ()


def _of_function(pair: Pair, page: KernelPage) -> tuple[str, ...]:
    """The statements of a Function; empty if its forward or backward is more than one kernel, and
    Python decides.
    """
    program, numbers = pair.program, {p.name for p in page.inner if p.role in NUMBERS}
    loops = {id(loops.function): loops for loops in page.loops}
    found = [loops.get(id(function)) for function in (program.forward, program.backward)]
    if None in found or not {*page.noted} <= numbers:
        return ()
    forward, backward = found
    asked = {p.name: f"d{p.name}" if p.role == "input" else "-" for p in page.tensors}
    given = [*(f"{name}#" if name in numbers else name for name in (p.name for p in page.inner))]
    arriving = [f"^{p.name}" for p in program.upstreams]
    read = [f"{name}#" if name in numbers else name for name in page.read]
    results = [*page.outputs, *page.made]
    first = _launched(page, forward, given, results)
    second = _launched(page, backward, [*arriving, *read], [*asked.values()])
    if not first or not second:
        return ()
    return *first, f"saves {' '.join([*page.saved, *page.made])}", *second


def _launched(
    page: KernelPage, loops: FunctionOnKernels, takes: list[str], gives: list[str]
) -> list[str]:
    """The statements of one function, or none."""
    lines = KernelLines(page, loops, STEP)
    (kernel,) = loops.kernels if len(loops.pieces) == 1 else (None,)
    if kernel is None or kernel.computed or lines.number_lines():
        return []
    written = {result: node for result, node in loops.flat.results if node in kernel.writes}
    made = {result: lines.name(node) for result, node in written.items()} | {"-": "-"}
    if not {*gives} <= made.keys():
        return []
    is_entries = page.outside.reductions and loops is not page.at_once  # of a loss
    outputs = [] if is_entries else page.outputs
    rounded = [n for n in outputs if written.get(n) in kernel.exact]
    sizes = _sizes([*lines.sizes(), *lines.refusals()])
    if sizes is None:
        return []
    return [
        f"kernel {kernel.name}",
        f"takes {' '.join(takes)}",
        *sizes,
        *_made(lines, kernel),
        f"call {' '.join(_arguments(lines, kernel))}",
        f"gives {' '.join(made[result] + '!' * (result in rounded) for result in gives)}",
    ]


def _sizes(lines: list[str]) -> list[str] | None:
    """The statements for lines of Python; None if C++ has none for one of them."""
    found: list[str] = []
    known: set[str] = set()
    for line in lines:
        if read := LENGTH.fullmatch(line):
            name, tensor, axis, divided = read.groups()
            verb, by = ("divided", f" {divided[4:]}") if divided else ("size", "")
            found.append(f"{verb} {name} {tensor} {axis}{by}")
            known.add(name)
        elif read := COUNT.fullmatch(line):
            found.append(f"count {read[1]} {read[2]}")
            known.add(read[1])
        elif read := SHAPE.fullmatch(line):
            names = read[1].split(", ")
            found += [f"size {name} {read[2]} {axis}" for axis, name in enumerate(names)]
            known |= {*names}
        elif read := OF_A_LENGTH.match(line):
            if read[1] not in known:
                return None
        elif not (NOT_DIVIDED.match(line) or line.startswith(f"{STEP}raise ")):
            return None
    return found


def _made(lines: KernelLines, kernel: Kernel) -> Iterator[str]:
    for name in kernel.writes:
        asked = "?" if lines.is_left_out(kernel, name) else ""
        shape = [size.replace(".shape", "*") for size in lines.shape(name)]
        yield " ".join([f"make {lines.name(name)}{asked}", *shape])


def _arguments(lines: KernelLines, kernel: Kernel) -> Iterator[str]:
    for name in (*kernel.reads, *kernel.writes):
        yield lines.name(name)
    yield from kernel.sizes
    yield from kernel.scalars
