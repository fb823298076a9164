"""Infer the axes of a module's parameters from the axes they are combined with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import sympy

from codegen.importing.asked import GIVEN, GUESSED, Argument
from codegen.importing.examples import Example, axes_in, example_of
from codegen.importing.lattices import refuse_lattice
from codegen.importing.reader import Reader
from codegen.importing.size_relations import DependentSize
from codegen.importing.subjects import Subject
from derive.language.torch_ops import trees

FREE = ("H", "K", "D", "E", "F", "G", "L", "M", "P", "R", "T", "U", "V", "W")


def guessed_for(
    subject: Subject,
    arguments: Sequence[Argument],
    sizes: Mapping[str, int],
    read: Callable[[Subject, Example, Mapping[str, int]], Reader],
) -> tuple[tuple[Argument, ...], Example]:
    """All arguments with their axes, including the module's parameters, and an example of them."""
    given = {argument.name for argument in arguments}
    own = [_unnamed(n, t.shape, subject) for n, t in subject.of_module.items() if n not in given]
    arguments = (*arguments, *_numbered(own))
    example = example_of(subject, arguments, sizes)
    refuse_lattice(subject, example)
    if not own:
        return example.arguments, example
    reader = read(subject, example, example.sizes)
    found = named(reader, [a for a in axes_in(arguments) if not a.startswith(GUESSED)])
    arguments = tuple(
        replace(a, axes=tuple(found.get(axis, axis) for axis in a.axes)) for a in example.arguments
    )
    renamed = {found.get(axis, axis): n for axis, n in example.sizes.items()}
    made = {a: m.formula for a, m in example.recipe.items() if not m.formula.is_Integer}
    equal = reader.sizes.equal.items()
    made |= {s.name: reader.sizes.of_users(n) for s, n in equal if s not in reader.sizes.said}
    recipe = {found.get(a, a): DependentSize(_renamed(size, found)) for a, size in made.items()}
    recipe = {a: m for a, m in recipe.items() if m.formula != sympy.Symbol(a)}
    held = {axis: renamed[axis] for axis in axes_in([a for a in arguments if a.name not in given])}
    used = _met_in(reader, example.arguments)
    kept = tuple(a for a in arguments if a.name in used or a.name in given)
    return kept, Example(kept, renamed, recipe, held, example.asked)


def _renamed(size: sympy.Expr, found: Mapping[str, str]) -> sympy.Expr:
    """Rename the axes in a size."""
    return size.subs({s: sympy.Symbol(found.get(s.name, s.name)) for s in size.free_symbols})


def _met_in(reader: Reader, arguments: Sequence[Argument]) -> set[str]:
    """The arguments that the output depends on."""
    met = set().union(*(trees.tensors_in(s.tree) for s in reader.statements))
    pairs = zip(arguments, reader.declared, strict=True)
    return {argument.name for argument, declared in pairs if declared.name in met}


def _unnamed(name: str, shape: Sequence[int], subject: Subject) -> Argument:
    axes = tuple("1" if n == 1 else GUESSED for n in shape)
    return Argument(name, axes, GIVEN if name in subject.constant else "")


def _numbered(arguments: Sequence[Argument]) -> list[Argument]:
    found, k = [], 0
    for argument in arguments:
        axes = []
        for axis in argument.axes:
            k += axis == GUESSED
            axes.append(f"{GUESSED}{k}" if axis == GUESSED else axis)
        found.append(replace(argument, axes=tuple(axes)))
    return found


def named(reader: Reader, known: Sequence[str]) -> dict[str, str]:
    """Resolve each guessed axis to one of the user's, or give a shared name to all that
    are equal.
    """
    same = {axis: axis for axis in reader.sizes.of_axis}

    def root(axis: str) -> str:
        while same.setdefault(axis, axis) != axis:
            axis = same[axis]
        return axis

    for axis, size in reader.sizes.of_axis.items():
        if isinstance(size, sympy.Symbol) and size.name in same:
            same[root(axis)] = root(size.name)
    users: dict[str, str] = {root(axis): axis for axis in known}
    users |= {root(own): axis for axis, own in reader.sizes.called.items()}
    for a, b in reader.shapes.met:
        one, other = root(a), root(b)
        if one == other or (one in users and other in users):
            continue
        keep, gone = (one, other) if one in users else (other, one)
        same[gone] = keep
    found: dict[str, str] = {}
    taken = {*known}
    for axis in (a for a in reader.sizes.of_axis if a.startswith(GUESSED)):
        group = root(axis)
        if group not in users:
            users[group] = next(n for n in FREE if n not in taken)
            taken.add(users[group])
        found[axis] = users[group]
    return found
