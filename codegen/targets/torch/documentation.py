"""The docstring of a generated module: what it is, its formulas, its proof, its edge cases."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

from codegen.lowering.differentiated import lines_to_differentiate
from codegen.program import Program
from codegen.program.steps import Within
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.printer import Printer
from derive.notation.definition import IGNORE_INDEX

COMMON = "For what all functions share (arguments, dtypes, transforms) see _runtime.py."
WIDTH = 96  # of a line in the module, 100, without the indentation that lists have


def documentation(program: Program) -> tuple[str, ...]:
    """The lines of the docstring after the first one."""
    return (
        *part(safe(program.doc).split("\n") if program.doc else ()),
        *part(["The closed form:", "", *formula_lines(program.formulas)]),
        *(line for p in _others(program) for line in part(_reduced(p))),
        *part(_without_options(program)),
        *part(wrap(f"Proved: {_proved(program)}.", WIDTH)),
        *part(_second(program)),
        *part(["Edge cases:", "", *(line for e in edges(program) for line in item(e))]),
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
    ways = [f'with reduction="{p.reduction}", {p.proved}' for p in _others(program)]
    return "; ".join([program.proved, *ways])


def _without_options(program: Program) -> list[str]:
    """The closed form of the calls that pass nothing optional."""
    plain = program.plain
    if plain is None:
        return []
    when = [f"{name} is omitted" for name in plain.absent]
    when += [f"{name} is 0" for name in plain.zero]
    when += [f"no {step.name} entry is ignored" for step in plain.counting]
    words = wrap(f"When {_listed(when)} (also derived and proved):", WIDTH)
    return [*words, "", *formula_lines(plain.formulas)]


def _listed(words: list[str]) -> str:
    """``a, b and c``"""
    return " and ".join([*filter(None, [", ".join(words[:-1])]), words[-1]])


def _second(program: Program) -> list[str]:
    """What comes behind the backward."""
    second = program.second
    if second is None:
        return []
    behind, pulled = second.formulas
    v = second.jvp.parameters[0].name
    words = (
        f"Second derivatives, of the sum of each gradient times a vector ({v} and so on): "
        f"{_arriving(program)}, and c_ marks the cotangent of a saved value:"
    )
    lines = [*wrap(words, WIDTH), "", *formula_lines(behind)]
    if second.pullback is not None:
        lines += ["", *wrap("From these cotangents back to the inputs:", WIDTH)]
        lines += ["", *formula_lines(pulled)]
    lines += ["", *wrap(f"Proved: {second.proved}.", WIDTH)]
    for again in second.third:
        of = again.function.name.removesuffix("_again").removeprefix(program.name)
        words = f"The backward of {of}:"
        lines += ["", words, "", *formula_lines(again.formulas)]
        lines += ["", *wrap(f"Proved: {again.proved}.", WIDTH)]
    return lines


def _arriving(program: Program) -> str:
    """What stands for the upstream gradients, and how the tangents are called."""
    first, *others = (p.name for p in program.upstreams)
    tangent = program.second.behind.results[0]
    if others:
        return (
            f"g_{first[1:]} is {first} and so on, {tangent} and so on the tangents of the outputs"
        )
    return f"g is {first}, {tangent} the tangent of the output"


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
    """What happens in edge cases."""
    printer = Printer({axis: axis for axis, _ in program.sizes}, (), "")
    found = [
        f"ValueError if {printer.text(r.left)} is "
        f"{'not ' * r.equal}{printer.text(r.right)}: {r.name} {r.use}."
        for r in program.requirements
    ]
    found += [f"NaN if {axis} is 0: {name} divides by it." for name, axis in program.means]
    found += [f"{line}." for line in program.unsafe]
    found += [*equal_largest(program), *_labels(program), *_arguments(program)]
    given = _of_role(program, "given")
    no_gradient = "requires grad: no gradient is derived for it"
    found += [f"RuntimeError if {name} {no_gradient}." for name in given]
    return (*found, *_orders(program), COMMON)


def equal_largest(program: Program) -> list[str]:
    """Which of equal entries has a gradient."""
    return [
        f"The first of equal largest entries of {e} has the gradient, as with torch.max; "
        "torch.amax divides it. In bfloat16 many entries are equal."
        for e in program.first
    ]


def _labels(program: Program) -> list[str]:
    found = []
    for label, axis in program.labels:
        found += [
            f"TypeError if {label} is not an integer tensor.",
            f"IndexError if an entry of {label} is not in 0 .. {axis} - 1"
            + (f" and is not {IGNORE_INDEX}." if label in program.ignored else "."),
        ]
    found += [
        f"Entries where {label} equals {IGNORE_INDEX} are ignored." for label in program.ignored
    ]
    return found


def _arguments(program: Program) -> list[str]:
    """What may be left out, is broadcast, stands for several dimensions, or has a domain."""
    found = [
        f"{name} may be any number of dimensions (even none); they are flattened into one axis and "
        "restored in the results."
        for name in program.several
    ]
    found += [
        f"{p.name} defaults to {p.default} everywhere."
        for p in program.forward.tensors
        if p.default is not None
    ]
    found += [
        f"{name} is broadcast against the other arguments, by torch's rules."
        for name in program.broadcast
    ]
    found += [
        f"ValueError unless {step.name} is {step.domain}."
        for step in program.forward.checks
        if isinstance(step, Within)
    ]
    return found


def _orders(program: Program) -> tuple[str, ...]:
    plain = f"{lines_to_differentiate(program).name}, which is plain torch"
    if program.without_second:
        return (
            "Second derivatives have no closed form here "
            f"({safe(program.without_second)}). The first derivative uses the closed form; higher "
            "orders and torch.func differentiate the lines by autograd, so the inputs are saved.",
        )
    pairs = [program] if program.plain is None else [program, program.plain]
    if not all(pair.second for pair in pairs):
        return (
            "NotImplementedError on double backward: the second derivatives were not proved. Use "
            f"{plain}; autograd differentiates it to any order.",
        )
    return (f"Forward mode, and transforms under torch.compile, use {plain}.",)


def _of_role(program: Program, role: str) -> tuple[str, ...]:
    return tuple(p.name for p in program.forward.parameters if p.role == role)


def safe(text: str) -> str:
    """A user's text inside of a docstring or a comment: nothing in it may end either."""
    text = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    return text.replace("\\", "\\\\").replace('"""', "'''")
