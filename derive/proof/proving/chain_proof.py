"""The proof of the atomic chain: every step of it is the derivative of one statement.

In: a `Chain`. Out: what is `ShownClaims` of each of its adjoints, or an `UnprovedError` that names
the step.

What is proved. A tensor ``t`` receives ``dt``, the sum over the statements ``s`` that read it of
the derivative of ``Sum(ds * s)`` by ``t``, with everything else that ``s`` reads held fixed: that
is the chain rule. So each contribution is proved by itself, on one statement whose operands are
independent (`Derivative`); that of a statement that reads ``t`` without contributing is proved to
be 0. Both forms of a contribution are: with the derivative of the outermost function written out,
and with it left open, as the code has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sympy import Add, Dummy, Expr, Pow

from derive.gradient.chain.chain import Adjoint, Chain, adjoint_of, outer_argument
from derive.language.errors import UnprovedError
from derive.language.nodes import along
from derive.language.notation.definition import Statement
from derive.language.symbols import tensors_in
from derive.proof.proving.claim import Batch, Derivative, ShownClaims, needed_on


def shown_adjoint(chain: Chain, adjoint: Adjoint, batches: Sequence[Batch]) -> ShownClaims:
    """Prove one adjoint of ``chain`` on these batches.

    Raises `UnprovedError` with the first step that is not the derivative of its statement.
    """
    claims = []
    for statement, claim in _claims(chain, adjoint):
        needed = needed_on(claim, batches)
        if needed is None:
            raise UnprovedError(_failure(chain, statement, claim))
        claims.append((claim, needed))
    return ShownClaims(adjoint.tensor, claims)


def _claims(chain: Chain, adjoint: Adjoint) -> Iterator[tuple[Statement, Derivative]]:
    """Claims of the adjoint about each statement that reads its tensor or that it names, each form
    once.
    """
    definition = chain.definition
    for statement in definition.statements:
        own = [c for c in adjoint.contributions if c.via == statement.name]
        reads = any(t.name == adjoint.of.name for t in tensors_in(statement.expression))
        if not own and not reads:
            continue
        forms = (
            Add(*(c.expression for c in own)),
            _with_outer_derivative(Add(*(c.through_outer for c in own)), statement),
        )
        for expression in dict.fromkeys(forms):
            yield statement, Derivative(definition, adjoint.of, expression, statement.tensor)


def _with_outer_derivative(e: Expr, statement: Statement) -> Expr:
    """``e`` with what arrives at the argument of the statement's outermost function written out:
    the gradient of its value, times SymPy's derivative of that function.
    """
    open_ones = [t for t in tensors_in(e) if t.role == "pullback"]
    if not open_ones:
        return e
    function, argument = statement.expression, outer_argument(statement)
    place = Dummy(real=True, positive=argument.is_positive)
    exponent = function.exp if isinstance(function, Pow) else None
    outer = function.func(place) if exponent is None else place**exponent
    slope = outer.diff(place).xreplace({place: argument})
    arrives = adjoint_of(statement.tensor) * slope
    return e.xreplace({t: along(arrives, t) for t in open_ones})


def _failure(chain: Chain, statement: Statement, claim: Derivative) -> str:
    return (
        f"{chain.definition.name}: d{claim.target} is unproved in the step through "
        f"{statement.name}. Entry by entry, the derivative of {statement} with respect to "
        f"{claim.target} was not shown to be {claim.expression}; nothing was emitted"
    )
