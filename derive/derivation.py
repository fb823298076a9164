"""The whole way, from mathematics to a proved backward.

    forward.py      a class body              -> Definition   named statements, checked
    chain.py        Definition                -> Chain        one adjoint for each statement
    closed_form.py  Chain                     -> ClosedForm   a short program, every step recorded
    proof.py        ClosedForm                -> Proved       confirmed by two other derivations, the chain too

`derive` runs the stages in this order; ``tests/test_derivation.py`` holds it to this table.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from derive.chain import Chain, derive_chain
from derive.closed_form import ClosedForm, close
from derive.definition import Definition
from derive.forward import Forward
from derive.library import forward_from
from derive.proof import Proved, prove

stages: tuple[tuple[Callable, type, type], ...] = (
    (derive_chain, Definition, Chain),
    (close, Chain, ClosedForm),
    (prove, ClosedForm, Proved),
)


def derive(
    forward: type[Forward] | str | Path, progress: Callable[[str], None] = lambda what: None
) -> Proved:
    """Derive and prove the backward of ``forward``: a `Forward`, a NAME, or a file that holds one.

    Returns the `Proved` closed form. Raises `QuestionError` for mathematics that was not understood
    and `UnprovedError` where the independent derivations do not confirm the result.
    """
    if not isinstance(forward, type):
        forward = forward_from(forward)
    progress("differentiating")
    chain = derive_chain(forward.definition)
    progress("simplifying")
    closed_form = close(chain)
    return prove(closed_form, progress)
