"""Names in a block stay the callee's wherever no other name is in the way.

Two blocks that compute a ``mean`` keep theirs apart as ``h_mean`` and ``y_mean``; a block that has
the only one in the forward needs no prefix. The names in the way are known at the end of the class
body, so names are changed then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from derive.language.detached import only_where_needed
from derive.language.names import unused
from derive.language.notation.composition import translated
from derive.language.notation.definition import Statement
from derive.language.symbols import Axis, Tensor


def without_prefixes(
    statements: Sequence[Statement],
    taken: Collection[str],
    axes: Sequence[Axis],
    renamed: Mapping[str, str],
    orders: Mapping[str, tuple[Axis, ...]],
) -> tuple[Statement, ...]:
    """The statements under the shortest of their names, or as they are ``renamed``; ``taken`` are
    all names that something else has, and that neither these nor the gradients of these may have:
    what is called as the gradient of another one is called a value of that name. Their dimensions
    are in the order of ``axes``, or in that which ``orders`` has for them.
    """
    names = {**_names(statements, taken), **renamed}
    tensors = {tensor.name: tensor for s in statements for tensor in s.expression.atoms(Tensor)}
    tensors = {name: tensor.at_home for name, tensor in tensors.items()}
    bound = {axis: (axis,) for axis in axes}
    found = []
    for s in statements:
        home = orders.get(s.name) or sorted(s.tensor.axes, key=axes.index)
        named = Tensor(names[s.name], home, role="statement", **s.tensor._assumptions_orig)
        value = only_where_needed(translated(s.expression, tensors, bound))
        tensors[s.name] = named
        found.append(Statement(named, value, s.place, s.block))
    return tuple(found)


def _names(statements: Sequence[Statement], taken: Collection[str]) -> dict[str, str]:
    """The name of every statement, by the one that it had."""
    own = {s.name: s.name.removeprefix(f"{s.block}_") for s in statements}
    often, others = Counter(own.values()), {*taken, *own}
    every = {*others, *own.values()}
    gradients = {f"d{name}" for name in every}

    def is_free(short: str) -> bool:
        in_the_way = short in others or short in gradients or f"d{short}" in every
        return often[short] == 1 and not in_the_way

    names = {name: short if is_free(short) else name for name, short in own.items()}
    for name, found in names.items():
        if found[0] == "d" and found[1:] in every:
            names[name] = unused(
                f"{found}_value", {*every, *gradients, *names.values()}.__contains__
            )
    return names
