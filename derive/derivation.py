"""The whole pipeline, from a forward to a proved backward.

    notation  a class body  -> Definition   named statements, checked
    chain     Definition    -> Chain        one adjoint for each statement
    closing   Chain         -> ClosedForm   a short program, every step recorded
    proving   ClosedForm    -> Proved       it and the chain are confirmed

`derive` runs the stages in this order; ``tests/test_derivation.py`` holds it to this table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from derive.gradient.chain.chain import Chain, derive_chain
from derive.gradient.closing.closed_form import ClosedForm, close
from derive.language.errors import UndecidedError
from derive.language.notation.definition import Definition
from derive.language.notation.forward import Forward
from derive.language.notation.library import as_forward
from derive.proof.proving.certified import certified
from derive.proof.proving.proof import prove
from derive.proof.proving.proved import LONGER, Proved
from derive.running.limits import Doing, Stage, limited, seconds_of

stages: tuple[tuple[Callable, type, type], ...] = (
    (derive_chain, Definition, Chain),
    (close, Chain, ClosedForm),
    (prove, ClosedForm, Proved),
)


def derive(
    forward: type[Forward] | str | Path,
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> Proved:
    """Derive and prove the backward of ``forward``: a `Forward`, a NAME, or a file that holds one.

    Returns the `Proved` closed form. Raises `QuestionError` for mathematics that is not supported
    and `UnprovedError` if the independent derivations do not confirm the result.

    ``limit`` is in wall-clock seconds. When it runs out, the cheapest closed form so far is used,
    and `UndecidedError` is raised if that is not proved; a form proved only for small batches is
    returned, and its summary says so.
    """
    forward = as_forward(forward)
    return derive_definition(forward.definition, progress, limit)


def derive_definition(
    definition: Definition,
    progress: Callable[[str], None] = lambda what: None,
    limit: float | None = None,
) -> Proved:
    """The same for mathematics that is complete already."""
    with limited(seconds_of(limit)):
        proved = prove(closed_form_of(definition, progress), progress)
    return replace(proved, certificate=certified(proved.closed_form), page=_page)


def _page(proved: Proved) -> str:
    """The HTML shown in a notebook; imports the templates on demand."""
    from derive.show.html import fragment
    from derive.show.sections import document_of

    return fragment(document_of(proved))


def closed_form_of(
    definition: Definition, progress: Callable[[str], None] = lambda what: None
) -> ClosedForm:
    """The closed form, not proved yet. Raises as `derive` does."""
    doing = Doing(progress)
    with Stage():
        doing("differentiating")
        chain = derive_chain(definition)
        doing("simplifying")
        return close(chain)
    raise UndecidedError(
        f"{definition.name}: the time limit ran out before a closed form was found\n"
        f"    in progress: {doing}\n    {LONGER}; nothing was emitted"
    )
