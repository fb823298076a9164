"""`Gradient`: the gradient of a statement inside of a forward; beside torch's double backward."""

from time import perf_counter

import pytest
import torch
import torch.nn.functional as F
from forwards import forward_file
from generating import assert_same_gradients, draw, generated
from torch.autograd import grad

SECONDS = 10
ONE = draw(1)[0]
IMPORTS = (
    "    from sympy import cos\n    H, E = Axis('H'), Axis('E')\n    Two = Axis('Two', 2)\n"
    "    J = Axis('J')\n"
)


def slope(u, *x):
    found = grad(u.sum(), x, create_graph=True)
    return found if len(x) > 1 else found[0]


def leaf(x):
    """A tensor that something is differentiated by, whoever calls."""
    return x if x.requires_grad else x.detach().requires_grad_()


def eikonal(x, w, b, v, c):
    normals = slope(torch.tanh(x @ w + b) @ v + c, x)
    return ((normals.norm(dim=1) - 1) ** 2).mean()


def eikonal_softplus(x, w, b, v, c):
    f = F.softplus(F.softplus(x @ w + b) @ v + c)
    return ((slope(f, x).norm(dim=1) - 1) ** 2).mean() + f.abs().mean()


def penalty(points, w, b, v, c, a):
    critic = F.relu(F.relu(points @ w + b) @ v + c) @ a
    return 10 * ((slope(critic, points).norm(dim=1) - 1) ** 2).mean()


def burgers(w, s, b, v, c, x, t, nu=0.01):
    x, t = leaf(x), leaf(t)
    u = torch.tanh(x[:, None] * w + t[:, None] * s + b) @ v + c
    u_x, u_t = slope(u, x, t)
    return ((u_t + u * u_x - nu * slope(u_x, x)) ** 2).mean()


def score_linear(x, w, b):
    return score(x, lambda x: x @ w + b)


def score_one_layer(x, w, b, v, c):
    return score(x, lambda x: torch.tanh(x @ w + b) @ v + c)


def score(x, model):
    s = model(x)
    divergence = sum(slope(s[:, d], x)[:, d] for d in range(x.shape[1]))
    return (s**2 / 2).sum(1) + divergence


def hamiltonian(w, s, b, v, q, p, velocity, force):
    q, p = leaf(q), leaf(p)
    energy = torch.tanh(q[:, None] * w + p[:, None] * s + b) @ v
    by_q, by_p = slope(energy, q, p)
    return ((by_p - velocity) ** 2 + (-by_q - force) ** 2).mean()


def sobolev(x, w, b, v, target, slopes):
    f = torch.tanh(x @ w + b) @ v
    return ((f - target) ** 2 + ((slope(f, x) - slopes) ** 2).sum(1)).mean()


def r1(w, b, v, real, fake, gamma=10.0):
    real = leaf(real)

    def critic(x):
        return F.softplus(x @ w + b) @ v

    loss = F.softplus(-critic(real)) + F.softplus(critic(fake))
    return (loss + gamma / 2 * slope(critic(real), real).pow(2).sum(1)).mean()


MLP = "    z = Sum(x * w, D) + b\n    h = tanh(z)\n    f = Sum(h * v, H)"
INPUTS = "    x = Input(N, D)\n    w = Input(D, H)\n    b = Input(H)\n    v = Input(H)\n"
BY_NAME = "    q = Given(N)\n    p = Given(N)\n"

FORWARDS = {
    "Eikonal": (
        f"{INPUTS}    c = Input()\n{MLP} + c\n    normals = Gradient(f, x)\n"
        "    loss = Sum((sqrt(Sum(normals**2, D)) - 1)**2, N) / N\n",
        eikonal,
        [draw(5, 3), draw(3, 4), draw(4), draw(4), ONE],
    ),
    "EikonalSoftplus": (
        f"{INPUTS}    c = Input()\n"
        "    h = log(1 + exp(Sum(x * w, D) + b))\n    f = log(1 + exp(Sum(h * v, H) + c))\n"
        "    norm = sqrt(Sum(Gradient(f, x)**2, D))\n"
        "    loss = Sum((norm - 1)**2 + Abs(f), N) / N\n",
        eikonal_softplus,
        [draw(5, 3), draw(3, 4), draw(4), draw(4), ONE],
    ),
    "Penalty": (
        "    points = Input(N, D)\n    w = Input(D, H)\n    b = Input(H)\n    v = Input(H, E)\n"
        "    c = Input(E)\n    a = Input(E)\n    h = Max(Sum(points * w, D) + b, 0)\n"
        "    h2 = Max(Sum(h * v, H) + c, 0)\n    critic = Sum(h2 * a, E)\n"
        "    norm = sqrt(Sum(Gradient(critic, points)**2, D))\n"
        "    loss = 10 * Sum((norm - 1)**2, N) / N\n",
        penalty,
        [draw(5, 3), draw(3, 4), draw(4), draw(4, 2), draw(2), draw(2)],
    ),
    "Burgers": (
        "    w = Input(H)\n    s = Input(H)\n    b = Input(H)\n    v = Input(H)\n    c = Input()\n"
        "    x = Given(N)\n    t = Given(N)\n    nu = Scalar(0.01)\n"
        "    u = Sum(tanh(x * w + t * s + b) * v, H) + c\n    u_x = Gradient(u, x)\n"
        "    residual = Gradient(u, t) + u * u_x - nu * Gradient(u_x, x)\n"
        "    loss = Sum(residual**2, N) / N\n",
        burgers,
        [draw(4), draw(4, seed=2), draw(4, seed=3), draw(4), ONE, draw(5), draw(5, seed=2)],
    ),
    "ScoreLinear": (
        "    x = Input(N, D)\n    w = Input(D, E)\n    b = Input(D)\n"
        "    X = Broadcast(x, E)\n    s = Sum(Rename(X, E, J) * w, D)\n",
        score_linear,
        [draw(5, 3), draw(3, 3), draw(3)],
    ),
    "Hamiltonian": (
        "    w = Input(H)\n    s = Input(H)\n    b = Input(H)\n    v = Input(H)\n"
        f"{BY_NAME}    velocity = Given(N)\n    force = Given(N)\n"
        "    energy = Sum(tanh(q * w + p * s + b) * v, H)\n"
        "    missed = (Gradient(energy, p) - velocity)**2 + (-Gradient(energy, q) - force)**2\n"
        "    loss = Sum(missed, N) / N\n",
        hamiltonian,
        [draw(4, seed=k) for k in range(4)] + [draw(5, seed=k) for k in range(4)],
    ),
    "Sobolev": (
        f"{INPUTS}    target = Given(N)\n    slopes = Given(N, D)\n{MLP}\n"
        "    missed = (f - target)**2 + Sum((Gradient(f, x) - slopes)**2, D)\n"
        "    loss = Sum(missed, N) / N\n",
        sobolev,
        [draw(5, 3), draw(3, 4), draw(4), draw(4), draw(5), draw(5, 3, seed=2)],
    ),
    "R1": (
        "    w = Input(D, H)\n    b = Input(H)\n    v = Input(H)\n    real = Given(N, D)\n"
        "    fake = Given(N, D)\n    gamma = Scalar(10)\n"
        "    of_real = Sum(log(1 + exp(Sum(real * w, D) + b)) * v, H)\n"
        "    of_fake = Sum(log(1 + exp(Sum(fake * w, D) + b)) * v, H)\n"
        "    penalty = gamma / 2 * Sum(Gradient(of_real, real)**2, D)\n"
        "    losses = log(1 + exp(-of_real)) + log(1 + exp(of_fake)) + penalty\n"
        "    loss = Sum(losses, N) / N\n",
        r1,
        [draw(3, 4), draw(4), draw(4), draw(5, 3), draw(5, 3, seed=2)],
    ),
}
GIVEN = {"Burgers": 2, "Hamiltonian": 4, "Sobolev": 2, "R1": 2}


def made(name, folder):
    body, reference, inputs = FORWARDS[name]
    start = perf_counter()
    function, _, result = generated(forward_file(folder, name, IMPORTS + body), folder)
    count = len(inputs) - GIVEN.get(name, 0)
    rest, inputs = inputs[count:], inputs[:count]

    def theirs(*x):
        return reference(*x, *rest) + 0 * sum(t.sum() for t in x)  # torch has no gradient at all

    return lambda *x: function(*x, *rest), theirs, inputs, result, perf_counter() - start


@pytest.mark.parametrize("name", FORWARDS)
def test_it_is_torchs_double_backward_and_proved_for_every_size(name, tmp_path):
    ours, theirs, inputs, result, seconds = made(name, tmp_path)
    assert_same_gradients(ours, theirs, *inputs)
    assert result.proved.every_size
    assert all(step.every_size for step in result.proved.adjoints)
    print(name, seconds)
