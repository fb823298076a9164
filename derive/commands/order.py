"""The option ``--order``: of the gradients themselves, or of their derivatives."""

from __future__ import annotations

import argparse

from derive.gradient.orders import FIRST
from derive.language.errors import QuestionError

WORDS = ("the gradients (1)", "second derivatives: tangent, double backward (2)", "third ones (3)")


def add_order(
    parser: argparse.ArgumentParser, what: str, most: int, usual: int = FIRST, fills: bool = True
) -> None:
    """``what`` says what is asked for, as its help begins; ``most`` is the highest order. Where it
    is not given it is the ``usual`` one, or None where the parser ``fills`` nothing in.
    """
    *others, last = WORDS[:most]
    parser.add_argument(
        "--order",
        default=str(usual) if fills else None,
        metavar="K",
        help=f"{what} {', '.join(others)} or {last} ({usual})",
    )


def order_of(options: argparse.Namespace, most: int) -> int:
    """The order asked for. Raises `QuestionError` for an unsupported one."""
    orders = range(FIRST, most + 1)
    for order in orders:
        if options.order.strip() == str(order):
            return order
    *others, last = map(str, orders)
    raise QuestionError(
        f"--order {options.order}: there are orders {', '.join(others)} and {last}",
        "higher derivatives are taken by autograd, over the generated lines",
    )
