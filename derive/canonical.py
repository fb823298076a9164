"""One spelling for what can be written in several: exponentials in any base, shares of a whole of
exponentials, hyperbolic tangents; and values up to a number.

The closed form is looked for in this spelling; the statements stay as they were written, and every
line is proved against those. Only what is taken entry by entry is turned: a sum along an axis is
what it is. `equations` has the table; ``tests/test_canonical.py`` evaluates both sides of each.

Where lines are divided decides nothing either. Of values that are multiples of one another one is a
value: from ``h = 2*x`` every ``h`` is ``2*x``; and where ``h = 2*tanh(x)`` is read as ``h/2``, that
is ``h_part = tanh(x)``. An exponential is no value, for what overflows in it may cancel in what is
made of it; nor is a product that is only summed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import gcd

from sympy import (
    Add,
    Basic,
    Expr,
    Integer,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    exp,
    expand,
    factor,
    log,
    tanh,
)
from sympy.core.relational import Relational

from derive.choices import written_in
from derive.definition import Definition, Statement
from derive.exponential_quotients import share_of_whole
from derive.nodes import ArrayNode, OneHot, Reduction, Sum, renamed
from derive.positive import LARGEST_PRIME, is_positive, split_log
from derive.statements import known_signs
from derive.symbols import Tensor, axes_of, is_constant, tensors_in
from derive.traversal import everywhere


@dataclass(frozen=True)
class Equation:
    """``statement`` is the equation, left to right; ``rewrite`` gives the right side of a node, or
    None where the left is not met.
    """

    statement: str
    holds: str
    rewrite: Callable[[Expr], Expr | None]


def canonical(e: Expr) -> Expr:
    """``e`` in the one spelling that all equations lead to."""

    def rewritten(node: Expr) -> Expr | None:
        results = (equation.rewrite(node) for equation in equations)
        found = next((r for r in results if r is not None and r != node), None)
        return None if found is None else canonical(found)

    return everywhere(e, rewritten)


@dataclass(frozen=True)
class Spelling:
    """A forward in the one spelling. ``statements`` are all of its own, in order, and those that
    are one without the number before it; ``definition`` has those that are read. The others are
    ``dissolved``: what read them is written in what they are. ``multiples`` has what is a number
    times another one.
    """

    definition: Definition
    statements: tuple[Statement, ...]
    multiples: Mapping[str, Expr]

    @property
    def dissolved(self) -> dict[str, Statement]:
        read = self.definition.by_name
        return {s.name: s for s in self.statements if s.name not in read}


def spelled(definition: Definition) -> Spelling:
    """``definition`` in the one spelling, where a value that is a multiple of another one, or an
    exponential entry by entry, is written where it is read.
    """
    apart = _spelled(definition, frozenset())
    return _spelled(definition, frozenset(_met_with_their_numbers(apart)))


def _spelled(definition: Definition, whole: Collection[str]) -> Spelling:
    """The same; what is called one of ``whole`` keeps the number before it."""
    taken = {*definition.position, *(axis.name for axis in definition.axes)}
    only_summed = _only_summed(definition)
    written: dict[str, Expr] = {}
    statements: list[Statement] = []
    parts: dict[str, Expr] = {}

    def state(statement: Statement, e: Expr) -> Tensor:
        if is_multiple(e) or _is_of_exponentials(e) or statement.name in only_summed:
            written[statement.name] = e
        statements.append(replace(statement, expression=e))
        return statement.tensor

    *inner, output = definition.statements
    for statement in inner:
        e = canonical(_written_out(statement.expression, written))
        if axes_of(e) != set(statement.tensor.axes):  # it is broadcast
            statements.append(replace(statement, expression=e))
            continue
        number, value = _number_apart(e)
        apart = abs(number) != 1 and statement.name not in whole
        if apart and not isinstance(value, Tensor):
            part = _part_of(statement, value, taken)
            taken.add(part.name)
            e = parts[statement.name] = number * state(part, value)
        state(statement, e)
    last = canonical(_written_out(output.expression, written))
    statements.append(replace(output, expression=last))
    read = _read_for(output.name, statements)
    return Spelling(replace(definition, statements=read), tuple(statements), parts)


def _read_for(output: str, statements: list[Statement]) -> tuple[Statement, ...]:
    """The statements that the output is computed from."""
    read = {output}
    for statement in reversed(statements):
        if statement.name in read:
            read |= {t.name for t in tensors_in(statement.expression)}
    return tuple(s for s in statements if s.name in read)


def _only_summed(definition: Definition) -> set[str]:
    """The products of tensors that nothing reads but one sum, which is a sum of those."""
    met = [t for s in definition.statements for t in _occurrences(s.expression)]
    counts = Counter(t.name for t in met)
    sums = {node for s in definition.statements for node in s.expression.atoms(Sum)}
    summed = {node.operand.name for node in sums if isinstance(node.operand, Tensor)}
    return {
        s.name
        for s in definition.statements
        if s.name in summed and counts[s.name] == 1 and _is_monomial(s.expression)
    }


def _is_monomial(e: Expr) -> bool:
    """Whether ``e`` is a product of powers of tensors, of what they index or choose, of numbers."""
    kinds = (Tensor, OneHot, Piecewise)
    return all(isinstance(b, kinds) or is_constant(b) for b in e.as_powers_dict())


def _met_with_their_numbers(spelling: Spelling) -> set[str]:
    """The statements that have nothing from being without a number: in whatever reads them, it
    stands beside them.
    """
    met: Counter[Tensor] = Counter()
    beside: Counter[Tensor] = Counter()
    numbers = {t: n for n, t in map(_number_apart, spelling.multiples.values())}
    for statement in spelling.definition.statements:
        for node in _outside_of_conditions(statement.expression):
            met.update([node.at_home] if isinstance(node, Tensor) else [])
            number, product = _number_apart(node) if isinstance(node, Mul) else (S.One, node)
            for base, power in product.as_powers_dict().items() if number != 1 else ():
                own = numbers.get(base.at_home) if isinstance(base, Tensor) else None
                beside.update([base.at_home] if own and abs(number) == abs(own**power) else [])
    return {
        name
        for name, e in spelling.multiples.items()
        if (part := _number_apart(e)[1]) and beside[part] == met[part]
    }


def _outside_of_conditions(e: Basic) -> Iterator[Basic]:
    """The nodes of ``e``; the number before what is compared with 0 is lost."""
    yield e
    for arg in () if isinstance(e, Relational) else e.args:
        yield from _outside_of_conditions(arg)


def _occurrences(e: Expr) -> list[Tensor]:
    return [e] if isinstance(e, Tensor) else [t for arg in e.args for t in _occurrences(arg)]


def _is_of_exponentials(e: Expr) -> bool:
    """Whether ``e`` is an exponential entry by entry, or a sum of such and of constants: it is safe
    only in what stands around it.
    """
    if e.has(ArrayNode) or e.has(Piecewise):
        return False
    terms = Add.make_args(e)
    varying = [term for term in terms if not is_constant(term)]
    return all(isinstance(_number_apart(term)[1], exp) for term in varying) and e.has(exp)


def _written_out(e: Expr, written: dict[str, Expr]) -> Expr:
    met = {t: written[t.name] for t in tensors_in(e) if t.name in written}
    axes = {t: dict(zip(t.home, t.axes, strict=True)) for t in met}
    return written_in(e, {t: renamed(value, axes[t]) for t, value in met.items()})


def _number_apart(e: Expr) -> tuple[Expr, Expr]:
    """``e`` as a number times what has none before it."""
    if isinstance(e, Add):
        return e.primitive()
    numbers = [f for f in Mul.make_args(e) if f.is_number]
    return Mul(*numbers), Mul(*(f for f in Mul.make_args(e) if f not in numbers))


def is_multiple(e: Expr) -> bool:
    """Whether ``e`` is a tensor, or a number times one."""
    return isinstance(_number_apart(e)[1], Tensor)


def _part_of(statement: Statement, value: Expr, taken: Collection[str]) -> Statement:
    """``statement`` without the number before it, under a name of its own."""
    name, count = f"{statement.name}_part", 2
    while name in taken or f"d{name}" in taken:
        name, count = f"{statement.name}_part_{count}", count + 1
    tensor = Tensor(name, statement.tensor.axes, role="statement", **known_signs(value))
    return replace(statement, tensor=tensor, expression=value)


def _in_base_e(node: Expr) -> Expr | None:
    if not isinstance(node, Pow) or node.exp.is_number or not node.base.is_number:
        return None
    return exp(node.exp * _logarithm(node.base)) if node.base.is_positive else None


def _logarithm(number: Expr) -> Expr:
    """log(8) = 3*log(2), log(1/36) = -2*log(6): that of a power is a multiple of one."""
    if not isinstance(number, Rational):
        return log(number)
    primes = number.factors(limit=LARGEST_PRIME)
    times = gcd(*primes.values()) * (1 if number > 1 else -1)
    return times * log(
        Mul(*(Integer(prime) ** (power // times) for prime, power in primes.items()))
    )


def _share(node: Expr) -> Expr | None:
    if not isinstance(node, Mul) or not node.has(exp) or node.has(Reduction):
        return None
    return share_of_whole(node)


def _tangent(node: Expr) -> Expr | None:
    if not isinstance(node, Mul) or not node.has(exp) or node.has(Reduction):
        return None
    for whole in node.args:
        if not (isinstance(whole, Pow) and whole.exp == -1 and is_positive(whole.base)):
            continue
        for difference in (f for f in node.args if isinstance(f, Add)):
            parts = _parts_of(whole.base, difference)
            if parts is not None:
                a, b = parts
                rest = Mul(*(f for f in node.args if f not in (whole, difference)))
                return rest * tanh(expand((split_log(a) - split_log(b)) / 2))
    return None


def _parts_of(whole: Expr, difference: Expr) -> tuple[Expr, Expr] | None:
    """``a`` and ``b``, both positive, whose sum and whose difference the two are; None where they
    are no simpler than these.
    """
    a, b = (factor(expand((whole + side * difference) / 2)) for side in (1, -1))
    simple = a.count_ops() + b.count_ops() <= whole.count_ops()
    positive = is_positive(a) and is_positive(b)
    return (a, b) if simple and positive and (a.has(exp) or b.has(exp)) else None


equations: tuple[Equation, ...] = (
    Equation("a**u = exp(u*log(a))", "a is a positive number and u varies", _in_base_e),
    Equation(
        "exp(k*u)/(a*exp(u) + b)**k = 1/(a + b*exp(-u))**k",
        "the divisor is a sum of positive terms",
        _share,
    ),
    Equation(
        "(a - b)/(a + b) = tanh((log(a) - log(b))/2)",
        "a and b are positive and one of them holds an exponential",
        _tangent,
    ),
)
