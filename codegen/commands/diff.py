"""``gradform diff``: effects of a change of a forward, since a revision of git."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from codegen.commands.comparison import as_json, by_name, changes, described
from codegen.commands.deriving import Deriver, Outcome
from codegen.commands.generate import OUT
from codegen.commands.revision import TREE, Revision
from codegen.targets import TORCH
from derive.language.notation.gallery import file_of
from derive.running.command import DONE, WRONG, add_limit, add_name, guarded
from derive.running.limits import seconds_of
from derive.running.parser import Parser

HEAD = "HEAD"
EXAMPLES = """\
  gradform diff huber
  gradform diff my_norm.py --against main
  gradform diff my_norm.py:MyNorm --against v1.2 --json
"""
STATUS = "0 nothing changed; 1 something did, or is unproved; 2 the command was not understood"


def diff_parser(program: str) -> Parser:
    """The parser of ``diff``."""
    parser = Parser(program, diff_command.__doc__, EXAMPLES, STATUS)
    add_name(parser)
    parser.add_argument(
        "--against",
        default=HEAD,
        metavar="REV",
        help=f"a commit, branch or tag, or REV:PATH where the file had another name ({HEAD})",
    )
    parser.add_argument("--json", action="store_true", help="print the changes as JSON")
    parser.add_argument(
        "--no-cache", action="store_true", help="derive everything again, and cache nothing"
    )
    add_limit(parser, "to derive and prove each forward")
    return parser


def diff_command(arguments: Sequence[str], program: str) -> int:
    """Print what changed in the mathematics of a file since a revision of git.

    Both are derived by the gradform that runs now: the file as it is, and as it was.
    """
    options = diff_parser(program).parse_args(arguments)
    return guarded(lambda: _diff(options))


def _diff(options: argparse.Namespace) -> int:
    seconds_of(options.limit)
    file, wanted = file_of(options.name)
    with TemporaryDirectory(prefix="gradform-") as folder:
        answers = _both(options, file, wanted, Path(folder))
    if status := max(answer.status for answer in answers):
        return status
    before, after = (answer.derivations for answer in answers)
    if options.json:
        found = {"against": options.against, "forwards": as_json(before, after)}
        sys.stdout.write(f"{json.dumps(found, indent=2)}\n")
    else:
        for each in by_name(before, after):
            sys.stdout.write("".join(f"{line}\n" for line in described(*each)))
    return WRONG if any(changes(old, new) for _, old, new in by_name(before, after)) else DONE


def _both(options: argparse.Namespace, file: Path, wanted: str, folder: Path) -> list[Outcome]:
    """The file as it was and as it is, each derived by a process of its own."""
    now = Deriver()
    asked = [now]
    try:
        revision = Revision(file, options.against, folder)
        then = Deriver(revision.folders, {f"{folder.resolve() / TREE}/": revision.named})
        asked = [then, now]
        for deriver, path in ((then, revision.file), (now, file)):
            deriver.ask(_asked(options, f"{path}:{wanted}" if wanted else str(path)), False)
        return [deriver.answer() for deriver in asked]
    finally:
        for deriver in asked:
            deriver.end()


def _asked(options: argparse.Namespace, name: str) -> argparse.Namespace:
    """Options of a request, as `generate` has them."""
    given = {"limit": options.limit, "no_cache": options.no_cache, "target": TORCH}
    fixed = {"out": Path(OUT), "order": None, "force": False}
    return argparse.Namespace(names=[name], **given, **fixed)
