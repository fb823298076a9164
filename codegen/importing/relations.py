"""Conditions on sizes that a forward needs: in words, and for choosing sizes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import lcm, prod

from sympy import Expr, Integer, Max, Mul, Symbol, denom, expand, floor, together

from codegen.importing.asked import Argument
from codegen.importing.examples import axes_in
from codegen.importing.lengths import length_of
from codegen.importing.size_relations import DependentSize, Recipe
from codegen.importing.sizes import Sizes
from derive.claims.reading.lengths import in_sizes
from derive.language.notation.definition import Definition

LEAST = 2  # parts of an axis split into any number
MOST_PLACES = 2**22  # entries of all axes together, for a quick evaluation


@dataclass(frozen=True)
class Demands:
    """``words``: the user's axes that depend on others; ``recipe``: how to choose their sizes."""

    words: tuple[str, ...]
    recipe: Recipe

    def over(self, recipe: Recipe) -> Recipe:
        """Override the relations tried while searching."""
        found = {
            axis: made
            for axis, made in recipe.items()
            if not {axis, *(s.name for s in made.formula.free_symbols)} & self.recipe.keys()
        }
        return found | dict(self.recipe)


def relations_of(definition: Definition, sizes: Sizes, arguments: Sequence[Argument]) -> Demands:
    """The conditions on the user's sizes that an imported forward needs."""
    users, of_all = axes_in(arguments), sizes.of_all
    said = {own: length_of(axis) for axis, own in sizes.called.items()}
    words: dict[str, str] = {}
    recipe: dict[str, DependentSize] = {}
    for axis in users:
        size = of_all.get(axis, Symbol(axis))
        if size != Symbol(axis) and _are(size, users):
            words[axis], recipe[axis] = f"{axis} = {size}", DependentSize(size)
    demands = [(length, Integer(1)) for length in said.values()]
    for flat, parts in definition.flattened:
        axis = definition.size(flat).name
        own = [definition.size(part) for part in parts]
        known = [p for p in own if p.length is not None or p.name in {*users, *said}]
        whole = Mul(*(said.get(p.name, Integer(p.length or 0) or Symbol(p.name)) for p in known))
        if axis in said and not (recipe.keys() & set(map(str, said[axis].free_symbols))):
            demands.append((said[axis], whole))
        if axis not in users or axis in recipe:
            continue
        if len(known) == len(own) and whole != Symbol(axis):
            words[axis], recipe[axis] = f"{axis} = {whole}", DependentSize(whole)
        elif whole not in (1, Symbol(axis)):
            words[axis], recipe[axis] = _multiple(axis, whole)
    for length, whole in demands:
        name, needed = _demanded(length, whole)
        if not name and needed != 1:
            of = "a whole number" if whole == 1 else f"a multiple of {whole}"
            words[str(length)] = f"{length} {of}"
    lengths = (in_sizes(definition, axis) for axis in definition.axes)
    demands += [(length, Integer(1)) for length in lengths if not length.has(floor)]
    demands += [(size / parts, Integer(1)) for size, parts in sizes.multiples.items()]
    chosen = {*users, *(str(size) for length in said.values() for size in length.free_symbols)}
    for name, needed in _multiples(demands).items():
        if name in chosen - recipe.keys():
            words[name], recipe[name] = _multiple(name, Integer(needed))
    for number, axis in sizes.fixed.items():
        if axis in users or axis in said:
            words[axis], recipe[axis] = f"{axis} = {number}", DependentSize(Integer(number))
    order = [*users, *words]
    return Demands(tuple(words[axis] for axis in sorted(words, key=order.index)), recipe)


def _multiple(axis: str, of: Expr) -> tuple[str, DependentSize]:
    return f"{axis} a multiple of {of}", DependentSize(of * Max(LEAST, floor(Symbol(axis) / of)))


def _multiples(demands: Iterable[tuple[Expr, Expr]]) -> dict[str, int]:
    """Sizes that must be multiples, and of which number."""
    found: dict[str, int] = {}
    for name, needed in (_demanded(length, whole) for length, whole in demands):
        if name and needed != 1:
            found[name] = lcm(int(needed), found.get(name, 1))
    return found


def _demanded(length: Expr, whole: Expr) -> tuple[str, Expr]:
    """A size, and the number it must be a multiple of for ``length`` to divide ``whole``; an empty
    name unless that is a condition on one size.
    """
    ratio, names = expand(length / whole), length.free_symbols
    for size in names if len(names) == 1 else ():
        part = ratio.coeff(size)
        if part.is_Rational and (ratio - part * size).is_Integer:
            return str(size), Integer(part.q)
    return "", denom(together(ratio))


def _are(size: Expr, users: Collection[str]) -> bool:
    return {s.name for s in size.free_symbols} <= {*users}


def fit(definition: Definition, of_axis: Mapping[str, Expr], sizes: Mapping[str, int]) -> bool:
    """Whether the forward accepts these sizes: dependent ones match, and split ones
    are multiples.
    """
    of = sizes_of_all(of_axis, sizes)
    whole = all(n == int(n) and n > 0 for n in of.values())
    whole = whole and all(of.get(axis, n) == n for axis, n in sizes.items())
    return whole and all(
        of[a.name] == prod(of[definition.size(b).name] for b in parts)
        for a, parts in definition.flattened
        if a.name in sizes  # the length of any other follows from its parts
    )


def sizes_of_all(of_axis: Mapping[str, Expr], sizes: Mapping[str, int]) -> Mapping[str, Expr]:
    """The sizes of all axes, including dependent ones."""
    known = {Symbol(axis): n for axis, n in sizes.items()}
    return {axis: size.subs(known) for axis, size in of_axis.items()}


def few_enough(
    of_axis: Mapping[str, Expr], several: Sequence[Mapping[str, int]]
) -> list[Mapping[str, int]]:
    """The sizes at which a forward is evaluated quickly, or the smallest ones."""

    def places(sizes: Mapping[str, int]) -> int:
        return int(prod(sizes_of_all(of_axis, sizes).values()))

    several = [s for s in several if places(s) > 0] or several
    return [s for s in several if places(s) <= MOST_PLACES] or [min(several, key=places)]
