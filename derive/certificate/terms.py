"""Expressions as terms of Coq: a table with a row for each node and function.

In: an expression of the record, and how the tensors in it are called (`Terms`). Out: its text, and
what its derivative needs (`Requirement`): what is divided by is not 0, a logarithm's argument is
positive, a condition does not change its truth at this very place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import sympy
from sympy import Add, Expr, Mul, Piecewise, Pow, S

from derive.language.choices import Branches, Compared
from derive.language.errors import NotationError
from derive.language.nodes import ArgMax, Flatten, Max, OneHot, Position, Sum, Unflatten
from derive.language.reading_at import At
from derive.language.symbols import Axis, Tensor, axes_of, tensors_in

REMEDY = "add its row to ROWS in derive/certificate/terms.py, with its lemma in Grad.v"
# Words that a name must not be: Coq's, and those that the table prints.
WORDS = """
    Prop Set Type R nat as at cofix do else end exists exists2 fix for forall fun if in let
    match mod return then using where with by t Sum ind choice leR ltR eqR exp ln sqrt tanh
    cosh sinh Rabs sgn INR Rpower PI erf Largest First negb andb orb Claim is_derive O S
    """
TAKEN = frozenset(WORDS.split())


@dataclass(frozen=True)
class Requirement:
    """``claim`` must hold at all indices along ``axes`` where ``guards`` do; ``of`` and ``sign``
    are set where it says that an expression is positive, or not 0.
    """

    axes: tuple[Axis, ...]
    guards: tuple[str, ...]
    claim: str
    of: Expr | None = None


@dataclass(frozen=True)
class Terms:
    """How tensors are written: ``value`` and ``tangent`` at their indices; ``moving`` are the names
    of those that change along the curve. ``order`` are all axes.
    """

    value: Callable[[Tensor, Callable[[Axis], str]], str]
    moving: frozenset[str]
    order: tuple[Axis, ...]
    size: Callable[[Axis], str]
    guards: tuple[str, ...] = ()
    places: Mapping[Axis, str] = field(default_factory=dict)

    def index(self, axis: Axis) -> str:
        return self.places.get(axis) or index(axis)

    def placed(self, places: Mapping[Axis, str]) -> Terms:
        """The same inside a node that binds axes, whose indices are these."""
        return replace(self, places={**self.places, **places})

    def fresh(self, axis: Axis, *beside: str) -> str:
        """A bound index that captures none of those that are written inside."""
        name = index(axis)
        while any(re.search(rf"\b{name}\b", text) for text in (*self.places.values(), *beside)):
            name = f"j{name}"
        return name

    def total(self, e: Expr, axes: Iterable[Axis], times: str = "") -> str:
        """``e`` summed along ``axes``."""
        bound = {axis: self.fresh(axis, times) for axis in axes}
        text = times + self.placed(bound).text(e)
        for axis, name in reversed(bound.items()):
            text = f"Sum {self.size(axis)} (fun {name} => {text})"
        return f"({text})"

    def text(self, e: Expr) -> str:
        return self._row(e).text(self, e)

    def needs(self, e: Expr) -> Iterator[Requirement]:
        """The hypotheses of the derivative of ``e``, and of all its parts that move."""
        if self.moves(e):
            yield from self._row(e).needs(self, e)

    def moves(self, e: Expr) -> bool:
        return any(t.name in self.moving for t in tensors_in(e))

    def need(self, claim: str, *around: Expr, of: Expr | None = None) -> Requirement:
        free = set().union(*(axes_of(e) for e in around))
        return Requirement(tuple(a for a in self.order if a in free), self.guards, claim, of)

    def where(self, *conditions: str) -> Terms:
        return replace(self, guards=(*self.guards, *conditions))

    def _row(self, e: Expr) -> Row:
        for kind in type(e).__mro__:
            if kind in ROWS:
                return ROWS[kind]
        raise NotationError(f"{type(e).__name__} has no certificate: {e}", REMEDY)


def index(axis: Axis) -> str:
    return f"i{axis.name}"


def summed(text: str, axes: Mapping[Axis, str]) -> str:
    for axis, size in reversed(axes.items()):
        text = f"Sum {size} (fun {index(axis)} => {text})"
    return f"({text})"


@dataclass(frozen=True)
class Row:
    """The text of a node, and what its derivative needs."""

    text: Callable[[Terms, Expr], str]
    needs: Callable[[Terms, Expr], Iterator[Requirement]]


def _of_operands(terms: Terms, e: Expr) -> Iterator[Requirement]:
    for operand in e.args:
        if isinstance(operand, Expr):
            yield from terms.needs(operand)


def _fixed(text: Callable[[Terms, Expr], str]) -> Row:
    return Row(text, lambda terms, e: iter(()))


def _function(name: str, claim: str = "") -> Row:
    """A function of one argument ``u``, and what its derivative there needs."""

    def needs(terms: Terms, e: Expr) -> Iterator[Requirement]:
        (u,) = e.args
        yield from terms.needs(u)
        if claim:
            yield terms.need(claim.format(u=terms.text(u)), u, of=u)

    return Row(lambda terms, e: f"({name} {terms.text(e.args[0])})", needs)


def _rational(e: Expr) -> str:
    p, q = abs(e.p), e.q
    text = str(p) if q == 1 else f"({p} / {q})"
    return f"(- {text})" if e.p < 0 else text


def _product(terms: Terms, e: Expr) -> str:
    if e.args[0] == -1:
        return f"(- {terms.text(Mul(*e.args[1:]))})"
    below = [1 / f for f in e.args if f.is_Pow and f.exp == -1]
    above = [f for f in e.args if not (f.is_Pow and f.exp == -1)]
    text = " * ".join(map(terms.text, above)) or "1"
    return f"({text}" + "".join(f" / {terms.text(b)}" for b in below) + ")"


def _power(terms: Terms, e: Expr) -> str:
    base, k = terms.text(e.base), e.exp
    if k.is_Integer or (2 * k).is_Integer:
        root, times = (base, abs(k)) if k.is_Integer else (f"(sqrt {base})", abs(2 * k))
        whole = root if times == 1 else f"({root} ^ {times})"
        return whole if k > 0 else f"(/ {whole})"
    return f"(Rpower {base} {terms.text(k)})"


def _power_needs(terms: Terms, e: Expr) -> Iterator[Requirement]:
    yield from _of_operands(terms, e)
    if e.exp.is_Integer and e.exp > 0:
        return
    claim = "{u} <> 0" if e.exp.is_Integer else "0 < {u}"
    yield terms.need(claim.format(u=terms.text(e.base)), e.base, of=e.base)


RELATIONS = {
    sympy.Le: "(leR {0} {1})",
    sympy.Lt: "(ltR {0} {1})",
    sympy.Ge: "(leR {1} {0})",
    sympy.Gt: "(ltR {1} {0})",
    sympy.Eq: "(eqR {0} {1})",
    sympy.Ne: "(negb (eqR {0} {1}))",
}


def condition(terms: Terms, c: object) -> str:
    """A condition as a boolean."""
    if type(c) in RELATIONS:
        return RELATIONS[type(c)].format(*map(terms.text, c.args))
    if isinstance(c, (sympy.And, sympy.Or)):
        word, (first, *rest) = "andb" if isinstance(c, sympy.And) else "orb", c.args
        return f"({word} {condition(terms, first)} {condition(terms, type(c)(*rest))})"
    if isinstance(c, sympy.Not):
        return f"(negb {condition(terms, c.args[0])})"
    raise NotationError(f"the condition {c} has no certificate", REMEDY)


def _strict(terms: Terms, c: object) -> Iterator[Requirement]:
    """No two sides of a condition that moves are equal."""
    if type(c) in RELATIONS:
        if any(map(terms.moves, c.args)):
            for side in c.args:
                yield from terms.needs(side)
            a, b = map(terms.text, c.args[:: -1 if isinstance(c, (sympy.Ge, sympy.Gt)) else 1])
            yield terms.need(f"{a} <> {b}", *c.args)
    else:
        for part in c.args:
            yield from _strict(terms, part)


def _choice(terms: Terms, e: Expr) -> str:
    *others, (text, _) = ((terms.text(value), c) for value, c in e.args)
    for value, c in reversed(others):
        text = f"(choice {condition(terms, c)} {value} {text})"
    return text


def _choice_needs(terms: Terms, e: Expr) -> Iterator[Requirement]:
    here = terms
    for value, c in e.args:
        if c == S.true:
            yield from here.needs(value)
            return
        yield from _strict(here, c)
        yield from here.where(f"{condition(terms, c)} = true").needs(value)
        here = here.where(f"{condition(terms, c)} = false")


def _one_hot(terms: Terms, e: Expr) -> str:
    label = e.operand
    if isinstance(label, ArgMax):
        place = f"(First {_row_of(terms, label)})"
    elif isinstance(label, Position):
        place = terms.index(label.axis)
    else:
        place = str(label) if label.is_Integer else terms.text(label)
    return f"(ind (Nat.eqb {place} {terms.index(e.axis)}))"


def _row_of(terms: Terms, e: Expr, of: str = "") -> str:
    (axis,) = e.axes
    name = terms.fresh(axis)
    return f"{terms.size(axis)} (fun {name} => {terms.placed({axis: name}).text(e.operand)})"


def _largest_needs(terms: Terms, e: Expr) -> Iterator[Requirement]:
    yield from terms.needs(e.operand)
    (axis,), row = e.axes, _row_of(terms, e)
    entry = terms.text(e.operand)
    yield terms.need(f"{index(axis)} <> First {row} -> {entry} < Largest {row}", e.operand)


def _flatten(terms: Terms, e: Expr) -> str:
    """The entry at the parts of an index: what is left, and the remainders."""
    place, places = terms.index(e.flat), {}
    for axis in reversed(e.axes[1:]):
        places[axis] = f"({place} mod {terms.size(axis)})%nat"
        place = f"({place} / {terms.size(axis)})%nat"
    return terms.placed({**places, e.axes[0]: place}).text(e.operand)


def _unflatten(terms: Terms, e: Expr) -> str:
    first, *others = e.into
    place = terms.index(first)
    for axis in others:
        place = f"({place} * {terms.size(axis)} + {terms.index(axis)})%nat"
    return terms.placed({e.flat: place}).text(e.operand)


def _whole(terms: Terms, e: Expr) -> str:
    """A whole number."""
    if isinstance(e, Position):
        return f"Z.of_nat {terms.index(e.axis)}"
    if isinstance(e, Axis):
        return f"Z.of_nat {terms.size(e)}"
    if e.is_Integer:
        return str(e) if e >= 0 else f"({e})"
    if isinstance(e, (Add, Mul)):
        sign = " + " if isinstance(e, Add) else " * "
        return f"({sign.join(_whole(terms, a) for a in e.args)})"
    raise NotationError(f"the index {e} has no certificate", REMEDY)


def _read(terms: Terms, e: Expr) -> str:
    """The sum of all entries, each times whether it is the one that is read."""
    numerator, divisor = sympy.fraction(sympy.together(e.index))
    if e.fill != 0:
        raise NotationError(f"{e} has no certificate: what is outside is {e.fill}", REMEDY)
    place, below = _whole(terms, numerator), _whole(terms, divisor)
    name = terms.fresh(e.axis, place)
    own = f"Z.of_nat {name}" if divisor == 1 else f"({below} * Z.of_nat {name})"
    inside = terms.placed({e.axis: name}).text(e.operand)
    return f"(Sum {terms.size(e.axis)} (fun {name} => ind (Z.eqb ({own}) {place}) * {inside}))"


ROWS: dict[type, Row] = {
    Tensor: _fixed(lambda terms, e: terms.value(e, terms.index)),
    Axis: _fixed(lambda terms, e: f"INR {terms.size(e)}"),
    sympy.Rational: _fixed(lambda terms, e: _rational(e)),
    type(sympy.pi): _fixed(lambda terms, e: "PI"),
    type(sympy.E): _fixed(lambda terms, e: "(exp 1)"),
    Position: _fixed(lambda terms, e: f"(INR {terms.index(e.axis)})"),
    OneHot: _fixed(_one_hot),
    Add: Row(lambda terms, e: f"({' + '.join(map(terms.text, e.args))})", _of_operands),
    Mul: Row(_product, _of_operands),
    Pow: Row(_power, _power_needs),
    Sum: Row(lambda terms, e: terms.total(e.operand, e.axes), _of_operands),
    Piecewise: Row(_choice, _choice_needs),
    Max: Row(lambda terms, e: f"(Largest {_row_of(terms, e)})", _largest_needs),
    Flatten: Row(_flatten, _of_operands),
    Unflatten: Row(_unflatten, _of_operands),
    At: Row(_read, _of_operands),
    Compared: Row(lambda terms, e: terms.text(e.args[0]), _of_operands),
    Branches: Row(
        lambda terms, e: _choice(terms, e.choice), lambda terms, e: _choice_needs(terms, e.choice)
    ),
    sympy.exp: _function("exp"),
    sympy.log: _function("ln", "0 < {u}"),
    sympy.tanh: _function("tanh"),
    sympy.cosh: _function("cosh"),
    sympy.sinh: _function("sinh"),
    sympy.erf: _function("erf"),
    sympy.Abs: _function("Rabs", "{u} <> 0"),
    sympy.sign: _function("sgn", "{u} <> 0"),
}
