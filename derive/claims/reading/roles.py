"""Roles of a pasted function's arguments: upstream gradients, and inputs under other names.

In: argument names, and the forward's `TextNames`. Out: the upstream gradients, as far as names
tell; an argument named like a value of the forward is that value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from derive.claims.reading.names import TextNames

# Common names for an upstream gradient, whatever its tensor.
UPSTREAM = re.compile(
    r"""_?(
    g | gy | go | gout | gradients? | grads? | up | upstream\w* | delta s? | cotangents? | ct
    | d_?(l|out|outs|output|outputs|top|loss|next|up|y|value)
    | (grad|gradient|delta|g)_?(out|output|outputs|y|top|loss|next)
    | (out|output|outputs|y|top|loss|next|upstream|prev|previous)_?(grad|gradient|delta|diff)s?
    | dl_?d_?(y|out|output|z|a) | (error|err)_signal
    )_?""",
    re.IGNORECASE | re.VERBOSE,
)
OF_SOMETHING = re.compile(
    r"(?:grad|gradient|delta)_\w+|\w+_(?:grad|gradient|delta|bar)|d_\w+|d[A-Z]\w*|d[a-z]{1,8}\d*"
)
OTHER_WORDS = re.compile(  # that begin with d
    r"""d(ata | ims? | im_\w+ | epth | evice | type | ecay | rop | ropout | ebug | egree | iag | ist
    | istance | en | enom | et | ict | iff | ilation | irection | iscount | omain | ur | uration
    | efault | t | p | esired | ense | own | ot | f | im\d | rop_\w+ | etach | iv)""",
    re.VERBOSE,
)
# Synonyms: a name in a row may stand for the one input named in the same row.
MEANINGS = (
    "target targets t y y_true ytrue true truth gt ground_truth label labels actual expected "
    "desired y_target targ tgt",
    "weight weights w kernel theta",
    "bias biases b beta",
    "gain gamma scale weight g w",
    "eps epsilon e",
)
PREDICTIONS = (
    *("x", "input", "inputs", "inp", "output", "outputs", "out", "z", "a", "scores"),
    *(
        "pred",
        "preds",
        "prediction",
        "predictions",
        "predicted",
        "y_pred",
        "ypred",
        "yhat",
        "y_hat",
    ),
)
TARGETS, *_ = GROUPS = tuple(frozenset(words.split()) for words in MEANINGS)


def is_gradients_name(name: str) -> bool:
    """Whether a name is one for a gradient."""
    if UPSTREAM.fullmatch(name):
        return True
    return bool(OF_SOMETHING.fullmatch(name)) and not OTHER_WORDS.fullmatch(name)


def is_target(name: str) -> bool:
    """Whether a name is one for a loss's target."""
    return name.lower() in TARGETS


def upstream_arguments(arguments: Sequence[str], names: TextNames) -> dict[str, str]:
    """The arguments that are upstream gradients by name, each with the gradient's own name.

    Empty if there are none or the names are ambiguous.
    """
    ups = names.upstreams
    said = [theirs for theirs, ours in names.let.items() if ours in ups]
    free = [a for a in arguments if a not in names.let and a not in names.tensors]
    found = {a: a for a in free if a in ups}
    left = [up for up in ups if up not in found and up not in map(names.let.get, said)]
    others = [a for a in free if a not in found and a not in names.adjoints]
    others = [a for a in others if is_gradients_name(a)]
    for up in [*left]:
        of = up.removeprefix("d").lower()
        own = [a for a in others if re.sub(r"^(grad|g|d|delta)_?|_?grad$", "", a).lower() == of]
        if len(own) == 1:
            found[own[0]] = up
            others.remove(own[0])
            left.remove(up)
    if len(others) > len(left):
        strong = [a for a in others if UPSTREAM.fullmatch(a)]
        others = strong if len(strong) == len(left) else []
    if len(others) == len(left):
        found |= dict(zip(others, left, strict=True))
    return found


def meant_by_words(unknown: Iterable[str], names: TextNames) -> dict[str, str]:
    """Unknown names that are a synonym for exactly one input."""
    own = [t.name for t in names.definition.differentiable if not is_target(t.name)]
    inputs = [t.name for t in (*names.definition.inputs, *(t for t, _ in names.definition.scalars))]
    found: dict[str, str] = {}

    def is_the_prediction(one: str, other: str) -> bool:
        return [one] == own and other.lower() in PREDICTIONS

    for alike in (_is_same, _is_another_word, is_the_prediction):
        meant = {n: [i for i in inputs if alike(i, n)] for n in unknown if n not in found}
        sure = {n: own[0] for n, own in meant.items() if len(own) == 1}
        taken = [*found.values(), *sure.values()]
        found |= {n: ours for n, ours in sure.items() if taken.count(ours) == 1}
    return found


def _is_same(one: str, other: str) -> bool:
    return one.lower() == other.lower()


def _is_another_word(one: str, other: str) -> bool:
    return any({one.lower(), other.lower()} <= group for group in GROUPS)
