"""A loop over a fixed count is unrolled: what it binds to a name again gets a number."""

import math

import pytest
import torch
import torch.nn.functional as F
from forwards import forward_file
from generating import assert_same_gradients, draw, generated, pages
from sampling import every

from codegen.driver.lean import generate
from derive import NotationError, derive, forward_from


def spectral_norm(weight, start):
    """Miyato et al. 2018, as in torch: u and v pass no gradient."""
    v = start
    with torch.no_grad():
        for _ in range(3):
            u = F.normalize(weight @ v, dim=0)
            v = F.normalize(weight.T @ u, dim=0)
    return weight / (u @ weight @ v)


def sinkhorn(cost, a, b):
    """Cuturi 2013, differentiated through its steps."""
    kernel = (-cost).exp()
    v = torch.ones_like(b)
    for _ in range(5):
        u = a / (kernel @ v)
        v = b / (kernel.T @ u)
    return (u[:, None] * kernel * v * cost).sum()


def sinkhorn_in_logs(cost):
    n, m = cost.shape
    g = torch.zeros(m, dtype=cost.dtype)
    for _ in range(5):
        f = math.log(m) - torch.logsumexp(g - cost, 1)
        g = math.log(n) - torch.logsumexp(f[:, None] - cost, 0)
    return ((f[:, None] + g - cost).exp() * cost).sum()


def descent(x, t, w):
    """Two steps of gradient descent, as a meta-learner unrolls them."""
    for _ in range(2):
        w = w - 0.1 * ((x @ w - t)[:, None] * x).mean(0)
    return ((x @ w - t) ** 2).sum()


def newton(x):
    r = 1 + x / 2
    for _ in range(2):
        r = r - (r**2 - 1 - x) / (2 * r)
    return r


def by_weights(x, a, b):
    h = x
    for i, w in enumerate([a, b]):
        for power in (1, 2):
            h = (h * w**power + i).tanh()
    return h


FORWARDS = {
    "SpectralNorm": (
        "    weight = Input(N, D)\n    start = Given(D)\n    v = start\n"
        "    for _ in range(3):\n"
        "        u = Detach(Sum(weight * v, D))\n        u = u / sqrt(Sum(u**2, N))\n"
        "        v = Detach(Sum(weight * u, N))\n        v = v / sqrt(Sum(v**2, D))\n"
        "    y = weight / Sum(u * weight * v, N, D)\n",
        spectral_norm,
        [draw(4, 3), draw(3, seed=2)],
        1,
    ),
    "Sinkhorn": (
        "    cost = Input(N, D)\n    a = Given(N)\n    b = Given(D)\n    kernel = exp(-cost)\n"
        "    v = 1\n    for _ in range(5):\n"
        "        u = a / Sum(kernel * v, D)\n        v = b / Sum(kernel * u, N)\n"
        "    loss = Sum(u * kernel * v * cost, N, D)\n",
        sinkhorn,
        [draw(4, 3), draw(4, seed=2).softmax(0), draw(3, seed=3).softmax(0)],
        1,
    ),
    "SinkhornInLogs": (
        "    cost = Input(N, D)\n    g = 0\n    for _ in range(5):\n"
        "        f = -log(Sum(exp(g - cost), D) / D)\n"
        "        g = -log(Sum(exp(f - cost), N) / N)\n"
        "    plan = exp(f + g - cost)\n    loss = Sum(plan * cost, N, D)\n",
        sinkhorn_in_logs,
        [draw(4, 3)],
        1,
    ),
    "Descent": (
        "    x = Input(N, D)\n    t = Input(N)\n    w = Input(D)\n    for _ in range(2):\n"
        "        w -= Sum((Sum(x * w, D) - t) * x, N) / (10 * N)\n"
        "    loss = Sum((Sum(x * w, D) - t)**2, N)\n",
        descent,
        [draw(4, 3), draw(4, seed=2), draw(3, seed=3)],
        3,
    ),
    "Newton": (
        "    x = Input(N)\n    r = 1 + x / 2\n    for _ in range(2):\n"
        "        r -= (r**2 - 1 - x) / (2 * r)\n    y = r\n",
        newton,
        [draw(5).abs()],
        1,
    ),
    "ByWeights": (
        "    x = Input(N, D)\n    a = Input(D)\n    b = Input(D)\n    h = x\n"
        "    for i, w in enumerate([a, b]):\n        for power in (1, 2):\n"
        "            h = tanh(h * w**power + i)\n    y = h\n",
        by_weights,
        [draw(4, 3), draw(3, seed=2), draw(3, seed=3)],
        3,
    ),
}


@pytest.mark.parametrize("name", every(3, FORWARDS))
def test_it_is_torchs_and_proved_for_every_size(name, tmp_path):
    body, reference, inputs, count = FORWARDS[name]
    function, _, result = generated(forward_file(tmp_path, name, body), tmp_path)
    rest = inputs[count:]
    assert_same_gradients(
        lambda *x: function(*x, *rest), lambda *x: reference(*x, *rest), *inputs[:count]
    )
    assert result.proved.every_size


def names_of(body, folder, before=""):
    file = forward_file(folder, "Looped", body)
    file.write_text(file.read_text().replace("\n\nclass", f"\n\n{before}\n\nclass", 1))
    return [s.name for s in forward_from(file).definition.statements]


X = "    x = Input(N)\n"


def test_what_a_loop_binds_has_the_next_number_that_is_free(tmp_path):
    assert names_of(f"{X}    for _ in range(2): x = tanh(x)\n", tmp_path) == ["x_1", "x_2"]
    body = f"{X}    u_1 = 2 * x\n    u = u_1\n    for _ in range(2):\n        u += x\n    y = u\n"
    assert names_of(body, tmp_path) == ["u_1", "u", "u_2", "u_3", "y"]
    body = f"{X}    n = 0\n    h = x\n    while n < 2:\n        n = n + 1\n        h = h**n + x\n"
    assert names_of(body, tmp_path) == ["h", "h_1", "h_2"]


def test_a_loop_in_a_function_is_the_functions_own(tmp_path):
    step = "def step(u):\n    for k in range(2):\n        u = u + tanh(u) / (k + 1)\n    return u"
    body = f"{X}    for _ in range(2):\n        x = step(x)\n"
    assert names_of(body, tmp_path, step) == ["x_1", "x_2"]


def test_a_forward_may_be_called_in_a_loop(tmp_path):
    body = (
        "    from derive.math.softmax import Softmax\n    x = Input(N, C)\n"
        "    for _ in range(2):\n        x = Softmax(x)\n    y = x\n"
    )
    assert names_of(body, tmp_path)[-2:] == ["x_2", "y"]


def test_the_names_are_in_all_that_is_written(tmp_path):
    body, *_ = FORWARDS["Newton"]
    forward = forward_from(forward_file(tmp_path, "Newton", body))
    text = generate(forward, chain=True).chain
    assert "    r_1 = r - " in text and "    r_2 = r_1 - " in text
    assert "    r_1: Tensor  # (N,)\n    r_2: Tensor  # (N,)\n    y: Tensor" in text
    for text in pages(derive(forward_from(tmp_path / "newton.py"))).values():
        assert "r_1" in text.replace("\\", "").replace("{", "")


REFUSED = {
    "for i in range(N):\n        x = 2 * x": "a loop has as many rounds as a number says",
    "for i in N:\n        x = 2 * x": "a loop has as many rounds as a number says",
    "for row in x:\n        y = row": r"write Sum\(x, N\) or Max\(x, N\)",
    "k = Scalar(3)\n    for i in range(k):\n        x = 2 * x": "as a number says: for i in range",
    "k = Scalar(3)\n    i = 0\n    while i < k:\n        x = 2 * x": "a loop has as many rounds",
    "for i in range(2):\n        w = Input(N)\n    y = w": "w is defined already",
    "u = x\n    u = 2 * u": r"u is defined already \(line 10\)[\s\S]*write u_2 = 2 \* u",
    "for _ in range(2):\n        u = 2 * x\n    u = 3 * x": (
        r"u is defined already \(line 11\)[\s\S]*write u_3 = 3 \* x"
    ),
    "for x in range(2):\n        y = x": "x is defined already",
}


@pytest.mark.parametrize("lines", REFUSED)
def test_what_is_no_fixed_count_or_outside_of_a_loop_is_refused(lines, tmp_path):
    with pytest.raises(NotationError, match=REFUSED[lines]):
        forward_from(forward_file(tmp_path, "Refused", f"{X}    {lines}\n"))
