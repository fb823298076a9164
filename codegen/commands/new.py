"""``gradform new NAME``: a small forward of the user's own, to be changed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from derive.language.errors import QuestionError
from derive.language.names import checked_name, snake_case
from derive.running.command import DONE, guarded
from derive.running.parser import Parser
from derive.running.writing import refuse, write_all

REMEDY = "choose another name, or another folder with --out"
EXAMPLES = """\
  gradform new MyNorm
  gradform new my_norm --out forwards
"""
NEXT = {
    "": "derive its backward pass, and write it to generated/",
    "show ": "see how it is derived",
    "watch ": "change the file, and see what that changes",
}
TEXT = '''\
"""A forward of your own: change it, and `gradform watch {file}` says what follows."""

from sympy import sqrt

from gradform import Axis, Forward, Input, Scalar, Sum

# Axes have names, and no numbers: N examples of C features. An axis is also its own size.
N, C = Axis("N"), Axis("C")


class {name}(Forward):
    """Every row divided by its root mean square, times a gain."""

    # What it takes: tensors with their axes, in the order of the arguments; then numbers.
    x = Input(N, C)
    gain = Input(C)
    eps = Scalar(1e-5)

    # What it computes, one name for each line. Functions such as exp, log and tanh are SymPy's.
    mean_square = Sum(x**2, C) / C
    rms = sqrt(mean_square + eps)
    y = gain * x / rms  # the last line is the output
'''


def new_parser(program: str) -> Parser:
    """The parser of ``new``."""
    parser = Parser(program, new_command.__doc__, EXAMPLES)
    parser.add_argument("name", metavar="NAME", help="of the class, such as MyNorm")
    parser.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="the folder (the current one)"
    )
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    return parser


def new_command(arguments: Sequence[str], program: str) -> int:
    """Write a small forward of your own, ready to be derived and to be changed."""
    options = new_parser(program).parse_args(arguments)
    return guarded(lambda: _new(options))


def _new(options: argparse.Namespace) -> int:
    name = _class_name(options.name)
    path = options.out / f"{snake_case(name)}.py"
    if path.exists() and not path.is_dir() and not options.force:
        raise QuestionError(f"{path} is there already", f"{REMEDY}, or replace it with --force")
    refuse([path], REMEDY, force=options.force)
    write_all({path: TEXT.format(name=name, file=path)}, REMEDY, force=options.force)
    width = len(f"gradform watch {path}")
    sys.stdout.write(f"written to {path}\n\n")
    for verb, about in NEXT.items():
        sys.stdout.write(f"  {f'gradform {verb}{path}':{width}}   {about}\n")
    return DONE


def _class_name(name: str) -> str:
    """``MyNorm`` for ``my_norm`` or ``MyNorm``. Raises `QuestionError` for no name."""
    try:
        checked_name(name, "a forward")
    except QuestionError as error:
        stem = "".join(letter if letter.isalnum() else "_" for letter in Path(name).stem).strip("_")
        example = stem if stem.isidentifier() else "norm"
        remedy = f"{error.remedy}; write for instance gradform new My{_joined(example)}"
        raise QuestionError(error.problem, remedy) from None
    found = _joined(name)
    if find_spec(snake_case(found)) is not None and not Path(f"{snake_case(found)}.py").exists():
        raise QuestionError(
            f"{snake_case(found)}.py would hide the Python module {snake_case(found)}",
            f"choose another name: gradform new My{found}",
        )
    return found


def _joined(name: str) -> str:
    """Words joined by ``_``, capitalized."""
    words = name.split("_")
    capitals = name != name.lower() and len(words) == 1
    return name if capitals else "".join(word[:1].upper() + word[1:] for word in words)
