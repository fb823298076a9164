"""Time limits of a derivation: every stage gets a share of the limit.

    with limited(10):                    # wall-clock seconds
        with Stage(share=0.5) as search:
            ...
    if search.is_over: ...               # what was to be done in the block was not all done

The default limit of a derivation or a check is LONGEST_ALONE, many times what the slowest function
of the gallery takes, so that hardly any result depends on time. Outside of all limits a stage has
no effect.

In the main thread, where a timer is available, a block is interrupted anywhere; elsewhere only
where it checks the time (`look`). The exception is not an `Exception`, so that no error handler
catches it. Caches outlive the block, so the timer waits while one is being filled in several steps
(DELICATE).
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import isfinite
from types import FrameType

from derive.language.errors import QuestionError, shortened

PATIENCE = 0.02  # seconds until a postponed timer retries
AGAIN = 1.0  # seconds until it retries if the exception was swallowed, as in a __del__
LONGEST_ALONE = 120.0  # seconds, the default limit
LONGEST = 1e8  # seconds, the most a timer accepts

# Modules that must not be interrupted: imports, and SymPy's deduction of facts about an expression.
DELICATE = {
    __name__,
    "importlib._bootstrap",
    "importlib._bootstrap_external",
    "_frozen_importlib",
    "_frozen_importlib_external",
    "sympy.core.facts",
}

_end: ContextVar[float | None] = ContextVar("end", default=None)
_stage: ContextVar[Stage | None] = ContextVar("stage", default=None)


class OutOfTime(BaseException):
    """Raised when the time of a stage is over; that stage handles it."""

    def __init__(self, stage: Stage):
        self.stage = stage
        super().__init__("the time limit is over")


def seconds_of(limit: float | str | None) -> float | None:
    """Parse a limit as a number of seconds. Raises `QuestionError`."""
    if limit is None:
        return None
    try:
        seconds = float("nan" if isinstance(limit, bool) else limit)
    except (TypeError, ValueError, OverflowError):
        seconds = float("nan")
    if not (isfinite(seconds) and seconds > 0):
        raise QuestionError(
            f"limit {shortened(limit)} is not a positive number of seconds",
            f"write for instance 60; without one it is {LONGEST_ALONE:g}",
        )
    return seconds


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Limit the stages of the block to so many seconds, or to what an outer limit leaves; without
    either, to LONGEST_ALONE.
    """
    if seconds is None and _end.get() is None:
        seconds = LONGEST_ALONE
    ends = [_end.get(), None if seconds is None else time.monotonic() + seconds]
    token = _end.set(min((end for end in ends if end is not None), default=None))
    try:
        yield
    finally:
        _end.reset(token)


class Doing:
    """The current task, which is passed to ``tell``, and its start time."""

    def __init__(self, tell: Callable[[str], None]):
        self.tell, self.what, self.since = tell, "nothing", time.monotonic()

    def __call__(self, what: str) -> None:
        self.what, self.since = what, time.monotonic()
        self.tell(what)
        look()

    def __str__(self) -> str:
        return f"{self.what}, for {time.monotonic() - self.since:.1f} s"


def look() -> None:
    """Leave the innermost stage if its time is over; needed where no timer works."""
    stage = _stage.get()
    if stage is not None and time.monotonic() >= stage.end:
        raise OutOfTime(stage)


class Stage:
    """A block that is left after its ``share`` of the remaining time; ``is_over`` tells whether it
    was.
    """

    def __init__(self, share: float = 1):
        self.share, self.is_over = share, False
        self.end: float | None = None
        self.timer: Timer | None = None

    def __enter__(self) -> Stage:
        outer, end, now = _stage.get(), _end.get(), time.monotonic()
        end = outer.end if outer is not None else end
        if end is not None:
            self.end = now + self.share * max(end - now, 0)
            self.token = _stage.set(self)
            if _may_be_interrupted():
                self.timer = Timer(self)
        return self

    def __exit__(self, kind, error, traceback) -> bool:
        if self.end is None:
            return False
        if self.timer is not None:
            self.timer.stop()
        _stage.reset(self.token)
        self.is_over = isinstance(error, OutOfTime) and error.stage is self
        return self.is_over


class Timer:
    """The process's alarm while a stage owns it. From the end of the stage on it rings until
    stopped, and is then returned to its previous owner, an outer stage or other code, whose alarm
    may be late but is not lost.
    """

    def __init__(self, stage: Stage):
        self.stage, self.heard = stage, float("-inf")
        self.outermost = sys._getframe(2)  # owns the block; its callers are not interrupted
        self.started = time.monotonic()
        self.others = signal.setitimer(signal.ITIMER_REAL, 0)
        self.handler = signal.signal(signal.SIGALRM, self._ring)
        self.hook, sys.unraisablehook = sys.unraisablehook, self._unraisable
        left = min(max(stage.end - self.started, PATIENCE), LONGEST)
        signal.setitimer(signal.ITIMER_REAL, left, PATIENCE)

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.unraisablehook = self.hook
        signal.signal(signal.SIGALRM, self.handler)
        delay, interval = self.others
        if delay:
            left = max(delay - (time.monotonic() - self.started), PATIENCE)
            signal.setitimer(signal.ITIMER_REAL, left, interval)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now < self.stage.end or now < self.heard + AGAIN or self._is_delicate(frame):
            return
        self.heard = now
        raise OutOfTime(self.stage)

    def _is_delicate(self, frame: FrameType | None) -> bool:
        while frame is not None and frame is not self.outermost:
            if frame.f_globals.get("__name__") in DELICATE:
                return True
            frame = frame.f_back
        return False

    def _unraisable(self, what) -> None:
        """Ignore the timeout where Python cannot raise it: the timer will ring again."""
        if not isinstance(what.exc_value, OutOfTime):
            self.hook(what)


def _may_be_interrupted() -> bool:
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) is not None  # otherwise it could not be restored
    )
