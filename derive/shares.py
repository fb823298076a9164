"""The other share of a whole: ``1 - 1/(1 + exp(u))`` is ``1/(1 + exp(-u))``, and keeps its digits.

Where the one share is nearly all, the difference is rounding error alone. So are gradients of a
loss that is nearly met, such as those of ``log(1 + exp(-x))``.
"""

from __future__ import annotations

from sympy import Add, Expr, Pow, exp

from derive.alternatives import Pairs
from derive.relations import Relations
from derive.steps import Record
from derive.symbols import Tensor, tensors_in
from derive.traversal import everywhere

WHY = "what remains of a whole is computed as such, not as a difference"


def with_other_shares(pairs: Pairs, relations: Relations, record: Record) -> Pairs:
    """``pairs`` with ``a - a/v = a/(1 + exp(-u))`` used, where the forward defines v = 1 + exp(u),
    and ``a - a*s = a/(1 + exp(-u))``, where it defines s = 1/v and nothing else reads s.
    """
    read = {t.at_home for _, e in pairs for t in tensors_in(e) if t.name in relations.by_name}
    for value in sorted(read, key=lambda t: relations.position[t.name]):
        definition = _in_full(value, relations)
        divides = _is_whole(definition)
        if not divides and not (is_share(definition) and definition.exp == -1):
            continue
        trial = Record()
        turned = [
            (t, trial.add(t, "other share", e, _turned(e, value, relations), WHY)) for t, e in pairs
        ]
        if divides or not any(value in map(_at_home, tensors_in(e)) for _, e in turned):
            record.steps.extend(trial.steps)
            pairs = turned
    return pairs


def _turned(e: Expr, value: Tensor, relations: Relations) -> Expr:
    """``e`` with one less a share written as the other share, for shares that are of ``value``."""

    def turned(node: Expr) -> Expr | None:
        if not isinstance(node, Add):
            return None
        for part in node.args:
            for met in (t for t in tensors_in(part) if t.at_home == value):
                definition = _in_full(met, relations)
                share = 1 / met if _is_whole(definition) else met
                whole = -part / share
                if whole in node.args:
                    exponent = (1 / definition if share == met else definition) - 1
                    return node - whole - part + whole / (1 + 1 / exponent)
        return None

    return everywhere(e, turned)


def _in_full(value: Tensor, relations: Relations) -> Expr:
    """The definition of ``value``, that of a whole which it divides by included."""
    e = relations.unfolded(value)
    divides = isinstance(e, Pow) and isinstance(e.base, Tensor) and e.base.name in relations.by_name
    return e.func(relations.unfolded(e.base), e.exp) if divides else e


def _at_home(tensor: Tensor) -> Tensor:
    return tensor.at_home


def _is_whole(e: Expr) -> bool:
    """Whether ``e`` is 1 + exp(u)."""
    return isinstance(e, Add) and isinstance(e - 1, exp)


def is_share(e: Expr) -> bool:
    """Whether ``e`` is a power of 1/(1 + exp(u))."""
    return isinstance(e, Pow) and e.exp.is_Integer and e.exp < 0 and _is_whole(e.base)
