"""Recurrences along an axis beside loops typed by hand, their theorems at explicit sizes, and what
is refused.
"""

import pytest
import torch
from generating import assert_same_gradients, draw, generated, pages
from sympy import Integer, exp, log
from torch.func import jvp, vmap

from codegen.commands.cli import gradform
from codegen.targets.torch import _helpers
from derive import Axes, Axis, Forward, Input, Label, NotationError, check, derive, forward_from
from derive.gradient.range.exponents import Definitions
from derive.language.nodes import GoneAlong, LogCumSumExp, LogCumSumExpBack
from derive.language.scans import KINDS, CumProd, CumSum, Recurrence, Scan
from derive.language.symbols import Tensor

B, T, K = (Axis(name) for name in "BTK")
HEAD = """from sympy import Eq, Piecewise, exp, log
from derive import Axis, CumMax, CumProd, CumSum, Forward, Given, Input, Next, Position, Previous
from derive import Rename, Scalar, Scan, Sum

B, T, K, S, R = (Axis(name) for name in "BTKSR")
M = Axis("M")


class Gone(Forward):
"""


def file_of(folder, body: str):
    file = folder / "gone.py"
    lines = (f"    {line.strip()}\n" for line in body.split(";"))
    file.write_text(HEAD + "".join(lines), encoding="utf-8")
    return file


def loop(a, b, h=0.0):
    """Along the last dimension."""
    states = []
    for t in range(b.shape[-1]):
        h = a[..., t] * h + b[..., t]
        states.append(h)
    return torch.stack(states, -1)


def selective(x, delta, a, b, c, d):
    state, found = 0, []
    for t in range(x.shape[1]):
        decay = torch.exp(delta[:, t, :, None] * a)
        state = decay * state + delta[:, t, :, None] * b[:, t, None] * x[:, t, :, None]
        found.append((state * c[:, t, None]).sum(-1))
    return torch.stack(found, 1) + d * x


def attended(q, k, v):
    scores = torch.einsum("bte,bse->bts", q, k).tril()
    return scores @ v / scores.sum(-1, keepdim=True)


def advantages(reward, value, done):
    """Generalized advantage estimation, from the last step back."""
    gamma, smooth, last, found = 0.99, 0.95, 0.0, []
    for t in reversed(range(reward.shape[-1])):
        ahead = value[..., t + 1] if t + 1 < reward.shape[-1] else 0.0
        delta = reward[..., t] + gamma * ahead * (1 - done[..., t]) - value[..., t]
        last = delta + gamma * smooth * (1 - done[..., t]) * last
        found.append(last)
    return torch.stack(found[::-1], -1)


def behind(x):
    return torch.cat([x[..., 1:], torch.zeros_like(x[..., :1])], -1)


X, W = draw(3, 5), draw(5)
P = draw(3, 5).abs() + 0.1

# name: (class body, reference, inputs)
CASES = {
    "quadratic form": (
        "x = Input(B, T); w = Input(T); y = Sum(w * CumSum(x, T)**2, T)",
        lambda x, w: (w * x.cumsum(1) ** 2).sum(1),
        X,
        W,
    ),
    "from the end": (
        "x = Input(B, T); y = x * CumSum(x**2, T, reverse=True)",
        lambda x: x * (x**2).flip(1).cumsum(1).flip(1),
        X,
    ),
    "without its own": (
        "x = Input(B, T); y = x * CumSum(x, T, exclusive=True) * "
        "CumSum(x, T, exclusive=True, reverse=True)",
        lambda x: x * (x.cumsum(1) - x) * (x.flip(1).cumsum(1).flip(1) - x),
        X,
    ),
    "product": ("x = Input(B, T); y = CumProd(x, T)", lambda x: x.cumprod(1), X),
    "product before": (
        "x = Input(B, T); y = x * CumProd(1 - x, T, exclusive=True)",
        lambda x: x * torch.cat([torch.ones(3, 1), (1 - x).cumprod(1)[:, :-1]], 1),
        X,
    ),
    "recurrence": (
        "a = Input(B, T); b = Input(B, T); h0 = Input(B); y = Scan(a, b, T, initial=h0)**2",
        lambda a, b, h: loop(a, b, h) ** 2,
        X,
        P,
        draw(3),
    ),
    "states before": (
        "b = Input(B, T); a = Input(T); h0 = Input(B); "
        "y = b * Scan(a, b, T, initial=h0, exclusive=True)",
        lambda b, a, h: b * torch.cat([h[:, None], loop(a, b, h)[:, :-1]], 1),
        X,
        W,
        draw(3),
    ),
    "recurrence from the end": (
        "b = Input(B, T); a = Input(T); y = Scan(a, b, T, reverse=True)",
        lambda b, a: loop(a.flip(0), b.flip(1)).flip(1),
        X,
        W,
    ),
    "states behind": (
        "a = Input(B, T); b = Input(B, T); y = b * Scan(a, b, T, reverse=True, exclusive=True)",
        lambda a, b: b * behind(loop(a.flip(1), b.flip(1)).flip(1)),
        X,
        P,
    ),
    "transposed": (
        "a = Input(B, T); b = Input(B, T); y = Scan(a, b, T, transposed=True)**2",
        lambda a, b: loop(behind(a).flip(1), b.flip(1)).flip(1) ** 2,
        X,
        P,
    ),
    "steps": (
        "x = Input(B, T); y = Previous(x, T, initial=2) * Next(x, T)",
        lambda x: torch.cat([torch.full((3, 1), 2.0), x[:, :-1]], 1) * behind(x),
        X,
    ),
    "moving average": (
        "x = Input(B, T); k = Input(); y = Scan(1 - k, k * x, T)",
        lambda x, k: loop((1 - k).expand(5), k * x),
        X,
        draw(1)[0],
    ),
    "discounted returns": (
        "r = Input(B, T); gamma = Scalar(0.9); y = Scan(gamma, r, T, reverse=True)",
        lambda r: loop(torch.full_like(W, 0.9), r.flip(1)).flip(1),
        X,
    ),
    "advantages": (
        "reward = Input(B, T); value = Input(B, T); done = Input(B, T); gamma = Scalar(0.99); "
        "smooth = Scalar(0.95); delta = reward + gamma * (1 - done) * Next(value, T) - value; "
        "y = Scan(gamma * smooth * (1 - done), delta, T, reverse=True)",
        advantages,
        X,
        draw(3, 5),
        (draw(3, 5) > 0).double(),
    ),
    "largest so far": (
        "x = Input(B, T); y = CumMax(x, T)**2",
        lambda x: x.cummax(1).values ** 2,
        X,
    ),
    "logarithm": (
        "x = Input(B, T); y = log(CumSum(exp(x), T))",
        lambda x: x.logcumsumexp(1),
        X,
    ),
    "at an index": (
        "x = Input(B, T); y = Sum(x, T) * Sum(Piecewise((CumSum(x, T), "
        "Eq(Position(T), 2)), (0, True)), T)",
        lambda x: x.sum(1) * x.cumsum(1)[:, 2],
        X,
    ),
    "along another axis": (
        "x = Input(B, T); u = CumSum(x, T); y = Sum(u * Sum(Rename(u, T, M)**2, M), T)",
        lambda x: x.cumsum(1).sum(1) * (x.cumsum(1) ** 2).sum(1),
        X,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_those_of_torch(name, tmp_path):
    body, reference, *inputs = CASES[name]
    function, _module, result = generated(file_of(tmp_path, body), tmp_path)
    assert_same_gradients(function, reference, *inputs)
    assert result.proved.every_size


GALLERY = {
    "selective_scan": (
        selective,
        draw(2, 5, 3),
        draw(2, 5, 3).abs(),
        -draw(3, 4).abs(),
        draw(2, 5, 4),
        draw(2, 5, 4),
        draw(3),
    ),
    "linear_attention": (
        lambda q, k, v: attended(1 + torch.nn.functional.elu(q), 1 + torch.nn.functional.elu(k), v),
        draw(2, 5, 3),
        draw(2, 5, 3),
        draw(2, 5, 4),
    ),
    "alpha_compositing": (
        lambda alpha, color: (
            (alpha * torch.cat([torch.ones(3, 1), (1 - alpha).cumprod(1)[:, :-1]], 1))[..., None]
            * color
        ).sum(1),
        draw(3, 5).sigmoid(),
        draw(3, 5, 2),
    ),
}


def cox(score, event):
    at_risk = torch.stack([score[i:].logsumexp(0) for i in range(len(score))])
    return (event * (at_risk - score)).sum() / event.sum()


@pytest.mark.parametrize("name", [*GALLERY])
def test_the_gallery_is_what_the_papers_write(name, tmp_path):
    reference, *inputs = GALLERY[name]
    forward = forward_from(name)
    function, _module, result = generated(forward.definition.place.file, tmp_path)
    assert_same_gradients(function, reference, *inputs)
    assert result.proved.every_size


EVENTS = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])


def test_a_likelihood_that_overflows_is_computed_all_the_same(tmp_path):
    file = forward_from("cox").definition.place.file
    function, _module, result = generated(file, tmp_path)
    assert result.proved.every_size
    for shift in (0.0, 1000.0, -1000.0):
        spread = torch.tensor([0.0, 300.0, -200.0, 1.0, -300.0, -299.0]) + shift
        for score in (spread, shift + draw(6).float()):
            ours, theirs = score.clone().requires_grad_(), score.double().requires_grad_()
            found, wanted = function(ours, EVENTS), cox(theirs, EVENTS.double())
            torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-4)
            (got,), (gradient,) = (
                torch.autograd.grad(value, leaf)
                for value, leaf in ((found, ours), (wanted, theirs))
            )
            torch.testing.assert_close(got.double(), gradient, rtol=1e-4, atol=1e-5)


class Gone(Forward):
    """What a rule may be given."""

    x = Input(B, T)
    y = x**2


x, w = Gone.definition.inputs[0], Tensor("w", (B, K))


@pytest.mark.parametrize("direction", ["", ", reverse=True"])
def test_a_logarithm_of_what_overflows_is_computed_either_way(direction, tmp_path):
    body = f"x = Input(B, T); y = log(CumSum(exp(x), T{direction}))"
    function, _module, result = generated(file_of(tmp_path, body), tmp_path)
    x = torch.tensor([[0.0, 1000.0, -1000.0, 999.0], [-2000.0, -1500.0, -1499.0, -3000.0]])

    def by_hand(x):
        rows = x.flip(1) if direction else x
        found = torch.stack([rows[:, : k + 1].logsumexp(1) for k in range(4)], 1)
        return found.flip(1) if direction else found

    assert_same_gradients(function, by_hand, x.double())
    assert result.proved.every_size


@pytest.mark.parametrize(
    ("e", "grows"),
    [
        (LogCumSumExp.over(x, [T]), True),
        (LogCumSumExpBack.over(x, [T]), False),
        (log(CumSum(exp(x), T)) * 2 + LogCumSumExp.over(w, [K]), True),
        (log(CumSum(exp(x), T, reverse=True)), False),
        (log(CumSum(x, T)), False),
        (x, False),
    ],
    ids=str,
)
def test_what_never_decreases_is_told_from_what_never_increases(e, grows):
    values = Definitions({"y": e})
    y = Tensor("y", (B, K, T))
    for own in (e,) if e.is_Add else (e, y):
        assert values.grows(own, T) is grows
        opposite = not grows and e.has(GoneAlong) and e != log(CumSum(x, T))
        assert values.grows(-own, T) is opposite


# What runs


@pytest.mark.parametrize("count", [*range(8), 17, 30])
@pytest.mark.parametrize("reverse", [False, True])
def test_the_code_is_the_loop(count, reverse):
    factor, term, before = draw(2, count, 3), draw(2, count, 3), draw(2, 1, 3)
    initial = 0.0 if reverse else before
    found = _helpers.scanned(factor, term, 1, initial, reverse=reverse)
    back = (lambda x: x.flip(1)) if reverse else (lambda x: x)
    rows = (back(x).mT for x in (factor, term))
    start = torch.zeros(2, 3) if reverse else before[:, 0]
    wanted = back(loop(*rows, start).mT) if count else term
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    number = _helpers.scanned(0.5, term, 1, reverse=reverse)
    halves = _helpers.scanned(torch.full_like(term, 0.5), term, 1, reverse=reverse)
    torch.testing.assert_close(number, halves)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_code_bears_every_transform(reverse):
    def run(factor, term):
        before = _helpers.stepped(term, 0, 1.0)
        return _helpers.scanned(factor, before, 0, 0.5 * (not reverse), reverse=reverse)

    inputs = draw(4, 7).requires_grad_(), draw(4, 7).requires_grad_()
    assert torch.autograd.gradcheck(vmap(run), inputs)
    assert torch.autograd.gradgradcheck(vmap(run), inputs)
    tangents = draw(4, 7), draw(4, 7)
    _, moved = jvp(vmap(run), tuple(t.detach() for t in inputs), tangents)
    first = [(x[0].detach(), d[0]) for x, d in zip(inputs, tangents, strict=True)]
    up, down = (run(*(x + e * d for x, d in first)) for e in (1e-6, -1e-6))
    torch.testing.assert_close(moved[0], (up - down) / 2e-6, rtol=1e-6, atol=1e-6)


# What is said, and what is refused


def test_what_is_written_is_read_again(tmp_path):
    forward = forward_from(file_of(tmp_path, CASES["recurrence"][0]))
    h = "Scan(a, b, T, initial=h0)"
    right = f"Scan(a, 2*dy*{h}, T, transposed=True)"
    assert check(forward, right, of="b").right
    assert check(forward, f"{right}*Previous({h}, T, initial=h0)", of="a").right
    assert check(forward, f"Sum(2*dy*{h}*CumProd(a, T), T)", of="h0").right
    assert check(forward, right.replace("transposed", "reverse"), of="b").right is False
    assert check(forward, right.replace("True", "False"), of="b").right is False


def test_of_equal_entries_the_last_is_the_largest(tmp_path):
    body, reference, x = CASES["largest so far"]
    file = file_of(tmp_path, body)
    function, _module, _result = generated(file, tmp_path)
    assert_same_gradients(function, reference, (2 * x).round())
    right = "2*NewMax(x, T)*Scan(1 - NewMax(x, T), dy*CumMax(x, T), T, transposed=True)"
    wrong = "2*dy*CumMax(x, T)*NewMax(x, T)"
    assert check(forward_from(file), right, of="x").right
    assert check(forward_from(file), wrong, of="x").right is False


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("recurrence", ("scan[T](a, b, h0)", "transposed", "mathrm{previous}_{T}")),
        ("from the end", ("cumsum[T; from the end](", "from the end", "mathrm{cumsum}_{T,")),
        ("largest so far", ("cummax[T](x)", "newmax", "mathrm{cummax}_{T}")),
        ("product", ("cumprod[T](x)", "cumprod", "mathrm{cumprod}_{T}")),
        ("logarithm", ("log(cumsum[T](exp(x)))", "cumsum", "mathrm{cumsum}_{T}")),
    ],
)
def test_every_page_shows_it(name, shown, tmp_path):
    found = pages(derive(forward_from(file_of(tmp_path, CASES[name][0]))))
    text, page, latex = shown
    assert text in found["text"] and page in found["html"] and latex in found["latex"]


def test_kernels_let_torch_run_and_say_so(tmp_path, capsys):
    file = file_of(tmp_path, "x = Input(T); y = CumSum(x, T)")
    assert gradform([str(file), "--target", "cpp", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    assert (said.out + said.err).count("has no kernels, and torch computes it") == 1
    assert not list((tmp_path / "out").rglob("*gone*.cpp"))


REFUSED = {
    "no axis": (lambda: CumSum(x, "T"), "is not an axis"),
    "another axis": (lambda: CumSum(x, K), "there is no axis K in it"),
    "no axis in either": (lambda: Scan(2, x, K), "there is no axis K in it"),
    "any number of dimensions": (lambda: CumSum(x, Axes("T")), "any number of dimensions"),
    "a label": (lambda: CumProd(Label(T).named("i"), T), "is a label"),
    "a state along it": (lambda: Scan(x, x, T, initial=x), "it has the axis T"),
    "a state from the end": (lambda: Scan(x, x, T, initial=1, reverse=True), "starts with 0"),
    "both ways": (lambda: Scan(x, x, T, reverse=True, transposed=True), "either reverse or"),
    "an option": (lambda: Scan(x, x, T, dim=1), "Scan has no dim="),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_meant_is_refused_with_the_remedy(name):
    write, said = REFUSED[name]
    with pytest.raises(NotationError, match=said) as refused:
        write()
    assert refused.value.remedy


def test_one_node_has_one_spelling():
    ones = Recurrence.over(x, Integer(1), Integer(0), [T])
    assert ones == CumSum(x, T) == Scan(1, x, T)
    assert CumSum(-3 * x, T) == -3 * CumSum(x, T)
    assert Scan(0, x, T) == x
    assert Scan(x, 0, T, initial=1) == CumProd(x, T)
    assert {str(kind.over(x, x, Integer(0), [T])) for kind in KINDS.values()} == {
        "Scan(x, x, T)",
        "Scan(x, x, T, exclusive=True)",
        "Scan(x, x, T, transposed=True)",
        "Scan(x, x, T, transposed=True, exclusive=True)",
    }
