"""Survival: the partial likelihood of proportional hazards."""

from sympy import exp, log

from derive import Axis, CumSum, Forward, Given, Input, Reduced, Sum

N = Axis("N")  # subjects, by ascending time


class Cox(Forward):
    """How little the risk scores say who of those still at risk had the event, for every event; the
    subjects are sorted by ascending time.

    Source: Cox (1975), "Partial likelihood", section 2; of equal times each is at risk at those
    behind it. The divisor is that of Katzman et al. (2018), "DeepSurv", equation 4.
    """

    score = Input(N)
    event = Given(N)

    at_risk = CumSum(exp(score), N, reverse=True)
    losses = event * (log(at_risk) - score)
    loss = Reduced(losses, mean=Sum(event, N))
