"""``trace``: the way of one forward through the rooms, with the record that stands at each door.

The records are those of a normal run, one after the other: `derive.derivation.stages` up to the
proof, then the stages of ``lean.py``. If one of them raises, the doors before it are shown all the
same. Modules and types are named by the objects themselves.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, fields
from math import inf

from rich.console import Console

from codegen.building.programs import program_of
from codegen.driver.gate import TOLERANCE, compared
from codegen.driver.lean import lean_tried, rounding_of_module
from codegen.driver.trace_code import program_blocks, schedules, text_blocks
from codegen.targets.lean.outside import outside_of
from codegen.targets.lean.target import lean_program, module_text, whole_program
from derive.derivation import stages
from derive.gradient.chain.chain import Adjoint, Chain
from derive.gradient.closing.closed_form import ClosedForm
from derive.gradient.range.bounds import Bounds
from derive.gradient.range.scaled import Scales
from derive.gradient.values.relations import relations_of
from derive.language.formulas.unicode import unicode_formula
from derive.language.formulas.words import Words, joined
from derive.language.notation.definition import Definition
from derive.language.notation.forward import Forward
from derive.language.notation.layout import layouts_of, shape
from derive.language.symbols import Tensor
from derive.proof.proving.claim import ProvedGradient
from derive.proof.proving.proved import Proved
from derive.proof.zero.exact import ZeroTest
from derive.running.command import DONE
from derive.running.progress import told
from derive.show.document import Block, Code, Document, Equation, Equations, Prose, Section
from derive.show.sections import arriving
from derive.show.terminal import rendered

PLAIN_WIDTH = 140  # a step of a derivation and its rule, side by side
MOST_STEPS = 30  # shown in full; of a longer derivation the rules are counted


def trace(forward: type[Forward]) -> int:
    """Print the doors that ``forward`` passes."""
    sections: list[Section] = []
    try:
        with told() as tell:
            for section in doors(forward):
                sections.append(section)
                tell(f"{forward.definition.snake}: after {section.title}")
    finally:  # doors passed are shown also where one stays closed
        _print(Document(forward.definition.name, (), tuple(sections)))
    return DONE


def _print(document: Document) -> None:
    """Print in colour if supported; else without trailing spaces."""
    if sys.stdout.isatty():
        Console(highlight=False, markup=False, emoji=False).print(rendered(document))
        return
    console = Console(
        width=PLAIN_WIDTH, highlight=False, markup=False, emoji=False, color_system=None
    )
    with console.capture() as captured:
        console.print(rendered(document))
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def doors(forward: type[Forward]) -> Iterator[Section]:
    """The doors in the order in which ``forward`` passes them, each with the record there."""
    yield _door(type(forward), forward.definition, _definition(forward.definition))
    outside = outside_of(forward.definition)
    record = outside.inside
    if record != forward.definition:
        yield _door(outside_of, record, _definition(record))
    for make, _, _ in stages:
        record = make(record)
        yield from doors_after[type(record)](make, record)
    whole = whole_program(forward, record)
    yield _door(program_of, whole, program_blocks(whole))
    for maker, plan, blocks in schedules(whole):
        yield _door(maker, plan, blocks)
    program = lean_program(forward, record)
    tried = lean_tried(forward, outside, record)  # or nobody sees the text
    yield _door(lean_program, program, program_blocks(tried.program))
    made = tried.with_edges()
    yield _door(module_text, made.text, text_blocks(made.text, tried.pairs[0]))
    rounding = rounding_of_module(made)
    words = f"differs from autograd by {made.difference:.1e} in float64 (tolerance "
    words += f"{TOLERANCE:.0e}), by {rounding.ours:.1e} in float32, autograd itself by "
    words += f"{rounding.autograd:.1e}"
    before = program.unsafe
    words = "; ".join([words, *(line for line in made.pair.program.unsafe if line not in before)])
    yield _door(compared, made.difference, [Prose(words)])


def _door(maker: object, record: object, blocks: Iterable[Block]) -> Section:
    return Section(f"{_path(maker)} -> {type(record).__name__}", tuple(blocks))


def _path(made: object) -> str:
    """The module and the name of a function or a class."""
    return f"{made.__module__.removeprefix('gradform.')}.{made.__qualname__}"


# -- derive: one function for each record --------------------------------------------


def _definition(definition: Definition) -> Iterator[Block]:
    layouts = layouts_of(definition)
    given: list[Words] = [(t, f" {shape(layouts[t.name])}") for t in definition.arguments]
    given += [(t, f" = {default}") for t, default in definition.scalars]
    yield Prose(("given ", *joined(given)))
    if definition.demands:
        yield Prose(f"where {', '.join(f'{d.expression} {d.domain}' for d in definition.demands)}")
    lines = ((s, shape(layouts[s.name])) for s in definition.statements)
    yield Equations(tuple(Equation(s.tensor, s.expression, "", size) for s, size in lines))


def _after_chain(maker: Callable, chain: Chain) -> Iterator[Section]:
    lines = tuple(line for adjoint in chain.adjoints for line in _adjoint(adjoint))
    arrives = Prose(arriving(chain))
    yield _door(maker, chain, [arrives, Equations(lines)])


def _adjoint(adjoint: Adjoint) -> Iterator[Equation]:
    left: Tensor | str = adjoint.tensor
    for contribution in adjoint.contributions:
        yield Equation(
            left, contribution.expression, f"through {contribution.via}: {contribution.reason}"
        )
        left = "+"
    if not adjoint.contributions:
        yield Equation(left, adjoint.expression, "nothing depends on it")


def _after_closing(maker: Callable, form: ClosedForm) -> Iterator[Section]:
    """Doors of values and ranges, on the way to a closed form."""
    yield _door(relations_of, form.relations, _relations(form))
    yield _door(Scales, form.relations.scales, _ranges(form))
    yield _door(maker, form, _closed_form(form))


def _relations(form: ClosedForm) -> Iterator[Block]:
    relations = form.relations
    parts = [Equation(p.tensor, p.expression, "nobody named it") for p in relations.parts]
    others = {**relations.aliases, **relations.same}
    parts += [Equation(name, e, "another name for a value") for name, e in others.items()]
    solved = [
        Equation(member, equal, ("from the definition of ", value.tensor, f", solved for a {way}"))
        for way, found in relations.solved.items()
        for member, (equal, value) in found.items()
        if member not in (equal, value.tensor)  # a definition stands above as it is
    ]
    facts = [
        Equation(fact.claim, fact.value, f"found in {_counted(len(fact.steps), 'step')}")
        for fact in form.facts
    ]
    yield from _titled("parts", parts)
    yield from _titled("equations", solved)
    yield from _titled("facts", facts)


def _counted(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _titled(title: str, lines: Sequence[Equation]) -> Iterator[Block]:
    yield Prose(f"{title}: {len(lines) or 'none'}")
    if lines:
        yield Equations(tuple(lines))


def _ranges(form: ClosedForm) -> Iterator[Block]:
    known = {value.tensor.name: _range(value.tensor, form) for value in form.relations.values}
    yield Code(tuple((name, "; ".join(words)) for name, words in known.items() if words))
    others = [name for name, words in known.items() if not words]
    if others:
        yield Prose(f"anything: {', '.join(others)}")


def _range(tensor: Tensor, form: ClosedForm) -> list[str]:
    """Known facts about the range of one value, in words; empty if there are none."""
    scales, bounds = form.relations.scales, form.relations.bounds(tensor)
    words = [f"from {_number(bounds.low)} to {_number(bounds.high)}"] if bounds != Bounds() else []
    if scales.overflows(tensor):
        scaled = scales.known[tensor.name]
        as_what = unicode_formula(scaled.factor), unicode_formula(scaled.exponent)
        words.append("may overflow, so it is followed as {} times exp({})".format(*as_what))
    if tensor.name in scales.made:
        words.append("made to be in range")
    if axes := form.knowledge.centred_along(tensor):
        along = ", ".join(axis.name for axis in axes)
        words.append(f"a difference that cancels: its sum along {along} is 0")
    return words


def _number(x: float) -> str:
    return {inf: "oo", -inf: "-oo"}.get(x, f"{x:g}")


def _closed_form(form: ClosedForm) -> Iterator[Block]:
    yield Prose(f"steps: {len(form.steps)}")
    if len(form.steps) <= MOST_STEPS:
        yield Equations(tuple(_steps(form)))
    else:
        yield Code(tuple(_rules_counted(form)))
    yield Prose("the cheapest of the safest:")
    yield Equations(tuple(Equation(s.tensor, s.expression) for s in form.statements))
    costs = zip(fields(form.cost), astuple(form.cost), strict=True)
    yield Prose(f"cost: {', '.join(f'{field.name} {count}' for field, count in costs)}")
    yield Prose(("read from the forward: ", *joined(form.saved)))


def _steps(form: ClosedForm) -> Iterator[Equation]:
    """Every step: its result, and its rule."""
    for target in dict.fromkeys(step.target for step in form.steps):
        left: Tensor | str = target
        for step in form.steps_to(target):
            yield Equation(left, step.after, step.rule)
            left = ""


def _rules_counted(form: ClosedForm) -> Iterator[tuple[str, str]]:
    """The rules that led to each gradient, with their counts."""
    for target in dict.fromkeys(step.target for step in form.steps):
        rules = Counter(step.rule for step in form.steps_to(target))
        yield target.name, ", ".join(f"{rule} {count}" for rule, count in rules.items())


def _after_proof(maker: Callable, proved: Proved) -> Iterator[Section]:
    batches = (" ".join(f"{axis}={n}" for axis, n in b) for b in proved.gradients[0].sizes)
    on = f" on {', '.join(shown)}" if all(shown := list(batches)) else ""
    verdicts = [
        *_proved("steps of the chain", proved.adjoints),
        *_proved("closed form", proved.gradients),
    ]
    zero = Prose(f"every difference is exactly zero{on}, decided by {_path(ZeroTest)}")
    yield _door(maker, proved, [zero, Code(tuple(verdicts))])


def _proved(what: str, gradients: Sequence[ProvedGradient]) -> Iterator[tuple[str, str]]:
    for every_size, words in ((True, "for every size too"), (False, "there alone")):
        names = [g.tensor.name for g in gradients if g.every_size == every_size]
        if names:
            yield f"{what}, {words}", ", ".join(names)


doors_after: dict[type, Callable[[Callable, object], Iterator[Section]]] = {
    Chain: _after_chain,
    ClosedForm: _after_closing,
    Proved: _after_proof,
}
