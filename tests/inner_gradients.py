"""Forwards with gradients inside, by people who published them, beside torch's double backward."""

import torch
import torch.nn.functional as F
from generating import draw, labels
from torch.autograd import grad

ONE = draw(1)[0]
IMPORTS = """\
    from sympy import sign, sin
    from derive import Gather, Previous, Scan, Window
    E, J, M, Two = Axis("E"), Axis("J"), Axis("M"), Axis("Two", 2)
"""


def slope(u, *x):
    found = grad(u.sum(), x, create_graph=True)
    return found if len(x) > 1 else found[0]


def eikonal(x, w, b, v):
    return ((slope(torch.tanh(x @ w + b) @ v, x).norm(dim=1) - 1) ** 2).mean()


def softplus_eikonal(x, w, b, v):
    f = F.softplus(F.softplus(x @ w + b) @ v)
    return ((slope(f, x).norm(dim=1) - 1) ** 2 + f.abs()).mean()


def penalty(real, fake, w, b, v, c, a, t):
    """Gulrajani et al. 2017: by points between, which are no input."""
    points = t[:, None] * real + (1 - t[:, None]) * fake
    critic = F.relu(F.relu(points @ w + b) @ v + c) @ a
    return 10 * ((slope(critic, points).norm(dim=1) - 1) ** 2).mean()


def burgers(w, s, b, v, c, x, t, nu=0.01):
    """Raissi et al. 2019."""
    u = torch.tanh(x[:, None] * w + t[:, None] * s + b) @ v + c
    u_x, u_t = slope(u, x, t)
    return ((u_t + u * u_x - nu * slope(u_x, x)) ** 2).mean()


def score(s, x):
    """Hyvarinen 2005."""
    divergence = sum(slope(s[:, d], x)[:, d] for d in range(x.shape[1]))
    return ((s**2 / 2).sum(1) + divergence).mean()


def linear_score(x, w, b):
    return score(x @ w + b, x)


def one_layer_score(x, w, b, v):
    return score(torch.tanh(x @ w + b) @ v, x)


def hamiltonian(w, s, b, v, q, p, velocity, force):
    energy = torch.tanh(q[:, None] * w + p[:, None] * s + b) @ v
    by_q, by_p = slope(energy, q, p)
    return ((by_p - velocity) ** 2 + (-by_q - force) ** 2).mean()


def sobolev(x, w, b, v, target, slopes):
    f = torch.tanh(x @ w + b) @ v
    return ((f - target) ** 2 + ((slope(f, x) - slopes) ** 2).sum(1)).mean()


def r1(w, b, v, real, fake, gamma=10.0):
    of_real, of_fake = (F.softplus(x @ w + b) @ v for x in (real, fake))
    losses = F.softplus(-of_real) + F.softplus(of_fake)
    return (losses + gamma / 2 * slope(of_real, real).pow(2).sum(1)).mean()


def forces(x, s):
    """Of a row come parts from all others."""
    energy = torch.exp(-((x[:, None] - x[None]) ** 2).sum(-1) * s).sum(1) / 2
    return (slope(energy, x) ** 2).sum()


def saliency(x, w, y):
    picked = F.log_softmax(x @ w, 1).gather(1, y[:, None])
    return (slope(picked, x) ** 2).sum(1)


def largest(x, w):
    z = ((x @ w) ** 2).amax(1)
    return (slope(z, x) ** 2).sum(1) + z


def detached(x, w):
    h = torch.tanh(x * w)
    g = slope(h * h.detach() * x, x)
    return g * x + g.detach() * w


def detached_points(w, x):
    return slope(x * x.detach() * w, x) * w


def windows(x, k):
    c = F.conv1d(x[:, None], k[None, None], padding=1)[:, 0]
    return (slope(c, x) * slope(c**3, x)).sum(1)


def flattened(x, w):
    f = x.flatten(1)
    return (slope(torch.tanh(f * w), x) * slope(f * w, x)).sum(2)


def recurrence(x, a):
    states = [torch.tanh(x[:, 0])]
    for d in range(1, x.shape[1]):
        states.append(a[d] * states[-1] + torch.tanh(x[:, d]))
    return slope(torch.stack(states, 1) ** 2, x).sum(1)


def rows_of_a_table(table, w, y):
    return (slope(torch.tanh(table[y] @ w), table) ** 2).sum()


def by_a_scalar(x):
    t = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    return slope(torch.sin(x * t), t) * x


def one_step(x, w, t, rate=0.1):
    """Finn et al. 2017."""
    after = w - rate * slope((x @ w - t) ** 2, w)
    return ((x @ after - t) ** 2).sum()


def biharmonic(x, w, v):
    second = slope(slope(torch.tanh(x[:, None] * w) @ v, x), x)
    return slope(slope(second, x), x) ** 2


def mixed(x, w, v):
    u = torch.tanh(x @ w) @ v
    g = slope(u, x)
    by_x, by_y = slope(g[:, 0], x), slope(g[:, 1], x)
    return (by_x[:, 0] + by_y[:, 1]) ** 2 + by_x[:, 1] * u


X = "    x = Input(N, D)\n"
INPUTS = f"{X}    w = Input(D, H)\n    b = Input(H)\n    v = Input(H)\n"
OF_TWO = "    w = Input(H)\n    s = Input(H)\n    b = Input(H)\n    v = Input(H)\n"
MLP = "    f = Sum(tanh(Sum(x * w, D) + b) * v, H)\n"
NETWORK = [draw(5, 3), draw(3, 4), draw(4), draw(4, seed=2)]
HALVES = [draw(4, seed=k) for k in range(1, 5)]
FORWARDS = {
    eikonal: (
        INPUTS + MLP + "    normals = Gradient(f, x)\n"
        "    loss = Sum((sqrt(Sum(normals**2, D)) - 1)**2, N) / N\n",
        NETWORK,
    ),
    softplus_eikonal: (
        INPUTS + "    h = log(1 + exp(Sum(x * w, D) + b))\n    f = log(1 + exp(Sum(h * v, H)))\n"
        "    norm = sqrt(Sum(Gradient(f, x)**2, D))\n"
        "    loss = Sum((norm - 1)**2 + Abs(f), N) / N\n",
        NETWORK,
    ),
    penalty: (
        "    real = Input(N, D)\n    fake = Input(N, D)\n    w = Input(D, H)\n    b = Input(H)\n"
        "    v = Input(H, E)\n    c = Input(E)\n    a = Input(E)\n    t = Given(N)\n"
        "    points = t * real + (1 - t) * fake\n    h = Max(Sum(points * w, D) + b, 0)\n"
        "    critic = Sum(Max(Sum(h * v, H) + c, 0) * a, E)\n"
        "    norm = sqrt(Sum(Gradient(critic, points)**2, D))\n"
        "    loss = 10 * Sum((norm - 1)**2, N) / N\n",
        [
            draw(5, 3),
            draw(5, 3, seed=2),
            draw(3, 4),
            draw(4),
            draw(4, 2),
            draw(2),
            draw(2),
            draw(5),
        ],
    ),
    burgers: (
        OF_TWO + "    c = Input()\n    x = Given(N)\n    t = Given(N)\n    nu = Scalar(0.01)\n"
        "    u = Sum(tanh(x * w + t * s + b) * v, H) + c\n    u_x = Gradient(u, x)\n"
        "    residual = Gradient(u, t) + u * u_x - nu * Gradient(u_x, x)\n"
        "    loss = Sum(residual**2, N) / N\n",
        [*HALVES, ONE, draw(5), draw(5, seed=2)],
    ),
    linear_score: (
        X + "    w = Input(D, E)\n    b = Input(E)\n    X = Broadcast(x, E)\n"
        "    s = Sum(X * w, D) + b\n    slopes = Gradient(s, X)\n"
        "    own = Piecewise((slopes, Eq(Position(D), Position(E))), (0, True))\n"
        "    loss = Sum(Sum(s**2, E) / 2 + Sum(own, D, E), N) / N\n",
        [draw(5, 3), draw(3, 3), draw(3)],
    ),
    one_layer_score: (
        "    D = Axis('D', 3)\n"
        + INPUTS.replace("v = Input(H)", "v = Input(H, D)")
        + "    s = Sum(tanh(Sum(x * w, D) + b) * v, H)\n    total = Sum(s**2, D) / 2\n"
        "    for d in range(3):\n        own = Sum(OneHot(d, D) * s, D)\n"
        "        total = total + Sum(OneHot(d, D) * Gradient(own, x), D)\n"
        "    loss = Sum(total, N) / N\n",
        [draw(5, 3), draw(3, 4), draw(4), draw(4, 3)],
    ),
    hamiltonian: (
        OF_TWO
        + "    q = Given(N)\n    p = Given(N)\n    velocity = Given(N)\n    force = Given(N)\n"
        "    energy = Sum(tanh(q * w + p * s + b) * v, H)\n"
        "    missed = (Gradient(energy, p) - velocity)**2 + (-Gradient(energy, q) - force)**2\n"
        "    loss = Sum(missed, N) / N\n",
        [*HALVES, *(draw(5, seed=k) for k in range(5, 9))],
    ),
    sobolev: (
        INPUTS
        + "    target = Given(N)\n    slopes = Given(N, D)\n"
        + MLP
        + "    missed = (f - target)**2 + Sum((Gradient(f, x) - slopes)**2, D)\n"
        "    loss = Sum(missed, N) / N\n",
        [*NETWORK, draw(5, seed=3), draw(5, 3, seed=4)],
    ),
    r1: (
        "    w = Input(D, H)\n    b = Input(H)\n    v = Input(H)\n    real = Given(N, D)\n"
        "    fake = Given(N, D)\n    gamma = Scalar(10)\n"
        "    of_real = Sum(log(1 + exp(Sum(real * w, D) + b)) * v, H)\n"
        "    of_fake = Sum(log(1 + exp(Sum(fake * w, D) + b)) * v, H)\n"
        "    penalty = gamma / 2 * Sum(Gradient(of_real, real)**2, D)\n"
        "    losses = log(1 + exp(-of_real)) + log(1 + exp(of_fake)) + penalty\n"
        "    loss = Sum(losses, N) / N\n",
        [draw(3, 4), draw(4), draw(4, seed=2), draw(5, 3, seed=3), draw(5, 3, seed=4)],
    ),
    forces: (
        X + "    s = Input()\n    r2 = Sum((x - Rename(x, N, M))**2, D)\n"
        "    energy = Sum(exp(-r2 * s), M) / 2\n    loss = Sum(Gradient(energy, x)**2, N, D)\n",
        [draw(4, 3), ONE],
    ),
    saliency: (
        X + "    w = Input(D, C)\n    y = Label(N)\n    z = Sum(x * w, D)\n"
        "    picked = Sum(OneHot(y, C) * (z - log(Sum(exp(z), C))), C)\n"
        "    loss = Sum(Gradient(picked, x)**2, D)\n",
        [draw(4, 3), draw(3, 5), labels(4, 5)],
    ),
    largest: (
        X + "    w = Input(D, C)\n    z = Max(Sum(x * w, D)**2, C)\n"
        "    loss = Sum(Gradient(z, x)**2, D) + z\n",
        [draw(4, 3), draw(3, 5)],
    ),
    detached: (
        "    x = Input(N)\n    w = Input()\n    h = tanh(x * w)\n"
        "    g = Gradient(h * Detach(h) * x, x)\n    y = g * x + Detach(g) * w\n",
        [draw(5), ONE],
    ),
    detached_points: (
        "    w = Input()\n    x = Given(N)\n    y = Gradient(x * Detach(x) * w, x) * w\n",
        [ONE, draw(5)],
    ),
    windows: (
        X + "    k = Input(K)\n    c = Sum(Window(x, D, into=(D, K), padding=1) * k, K)\n"
        "    y = Sum(Gradient(c, x) * Gradient(c**3, x), D)\n",
        [draw(4, 5), draw(3)],
    ),
    flattened: (
        "    x = Input(N, D, C)\n    w = Input(J)\n    f = Flatten(x, D, C, into=J)\n"
        "    y = Sum(Gradient(tanh(f * w), x) * Gradient(f * w, x), C)\n",
        [draw(4, 2, 3), draw(6)],
    ),
    recurrence: (
        X + "    a = Input(D)\n    h = Scan(a, tanh(x), D)\n    y = Sum(Gradient(h**2, x), D)\n",
        [draw(4, 3), draw(3)],
    ),
    rows_of_a_table: (
        "    table = Input(C, D)\n    w = Input(D)\n    y = Label(N)\n"
        "    u = tanh(Sum(Gather(table, y, C) * w, D))\n"
        "    loss = Sum(Gradient(u, table)**2, C, D)\n",
        [draw(5, 3), draw(3), labels(4, 5)],
    ),
    by_a_scalar: (
        "    x = Input(N)\n    t = Scalar(0.5)\n    g = Gradient(sin(x * t), t)\n    y = g * x\n",
        [draw(5)],
    ),
    one_step: (
        X + "    w = Input(D, C)\n    t = Given(N, C)\n    rate = Scalar(0.1)\n"
        "    after = w - rate * Gradient((Sum(x * w, D) - t)**2, w)\n"
        "    loss = Sum((Sum(x * after, D) - t)**2, N, C)\n",
        [draw(4, 3), draw(3, 2), draw(4, 2)],
    ),
    biharmonic: (
        "    x = Input(N)\n    w = Input(H)\n    v = Input(H)\n    u = Sum(tanh(x * w) * v, H)\n"
        "    second = Gradient(Gradient(u, x), x)\n    y = Gradient(Gradient(second, x), x)**2\n",
        [draw(4), draw(3), draw(3, seed=2)],
    ),
    mixed: (
        "    x = Input(N, Two)\n    w = Input(Two, H)\n    v = Input(H)\n"
        "    u = Sum(tanh(Sum(x * w, Two)) * v, H)\n    g = Gradient(u, x)\n"
        "    by_x = Gradient(Sum(OneHot(0, Two) * g, Two), x)\n"
        "    by_y = Gradient(Sum(OneHot(1, Two) * g, Two), x)\n"
        "    laplacian = Sum(OneHot(0, Two) * by_x + OneHot(1, Two) * by_y, Two)\n"
        "    y = laplacian**2 + Sum(OneHot(1, Two) * by_x, Two) * u\n",
        [draw(4, 2), draw(2, 3), draw(3)],
    ),
}
