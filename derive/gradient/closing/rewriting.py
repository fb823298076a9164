"""The driver of the identities: it applies them until none applies, and records what changed. It
knows none.
"""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Expr

from derive.gradient.closing.steps import Record
from derive.language.identity import IdentityRule
from derive.language.symbols import Tensor
from derive.language.traversal import everywhere

MOST_ROUNDS = 60  # of the identities, so that two which undo each other end


def normal_form(
    e: Expr, target: Tensor, identities: Iterable[IdentityRule], knowledge, record: Record
) -> Expr:
    """``e`` rewritten until no identity changes it.

    Every change of the whole is one step of the record.
    """
    for _ in range(MOST_ROUNDS):
        before = e
        for identity in identities:
            known = knowledge.rewritten.setdefault(identity, {})
            after = everywhere(
                e, lambda node, identity=identity: identity.rewrite(node, knowledge), known
            )
            e = record.add(target, identity.name, e, after, identity.why)
            if e == 0:
                return e
        if e == before:
            return e
    return e
