"""Sizes that a forward needs to be made of others: in words, and to choose sizes by."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from sympy import Expr, Integer, Max, Mul, Symbol, floor

from codegen.importing.sizes import Sizes
from codegen.importing.ways import Made, Recipe
from derive.notation.definition import Definition

LEAST = 2  # parts of an axis of which it may have any number
MOST_PLACES = 2**22  # of all axes together, at which a forward is computed without need


@dataclass(frozen=True)
class Relations:
    """``words`` are those of the user's axes that depend on others, ``recipe`` is how to choose
    them.
    """

    words: tuple[str, ...]
    recipe: Recipe

    def over(self, recipe: Recipe) -> Recipe:
        """Instead of what was tried to find them."""
        found = {
            axis: made
            for axis, made in recipe.items()
            if not {axis, *(s.name for s in made.formula.free_symbols)} & self.recipe.keys()
        }
        return found | dict(self.recipe)


def relations_of(definition: Definition, sizes: Sizes, users: Sequence[str]) -> Relations:
    """What the sizes of the ``users`` axes have to be for a forward that was read."""
    words: dict[str, str] = {}
    recipe: dict[str, Made] = {}
    for axis in users:
        size = sizes.of_axis.get(axis, Symbol(axis))
        if size != Symbol(axis) and _are(size, users):
            words[axis], recipe[axis] = f"{axis} = {size}", Made(size)
    for flat, parts in definition.flattened:
        axis = definition.size(flat).name
        own = [definition.size(part) for part in parts]
        known = [p for p in own if p.length is not None or p.name in users]
        if axis not in users or axis in recipe:
            continue
        whole = Mul(*(Integer(p.length) if p.length else Symbol(p.name) for p in known))
        if len(known) == len(own):
            words[axis], recipe[axis] = f"{axis} = {whole}", Made(whole)
        elif whole != 1:
            words[axis] = f"{axis} a multiple of {whole}"
            recipe[axis] = Made(whole * Max(LEAST, floor(Symbol(axis) / whole)))
    for number, axis in sizes.fixed.items():
        if axis in users:
            words[axis], recipe[axis] = f"{axis} = {number}", Made(Integer(number))
    return Relations(tuple(words[axis] for axis in users if axis in words), recipe)


def _are(size: Expr, users: Collection[str]) -> bool:
    return {s.name for s in size.free_symbols} <= {*users}


def fit(definition: Definition, of_axis: Mapping[str, Expr], sizes: Mapping[str, int]) -> bool:
    """Whether the forward has these sizes: those that are made of others are as they should be, and
    one that it splits into others is a multiple.
    """
    of = sizes_of_all(of_axis, sizes)
    whole = all(n == int(n) and n > 0 for n in of.values())
    whole = whole and all(of.get(axis, n) == n for axis, n in sizes.items())
    return whole and all(
        of[a.name] == prod(of[definition.size(b).name] for b in parts)
        for a, parts in definition.flattened
    )


def sizes_of_all(of_axis: Mapping[str, Expr], sizes: Mapping[str, int]) -> Mapping[str, Expr]:
    """Of all axes, those too that are made of others."""
    known = {Symbol(axis): n for axis, n in sizes.items()}
    return {axis: size.subs(known) for axis, size in of_axis.items()}


def few_enough(
    of_axis: Mapping[str, Expr], several: Sequence[Mapping[str, int]]
) -> list[Mapping[str, int]]:
    """The sizes at which a forward is computed at once, or the smallest."""

    def places(sizes: Mapping[str, int]) -> int:
        return int(prod(sizes_of_all(of_axis, sizes).values()))

    return [s for s in several if places(s) <= MOST_PLACES] or [min(several, key=places)]
