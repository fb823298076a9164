"""Proximal policy optimization."""

from sympy import exp

from derive import Axes, Forward, Given, Input, Max, Min, Reduced, Scalar

N = Axes("N")


class PPO(Forward):
    """The clipped surrogate of actions with their advantages, and how far the policy has moved.

    Source: Schulman et al. (2017), "Proximal policy optimization algorithms", equations 7 and 8;
    the divergence from the old policy is estimated by ``ratio - 1 - log(ratio)``.
    """

    logp = Input(N)
    logp_old = Given(N)
    advantage = Given(N)
    clip = Scalar(0.2, above=0)
    beta = Scalar(0.01)

    ratio = exp(logp - logp_old)
    clipped = Min(Max(ratio, 1 - clip), 1 + clip)
    surrogate = Min(ratio * advantage, clipped * advantage)
    divergence = ratio - 1 - (logp - logp_old)
    losses = beta * divergence - surrogate
    loss = Reduced(losses, mean=N)
