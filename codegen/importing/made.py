"""Keep the user's floats as named scalars: a temperature, a smoothing, a module's eps.

While a function is traced, each float is a `TracedFloat`: a float near its default, with digits
that nobody types, which records its expression. Python's arithmetic preserves the expression (``1 -
alpha``), and in the graph, which stores plain floats, the value identifies it. If a value computed
in any other way differs between two traces, the float stays a constant; so does one that the code
compares.
"""

from __future__ import annotations

import math
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy
import torch

from derive.language.errors import Place
from derive.language.torch_ops import trees
from derive.language.torch_ops.trees import Tree

ASIDE = (0.01365, 0.02173)  # relative distance of the two traces from the default
BETWEEN = 0.618034  # golden ratio: no two floats are equally far
MOST_ALONE = 5  # floats tried one at a time
STAYS = "{} stays {!r}: {}."
ASKS = "line {} of {} needs its value"
NO_FORMULA = "a value computed from it was not recognized at another value"
T = TypeVar("T")
SHORT = "%.9g"
# Comparisons in torch's own files do not count as the user's.
OF_TORCH = str(Path(torch.__file__).parent)
# Frames between the user's line and the number: torch's max and min while tracing, numpy.
BETWEEN_THEM = (str(Path(OF_TORCH, "_export", "non_strict_utils.py")), numpy.__path__[0])
OURS = str(Path(__file__).parents[1])
OF_PYTHON = sysconfig.get_path("stdlib")
INSTALLED = "site-packages"


class FloatRead(Exception):
    """The code reads the values of floats, on these lines."""

    def __init__(self, places: Mapping[str, Place]):
        self.places = dict(places)


def with_names(find: Callable[[Mapping[str, float]], T], floats: Mapping[str, float]):
    """Call ``find`` with as many floats as possible as names; also return why the others are
    constants.

    Raises whatever ``find`` raises with all of them constant.
    """
    floats, stay = dict(floats), []
    while floats:
        try:
            return find(floats), tuple(stay)
        except FloatRead as looked:
            for name, place in looked.places.items():
                stay.append(
                    STAYS.format(
                        name, floats.pop(name), ASKS.format(place.line, Path(place.file).name)
                    )
                )
        except Exception:
            break
    found = find({})
    good: dict[str, float] = {}
    for name, value in floats.items():
        try:
            if len(floats) == 1 or len(floats) > MOST_ALONE:
                raise ValueError(name)
            found = find({**good, name: value})
            good[name] = value
        except Exception:
            stay.append(STAYS.format(name, value, NO_FORMULA))
    return found, tuple(stay)


@dataclass
class Floats:
    """The floats of one trace: the expression of each value, and those whose value the code
    ``looked`` at.
    """

    defaults: Mapping[str, float] = field(default_factory=dict)
    trace: int = 0
    known: dict[float, TracedFloat] = field(default_factory=dict)
    looked: dict[str, Place] = field(default_factory=dict)

    def near(self) -> dict[str, float]:
        """Each float near its default, under its name."""
        found = {}
        for i, (name, value) in enumerate(self.defaults.items()):
            aside = ASIDE[self.trace] * (1 - BETWEEN ** (i + 1) / 2)
            found[name] = self.made(value * (1 - aside) or aside, trees.tensor(name, ()))
        return found

    def made(self, value: float, tree: Tree) -> float:
        """A `TracedFloat` for an expression; a value with few digits, as of ``alpha - alpha``, may
        come from elsewhere and stays a plain float.
        """
        if float(SHORT % value) == value:
            return value
        return self.known.setdefault(float(value), TracedFloat(value, tree, self))

    def meant(self, value: Any) -> Any:
        """The expression of a number in the graph, if known; else the number."""
        return self.known.get(value, value) if type(value) is float else value

    def called(self, name: Callable[[str], str]) -> dict[str, str]:
        """Assign names by path; expressions use them from here on."""
        names = {path: name(path) for path in self.defaults}
        for made in self.known.values():
            made.tree = trees.with_names(made.tree, names)
        return names

    def check(self) -> None:
        """Raise `FloatRead` if the code read the value of one."""
        if self.looked:
            raise FloatRead(self.looked)

    def look(self, made: TracedFloat) -> None:
        """Record the user's line that reads the value."""
        frame = sys._getframe(2)
        while frame.f_code.co_filename.startswith(BETWEEN_THEM) and frame.f_back:
            frame = frame.f_back
        file = frame.f_code.co_filename
        theirs = file.startswith((OF_TORCH, OURS, "<"))
        if not theirs and (INSTALLED in file or not file.startswith(OF_PYTHON)):
            for name in trees.tensors_in(made.tree):
                self.looked.setdefault(name, Place(file, frame.f_lineno))


NONE = Floats()


class TracedFloat(float):
    """A float that records its expression."""

    tree: Tree
    floats: Floats

    def __new__(cls, value: float, tree: Tree, floats: Floats):
        own = super().__new__(cls, value)
        own.tree, own.floats = tree, floats
        return own

    __hash__ = float.__hash__

    def __reduce__(self):
        return float, (float(self),)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        self.floats.look(self)
        plain = [float(i) if isinstance(i, TracedFloat) else i for i in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __deepcopy__(self, memo):
        return self


def _tree(value: float) -> Tree:
    return trees.number(value)


def _kept(name: str, tree: Callable[..., Tree], swapped: bool) -> Callable:
    plain = getattr(float, name)

    def arithmetic(self, *others):
        value = plain(self, *others)
        if type(value) is not float or not math.isfinite(value):
            return value
        parts = [self.tree, *map(_tree, others)]
        return self.floats.made(value, tree(*(parts[::-1] if swapped else parts)))

    return arithmetic


def _looked(name: str) -> Callable:
    plain = getattr(float, name)

    def asked(self, *others):
        found = plain(self, *others)
        if found is not NotImplemented:
            self.floats.look(self)
        return found

    return asked


_ARITHMETIC = {"add": trees.sum_of, "sub": trees.difference, "mul": trees.product}
_ARITHMETIC |= {"truediv": trees.quotient, "pow": trees.power}
for _name, _of in _ARITHMETIC.items():
    setattr(TracedFloat, f"__{_name}__", _kept(f"__{_name}__", _of, False))
    setattr(TracedFloat, f"__r{_name}__", _kept(f"__r{_name}__", _of, True))
TracedFloat.__neg__ = _kept("__neg__", trees.minus, False)
TracedFloat.__abs__ = _kept("__abs__", lambda e: trees.call("Abs", e), False)
_LOOKS = ("eq", "ne", "lt", "le", "gt", "ge", "bool", "int", "round", "floor", "ceil", "trunc")
_LOOKS += ("floordiv", "rfloordiv", "mod", "rmod", "divmod", "rdivmod", "format", "str", "repr")
for _name in (*(f"__{n}__" for n in (*_LOOKS, "float")), "is_integer", "as_integer_ratio", "hex"):
    setattr(TracedFloat, _name, _looked(_name))

FUNCTIONS = ("sqrt", "exp", "log", "sin", "cos", "tanh")
# Results of these are not tracked; even a comparison counts as reading the value.
LOOKING = ("isclose", "fabs", "copysign", "fmod", "pow", "log2", "log10", "log1p", "expm1", "hypot")


@contextmanager
def functions_keep(floats: Floats) -> Iterator[None]:
    """Patch Python's math functions to record expressions of a `TracedFloat`, or to note that they
    read its value. With no floats nothing is patched: torch would report the wrapper as the line
    that reads a size.
    """
    before = {n: getattr(math, n) for n in (*FUNCTIONS, *LOOKING) if floats.defaults}

    def keeping(name: str) -> Callable:
        def function(x, *others, **options):
            value = before[name](x, *others, **options)
            made = next((n for n in (x, *others) if isinstance(n, TracedFloat)), None)
            if made is None:
                return value
            if name in FUNCTIONS and not others:
                return made.floats.made(value, trees.call(name, made.tree))
            made.floats.look(made)
            return value

        return function

    for name in before:
        setattr(math, name, keeping(name))
    try:
        yield
    finally:
        for name, plain in before.items():
            setattr(math, name, plain)


@contextmanager
def attributes_set(module: torch.nn.Module, values: Mapping[str, float]) -> Iterator[None]:
    """Set attributes of a module and its submodules, by path."""
    places = [(module.get_submodule(p.rpartition(".")[0]), p.rpartition(".")[2]) for p in values]
    before = [vars(inner).get(name) for inner, name in places]  # None for a class attribute
    try:
        for (inner, name), value in zip(places, values.values(), strict=True):
            vars(inner)[name] = value
        yield
    finally:
        for (inner, name), value in zip(places, before, strict=True):
            if value is None:
                del vars(inner)[name]
            else:
                vars(inner)[name] = value
