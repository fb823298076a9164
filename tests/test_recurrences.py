"""Recurrences that are not linear in the state, beside loops typed by hand: a statement that reads
itself, or a later one, at the place before.
"""

from pathlib import Path

import pytest
import torch
from generating import draw, generated

TOLERANCE = 1e-10
HEAD = """from sympy import Eq, Piecewise, exp, log, tanh
from derive import At, Axis, Forward, Given, Input, Label, Max, OneHot, Outputs, Position, Previous
from derive import CumSum, Next, Rename, Scalar, Sum

N, T, K, H, J = (Axis(name) for name in "NTKHJ")
S, R, C, V = (Axis(name) for name in "SRCV")
D = Axis("D", 3)
FAR = -(10**30)  # below every score


class Recurrent(Forward):
"""
ELMAN = """    x = Input(N, T, K)
    weight_ih = Input(H, K)
    weight_hh = Input(H, J)
    bias = Input(H)
    h0 = Input(N, H, default=0)
    from_input = Sum(x * weight_ih, K) + bias
    h = tanh(from_input + Sum(Rename(Previous(h, T, initial=h0), H, J) * weight_hh, J))
"""
RELU = """    x = Input(N, T, H)
    w = Input(H, J)
    v = Input(C, H)
    h = Max(x + Sum(Rename(Previous(h, T), H, J) * w, J), 0)
    y = Sum(h * v, H)
"""
GRU = """    r_in = Input(N, T, H)
    z_in = Input(N, T, H)
    n_in = Input(N, T, H)
    h0 = Input(N, H)
    w_r = Input(H, J)
    w_z = Input(H, J)
    w_n = Input(H, J)
    before = Previous(h, T, initial=h0)
    along = Rename(before, H, J)
    r = 1 / (1 + exp(-r_in - Sum(w_r * along, J)))
    z = 1 / (1 + exp(-z_in - Sum(w_z * along, J)))
    n = tanh(n_in + r * Sum(w_n * along, J))
    h = (1 - z) * n + z * before
"""
LSTM = """    pre = Input(N, T, H)
    w = Input(H, J)
    u = Input(H, J)
    h0 = Input(N, H)
    c0 = Input(N, H)
    along = Rename(Previous(h, T, initial=h0), H, J)
    gate = 1 / (1 + exp(-pre - Sum(w * along, J)))
    c = gate * Previous(c, T, initial=c0) + (1 - gate) * tanh(pre + Sum(u * along, J))
    h = gate * tanh(c)
    outputs = Outputs(h, c)
"""
DELTA = """    q = Input(N, T, K)
    k = Input(N, T, K)
    v = Input(N, T, V)
    beta = Input(N, T)
    before = Previous(state, T)
    state = before + beta * k * (v - Sum(before * k, K))
    y = Sum(state * q, K)
"""
LEAKY = """    x = Input(N, T)
    leak = Input()
    u = leak * Previous(u, T) * (1 - tanh(Previous(u, T))) + x
    y = Sum(u**2, T)
"""
MOMENTUM = """    A = Input(H, J)
    noise = Input(T, H)
    w0 = Input(H)
    rate = Scalar(0.1)
    mu = Scalar(0.9)
    before = Previous(w, T, initial=w0)
    slope = Sum(A * Rename(before, H, J), J) + noise
    m = mu * Previous(m, T) + slope
    w = before - rate * m
    loss = Sum(w**2, T, H)
"""
MASKED = """    x = Input(N, T, H)
    mask = Given(N, T)
    w = Input(H, J)
    h0 = Input(N, H)
    before = Previous(h, T, initial=h0)
    new = tanh(x + Sum(w * Rename(before, H, J), J))
    h = Piecewise((new, mask > 0), (before, True))
"""
HMM = """    start = Input(S)
    change = Input(R, S)
    emitted = Input(N, T, S)
    mask = Given(N, T)
    before = Previous(alpha, T, initial=start)
    new = log(Sum(exp(Rename(before, S, R) + change), R)) + emitted
    alpha = Piecewise((new, mask > 0), (before, True))
    last = Sum(Piecewise((alpha, Eq(Position(T), T - 1)), (0, True)), T)
    y = log(Sum(exp(last), S))
"""
VITERBI = """    start = Input(S)
    change = Input(R, S)
    emitted = Input(N, T, S)
    best = Max(Rename(Previous(best, T, initial=start), S, R) + change, R) + emitted
    y = Max(Sum(Piecewise((best, Eq(Position(T), T - 1)), (0, True)), T), S)
"""
ALTERNATING = """    x = Input(N, T)
    a = tanh(x + Previous(b, T))
    b = x * Previous(a, T, initial=1)
    y = a + b
"""
BEFORE_AND_BEHIND = """    x = Input(N, T)
    w = Input(T)
    total = CumSum(x, T) * w
    h = tanh(total + Previous(h, T) ** 2)
    y = Sum(Next(h, T) * h, T)
"""


def over(step, count, *states):
    """The states that ``step(t, *states)`` makes of one another, along dimension 1."""
    found = []
    for t in range(count):
        states = step(t, *states)
        found.append(states)
    return [torch.stack(each, 1) for each in zip(*found, strict=True)]


def elman(x, w, u, b, h0):
    return over(lambda t, h: (torch.tanh(x[:, t] @ w.T + b + h @ u.T),), x.shape[1], h0)[0]


def relu(x, w, v):
    zero = torch.zeros_like(x[:, 0])
    return over(lambda t, h: ((x[:, t] + h @ w.T).relu(),), x.shape[1], zero)[0] @ v.T


def gru(r_in, z_in, n_in, h0, w_r, w_z, w_n):
    def step(t, h):
        r = torch.sigmoid(r_in[:, t] + h @ w_r.T)
        z = torch.sigmoid(z_in[:, t] + h @ w_z.T)
        n = torch.tanh(n_in[:, t] + r * (h @ w_n.T))
        return ((1 - z) * n + z * h,)

    return over(step, r_in.shape[1], h0)[0]


def lstm(pre, w, u, h0, c0):
    def step(t, h, c):
        gate = torch.sigmoid(pre[:, t] + h @ w.T)
        c = gate * c + (1 - gate) * torch.tanh(pre[:, t] + h @ u.T)
        return gate * torch.tanh(c), c

    return tuple(over(step, pre.shape[1], h0, c0))


def delta(q, k, v, beta):
    def step(t, state):
        read = torch.einsum("nkv,nk->nv", state, k[:, t])
        write = beta[:, t, None] * (v[:, t] - read)
        return (state + k[:, t, :, None] * write[:, None],)

    zero = k.new_zeros(*k[:, 0].shape, v.shape[-1])
    return torch.einsum("ntkv,ntk->ntv", over(step, k.shape[1], zero)[0], q)


def leaky(x, leak):
    zero = torch.zeros_like(x[:, 0])
    u = over(lambda t, u: (leak * u * (1 - torch.tanh(u)) + x[:, t],), x.shape[1], zero)[0]
    return (u**2).sum(1)


def momentum(a, noise, w0):
    w, m, loss = w0, torch.zeros_like(w0), 0.0
    for each in noise:
        m = 0.9 * m + a @ w + each
        w = w - 0.1 * m
        loss = loss + (w**2).sum()
    return loss


def masked(x, mask, w, h0):
    def step(t, h):
        return (torch.where(mask[:, t, None] > 0, torch.tanh(x[:, t] + h @ w.T), h),)

    return over(step, x.shape[1], h0)[0]


def hmm(start, change, emitted, mask):
    def step(t, alpha):
        new = (alpha[:, :, None] + change).logsumexp(1) + emitted[:, t]
        return (torch.where(mask[:, t, None] > 0, new, alpha),)

    first = start.expand(emitted.shape[0], -1)
    return over(step, emitted.shape[1], first)[0][:, -1].logsumexp(1)


def viterbi(start, change, emitted):
    def step(t, best):
        return ((best[:, :, None] + change).max(1).values + emitted[:, t],)

    first = start.expand(emitted.shape[0], -1)
    return over(step, emitted.shape[1], first)[0][:, -1].max(1).values


def alternating(x):
    def step(t, a, b):
        return torch.tanh(x[:, t] + b), x[:, t] * a

    ones = torch.ones_like(x[:, 0])
    return sum(over(step, x.shape[1], ones, 0 * ones))


def before_and_behind(x, w):
    total = x.cumsum(1) * w
    zero = torch.zeros_like(x[:, 0])
    h = over(lambda t, h: (torch.tanh(total[:, t] + h**2),), x.shape[1], zero)[0]
    return (h[:, 1:] * h[:, :-1]).sum(1)


X = draw(3, 5, 2)
MASK = (draw(3, 5, seed=3) > -0.5).double()
CASES = {
    "elman": (ELMAN, elman, draw(3, 5, 4), draw(2, 4), draw(2, 2), draw(2), draw(3, 2)),
    "relu": (RELU, relu, X, draw(2, 2), draw(4, 2)),
    "gru": (GRU, gru, X, X.cos(), X.sin(), draw(3, 2), *(draw(2, 2, seed=i) for i in range(3))),
    "lstm": (LSTM, lstm, X, draw(2, 2), draw(2, 2, seed=1), draw(3, 2), draw(3, 2, seed=1)),
    "delta rule": (DELTA, delta, X, X.cos(), draw(3, 5, 4), draw(3, 5).sigmoid()),
    "leaky": (LEAKY, leaky, draw(3, 5), torch.tensor(0.7)),
    "momentum": (MOMENTUM, momentum, draw(3, 3), draw(5, 3), draw(3)),
    "masked": (MASKED, masked, X, MASK, draw(2, 2), draw(3, 2)),
    "hmm": (HMM, hmm, draw(2), draw(2, 2), X, MASK),
    "viterbi": (VITERBI, viterbi, draw(2), draw(2, 2), X),
    "alternating": (ALTERNATING, alternating, draw(3, 5)),
    "before and behind": (BEFORE_AND_BEHIND, before_and_behind, draw(3, 5), draw(5)),
}
GIVEN = {"masked": 1, "hmm": 3}  # which of the inputs has no gradient


def file_of(folder, body: str) -> Path:
    file = folder / "recurrent.py"
    file.write_text(HEAD + body, encoding="utf-8")
    return file


def assert_as_typed(ours, reference, inputs, given=None):
    """Outputs and gradients, in float64."""

    def run(function):
        leaves = [t.double().clone().requires_grad_(i != given) for i, t in enumerate(inputs)]
        outputs = function(*leaves)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        ups = [draw(max(o.numel(), 1), seed=7 + i).reshape(o.shape) for i, o in enumerate(outputs)]
        wanted = [leaf for leaf in leaves if leaf.requires_grad]
        return [*outputs, *torch.autograd.grad(outputs, wanted, ups)]

    for one, other in zip(run(ours), run(reference), strict=True):
        assert one.shape == other.shape
        torch.testing.assert_close(one, other, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("name", CASES)
def test_a_recurrence_is_the_loop_and_its_gradients_autograds(name, tmp_path):
    body, reference, *inputs = CASES[name]
    ours, _, result = generated(file_of(tmp_path, body), tmp_path)
    assert_as_typed(ours, reference, inputs, GIVEN.get(name))
    assert result.proved.every_size or name == "viterbi"
    assert "by induction from place to place" in result.proved.summary
