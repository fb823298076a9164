"""Norms of rows."""

from sympy import Abs, Eq, Piecewise, sqrt

from derive import Axes, Axis, Forward, Input, Max, Scalar, Sum

N, C = Axes("N"), Axis("C")


class Norm(Forward):
    """The Euclidean length of every row; of a row of zeros the gradient is 0, as torch has it.

    Source: ``torch.linalg.vector_norm``, with its order 2.
    """

    x = Input(N, C)

    squares = Sum(x**2, C)
    y = Piecewise((0, Eq(squares, 0)), (sqrt(squares), True))


class Norm1(Forward):
    """The sum of the magnitudes of every row.

    Source: ``torch.linalg.vector_norm``, with its order 1.
    """

    x = Input(N, C)

    y = Sum(Abs(x), C)


class NormInf(Forward):
    """The largest magnitude of every row; of equal ones the gradient is that of the first.

    Source: ``torch.linalg.vector_norm``, with its order inf, which divides it among equals.
    """

    x = Input(N, C)

    y = Max(Abs(x), C)


class NormP(Forward):
    """The p-th root of the sum of the p-th powers of magnitudes, of every row.

    Source: ``torch.linalg.vector_norm``; of a row of zeros the gradient is 0, as torch has it.
    """

    x = Input(N, C)
    p = Scalar(3, above=1)

    powers = Sum(Abs(x) ** p, C)
    y = Piecewise((0, Eq(powers, 0)), (powers ** (1 / p), True))
