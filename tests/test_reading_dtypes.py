"""What a tensor of a text holds, bools, integers or floats, is what torch makes of the same text.

Every text is run by torch too. Where torch refuses it, it must be refused; where it cuts off
fractions, what is read must be what torch computes.
"""

import math
import re

import pytest
import torch
import torch.nn.functional as F
from test_reading import DEFINITIONS, Numbers, as_torch, run

import derive
from derive import Axis, Forward, Input, Label, OneHot, Sum
from derive.claims.reading.refusals import Unplaced

pytestmark = pytest.mark.filterwarnings("ignore")
DEFINITION = DEFINITIONS["softmax_nll"]  # logits (N, C), labels (N,)
MADE = """g = F.one_hot(labels, C)
h = torch.ones(N, C, dtype=torch.long)
m = logits > 0
s = torch.tensor(0.5)
si = torch.tensor(1)
rows = logits.sum(1)
cols = logits.sum(0)
x = logits.clone()
"""

# What comes out of expressions; those behind the line are refused by torch.
EXPRESSIONS = """
g + 1; g + 0.5; g * 2; g * 0.5; g / 2; -g; g - h; 1 - g; g - x; g * x; g + m; m + 1; m + 0.5
m * m; (m * m) & m; m * 2; m * 0.5; m * x; m / 2; m == 1; g == x; ~m; ~(m * m); m & m | m
m ** 2; g ** 2; g ** 0.5; m ** 0.5; h ** -1.0; (N - 1) * g; g / N; N / 2 * g; 2 ** -1 * h
abs(g); g.abs(); g.sign(); m.sign(); g.square(); m.square(); F.relu(g); g.neg(); g.exp(); m.exp()
h.log(); g.sqrt(); m.sqrt(); h.rsqrt(); h.reciprocal(); g.tanh(); g.sigmoid(); torch.erf(m)
torch.log1p(g); torch.expm1(m); g.cosh(); torch.sin(m); math.sqrt(4) * g
g.sum(0); m.sum(0); m.sum(); g.sum().item() * h; m.sum(0, dtype=torch.float64); g.amax(0)
m.amax(0); m.amin(0); m.max(); m.max(1).values; g.max(1).values; g.logsumexp(1); m.logsumexp(1)
g.mean(0, dtype=torch.float64); F.softmax(g, 1, dtype=torch.double); g.T @ h; g @ h.T
torch.einsum('nc,nd->cd', g, h); torch.einsum('nc->c', m); torch.einsum('nc->cn', m)
torch.einsum('nd,d->nd', x, h.sum(0)); torch.outer(rows, h.sum(0)); g.double().T @ x
torch.where(m, g, x); torch.where(m, 1, 0); torch.where(m, 1., 0); torch.where(m, m, 0)
torch.where(m, g, 0.5); torch.where(m, x, 0); torch.maximum(g, x); torch.maximum(m, m)
torch.maximum(g, m); torch.minimum(m, x); torch.max(g, h); g.clamp(0.5); g.clamp(0, 1)
m.clamp(0, 1); x.scatter(1, labels[:, None], s.item()); g.clamp_min(0.5)
g.clamp_max(0.5); F.hardtanh(x, 0, 1); F.hardtanh(x); F.relu6(4*x); F.hardsigmoid(4*x)
F.threshold(x, 0, 1); torch.threshold(x, 0.5, -2); F.threshold(g, 0, 1); F.relu6(g)
torch.addcmul(x, g, g); torch.addcmul(g, h, h, value=2)
torch.addcmul(g, h, h, value=0.5); torch.addcmul(g, x, x); torch.add(x, m, alpha=-1)
torch.add(x, g, alpha=2); torch.add(m, 1); torch.mul(m, m); torch.div(g, 2)
torch.zeros_like(g); torch.ones_like(m); torch.full_like(g, 0.5); torch.full_like(g, -1.5)
torch.full_like(m, 0.5); torch.full_like(g, 1); torch.full_like(x, 1); torch.full_like(labels, 2.5)
torch.full_like(g, 0.5, dtype=torch.double); torch.zeros_like(g, dtype=x.dtype)
torch.full((N, C), 0); torch.full((N, C), 0.); torch.full((N, C), N); torch.full((N, C), 1/N)
torch.full((N, C), 0, dtype=x.dtype); torch.full((N, C), 2.5, dtype=torch.long)
torch.full((N, C), s); torch.full((N, C), si); torch.zeros(N, C); torch.ones(N, dtype=torch.bool)
torch.zeros(N, C, dtype=torch.int64); torch.tensor(1); torch.tensor(1.); torch.tensor(1e0)
torch.tensor(1.5, dtype=torch.long); torch.tensor(2, dtype=torch.bool); torch.as_tensor(N)
torch.scalar_tensor(1); torch.tensor(float(N))
m.double(); m.long(); m.to(x.dtype); m.to(torch.long); m.type(torch.int64); m.type_as(g)
x.type_as(m); g.to(x); m.to(g); g.to(x.device); x.bool(); g.bool(); m.bool(); x.to(dtype=x.dtype)
g.scatter(1, labels[:, None], 0.5); m.scatter(1, labels[:, None], 0.5); g.T; g[:, None]; g.sum(1)
g.gather(1, labels[:, None]); h[range(N), labels]; g.view(N, C); g.clone(); g.expand(N, C)
---
x - m; 1 - m; m - 1; m - x; g - m; m - m; torch.sub(x, m); torch.add(g, g, alpha=0.5); -m; +m
(m * m) - x; abs(m); m.abs(); m.neg(); m.positive(); m.relu(); F.relu(m); h ** -1
F.hardsigmoid(g); F.softplus(g); F.silu(g); F.logsigmoid(g); F.softplus(m); g.mean(0); m.mean()
m.sum(0).mean()
x.mean(0, dtype=torch.long); g.var(0); g.std(0); m.var(0); g.norm(); m.norm(); m.argmax(1)
m.argmin(1); g.softmax(1); m.softmax(1); g.log_softmax(1); F.softmax(g, 1); g @ x.T; m @ m.T
m @ x.T; g.T @ x; torch.mv(g, cols); torch.dot(cols, h.sum(0)); torch.inner(cols, h.sum(0))
F.softmax(x, 1, dtype=torch.long); torch.mm(g.T, x); torch.einsum('nd,nd->d', g, x)
torch.einsum('nc,nd->cd', m, m); torch.einsum('nc,nd->cd', g, x); torch.where(g, x, 0)
torch.bmm(x[:, None], g[:, :, None]); F.one_hot(labels.float(), C); x[range(N), labels.float()]
torch.scatter(g, 1, labels[:, None], s); x.scatter(1, labels[:, None], si); g.requires_grad_()
x.scatter(1, labels[:, None], s); g.index_add(0, labels, x); x.index_add(0, labels, h)
x.scatter_add(1, labels[:, None], h); torch.full_like(x, rows)
"""

# Lines that write: what the tensor holds then.
LINES = """
g[range(N), labels] = 0.25; g[range(N), labels] = -1.75; g[:] = 0.5; g[:] = 2; g[m] = 0.5; g[m] = 3
x[range(N), labels] = 1; x[m] = si; x[:] = h; m[range(N), labels] = 2; m[:] = 0.5; m[m] = 0
g[range(N), labels] += 1; g[range(N), labels] *= 2; g[range(N), labels] -= 1; g[m] += 1; g[:] += 1
g += 1; g += m; m *= m; m &= m; g *= 2; g **= 2; x += g; x *= m; x[range(N), labels] -= 1
g.fill_(0.5); g.fill_(s); g.copy_(si); m.fill_(0.5); m.copy_(x); g.zero_(); g.abs_(); g.neg_()
g.relu_(); g.pow_(2); g.square_(); g.sign_(); g.addcmul_(h, h); g.add_(1, alpha=2); x.addcmul_(g, m)
g.addcmul_(h, h, value=0.5); g.scatter_(1, labels[:, None], 0.5); x.scatter_(1, labels[:, None], 1)
m.scatter_(1, labels[:, None], 0.5); g.index_add_(0, labels, h); g.copy_(h); x.copy_(g)
g.index_add_(0, labels, h, alpha=0.5); g.copy_(m); g.copy_((x > 0).double()); m.zero_()
---
g[range(N), labels] = s; g[range(N), labels] = rows; x[range(N), labels] = si; x[m] = rows
x[range(N), labels] = h[:, 0]; g[range(N), labels] += 0.5; g[m] += 0.5; g[:] += 0.5; g += 0.5
g += x; m += 1; m *= 2; m -= m; g -= 0.5; g *= 0.5; g /= 2; g **= 0.5; x -= m; g.add_(0.5)
g.mul_(0.5); g.mul_(x); g.add_(1, alpha=0.5); g.exp_(); g.clamp_(0.5, 1); g.clamp_(min=0.5)
g.clamp_min_(0.5); g.div_(2); g.sqrt_(); g.addcmul_(h, x); x[m] = x
g.scatter_(1, labels[:, None], rows[:, None]); g[range(N), labels] /= 2
g.scatter_add_(1, labels[:, None], rows[:, None]); x.scatter_add_(1, labels[:, None], h)
x.index_add_(0, labels, h); g.index_add_(0, labels, x); g.sigmoid_()
g.index_put_((torch.arange(N), labels), rows); x.index_put_((torch.arange(N), labels), si)
g[range(N), labels] *= 0.5; m.mul_(2); m.add_(1); g[range(N), labels] -= 0.5; g.sub_(m); m.exp_()
"""


def split(texts: str) -> list[tuple[str, bool]]:
    """Each text, and whether torch runs it."""
    runs, refused = texts.split("---")
    parts = [(part, True) for part in re.split(r"[;\n]", runs)]
    parts += [(part, False) for part in re.split(r"[;\n]", refused)]
    return [(text.strip(), ran) for text, ran in parts if text.strip()]


CASES = [(f"result = {text}", "result", ran) for text, ran in split(EXPRESSIONS)]
CASES += [(text, re.match(r"\w+", text)[0], ran) for text, ran in split(LINES)]
DTYPE = {torch.bool: "bool", torch.int64: "int", torch.int32: "int", torch.float64: "float"}


@pytest.fixture(autouse=True)
def in_double_precision():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("line", "target", "ran"), CASES, ids=[case[0] for case in CASES])
def test_a_dtype_is_torchs(line, target, ran):
    numbers = Numbers(DEFINITION)
    names = {**numbers.python(), "torch": torch, "F": F, "math": math}
    text = MADE + line
    if not ran:
        with pytest.raises((RuntimeError, TypeError, IndexError, NotImplementedError)):
            exec(text, names)
        try:
            program, _ = run(DEFINITION, text)
        except Unplaced as error:
            assert error.problem and error.remedy
            return
        assert program.cells[target].broken is not None
        return
    exec(text, names)
    expected = names[target]
    program, numbers.definition = run(DEFINITION, text)
    value = program.cells[target].value
    assert value.dtype == DTYPE[expected.dtype]
    torch.testing.assert_close(as_torch(value, numbers).double(), expected.double())


N, C = Axis("N"), Axis("C")


class Quarter(Forward):
    """A quarter of the entry of every label."""

    x = Input(N, C)
    labels = Label(N)

    picked = Sum(OneHot(labels, C) * x, C)
    loss = Sum(picked, N) / 4


CUT = [
    "g = F.one_hot(labels, C)\ng[range(N), labels] = 0.25",
    "g = torch.full((N, C), 0)\ng[range(N), labels] = 0.25",
    "g = torch.zeros_like(F.one_hot(labels, C))\ng[torch.arange(N), labels] = 1/4",
    "g = torch.zeros(N, C, dtype=torch.long)\ng.scatter_(1, labels[:, None], .25)",
    "hot = F.one_hot(labels, C)\ng = hot*torch.full_like(hot, 0.25)",
    "g = F.one_hot(labels, C)\nq = torch.zeros_like(g)\nq[:] = 0.25\ng = g*q",
    "g = F.one_hot(labels, C)\nq = torch.zeros_like(g)\nq.fill_(0.25)\ng = g*q",
    "q = torch.tensor(0.25, dtype=torch.long)\ng = q*F.one_hot(labels, C)",
]


@pytest.mark.parametrize("text", CUT)
def test_a_gradient_that_torch_cuts_to_zero_is_wrong_and_it_is_said(text):
    verdict = derive.check(Quarter, f"{text}\ndx = dloss*g")
    assert verdict.outcome == "wrong" and "torch truncates 1/4 to 0" in str(verdict)
    assert any("truncates 1/4" in remark for remark in verdict.as_json()["remarks"])
    as_floats = re.sub(r"(F.one_hot\(labels, C\))", r"\1.float()", text)
    as_floats = as_floats.replace("torch.long", "torch.float").replace(", 0)", ", 0.)")
    verdict = derive.check(Quarter, f"{as_floats}\ndx = dloss*g")
    assert verdict.right and not verdict.remarks, verdict


@pytest.mark.parametrize(
    "text",
    [
        "g = F.one_hot(labels, C)\ng *= 0.25",
        "g = F.one_hot(labels, C)\ng.mul_(0.25)",
        "g = F.one_hot(labels, C)\ng /= 4",
        "g = F.one_hot(labels, C)\ng.copy_(0.25*g)",
        "g = torch.zeros_like(F.one_hot(labels, C))\ng[range(N), labels] += 0.25",
    ],
)
def test_what_torch_refuses_to_write_into_integers_is_refused(text):
    with pytest.raises(derive.QuestionError) as error:
        derive.check(Quarter, f"{text}\ndx = dloss*g")
    assert "torch" in error.value.problem and ".float()" in error.value.remedy
