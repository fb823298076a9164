"""``gradform trace``: its options."""

from __future__ import annotations

from collections.abc import Sequence

from derive.running.command import add_name, guarded
from derive.running.parser import Parser


def trace_parser(program: str) -> Parser:
    """The parser of ``trace``."""
    parser = Parser(program, trace_command.__doc__)
    add_name(parser)
    return parser


def trace_command(arguments: Sequence[str], program: str) -> int:
    """Show the way of one forward through gradform itself, stage by stage, for contributors."""
    name = trace_parser(program).parse_args(arguments).name
    return guarded(lambda: _trace(name))


def _trace(name: str) -> int:
    from codegen.driver.trace import trace
    from derive.language.notation.library import forward_from

    return trace(forward_from(name))
