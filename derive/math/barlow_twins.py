"""The loss of two views whose features are to agree, each and no other."""

from sympy import sqrt

from derive import Axis, Diagonal, Forward, Identity, Input, Rename, Scalar, Sum

N, D, E = Axis("N"), Axis("D"), Axis("E")


class BarlowTwins(Forward):
    """How far the correlations of the features of two views are from an identity.

    Source: Zbontar et al. (2021), "Barlow twins: self-supervised learning via redundancy
    reduction", equations 1 and 2; ``eps`` as in a batch norm.
    """

    first = Input(N, D)
    second = Input(N, D)
    weight = Scalar(0.005)
    eps = Scalar(1e-5, above=0)

    centred1 = first - Sum(first, N) / N
    centred2 = second - Sum(second, N) / N
    unit1 = centred1 / sqrt(Sum(centred1**2, N) / N + eps)
    unit2 = centred2 / sqrt(Sum(centred2**2, N) / N + eps)
    correlation = Sum(unit1 * Rename(unit2, D, E), N) / N
    same = Sum((Diagonal(correlation, D, E) - 1) ** 2, D)
    others = Sum((1 - Identity(D, E)) * correlation**2, D, E)
    loss = same + weight * others
