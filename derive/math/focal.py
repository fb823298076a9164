"""The focal loss."""

from sympy import Piecewise

from derive import Axes, Forward, Input, Scalar, Sum
from derive.math.bce_with_logits import BCEWithLogitsNone
from derive.math.sigmoid import Sigmoid

N = Axes("N")


class FocalNone(Forward):
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
    entropies = BCEWithLogitsNone(logits, target)
    losses = balance * (1 - met) ** gamma * entropies


class FocalSum(Forward):
    """The sum over all logits.

    Source: Lin et al. (2017), "Focal loss for dense object detection", equation 5.
    """

    logits = Input(N)
    target = Input(N)
    alpha = Scalar(0.25, at_most=1)
    gamma = Scalar(2, at_least=0)

    losses = FocalNone(logits, target, alpha, gamma)
    loss = Sum(losses, N)


class Focal(Forward):
    """The mean over all logits.

    Source: Lin et al. (2017), "Focal loss for dense object detection", equation 5.
    """

    logits = Input(N)
    target = Input(N)
    alpha = Scalar(0.25, at_most=1)
    gamma = Scalar(2, at_least=0)

    losses = FocalNone(logits, target, alpha, gamma)
    loss = Sum(losses, N) / N
