"""The focal loss."""

from sympy import Piecewise

from derive import Axes, Forward, Input, Reduced, Scalar
from derive.math.bce_with_logits import BCEWithLogits
from derive.math.sigmoid import Sigmoid

N = Axes("N")


class Focal(Forward):
    """The binary cross entropy of every logit, the less of it the better it is met.

    Source: Lin et al. (2017), "Focal loss for dense object detection", equation 5; an ``alpha``
    below 0 leaves the balance out, as in torchvision.
    """

    logits = Input(N)
    target = Input(N)
    alpha = Scalar(0.25, at_most=1)
    gamma = Scalar(2, at_least=0)

    probs = Sigmoid(logits)
    met = probs * target + (1 - probs) * (1 - target)
    balanced = alpha * target + (1 - alpha) * (1 - target)
    balance = Piecewise((balanced, alpha >= 0), (1, True))
    entropies = BCEWithLogits(logits, target, reduction="none")
    losses = balance * (1 - met) ** gamma * entropies
    loss = Reduced(losses, mean=N)
