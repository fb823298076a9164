"""The sigmoid loss of images and texts."""

from sympy import Eq, Piecewise, exp, log

from derive import Axis, Forward, Input, Position, Rename, Sum
from derive.math.l2_normalize import L2Normalize

N, M, D = Axis("N"), Axis("M"), Axis("D")


class Siglip(Forward):
    """How well every pair of an image and a text of a batch is told to be one, or none.

    Source: Zhai et al. (2023), "Sigmoid loss for language image pre-training", algorithm 1.
    """

    images = Input(N, D)
    texts = Input(N, D)
    scale = Input()
    bias = Input()

    image = L2Normalize(images)
    text = L2Normalize(texts)
    logits = exp(scale) * Sum(image * Rename(text, N, M), D) + bias
    label = Piecewise((1, Eq(Position(N), Position(M))), (-1, True))
    loss = Sum(log(1 + exp(-label * logits)), N, M) / N
