"""Random forwards for as long as one likes (``make fuzz``), or one of them again.

    python -m random_forwards --seconds 1800 --seed 0     two processes, until the time is over
    python -m random_forwards --case 1234                 one of them: its text, its outcome

Every process takes a stretch of seeds and has a hash seed of its own; the first seed of every
stretch is taken by the stretch before as well, and both must write the same text. A finding is made
smaller before it is shown, as a file that ``gradform`` can be run on. The exit status is 0 where
nothing was found but refusals to prove, and few of those.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from threading import Lock, Thread

STRETCH = 40  # cases that one process takes; then its caches go with it
MOST_UNPROVED = 0.03
LIMIT = 20.0  # seconds of computing for one forward
SHRINKING = 90.0
TESTS = Path(__file__).parents[1]
SHOWN = 16  # digits of a digest
EMPTY = hashlib.sha256(b"").hexdigest()[:SHOWN]  # of none, or of one that time may have cut short


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m random_forwards")
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first forward")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--case", type=int, help="only this one, with its text")
    parser.add_argument("--most", type=int, default=6, help="lines of a forward")
    parser.add_argument("--stretch", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case is not None:
        return one_case(options.case, options.most)
    if options.stretch is not None:
        return stretch(options.stretch, options.most)
    return Run(options, "random_forwards", "forwards", ("--most", str(options.most))).run()


def one_case(seed: int, most: int) -> int:
    """Print a forward, try it, and where it goes wrong make it smaller."""
    from random_forwards.grammar import random_forward
    from random_forwards.shrinking import shrunk
    from random_forwards.trial import RIGHT, SLOW, tried

    text = random_forward(seed, most)
    print(text, flush=True)
    outcome = tried(text, seed, LIMIT)
    print(f"# {outcome.kind} ({outcome.seconds:.1f} s) {outcome.message}", flush=True)
    if outcome.kind in (RIGHT, SLOW):
        return int(outcome.kind != RIGHT)
    smaller = shrunk(text, outcome, lambda candidate: tried(candidate, seed, LIMIT), SHRINKING)
    print(f"\n# The same in fewer words:\n\n{smaller}\n# {tried(smaller, seed, LIMIT).message}")
    return 1


def stretch(first: int, most: int) -> int:
    """One line of JSON for every seed from ``first`` on, and for the first of the next stretch."""
    import torch

    from random_forwards.grammar import random_forward
    from random_forwards.trial import tried

    torch.set_num_threads(1)
    for seed in range(first, first + STRETCH + 1):
        tell(seed, tried(random_forward(seed, most), seed, LIMIT))
    return 0


def tell(seed: int, outcome) -> None:
    """One line of JSON, for `Run`."""
    told = {
        "seed": seed,
        "kind": outcome.kind,
        "cause": outcome.cause,
        "message": outcome.message[:2000],
        "seconds": outcome.seconds,
        "hash": hashlib.sha256(outcome.text.encode()).hexdigest()[:SHOWN],
    }
    print(json.dumps(told), flush=True)


class Run:
    """Stretches in several processes, and what they found. ``module`` runs them, of what has the
    name ``things``; ``most`` are its own options.
    """

    harmless = frozenset({"right", "unproved", "out of time"})

    def __init__(self, options, module: str, things: str, most: tuple[str, ...] = ()):
        self.options = options
        self.module, self.things, self.most = module, things, most
        self.end = time.monotonic() + options.seconds
        self.next = options.seed
        self.kinds: Counter[str] = Counter()
        self.causes: dict[str, list[int]] = {}
        self.hashes: dict[int, str] = {}
        self.seconds = 0.0
        self.workers: list[subprocess.Popen] = []
        self.lock, self.over = Lock(), False

    def run(self) -> int:
        threads = [Thread(target=self._work, daemon=True) for _ in range(self.options.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, self.end - time.monotonic()))
        with self.lock:
            self.over = True
            for worker in self.workers:
                worker.kill()
            return self._said()

    def _work(self) -> None:
        """One stretch after another, until the time is over."""
        while not self.over:
            with self.lock:
                worker = self._started()
                self.workers.append(worker)
            for line in worker.stdout:
                with self.lock:
                    if self.over:
                        return
                    self._received(json.loads(line))
            worker.wait()

    def _started(self) -> subprocess.Popen:
        command = [sys.executable, "-m", self.module, "--stretch", str(self.next)]
        environment = os.environ | {"PYTHONHASHSEED": str(self.next % 4294967295)}
        self.next += STRETCH
        return subprocess.Popen(
            [*command, *self.most],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=TESTS,
        )

    def _received(self, case: dict) -> None:
        seed = case["seed"]
        if seed in self.hashes:
            texts = {self.hashes[seed], case["hash"]} - {EMPTY}
            if len(texts) > 1 and case["kind"] == "right":
                case |= {"kind": "wrong", "cause": "another text under another hash seed"}
            else:
                return
        self.hashes[seed] = case["hash"]
        self.kinds[case["kind"]] += 1
        self.seconds += case["seconds"]
        if case["kind"] == "right":
            return
        known = self.causes.setdefault(case["cause"], [])
        known.append(seed)
        if len(known) == 1:
            print(f"\n{seed}: {case['cause']}: {case['message'][:600]}", flush=True)

    def _said(self) -> int:
        tried = sum(self.kinds.values())
        print(
            f"\n{tried} {self.things} from seed {self.options.seed} on, "
            f"{self.seconds / max(tried, 1):.2f} s each:"
        )
        for kind, count in self.kinds.most_common():
            print(f"  {count:5} {kind}")
        for cause, seeds in sorted(self.causes.items(), key=lambda pair: -len(pair[1])):
            shown = ", ".join(map(str, seeds[:12])) + (", ..." if len(seeds) > 12 else "")
            print(f"{len(seeds):5} {cause}: {shown}")
        if self.causes:
            print(f"One of them again: python -m {self.module} --case ...")
        few = self.kinds["unproved"] <= MOST_UNPROVED * tried
        return int(not few or bool(set(self.kinds) - self.harmless))


if __name__ == "__main__":
    sys.exit(main())
