"""Which functions of a module run on kernels, and what computes each of them: a pair, parts of its
backward, a loss at once with its gradients, a pair that keeps less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from codegen.program import NUMBERS, Function, Program
from codegen.schedule.at_once import at_once
from codegen.schedule.flattening import flat
from codegen.schedule.lean import Lean, lean
from codegen.schedule.nodes import Flat
from codegen.targets.cpp.kernels import Kernel, kernels_of
from codegen.targets.cpp.wrappers import Loops, Wrapper, Wrappers
from codegen.targets.torch.page import Page
from derive.language.errors import QuestionError

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


@dataclass(frozen=True)
class Pairs:
    """A differentiable function whose forward keeps less, as text: ``name`` is the class that it
    stands for, ``pair`` and ``plain`` are the names of a forward and a backward, or "None".
    """

    name: str
    arguments: str
    takes_plain: str
    pair: str
    plain: str


@dataclass
class Written:
    """All that is written of a forward."""

    kernels: list[Kernel] = field(default_factory=list)
    wrappers: list[Wrapper] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    at_once: list[AtOnce] = field(default_factory=list)
    lean: list[Pairs] = field(default_factory=list)
    chosen: list[tuple[str, tuple[tuple[str, str], ...]]] = field(default_factory=list)


def functions_of(program: Program) -> Written:
    """Raises `QuestionError` for what no loop computes."""
    written, page = Written(), Page(program)
    pair, plain = pair_written(written, page, program, "", program), ([], "None")
    if program.plain is not None:
        shorter = page.plain.program
        plain = pair_written(written, page.plain, shorter, "_plain", program)
    if called_at(written, "function", page, pair, plain):
        written.replaced.append("function")
    return written


Called = tuple[list[Wrapper], str]  # what computes a loss at once, and the pair that keeps less


def called_at(written: Written, name: str, page: Page, pair: Called, plain: Called) -> bool:
    """Whether something stands in the place of the differentiable function, under that ``name``."""
    test = page.takes_plain() or "False"
    inputs = ", ".join(p.name for p in page.program.forward.parameters)
    if pair[0] or plain[0]:
        texts = (tuple(f"{w.wanted}: {w.name}" for w in found) for found, _ in (pair, plain))
        written.at_once.append(AtOnce(name, inputs, test, *texts))
    elif {pair[1], plain[1]} != {"None"}:
        written.lean.append(Pairs(name, inputs, test, pair[1], plain[1]))
    else:
        return False
    return True


def pair_written(
    written: Written, page: Page, pair: Program, prefix: str, program: Program
) -> Called:
    """The functions of one pair. Those that compute a loss at once are returned, and the names of
    the pair that keeps less; with such a pair there are no parts of the other backward.
    """
    writer = Wrappers(page, pair, chosen=prefix not in ("", "_plain"))
    forward = _loops(pair, pair.forward, f"{prefix}_forward", flat(pair, pair.forward))
    name, results = f"{prefix}_backward", pair.backward.results
    at_once = [*_at_once_found(writer, prefix, program)]
    keeping_less = None if at_once else _lean_found(writer, prefix, program)
    guarded = keeping_less is None and page.guards_in(pair.backward)
    some = subsets(pair.backward.results) if guarded else []
    left_out = pair.backward.results if some else ()
    backward = _loops(pair, pair.backward, name, flat(pair, pair.backward), left_out)
    if keeping_less is not None and prefix.endswith("_plain"):  # nothing else calls these
        forward = backward = None
    if forward is not None:
        returned = pair.forward.results if prefix else ()
        _add(written, forward, writer.wrapper(forward, f"{prefix}_forward", returned, {}))
        written.replaced.append(f"{prefix}_forward")
    if backward is not None:
        shown = results if prefix else ()
        parts = _parts_written(written, writer, backward, (name, results), some)
        _add(written, backward, writer.wrapper(backward, name, shown, parts))
        written.replaced.append(name)
    for loops, wrapper in (*at_once, *(keeping_less or ())):
        _add(written, loops, wrapper)
    if keeping_less is None:
        return [wrapper for _, wrapper in at_once], "None"
    both = f"({prefix}_lean_forward, {prefix}_lean_backward)"
    return [], both


def _parts_written(
    written: Written,
    writer: Wrappers,
    whole: Loops,
    named: tuple[str, Sequence[str]],
    subsets: Sequence[tuple[str, ...]],
) -> dict[str, str]:
    """The parts of the ``whole`` backward, which is ``named`` with all results of the function that
    people call: under which condition which one of the ``subsets`` is called.
    """
    page, pair, (name, results) = writer.page, writer.program, named
    if not page.guards_in(pair.backward):
        return {}
    places, found = page.places(pair.backward), {}
    everything = pair.backward.results
    for some in subsets:
        part = replace(pair.backward, results=some)
        own = f"{name}_of_{'_'.join(some)}"
        loops = _part(pair, whole, own, part, flat(pair, part))
        if loops is not None:
            _add(written, loops, writer.part(loops, own, results, bool(name != "_backward")))
            tests = ["not " * (r not in some) + f"{page.needs}.{places[r]}" for r in everything]
            found[" and ".join(tests)] = own
    every = " and ".join(f"{page.needs}.{places[r]}" for r in everything)
    return found | {f"not ({every})": f"_of.{name}"}


def _at_once_found(
    writer: Wrappers, prefix: str, program: Program
) -> Iterator[tuple[Loops, Wrapper]]:
    pair = writer.program
    inputs = [p.name for p in program.forward.parameters]
    every, whole = pair.backward.results, None
    for some in (every, *subsets(every)):
        found = at_once(pair, some)
        if found is None:
            return
        name = f"{prefix}_loss_and_{'_'.join(some)}"
        left_out = every if whole is None and subsets(every) else ()
        loops = _part(pair, whole, name, *found, left_out)
        whole = whole or loops
        if loops is not None:
            wanted = [f"d{name}" in some for name in inputs]
            yield loops, writer.at_once(loops, name, inputs, wanted)


def _lean_found(
    writer: Wrappers, prefix: str, program: Program
) -> list[tuple[Loops, Wrapper]] | None:
    """The functions of a pair that keeps less; None where there is none, or where a kernel of it
    would lack a size.
    """
    found = lean(writer.program)
    if found is None:
        return None
    try:
        return _lean_written(writer, found, prefix, program)
    except QuestionError:
        return None


def _lean_written(
    writer: Wrappers, found: Lean, prefix: str, program: Program
) -> list[tuple[Loops, Wrapper]] | None:
    """The forward, the parts of the backward, and all of it."""
    pair, name = writer.program, f"{prefix}_lean_forward"
    inputs = [p.name for p in program.forward.parameters]
    forward = _loops(pair, found.forward, name, found.flat_forward)
    if forward is None:
        return None
    numbers = {p.name for p in found.backward.parameters if p.role in NUMBERS}
    written = [(forward, writer.keeping_less(forward, name, inputs, numbers))]
    name, every, calls = f"{prefix}_lean_backward", pair.backward.results, {}
    some_wanted = subsets(every) if writer.page.guards_in(pair.backward) else ()
    asked, flat_backward = program.forward.parameters, found.flat_backward
    whole = _loops(pair, found.backward, name, flat_backward, every if some_wanted else ())
    if whole is None:
        return None
    for some in some_wanted:
        own = f"{name}_of_{'_'.join(some)}"
        function = replace(found.backward, results=some)
        results = tuple(pair for pair in flat_backward.results if pair[0] in some)
        loops = _part(pair, whole, own, function, replace(flat_backward, results=results))
        if loops is not None:
            written.append((loops, writer.from_less(loops, own, asked, {})))
            calls[_wants(some, every, inputs)] = own
    written.append((whole, writer.from_less(whole, name, asked, calls)))
    return written


def _wants(some: Sequence[str], every: Sequence[str], inputs: Sequence[str]) -> str:
    """When these gradients alone are wanted."""
    places = {f"d{name}": i for i, name in enumerate(inputs)}
    return " and ".join("not " * (r not in some) + f"needs[{places[r]}]" for r in every)


def subsets(results: Sequence[str]) -> list[tuple[str, ...]]:
    """Some of the gradients: what people ask for where they do not ask for all."""
    if len(results) < 2:
        return []
    alone = [(result,) for result in results] if len(results) <= MOST else []
    return list(dict.fromkeys([*alone, tuple(results[1:])]))


def _loops(
    pair: Program, function: Function, name: str, found: Flat, left_out: Sequence[str] = ()
) -> Loops | None:
    """What computes a function, and some of the results ``left_out`` if they are wanted; None where
    there is no kernel in it.
    """
    made = [node for name, node in found.results if name in left_out]
    pieces = kernels_of(name.lstrip("_"), found, dict(pair.sizes), pair.several, made)
    if not any(isinstance(piece, Kernel) for piece in pieces):
        return None
    return Loops(function, found, pieces)


def _part(
    pair: Program,
    whole: Loops | None,
    name: str,
    function: Function,
    found: Flat,
    left_out: Sequence[str] = (),
) -> Loops | None:
    """`_loops`, by the kernel of the ``whole`` if that can leave something out."""
    kernel = whole.pieces[0] if whole is not None else None
    if not isinstance(kernel, Kernel) or not kernel.flags:
        return _loops(pair, function, name, found, left_out)
    made = {node for _, node in found.results}
    writes = [write for write in kernel.writes if write in made]
    return Loops(function, found, [kernel.part(name.lstrip("_"), writes)]) if writes else None


def _add(written: Written, loops: Loops, wrapper: Wrapper) -> None:
    written.kernels += [piece for piece in loops.pieces if isinstance(piece, Kernel)]
    written.wrappers.append(wrapper)
