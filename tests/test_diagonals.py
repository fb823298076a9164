"""`Identity` and `Diagonal`: equal to torch's own words, proved for every size, and without a mask
of full size.
"""

import os
import shutil

import pytest
import torch
import torch.nn.functional as F
from generating import assert_same_gradients, draw, generated, pages
from sampling import every

from codegen.driver import lean
from codegen.sharding import sharded
from codegen.sharding.counting import axes_of
from codegen.targets.languages import kernels
from codegen.targets.torch.parts import sharded_module
from codegen.targets.torch.shard_check import largest_difference_of_parts
from derive import Axis, Diagonal, Identity, NotationError, check, derive, forward_from

COMPILED = bool(os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++"))
TOLERANCE = 1e-12
HEAD = """from sympy import Eq, Ne, Piecewise, exp, log, oo, sqrt, tanh
from derive import Axis, Diagonal, Forward, Identity, Input, Position, Rename, Scalar, Sum

N, M, K, D, B = Axis("N"), Axis("M"), Axis("K"), Axis("D"), Axis("B")


class Own(Forward):
"""
SQUARE = "    a = Input(N, M)\n"
PAIRS = """    z = Input(N, D)
    w = Input(N, D)
    logits = Sum(z * Rename(w, N, M), D)
"""


def clip(z, w):
    logits, own = z @ w.mT, torch.arange(len(z))
    return (F.cross_entropy(logits, own) + F.cross_entropy(logits.mT, own)) / 2


def siglip(z, w):
    signs = 2 * torch.eye(len(z), dtype=z.dtype) - 1
    return -F.logsigmoid(signs * (z @ w.mT)).sum() / len(z)


def nt_xent(z, w):
    both = torch.cat([z, w])
    scores = (both @ both.mT).fill_diagonal_(-torch.inf)
    n = len(z)
    return F.cross_entropy(scores[:n], torch.arange(n, 2 * n))


def off_diagonal(c):
    return c - torch.diag(c.diagonal())


def barlow_twins(c, weight=0.005):
    return ((c.diagonal() - 1) ** 2).sum() + weight * (off_diagonal(c) ** 2).sum()


def vicreg(z):
    centred = z - z.mean(0)
    covariance = centred.mT @ centred / (len(z) - 1)
    return (off_diagonal(covariance) ** 2).sum() / z.shape[1]


def joseph(gain, h, p):
    return (torch.eye(len(h[0]), dtype=h.dtype) - gain @ h) @ p


SOFTPLUS = "    loss = (Sum(log(1 + exp(logits)), N, M) - Sum(Diagonal(logits, N, M), N)) / N\n"
SIGNS = "    loss = Sum(log(1 + exp(-signs * logits)), N, M) / N\n"
OFF = "    off = Sum((1 - Identity(N, M)) * a**2, N, M)\n"
CASES = {
    "trace": (
        SQUARE + "    y = Sum(Diagonal(a**2, N, M), N)\n",
        lambda a: (a**2).trace(),
        [(4, 4)],
    ),
    "diagonal": (SQUARE + "    y = exp(Diagonal(a, M, N))\n", lambda a: a.diag().exp(), [(4, 4)]),
    "put on a diagonal": (
        "    t = Input(N)\n    y = Identity(N, M) * exp(t)\n",
        lambda t: t.exp().diag(),
        [(4,)],
    ),
    "of a product": (
        PAIRS + "    y = tanh(Diagonal(logits, N, M))\n",
        lambda z, w: (z @ w.mT).diagonal().tanh(),
        [(4, 3), (4, 3)],
    ),
    "of a batch": (
        "    z = Input(N, B, D)\n    v = Input(N, B)\n    a = Sum(z * Rename(z, N, M), D)\n"
        "    y = Diagonal(exp(a), N, M) * v\n",
        lambda z, v: torch.einsum("nbd,mbd->nmb", z, z).diagonal().exp().mT * v,
        [(4, 2, 3), (4, 2)],
    ),
    "clip": (
        PAIRS + "    d = Diagonal(logits, N, M)\n    rows = log(Sum(exp(logits), M))\n"
        "    columns = log(Sum(exp(logits), N))\n"
        "    loss = (Sum(rows - d, N) + Sum(columns, M) - Sum(d, N)) / (2 * N)\n",
        clip,
        [(4, 3), (4, 3)],
    ),
    "siglip": (PAIRS + SOFTPLUS, siglip, [(4, 3), (4, 3)]),
    "siglip by signs": (
        PAIRS + "    signs = 2 * Identity(N, M) - 1\n" + SIGNS,
        siglip,
        [(4, 3), (4, 3)],
    ),
    "siglip by a choice": (
        PAIRS + "    signs = Piecewise((1, Eq(Position(N), Position(M))), (-1, True))\n" + SIGNS,
        siglip,
        [(4, 3), (4, 3)],
    ),
    "nt_xent": (
        PAIRS + "    s = Sum(z * Rename(z, N, M), D)\n"
        "    others = Piecewise((-oo, Identity(N, M) > 0), (s, True))\n"
        "    loss = Sum(log(Sum(exp(others), M) + Sum(exp(logits), M)) - Diagonal(logits, N, M), N)"
        " / N\n",
        nt_xent,
        [(4, 3), (4, 3)],
    ),
    "barlow_twins": (
        SQUARE
        + "    weight = Scalar(0.005)\n    on = Sum((Diagonal(a, N, M) - 1)**2, N)\n"
        + OFF
        + "    loss = on + weight * off\n",
        barlow_twins,
        [(4, 4)],
    ),
    "vicreg": (
        "    z = Input(K, N)\n    x = z - Sum(z, K) / K\n"
        "    a = Sum(x * Rename(x, N, M), K) / (K - 1)\n" + OFF + "    loss = off / N\n",
        vicreg,
        [(5, 4)],
    ),
    "joseph": (
        "    gain = Input(N, K)\n    h = Input(K, N)\n    p = Input(N, D)\n"
        "    a = Identity(N, M) - Sum(gain * Rename(h, N, M), K)\n"
        "    y = Sum(a * Rename(p, N, M), M)\n",
        joseph,
        [(4, 2), (2, 4), (4, 3)],
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    known = {}

    def of(name):
        if name not in known:
            folder = tmp_path_factory.mktemp("diagonals")
            known[name] = generated(written(CASES[name][0], folder), folder)
        return known[name]

    return of


def written(body, folder):
    file = folder / "own.py"
    file.write_text(HEAD + body, encoding="utf-8")
    return file


def inputs_of(name):
    return [draw(*shape, seed=k) for k, shape in enumerate(CASES[name][2])]


@pytest.mark.parametrize("name", every(3, CASES))
def test_it_is_proved_for_every_size_and_equal_to_torch(made, name):
    function, _, result = made(name)
    assert result.proved.every_size
    assert_same_gradients(function, CASES[name][1], *inputs_of(name))


@pytest.mark.parametrize("name", [name for name in CASES if "by" not in name])
def test_nothing_is_a_mask_of_full_size(made, name):
    text = made(name)[2].text.partition("Atoms(NamedTuple)")[0]
    assert "arange" not in text and "eye" not in text


@pytest.mark.parametrize(
    "name", ["trace", "put on a diagonal", "of a batch", "siglip", "barlow_twins", "joseph"]
)
def test_every_transform_of_torch(name, tmp_path):
    function, _, _ = generated(written(CASES[name][0], tmp_path), tmp_path)
    inputs = inputs_of(name)
    rows = [torch.stack([x, 2 * x, x - 1]) for x in inputs]

    def derivatives(f):
        leaves = [x.clone().requires_grad_() for x in inputs]
        first = torch.autograd.grad((f(*leaves) ** 2).sum(), leaves, create_graph=True)
        second = torch.autograd.grad(sum((g**2).sum() for g in first), leaves)
        of = torch.func.grad(lambda *xs: (f(*xs) ** 2).sum(), argnums=(*range(len(inputs)),))
        return *first, *second, torch.func.jvp(f, (*inputs,), (*inputs,))[1], *torch.vmap(of)(*rows)

    for one, other in zip(derivatives(function), derivatives(CASES[name][1]), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_closed_forms_are_those_of_a_person(made):
    expected = {
        "clip": "exp(logits - columns) - 2*Identity(M, N) + exp(logits - rows)",
        **dict.fromkeys(
            ("siglip", "siglip by signs", "siglip by a choice"),
            "dlogits = dloss*(1/(exp(-logits) + 1) - Identity(M, N))/N",
        ),
        "trace": "da = 2*dy*Identity(M, N)*a",
    }
    for name, form in expected.items():
        text = " ".join(made(name)[2].text.split())
        assert form in text, name


@pytest.mark.skipif(not COMPILED, reason="no C++ compiler")
@pytest.mark.parametrize("name", ["trace", "put on a diagonal", "siglip", "barlow_twins", "joseph"])
def test_kernels_have_them(name, tmp_path):
    forward = forward_from(written(CASES[name][0], tmp_path))
    text, _ = lean.generate(forward, kernels=kernels["cpp"]).kernels
    assert "EXPORTED(" in text


@pytest.mark.parametrize("name", ["of a batch", "siglip", "barlow_twins", "joseph"])
def test_axes_that_are_split_over_ranks(made, name, tmp_path):
    result, definition = made(name)[2], forward_from(written(CASES[name][0], tmp_path)).definition
    for axis in {*axes_of(result.program)} - {"M"}:  # which is another name of N
        split = sharded(result.whole, [axis])
        given = sharded_module(split), definition, result.whole, split
        assert largest_difference_of_parts(*given) < TOLERANCE, axis


def test_a_formula_may_use_the_words(tmp_path):
    trace = forward_from(written(CASES["trace"][0], tmp_path))
    assert check(trace, "2*a*dy*Identity(N, M)", of="a").right
    assert check(trace, "2*a*dy", of="a").right is False
    assert check(trace, "Identity(N, M)", of="a").right is False
    diagonal = forward_from(written(CASES["put on a diagonal"][0], tmp_path))
    assert check(diagonal, "exp(t)*Diagonal(dy, N, M)", of="t").right


def test_every_page_shows_it(tmp_path):
    shown = pages(derive(forward_from(written(CASES["trace"][0], tmp_path))))
    assert "1[M = N]" in shown["text"]
    assert r"\mathbf{1}[\,M = N\,]" in shown["latex"]


def test_both_axes_have_one_size(made):
    with pytest.raises(ValueError, match="N"):
        made("trace")[0](torch.ones(3, 4))


N, M = Axis("N"), Axis("M")


@pytest.mark.parametrize("axes", [(), (N,), (N, N), (N, 1), (N, M, N)])
def test_what_is_no_pair_of_axes_is_refused(axes):
    with pytest.raises(NotationError, match=r"write Identity\(N, M\)"):
        Identity(*axes)


def test_a_diagonal_of_what_lacks_an_axis_is_refused():
    with pytest.raises(NotationError, match="no axis M"):
        Diagonal(Identity(N, Axis("K")), N, M)


def test_identities_are_one_whatever_the_order():
    assert Identity(N, M) == Identity(M, N) and Identity(N, M) ** 2 == Identity(M, N) ** 2
