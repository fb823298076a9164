"""Sizes at which a function may differ from its trace."""

from __future__ import annotations

from collections.abc import Mapping

import sympy

from codegen.importing.reader import Reader
from derive.language.errors import Place

MOST_SIZE = 2**14  # largest size tried
TRIED_FIRST = (2, 3, 4, 5)  # sizes
MOST_OF_TORCH = 12  # torch's own conditions that are tried; all of the user's are


def beyond(reader: Reader) -> list[tuple[dict[str, int], Place | None]]:
    """Sizes that violate an assumption of the trace, where the function may differ."""
    found: list[tuple[dict[str, int], Place | None]] = []
    known = reader.traced.sizes
    of_loops = [(sympy.Le(loop.end, 2 * loop.step), loop.place) for loop in reader.loops]
    for relied, place in [*reader.traced.guards, *of_loops]:
        condition = reader.sizes.of_users(relied.xreplace(reader.sizes.symbols))
        for axis in sorted(map(str, condition.free_symbols)):
            sizes = violated(condition, axis, known) if axis in known else None
            if sizes is not None and (sizes, place) not in found:
                found.append((sizes, place))
    asked = [pair for pair in found if pair[1] is not None]
    return asked + [pair for pair in found if pair[1] is None][:MOST_OF_TORCH]


def violated(condition: sympy.Basic, axis: str, known: Mapping[str, int]) -> dict[str, int] | None:
    """Sizes that violate a condition, found by changing one axis."""
    numbers = {int(n) for n in condition.atoms(sympy.Integer)} | {*known.values()}
    near = sorted({n + d for n in numbers for d in (-1, 0, 1)} | {*TRIED_FIRST})
    for size in (n for n in near if 1 < n < MOST_SIZE):
        sizes = {**known, axis: size}
        try:
            holds = condition.subs({sympy.Symbol(a): n for a, n in sizes.items()})
        except ZeroDivisionError:  # a quotient of sizes in a denominator is 0 here
            continue
        if holds == sympy.false:
            return sizes
    return None
