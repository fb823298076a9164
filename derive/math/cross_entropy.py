"""The cross entropy of labels and a softmax, and what training adds to it."""

from sympy import Ne, Piecewise, exp, log, tanh

from derive import Axes, Axis, Forward, Given, Input, Kept, Label, OneHot, Reduced, Scalar, Sum

N, C, S = Axis("N"), Axis("C"), Axes("S")


class CrossEntropy(Forward):
    """The cross entropy of every row: of the softmax of its logits, relative to its label.

    Source: Goodfellow, Bengio and Courville (2016), "Deep learning", equation 6.31; the smoothed
    target is that of Szegedy et al. (2016), "Rethinking the inception architecture for computer
    vision", section 7; every class counts with its weight. Without smoothing an impossible class,
    whose logit is ``-oo``, costs nothing where it is not the label.
    """

    logits = Input(N, C, S)
    labels = Label(N, S, ignored=-100)
    weight = Given(C, default=1)
    label_smoothing = Scalar(0, at_least=0, at_most=1)

    probs = exp(logits) / Sum(exp(logits), C)
    logprobs = log(probs)
    counted = Sum(OneHot(labels, C) * weight, C)
    picked = counted * Sum(OneHot(labels, C) * logprobs, C)
    smoothing = Piecewise(
        (label_smoothing * Kept(labels) * Sum(weight * logprobs, C) / C, Ne(label_smoothing, 0)),
        (0, True),
    )
    losses = (label_smoothing - 1) * picked - smoothing
    loss = Reduced(losses, mean=Sum(counted, N, S))


class CrossEntropyZLoss(Forward):
    """The mean cross entropy, plus a cost that holds the normalizer of the softmax at 1.

    Source: Chowdhery et al. (2022), "PaLM: scaling language modeling with pathways", section 5; the
    cost is the mean over the rows that count, each alike.
    """

    logits = Input(N, C, S)
    labels = Label(N, S, ignored=-100)
    weight = Given(C, default=1)
    label_smoothing = Scalar(0, at_least=0, at_most=1)
    z_weight = Scalar(1e-4)

    entropy = CrossEntropy(logits, labels, weight, label_smoothing)
    log_z = log(Sum(exp(logits), C))
    excess = Sum(Kept(labels) * log_z**2, N, S) / Sum(Kept(labels), N, S)
    loss = entropy + z_weight * excess


class CrossEntropySoftcap(Forward):
    """The mean cross entropy of logits that are held softly between -cap and cap.

    Source: Gemma team (2024), "Gemma 2: improving open language models at a practical size",
    section 2 (logit soft-capping).
    """

    logits = Input(N, C, S)
    labels = Label(N, S, ignored=-100)
    weight = Given(C, default=1)
    label_smoothing = Scalar(0, at_least=0, at_most=1)
    cap = Scalar(30, above=0)

    capped = cap * tanh(logits / cap)
    loss = CrossEntropy(capped, labels, weight, label_smoothing)


class CrossEntropyProbabilities(Forward):
    """The cross entropy of every row, relative to a probability for each of its classes.

    Source: Goodfellow, Bengio and Courville (2016), "Deep learning", equation 3.51; smoothed and
    weighted as `CrossEntropy`.
    """

    logits = Input(N, C, S)
    target = Input(N, C, S)
    weight = Given(C, default=1)
    label_smoothing = Scalar(0, at_least=0, at_most=1)

    probs = exp(logits) / Sum(exp(logits), C)
    logprobs = log(probs)
    smoothed = (1 - label_smoothing) * target + label_smoothing / C
    losses = -Sum(smoothed * weight * logprobs, C)
    loss = Reduced(losses, mean=N * S)
