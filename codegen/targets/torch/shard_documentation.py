"""The docstring of a module whose axes are split over ranks."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from codegen.program import Program
from codegen.sharding import Sharded
from codegen.sharding.counting import told as collectives
from codegen.sharding.proofs import relied_on
from codegen.targets.torch.documentation import WIDTH, formula_lines, item, part, safe

BESIDE = "; communication overlaps with computation that does not depend on it"


def sharded_documentation(sharded: Sharded) -> tuple[str, ...]:
    """The lines of the docstring after the first."""
    program, axes = sharded.program, " and ".join(sharded.groups.axes)
    told = (line for words in _told(sharded) for line in item(words))
    gradients = (line for words in _gradients(sharded) for line in item(words))
    at_the_edges = (line for words in _edges(program) for line in item(words))
    split = (
        f"A tensor with the axis {axes} holds this rank's part, in rank order; parts may differ in"
        f" length and may be empty. A tensor without {axes} must be bitwise identical on all ranks."
        " Labels are global indices."
    )
    form = ["The closed form:", "", *formula_lines(program.formulas)]
    proofs = [f"- {line}" for words in relied_on(sharded) for line in _indented(words)]
    return (
        *part(safe(program.doc).split("\n") if program.doc else ()),
        *part(wrap(split, WIDTH)),
        *part(form),
        *part(wrap(f"Proved: {program.proved}.", WIDTH)),
        *part(["Proved for any number of ranks and any lengths of their parts:", "", *proofs]),
        *part(["Communication:", "", *told]),
        *part(["Gradients:", "", *gradients]),
        *part(["Edge cases:", "", *at_the_edges]),
    )


def _indented(words: str) -> list[str]:
    return ["\n  ".join(wrap(words, WIDTH))]


def _told(sharded: Sharded) -> Iterator[str]:
    pairs = [("", sharded)]
    if sharded.plain is not None:
        pairs.append((", with no optional argument", sharded.plain))
    for words, pair in pairs:
        for kind in ("forward", "backward"):
            found = collectives(pair.exchanges[kind], kind == "backward")
            count = f"{len(found)} collective{'s' * (len(found) > 1)}"
            shown = f"{count}: {'; '.join(found)}" if found else "nothing"
            beside = any(exchange.handle for exchange in pair.exchanges[kind])
            yield f"{kind}{words}: {shown}{BESIDE if beside else ''}."
    yield (
        "counts are entries: 8 bytes each in float64, otherwise 4. The first collective of the "
        "forward also carries the length of each part and a check that the ranks agree. It is a "
        "packet of 256 KiB / ranks + 40 bytes per rank; larger data follows in a collective of its "
        "own."
    )


def _gradients(sharded: Sharded) -> Iterator[str]:
    inputs = [p for p in sharded.program.forward.parameters if p.role == "input"]
    local = [f"d{p.name}" for p in inputs if any(sharded.groups.split(p.layout))]
    complete = [f"d{p.name}" for p in inputs if not any(sharded.groups.split(p.layout))]
    if local:
        yield (
            f"{', '.join(local)}: for this rank's part, of the loss over all ranks. Gradients of "
            "replicated parameters upstream must be summed over the ranks; where they are averaged "
            "instead, as by DistributedDataParallel, multiply the loss by the number of ranks."
        )
    if complete:
        yield (
            f"{', '.join(complete)}: complete and identical on every rank. Do not sum over the "
            "ranks; averaging, as by DistributedDataParallel, changes nothing."
        )


def _edges(program: Program) -> Iterator[str]:
    yield (
        "If one rank raises, all raise with its message. ValueError if the ranks differ in sizes,"
        " numbers, replicated entries, which arguments are passed, or whether a gradient is needed."
        " If a process of the group has died, torch's own error."
    )
    yield "NotImplementedError on double backward (create_graph=True)."
    yield "Only the first function is recorded by autograd."
    yield "Under torch.compile all parts must have one length; if not, RuntimeError at run time."
    yield "float16 and bfloat16 are computed and sent as float32 and rounded once at the end."
    yield f"Otherwise as {program.name.split('_shard_')[0]}."
