"""``gradform check FILE.py:MyFunction --axes ...``: is a backward the gradient of its forward?"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from codegen.importing.command import AXES, parser_of_torch
from derive.language.errors import QuestionError
from derive.running.command import NOT_UNDERSTOOD, add_limit, guarded
from derive.running.limits import Stage, limited, seconds_of
from derive.running.parser import Parser
from derive.running.progress import told

EXAMPLES = """\
  gradform check my_ops.py:MyFunction --axes "x: N C, weight: C, bias: C"
  gradform check my_ops.py:Fused --axes "x: N C" --like reference
"""
STATUS = "0 right; 1 wrong, undecided or narrower; 2 not understood"


def asks_for_function(arguments: Sequence[str]) -> bool:
    """True if the arguments ask for a check of a Function, not of a formula: axes are given."""
    return any(a == AXES or a.startswith(f"{AXES}=") for a in arguments)


def check_function_parser(program: str) -> Parser:
    """The parser of ``check`` with axes."""
    parser = parser_of_torch(program, check_function_command.__doc__, EXAMPLES, STATUS)
    parser.add_argument("name", metavar="FILE.py:MyFunction", help="a torch.autograd.Function")
    parser.add_argument(
        "--like",
        default="",
        metavar="FUNCTION",
        help="a torch function in the same file that computes the same: compares gradients "
        "numerically, for what cannot be traced",
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    add_limit(parser, "to check each gradient")
    return parser


def check_function_command(arguments: Sequence[str], program: str) -> int:
    """Whether the backward of a torch.autograd.Function is the gradient of its forward."""
    options = check_function_parser(program).parse_args(arguments)
    return guarded(lambda: _check(options))


def _check(options: argparse.Namespace) -> int:
    from codegen.backwards.checking import check_function  # torch's export takes a second

    limit = seconds_of(options.limit)
    try:
        with told() as tell, limited(limit):
            verdict = check_function(
                options.name,
                options.axes,
                options.sizes,
                limit,
                lambda what: tell(f"{options.name}: {what}"),
                options.like,
                options.options,
            )
            answer = None
            with Stage():
                answer = _answer(verdict, options.json)
            answer = answer or _answer(verdict.unexplained, options.json)
    except QuestionError as error:
        if options.json:
            refused = {"function": options.name, "outcome": "not understood"}
            refused |= {"status": NOT_UNDERSTOOD, "problem": error.problem, "message": str(error)}
            sys.stdout.write(json.dumps(refused, indent=2) + "\n")
        raise
    sys.stdout.write(f"{answer}\n")
    return verdict.status


def _answer(verdict, as_json: bool) -> str:
    return json.dumps(verdict.as_json(), indent=2) if as_json else str(verdict)
