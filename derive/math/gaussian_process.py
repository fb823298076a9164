"""Regression by a Gaussian process."""

from sympy import exp, log, pi

from derive import Axis, Forward, Identity, Input, LogDet, Rename, Solve, Sum

N, M, D = Axis("N"), Axis("M"), Axis("D")  # observations, the same, features


class GaussianProcess(Forward):
    """Minus the logarithm of the marginal likelihood, with a squared exponential covariance.

    Source: Rasmussen and Williams (2006), "Gaussian processes for machine learning", equations 2.16
    and 2.30; the variance of the signal is 1.
    """

    x = Input(N, D)
    y = Input(N)
    lengthscale = Input()
    noise = Input()

    distance = Sum((x - Rename(x, N, M)) ** 2, D)
    covariance = exp(-distance / (2 * lengthscale**2)) + noise**2 * Identity(N, M)
    alpha = Solve(covariance, y, N, M)
    fit = Sum(Rename(y, N, M) * alpha, M)
    loss = (fit + LogDet(covariance, N, M) + N * log(2 * pi)) / 2
