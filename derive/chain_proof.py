"""The proof of the atomic chain: every step of it is the derivative of one statement.

In: a `Chain`. Out: a `ProvedGradient` for each of its adjoints, or an `UnprovedError` that names
the step.

What is proved. A tensor ``t`` receives ``dt``, the sum over the statements ``s`` that read it of
the derivative of ``Sum(ds * s)`` by ``t``, with everything else that ``s`` reads held fixed: that
is the chain rule. So each contribution is proved by itself, on one statement whose operands are
independent (`Claim`), and a statement that reads ``t`` without contributing is proved to have the
derivative 0. Both forms of a contribution are: with the derivative of the outermost function
written out, and with it left open, as the code has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sympy import Add, Dummy, Expr, Pow

from derive.chain import Adjoint, Chain, adjoint_of, outer_argument
from derive.claim import (
    Batches,
    Claim,
    ProvedGradient,
    holds_for_every_size,
    holds_on,
    named_sizes,
)
from derive.definition import Statement
from derive.errors import UnprovedError
from derive.facts import along
from derive.symbols import tensors_in


def prove_chain(chain: Chain, batches: Batches) -> tuple[ProvedGradient, ...]:
    """Prove every adjoint of ``chain`` on batches of these sizes, and for every size.

    Raises `UnprovedError` with the first step that is not the derivative of its statement.
    """
    return tuple(_proved_adjoint(chain, adjoint, batches) for adjoint in chain.adjoints)


def _proved_adjoint(chain: Chain, adjoint: Adjoint, batches: Batches) -> ProvedGradient:
    every_size = True
    for statement, claim in _claims(chain, adjoint):
        for sizes, test in batches:
            if not holds_on(claim, sizes, test):
                raise UnprovedError(_failure(chain, statement, claim))
        every_size = every_size and holds_for_every_size(claim)
    return ProvedGradient(adjoint.tensor, named_sizes(batches), every_size)


def _claims(chain: Chain, adjoint: Adjoint) -> Iterator[tuple[Statement, Claim]]:
    """What the adjoint says of every statement that reads its tensor or that it names, each form
    of it once.
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
            others = tuple(s.name for s in definition.statements if s.name != statement.name)
            near = (statement.name,)
            yield (
                statement,
                Claim(definition, adjoint.of, expression, (statement.tensor,), near, others[::-1]),
            )


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


def _failure(chain: Chain, statement: Statement, claim: Claim) -> str:
    return (
        f"{chain.definition.name}: d{claim.target} is unproved in the step through "
        f"{statement.name}. On explicit scalars the derivative of {statement} by {claim.target} "
        f"is not {claim.expression}; nothing was emitted"
    )
