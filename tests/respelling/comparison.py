"""What a forward costs in two spellings, and what was proved of it."""

from __future__ import annotations

import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass

from derive.chain.chain import derive_chain
from derive.closing.closed_form import close
from derive.closing.cost import Cost
from derive.notation.definition import Definition
from derive.proving.proof import prove
from respelling.spellings import Spelling, respelled


class OutOfTime(BaseException):
    """Not an `Exception`: nothing on the way may take it for a failure of its own."""


@dataclass(frozen=True)
class Outcome:
    """What came out of one spelling: its risk and cost, how many statements its backward has, and
    whether it was proved for every size; or what went wrong.
    """

    risk: int = 0
    cost: Cost | None = None
    statements: int = 0
    every_size: bool = False
    error: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        if self.cost is None:
            return self.error
        c = self.cost
        return f"{self.risk}/{c.moved}/{c.reductions}/{c.saved}/{c.operations}"


def outcome(definition: Definition, seconds: float) -> Outcome:
    """``definition`` derived and proved, given up after so many seconds of computing."""
    start = time.process_time()

    def spent() -> float:
        return time.process_time() - start

    try:
        with _limit(seconds):
            form = close(derive_chain(definition))
            proved = prove(form)
    except OutOfTime:
        return Outcome(error=f"not within {seconds:g} s", seconds=spent())
    except Exception as error:  # what a spelling leads to is what is asked here
        words = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return Outcome(error=words[:100], seconds=spent())
    risk, cost = form.preference
    return Outcome(risk, cost, len(form.statements), proved.every_size, "", spent())


def written(definition: Definition, spelling: Spelling, seconds: float) -> Outcome | None:
    """What comes out of ``definition`` in another spelling; None where there is none."""
    try:
        forward = respelled(definition, spelling)
    except Exception as error:
        return Outcome(error=f"refused: {' '.join(str(error).split())}"[:100])
    return None if forward is None else outcome(forward.definition, seconds)


def verdict(usual: Outcome, other: Outcome, same: bool) -> str:
    """'' where ``other`` is as it has to be, else what is wrong."""
    if other.error:
        return other.error
    if usual.every_size and not other.every_size:
        return "not proved for every size"
    if other.risk > usual.risk:
        return "riskier"
    if same and (other.risk, other.cost) != (usual.risk, usual.cost):
        better = (other.risk, other.cost) < (usual.risk, usual.cost)
        only = other.risk == usual.risk and other.cost.moved == usual.cost.moved
        return ("cheaper" if better else "dearer") + (" in operations" if only else "")
    return ""


@contextmanager
def _limit(seconds: float):
    def stop(*_):
        raise OutOfTime

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
