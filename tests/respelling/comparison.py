"""What a forward costs, and what was proved of it: its counts; and which of two are worse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.language.notation.definition import Definition
from derive.proof.proving.proof import prove

# By the names of the counts, the most important first, and whether it was proved for every size; or
# what went wrong, as `ERROR`.
Counts = Mapping[str, int | bool | str]
RISK, EVERY_SIZE, ERROR = "risk", "every_size", "error"


def counts(definition: Definition, proving: bool = True) -> Counts:
    """``definition`` derived, and proved if it is asked for."""
    form = close(derive_chain(definition))
    risk, cost = form.preference
    found = {RISK: risk, **asdict(cost)}
    return found | {EVERY_SIZE: prove(form).every_size} if proving else found


def safety(of: Counts) -> Counts:
    """What is the same for relatives, which do not cost the same."""
    return {name: of[name] for name in (RISK, EVERY_SIZE, ERROR) if name in of}


def worse(now: Counts, before: Counts) -> str:
    """'' where ``now`` is as good as ``before`` or better, else the first that is not, with both.
    What has no count before cannot be worse.
    """
    if ERROR in now or ERROR in before:
        return "" if ERROR in before else str(now[ERROR])
    if before.get(EVERY_SIZE) and not now.get(EVERY_SIZE, True):
        return "no longer proved for every size"
    different = (n for n in now if n != EVERY_SIZE and now[n] != before.get(n, now[n]))
    first = next(different, None)
    if first is None or now[first] < before[first]:
        return ""
    return f"{first} {before[first]} -> {now[first]}"
