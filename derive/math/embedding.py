"""Embedding: rows of a table, picked by an index."""

from derive import Axes, Axis, Forward, Input, Label, OneHot, Sum

N = Axes("N")
V, E = Axis("V"), Axis("E")


class Embedding(Forward):
    """For every index its row of the table.

    Source: Bengio et al. (2003), "A neural probabilistic language model", equation 5 (the matrix
    C of feature vectors).
    """

    index = Label(N)
    table = Input(V, E)

    y = Sum(OneHot(index, V) * table, V)
