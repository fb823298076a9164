"""``gradform new NAME``: a forward of the gallery, copied to be edited, or a template."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from codegen.files.for_users import text_for_users
from derive.language.errors import QuestionError
from derive.language.names import checked_name, snake_case
from derive.language.nearest import joined_up
from derive.language.notation.gallery import files_that_define, gallery_names
from derive.running.command import DONE, guarded
from derive.running.parser import Parser
from derive.running.writing import refuse, write_all

SHORTEST = 5  # letters of a name that is looked for in another
REMEDY = "choose another name, or another folder with --out"
EXAMPLES = """\
  gradform new huber
  gradform new MyLoss --out forwards
"""
NEXT = {
    "": "derive its backward pass, and write it to generated/",
    "show ": "see how it is derived",
    "watch ": "edit the file, and see what each save changes",
    "diff ": "see what changed since generated/ was written, or in git since HEAD",
}
TEXT = '''\
"""A template: RMS norm, to be replaced by your own mathematics.

`gradform watch {file}` derives the backward pass on every save.
"""

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
    parser.add_argument(
        "name",
        metavar="NAME",
        help="a forward of the gallery, or the name of a class, such as MyNorm",
    )
    parser.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="the folder (the current one)"
    )
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    return parser


def new_command(arguments: Sequence[str], program: str) -> int:
    """Copy a forward of the gallery to edit it, or begin one of your own with a template."""
    options = new_parser(program).parse_args(arguments)
    return guarded(lambda: _new(options))


def _new(options: argparse.Namespace) -> int:
    if copied := files_that_define(options.name):
        path, text = options.out / copied[0].name, text_for_users(copied[0])
        what = f"the gallery's {copied[0].stem}, to be edited"
    else:
        name = _class_name(options.name)
        path = options.out / f"{snake_case(name)}.py"
        text = TEXT.format(name=name, file=path)
        what = "a template, RMS norm, to be replaced by your own mathematics"
    if path.exists() and not path.is_dir() and not options.force:
        raise QuestionError(f"{path} is there already", f"{REMEDY}, or replace it with --force")
    refuse([path], REMEDY, force=options.force)
    write_all({path: text}, REMEDY, force=options.force)
    shown = f"{path}:{options.name}" if len(_CLASSES.findall(text)) > 1 else path
    commands = {f"gradform {verb}{shown if verb else path}": NEXT[verb] for verb in NEXT}
    width = max(map(len, commands))
    sys.stdout.write(f"written to {path}: {what}\n")
    if not copied and (near := _in_gallery(options.name)):
        sys.stdout.write(f"the gallery has {near}: gradform new {near} copies that\n")
    sys.stdout.write("\n")
    for command, about in commands.items():
        sys.stdout.write(f"  {command:{width}}   {about}\n")
    return DONE


_CLASSES = re.compile(r"^class \w+\(Forward\)", re.M)


def _class_name(name: str) -> str:
    """``MyNorm`` for ``my_norm`` or ``MyNorm``. Raises `QuestionError` for no name."""
    try:
        checked_name(name, "a forward")
    except QuestionError as error:
        stem = "".join(letter if letter.isalnum() else "_" for letter in Path(name).stem).strip("_")
        example = stem if stem.isidentifier() else "norm"
        example = _in_gallery(example) or f"My{_joined(example).removeprefix('My')}"
        remedy = f"{error.remedy}; write for instance gradform new {example}"
        raise QuestionError(error.problem, remedy) from None
    found = _joined(name)
    if find_spec(snake_case(found)) is not None and not Path(f"{snake_case(found)}.py").exists():
        raise QuestionError(
            f"{snake_case(found)}.py would hide the Python module {snake_case(found)}",
            f"choose another name: gradform new My{found}",
        )
    return found


def _in_gallery(name: str) -> str | None:
    """The longest function of the gallery whose name is in ``name``, however words are joined."""
    found = [n for n in gallery_names() if len(n) >= SHORTEST and joined_up(n) in joined_up(name)]
    return max(map(snake_case, found), key=len, default=None)


def _joined(name: str) -> str:
    """Words joined by ``_``, capitalized."""
    words = name.split("_")
    capitals = name != name.lower() and len(words) == 1
    return name if capitals else "".join(word[:1].upper() + word[1:] for word in words)
