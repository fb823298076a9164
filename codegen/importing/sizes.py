"""Axes and their sizes, and torch's symbolic sizes in terms of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import lcm

import sympy
import torch
from sympy import Expr, Integer, Symbol

from codegen.importing.lengths import length_of, names_in
from codegen.importing.trace import FREE_VALUES
from codegen.importing.values import Dim, Refused
from derive.language.torch_ops.text import number_text

# Names for a second axis of the same size.
SIBLINGS = {
    "N": "M",
    "B": "A",
    "T": "S",
    "Q": "K",
    "C": "D",
    "D": "E",
    "E": "F",
    "K": "L",
    "H": "G",
    "V": "U",
    "S": "R",
    "M": "L",
}
NUMBERS = {2: "Two", 3: "Three", 4: "Four"}
PART, GROUP = "P", "G"  # names for axes of a size that no argument has
# torch's division functions of sizes.
DIVISIONS = ("CleanDiv", "IntTrueDiv", "FloatTrueDiv")
FLOORS, REMAINDERS = ("FloorDiv",), ("Mod", "PythonMod")
POWERS = ("FloatPow", "PowByNatural")
NOTHING = ("ToFloat", "Identity")
ROOT = "OpaqueUnaryFn_sqrt"


class Sizes:
    """``of_axis``: sizes as SymPy expressions over axis names; ``hints``: those of the example;
    ``fixed``: axes whose size became a constant in the trace, by that constant.
    """

    def __init__(self, hints: Mapping[str, int]):
        self.hints = dict(hints)
        self.of_axis: dict[str, Expr] = {}
        self.symbols: dict[Symbol, Expr] = {}
        self.fixed: dict[int, str] = {}
        self.equal: dict[Symbol, Expr] = {}  # sizes that must equal an expression of others
        self.multiples: dict[Symbol, int] = {}  # sizes that must be multiples of a number
        self.are_given = False  # a backward takes its sizes from the forward, without conditions
        self.taken: set[str] = set()  # names not available for new axes
        self.parts: set[str] = set()  # windows: axes that run along all of another one
        self.formulas: dict[str, str] = {}  # lengths as typed, of axes that have one
        self.called: dict[str, str] = {}  # names of axes given as expressions, by expression
        self.said: dict[Symbol, Expr] = {}  # sizes in these that no tensor gives

    # Axes

    def declare(self, axis: str, size: torch.SymInt | int) -> None:
        """Declare an axis of the user's with its symbolic size."""
        again = axis in self.of_axis
        own = self.of_axis.setdefault(axis, Symbol(axis))
        expression = size.node.expr if isinstance(size, torch.SymInt) else Integer(size)
        if expression.is_Integer:
            self.fixed.setdefault(int(expression), axis)
            return
        unknown = [s for s in expression.free_symbols if s not in self.symbols]
        if len(unknown) == 1:
            known = _converted(expression.xreplace(self.symbols), lambda size: 0)
            self.symbols[unknown[0]] = sympy.solve(known - own, unknown[0])[0]
        elif not unknown and axis in self.called.values():
            self.assume(own, self.plain(expression))
        elif not unknown and not again:
            self.of_axis[axis] = self.plain(expression)

    def call(self, axes: Iterable[str]) -> None:
        """Name axes given as expressions; sizes in these that no axis has are solved for."""
        for axis in axes:
            self.called[axis] = own = self._new(_named_by(length_of(axis)), Symbol("?"))
            self.hints[own] = self.hint(length_of(axis))
        waiting = [*self.called]
        while waiting:
            axis = min(waiting, key=lambda a: len(self._untold(a)))
            waiting.remove(axis)
            own, untold = self.called[axis], self._untold(axis)
            length = length_of(axis).xreplace({Symbol(a): n for a, n in self.of_axis.items()})
            self.of_axis[own] = Symbol(own) if untold else length
            if untold:
                self.said[Symbol(own)] = length_of(axis)
            if len(untold) == 1:
                (name,) = untold
                found = sympy.solve(length - Symbol(own), Symbol(name))
                size = next((n for n in found if self.hint(n) == self.hints[name]), None)
                self.of_axis |= {} if size is None else {name: size}

    def _untold(self, axis: str) -> set[str]:
        return {*names_in(axis)} - self.of_axis.keys()

    def of_users(self, e: sympy.Basic) -> sympy.Basic:
        """An expression of sizes, in the user's names."""
        return e.xreplace(self.said)

    @property
    def of_all(self) -> dict[str, Expr]:
        """The sizes of all axes, in the user's names."""
        return {axis: self.of_users(size) for axis, size in self.of_axis.items()}

    def like(self, axis: str) -> str:
        """A new axis of the size of another, with the same formula."""
        found = self._new(SIBLINGS.get(axis[0], axis), self.of_axis[axis])
        if axis in self.formulas:
            self.formulas[found] = self.formulas[axis]
        return found

    def again(self, axis: str, but: Iterable[str]) -> str:
        """A second axis of the same size, for a name the user wrote twice."""
        found = self.axis_of(self.of_axis[axis], but)
        self.formulas.setdefault(found, axis)
        return found

    def new(self, size: Expr) -> str:
        """A new axis of a size."""
        return self._new(NUMBERS.get(int(size), GROUP) if size.is_Integer else PART, size)

    def _new(self, base: str, size: Expr) -> str:
        name, k = base, 2
        while name in self.of_axis or name in self.taken:
            name, k = f"{base}{k}", k + 1
        self.of_axis[name] = size
        return name

    def formed(self, size: Expr, written: str, but: Iterable[str] = ()) -> str:
        """An axis whose length is an expression of others: an existing one, or a new one."""
        unwanted, whole = {*but, *self.parts}, self._in_parts(sympy.sympify(size, strict=True))
        written, size = written if whole == size else number_text(whole), whole
        declared = [*self.hints, *self.formulas]
        known = (a for a in declared if a in self.of_axis and a not in unwanted)
        found = next((a for a in known if self.same(self.of_axis[a], size)), None)
        if found is None:
            found = self.new(size)
            if not size.is_Integer:
                self.formulas[found] = written
        return found

    def found(self, size: Expr, but: Iterable[str] = ()) -> str | None:
        """An existing axis of this size, none of ``but``."""
        unwanted = set(but)
        same = (a for a, own in self.of_axis.items() if a not in unwanted and self.same(own, size))
        return next(same, None)

    def axis_of(self, size: Expr, but: Iterable[str] = ()) -> str:
        """An existing or new axis of this size, none of ``but``."""
        known = self.found(size, but)
        if known is not None:
            return known
        like = self.found(size)
        return self.new(size) if like is None else self.like(like)

    def made(self, size: Expr, but: Iterable[str] = ()) -> str:
        """The same for created tensors: a new axis states its length."""
        known = self.found(size, but)
        return self.formed(size, number_text(size), but) if known is None else known

    # Sizes

    def plain(self, size: torch.SymInt | torch.SymFloat | float | Expr) -> Expr:
        """A size as an expression over axis names."""
        e = size.node.expr if isinstance(size, (torch.SymInt, torch.SymFloat)) else size
        e = sympy.sympify(e, strict=True)
        if e.is_Integer and int(e) in self.fixed:
            return Symbol(self.fixed[int(e)])
        e = _converted(e.xreplace(self.symbols), self.hint).xreplace(self.equal)
        e = self._in_parts(e)
        strange = e.atoms(sympy.Function) - e.atoms(sympy.floor) or e.free_symbols - {
            Symbol(a) for a in self.of_axis
        }
        if any(str(s)[:1] in "uz" and not s.is_Function for s in strange):
            raise Refused("this depends on the values of a tensor", FREE_VALUES)
        if strange:
            names = ", ".join(sorted(map(str, strange)))
            raise Refused(f"a size that contains {names}", "use sums, products and roots of sizes")
        return e

    def equate(self, axis: str, size: Expr) -> None:
        """Require an axis to have this size, as in the example."""
        if self.of_axis[axis] == Symbol(axis) and Symbol(axis) not in size.free_symbols:
            self.equal[Symbol(axis)] = size
            self.of_axis = {a: own.xreplace(self.equal) for a, own in self.of_axis.items()}

    def divide(self, axis: str, parts: int) -> None:
        """Require the size of an axis to be a multiple of ``parts``, so that nothing is rounded."""
        self.multiples[Symbol(axis)] = lcm(parts, self.multiples.get(Symbol(axis), 1))
        for own, size in self.of_axis.items():
            exact = self._in_parts(size)
            if exact != size:
                self.of_axis[own] = exact
                self.formulas[own] = number_text(exact)

    def _in_parts(self, e: Expr) -> Expr:
        if not self.multiples or not e.has(sympy.floor):
            return e
        parts = {size: sympy.Dummy(integer=True, positive=True) for size in self.multiples}
        e = e.xreplace({size: k * parts[size] for size, k in self.multiples.items()}).expand()
        return e.xreplace({part: size / self.multiples[size] for size, part in parts.items()})

    def assume(self, one: Expr, other: Expr) -> None:
        """Assume that two sizes equal in the example are always equal."""
        if self.same(one, other):
            return
        rounded = sympy.expand(one - other).atoms(sympy.floor)
        for inside in (node.args[0] for node in rounded if not self.are_given):
            for size in sorted(inside.free_symbols, key=str):
                parts = inside.expand().coeff(size).q
                if parts > 1 and self.hints.get(str(size), 1) % parts == 0:
                    self.divide(str(size), parts)
        one, other = map(self._in_parts, (one, other))
        if self.same(one, other) or rounded:
            return
        axes = [a for a in self.hints if a not in self.fixed.values()]
        met = (sympy.Integer(0) + one - other).free_symbols  # either may be an int
        for axis in (a for a in axes if Symbol(a) in met):
            for size in sympy.solve(one - other, Symbol(axis)):
                if not size.has(sympy.I) and self.hint(size) == self.hints[axis]:
                    return self.equate(axis, size)

    def of(self, dim: Dim) -> Expr:
        return sympy.Mul(*(self.of_axis[axis] for axis in dim))

    def hint(self, size: Expr | int) -> int:
        """The value of a size in the example."""
        known = {Symbol(axis): n for axis, n in self.hints.items()}
        return int(sympy.sympify(size, strict=True).subs(known))

    def same(self, a: Expr, b: Expr) -> bool:
        return a == b or sympy.expand(a - b) == 0

    def at_most(self, a: Expr, b: Expr) -> bool:
        """Whether a <= b for all sizes."""
        gap = sympy.expand(b - a)
        if gap.has(sympy.floor) or not gap.free_symbols:
            return bool(gap == 0 or gap.is_nonnegative)
        more = sympy.Poly(gap.xreplace({s: 1 + s for s in gap.free_symbols}))
        return all(c >= 0 for c in more.coeffs())

    def alike(self, a: str, b: str) -> bool:
        """Whether two axes have equal sizes, at least in the example."""
        one, other = self.of_axis[a], self.of_axis[b]
        return self.same(one, other) or self.hint(one) == self.hint(other)


def _named_by(length: Expr) -> str:
    """A name for an axis of combined length: ``TwoE``, ``GP``."""
    times, rest = length.as_coeff_Mul()
    if rest.is_Add or rest.is_Pow or not (times == 1 or times in NUMBERS):
        return PART
    return NUMBERS.get(int(times), "") + "".join(sorted(map(str, rest.free_symbols)))


def _converted(e: Expr, hint: Callable[[Expr], int]) -> Expr:
    """Convert torch's size functions to arithmetic. Rounding is resolved as in the example; if
    other sizes round differently, the second trace shows it.
    """
    e = e.replace(_named(*NOTHING), lambda n: n.args[0])
    e = e.replace(_named(ROOT), lambda n: sympy.sqrt(n.args[0]))
    e = e.replace(_named(*POWERS), lambda n: n.args[0] ** n.args[1])
    e = e.replace(lambda n: n.is_Float, lambda n: sympy.nsimplify(n, rational=True))
    e = e.replace(_named(*DIVISIONS), lambda n: n.args[0] / n.args[1])
    e = e.replace(_named(*REMAINDERS), lambda n: Integer(hint(n.args[0]) % hint(n.args[1])))

    def floor(n: Expr) -> Expr:
        a, b = n.args
        whole = hint(b) or 1
        return sympy.expand((a - hint(a) % whole) / b)

    return e.replace(_named(*FLOORS), floor)


def _named(*names: str) -> Callable[[Expr], bool]:
    return lambda n: type(n).__name__ in names
