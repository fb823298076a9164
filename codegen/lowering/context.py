"""The context of a lowering rule: tensors, and how its operands are lowered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from sympy import Expr

from codegen.lowering.picks import NOTHING_PICKED, Picked
from codegen.program.values import Value
from derive.language.notation.definition import Statement
from derive.language.notation.layout import Layout
from derive.language.symbols import Axis, Tensor


class Context(ABC):
    """Tensors whose layouts are known.

    ``layouts`` has the layout of every tensor by name, ``order`` the axes in the order of
    dimensions. ``statements`` are needed for a `Pullback`: the derivative of their outermost
    function. With ``saved`` only the tensors of these names are available; without, the rounding is
    that of reverse-mode differentiation, one operation at a time: divisions by numbers become one
    multiplication. ``peaks`` maps row maxima to their operands, each in the forms in which it may
    be met, ``magnitudes`` absolute values to theirs.
    """

    def __init__(
        self,
        layouts: Mapping[str, Layout],
        order: Sequence[Axis],
        statements: Mapping[str, Statement] | None = None,
        saved: frozenset[str] | None = None,
        peaks: Mapping[str, Sequence[Expr]] | None = None,
        magnitudes: Mapping[str, Expr] | None = None,
    ):
        self.layouts, self.order, self.peaks = layouts, list(order), peaks or {}
        self.statements, self.saved, self.magnitudes = statements, saved, magnitudes or {}
        self.rounds_as_autograd = statements is not None and saved is None
        self.scalars: set[str] = set()  # those that were met: Python numbers in the code

    @abstractmethod
    def value(self, e: Expr, frame: tuple[Axis, ...], picked: Picked = NOTHING_PICKED) -> Value:
        """``e`` aligned with ``frame``, at the picked entries of some axes."""

    @abstractmethod
    def tensor(self, t: Tensor, frame, picked) -> Value:
        """The same for a tensor."""
