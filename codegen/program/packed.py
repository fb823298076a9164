"""A `Program` as data for JSON, and back: every record once, after its parts.

Nothing but the records of a Program is made of such data, with every field of its declared type.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from codegen import program as whole
from codegen.program import Program, arrays, loops, reads, steps, values
from derive.language.notation.layout import Dim
from derive.language.symbols import Axes, Axis

MODULES = (whole, arrays, loops, reads, steps, values)
RECORDS = {c.__name__: c for m in MODULES for c in vars(m).values() if is_dataclass(c)}
RECORDS |= {Dim.__name__: Dim}
AXES = {c.__name__: c for c in (Axis, Axes)}
PLAIN = (str, int, float, bool, type(None))


def packed(program: Program, axes: Iterable[Axis]) -> list[Any] | None:
    """``axes`` are those of its forward; None if it cannot be restored from its data."""
    rows: dict[str, int] = {}

    def put(value: object) -> Any:
        if type(value) in PLAIN:
            return value
        if isinstance(value, tuple):
            return [*map(put, value)]
        row = json.dumps([type(value).__name__, *map(put, _parts(value))])
        return {"row": rows.setdefault(row, len(rows))}

    try:
        put(program)
        found = [*map(json.loads, rows)]
        return found if unpacked(found, axes) == program else None
    except ValueError:
        return None


def unpacked(rows: object, axes: Iterable[Axis]) -> Program:
    """The Program that `packed` was called with. Raises ValueError for invalid ``rows``."""
    made: list[object] = []
    known = {axis.declaration: axis for axis in axes}

    def get(data: object) -> object:
        if isinstance(data, list):
            return tuple(map(get, data))
        if not isinstance(data, dict):
            return data
        place = data.get("row")
        if type(place) is not int or not 0 <= place < len(made):
            raise ValueError("no row before it")
        return made[place]

    for row in rows if isinstance(rows, list) else ():
        if not isinstance(row, list) or not row or not isinstance(row[0], str):
            raise ValueError("no record")
        made.append(_made(row[0], [*map(get, row[1:])], known))
    if not made or not isinstance(made[-1], Program):
        raise ValueError("no program")
    return made[-1]


def _parts(value: object) -> Iterable[object]:
    if isinstance(value, Fraction):
        return value.numerator, value.denominator
    if isinstance(value, Axis):
        return (value.name, value.length) if value.formula is None else (value.declaration,)
    if type(value).__name__ not in RECORDS:
        raise ValueError(f"no {type(value).__name__} is packed")
    return [getattr(value, field.name) for field in fields(value)]


def _made(name: str, given: list[Any], axes: Mapping[str, Axis]) -> object:
    if name == Fraction.__name__ and [type(part) for part in given] == [int, int] and given[1]:
        return Fraction(*given)
    if name in AXES and [type(part) for part in given] in ([str, int], [str, type(None)]):
        return AXES[name](*given)
    if name in AXES and len(given) == 1 and given[0] in axes:
        return axes[given[0]]
    hints = _kinds(name)
    if len(given) != len(hints) or not all(map(_is, given, hints.values())):
        raise ValueError(f"no {name}")
    return RECORDS[name](**dict(zip(hints, given, strict=True)))


@cache
def _kinds(name: str) -> dict[str, Any]:
    if name not in RECORDS:
        raise ValueError(f"no record is called {name}")
    hints = get_type_hints(RECORDS[name])
    return {field.name: hints[field.name] for field in fields(RECORDS[name])}


def _is(value: object, kind: Any) -> bool:
    """True if a value has the declared type of a field."""
    origin, kinds = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(_is(value, each) for each in kinds)
    if origin is not tuple:
        return type(value) in (int, float) if kind is float else isinstance(value, kind)
    if not isinstance(value, tuple):
        return False
    if kinds[1:] == (...,):
        return all(_is(each, kinds[0]) for each in value)
    return len(value) == len(kinds) and all(map(_is, value, kinds))
