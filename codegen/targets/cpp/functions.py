"""Which functions of a module run on kernels, and what computes each of them: a pair, parts of its
backward, a loss at once with its gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from codegen.program import Function, Program
from codegen.schedule.at_once import at_once
from codegen.schedule.flattening import flat
from codegen.schedule.nodes import Flat
from codegen.targets.cpp.kernels import Kernel, kernels_of
from codegen.targets.cpp.wrappers import Loops, Wrapper, Wrappers
from codegen.targets.torch.page import Page

MOST = 3  # gradients of which each alone has a kernel too: with more there is one for all but x


@dataclass(frozen=True)
class AtOnce:
    """A differentiable function that computes its loss and the gradients in one call, as text:
    ``name`` is the class that it stands for, ``parts`` and ``plain`` are functions by what is
    wanted.
    """

    name: str
    arguments: str
    takes_plain: str
    parts: tuple[str, ...]
    plain: tuple[str, ...]


@dataclass
class Written:
    """All that is written of a forward."""

    kernels: list[Kernel] = field(default_factory=list)
    wrappers: list[Wrapper] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    at_once: list[AtOnce] = field(default_factory=list)


def functions_of(program: Program) -> Written:
    """Raises `QuestionError` for what no loop computes."""
    written, page = Written(), Page(program)
    parts = _pair_written(written, page, program, "", program)
    plain: list[Wrapper] = []
    if program.plain is not None:
        plain = _pair_written(written, page.plain, page.plain.program, "_plain", program)
    if parts or plain:
        name = f"{program.title}Function"
        test = page.takes_plain() or "False"
        texts = (tuple(f"{w.wanted}: {w.name}" for w in found) for found in (parts, plain))
        inputs = ", ".join(p.name for p in program.forward.parameters)
        written.at_once.append(AtOnce(name, inputs, test, *texts))
        written.replaced.append(name)
    return written


def _pair_written(
    written: Written, page: Page, pair: Program, prefix: str, program: Program
) -> list[Wrapper]:
    """The functions of one pair; those that compute a loss at once are returned too."""
    writer = Wrappers(page, pair)
    forward = _loops(pair, pair.forward, f"{prefix}_forward", flat(pair, pair.forward))
    if forward is not None:
        returned = pair.forward.results if prefix else ()
        _add(written, forward, writer.wrapper(forward, f"{prefix}_forward", returned, {}))
        written.replaced.append(f"{prefix}_forward")
    name, results = f"{prefix}_backward", program.backward.results
    backward = _loops(pair, pair.backward, name, flat(pair, pair.backward))
    if backward is not None:
        shown = [r if r in pair.backward.results else "None" for r in results] if prefix else ()
        parts = _parts_written(written, writer, name, results)
        _add(written, backward, writer.wrapper(backward, name, shown, parts))
        written.replaced.append(name)
    return [*_at_once_written(written, writer, prefix, program)]


def _parts_written(
    written: Written, writer: Wrappers, name: str, results: Sequence[str]
) -> dict[str, str]:
    """The parts of a backward: under which condition which one is called."""
    page, pair = writer.page, writer.program
    if not page.guards_in(pair.backward):
        return {}
    places, found = page.places(pair.backward), {}
    everything = pair.backward.results
    for some in subsets(everything):
        part = replace(pair.backward, results=some)
        own = f"{name}_of_{'_'.join(some)}"
        loops = _loops(pair, part, own, flat(pair, part))
        if loops is not None:
            _add(written, loops, writer.part(loops, own, results, bool(name != "_backward")))
            tests = ["not " * (r not in some) + f"{page.needs}[{places[r]}]" for r in everything]
            found[" and ".join(tests)] = own
    every = " and ".join(f"{page.needs}[{places[r]}]" for r in everything)
    return found | {f"not ({every})": f"_of.{name}"}


def _at_once_written(
    written: Written, writer: Wrappers, prefix: str, program: Program
) -> Iterator[Wrapper]:
    pair = writer.program
    inputs = [p.name for p in program.forward.parameters]
    for some in (pair.backward.results, *subsets(pair.backward.results)):
        found = at_once(pair, some)
        if found is None:
            return
        name = f"{prefix}_loss_and_{'_'.join(some)}"
        loops = _loops(pair, found[0], name, found[1])
        if loops is not None:
            wanted = [f"d{name}" in some for name in inputs]
            wrapper = writer.at_once(loops, name, inputs, wanted)
            _add(written, loops, wrapper)
            yield wrapper


def subsets(results: Sequence[str]) -> list[tuple[str, ...]]:
    """Some of the gradients: what people ask for where they do not ask for all."""
    if len(results) < 2:
        return []
    alone = [(result,) for result in results] if len(results) <= MOST else []
    return list(dict.fromkeys([*alone, tuple(results[1:])]))


def _loops(pair: Program, function: Function, name: str, found: Flat) -> Loops | None:
    """What computes a function; None where there is no kernel in it."""
    pieces = kernels_of(name.lstrip("_"), found, dict(pair.sizes), pair.several)
    if not any(isinstance(piece, Kernel) for piece in pieces):
        return None
    return Loops(function, found, pieces)


def _add(written: Written, loops: Loops, wrapper: Wrapper) -> None:
    written.kernels += [piece for piece in loops.pieces if isinstance(piece, Kernel)]
    written.wrappers.append(wrapper)
