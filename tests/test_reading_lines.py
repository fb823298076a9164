"""A backward of several lines: what its names hold at the end, and what a line is blamed for."""

import pytest
import torch
from test_reading import Numbers

from derive import forward_from
from derive.claims.reading import NotUnderstood, Reading, read
from derive.gradient.chain.chain import derive_chain
from derive.language.symbols import tensors_in

BATCH_NORM = forward_from("batch_norm").definition
SOFTMAX = forward_from("softmax_nll").definition
MLP = forward_from("mlp").definition

EXERCISE = """
with torch.no_grad():
    # the gradients of the 26 tensors, one by one
    dlogprobs = torch.zeros_like(logprobs)
    dlogprobs[range(n), Yb] = -1.0/n
    dprobs = (1.0 / probs) * dlogprobs
    dcounts_sum_inv = (counts * dprobs).sum(1, keepdim=True)
    dcounts = counts_sum_inv * dprobs
    dcounts_sum = (-counts_sum**-2) * dcounts_sum_inv
    dcounts += torch.ones_like(counts) * dcounts_sum
    dnorm_logits = counts * dcounts
    dlogits = dnorm_logits.clone()
    dlogit_maxes = (-dnorm_logits).sum(1, keepdim=True)
    dlogits += F.one_hot(logits.max(1).indices, num_classes=logits.shape[1]) * dlogit_maxes
    dh = dlogits @ W2.T; dW2 = h.T @ dlogits; db2 = dlogits.sum(0)
    dhpreact = (1.0 - h**2) * dh
    dbngain = (bnraw * dhpreact).sum(0, keepdim=True)
    dbnraw = bngain * dhpreact
    dbnbias = dhpreact.sum(0, keepdim=True)
    dbndiff = bnvar_inv * dbnraw
    dbnvar_inv = (bndiff * dbnraw).sum(0, keepdim=True)
    dbnvar = (-0.5*(bnvar + 1e-5)**-1.5) * dbnvar_inv
    dbndiff2 = (1.0/(n-1))*torch.ones_like(bndiff2) * dbnvar
    dbndiff += (2*bndiff) * dbndiff2
    dhprebn = dbndiff.clone()
    dbnmeani = (-dbndiff).sum(0)
    dhprebn += 1.0/n * (torch.ones_like(hprebn) * dbnmeani)
    dembcat = dhprebn @ W1.T
    dW1 = embcat.T @ dhprebn
    db1 = dhprebn.sum(0)
    demb = dembcat.view(emb.shape)
    dC = torch.zeros_like(C)
    dC.index_put_((Xb,), demb, accumulate=True)
"""
THEIRS = {
    "bnraw": "xhat",
    "bnvar_inv": "inv_std",
    "bnvar": "var",
    "bndiff2": "diff2",
    "bndiff": "diff",
    "bnmeani": "mean",
    "Yb": "labels",
    "Xb": "contexts",
}
OF_LOSS = "logprobs probs counts_sum_inv counts_sum counts norm_logits logit_maxes"
THEIRS |= {name: name for name in OF_LOSS.split()}


def of_batch_norm(text: str) -> Reading:
    return read(text, BATCH_NORM, BATCH_NORM.inputs[0])


def found(reading: Reading) -> dict[str, str]:
    return {claim.of.name: str(claim.actual) for claim in reading.claims}


def test_the_exercise_is_read_as_python_runs_it():
    reading = read(EXERCISE, MLP, MLP.differentiable[0], THEIRS)
    assert len(reading.claims) == 26 and not any(c.misaligned for c in reading.claims)
    assert [c.line for c in reading.claims] == sorted(c.line for c in reading.claims)
    numbers = Numbers(MLP)
    names = numbers.python()
    names |= {theirs: names[ours] for theirs, ours in THEIRS.items()}
    exec("\n".join(line.strip() for line in EXERCISE.split("\n")[3:]), names)
    theirs = {ours: theirs for theirs, ours in THEIRS.items()}
    for claim in reading.claims:
        expected = names[f"d{theirs.get(claim.of.name, claim.of.name)}"].double()
        value = numbers.of(claim.actual, claim.of.home).expand(numbers.shape(claim.of.home))
        torch.testing.assert_close(value, expected.reshape(value.shape), rtol=1e-4, atol=1e-7)


def test_given_is_one_step_of_the_chain_rule():
    """Every line reads the gradients above it by their names: none inherits a mistake."""
    reading = read(EXERCISE, MLP, MLP.differentiable[0], THEIRS)
    steps = {
        adjoint.of.name: {t.name for t in tensors_in(adjoint.expression) if t.role == "adjoint"}
        for adjoint in derive_chain(MLP).adjoints
    }
    for claim in reading.claims[1:]:
        named = {t.name for t in tensors_in(claim.given) if t.role == "adjoint"}
        assert named == steps[claim.of.name], claim.of
        assert not any(t.role == "adjoint" for t in tensors_in(claim.actual))


BOUND = {  # a text, and what its gradients hold at the end
    "the last assignment counts": ("dgain = dy.sum(0)\ndgain = gain\n", {"gain": "gain"}),
    "chained": ("dgain = dbias = gain", {"gain": "gain", "bias": "gain"}),
    "tuples": ("dgain, dbias = bias, gain", {"gain": "bias", "bias": "gain"}),
    "exchanged": ("a, b = gain, bias\na, b = b, a\ndgain = a", {"gain": "bias"}),
    "sizes": ("n, C = x.shape\ndgain = gain/(n*C)", {"gain": "gain/(C*N)"}),
    "annotated": ("dgain: torch.Tensor = gain", {"gain": "gain"}),
    "in place": (
        "dgain = gain.clone()\ndgain += bias\ndgain *= 2\ndgain /= n\ndgain **= 2",
        {"gain": "(2*bias + 2*gain)**2/N**2"},
    ),
    "two names of one tensor": ("a = gain.clone()\ndgain = a\na += bias", {"gain": "bias + gain"}),
    "a copy stays": ("a = gain.clone()\ndgain = a.clone()\na += bias", {"gain": "gain"}),
    "out of place makes a new one": ("a = gain\ndgain = a\na = a + bias", {"gain": "gain"}),
    "a product is no view": ("a = gain*1\nb = a*1\nb.add_(a)\ndgain = b", {"gain": "2*gain"}),
    "numbers are no tensors": ("s = 0\nt = s\ns += gain\ndgain = s + t", {"gain": "gain"}),
    "methods that write": (
        "dgain = torch.zeros_like(gain)\ndgain.add_(bias)\ndgain.mul_(gain)",
        {"gain": "bias*gain"},
    ),
    "methods that write, in a row": (
        "dgain = torch.zeros_like(gain)\ndgain.add_(bias).mul_(gain).sub_(1)",
        {"gain": "bias*gain - 1"},
    ),
    "filled": ("dgain = gain.clone()\ndgain.zero_()\ndgain.fill_(3)", {"gain": "3"}),
    "wholly written": ("dx = torch.zeros_like(x)\ndx[:] = gain", {"x": "gain"}),
    "wholly added": ("dx = dy.clone()\ndx[:] += gain", {"x": "dy + gain"}),
    "a mask": ("dx = dy.clone()\ndx[x < 0] = 0", {"x": "Piecewise((0, x < 0), (dy, True))"}),
    "a name of the forward": ("x = dy*2\ndx = x", {"x": "2*dy"}),
    "a function around": (
        "def backward(dy, gain: torch.Tensor, eps=1e-5):\n"
        "  'Words.'\n  dgain = gain\n  return dgain",
        {"gain": "gain"},
    ),
    "a formula at the end": ("a = dy*gain\na*inv_std", {"x": "dy*gain*inv_std"}),
    "comments and blanks": ("# first\n\ndgain = gain  # why\n\n", {"gain": "gain"}),
    "a gradient of no line": ("dx = dxhat*inv_std", {"x": "dxhat*inv_std"}),
}


@pytest.mark.parametrize("text, expected", BOUND.values(), ids=BOUND.keys())
def test_names_hold_what_python_binds(text, expected):
    assert found(of_batch_norm(text)) == expected


WRITTEN = [
    "dlogits = probs.clone()\ndlogits[range(n), labels] -= 1\ndlogits /= n",
    "dlogits = probs.clone()\ndlogits[torch.arange(n), labels] += 2.5",
    "dlogits = torch.zeros_like(logits)\ndlogits[range(len(logits)), labels] = counts_sum[:, 0]",
    "dlogits = probs.clone()\ndlogits[range(n), labels] *= 3",
    "dlogits = probs.clone()\ndlogits.scatter_(1, labels[:, None], 2.0)",
    "dlogits = probs.clone()\ndlogits.index_put_((torch.arange(n), labels), counts_sum[:, 0])",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_entries_are_written_as_torch_writes_them(text):
    (claim,) = read(text, SOFTMAX, SOFTMAX.inputs[0]).claims
    numbers = Numbers(SOFTMAX)
    names = numbers.python()
    exec(text, names)
    value = numbers.of(claim.actual, claim.of.home)
    torch.testing.assert_close(value, names["dlogits"].double())


REFUSED = {
    "writing into the forward": ("x += 1\ndx = x", "a value of the forward", "x.clone()"),
    "writing into another name of it": ("a = x\na += 1\ndx = a", "the forward", ".clone()"),
    "writing into a view": ("a = dy*1\nb = a.T\nb += 1\ndx = a", "view of", ".clone()"),
    "writing into what is viewed": ("a = dy*1\nb = a.T\na += 1\ndx = b", "b is a view", ".clone()"),
    "a view in one line": ("a = dy.clone()\na.chunk(2)[0].add_(1)\ndx = a", "view", "add_"),
    "adding to nothing": ("dx += dy", "dx is not defined yet", "dx = ..."),
    "read before": ("dbias = dx.sum(0)\ndx = dy", "assigned only on line 2", "move"),
    "the upstream computed": ("dy = x*2\ndx = dy", "upstream gradient", "number"),
    "a loop": ("for i in range(3):\n  dx = dy", "loops", "whole tensors"),
    "a method in a loop": (
        "dbias = torch.zeros(C)\nfor i in range(N):\n  dbias.add_(dy.sum(0))",
        "an in-place method in a loop",
        "dx += ...",
    ),
    "a view behind a method": ("a = dy.clone()\na.mul_(2).ravel().add_(1)\ndx = a", "view", "add_"),
    "a lost value": ("dy*gain\ndx = dy", "unused", "assign"),
    "no gradient": ("foo = dy*gain", "no line assigns", "--let"),
    "unequal tuples": ("a, b = x.shape[0], 2, 3\ndx = a", "2 names, but 3 values", ""),
    "the same row twice": ("dx = dy*1\ndx[dy.argmax(1)] += 1", "same index", "index_add_"),
}


@pytest.mark.parametrize("text, problem, remedy", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_followed_is_refused_with_the_remedy(text, problem, remedy):
    with pytest.raises(NotUnderstood) as error:
        of_batch_norm(text)
    assert problem in error.value.problem and remedy in error.value.remedy


VIEWS = [
    *("a[1:]", "a[:, 0]", "a[0]", "a[::2]", "a[None]", "a[..., 1:]", "a[:, :2].T", "a.T", "a.data"),
    *("a.narrow(0, 1, 2)", "a.select(1, 0)", "a.chunk(1)[0]", "a.unfold(0, 2, 1)", "a.detach()"),
    *("a.view(n, -1)", "a.swapaxes(0, 1)", "a.squeeze()", "a[:, None].expand(-1, 1, -1)"),
    *("torch.split(a, n)[0]", "np.asarray(a)"),
]


NOT_FOLLOWED = ("chunk", "unfold", "expand", "split", "asarray")
WRITTEN = [f"b = {view}\n{write}" for view in VIEWS for write in ("b += 1", "b.mul_(2)")]
WRITTEN += [f"{v}.mul_(2)" for v in VIEWS if any(word in v for word in NOT_FOLLOWED)]


@pytest.mark.parametrize("write", WRITTEN)
def test_what_is_written_into_a_view_is_not_lost(write):
    """It changes what the view is of, which is not followed."""
    with pytest.raises(NotUnderstood, match="view"):
        of_batch_norm(f"a = dy*1\n{write}\ndx = a")


@pytest.mark.parametrize("write", ["b = a[i]\n  b += 1", "b = a[i]\n  b.mul_(2)", "a[i].mul_(2)"])
def test_nor_into_a_view_of_one_round(write):
    with pytest.raises(NotUnderstood, match=r"view|in-place method in a loop"):
        of_batch_norm(f"a = dy*1\nfor i in range(N):\n  {write}\ndx = a")


@pytest.mark.parametrize("line", ["dvar = (dy*xhat).sum(1)", "dvar = (dy*xhat.sum(1)).sum(0)"])
def test_a_misaligned_gradient_does_not_spoil_the_lines_after_it(line):
    text = f"{line}\nspread = 2*diff*dvar/(n - 1)\ndx = dy + spread"
    broken, after = of_batch_norm(text).claims
    assert broken.misaligned is not None and after.misaligned is None
    assert str(after.given) == "2*diff*dvar/(N - 1) + dy" == str(after.actual)


def test_a_misaligned_name_of_ones_own_is_blamed_in_its_line():
    reading = of_batch_norm("t = dy*x.sum(1)\ndx = t + 1\ndbias = dy.sum(0)")
    broken, fine = reading.claims
    assert "misaligned since line 1" in broken.misaligned.problem
    assert fine.misaligned is None and found(reading)["bias"] == "Sum(dy, N)"


def test_a_gradient_read_before_its_last_change_is_expanded():
    text = "ddiff = dy*2\ndmean = -ddiff.sum(0)\nddiff += x\ndx = ddiff + dmean/n"
    given = {claim.of.name: str(claim.given) for claim in of_batch_norm(text).claims}
    assert given == {"mean": "-2*Sum(dy, N)", "diff": "2*dy + x", "x": "ddiff + dmean/N"}


def test_the_upstream_number_is_the_texts_own():
    text = "dloss = 1.0\ndlogprobs = -dloss*F.one_hot(labels, C)/n"
    reading = read(text, SOFTMAX, SOFTMAX.inputs[0])
    assert reading.upstream == 1 and [c.of.name for c in reading.claims] == ["logprobs"]
    assert str(reading.claims[0].actual) == "-OneHot(labels, C)/N"
    reading = read("probs*dloss", SOFTMAX, SOFTMAX.inputs[0])
    assert reading.upstream is None and reading.mentions_upstream and reading.single
