"""The table of respellings: ``make respellings``, or in ``tests/``

    python -m respelling [--forwards NAME ...] [--spellings WORD ...] [--seconds 60]

prints a line for every forward in every spelling: its verdict, what it costs before and after
(risk, moved, reductions, saved, operations), its statements, the seconds; then the counts. The
exit status is 1 where anything is not as it has to be.
"""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentParser
from collections import Counter

from derive.language.errors import NotationWarning
from derive.notation.library import forward_from, list_forwards
from respelling import outcome, spellings, verdict, written


def main() -> int:
    parser = ArgumentParser(prog="respelling", description="what comes out of other spellings")
    parser.add_argument("--forwards", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--spellings", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--seconds", type=float, default=60, help="for one forward")
    wanted = parser.parse_args()
    warnings.simplefilter("ignore", NotationWarning)
    forwards = [forward_from(name) for name in wanted.forwards] or list_forwards()
    chosen = [
        s for s in spellings if not wanted.spellings or any(w in s.name for w in wanted.spellings)
    ]
    counts: Counter[tuple[str, str]] = Counter()
    for forward in forwards:
        definition = forward.definition
        usual = outcome(definition, wanted.seconds)
        print(f"{definition.snake:32} {usual} in {usual.seconds:.1f} s", flush=True)
        for spelling in chosen:
            other = written(definition, spelling, wanted.seconds)
            if other is not None:
                said = verdict(usual, other, spelling.same) or "as good"
                counts[spelling.name, said.split(":")[0]] += 1
                more = "" if other.error else f"{other}, {other.statements} statements"
                print(
                    f"    {spelling.name:16} {said:28} {more} in {other.seconds:.1f} s", flush=True
                )
    for (name, said), count in sorted(counts.items()):
        print(f"{name:16} {said:32} {count:4}")
    return int(any(said != "as good" for _, said in counts))


if __name__ == "__main__":
    sys.exit(main())
