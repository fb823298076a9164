"""The mathematics whose backwards `formulas.py` holds, where it is not in ``derive/math``."""

from sympy import Rational, exp, log

from derive import Axis, Forward, Input, Label, Max, OneHot, Scalar, Sum

N, C = Axis("N"), Axis("C")


class LayerNorm(Forward):
    """Layer normalization of every row."""

    x = Input(N, C)
    gain = Input(C)
    bias = Input(C)
    eps = Scalar(1e-5)

    mean = Sum(x, C) / C
    diff = x - mean
    var = Sum(diff**2, C) / C
    inv_std = (var + eps) ** Rational(-1, 2)
    xhat = diff * inv_std
    y = gain * xhat + bias


class RMSNorm(Forward):
    """Every row divided by its root mean square."""

    x = Input(N, C)
    gain = Input(C)
    eps = Scalar(1e-5)

    square = Sum(x**2, C) / C
    inv_rms = (square + eps) ** Rational(-1, 2)
    xhat = x * inv_rms
    y = gain * xhat


class SmoothedNLL(Forward):
    """Negative log likelihood of smoothed labels."""

    logits = Input(N, C)
    labels = Label(N)
    smoothing = Scalar(0.1)

    counts = exp(logits - Max(logits, C))
    probs = counts / Sum(counts, C)
    target = (1 - smoothing) * OneHot(labels, C) + smoothing / C
    loss = -Sum(target * log(probs), N, C) / N


class WeightedNLL(Forward):
    """Negative log likelihood with a weight for every class: torch's weighted mean."""

    logits = Input(N, C)
    weight = Input(C)
    labels = Label(N)

    counts = exp(logits - Max(logits, C))
    probs = counts / Sum(counts, C)
    total = Sum(OneHot(labels, C) * weight, N, C)
    loss = -Sum(OneHot(labels, C) * weight * log(probs), N, C) / total


class RowNLL(Forward):
    """Negative log likelihood of every row: reduction "none"."""

    logits = Input(N, C)
    labels = Label(N)

    counts = exp(logits - Max(logits, C))
    probs = counts / Sum(counts, C)
    loss = -Sum(OneHot(labels, C) * log(probs), C)


class SumNLL(Forward):
    """Negative log likelihood, summed: reduction "sum"."""

    logits = Input(N, C)
    labels = Label(N)

    counts = exp(logits - Max(logits, C))
    probs = counts / Sum(counts, C)
    loss = -Sum(OneHot(labels, C) * log(probs), N, C)


class TemperedNLL(Forward):
    """Mean negative log likelihood of the logits divided by a temperature."""

    logits = Input(N, C)
    labels = Label(N)
    temperature = Scalar(2.0)

    scaled = logits / temperature
    counts = exp(scaled - Max(scaled, C))
    probs = counts / Sum(counts, C)
    loss = -Sum(OneHot(labels, C) * log(probs), N, C) / N
