"""The contrastive loss of images and texts."""

from sympy import exp, log

from derive import Axis, Forward, Input, Rename, Sum
from derive.math.l2_normalize import L2Normalize

N, M, D = Axis("N"), Axis("M"), Axis("D")


class CLIP(Forward):
    """How well every image picks its own text among those of the batch, and every text its image.

    Source: Radford et al. (2021), "Learning transferable visual models from natural language
    supervision", figure 3.
    """

    images = Input(N, D)
    texts = Input(N, D)
    scale = Input()

    image = L2Normalize(images)
    text = L2Normalize(texts)
    logits = exp(scale) * Sum(image * Rename(text, N, M), D)
    own = exp(scale) * Sum(image * text, D)
    of_texts = log(Sum(exp(logits), M))
    of_images = log(Sum(exp(logits), N))
    loss = (Sum(of_texts - own, N) + Sum(Rename(of_images, M, N) - own, N)) / (2 * N)
