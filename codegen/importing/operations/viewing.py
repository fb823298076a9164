"""Views: permutations and slices, most of which emit no statement."""

from __future__ import annotations

import sympy

from codegen.importing.operations.along import strided
from codegen.importing.operations.table import before, rule, rules
from codegen.importing.values import CONDITION, LABEL, NUMBER, OutsideAxis, Refused
from derive.language.torch_ops import trees


def shape_of(r, i: int | None = None):
    found = r.node.meta["val"]
    return (found if i is None else found[i]).shape


def same(r, x):
    return x


for _name in ("clone", "contiguous", "alias", "lift_fresh_copy", "positive"):
    rules[_name] = same


@rule("detach")
def _detach(r, x):
    if isinstance(x, OutsideAxis) or x.kind != NUMBER or not trees.tensors_in(x.tree):
        return x
    return r.pointwise(lambda tree: trees.call("Detach", tree), x)


@rule("to", "_to_copy", "type_as")
def _to(r, x, other=None):
    """A change of dtype keeps the values; converting to an integer dtype is accepted for integers
    only.
    """
    dtype = r.node.meta["val"].dtype
    if isinstance(x, OutsideAxis):
        return x
    if dtype.is_floating_point or dtype.is_complex:
        return r.shapes.as_number(x) if x.kind in (CONDITION, LABEL) else x
    if x.kind in (CONDITION, LABEL) or x.kind != NUMBER:
        return x
    if str(dtype) == "torch.bool":
        return r.shapes.as_condition(x)
    if trees.condition_of(x.tree) is not None or x.tree.kind in ("position", "number"):
        return x
    raise Refused("truncation to integers", "leave out the conversion")


@rule("getitem")
def _getitem(r, x, index):
    return x[index]


@rule("numpy_T", "mT", "matrix_H")
def _t(r, x):
    return x.along((*x.dims[:-2], *x.dims[:-3:-1])) if x.rank > 1 else x


@rule("slice")
def _slice(r, x, dim=0, start=None, end=None, step=1):
    i = dim % x.rank
    if step == 1 or x.dims[i] == ():
        size = r.sizes.of(x.dims[i])
        return r.shapes.sliced(x, i, 0 if start is None else start, size if end is None else end)
    part = r.shapes.bounded(x, i, start, end, step)
    return r.shapes.begun(x, part, lambda x: strided(r, x, i, (part.low, part.high, step)))


# Splits, whose number of parts the trace knows
SPLITS = ("split", "chunk", "split_with_sizes", "unsafe_split", "unsafe_chunk")
before.update(SPLITS)


@rule(*SPLITS)
def _split(r, x, split_size=None, split_sizes=None, chunks=None, dim=0):
    i, parts = dim % x.rank, len(r.node.meta["val"])
    widths = [r.sizes.plain(shape_of(r, k)[i]) for k in range(parts)]
    if len({r.sizes.hint(w) for w in widths}) == 1 and len(x.dims[i]) == 1:
        r.sizes.equate(x.dims[i][0], parts * widths[0])
        widths = [r.sizes.plain(w) for w in widths]
    x = r.let(r.called(x), x) if parts > 1 else x
    if all(r.sizes.same(w, widths[0]) for w in widths):
        return [r.shapes.part(x, i, parts, k) for k in range(parts)] if parts > 1 else [x]
    starts = [sympy.Add(*widths[:k]) for k in range(parts + 1)]
    return [r.shapes.sliced(x, i, starts[k], starts[k + 1]) for k in range(parts)]
