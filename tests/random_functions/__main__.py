"""Random Functions for as long as one likes (``make fuzz-functions``), or one of them again.

    python -m random_functions --seconds 1800 --seed 0     two processes, until the time is over
    python -m random_functions --case 1234                 one of them: its text, verdict and truth

The exit status is 0 where no verdict was false, nothing crashed and everything ended; what is
refused, or has no verdict, is counted and shown.
"""

from __future__ import annotations

import argparse
import sys

from random_forwards.__main__ import STRETCH, Run, tell

LIMIT = 60.0  # seconds of computing for one Function with all of its options


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m random_functions")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first Function")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--case", type=int, help="only this one, with its text")
    parser.add_argument("--stretch", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case is not None:
        return one_case(options.case)
    if options.stretch is not None:
        return stretch(options.stretch)
    run = Run(options, "random_functions", "Functions")
    run.harmless = frozenset({"right", "refused", "without a verdict"})
    return run.run()


def one_case(seed: int) -> int:
    from random_functions.grammar import random_case, text_of
    from random_functions.trial import RIGHT, tried

    case = random_case(seed)
    print(f"{text_of(case)}\n# {case.axes}  ({case.broken or 'as by rule'})", flush=True)
    outcome = tried(case, LIMIT)
    print(f"# {outcome.kind} ({outcome.seconds:.1f} s)\n{outcome.message}")
    return int(outcome.kind != RIGHT)


def stretch(first: int) -> int:
    import torch

    from random_functions.grammar import random_case
    from random_functions.trial import tried

    torch.set_num_threads(1)
    for seed in range(first, first + STRETCH + 1):
        tell(seed, tried(random_case(seed), LIMIT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
