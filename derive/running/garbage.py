"""The frequency of Python's garbage collection while gradform works.

Expressions refer to no cycles and most of them stay: to go through all of them every few hundred
allocations takes a tenth of a derivation, and a third of importing torch.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

SELDOM = 50_000  # allocations; some MB of garbage at most

_lock = Lock()
_before: list[tuple[int, int, int]] = []  # the thresholds of the program round each block


def collect_seldom() -> None:
    """Collect garbage less often from now on, unless it is off or already rarer."""
    often, *others = gc.get_threshold()
    gc.set_threshold(max(often, SELDOM) if often else 0, *others)


@contextmanager
def collected_seldom() -> Iterator[None]:
    """Collect garbage less often inside the block; threads may share it, and the last to leave
    restores the thresholds.
    """
    with _lock:
        _before.append(gc.get_threshold())
        collect_seldom()
    try:
        yield
    finally:
        with _lock:
            first = _before[0]
            _before.pop()
            if not _before:
                gc.set_threshold(*first)
