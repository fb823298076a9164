"""The page at the top of a module whose axes are split over ranks."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from codegen.program import Program
from codegen.sharding import Sharded
from codegen.sharding.counting import told as collectives
from codegen.sharding.proofs import relied_on
from codegen.targets.torch.documentation import WIDTH, formula_lines, item, part, safe

BESIDE = "; while one travels, what does not wait for it is computed"


def sharded_documentation(sharded: Sharded) -> tuple[str, ...]:
    """The lines of the docstring after the first."""
    program, axes = sharded.program, " and ".join(sharded.groups.axes)
    told = (line for words in _told(sharded) for line in item(words))
    gradients = (line for words in _gradients(sharded) for line in item(words))
    at_the_edges = (line for words in _edges(program) for line in item(words))
    split = (
        f"A tensor along {axes} is this rank's part, in rank order; parts may differ in length, and"
        f" be empty. What lacks {axes} is the same on all ranks, to the last bit. Labels count over"
        " all parts."
    )
    form = ["The closed form:", "", *formula_lines(program.formulas)]
    proofs = [f"- {line}" for words in relied_on(sharded) for line in _indented(words)]
    return (
        *part(safe(program.doc).split("\n") if program.doc else ()),
        *part(wrap(split, WIDTH)),
        *part(form),
        *part(wrap(f"Proved: {program.proved}.", WIDTH)),
        *part(["Proved of parts, for any number of ranks and any lengths:", "", *proofs]),
        *part(["The ranks tell each other:", "", *told]),
        *part(["Gradients:", "", *gradients]),
        *part(["At the edges:", "", *at_the_edges]),
    )


def chunked_documentation(sharded: Sharded) -> tuple[str, ...]:
    """The same of a module that computes in chunks."""
    program, (axis,) = sharded.program, sharded.groups.axes
    words = (
        f"It is computed in chunks of {axis}: what lies along {axis} and is no argument and no "
        "gradient is held for one chunk alone. A chunk is computed again where something of all "
        "chunks is needed, and for the gradients."
    )
    proofs = [f"- {line}" for words in relied_on(sharded) for line in _indented(words)]
    edges = (
        "ValueError where chunk is no whole number above 0.",
        "NotImplementedError where a gradient is differentiated again (create_graph=True).",
        "float16 and bfloat16 are computed in float32, and rounded once at the end.",
        f"All else is as in {program.name.split('_chunk_')[0]}.",
    )
    return (
        *part(safe(program.doc).split("\n") if program.doc else ()),
        *part(wrap(words, WIDTH)),
        *part(["The closed form:", "", *formula_lines(program.formulas)]),
        *part(wrap(f"Proved: {program.proved}.", WIDTH)),
        *part(["Proved of chunks, of any number and any lengths:", "", *proofs]),
        *part(["At the edges:", "", *(line for words in edges for line in item(words))]),
    )


def _indented(words: str) -> list[str]:
    return ["\n  ".join(wrap(words, WIDTH))]


def _told(sharded: Sharded) -> Iterator[str]:
    pairs = [("", sharded)]
    if sharded.plain is not None:
        pairs.append((", where nothing optional is passed", sharded.plain))
    for words, pair in pairs:
        for kind in ("forward", "backward"):
            found = collectives(pair.exchanges[kind], kind == "backward")
            count = f"{len(found)} collective{'s' * (len(found) > 1)}"
            shown = f"{count}: {'; '.join(found)}" if found else "nothing"
            beside = any(exchange.handle for exchange in pair.exchanges[kind])
            yield f"{kind}{words}: {shown}{BESIDE if beside else ''}."
    yield (
        "these are entries, of 8 bytes in float64 and of 4 in all else. The length of each part "
        "travels with the first collective of the forward, and what shows that the ranks agree: it "
        "is a packet of 256 KiB / ranks + 40 bytes from each rank, which goes before what is too "
        "large for it."
    )


def _gradients(sharded: Sharded) -> Iterator[str]:
    inputs = [p for p in sharded.program.forward.parameters if p.role == "input"]
    local = [f"d{p.name}" for p in inputs if any(sharded.groups.split(p.layout))]
    complete = [f"d{p.name}" for p in inputs if not any(sharded.groups.split(p.layout))]
    if local:
        yield (
            f"{', '.join(local)}: of this rank's part, and of all that the ranks compute together. "
            "What is behind it on every rank has to be summed over the ranks; an average, such as "
            "that of DistributedDataParallel, asks for as many times the loss."
        )
    if complete:
        yield (
            f"{', '.join(complete)}: complete, the same on every rank: nothing is left to add up, "
            "and an average, such as that of DistributedDataParallel, leaves it as it is."
        )


def _edges(program: Program) -> Iterator[str]:
    yield (
        "Where a rank raises, all raise, with its message; ValueError where what has to be the same"
        " differs: sizes, numbers, entries, what is passed, and whether a gradient is wanted. A"
        " group of which a process has died gives torch's error."
    )
    yield "NotImplementedError where a gradient is differentiated again (create_graph=True)."
    yield "All functions but the first record nothing for autograd."
    yield "Under torch.compile all parts have one length: RuntimeError, when it runs, where not."
    yield ("float16 and bfloat16 are computed and told in float32, and rounded once at the end.")
    yield f"All else is as in {program.name.split('_shard_')[0]}."
