"""The loss of overlaps that weighs what is missed, and what is found in error."""

from derive import Axis, Forward, Given, Input, Scalar, Sum

N, C = Axis("N"), Axis("C")


class FocalTversky(Forward):
    """By how much the probabilities of every class do not overlap with where it is.

    Source: Abraham and Khan (2019), "A novel focal Tversky loss function with improved attention
    U-Net for lesion segmentation", equations 2 and 4, with a ``smooth`` for classes that are
    nowhere.
    """

    probs = Input(N, C)
    target = Given(N, C)
    alpha = Scalar(0.7, above=0)
    beta = Scalar(0.3, above=0)
    gamma = Scalar(4 / 3, above=0)
    smooth = Scalar(1, above=0)

    found = Sum(probs * target, N) + smooth
    wrong = alpha * Sum((1 - probs) * target, N) + beta * Sum(probs * (1 - target), N)
    share = wrong / (found + wrong)
    loss = Sum(share ** (1 / gamma), C)
