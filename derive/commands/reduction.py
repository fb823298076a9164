"""The option ``--reduction``: the reduction of a loss."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from derive.language.errors import QuestionError

if TYPE_CHECKING:
    from derive.language.notation.forward import Forward


def add_reduction(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--reduction",
        metavar="WORD",
        help="the reduction of a loss that has one: none, sum, or the one it names, such as mean",
    )


def asked_forward(options: argparse.Namespace) -> type[Forward]:
    """The named forward with the requested reduction. Raises `QuestionError`."""
    from derive.language.notation.forward import reduced_forward
    from derive.language.notation.library import forward_from

    return reduced_forward(forward_from(options.name), options.reduction)


def refuse_reduction(options: argparse.Namespace) -> None:
    """Raise `QuestionError` if a reduction is requested where a module has them all."""
    if options.reduction is not None:
        raise QuestionError(
            f"--reduction {options.reduction}: a module has all reductions, as an argument",
            "leave it out; a module for --shard or --chunk has one",
        )
