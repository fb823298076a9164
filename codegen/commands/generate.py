"""``gradform [NAME or FILE ...]`` and ``gradform report``: their options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from codegen.targets import TORCH
from derive.commands.reduction import add_reduction
from derive.running.command import add_force, add_limit, add_names, guarded
from derive.running.parser import OneOf, OnlyOne, Parser

TARGETS = (TORCH, "cpp", "triton")
OUT = "generated"
EXAMPLES = """\
  gradform my_norm.py
  gradform linear huber --out my_project/gradients
  gradform my_norm.py:MyNorm --target cpp
"""


def generate_parser(program: str) -> Parser:
    """The parser of ``generate``."""
    parser = Parser(program, generate_command.__doc__, EXAMPLES)
    add_generating(parser)
    for way, words in {
        "--shard": "write the module for the ranks of a group over which this axis is split; "
        "repeat it for a second axis, over a second group",
        "--ring": "with --shard: split this axis over the same ranks, which pass their parts on",
        "--chunk": "write the module that computes in chunks of this axis, one at a time; with "
        "--shard, of what each rank has",
    }.items():
        parser.add_argument(way, action="append", default=[], metavar="AXIS", help=words)
    parser.add_argument(
        "--chain",
        action="store_true",
        help="write every statement and its gradient instead, line by line, in the folder chain",
    )
    add_reduction(parser)
    _add_check(parser)
    return parser


def generate_command(arguments: Sequence[str] | None, program: str) -> int:
    """Derive and prove backward passes, compare them with autograd, write them as torch code."""
    options = generate_parser(program).parse_args(arguments)
    return guarded(lambda: _generate(options))


def _generate(options: argparse.Namespace) -> int:
    from codegen.commands.generating import generate

    return generate(options)


def report_parser(program: str) -> Parser:
    """The parser of ``report``."""
    parser = Parser(program, report_command.__doc__)
    _add_common(parser)
    _add_check(parser)
    return parser


def report_command(arguments: Sequence[str] | None, program: str) -> int:
    """Write REPORT.md: closed forms, costs, what was proved, errors, for every forward."""
    options = report_parser(program).parse_args(arguments)
    return guarded(lambda: _report(options))


def _report(options: argparse.Namespace) -> int:
    from codegen.commands.generating import write_report

    return write_report(options)


def add_generating(parser: Parser) -> None:
    """Add the options of all commands that write modules: which forwards, where, and how."""
    _add_common(parser)
    parser.add_argument(
        "--target",
        action=OnlyOne,
        type=OneOf(TARGETS),
        default=TORCH,
        metavar="LANGUAGE",
        help=f"{TORCH}: torch code alone; cpp, triton: kernels for CPUs or GPUs as well ({TORCH})",
    )


def _add_common(parser: Parser) -> None:
    add_names(parser)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(OUT),
        metavar="DIR",
        help=f"the folder to write to ({OUT})",
    )
    parser.add_argument(
        "--no-cache", action="store_true", help="derive everything again, and cache nothing"
    )
    add_limit(parser, "to derive and prove each forward")
    add_force(parser)


def _add_check(parser: Parser) -> None:
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 where a file is out of date"
    )
