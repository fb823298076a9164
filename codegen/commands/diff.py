"""``gradform diff``: effects of a change of a forward, since a revision of git or since its module
was written.
"""

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
from codegen.commands.revision import TREE, NotInGitError, Revision
from codegen.targets import TORCH
from derive.language.errors import QuestionError
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
        default=None,
        metavar="REV",
        help="a commit, branch or tag, or REV:PATH where the file had another name "
        f"({HEAD}; outside of git the module in {OUT}/)",
    )
    parser.add_argument("--json", action="store_true", help="print the changes as JSON")
    parser.add_argument(
        "--no-cache", action="store_true", help="derive everything again, and cache nothing"
    )
    add_limit(parser, "to derive and prove each forward")
    return parser


def diff_command(arguments: Sequence[str], program: str) -> int:
    """Print what changed in the mathematics of a file since a revision of git.

    Both are derived by the gradform that runs now: the file as it is, and as it was. A file that is
    not in git is compared with the module that was written for it, line by line.
    """
    options = diff_parser(program).parse_args(arguments)
    return guarded(lambda: _diff(options))


def _diff(options: argparse.Namespace) -> int:
    seconds_of(options.limit)
    file, wanted = file_of(options.name)
    try:
        with TemporaryDirectory(prefix="gradform-") as folder:
            answers = _both(options, file, wanted, Path(folder))
    except NotInGitError as error:
        if options.against is not None or options.json:
            raise
        return _since_written(options, error)
    if status := max(answer.status for answer in answers):
        return status
    before, after = (answer.derivations for answer in answers)
    if options.json:
        found = {"against": options.against or HEAD, "forwards": as_json(before, after)}
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
        revision = Revision(file, options.against or HEAD, folder)
        then = Deriver(revision.folders, {f"{folder.resolve() / TREE}/": revision.named})
        asked = [then, now]
        for deriver, path in ((then, revision.file), (now, file)):
            deriver.ask(_asked(options, f"{path}:{wanted}" if wanted else str(path)), False)
        return [deriver.answer() for deriver in asked]
    finally:
        for deriver in asked:
            deriver.end()


def _since_written(options: argparse.Namespace, error: NotInGitError) -> int:
    """Compare modules with those in the folder of modules, where git has no earlier version."""
    from codegen.commands.generating import changed_modules

    texts = changed_modules(_asked(options, options.name))
    if not all(path.exists() for path in texts):
        names = ", ".join(str(path) for path in texts if not path.exists())
        instead = f"outside of git, it is compared with {names}: gradform {options.name} writes it"
        raise QuestionError(error.problem, instead)
    for path, same in texts.items():
        if same:
            sys.stdout.write(f"{path.stem}: nothing changed since {path} was written\n")
    return DONE if all(texts.values()) else WRONG


def _asked(options: argparse.Namespace, name: str) -> argparse.Namespace:
    """Options of a request, as `generate` has them."""
    given = {"limit": options.limit, "no_cache": options.no_cache, "target": TORCH}
    fixed = {"out": Path(OUT), "order": None, "force": False}
    return argparse.Namespace(names=[name], **given, **fixed)
