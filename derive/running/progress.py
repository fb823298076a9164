"""Progress lines: none for short tasks, then one after 2, 4, 8, 16, ... seconds.

For example:

    sinkhorn: proving db1, 4 s
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from derive.running.command import say

SHORTEST = 0.1  # seconds between two looks at the clock

FIRST = 2.0  # seconds


class Waiting:
    """The current task, the time when work ``started``, and the time of the next progress line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.clock, self.started, self.what = clock, clock(), ""
        self.next = FIRST

    def __call__(self, what: str) -> None:
        self.what = what

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.started

    def line(self) -> str | None:
        """The progress line, if one is pending; else None."""
        seconds = self.seconds
        if seconds < self.next or not self.what:
            return None
        while self.next <= seconds:
            self.next *= 2
        return f"{self.what}, {seconds:.0f} s"


@contextmanager
def told() -> Iterator[Callable[[str], None]]:
    """Yield a function that sets the current task. Another thread watches the clock, since a single
    step may take minutes.
    """
    waiting, over = Waiting(), threading.Event()

    def tell() -> None:
        while not over.wait(max(waiting.next - waiting.seconds, SHORTEST)):
            if line := waiting.line():
                say(line)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield waiting
    finally:
        over.set()
        teller.join()
