"""The contrastive loss of pairs in a batch."""

from derive import Axis, Forward, Input, Rename, Scalar, Sum
from derive.math.l2_normalize import L2Normalize
from derive.math.softmax import Logsumexp

N, M, D = Axis("N"), Axis("M"), Axis("D")


class InfoNCE(Forward):
    """How well every query picks its own key among all keys of the batch, by their cosines.

    Source: van den Oord, Li and Vinyals (2018), "Representation learning with contrastive
    predictive coding", equation 4, with the cosines and the temperature of Chen et al. (2020), "A
    simple framework for contrastive learning of visual representations", equation 1.
    """

    queries = Input(N, D)
    keys = Input(N, D)
    temperature = Scalar(0.1, above=0)

    query = L2Normalize(queries)
    key = L2Normalize(keys)
    similarity = Sum(query * Rename(key, N, M), D) / temperature
    own = Sum(query * key, D) / temperature
    of_all = Logsumexp(similarity)
    loss = Sum(of_all - own, N) / N
