"""Labels that count: a factor that is 0 in the rows of ignored labels.

A label that may be ignored is two things in the mathematics: an index that is always valid, and a
tensor that marks the labels that count. So no other code has to handle ignored labels:
``OneHot(labels, C)`` in a class body is ``Kept(labels)*OneHot(labels, C)``.
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Basic, Expr, Integer, Mul, Ne, Piecewise

from derive.language.choices import zero_unless
from derive.language.errors import NotationError
from derive.language.nodes import OneHot, Sum, summed
from derive.language.symbols import Tensor, axes_of, tensors_in
from derive.language.words import word

SUFFIX = "_kept"


def kept_tensor(label: Tensor) -> Tensor:
    """The tensor that is 0 where ``label`` is ignored, and nonzero where it counts."""
    return Tensor(f"{label.name}{SUFFIX}", label.axes, label.home, role="kept")


def nonzero(kept: Tensor) -> Expr:
    """1 where ``kept`` is not 0, else 0."""
    return Piecewise((1, Ne(kept, 0)), (0, True))


@word("Kept(labels)", axes="kept")
def Kept(labels: Tensor) -> Expr:
    """``Kept(labels)``: 1 where a label counts, 0 where it is ignored."""
    if not (isinstance(labels, Tensor) and labels.role == "label"):
        raise NotationError(
            f"Kept({labels}): {labels} is not a label",
            f"declare it with the number that is ignored: {labels} = Label(N, ignored=-100)",
        )
    return nonzero(kept_tensor(labels))


def kept_label(e: Expr) -> Tensor | None:
    """The label whose `Kept` is ``e``, if there is one."""
    test = zero_unless(e)
    return None if test is None else label_asked_of(test)


def label_asked_of(test: Basic) -> Tensor | None:
    """The label that is kept where ``test`` holds, if that is all it says."""
    kept = test.lhs if isinstance(test, Ne) and test.rhs == 0 else None
    if not isinstance(kept, Tensor) or kept.role != "kept":
        return None
    name = kept.name.removesuffix(SUFFIX)
    return Tensor(name, kept.axes, kept.home, role="label", integer=True)


def with_ignored(e: Expr, kept: Mapping[str, Tensor]) -> Expr:
    """``e`` with the labels that have an entry in ``kept`` allowed to be ignored: their one-hots
    are 0 in the rows of ignored labels.
    """
    always = {t: Integer(1) for t in e.atoms(Tensor) if t.role == "kept" and t.name not in kept}
    if always:
        e = e.xreplace(always).replace(
            _is_multiple, lambda total: summed(total.operand, total.axes)
        )
    hots = {
        hot
        for hot in e.atoms(OneHot)
        if isinstance(hot.operand, Tensor) and kept_tensor(hot.operand).name in kept
    }
    e = e.xreplace({hot: Kept(hot.operand) * hot for hot in hots})
    if not hots:
        return e
    return e.replace(lambda node: isinstance(node, Sum), _kept_outside)


def _is_multiple(node) -> bool:
    """Whether a sum has an operand that is constant along one of its axes."""
    return isinstance(node, Sum) and not axes_of(node.operand) >= set(node.axes)


def _kept_outside(total: Sum) -> Expr:
    """Sum(c*a, C) = c*Sum(a, C), where c, 1 at the labels that count, is not along C."""
    factors = Mul.make_args(total.operand)
    outside = [
        f
        for f in factors
        if any(t.role == "kept" for t in tensors_in(f)) and not axes_of(f) & set(total.axes)
    ]
    return Mul(*outside, total.on(Mul(*(f for f in factors if f not in outside))))
