"""The statements on torch tensors as in ``interpret.py``, but each branch of a choice only at the
entries where it is taken: infinities and NaN elsewhere enter no derivative.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import torch
from sympy import Expr, Piecewise
from torch import Tensor

from codegen.targets.torch.interpret import Interpreter
from codegen.targets.torch.place_by_place import StatementValues
from derive.language.choices import Branches, Compared
from derive.language.nodes import ArgMax, Max, OneHot, Position, Reindexing, Sum, Whole
from derive.language.symbols import Axis, MinusInfinity
from derive.language.symbols import Tensor as Symbolic

WHOLE = (Symbolic, Sum, Whole, Reindexing, Max, ArgMax, OneHot, Position)  # no entry by itself


def taken(definition, arguments: Mapping[str, Tensor | float]) -> StatementValues:
    """Every statement's value, with exactly its axes as dimensions."""
    return _Taken(definition, arguments).run()


class _Taken(Interpreter):
    entries: Mapping[Expr, Tensor] | None = None  # of a choice's operands, where it is taken

    def value(self, e: Expr) -> Tensor:
        if self.entries is None:
            return self._chosen(e) if isinstance(e, Piecewise) else super().value(e)
        if e in self.entries:
            return self.entries[e]
        if isinstance(e, Piecewise):
            return self._branches(e)
        if isinstance(e, (Axis, MinusInfinity)) or e.is_number:
            return torch.tensor(self.number(e), dtype=self.dtype)
        return super().value(e)

    def _chosen(self, e: Piecewise) -> Tensor:
        e = self._in_full(e)
        values = {leaf: self.value(leaf) for leaf in _leaves(e)}
        one = (1,) * len(self.definition.axes)  # of choices by sizes alone
        shape = torch.broadcast_shapes(one, *(v.shape for v in values.values()))
        self.entries = {leaf: v.expand(shape).reshape(-1) for leaf, v in values.items()}
        found = self.value(e)  # SymPy may have decided the choice, now that all of it is there
        self.entries = None
        return found.expand(prod(shape)).reshape(shape)

    def _branches(self, e: Piecewise) -> Tensor:
        before = self.entries
        count = prod(torch.broadcast_shapes(*(v.shape for v in before.values())))
        result, rest = torch.zeros(count, dtype=self.dtype), torch.ones(count, dtype=torch.bool)
        for chosen, condition in e.args:
            here = rest & self.holds(condition)
            places = here.nonzero()[:, 0]
            if len(places):
                self.entries = {leaf: v[places] for leaf, v in before.items()}
                result = result.index_copy(0, places, self.value(chosen).expand(len(places)))
                self.entries = before
            rest = rest & ~here
        return result

    def _in_full(self, e: Expr) -> Expr:
        """``e`` with its statements inlined, where no sum stands between."""
        known = {s.tensor: s.expression for s in self.definition.statements}
        while met := {t: known[t] for t in _leaves(e) if t in known and _pointwise(known[t])}:
            e = e.xreplace(met)
        return e


def _leaves(e: Expr) -> list[Expr]:
    if isinstance(e, WHOLE):
        return [e]
    if isinstance(e, (Branches, Compared)):
        return _leaves(e.choice)
    return list(dict.fromkeys(leaf for arg in e.args for leaf in _leaves(arg)))


def _pointwise(e: Expr) -> bool:
    return all(isinstance(leaf, Symbolic) for leaf in _leaves(e))
