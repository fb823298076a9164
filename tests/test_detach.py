"""`Detach`: the value passes, its gradient does not; beside torch's ``detach``, typed by hand."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from forwards import forward_file
from generating import assert_same_gradients, draw, generated, pages
from torch.func import jvp, vmap

from codegen.commands.cli import gradform
from derive import Axis, NotationError, UnprovedError, derive, forward_from
from derive.claims.checking.check import check
from derive.language.detached import Detach, only_where_needed
from derive.language.symbols import Tensor
from derive.proof.proving.proof import prove

IMPORTS = "    from sympy import sign\n"


def straight_through(x):
    return x + (x.sign() - x).detach()


def vq_losses(x, e, beta):
    codebook = ((x.detach() - e) ** 2).sum(1)
    return codebook + beta * ((x - e.detach()) ** 2).sum(1)


def kto(policy, reference, desirable):
    """Ethayarajh et al. 2024: the reference point is a mean that passes no gradient."""
    rewards = policy - reference
    point = rewards.mean().clamp(min=0).detach()
    gains = torch.where(desirable > 0, rewards - point, point - rewards)
    return 1 - torch.sigmoid(gains)


def focal_weighted(logits, target):
    """Cross entropy with a weight of its own that passes no gradient."""
    logp = F.log_softmax(logits, 1)
    p = (logp.exp() * target).sum(1)
    return -((1 - p.detach()) ** 2 * (logp * target).sum(1))


def byol(online, momentum):
    """Grill et al. 2020: the target passes no gradient."""
    target = (momentum / momentum.norm(dim=1, keepdim=True)).detach()
    return 2 - 2 * (online / online.norm(dim=1, keepdim=True) * target).sum(1)


FORWARDS = {
    "StraightThrough": (
        "    x = Input(N, D)\n    y = x + Detach(sign(x) - x)\n",
        straight_through,
        [draw(4, 3)],
    ),
    "Vq": (
        "    x = Input(N, D)\n    e = Input(N, D)\n    beta = Given()\n"
        "    codebook = Sum((Detach(x) - e)**2, D)\n"
        "    commitment = Sum((x - Detach(e))**2, D)\n"
        "    loss = codebook + beta * commitment\n",
        vq_losses,
        [draw(4, 3), draw(4, 3, seed=2), torch.tensor(0.25, dtype=torch.float64)],
    ),
    "Kto": (
        "    policy = Input(N)\n    reference = Given(N)\n    desirable = Given(N)\n"
        "    rewards = policy - reference\n    mean = Sum(rewards, N) / N\n"
        "    point = Detach(Piecewise((mean, mean > 0), (0, True)))\n"
        "    gains = Piecewise((rewards - point, desirable > 0), (point - rewards, True))\n"
        "    loss = 1 - 1 / (1 + exp(-gains))\n",
        kto,
        [draw(6), draw(6, seed=2), (draw(6, seed=3) > 0).double()],
    ),
    "FocalWeighted": (
        "    logits = Input(N, C)\n    target = Given(N, C)\n    e = exp(logits)\n"
        "    p = e / Sum(e, C)\n    weight = Detach((1 - Sum(p * target, C))**2)\n"
        "    loss = -weight * Sum(target * log(p), C)\n",
        focal_weighted,
        [draw(4, 3), F.one_hot(torch.tensor([0, 2, 1, 1]), 3).double()],
    ),
    "Byol": (
        "    online = Input(N, D)\n    momentum = Input(N, D)\n"
        "    target = Detach(momentum / sqrt(Sum(momentum**2, D)))\n"
        "    loss = 2 - 2 * Sum(online / sqrt(Sum(online**2, D)) * target, D)\n",
        byol,
        [draw(4, 3), draw(4, 3, seed=2)],
    ),
    "AddedAtALabel": (  # in memory of its own, not in that of x
        "    x = Input(N, C)\n    w = Input(N)\n    labels = Label(N)\n"
        "    y = Detach(x) + OneHot(labels, C) * w\n",
        lambda x, w, labels: x.detach() + w[:, None] * F.one_hot(labels, 3),
        [draw(4, 3), draw(4, seed=2), torch.tensor([0, 2, 1, 1])],
    ),
    "OfAProduct": (  # whose second derivatives are not those of a square
        "    x = Input(N, D)\n    y = x * Detach(x)**2 + Detach(x**2) * tanh(x)\n",
        lambda x: x * x.detach() ** 2 + (x**2).detach() * x.tanh(),
        [draw(4, 3)],
    ),
}
everything = pytest.mark.parametrize("name", FORWARDS)
GIVEN = {
    "Vq": 1,
    "Kto": 2,
    "FocalWeighted": 1,
    "AddedAtALabel": 1,
}  # how many inputs, the last ones, have no gradient


def made(name, folder):
    """What is generated and the reference, of the inputs that have a gradient, and these."""
    body, reference, inputs = FORWARDS[name]
    found = generated(forward_file(folder, name, IMPORTS + body), folder)
    count = len(inputs) - GIVEN.get(name, 0)
    rest, inputs = inputs[count:], inputs[:count]

    def theirs(*x):
        return reference(*x, *rest) + 0 * sum(t.sum() for t in x)  # torch has no gradient at all

    return lambda *x: found[0](*x, *rest), theirs, inputs, found[2]


@everything
def test_it_is_torchs_and_proved_for_every_size(name, tmp_path):
    ours, theirs, inputs, result = made(name, tmp_path)
    before = [x.clone() for x in inputs]
    ours(*inputs)
    assert all(map(torch.equal, inputs, before))
    assert_same_gradients(ours, theirs, *inputs)
    assert result.proved.every_size


@everything
def test_double_backward_jvp_and_vmap_are_torchs(name, tmp_path):
    *functions, inputs, _ = made(name, tmp_path)

    def derivatives(function):
        leaves = [x.clone().requires_grad_() for x in inputs]
        first = torch.autograd.grad(function(*leaves).square().sum(), leaves, create_graph=True)
        second = torch.autograd.grad(sum((g**2).sum() for g in first), leaves)
        tangents = tuple(draw(*x.shape, seed=7) for x in inputs)
        rows = [torch.stack([x, 2 * x, x - 1]) for x in inputs]
        return [*first, *second, *jvp(function, (*inputs,), tangents), vmap(function)(*rows)]

    for one, other in zip(*map(derivatives, functions), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def test_the_code_reads_as_the_forward_does_and_saves_nothing_more(tmp_path):
    *_, result = made("StraightThrough", tmp_path)
    assert "    y = x + (torch.sign(x) - x).detach()\n    return y.to(dtype)" in result.text
    assert "save_for_backward" not in result.text
    *_, result = made("Vq", tmp_path)
    assert "ctx.save_for_backward(*inputs)" in result.text


def test_a_claim_is_of_values(tmp_path):
    """Nobody has to write in a gradient what was detached in the forward."""
    forward = forward_from(forward_file(tmp_path, "Vq", IMPORTS + FORWARDS["Vq"][0]))
    for e in ("e - x", "e - x.detach()", "Detach(e) - Detach(x)"):
        (answer,) = check(forward, f"de = 2 * dloss[:, None] * ({e})").answers
        assert answer.outcome == "right", e
    (answer,) = check(forward, "dx = 2 * dloss[:, None] * (x - e)").answers
    assert answer.outcome == "wrong"


def test_a_closed_form_that_forgets_what_is_detached_is_not_proved(tmp_path):
    """It has the right value, and a second derivative that is not that of the forward."""
    body = "    x = Input(N)\n    y = x * Detach(x)\n"
    form = derive(forward_from(forward_file(tmp_path, "Forgotten", IMPORTS + body))).closed_form
    (statement,) = form.statements
    x = form.definition.inputs[0]
    forgotten = replace(statement, expression=statement.expression.xreplace({Detach(x): x}))
    assert forgotten != statement
    with pytest.raises(UnprovedError, match="dx"):
        prove(replace(form, statements=(forgotten,)))


def test_what_has_no_gradient_is_not_detached_and_nothing_is_twice():
    n = Axis("N")
    x, w = Tensor("x", [n]), Tensor("w", [n], role="given")
    assert only_where_needed(Detach(w) * Detach(x)) == w * Detach(x)
    assert Detach(Detach(x)) == Detach(x)
    assert Detach(2) == 2
    assert x - Detach(x) != 0
    with pytest.raises(NotationError, match=r"write Detach\(x\)"):
        Detach(x, n)


def test_it_is_shown_by_its_name_in_every_format(tmp_path):
    forward = forward_from(forward_file(tmp_path, "Vq", IMPORTS + FORWARDS["Vq"][0]))
    for text in pages(derive(forward)).values():
        assert "Detach" in text


def test_torch_code_is_imported_with_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("ours.py").write_text("def product(x):\n    return (x * x.detach()).sum()\n")
    assert gradform(["import", "ours.py:product", "--axes", "x: N C"]) == 0
    assert "loss = Sum(x * Detach(x), N, C)" in Path("product_forward.py").read_text()
