"""Rules that wrap rows of the table: embedding bags, and ignored labels."""

from __future__ import annotations

import inspect

from codegen.importing.arrays import NamedArrays
from codegen.importing.operations.table import before, rule, rules
from codegen.importing.values import LABEL, OUTSIDE, Refused, TreeValue
from derive.language.torch_ops import table

before.add("embedding_bag")


@rule("embedding_bag", called="vectors")
def _embedding_bag(
    r, weight, indices, offsets=None, scale_grad_by_freq=False, mode=0, sparse=False,
    per_sample_weights=None, include_last_offset=False, padding_idx=None,
):  # fmt: skip
    """The graph holds the rows of an index matrix concatenated.

    Long: torch's arguments.
    """
    if scale_grad_by_freq or include_last_offset or padding_idx not in (None, -1):
        raise Refused("bags with options", "leave them at their defaults")
    bags = indices.along((axis,) for axis in indices.dims[0])
    weights = per_sample_weights
    if weights is not None:
        weights = r.shapes.moved(weights.along((axis,) for axis in weights.dims[0]), bags.dims)
    meaning, word = table["embedding_bag"].meaning, ("sum", "mean", "max")[mode]
    found = meaning(NamedArrays(r), bags, weight, mode=word, per_sample_weights=weights)
    return [found, OUTSIDE, OUTSIDE, OUTSIDE]


def _labels_stay(name: str, stay) -> None:
    """Wrap a rule for ignored labels that index a class: their one-hot is already 0."""
    row = rules[name]

    def of(r, x, **given):
        label = isinstance(x, TreeValue) and x.kind == LABEL
        return x if label and stay(**given) else row(r, x=x, **given)

    of.__signature__ = inspect.signature(row)
    rules[name] = of


_labels_stay("masked_fill", lambda **given: True)
for _name in ("clamp", "clip", "clamp_min"):
    _labels_stay(_name, lambda min=None, max=None: max is None and min == 0)
