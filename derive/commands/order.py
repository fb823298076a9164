"""The option ``--order``: of the gradients themselves, or of their derivatives."""

from __future__ import annotations

import argparse

from derive.language.errors import QuestionError

FIRST, SECOND = 1, 2  # what --order takes


def add_order(parser: argparse.ArgumentParser, what: str) -> None:
    """``what`` says what is asked for, as its help begins."""
    parser.add_argument(
        "--order",
        default=str(FIRST),
        metavar="K",
        help=f"{what} of the gradients (1) or of second derivatives: tangent, double backward (2)",
    )


def order_of(options: argparse.Namespace) -> int:
    """Raises `QuestionError` for orders that there are not."""
    for order in (FIRST, SECOND):
        if options.order.strip() == str(order):
            return order
    raise QuestionError(
        f"--order {options.order}: there are orders 1 and 2",
        "higher derivatives are taken by autograd, over the generated lines of the second",
    )
