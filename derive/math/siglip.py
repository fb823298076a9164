"""The sigmoid loss of images and texts."""

from sympy import exp, log

from derive import Axis, Diagonal, Forward, Input, Rename, Sum
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
    # of a pair -log(sigmoid(logit)) = log(1 + exp(logit)) - logit, of every other the first alone
    loss = (Sum(log(1 + exp(logits)), N, M) - Sum(Diagonal(logits, N, M), N)) / N
