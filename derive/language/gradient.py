"""Gradients of a statement inside a forward, as called in a class body."""

from __future__ import annotations

from sympy import Expr

from derive.language.array_node import expression_of
from derive.language.errors import NotationError
from derive.language.pending import Pending
from derive.language.symbols import Tensor
from derive.language.words import word

WRITTEN = "g = Gradient(u, x)"
BY = ("input", "given", "scalar", "statement")
_numbers: dict[tuple[Expr, Tensor], int] = {}  # one for each that was asked for


@word("Gradient(u, x)", axes="gradient")
def Gradient(*operands: Expr | float) -> Expr:
    """``Gradient(u, x)``: the gradient by ``x`` of the sum of all entries of ``u``, along the axes
    of ``x``.

    Source: ``torch.autograd.grad(u.sum(), x, create_graph=True)``. ``x`` is an input, a `Scalar` or
    a statement that ``u`` is computed from.
    """
    if len(operands) != 2:
        raise NotationError(
            f"Gradient({', '.join(map(str, operands))}): it takes what is differentiated, and the "
            "tensor that it is differentiated by",
            f"write {WRITTEN}",
        )
    return PendingGradient(expression_of(operands[0], "Gradient"), _checked(*operands))


class PendingGradient(Pending):
    """The gradient of ``of`` by ``by``, before its adjoints are stated."""

    __slots__ = ("by", "of")

    def __new__(cls, of: Expr, by: Tensor):
        number = _numbers.setdefault((of, by), len(_numbers))
        self = super().__new__(cls, f"Gradient {number}", by.axes, role="call")
        self.of, self.by = of, by
        return self

    @property
    def written(self) -> str:
        return f"Gradient({self.of}, {self.by})"

    def _sympystr(self, printer):
        return self.written

    @property
    def own_name(self) -> str:
        of = self.of.own_name if isinstance(self.of, Pending) else str(self.of)
        return f"{of}_{self.by}" if of.isidentifier() else f"gradient_{self.by}"

    @property
    def arguments(self) -> tuple[Expr, ...]:
        return self.of, self.by


def _checked(of, by) -> Tensor:
    """The tensor ``by`` if one can differentiate by it; raises `NotationError`."""
    if isinstance(by, Tensor) and by.role in BY and by.axes == by.home:
        return by
    why = "is not a tensor"
    remedy = (
        "differentiate by the whole tensor, and take an entry of the gradient: "
        "Sum(OneHot(0, D) * Gradient(u, x), D)"
    )
    if isinstance(by, Pending):
        why, remedy = "has no name yet", "give it a line of its own, and what is computed from it"
    elif isinstance(by, Tensor) and by.axes != by.home:
        why = "is a tensor along other axes than its own"
        remedy = f"write Gradient({of}, {by.at_home}): what is renamed in {of} counts too"
    elif isinstance(by, Tensor):
        why, remedy = (
            "is made of labels, which have no gradient",
            "differentiate by a table instead",
        )
    raise NotationError(f"Gradient({of}, {by}): {by} {why}", remedy)
