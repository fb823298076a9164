"""``check``: is this formula the gradient?"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from derive.commands.order import add_order, order_of
from derive.commands.reduction import add_reduction, asked_forward
from derive.gradient.orders import SECOND
from derive.language.errors import QuestionError
from derive.running.command import NOT_UNDERSTOOD, add_limit, add_name, guarded
from derive.running.limits import Stage, limited, seconds_of
from derive.running.parser import Parser
from derive.running.progress import told

if TYPE_CHECKING:
    from derive.claims.checking.verdict import Verdict

KIB = 1024  # bytes

# Options that take a value.
VALUED = ("--of", "--file", "--let", "--limit", "--order", "--reduction")
LARGEST_FILE = 64 * 1024  # bytes; a backward that a person wrote is shorter

EXAMPLES = """\
  gradform check NAME --of x "gain*(dy - dy.mean(0))"
  gradform check my_file.py:MyForward --file backward.py --let raw=normed --let g=gain
  cat backward.py | gradform check NAME --json -
  gradform check NAME --order 2 "y*(v - Sum(v*y, C))"
a torch.autograd.Function, whose file is run: gradform check FILE.py:MyFunction --axes AXES
"""
STATUS = """\
0 right; 1 wrong, neither proved nor refuted, or without a value on a part of the data
("right where x > 0"); 2 not understood, which --json answers too, with the outcome "not
understood" and the problem"""


def check_parser(program: str) -> Parser:
    """The parser of ``check``."""
    parser = Parser(program, check_command.__doc__, EXAMPLES, STATUS)
    add_name(parser)
    parser.add_argument(
        "formula",
        nargs="?",
        metavar="FORMULA",
        help="an expression, in torch or in the project's notation; - reads standard input",
    )
    parser.add_argument("--of", metavar="INPUT", help="the input whose gradient it is (the first)")
    parser.add_argument(
        "--file",
        type=Path,
        metavar="FILE",
        help="read the formula from a file, or from -",
    )
    parser.add_argument(
        "--let",
        action="append",
        default=[],
        metavar="YOURS=OURS",
        help="your name, and the forward's name for it; may be repeated",
    )
    add_order(parser, "a formula for", SECOND)
    add_reduction(parser)
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    add_limit(parser, "to decide, in every shape that is tried together")
    return parser


def check_command(
    arguments: Sequence[str] | None = None, program: str = "python -m derive check"
) -> int:
    """Prove that a formula is the gradient, or show where it is wrong."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = check_parser(program).parse_intermixed_args(_with_formula_last(arguments))
    return guarded(lambda: _check(options))


def _with_formula_last(arguments: Sequence[str]) -> list[str]:
    """Move a formula that begins with a minus sign behind the options, so that it is not taken for
    one.
    """
    arguments = list(arguments)
    for i, argument in enumerate(arguments):
        formula = argument.startswith("-") and not argument.startswith("--")
        if arguments[i - 1 : i] and arguments[i - 1] in VALUED:
            continue
        if formula and argument not in ("-", "-h"):
            rest = arguments[:i] + arguments[i + 1 :]
            return arguments if "--" in arguments else [*rest, "--", argument]
    return arguments


def _check(options: argparse.Namespace) -> int:
    from derive.gradient.orders.check import check

    try:
        limit = seconds_of(options.limit)
        order = order_of(options, SECOND)
        text, source = _text(options)
        with told() as tell, limited(limit):
            verdict = check(
                asked_forward(options) if options.reduction else options.name,
                text,
                options.of,
                _names(options.let),
                source,
                lambda what: tell(f"{options.name}: {what}"),
                limit,
                order,
            )
            answer = _answer(verdict, options.json)
    except QuestionError as error:
        if options.json:
            sys.stdout.write(json.dumps(_refused(options.name, error), indent=2) + "\n")
        raise
    sys.stdout.write(f"{answer}\n")
    return verdict.status


def _answer(verdict: Verdict, as_json: bool) -> str:
    """The verdict as printed, with explanations as far as time allows."""
    with Stage():
        return json.dumps(verdict.as_json(), indent=2) if as_json else str(verdict)
    return _answer(verdict.unexplained, as_json)


def _refused(name: str, error: QuestionError) -> dict:
    """Report a text that was not understood as data; as text it goes to standard error."""
    return {
        "forward": name,
        "outcome": "not understood",
        "status": NOT_UNDERSTOOD,
        "problem": error.problem,
        "remedy": error.remedy,
        "source": error.place and error.place.file,
        "line": error.place and error.place.line,
        "message": str(error),
    }


def _text(options: argparse.Namespace) -> tuple[str, str]:
    """The text to check and its source."""
    if (options.file is None) == (options.formula is None):
        raise QuestionError(
            "there is no formula" if options.file is None else "there are two formulas",
            "give one as an argument, with --file FILE, or as - for standard input",
        )
    if "-" in (options.formula, str(options.file)):
        return _decoded(_standard_input(), "standard input"), "standard input"
    if options.file is not None:
        try:
            with options.file.open("rb") as stream:
                return _decoded(stream.read(LARGEST_FILE + 1), str(options.file)), str(options.file)
        except OSError as error:
            raise QuestionError(
                f"{options.file} cannot be read: {error.strerror}", "name a text file"
            ) from None
    if options.formula.endswith(".py") and Path(options.formula).is_file():
        raise QuestionError(
            f"{options.formula} is a file, not a formula", f"read it with --file {options.formula}"
        )
    return options.formula, "formula"


def _standard_input() -> bytes:
    try:
        if sys.stdin is not None:
            return sys.stdin.buffer.read(LARGEST_FILE + 1)
        why = "it is closed"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is closed"
    raise QuestionError(
        f"standard input cannot be read: {why}", "write the formula as an argument, or --file FILE"
    )


def _decoded(content: bytes, where: str) -> str:
    if len(content) > LARGEST_FILE:
        raise QuestionError(
            f"{where} is longer than {LARGEST_FILE // KIB} KiB", "check one backward at a time"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise QuestionError(f"{where} is not text (UTF-8)", "name a text file") from None


def _names(pairs: Sequence[str]) -> dict[str, str]:
    names = {}
    for pair in pairs:
        yours, equals, ours = pair.partition("=")
        if not equals or not all(name.strip().isidentifier() for name in (yours, ours)):
            raise QuestionError(
                f"--let {pair} is not YOURS=OURS, two names", "write --let raw=normed"
            )
        names[yours.strip()] = ours.strip()
    return names
