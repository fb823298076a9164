"""The option ``--order``: first, second or third derivatives."""

from __future__ import annotations

import argparse

from derive.gradient.orders import FIRST
from derive.language.errors import QuestionError

WORDS = ("the gradients (1)", "second derivatives: tangent, double backward (2)", "third ones (3)")


def add_order(
    parser: argparse.ArgumentParser, what: str, most: int, usual: int = FIRST, fills: bool = True
) -> None:
    """Add ``--order``; ``what`` begins its help text, ``most`` is the highest order. The default is
    ``usual``, or None unless the parser ``fills`` in defaults.
    """
    *others, last = WORDS[:most]
    parser.add_argument(
        "--order",
        default=str(usual) if fills else None,
        metavar="K",
        help=f"{what} {', '.join(others)} or {last} ({usual})",
    )


def order_of(options: argparse.Namespace, most: int) -> int:
    """The requested order. Raises `QuestionError` for an unsupported one."""
    orders = range(FIRST, most + 1)
    for order in orders:
        if options.order.strip() == str(order):
            return order
    *others, last = map(str, orders)
    raise QuestionError(
        f"--order {options.order}: there are orders {', '.join(others)} and {last}",
        "higher derivatives are taken by autograd, over the generated lines",
    )
