"""Reductions: sums, means, variances, norms, maxima, softmax."""

from __future__ import annotations

from codegen.importing.operations.pointwise import exp
from codegen.importing.values import ARGMAX, Refused, TreeValue
from derive.language.torch_ops import trees
from derive.language.torch_ops.trees import ZERO

ARG_MAX_ONLY = "use the values; indices of maxima may only index, as in x.gather(1, index)"


def hits(r, x, dim, keepdim) -> TreeValue:
    """The argmax, represented by its one-hot."""
    i = dim % x.rank
    x = r.single(r.as_number(x), i)
    if x.dims[i] == ():
        raise Refused("argmax along a dimension of size 1", ARG_MAX_ONLY)
    (axis,) = x.dims[i]
    here = trees.compared("==", x.tree, trees.largest(x.tree, axis))
    found = r.dropped(x, trees.indicator(here), [i], keepdim)
    return TreeValue(found.tree, found.dims, ARGMAX, axis)


# Softmax and similar


def exponentials(r, x) -> tuple[TreeValue, TreeValue]:
    """Return (scores, exp(scores)); a masked score of -oo has exponential 0."""
    x = r.let("scores", r.as_number(x))
    written = next(
        (s.tree for s in r.statements if x.tree == trees.tensor(s.name, x.tree.free)), x.tree
    )
    masked = trees.MINUS_INFINITY
    if written.kind != "choice" or masked not in (*written.args[:-1:2], written.args[-1]):
        return x, r.pointwise(exp, x)
    pairs, otherwise = trees.pairs_of(written)
    taken = [(ZERO if v == masked else exp(v), c) for v, c in pairs]
    last = ZERO if otherwise == masked else exp(otherwise)
    return x, r.let("counts", TreeValue(trees.choice(*taken, otherwise=last), x.dims))
