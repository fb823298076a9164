"""The command ``certificate``: what it takes. What it does is imported when it does it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from derive.running.command import add_force, add_names, guarded
from derive.running.parser import Parser

FOLDER = Path("certificates")
SECONDS = 120.0  # of Coq, for one certificate
EXAMPLES = """\
  gradform certificate linear
  gradform certificate my_norm.py --out proofs
  gradform certificate --check
"""


def certificate_parser(program: str) -> Parser:
    """The parser of ``certificate``."""
    parser = Parser(program, certificate_command.__doc__, EXAMPLES)
    add_names(parser)
    parser.add_argument(
        "--out",
        type=Path,
        default=FOLDER,
        metavar="DIR",
        help=f"the folder to write to ({FOLDER})",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="say whether the files are what would be written; writes nothing, runs no Coq",
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=SECONDS,
        metavar="SECONDS",
        help=f"seconds of the processor for Coq on each certificate ({SECONDS:g})",
    )
    add_force(parser)
    return parser


def certificate_command(
    arguments: Sequence[str] | None = None, program: str = "python -m derive certificate"
) -> int:
    """Write a proof of the gradients that Coq checks, and check it where Coq is installed."""
    options = certificate_parser(program).parse_args(arguments)
    return guarded(lambda: _certificate(options))


def _certificate(options: argparse.Namespace) -> int:
    from derive.commands.certifying import certify

    return certify(options)
