"""The binary cross entropy of a sigmoid."""

from sympy import log

from derive import Axis, Forward, Input, Sum
from derive.math.sigmoid import Sigmoid

N, C = Axis("N"), Axis("C")


class BCEWithLogitsNone(Forward):
    """The cross entropy of the sigmoid of every logit, relative to its target between 0 and 1.

    Source: Bishop (2006), "Pattern recognition and machine learning", equation 4.90; the log
    probability of the positive answer counts ``pos_weight`` times, the whole ``weight`` times.
    """

    logits = Input(N)
    target = Input(N)
    weight = Input(N)
    pos_weight = Input(N)

    probs = Sigmoid(logits)
    likelihood = pos_weight * target * log(probs) + (1 - target) * log(1 - probs)
    losses = -weight * likelihood


class BCEWithLogitsSum(Forward):
    """The sum over all logits.

    Source: Bishop (2006), "Pattern recognition and machine learning", equation 4.90.
    """

    logits = Input(N)
    target = Input(N)
    weight = Input(N)
    pos_weight = Input(N)

    losses = BCEWithLogitsNone(logits, target, weight, pos_weight)
    loss = Sum(losses, N)


class BCEWithLogits(Forward):
    """The mean over all logits.

    Source: Bishop (2006), "Pattern recognition and machine learning", equation 4.90.
    """

    logits = Input(N)
    target = Input(N)
    weight = Input(N)
    pos_weight = Input(N)

    losses = BCEWithLogitsNone(logits, target, weight, pos_weight)
    loss = Sum(losses, N) / N
