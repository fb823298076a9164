"""A character-level language model: one hidden layer with batch normalization."""

from derive import Axis, Flatten, Forward, Input, Label, Scalar
from derive.math.batch_norm import BatchNorm
from derive.math.embedding import Embedding
from derive.math.linear import Linear
from derive.math.softmax_nll import SoftmaxNLL
from derive.math.tanh import Tanh

N, T = Axis("N"), Axis("T")  # examples, symbols of context
V, E = Axis("V"), Axis("E")  # symbols of the alphabet, features of a symbol
K, H = Axis("K"), Axis("H")  # features of a context, hidden units


class MLP(Forward):
    """The loss of a network that predicts the symbol that follows a context.

    Source: Bengio et al. (2003), "A neural probabilistic language model", with batch
    normalization in front of the tanh.
    """

    contexts = Label(N, T)
    labels = Label(N)
    C = Input(V, E)
    W1 = Input(K, H)
    b1 = Input(H)
    W2 = Input(H, V)
    b2 = Input(V)
    bngain = Input(H)
    bnbias = Input(H)
    eps = Scalar(1e-5, above=0)

    emb = Embedding(contexts, C)
    embcat = Flatten(emb, T, E, into=K)
    hprebn = Linear(embcat, W1, b1)
    hpreact = BatchNorm(hprebn, bngain, bnbias, eps)
    h = Tanh(hpreact)
    logits = Linear(h, W2, b2)
    loss = SoftmaxNLL(logits, labels)
