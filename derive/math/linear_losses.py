"""Losses of a linear layer: its logits are never all in memory."""

from sympy import Ne, Piecewise, exp, log, tanh

from derive import Axis, Forward, Given, Input, Kept, Label, Max, Min, OneHot, Scalar, Sum

N, D, V = Axis("N"), Axis("D"), Axis("V")  # rows, features, the vocabulary
T, E = Axis("T"), Axis("E")  # places of an answer, features of a teacher


class LinearCrossEntropy(Forward):
    """The mean cross entropy of labels and the logits of a linear layer.

    Source: Wijmans et al. (2025), "Cut your losses in large-vocabulary language models", section 3;
    options as in `CrossEntropy`, `CrossEntropySoftcap` and `CrossEntropyZLoss`. A ``softcap`` of 0
    is none.
    """

    hidden = Input(N, D)
    weight = Input(V, D)
    labels = Label(N, ignored=-100)
    class_weight = Given(V, default=1)
    label_smoothing = Scalar(0, at_least=0, at_most=1)
    softcap = Scalar(0, at_least=0)
    z_weight = Scalar(0)
    chunked = N

    products = Sum(hidden * weight, D)
    logits = Piecewise(
        (softcap * tanh(products / softcap), Ne(softcap, 0)),
        (products, True),
    )
    log_z = log(Sum(exp(logits), V))
    counted = Sum(OneHot(labels, V) * class_weight, V)
    picked = Sum(OneHot(labels, V) * class_weight * logits, V) - counted * log_z
    smoothing = Piecewise(
        (
            Kept(labels) * (Sum(class_weight * logits, V) - log_z * Sum(class_weight, V)) / V,
            Ne(label_smoothing, 0),
        ),
        (0, True),
    )
    losses = (label_smoothing - 1) * picked - label_smoothing * smoothing
    excess = Sum(Kept(labels) * log_z**2, N) / Sum(Kept(labels), N)
    loss = Sum(losses, N) / Sum(counted, N) + z_weight * excess


class LinearKL(Forward):
    """The divergence of a student's distribution from a teacher's, both of linear layers.

    Source: Hinton, Vinyals and Dean (2015), "Distilling the knowledge in a neural network",
    section 2: gradients of softened targets are multiplied by the temperature squared.
    """

    student = Input(N, D)
    student_weight = Input(V, D)
    teacher = Given(N, E)
    teacher_weight = Given(V, E)
    temperature = Scalar(1, above=0)
    chunked = N

    logits = Sum(student * student_weight, D) / temperature
    targets = Sum(teacher * teacher_weight, E) / temperature
    logq = logits - log(Sum(exp(logits), V))
    logp = targets - log(Sum(exp(targets), V))
    losses = Sum(exp(logp) * (logp - logq), V)
    loss = temperature**2 * Sum(losses, N) / N


class LinearDPO(Forward):
    """Direct preference optimization of answers whose tokens have the logits of a linear layer.

    Source: Rafailov et al. (2023), "Direct preference optimization: your language model is secretly
    a reward model", equation 7. The reference's logarithms are of whole answers.
    """

    chosen = Input(N, T, D)
    rejected = Input(N, T, D)
    weight = Input(V, D)
    chosen_labels = Label(N, T, ignored=-100)
    rejected_labels = Label(N, T, ignored=-100)
    reference_chosen = Given(N)
    reference_rejected = Given(N)
    beta = Scalar(0.1)
    chunked = N

    zc = Sum(chosen * weight, D)
    zr = Sum(rejected * weight, D)
    c = Sum(OneHot(chosen_labels, V) * zc, V) - Kept(chosen_labels) * log(Sum(exp(zc), V))
    r = Sum(OneHot(rejected_labels, V) * zr, V) - Kept(rejected_labels) * log(Sum(exp(zr), V))
    reward = beta * (Sum(c, T) - Sum(r, T) - reference_chosen + reference_rejected)
    loss = Sum(log(1 + exp(-reward)), N) / N


class LinearGRPO(Forward):
    """Group relative policy optimization of tokens that have the logits of a linear layer.

    Source: Shao et al. (2024), "DeepSeekMath: pushing the limits of mathematical reasoning in open
    language models", equations 3 and 4, as the mean over all tokens.
    """

    hidden = Input(N, D)
    weight = Input(V, D)
    labels = Label(N, ignored=-100)
    logp_old = Given(N)
    logp_reference = Given(N)
    advantage = Given(N)
    clip = Scalar(0.2, above=0)
    beta = Scalar(0.04)
    chunked = N

    logits = Sum(hidden * weight, D)
    logp = Sum(OneHot(labels, V) * logits, V) - log(Sum(exp(logits), V))
    ratio = exp(logp - logp_old)
    surrogate = Min(ratio * advantage, Min(Max(ratio, 1 - clip), 1 + clip) * advantage)
    divergence = exp(logp_reference - logp) - (logp_reference - logp) - 1
    losses = Kept(labels) * (beta * divergence - surrogate)
    loss = Sum(losses, N) / Sum(Kept(labels), N)
