"""The atomic chain: one adjoint for every statement, in reverse.

In: a `Definition`. Out: a `Chain`, whose adjoints refer to each other and to the values of the
forward by name.

The driver has no cases for nodes: pointwise derivatives are SymPy's ``diff``, and an array node has
its `adjoint`. Along an axis that a factor lacks it was broadcast, so its gradient is summed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from sympy import Add, Dummy, Expr, Function, Mul, Piecewise, Pow, S, exp, expand_mul, powsimp

from derive.language.choices import almost_everywhere, without_gap
from derive.language.errors import NotationError
from derive.language.formulas.latex import latex_statements
from derive.language.nodes import ArrayNode, MatrixNode, OneHot, renamed, summed
from derive.language.notation.definition import Definition, Statement
from derive.language.symbols import Tensor, axes_of, is_constant, tensors_in
from derive.language.traversal import everywhere, read_otherwise


@dataclass(frozen=True)
class Contribution:
    """The term that one statement adds to the gradient of a tensor it uses, and why.

    ``through_outer`` is the same with the derivative of the statement's outermost function left
    open (`at_outer`): whoever computes it may know that derivative under a name.
    """

    via: str
    expression: Expr
    reason: str
    through_outer: Expr


@dataclass(frozen=True)
class Adjoint:
    """The gradient of the objective with respect to ``of``: the sum of one contribution for each
    use.
    """

    of: Tensor
    tensor: Tensor
    contributions: tuple[Contribution, ...]

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def expression(self) -> Expr:
        return Add(*(c.expression for c in self.contributions))


@dataclass(frozen=True)
class Chain:
    """The adjoints of a forward, from the last statement to the inputs; ``upstreams`` are the
    gradients that arrive, one for each output.
    """

    definition: Definition
    upstreams: tuple[Tensor, ...]
    adjoints: tuple[Adjoint, ...]

    def _repr_latex_(self) -> str:
        return latex_statements((a.tensor, a.expression) for a in self.adjoints)

    @cached_property
    def arriving(self) -> frozenset[str]:
        """The names of the upstream gradients."""
        return frozenset(t.name for t in self.upstreams)

    @cached_property
    def by_name(self) -> Mapping[str, Adjoint]:
        return {adjoint.name: adjoint for adjoint in self.adjoints}


def adjoint_of(tensor: Tensor) -> Tensor:
    """The tensor ``dx`` of ``x``: same axes."""
    return Tensor(f"d{tensor.name}", tensor.home, role="adjoint")


def outer_argument(statement: Statement) -> Expr | None:
    """``u`` where the statement is ``f(u)`` or a power of ``u`` with a fixed exponent, else
    None.
    """
    e = statement.expression
    if isinstance(e, Pow):
        return None if any(t.role != "scalar" for t in tensors_in(e.exp)) else e.base
    if isinstance(e, Function) and not isinstance(e, Piecewise) and len(e.args) == 1:
        return e.args[0]
    return None


def at_outer(tensor: Tensor) -> Tensor:
    """The adjoint of the argument of the function whose value is ``tensor``."""
    return Tensor(f"d{tensor.name}", tensor.home, role="pullback")


def _in_words(reasons: Mapping[str, None]) -> str:
    """The reasons for the form of a gradient, the outermost first; of several only the actions,
    whose causes would seem to contradict each other.
    """
    if len(reasons) < 2:
        return next(iter(reasons), "pointwise")
    actions = dict.fromkeys(re.split(", (?:because|where) ", reason)[0] for reason in reasons)
    return f"{', then '.join(actions)}: the forward in reverse"


def derive_chain(definition: Definition) -> Chain:
    """Differentiate every statement once, except one-hots, which are indices. Raises
    `NotationError` for a node that has no rule, and `AssertionError` where a statement reads an
    output: its gradient would come back from there too.
    """
    read = {t.name for s in definition.statements for t in tensors_in(s.expression)}
    if any(output.name in read for output in definition.outputs):
        raise AssertionError(f"{definition.name}: a statement reads an output")
    received: dict[str, list[Contribution]] = {}
    for statement in reversed(definition.statements):
        for leaf, gradient, through_outer, reasons in _flow(statement, definition):
            home = _way_home(leaf)
            gradient = renamed(in_terms_of_output(gradient, statement), home)
            if gradient != 0:
                reason = _in_words(dict.fromkeys(reasons))
                is_open = outer_argument(statement) is not None
                through_outer = renamed(through_outer, home) if is_open else gradient
                received.setdefault(leaf.name, []).append(
                    Contribution(statement.name, gradient, reason, through_outer)
                )
    outputs = definition.outputs
    stated = [s for s in reversed(definition.statements) if not isinstance(s.expression, OneHot)]
    targets = [s.tensor for s in stated if s.tensor not in outputs]
    targets += definition.differentiable
    return Chain(
        definition,
        tuple(map(adjoint_of, outputs)),
        tuple(Adjoint(t, adjoint_of(t), tuple(received.get(t.name, ()))) for t in targets),
    )


def up_to(chain: Chain, count: int) -> Chain:
    """The chain of the first ``count`` statements alone, without the terms of later ones."""
    definition = chain.definition
    definition = replace(definition, statements=definition.statements[:count], returned=())
    names = {s.name for s in definition.statements}
    adjoints = tuple(
        Adjoint(a.of, a.tensor, tuple(c for c in a.contributions if c.via in names))
        for a in chain.adjoints
        if a.of.role == "input" or a.of.name in names - {definition.output.name}
    )
    return Chain(definition, (adjoint_of(definition.output),), adjoints)


def _flow(
    statement: Statement, definition: Definition
) -> Iterator[tuple[Tensor, Expr, Expr, list[str]]]:
    """The tensors that a statement reads, each with the gradient that it receives, in both forms
    of a `Contribution`.
    """
    axes = set(statement.tensor.axes)

    def flow(e: Expr, upstream: Tensor):
        return _pullback(e, upstream, axes, definition, statement)

    whole = list(flow(statement.expression, adjoint_of(statement.tensor)))
    argument = outer_argument(statement)
    if argument is None or not whole:  # a sign passes nothing on, whatever its argument does
        inner = whole
    else:
        inner = flow(argument, at_outer(statement.tensor))
    for (leaf, gradient, reasons), (_, through_outer, _) in zip(whole, inner, strict=True):
        yield leaf, gradient, through_outer, reasons


def _way_home(leaf: Tensor):
    """Map each renamed axis of a tensor to its own, along which the gradient arrives."""
    return {met: home for home, met in zip(leaf.home, leaf.axes, strict=True) if met != home}


def _pullback(
    e: Expr, upstream: Expr, axes: set, definition: Definition, statement: Statement
) -> Iterator[tuple[Tensor, Expr, list[str]]]:
    """The tensors that ``e``, taken along ``axes``, depends on, each with the gradient that
    reaches it there.
    """
    for leaf in leaves_of(e):
        local = local_derivative(e, leaf)
        if local == 0:
            continue
        extra = definition.in_order(axes - axes_of(leaf))
        gradient = summed(upstream * local, extra, definition.size)
        names = ", ".join(axis.name for axis in extra)
        reasons = [f"summed over {names}, because it was broadcast there"] if extra else []
        if isinstance(leaf, Tensor):
            if leaf.role in ("input", "statement"):
                yield leaf, gradient, reasons
            continue
        if not leaf.reason:
            raise NotationError(
                f"{statement}: no rule for the adjoint of {type(leaf).__name__}",
                "give its class an adjoint and a reason",
                statement.place,
            )
        reasons = [*reasons, leaf.reason.format(axes=", ".join(axis.name for axis in leaf.axes))]
        for operand, inner in leaf.adjoint(gradient):
            inside = set(leaf.around(operand))
            for tensor, reached, more in _pullback(operand, inner, inside, definition, statement):
                yield tensor, reached, reasons + more


def leaves_of(e: Expr) -> list[Expr]:
    """The tensors and the outermost array nodes of ``e``: variables of SymPy's ``diff``."""
    if isinstance(e, (Tensor, ArrayNode)):
        return [e]
    leaves = {leaf: None for arg in e.args for leaf in leaves_of(arg)}
    return sorted(leaves, key=lambda leaf: leaf.sort_key())


@lru_cache(maxsize=4096)
def local_derivative(e: Expr, leaf: Expr) -> Expr:
    if e == leaf:
        return S.One
    if isinstance(leaf, Tensor) and leaf.role in ("label", "kept", "scalar", "given"):
        return S.Zero
    variables = {other: Dummy(f"v{i}", **_signs(other)) for i, other in enumerate(leaves_of(e))}
    derivative = almost_everywhere(e.xreplace(variables).diff(variables[leaf]))
    if any(not power.exp.is_number for power in derivative.atoms(Pow)):
        derivative = powsimp(derivative, combine="exp")  # n*x**(n - 1): x may be zero in n*x**n/x
    derivative = derivative.replace(lambda node: isinstance(node, Piecewise), without_gap)
    return derivative.xreplace({variable: other for other, variable in variables.items()})


def _signs(e: Expr) -> dict[str, bool]:
    return {"real": True, **({"positive": True} if e.is_positive else {})}


def _product_as_output(node: Expr, statement: Statement) -> Expr | None:
    """``x/z**2`` as ``y/z`` for ``y = x/z``: the square of a divisor overflows before it does; and
    ``u*exp(x)`` as ``y`` for that, which has it as a factor of its derivative.
    """
    if not isinstance(node, Mul):
        return None
    held, whole = node.as_powers_dict(), statement.expression.as_powers_dict()
    data = {b: power for b, power in whole.items() if not is_constant(b**power)}
    divides = any(power.is_negative for power in data.values())
    comes_back = divides or any(isinstance(f, exp) for f in statement.expression.args)
    if not comes_back or any(
        not (held[base] / power - 1).is_nonnegative for base, power in data.items()
    ):
        return None
    rest = (base ** (power - whole.get(base, 0)) for base, power in held.items())
    return statement.tensor * Mul(*rest, *(b**-p for b, p in whole.items() if b not in held))


def in_terms_of_output(derivative: Expr, statement: Statement) -> Expr:
    """``derivative`` written with the value that the statement computed, where that is possible.

    1 - h**2 for h = tanh(u), counts for exp(norm_logits), inv_std**3 for (var + eps)**(-3/2), y/z
    for x/z**2 where y = x/z, and s - s**2 for s = 1/(1 + exp(-x)): where the base of a power is
    a function and a constant, the function is eliminated too.
    """
    e, output = statement.expression, statement.tensor
    if isinstance(e, MatrixNode):
        own = {e: output}.get
        return everywhere(
            derivative, lambda n: read_otherwise(n, own) if isinstance(n, MatrixNode) else None
        )
    if derivative == 0 or not tensors_in(e) or isinstance(e, (Tensor, ArrayNode)):
        return derivative
    derivative = derivative.xreplace({e: output})
    if isinstance(e, Mul):
        return everywhere(derivative, lambda node: _product_as_output(node, statement))
    if not (isinstance(e, Pow) and e.exp.is_Rational):
        return derivative
    base, power = e.args

    def as_output(node):
        ratio = node.exp / power
        return output**ratio if ratio.is_Integer or base.is_nonnegative else node

    derivative = derivative.replace(lambda n: isinstance(n, Pow) and n.base == base, as_output)
    if not (1 / power).is_Integer:
        return derivative
    for function in Add.make_args(base):
        rest = base - function
        if isinstance(function, Function) and is_constant(rest) and derivative.has(function):
            derivative = expand_mul(derivative.xreplace({function: output ** (1 / power) - rest}))
    return derivative
