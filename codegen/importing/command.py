"""``gradform import``: write a forward from torch code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from derive.running.command import DONE, add_force, guarded
from derive.running.parser import Parser
from derive.running.progress import told
from derive.running.writing import current, refuse, write_all

REMEDY = "name another folder with --out"
EXAMPLES = """\
  gradform import my_loss.py:focal_loss --axes "x: N C, target: N C"
  gradform import train.py:net --axes "x: B T C" --sizes "B: 2, T: 8" --out forwards
  gradform import my_loss.py:focal_loss --axes "x: N C, target: N C" --emit
"""
STATUS = "0 written; 1 unproved (--emit); 2 not understood, or not expressible in the notation"
SAID_OF_AXES = """\
axes: a name for each dimension, the same name for the same size; an integer is a fixed size, an
expression a size made of others: "x: B 2*E, w: E G*P" (+ - * and an exact //, no spaces). They
may be followed by int (labels), bool (a mask) or given (no gradient). Parameters of a module need
none.
"""

AXES = "--axes"
Emit = Callable[[Sequence[str]], int]


def parser_of_torch(program: str, said: str, examples: str, status: str) -> Parser:
    """The arguments common to commands on torch code: axes, and example sizes."""
    parser = Parser(program, f"{said} Its file is executed.", f"{examples}{SAID_OF_AXES}", status)
    parser.add_argument(AXES, required=True, help='the axes of its tensors: "x: N C, labels: N"')
    parser.add_argument(
        "--sizes", default="", help='sizes of an example, if not all sizes work: "N: 8, C: 12"'
    )
    parser.add_argument(
        "--with",
        default="",
        dest="options",
        metavar="VALUES",
        help='values of non-tensor arguments: "temperature=0.07, reduction=mean"',
    )
    return parser


def import_parser(program: str) -> Parser:
    """The parser of ``import``."""
    parser = parser_of_torch(program, import_command.__doc__, EXAMPLES, STATUS)
    parser.add_argument("name", metavar="FILE.py:function", help="a function, or an nn.Module")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="the output folder (default: the current one)"
    )
    parser.add_argument(
        "--emit", action="store_true", help="also derive, prove and write the module"
    )
    add_force(parser)
    return parser


def import_command(arguments: Sequence[str], program: str, emit: Emit) -> int:
    """Import a function or module of torch as a forward in the notation, in a file of your own."""
    options = import_parser(program).parse_args(arguments)
    written: list[Path] = []
    status = guarded(lambda: _import(options, written))
    if status or not options.emit:
        return status
    where = [] if options.out is None else ["--out", str(options.out)]
    return emit([*map(str, written), *where, *["--force"] * options.force])


def _import(options: argparse.Namespace, written: list[Path]) -> int:
    from codegen.importing.driver import imported  # importing torch.export takes a second
    from derive.language.notation.library import files_read

    with told() as tell:
        tell(f"{options.name}: tracing")
        found = imported(options.name, options.axes, options.sizes, options.options)
    path = (options.out or Path()) / found.file
    if current(path) != found.text:
        refuse([path], REMEDY, files_read(), options.force)
    write_all({path: found.text}, REMEDY, files_read(), options.force)
    written.append(path)
    body = found.text[found.text.index("class ") :].rstrip("\n")
    agreement = found.agreement
    needs = f"for sizes with {', '.join(found.needs)}\n" if found.needs else ""
    sys.stdout.write(
        f"{body}\n\ncompared with {found.subject.name} for {agreement.at}: "
        f"values within {agreement.values:.1e}, gradients within {agreement.gradients:.1e}\n"
        f"{needs}"
        f"{''.join(f'{note}{chr(10)}' for note in found.notes)}written to {path}\n"
    )
    return DONE
