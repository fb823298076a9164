"""The option ``--reduction``: how the losses are reduced, where the caller chooses."""

from __future__ import annotations

import argparse

from derive.notation.forward import Forward, reduced_forward
from derive.notation.library import forward_from


def add_reduction(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reduction",
        metavar="WORD",
        help='of a loss that has one: none, sum or what else it names, such as "mean"',
    )


def asked_forward(options: argparse.Namespace) -> type[Forward]:
    """The forward that was named, with that reduction. Raises `QuestionError`."""
    return reduced_forward(forward_from(options.name), options.reduction)
