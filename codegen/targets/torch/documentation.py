"""The page at the top of a generated module: what it is, its formulas, its proof, its edges."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

from codegen.lowering.differentiated import lines_to_differentiate
from codegen.program import Program
from codegen.program.steps import Within
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.printer import Printer
from derive.notation.definition import IGNORE_INDEX

COMMON = "What holds for all functions, their arguments, dtypes and transforms: _runtime.py."
WIDTH = 96  # of a line in the module, 100, without the indentation that lists have


def documentation(program: Program) -> tuple[str, ...]:
    """The lines of the docstring after the first."""
    return (
        *part(safe(program.doc).split("\n") if program.doc else ()),
        *part(["The closed form:", "", *formula_lines(program.formulas)]),
        *(line for p in _others(program) for line in part(_reduced(p))),
        *part(_without_options(program)),
        *part(wrap(f"Proved: {_proved(program)}.", WIDTH)),
        *part(_second(program)),
        *part(["At the edges:", "", *(line for e in edges(program) for line in item(e))]),
    )


def _others(program: Program) -> list[Program]:
    """The programs of the reductions beside the default."""
    return [p for word, p in program.reductions if word != program.reduction]


def _reduced(program: Program) -> list[str]:
    """The closed form of another reduction."""
    return [f'With reduction="{program.reduction}":', "", *formula_lines(program.formulas)]


def _proved(program: Program) -> str:
    """How the default was proved, and the others where that is another way."""
    if all(other.proved == program.proved for other in _others(program)):
        return program.proved
    ways = [f'with reduction="{p.reduction}" {p.proved}' for p in _others(program)]
    return "; ".join([program.proved, *ways])


def _without_options(program: Program) -> list[str]:
    """The closed form of the calls that pass nothing optional."""
    plain = program.plain
    if plain is None:
        return []
    when = [f"{name} is left out" for name in plain.absent]
    when += [f"{name} is 0" for name in plain.zero]
    when += [f"no entry of {step.name} is ignored" for step in plain.counting]
    words = wrap(f"Where {', and '.join(when)}, derived and proved as well:", WIDTH)
    return [*words, "", *formula_lines(plain.formulas)]


def _second(program: Program) -> list[str]:
    """What comes behind the backward."""
    second = program.second
    if second is None:
        return []
    behind, pulled = second.formulas
    upstream = program.backward.parameters[0].name
    v = second.jvp.parameters[0].name
    words = (
        f"Differentiated again: where the gradients are multiplied by {v} and so on and added up, "
        f"and g is {upstream}, with the tangent {second.behind.results[0]} of the output and what "
        "is saved as a function of the inputs:"
    )
    lines = [*wrap(words, WIDTH), "", *formula_lines(behind)]
    if second.pullback is not None:
        lines += ["", *wrap("and from these, as c_ of what is saved, back to the inputs:", WIDTH)]
        lines += ["", *formula_lines(pulled)]
    lines += ["", *wrap(f"Proved: {second.proved}.", WIDTH)]
    for again in second.third:
        of = again.function.name.removesuffix("_again").removeprefix(program.name)
        words = f"What comes back behind {of}, where that is differentiated:"
        lines += ["", words, "", *formula_lines(again.formulas)]
        lines += ["", *wrap(f"Proved: {again.proved}.", WIDTH)]
    return lines


def formula_lines(formulas: Iterable[str]) -> list[str]:
    """Formulas as they stand in a docstring: indented, and broken where they are long."""
    return [line for f in formulas for line in (STEP + broken(f)).split("\n")]


def part(lines) -> list[str]:
    """Lines with an empty one before them; nothing for none."""
    return ["", *lines] if lines else []


def item(text: str) -> list[str]:
    """The lines of a point of a list."""
    return wrap(text, WIDTH + 2, initial_indent="- ", subsequent_indent="  ")


def edges(program: Program) -> tuple[str, ...]:
    """What is decided at the edges."""
    printer = Printer({axis: axis for axis, _ in program.sizes}, (), "")
    found = [
        f"ValueError where {printer.text(r.left)} is "
        f"{'not ' * r.equal}{printer.text(r.right)}: {r.name} {r.use}."
        for r in program.requirements
    ]
    found += [f"NaN where {axis} is 0: {name} divides by it." for name, axis in program.means]
    found += [f"{line}." for line in program.unsafe]
    found += [*_labels(program), *_arguments(program)]
    given = _of_role(program, "given")
    found += [f"RuntimeError where {name} requires a gradient: it has none." for name in given]
    return (*found, *_orders(program), COMMON)


def _labels(program: Program) -> list[str]:
    found = []
    for label, axis in program.labels:
        found += [
            f"TypeError where {label} is not of integers.",
            f"IndexError where {label} is outside of 0 .. {axis} - 1"
            + (f", and not {IGNORE_INDEX}." if label in program.ignored else "."),
        ]
    found += [
        f"Where {label} is {IGNORE_INDEX} it is ignored: it picks nothing."
        for label in program.ignored
    ]
    return found


def _arguments(program: Program) -> list[str]:
    """What may be left out, is broadcast, stands for several dimensions, or has a domain."""
    found = [
        f"{name} stands for any number of dimensions, none included, and counts as one axis: "
        "the arguments along it have the same ones there, and results get them back."
        for name in program.several
    ]
    found += [
        f"{p.name} is {p.default} everywhere where it is left out."
        for p in program.forward.tensors
        if p.default is not None
    ]
    found += [
        f"{name} is broadcast as torch broadcasts, to the sizes that the others have."
        for name in program.broadcast
    ]
    found += [
        f"ValueError where {step.name} is not {step.domain}."
        for step in program.forward.checks
        if isinstance(step, Within)
    ]
    return found


def _orders(program: Program) -> tuple[str, ...]:
    plain = f"{lines_to_differentiate(program).name}, which is plain torch"
    if program.without_second:
        return (
            "Derivatives of any order: the first by the closed form, higher ones, and what "
            "torch.func asks for, by autograd, line by line, for which the inputs are kept: "
            f"second derivatives have no closed form here ({safe(program.without_second)}).",
        )
    pairs = [program] if program.plain is None else [program, program.plain]
    if not all(pair.second for pair in pairs):
        return (
            "NotImplementedError where a gradient is differentiated again, as its second "
            f"derivatives were not proved: use {plain}, for autograd to any order.",
        )
    return (f"Forward mode, and transforms that torch.compile compiles, go through {plain}.",)


def _of_role(program: Program, role: str) -> tuple[str, ...]:
    return tuple(p.name for p in program.forward.parameters if p.role == role)


def safe(text: str) -> str:
    """A user's text inside of a docstring or a comment: nothing in it may end either."""
    text = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    return text.replace("\\", "\\\\").replace('"""', "'''")
