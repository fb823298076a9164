"""Square matrices: inverse, determinant, solutions and factor, equal to torch's and proved."""

import math

import pytest
import torch
from generating import assert_same_gradients, draw, generated
from sampling import every

from derive import NotationError, check, forward_from

HEAD = """\
from sympy import exp, log, pi, sqrt
from derive import Axis, Cholesky, Diagonal, Forward, Given, Identity, Input, Inverse, Label, LogDet
from derive import OneHot, Ordered, Rename, Solve, Sum

B, N, M, D = Axis("B"), Axis("N"), Axis("M"), Axis("D")
I, J, K, L = Axis("I"), Axis("J"), Axis("K"), Axis("L")
Two, Other, Three = Axis("Two", 2), Axis("Other", 2), Axis("Three", 3)
Q, X, Y, Z = Axis("Q", 4), Axis("X", 3), Axis("Y", 3), Axis("Z", 3)


class Own(Forward):
"""
BATCH = "    A = Input(B, I, J)\n"
MATRIX = "    A = Input(I, J)\n"
KERNEL = (
    "    x = Input(N, D)\n    y = Input(N)\n    lengthscale = Input()\n    noise = Input()\n"
    "    distance = Sum((x - Rename(x, N, M))**2, D)\n"
    "    K = exp(-distance / (2*lengthscale**2)) + noise**2 * Identity(N, M)\n"
)
GAUSSIAN_PROCESS = KERNEL + (
    "    alpha = Solve(K, y, N, M)\n"
    "    loss = (Sum(Rename(y, N, M)*alpha, M) + LogDet(K, N, M) + N*log(2*pi)) / 2\n"
)
BY_ITS_FACTOR = KERNEL + (
    "    F = Cholesky(K, N, M)\n    z = Solve(F, y, N, M)\n"
    "    loss = Sum(z**2, M)/2 + Sum(log(Diagonal(F, N, M)), N) + N*log(2*pi)/2\n"
)
GAIN = (
    "    x = Input(I)\n    P = Input(I, J)\n    H = Input(K, I)\n    R = Input(K, L)\n"
    "    PH = Sum(P * Rename(H, I, J), J)\n    S = Sum(H * Rename(PH, K, L), I) + R\n"
    "    gain = Solve(S, Rename(PH, K, L), L, K)\n"
)
NORMAL = (
    "    x = Input(B, I)\n    mean = Input(I)\n    cov = Input(I, J)\n"
    "    F = Cholesky(cov, I, J)\n    z = Solve(F, x - mean, I, J)\n"
    "    loss = Sum(z**2, J)/2 + Sum(log(Diagonal(F, I, J)), I) + I*log(2*pi)/2\n"
)
MAHALANOBIS = (
    "    x = Input(B, I)\n    mean = Input(I)\n    cov = Input(I, J)\n    u = x - mean\n"
    "    d = sqrt(Sum(Rename(u, I, J)*Solve(cov, u, I, J), J))\n"
)

# Entries of fixed axes, written one by one.
COVARIANCE = (
    "    q = Input(N, Q)\n    s = Input(N, Y)\n    u = q / sqrt(Sum(q**2, Q))\n"
    "    w = Sum(OneHot(0, Q)*u, Q)\n    x = Sum(OneHot(1, Q)*u, Q)\n"
    "    y = Sum(OneHot(2, Q)*u, Q)\n    z = Sum(OneHot(3, Q)*u, Q)\n"
    "    a = OneHot(0, Y)*(1 - 2*(y**2 + z**2)) + 2*OneHot(1, Y)*(x*y - w*z)\n"
    "    b = 2*OneHot(0, Y)*(x*y + w*z) + OneHot(1, Y)*(1 - 2*(x**2 + z**2))\n"
    "    c = 2*OneHot(0, Y)*(x*z - w*y) + 2*OneHot(1, Y)*(y*z + w*x)\n"
    "    first, second = a + 2*OneHot(2, Y)*(x*z + w*y), b + 2*OneHot(2, Y)*(y*z - w*x)\n"
    "    third = c + OneHot(2, Y)*(1 - 2*(x**2 + y**2))\n"
    "    R = Ordered(OneHot(0, X)*first + OneHot(1, X)*second + OneHot(2, X)*third, N, X, Y)\n"
    "    M = R * s\n    cov = Ordered(Sum(M * Rename(M, X, Z), Y), N, X, Z)\n"
)
PROJECTION = (
    "    t = Input(N, X)\n    cov = Input(N, X, Y)\n    fx = Given()\n    fy = Given()\n"
    "    tx = Sum(OneHot(0, X)*t, X)\n    ty = Sum(OneHot(1, X)*t, X)\n"
    "    tz = Sum(OneHot(2, X)*t, X)\n"
    "    first = fx * (OneHot(0, X)/tz - OneHot(2, X)*tx/tz**2)\n"
    "    second = fy * (OneHot(1, X)/tz - OneHot(2, X)*ty/tz**2)\n"
    "    jac = OneHot(0, Two)*first + OneHot(1, Two)*second\n"
    "    half = Sum(jac * cov, X)\n    other = Rename(Rename(jac, X, Y), Two, Other)\n"
    "    out = Ordered(Sum(half * other, Y), N, Two, Other)\n"
)


def covariance(q, s):
    w, x, y, z = (q / q.norm(dim=1, keepdim=True)).unbind(1)
    rows = [
        [1 - 2 * (y**2 + z**2), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x**2 + z**2), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x**2 + y**2)],
    ]
    scaled = torch.stack([torch.stack(row, 1) for row in rows], 1) * s[:, None]
    return scaled @ scaled.mT


FOCAL = torch.tensor(1.5).double(), torch.tensor(0.7).double()


def projected(t, cov):
    tx, ty, tz = t.unbind(1)
    zero, (fx, fy) = torch.zeros_like(tz), FOCAL
    first = torch.stack([fx / tz, zero, -fx * tx / tz**2], 1)
    second = torch.stack([zero, fy / tz, -fy * ty / tz**2], 1)
    jac = torch.stack([first, second], 1)
    return jac @ cov @ jac.mT


def definite(*shape, seed=3):
    matrix = draw(*shape, seed=seed)
    return matrix @ matrix.mT + torch.eye(shape[-1], dtype=torch.float64)


def gaussian_process(x, y, lengthscale, noise):
    squares = ((x[:, None] - x) ** 2).sum(2)
    kernel = torch.exp(-squares / (2 * lengthscale**2)) + noise**2 * torch.eye(len(x)).double()
    of_data = y @ torch.linalg.inv(kernel) @ y
    return (of_data + torch.logdet(kernel) + len(x) * math.log(2 * math.pi)) / 2


def gain(x, P, H, R):
    return P @ H.T @ torch.linalg.inv(H @ P @ H.T + R)


def normal(x, mean, cov):
    return -torch.distributions.MultivariateNormal(mean, cov).log_prob(x)


def mahalanobis(x, mean, cov):
    u = x - mean
    return torch.einsum("bi,ij,bj->b", u, torch.linalg.inv(cov), u).sqrt()


def conic(cov):
    """The inverse of a 2 x 2 matrix as it is typed by hand."""
    (a, b), (c, d) = cov.unbind(1)[0].unbind(1), cov.unbind(1)[1].unbind(1)
    rows = torch.stack([d, -b], 1), torch.stack([-c, a], 1)
    return torch.stack(rows, 1) / (a * d - b * c)[:, None, None]


LEARNED = (draw(6, 3), draw(6, seed=2), torch.tensor(1.3).double(), torch.tensor(0.4).double())
FILTER = (draw(4), definite(4, 4), draw(3, 4), definite(3, 3, seed=5))
FORWARDS = {
    "inverse": (BATCH + "    y = Inverse(A, I, J)\n", torch.linalg.inv, [draw(2, 4, 4)]),
    "logdet": (
        BATCH + "    y = LogDet(A, I, J)\n",
        lambda a: torch.linalg.slogdet(a).logabsdet,
        [draw(5, 4, 4)],  # some of them have negative determinants
    ),
    "cholesky": (BATCH + "    y = Cholesky(A, I, J)\n", torch.linalg.cholesky, [definite(2, 4, 4)]),
    "columns": (
        BATCH + "    b = Input(B, I, K)\n    y = Solve(A, b, I, J)\n",
        torch.linalg.solve,
        [draw(2, 4, 4), draw(2, 4, 3)],
    ),
    "vector": (
        MATRIX + "    b = Input(I)\n    y = Solve(A, b, I, J)\n",
        torch.linalg.solve,
        [draw(4, 4), draw(4)],
    ),
    "one matrix for many sides": (
        "    b = Input(B, I)\n" + MATRIX + "    y = Solve(A, b, I, J)\n",
        lambda b, a: torch.linalg.solve(a, b.T).T,
        [draw(3, 4), draw(4, 4)],
    ),
    "many matrices for one side": (
        BATCH + "    b = Input(I)\n    y = Solve(A, b, I, J)\n",
        lambda a, b: torch.linalg.solve(a, b.expand(len(a), -1)),
        [draw(3, 4, 4), draw(4)],
    ),
    "sides in two batches": (
        BATCH + "    b = Input(D, I, K)\n    y = Ordered(Solve(A, b, I, J), B, D, J, K)\n",
        lambda a, b: torch.linalg.solve(a[:, None], b),
        [draw(2, 4, 4), draw(3, 4, 5)],
    ),
    "transposed": (
        MATRIX + "    b = Input(J)\n    y = Solve(A, b, J, I)\n",
        lambda a, b: torch.linalg.solve(a.T, b),
        [draw(4, 4), draw(4)],
    ),
    "the batch behind": (
        "    A = Input(I, J, B)\n    y = Inverse(A, I, J)\n",
        lambda a: torch.linalg.inv(a.movedim(2, 0)).movedim(0, 2),
        [draw(4, 4, 3)],
    ),
    "columns first": (
        MATRIX + "    y = Cholesky(A, J, I)\n",
        lambda a: torch.linalg.cholesky(a).T,
        [definite(4, 4)],
    ),
    "conic": (
        "    A = Input(N, Two, Other)\n    y = Inverse(A, Two, Other)\n",
        conic,
        [definite(5, 2, 2)],
    ),
    "gaussian process": (GAUSSIAN_PROCESS, gaussian_process, LEARNED),
    "gaussian process by its factor": (BY_ITS_FACTOR, gaussian_process, LEARNED),
    "kalman mean": (
        GAIN.replace("    PH", "    y = Input(K)\n    PH", 1)
        + "    out = x + Sum(gain * (y - Sum(H*x, I)), K)\n",
        lambda x, P, H, R, y: x + gain(x, P, H, R) @ (y - H @ x),
        [*FILTER, draw(3, seed=7)],
    ),
    "kalman covariance": (
        GAIN + "    HP = Sum(H * P, I)\n    out = P - Sum(gain * HP, K)\n"
        "    loss = Sum(out**2, I, J) + Sum(x, I)\n",
        lambda x, P, H, R: ((P - gain(x, P, H, R) @ H @ P) ** 2).sum() + x.sum(),
        FILTER,
    ),
    "multivariate normal": (NORMAL, normal, [draw(5, 4), draw(4, seed=2), definite(4, 4)]),
    "covariance of a quaternion and a scale": (
        COVARIANCE,
        covariance,
        [draw(5, 4), draw(5, 3, seed=2)],
    ),
    "mahalanobis": (MAHALANOBIS, mahalanobis, [draw(5, 4), draw(4, seed=2), definite(4, 4)]),
}


def file_of(body, folder):
    file = folder / "own.py"
    file.write_text(f"{HEAD}{body}")
    return file


@pytest.mark.parametrize("name", every(3, FORWARDS))
def test_it_is_torchs_and_proved_for_every_size(name, tmp_path):
    body, reference, inputs = FORWARDS[name]
    function, _, result = generated(file_of(body, tmp_path), tmp_path)
    assert_same_gradients(function, reference, *inputs)
    assert result.proved.every_size


def test_the_gallery_is_what_the_book_writes(tmp_path):
    forward = forward_from("gaussian_process")
    function, _, result = generated(forward.definition.place.file, tmp_path)
    assert_same_gradients(function, gaussian_process, *LEARNED)
    assert result.proved.every_size


SECOND = ("inverse", "logdet", "vector", "cholesky")


@pytest.mark.parametrize("name", SECOND)
def test_second_derivatives_are_torchs(name, tmp_path):
    body, reference, inputs = FORWARDS[name]
    function, *_ = generated(file_of(body, tmp_path), tmp_path)
    leaves = [t.clone().requires_grad_() for t in inputs]
    found = []
    for own in (function, reference):
        first = torch.autograd.grad(own(*leaves).tanh().sum(), leaves, create_graph=True)
        found.append(torch.autograd.grad(sum((g**2).sum() for g in first), leaves))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


FORWARD_TWICE = (*SECOND, "one matrix for many sides", "sides in two batches")


@pytest.mark.parametrize("name", FORWARD_TWICE)
def test_forward_mode_of_forward_mode_is_right(name, tmp_path):
    """And reverse of forward. torch's own is wrong through linalg.solve and linalg.slogdet, so this
    compares with reverse of reverse.
    """
    body, reference, inputs = FORWARDS[name]
    function, _, _ = generated(file_of(body, tmp_path), tmp_path)
    of, func = tuple(range(len(inputs))), torch.func

    def loss(own):
        return lambda *tensors: own(*tensors).tanh().sum()

    hessian = func.jacrev(func.jacrev(loss(reference), of), of)(*inputs)
    for outer in (func.jacfwd, func.jacrev):
        found = outer(func.jacfwd(loss(function), of), of)(*inputs)
        torch.testing.assert_close(found, hessian, rtol=1e-9, atol=1e-9)


def test_a_factor_is_solved_as_a_triangle_and_a_matrix_is_not_inverted(tmp_path):
    text = generated(file_of(NORMAL, tmp_path), tmp_path)[2].text
    assert text.count("torch.linalg.solve_triangular(") >= 4
    assert "_solve(" not in text and "torch.linalg.inv(" not in text
    text = generated(file_of(MAHALANOBIS, tmp_path), tmp_path)[2].text
    assert "_solve(cov" in text and "triangular" not in text


def test_of_what_is_not_symmetric_the_factor_is_that_of_its_mean(tmp_path):
    body = MATRIX + "    y = Cholesky(A, I, J)\n"
    function, _, _ = generated(file_of(body, tmp_path), tmp_path)
    a = definite(4, 4) + 0.1 * draw(4, 4)
    assert_same_gradients(function, lambda a: torch.linalg.cholesky((a + a.T) / 2), a)


def test_a_singular_matrix_is_refused_when_it_is_met(tmp_path):
    function, _, _ = generated(file_of(FORWARDS["inverse"][0], tmp_path), tmp_path)
    zeros = torch.zeros(2, 3, 3, dtype=torch.float64)
    with pytest.raises(torch.linalg.LinAlgError):
        function(zeros)
    function, _, _ = generated(file_of(FORWARDS["columns"][0], tmp_path), tmp_path)
    for of in (function, torch.func.jacfwd(function)):
        with pytest.raises(RuntimeError, match=r"singular|is zero"):
            of(zeros, zeros)


def test_a_claim_is_proved_or_gets_the_transposed_one(tmp_path):
    forward = forward_from(file_of(BATCH + "    y = LogDet(A, I, J)\n", tmp_path))
    transposed = "Rename(Rename(Rename(Inverse(A, I, J), I, L), J, I), L, J)"
    assert check(forward, f"dA = dy*{transposed.replace('L', 'I_2')}").right
    assert not check(forward, "dA = dy*Inverse(A, I, J)").right


REFUSED = {
    "Inverse(A, I)": "takes the axis of the rows and that of the columns",
    "Inverse(A, I, I)": "takes the same axis twice",
    "Inverse(A, I, K)": "there is no axis K in it",
    "Solve(A, c, I, J)": "there is no axis I in it",
    "Solve(A, A, I, J)": "A lies along J, which is the axis of the solution",
    "LogDet(t, Two, Three)": "Two and Three have to be of one length",
    "Inverse(label, I, J)": "that is a label",
    "Inverse(A, I, J) * taken": "give the axis another name",
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_no_matrix_is_refused(code, tmp_path):
    body = (
        f"{MATRIX}    c = Input(K)\n    t = Input(Two, Three)\n    label = Label(I, J)\n"
        '    I_2 = Axis("I_2")\n    taken = Input(I, J, I_2)\n'
        f"    y = {code}\n"
    )
    with pytest.raises(NotationError, match=REFUSED[code]):
        forward_from(file_of(body, tmp_path))


def test_both_axes_have_one_size_when_it_is_called(tmp_path):
    function, _, _ = generated(file_of(FORWARDS["inverse"][0], tmp_path), tmp_path)
    with pytest.raises(ValueError, match=r"A must be \(B, I, I\), got \(2, 3, 4\)"):
        function(torch.zeros(2, 3, 4, dtype=torch.float64))


def test_a_gaussian_is_projected_to_the_image(tmp_path):
    function, _, result = generated(file_of(PROJECTION, tmp_path), tmp_path)
    inputs = draw(5, 3) + 3, definite(5, 3, 3)
    assert_same_gradients(lambda t, cov: function(t, cov, *FOCAL), projected, *inputs)
    assert result.proved.every_size
