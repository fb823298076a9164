"""The selective state space model."""

from sympy import exp

from derive import Axis, Forward, Input, Scan, Sum

N, T = Axis("N"), Axis("T")  # examples, places
K, S = Axis("K"), Axis("S")  # channels, states of a channel


class SelectiveScan(Forward):
    """For every channel a linear recurrence whose step size, input and output depend on the place.

    Source: Gu and Dao (2023), "Mamba: linear-time sequence modeling with selective state spaces",
    algorithm 2, with the simplified step for B of its implementation.
    """

    x = Input(N, T, K)
    delta = Input(N, T, K)
    A = Input(K, S)
    B = Input(N, T, S)
    C = Input(N, T, S)
    D = Input(K)

    decay = exp(delta * A)
    h = Scan(decay, delta * B * x, T)
    y = Sum(h * C, S) + D * x
