"""Rotary embedding of positions."""

from derive import Axes, Axis, Forward, Given, Input, Shift

N = Axes("N")  # examples, heads
T, E = Axis("T"), Axis("E")  # positions, entries of a head
D = Axis("D", E / 2)  # half of a head


class RotaryEmbedding(Forward):
    """Every entry and the one half a head further turned by an angle that its position gives.

    Source: Su et al. (2021), "RoFormer: enhanced transformer with rotary position embedding",
    equation 34, with the halves of a head as pairs, as GPT-NeoX and Llama have it.
    """

    x = Input(N, T, E)
    cosine = Given(T, E)
    sine = Given(T, E)

    turned = Shift(x, E, D) - Shift(x, E, -D)
    y = x * cosine + turned * sine
