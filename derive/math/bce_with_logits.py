"""The binary cross entropy of a sigmoid."""

from sympy import log

from derive import Axes, Axis, Forward, Given, Input, Reduced
from derive.math.sigmoid import Sigmoid

N, C = Axes("N"), Axis("C")


class BCEWithLogits(Forward):
    """The cross entropy of the sigmoid of every logit, relative to its target between 0 and 1.

    Source: Bishop (2006), "Pattern recognition and machine learning", equation 4.90; the log
    probability of the positive answer counts ``pos_weight`` times, the whole ``weight`` times.
    """

    logits = Input(N, C)
    target = Input(N, C)
    weight = Given(N, C, default=1, broadcast=True)
    pos_weight = Given(C, default=1)

    probs = Sigmoid(logits)
    likelihood = pos_weight * target * log(probs) + (1 - target) * log(1 - probs)
    losses = -weight * likelihood
    loss = Reduced(losses, mean=N * C)
