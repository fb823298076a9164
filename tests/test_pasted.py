"""Pasted code is read as it stands: nothing is stripped by hand, and nothing is run."""

import pytest
from sampling import every

from derive import check
from derive.claims.reading import NotUnderstood

BATCH_NORM = '''
import numpy as np

def batchnorm_backward(dout, cache):
    """Backward pass for batch normalization."""
    dx, dgamma, dbeta = None, None, None
    ###########################################################################
    x, x_norm, gamma, var, eps = cache
    N, D = dout.shape
    dbeta = np.sum(dout, axis=0)
    dgamma = np.sum(dout * x_norm, axis=0)
    dxhat = dout * gamma
    dx = (1. / N) / np.sqrt(var + eps) * (
        N * dxhat - np.sum(dxhat, axis=0) - x_norm * np.sum(dxhat * x_norm, axis=0)
    )
    return dx, dgamma, dbeta
'''
LAYER_NORM = """
def layernorm_forward(x, gamma, beta, ln_param):
    out, cache = None, None
    eps = ln_param.get("eps", 1e-5)
    return out, cache

def layernorm_backward(dout, cache):
    dx, dgamma, dbeta = None, None, None
    gamma, x_hat, inv = cache["gamma"], cache["x_hat"], cache["inv_std"]
    dbeta = dout.sum(axis=0)
    dgamma = (dout * x_hat).sum(axis=0)
    g = dout * gamma
    dx = inv * (g - g.mean(axis=1, keepdims=True)
                - x_hat * (g * x_hat).mean(axis=1, keepdims=True))
    return dx, dgamma, dbeta
"""
WITH_FORWARD = """
def layernorm_forward(x, gamma, beta, eps):
    mu = np.mean(x, axis=1, keepdims=True)
    v = np.var(x, axis=1, keepdims=True)
    std = np.sqrt(v + eps)
    x_hat = (x - mu) / std
    out = gamma * x_hat + beta
    cache = (x_hat, gamma, std)
    return out, cache

def layernorm_backward(dout, cache):
    (x_hat, gamma, std) = cache
    D = dout.shape[1]
    dgamma = np.sum(dout * x_hat, axis=0)
    dbeta = np.sum(dout, axis=0)
    dx_hat = dout * gamma
    dx = (D * dx_hat - np.sum(dx_hat, axis=1, keepdims=True)
          - x_hat * np.sum(dx_hat * x_hat, axis=1, keepdims=True)) / (D * std)
    return dx, dgamma, dbeta
"""
SOFTMAX = """
def softmax_loss(x, y):
    loss, dx = None, None
    shifted = x - np.max(x, axis=1, keepdims=True)
    Z = np.sum(np.exp(shifted), axis=1, keepdims=True)
    log_probs = shifted - np.log(Z)
    probs = np.exp(log_probs)
    N = x.shape[0]
    loss = -np.sum(log_probs[np.arange(N), y]) / N
    dx = probs.copy()
    dx[np.arange(N), y] -= 1
    dx /= N
    return loss, dx
"""
ROWS = """
def softmax_loss(x, y):
    num_train, num_classes = x.shape
    loss = 0.0
    dx = np.zeros_like(x)
    for i in range(num_train):
        scores = x[i] - np.max(x[i])
        p = np.exp(scores) / np.sum(np.exp(scores))
        loss += -np.log(p[y[i]])
        for j in range(num_classes):
            if j == y[i]:
                dx[i, j] = p[j] - 1
            else:
                dx[i, j] = p[j]
    return loss / num_train, dx / num_train
""".replace("return loss / num_train, dx / num_train", "dx /= num_train\n    return loss, dx")
CONTINUED = ROWS.replace(
    """                dx[i, j] = p[j] - 1
            else:
                dx[i, j] = p[j]
""",
    """                dx[i, j] += p[j] - 1
                continue
            dx[i, j] += p[j]
""",
)
MAKEMORE = """
dlogits = F.softmax(logits, 1)
dlogits[range(n), Yb] -= 1
dlogits /= n
"""
TABLE = """
dC = torch.zeros_like(C)
for k in range(Xb.shape[0]):
    for j in range(Xb.shape[1]):
        ix = Xb[k, j]
        dC[ix] += demb[k, j]
"""
FUNCTION = """
import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
        rstd = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight, rstd)
        ctx.eps = eps
        return x * rstd * weight

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        x, weight, rstd = ctx.saved_tensors
        grad_x = grad_weight = None
        if ctx.needs_input_grad[0]:
            g = grad_output * weight
            grad_x = rstd * (g - x * rstd**2 * (g * x).mean(dim=-1, keepdim=True))
        if ctx.needs_input_grad[1]:
            grad_weight = (grad_output * x * rstd).sum(dim=tuple(range(x.ndim - 1)))
        return grad_x, grad_weight, None
"""
SETUP = """
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, = inputs
        ctx.save_for_backward(x, output)

    @staticmethod
    def backward(ctx, dout):
        x, y = ctx.saved_tensors
        s = torch.sigmoid(x)
        return dout * (y + s * (1 - y))
"""
RIGHT = {
    "batchnorm_backward": ("batch_norm_biased", BATCH_NORM),
    "layernorm_backward": ("layer_norm", LAYER_NORM),
    "layernorm with its forward": ("layer_norm", WITH_FORWARD),
    "softmax_loss": ("cross_entropy", SOFTMAX),
    "softmax_loss, row by row": ("softmax_nll", ROWS),
    "softmax_loss, with continue": ("softmax_nll", CONTINUED),
    "makemore": ("softmax_nll", MAKEMORE),
    "makemore's table": ("mlp", TABLE),
    "a Function": ("rms_norm", FUNCTION),
    "a Function with setup_context": ("silu", SETUP),
}
LET = {
    "makemore": {"Yb": "labels"},
    "makemore's table": {"Xb": "contexts"},
    "a Function": {"weight": "gain"},
}


@pytest.mark.parametrize("name", every(2, RIGHT))
def test_right_ones_come_through_in_one_try(name):
    forward, text = RIGHT[name]
    assert check(forward, text, let=LET.get(name)).outcome == "right"


WRONG = {  # what is exchanged, and the gradient that is wrong then
    "a term is missing": (
        "batchnorm_backward",
        "N * dxhat - np.sum(dxhat, axis=0)",
        "N * dxhat",
        "dx",
    ),
    "a wrong axis": (
        "layernorm with its forward",
        "dout * x_hat, axis=0",
        "dout * x_hat, axis=1",
        "dgain",
    ),
    "of n, not n - 1": ("batchnorm_backward", "(1. / N)", "(1. / (N - 1))", "dx"),
    "a sign": ("a Function", "g - x * rstd", "g + x * rstd", "dx"),
    "a power": ("a Function", "rstd**2", "rstd", "dx"),
    "the weight is forgotten": ("a Function", "g = grad_output * weight", "g = grad_output", "dx"),
    "exchanged gradients": (
        "a Function",
        "return grad_x, grad_weight",
        "return grad_weight, grad_x",
        "dx",
    ),
    "no mean": ("makemore", "dlogits /= n", "pass", "dlogits"),
    "every row is subtracted": ("softmax_loss, row by row", "p[j] - 1", "p[j] - 2", "dlogits"),
    "one entry of two rows": ("makemore's table", "demb[k, j]", "demb[k, 0]", None),
    "the sigmoid's own": ("a Function with setup_context", "(1 - y)", "(1 - s)", "dx"),
}


@pytest.mark.parametrize("name", every(2, WRONG))
def test_wrong_ones_stay_wrong(name):
    of, before, after, wrong = WRONG[name]
    forward, text = RIGHT[of]
    assert before in text
    try:
        verdict = check(forward, text.replace(before, after), let=LET.get(of))
    except NotUnderstood:
        assert wrong is None or of == "batchnorm_backward"
        return
    assert verdict.outcome == "wrong"
    assert verdict.first_wrong.name == wrong


LOOPS = {
    "a recurrence": "dx = torch.zeros_like(x)\nfor i in range(N):\n  dx[i] = x[i]\n  dx += dy",
    "read what was written": "s = 0.0\nfor i in range(N):\n  s += x[i].sum()\n  t = s*2\ndx = s",
    "the last round": "for i in range(N):\n  a = dy[i]\ndx = dy*a",
    "each over the last": "dgain = torch.zeros_like(gain)\nfor i in range(N):\n  dgain[:] = dy[i]",
    "doubled": "dgain = torch.zeros_like(gain)\nfor i in range(N):\n  dgain += dy[i]\n  dgain *= 2",
    "some rounds alone": "a = dy\nfor i in range(N):\n  if x[i].sum() > 0:\n    a = x\ndx = a",
}


@pytest.mark.parametrize("text", LOOPS.values(), ids=LOOPS)
def test_rounds_that_depend_on_others_are_refused(text):
    with pytest.raises(NotUnderstood):
        check("batch_norm", text)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("dx = dy.copy()\ndx[x <= 0] = 0", "right"),
        ("dx = dy.copy()\ndx[x < 0] = 0", "wrong"),
        ("dy * np.heaviside(x, 0)", "right"),
        ("dy * np.heaviside(x, 1)", "wrong"),
        ("m = x.copy()\ndx = dy*(x > 0) + dy*(m.var() - ((x - x.mean())**2).mean())", "right"),
    ],
)
def test_what_numpy_alone_has_is_read_as_numpys(text, outcome):
    assert check("relu", text).outcome == outcome


def test_all_unknown_names_are_said_at_once():
    text = "dx = foo * bar * dy + baz"
    with pytest.raises(NotUnderstood) as error:
        check("batch_norm", text)
    assert "--let foo=... --let bar=... --let baz=..." in str(error.value)


def test_what_a_name_is_taken_for_is_said():
    verdict = check("batch_norm_biased", BATCH_NORM)
    assert "read as: gamma=gain, beta=bias, x_norm=xhat" in " ".join(verdict.remarks)


def test_a_word_for_one_input_is_taken_for_it_and_said():
    """A saved weight that the backward forgets: nothing else goes by that word."""
    text = FUNCTION.replace("g = grad_output * weight", "g = grad_output").replace(
        "return grad_x, grad_weight, None", "return grad_x, None, None"
    )
    verdict = check("rms_norm", text)
    assert verdict.outcome == "wrong"
    assert "weight=gain" in " ".join(verdict.remarks)
