"""The counts of every forward in every spelling: ``make record``, or in ``tests/``

    python -m respelling [NAME ...]

Without a NAME it writes ``counts.json`` anew, with all counts as they are, better and worse ones:
what changed is what git shows. With names it prints the counts of these and writes nothing.
"""

from __future__ import annotations

import os
import warnings
from argparse import ArgumentParser

from derive.language.errors import NotationWarning
from respelling import record


def main() -> None:
    parser = ArgumentParser(prog="respelling", description="the counts of other spellings")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only print those of this forward")
    names = parser.parse_args().names
    warnings.simplefilter("ignore", NotationWarning)
    wanted = [task for task in record.tasks() if not names or task[0] in names]
    counted = {}
    for task, counts in record.all_found(wanted, os.cpu_count() or 1):
        counted[task] = counts
        print(f"{record.key(task):40}", *counts.values(), flush=True)
    if not names:
        record.write(record.recorded(counted))


if __name__ == "__main__":
    main()
