"""Direct preference optimization."""

from sympy import exp, log

from derive import Axes, Forward, Given, Input, Reduced, Scalar

N = Axes("N")


class DPO(Forward):
    """How unlikely a policy makes it that the chosen answer is preferred to the rejected one.

    Source: Rafailov et al. (2023), "Direct preference optimization: your language model is secretly
    a reward model", equation 7. All four are logarithms of the probabilities of whole answers.
    """

    chosen = Input(N)
    rejected = Input(N)
    reference_chosen = Given(N)
    reference_rejected = Given(N)
    beta = Scalar(0.1)

    reward = beta * ((chosen - reference_chosen) - (rejected - reference_rejected))
    losses = log(1 + exp(-reward))
    loss = Reduced(losses, mean=N)
