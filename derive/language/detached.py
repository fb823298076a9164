"""A value that blocks the gradient: torch's ``detach``, JAX's ``stop_gradient``."""

from __future__ import annotations

from sympy import Expr, Function, Integer

from derive.language.array_node import expression_of
from derive.language.errors import NotationError
from derive.language.symbols import tensors_in

CONSTANT = ("kept", "label")
WITHOUT_GRADIENT = ("given", "scalar", *CONSTANT)


class Detach(Function):
    """``Detach(e)``: the value of ``e``, whose derivative is 0.

    Source: ``torch.Tensor.detach``. It is a function with no known property but its sign, so
    that no identity looks through it: the derivative of ``x - Detach(x)`` is 1, and whatever is
    proved holds for every value in its place.
    """

    nargs = 1

    def __new__(cls, *operands: Expr | float, **options: object) -> Expr:
        if len(operands) != 1:
            raise NotationError(
                f"Detach({', '.join(map(str, operands))}): it takes one expression",
                "write Detach(x)",
            )
        return super().__new__(cls, expression_of(operands[0], "Detach"), **options)

    @classmethod
    def eval(cls, operand: Expr) -> Expr | None:
        tensors = tensors_in(operand)
        plain = bool(tensors) and all(t.role in CONSTANT for t in tensors)
        return operand if plain or operand.is_number or isinstance(operand, cls) else None

    def fdiff(self, argindex: int = 1) -> Expr:
        return Integer(0)

    def _eval_is_real(self):
        return self.args[0].is_real

    def _eval_is_integer(self):
        return self.args[0].is_integer

    def _eval_is_positive(self):
        return self.args[0].is_positive

    def _eval_is_nonnegative(self):
        return self.args[0].is_nonnegative

    def _eval_is_finite(self):
        return self.args[0].is_finite


def attached(e: Expr) -> Expr:
    """``e`` with every `Detach` replaced by its operand."""
    if not e.has(Detach):
        return e
    return e.replace(lambda node: isinstance(node, Detach), lambda node: node.args[0])


def only_where_needed(e: Expr) -> Expr:
    """``e`` without `Detach` around operands that have no gradient anyway: in a class body they may
    have one, as a `Given` of an inner forward may.
    """

    def is_idle(node: Expr) -> bool:
        is_detached = isinstance(node, Detach)
        return is_detached and all(t.role in WITHOUT_GRADIENT for t in tensors_in(node))

    return e.replace(is_idle, lambda node: node.args[0]) if e.has(Detach) else e
