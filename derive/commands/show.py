"""The parsers of ``show`` and ``site``; the implementations are imported on demand."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from derive.commands.order import add_order
from derive.commands.reduction import add_reduction
from derive.gradient.orders import THIRD
from derive.running.command import add_force, add_limit, add_name, add_names, guarded
from derive.running.parser import OneOf, Parser

FORMATS = ("text", "markdown", "latex", "html")
BY_ANOTHER = {
    "pdf": "write LaTeX, --format latex --output FILE.tex, and run pdflatex FILE.tex; or write a "
    "page, --format html --output FILE.html, and print it from a browser",
    "tex": "it is --format latex",
    "md": "it is --format markdown",
    "txt": "it is --format text",
}
OUTPUT = "site"
EXAMPLES = """\
  gradform show linear
  gradform show linear --of weight
  gradform show my_norm.py --format html --output my_norm.html
"""


def show_parser(program: str) -> Parser:
    """The parser of ``show``."""
    parser = Parser(program, show_command.__doc__, EXAMPLES)
    add_name(parser)
    parser.add_argument("--of", metavar="INPUT", help="show the gradient of this input alone")
    add_order(parser, "the derivation of", THIRD)
    add_reduction(parser)
    parser.add_argument("--chain", action="store_true", help="stop after the chain rule")
    parser.add_argument(
        "--small-batch",
        type=int,
        default=3,
        metavar="N",
        help="entries of the first axis where a small batch is written out, 1 to 6 (3)",
    )
    parser.add_argument(
        "--format",
        type=OneOf(FORMATS, BY_ANOTHER),
        default=FORMATS[0],
        metavar="FORMAT",
        help=f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]} ({FORMATS[0]})",
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", help="write to this file instead of printing"
    )
    add_limit(parser, "to derive and prove, and as many to find what else there is to show")
    add_force(parser)
    return parser


def show_command(
    arguments: Sequence[str] | None = None,
    program: str = "python -m derive show",
    lines_of: Callable | None = None,
) -> int:
    """Show how the gradients are derived, step by step, from the record that was proved."""
    options = show_parser(program).parse_args(arguments)
    return guarded(lambda: _show(options, lines_of))


def _show(options: argparse.Namespace, lines_of: Callable | None) -> int:
    from derive.commands.showing import show

    return show(options, lines_of or (lambda forward, proved: None))


def site_parser(program: str) -> Parser:
    """The parser of ``site``."""
    parser = Parser(program, site_command.__doc__)
    add_names(parser)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(OUTPUT),
        metavar="DIR",
        help=f"the folder to write to ({OUTPUT})",
    )
    parser.add_argument(
        "--playground",
        default="",
        metavar="ADDRESS",
        help="the address of the playground, to which every page then links",
    )
    parser.add_argument(
        "--lessons",
        default="",
        metavar="ADDRESS",
        help="the address of the lessons, to which the index then links",
    )
    parser.add_argument(
        "--docs", type=Path, metavar="DIR", help="a folder of Markdown files: pages of the site too"
    )
    add_force(parser)
    return parser


def site_command(
    arguments: Sequence[str] | None = None, program: str = "python -m derive site"
) -> int:
    """Write a page for each of the named forwards, or for the whole gallery, and an index."""
    options = site_parser(program).parse_args(arguments)
    return guarded(lambda: _site(options))


def _site(options: argparse.Namespace) -> int:
    from derive.commands.showing import site

    return site(options)
