"""What a formula is read as, beside what Python and torch make of the same text.

A text that torch can run is run by Python itself on small float64 tensors, and what was read is
evaluated entry by entry on the same ones, along the same dimensions.
"""

import math
import re

import pytest
import sympy
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import derive
from derive import forward_from
from derive.claims.reading import NotUnderstood, read
from derive.claims.reading.broadcasting import placed
from derive.claims.reading.matrices import MATRICES
from derive.claims.reading.names import TextNames
from derive.claims.reading.notation import CALLS, uses_notation
from derive.claims.reading.operations.vocabulary import ATTRIBUTES, BUILTINS, FILLS, OPERATIONS
from derive.claims.reading.program import TextProgram
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.source import Source
from derive.claims.reading.values import Space, TextValue
from derive.language.choices import Branches, Compared
from derive.language.lexicon import WORDS
from derive.language.nodes import ArgMax, Flatten, Max, OneHot, Position, Sum, Unflatten
from derive.language.notation.definition import Definition
from derive.language.notation.layout import layouts_of
from derive.language.reading_at import At
from derive.language.segments import SEGMENTS
from derive.language.symbols import Along, Axis, Tensor, axes_of
from derive.language.torch_ops import table

N, C = Axis("N"), Axis("C")
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's, of .T of a vector
SIZES = {"N": 4, "C": 3, "D": 2, "K": 6, "H": 5, "T": 2, "E": 3, "V": 7}
DEFINITIONS = {
    name: forward_from(name).definition
    for name in ("batch_norm", "softmax_nll", "linear", "mlp", "embedding")
}


class Numbers:
    """A tensor for every name of a mathematics, and the value of expressions on them."""

    def __init__(self, definition: Definition, sizes=None):
        self.definition = definition
        chosen = {axis: (sizes or SIZES)[axis.name] for axis in definition.independent_axes}
        self.sizes = definition.sizes_from(chosen)
        self.draw = torch.Generator().manual_seed(3)
        self.known = {}
        for statement in definition.statements:
            e = self.of(statement.expression, statement.tensor.home)
            self.known[statement.name] = e.expand(self.shape(statement.tensor.home))

    def shape(self, axes):
        return [self.sizes[self.definition.size(axis)] for axis in axes]

    def entries(self, tensor: Tensor):
        if tensor.name not in self.known:
            if tensor.role == "label":
                high = self.sizes[next(iter(self._indexed(tensor)))]
                drawn = torch.randint(high, self.shape(tensor.home), generator=self.draw)
            else:
                shape = self.shape(tensor.home)
                drawn = torch.randn(shape, generator=self.draw, dtype=torch.float64)
            self.known[tensor.name] = torch.tensor(0.3) if tensor.role == "scalar" else drawn
        return self.known[tensor.name]

    def _indexed(self, label):
        for statement in self.definition.statements:
            for hot in statement.expression.atoms(OneHot):
                if hot.operand.name == label.name:
                    yield hot.axis

    def of(self, e, axes):
        """``e`` with one dimension for each of ``axes``, of size 1 where it does not vary."""
        axes = tuple(axes)
        if isinstance(e, Tensor):
            places = [e.axes.index(axis) for axis in axes if axis in e.axes]
            assert len(places) == len(e.axes), f"{e} varies along more than {axes}"
            value = self.entries(e).permute(places)
            return value.reshape([self.shape([a])[0] if a in e.axes else 1 for a in axes])
        if isinstance(e, (Sum, Max, ArgMax)):
            return self._reduced(e, axes)
        if isinstance(e, OneHot):
            others = [axis for axis in axes if axis != e.axis]
            place = axes.index(e.axis)
            hot = F.one_hot(self.of(e.operand, others).long(), self.shape([e.axis])[0])
            return hot.movedim(-1, place).double()
        if isinstance(e, Position):
            (size,) = self.shape([e.axis])
            return torch.arange(size).reshape([size if axis == e.axis else 1 for axis in axes])
        if isinstance(e, (Flatten, Unflatten)):
            return self._reshaped(e, axes)
        if isinstance(e, Axis):
            return torch.tensor(float(self.sizes[self.definition.size(e)])).double()
        if isinstance(e, At):
            return self._at(e, axes)
        if isinstance(e, (Branches, Compared)):
            return self.of(e.choice, axes)
        if isinstance(e, sympy.Piecewise):
            result = None
            for value, condition in reversed(e.args):
                value = self.of(value, axes)
                holds = True if condition is sympy.true else self.holds(condition, axes)
                result = value if holds is True else torch.where(holds, value, result)
            return result
        if e.is_number:
            return torch.tensor(float(e), dtype=torch.float64)
        values = [self.of(arg, axes) for arg in e.args]
        if isinstance(e, sympy.Pow):
            return values[0].double() ** values[1]
        if isinstance(e, (sympy.Add, sympy.Mul)):
            result = values[0]
            for value in values[1:]:
                result = result + value if isinstance(e, sympy.Add) else result * value
            return result
        return getattr(torch, type(e).__name__.lower())(values[0].double())

    def _at(self, e, axes):
        index, outer = self.of(e.index, axes).long(), [axis for axis in axes if axis != e.axis]
        read, (size,) = self.of(e.operand, (*outer, e.axis)), self.shape([e.axis])
        read = read.expand(*self.shape(outer), size)
        place = axes.index(e.axis) if e.axis in axes else None
        if index.dim() == 0:  # a number
            index = index.reshape([1] * len(axes))
        index = index.unsqueeze(-1) if place is None else index.movedim(place, -1)
        index = index.expand(*read.shape[:-1], index.shape[-1])
        found = torch.take_along_dim(read, index.clamp(0, size - 1), -1)
        found = torch.where((index >= 0) & (index < size), found, float(e.fill))
        return found.squeeze(-1) if place is None else found.movedim(-1, place)

    def _reduced(self, e, axes):
        outer = [axis for axis in axes if axis not in e.axes]  # the same name inside is another
        inside = self.of(e.operand, (*outer, *e.axes))
        inside = inside.expand(*inside.shape[: len(outer)], *self.shape(e.axes))
        if isinstance(e, ArgMax):
            value = inside.argmax(-1)
        else:
            places = tuple(range(len(outer), len(outer) + len(e.axes)))
            value = inside.sum(places) if isinstance(e, Sum) else inside.amax(places)
        return value.reshape([value.shape[outer.index(a)] if a in outer else 1 for a in axes])

    def _reshaped(self, e, axes):
        rest = [axis for axis in axes if axis not in e.brings]
        value = self.of(e.operand, (*rest, *e.binds))
        value = value.expand(*value.shape[: len(rest)], *self.shape(e.binds))
        value = value.reshape([*value.shape[: len(rest)], *self.shape(e.brings)])
        now = [*rest, *e.brings]
        return value.permute([now.index(axis) for axis in axes])

    def holds(self, condition, axes):
        if isinstance(condition, (sympy.And, sympy.Or, sympy.Not)):
            first, *rest = [self.holds(part, axes) for part in condition.args]
            for part in rest:
                first = first & part if isinstance(condition, sympy.And) else first | part
            return ~first if isinstance(condition, sympy.Not) else first
        a, b = self.of(condition.lhs, axes), self.of(condition.rhs, axes)
        compare = {"<": torch.lt, "<=": torch.le, ">": torch.gt, ">=": torch.ge}
        compare |= {"==": torch.eq, "!=": torch.ne}
        return compare[condition.rel_op](a, b)

    def python(self):
        """What the names of the mathematics are to Python: tensors in their layout, and sizes."""
        layouts = layouts_of(self.definition)
        names = {"torch": torch, "nn": torch.nn, "F": F, "math": math}
        for axis in self.definition.axes:
            names |= dict.fromkeys((axis.name, axis.name.lower()), self.sizes[axis])
        for tensor in [*self.definition.inputs, *(s.tensor for s in self.definition.statements)]:
            shape = [1 if d.one else self.shape([d.axis])[0] for d in layouts[tensor.name]]
            names[tensor.name] = self.entries(tensor).reshape(shape)
            if tensor.role != "label":
                adjoint = Tensor(f"d{tensor.name}", tensor.home, role="adjoint")
                names[f"d{tensor.name}"] = self.entries(adjoint).reshape(shape)
        names |= {t.name: float(self.entries(t)) for t, _ in self.definition.scalars}
        return names


def run(definition: Definition, text: str) -> tuple[TextProgram, Definition]:
    source = Source(text, "test")
    tree = source.parsed()
    names = TextNames(definition, {})
    of = definition.differentiable[0]
    program = TextProgram(source, Space(definition, uses_notation(tree)), names, of)
    program.run(tree.body)
    return program, program.space.definition


def value_of(definition: Definition, text: str) -> tuple[TextValue, Definition]:
    program, extended = run(definition, f"result = ({text})")
    cell = program.cells["result"]
    assert cell.broken is None, str(cell.broken)
    return cell.value, extended


def as_torch(value: TextValue, numbers: Numbers):
    axes = [axis for axis in value.dims if axis is not None]
    found = numbers.of(value.expression, axes).expand(numbers.shape(axes))
    return found.reshape([1 if a is None else numbers.shape([a])[0] for a in value.dims])


def assert_same(definition: Definition, text: str, reference: str | None = None):
    numbers = Numbers(definition)
    names = numbers.python()
    expected = torch.as_tensor(eval(reference or text, names), dtype=torch.float64)
    value, extended = value_of(definition, text)
    numbers.definition = extended
    numbers.sizes = extended.sizes_from(numbers.sizes)
    found = as_torch(value, numbers)
    assert found.shape == expected.shape or value.by_name
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-8)


# Texts that torch runs, by mathematics. Every name of the whitelist is in one of them (see below).
TEXTS = {
    "batch_norm": [
        "gain*inv_std/n * (n*dy - dy.sum(0) - n/(n-1)*xhat*(dy*xhat).sum(0))",
        "gain*inv_std*(dy - dy.mean(0, keepdim=True)) - 0.5*x + 1e-5 - -x",
        "dy.sum(dim=0, keepdim=True) + torch.sum(x, 0, True)",
        "x.sum() + x.sum((0, 1)) + x.sum(dim=[0, 1]) + dy.mean()",
        "x.mean(dim=-1) + torch.mean(x, 1) + x.sum(axis=1)",
        "x.var(0) + x.var(0, correction=0) + x.var(0, unbiased=False) + torch.var(x, dim=0)",
        "x.var() + x.var(False) + x.std(0, correction=2) + x.norm() + x.norm(2, 1).sum()",
        "x.std(1, keepdim=True) / (var + eps).sqrt() * (var + eps).rsqrt() ** 3",
        "x.pow(2) + torch.pow(x, 3) + x**4 + x.square() + torch.square(x) - x**-2 + var**0.5",
        "2**x + 0.5**x.sum(1, keepdim=True) + (var + eps)**-0.500001 + torch.pow(var, 1/3)",
        "x.exp() + torch.exp(x) + x.square().log() + x.tanh() + torch.tanh(x)",
        "torch.sigmoid(x) + x.sigmoid() + F.relu(x) + x.relu() + F.softplus(x) + F.silu(x)"
        " + F.hardtanh(x) + F.relu6(x) + F.hardsigmoid(x) + F.threshold(x, 0.25, 0.5)",
        "F.logsigmoid(x) + torch.log1p(x**2) + torch.expm1(x) + x.abs() + abs(x)",
        "x.sign() + torch.sgn(x) + x.neg() + torch.negative(x) + x.reciprocal() + x.absolute()",
        "torch.erf(x) + torch.sin(x) + x.cos() + torch.positive(x) + x.cosh()*torch.sinh(x)",
        "torch.add(x, dy, alpha=2) + x.sub(dy) + torch.mul(x, gain) + x.div(var)",
        "x.subtract(dy) + x.multiply(dy) + x.divide(var) + torch.true_divide(x, var)",
        "torch.addcmul(x, dy, gain, value=-1) + x.addcmul(x, x)",
        "torch.where(x > 0, x, dy) + (x > 0)*dy + (x <= gain).float() + (x < 0).to(x.dtype)",
        "((x > 0).contiguous() & (dy > 0)).double() + ((x > 0) | ~(dy >= 0)).sum(0)",
        "torch.where((x > 0) & (dy > 0), x, 0.5)",
        "torch.maximum(x, dy) + torch.minimum(x, gain) + torch.max(x, dy) + torch.min(x, dy)",
        "torch.maximum(x, torch.maximum(dy, x.sum(0))) + (F.relu(x) > 0)*dy",
        "(x.clamp(0, 1) >= dy) * torch.maximum((dy - n), (n - mean))",
        "x.clamp(min=0) + torch.clamp(x, -0.5, 0.5) + x.clip(max=1) + x.clamp_min(0.25)"
        " + x.clamp_max(0.5)",
        "x.T @ dy + torch.mm(x.t(), dy) + x.mT.matmul(dy) + torch.matmul(x.transpose(0, 1), dy)",
        "x @ x.T @ dy",
        "x @ gain + x.mv(bias) + gain @ bias + torch.dot(gain, bias) + gain.inner(bias)",
        "torch.matmul(x, gain) + x.matmul(bias)",
        "gain @ x.T",
        "torch.outer(gain, bias) + gain[:, None]*bias + gain.unsqueeze(1)*bias.unsqueeze(0)",
        "torch.ger(gain, bias) - gain[:, None] @ bias[None]",
        "torch.einsum('nd,nd->d', x, dy) + torch.einsum('nd, nd -> d', [x, dy])",
        "torch.einsum('nc,nd->cd', x, dy) + torch.einsum('ij,kj', x, dy).sum()",
        "x[:, None, :] - x[None]",
        "(x[:, None] - x).square().sum(-1) + x[..., None].squeeze(-1).sum()",
        "x.permute(1, 0) + dy.permute((1, 0)) + x.swapaxes(0, 1)",
        "x*gain.T + nn.functional.softplus(x) + torch.nn.functional.silu(x)",
        "x.mean(0, keepdim=True).expand(n, C) + gain.expand_as(x) + gain.expand(N, -1)",
        "torch.broadcast_to(gain, x.shape) + x.view(x.shape) + gain.view(1, -1).repeat(n, 1)",
        "x.view_as(dy) + dy.reshape_as(x) + x.reshape(n, -1) + x.view(x.size(0), C)",
        "torch.reshape(x, (n, -1)) + torch.reshape(gain, (1, C)) + x.clone().requires_grad_()",
        "(x > 0).long() + (dy > 0).long() + (x < 0).int()*x.clone().detach()",
        "~x.bool()*dy + (x > 0).long().bool()*x",
        "mean.squeeze() + mean.view(-1) + mean.reshape(C) + mean.squeeze(0) + mean.flatten()",
        "gain.view(1, C) + mean.T.T + x.clone().detach().contiguous().data.float().double()",
        "x.shape[0] + x.size(1) + len(x) + x.numel() + x.dim() + x.ndim + x.size()[0]",
        "x.nelement() + x.ndimension() + dy.shape[-1] + float(n) + x.shape[:1][0]",
        "torch.zeros_like(x) + torch.ones_like(x)*2 + torch.full_like(x, 0.5) + x.half().sum()*0",
        "torch.zeros(n, C) + torch.ones(x.shape) + torch.ones((n, 1)) + torch.full((n, C), 3.0)",
        "torch.tensor(2.0)*x + torch.as_tensor(1.5) + torch.scalar_tensor(1.0) + math.pi/torch.pi",
        "math.sqrt(2/math.pi)*x + torch.zeros(x.size(), dtype=torch.float64, device=x.device)",
        "x.amax(0) + x.amin(dim=0) + torch.amax(x, 0) + x.amax() + x.max() - x.min()",
        "x.max(1, keepdim=True).values + x.max(1, True)[0] - x.min(1, keepdim=True).values",
        "x.sum().item()*gain + x.exp().logsumexp(1).sum() + torch.logsumexp(x, 0, keepdim=True)",
        "x.type(torch.float64) + x.type_as(dy) + x.to(torch.double) + x.bfloat16().float()*0",
        "x.clone().zero_() + x.clone().add_(dy).mul_(2) + torch.zeros_like(x).fill_(2)",
        "torch.zeros_like(x).copy_(gain) + x.clone().exp_()",
        "x.masked_fill(x > dy, 0) + torch.masked_fill(gain, x < 0, 0.5)"
        " + dy.clone().masked_fill_(x > 1, 2)",
        "torch.linalg.norm(x, 2, 1).sum() + torch.linalg.vector_norm(x, dim=1).mean()"
        " - torch.linalg.norm(x)",
        "x @ torch.diag(gain) + dy @ torch.diagflat(gain[:, None]) + torch.diag_embed(x).sum(1)",
        "(torch.diag(gain) - torch.outer(gain, bias)) @ bias + (x[:, None] @ gain.diag())[:, 0]",
        "(x == x.max(0, keepdim=True).values)*dy + (x != dy)*1.0 + (x < x)*2.0 + (x <= x)*3.0",
    ],
    "softmax_nll": [
        "(F.softmax(logits, 1) - F.one_hot(labels, C)) / n * dloss",
        "(F.softmax(logits, dim=-1) - F.one_hot(labels, num_classes=logits.shape[1]))/len(labels)",
        "logits.softmax(1) + torch.softmax(logits, 0) + F.log_softmax(logits, 1)",
        "logits.log_softmax(dim=1) - logits.logsumexp(1, keepdim=True)",
        "F.one_hot(logits.max(1).indices, num_classes=logits.shape[1]) * dlogit_maxes",
        "F.one_hot(logits.argmax(1), C) - F.one_hot(logits.argmin(dim=1), C)",
        "F.one_hot(labels.int().long(), C) + logits",
        "logits.sum(dim=tuple(range(logits.ndim - 1))) + logits.mean(list(range(1)))",
        "F.one_hot(logits.max(1)[1], C) + F.one_hot(logits.min(1).indices.long(), C).float()",
        "logprobs[range(n), labels] + logprobs[torch.arange(n), labels].mean()",
        "logprobs.gather(1, labels[:, None]) - torch.gather(probs, 1, labels.unsqueeze(1))",
        "-logprobs[torch.arange(len(labels)), labels].mean() * dloss",
        "torch.zeros_like(logits).scatter_(1, labels[:, None], 1.0) + logits",
        "torch.scatter(logits, 1, labels[:, None], 0.5)",
        "torch.zeros_like(logits).scatter_add(1, labels[:, None], counts_sum)",
        "(labels[:, None] == torch.arange(C)) * probs",
        "(torch.arange(C) == labels[:, None]).float() - probs",
        "dlogprobs / probs + counts_sum_inv * dprobs - counts * counts_sum**-2",
        "torch.zeros(n, C).index_put((torch.arange(n), labels), torch.ones(n))",
        "F.one_hot(labels, C).double().T @ probs",
        "counts_sum.squeeze(1) + 0*counts_sum.sum()",
    ],
    "linear": [
        "dy @ weight.T",
        "x.T @ dy + (x[:, :, None] * dy[:, None, :]).sum(0)",
        "torch.einsum('nh,kh->nk', dy, weight)",
        "(dy[:, None, :] @ weight.T).squeeze(1)",
        "torch.bmm(x[:, None], x[:, :, None]).flatten().sum()",
    ],
    "mlp": [
        "demb.view(n, -1) + dembcat + demb.reshape(n, K) + demb.flatten(1) + demb.view_as(embcat)",
        "dembcat.view(emb.shape) + dembcat.view(n, T, -1) + dembcat.view_as(emb)",
        "dembcat.reshape(n, T, E) + embcat.view(N, T, E).reshape(emb.shape)",
        "C[contexts] + F.embedding(contexts, C) - nn.functional.embedding(contexts, C)",
        "torch.einsum('ntv,nte->ve', F.one_hot(contexts, V).double(), demb)",
        "torch.zeros_like(C).index_put_((contexts,), demb, accumulate=True)",
        "torch.zeros_like(C).index_add_(0, labels, demb.sum(1)) + C.index_select(0, labels).sum()",
        "(1 - h**2) * (dlogits @ W2.T)",
        "C[labels].sum() * b1",
        "(h[:, :, None] * W2).sum(1) + b2",
    ],
}

CASES = [(name, text) for name, texts in TEXTS.items() for text in texts]


@pytest.mark.parametrize("name, text", CASES, ids=[text for _, text in CASES])
def test_a_text_is_read_as_torch_runs_it(name, text):
    assert_same(DEFINITIONS[name], text)


# The project's notation, and the same in torch.
NOTATION = [
    (
        "batch_norm",
        "-gain·Σ[N](dy·x)/√(x² + Σ[N] dy²)",
        "-gain*(dy*x).sum(0)/(x*x + dy.sum(0)**2).sqrt()",
    ),
    ("batch_norm", "(dy if x ≥ 0, else max[N](x))·2", "torch.where(x >= 0, dy, x.max(0).values)*2"),
    ("batch_norm", "(dy if x > 1, x if gain = x, else 0)", "(x > 1)*dy + x.le(1)*gain.eq(x)*x"),
    ("batch_norm", "x·1[argmax[C](x) = C]", "x*F.one_hot(x.argmax(1), x.shape[1])"),
    ("batch_norm", "Piecewise((x, Ne(x, dy)), (2, True))", "torch.where(x.ne(dy), x, 2)"),
    ("batch_norm", "Sum(dy*xhat, N)/(N - 1)", "(dy*xhat).sum(0)/(n - 1)"),
    ("batch_norm", "gain*inv_std*(dy - Sum(dy, N)/N)", "gain*inv_std*(dy - dy.mean(0))"),
    ("batch_norm", "dy - Sum(dy*x, C)", "dy - (dy*x).sum(1, keepdim=True)"),
    ("batch_norm", "Sum(x, N, C) + Max(Max(x, N), C) + Max(x, dy)*0", "x.sum() + x.max() + 0*x"),
    ("batch_norm", "Sum(x.sum(0), C) + x.sum(1)", "x.sum() + x.sum(1)"),
    ("batch_norm", "Sum(gain*Rename(x, C, M), M)", "gain*x.sum(1, keepdim=True)"),
    (
        "batch_norm",
        "Broadcast(gain, N) + Min(x, dy, 0)",
        "gain + torch.minimum(x, dy).clamp(max=0)",
    ),
    ("batch_norm", "OneHot(ArgMax(x, C), C)*Sum(x, C)", "F.one_hot(x.argmax(1), C)*x.sum(1, True)"),
    (
        "batch_norm",
        "Piecewise((x, Position(C) <= Position(N)), (0, True))",
        "x*(torch.arange(len(x))[:, None] >= torch.arange(x.shape[1]))",
    ),
    (
        "batch_norm",
        "Piecewise((x, x > 0), (dy, x < -1), (0, True)) + 0*Sum(x, N)",
        "torch.where(x > 0, x, torch.where(x < -1, dy, 0.0))",
    ),
    ("batch_norm", "(var + eps)**Rational(-1, 2) * Sum(x, N)", "(var + eps)**-0.5 * x.sum(0)"),
    (
        "batch_norm",
        "sqrt(var) + exp(gain) + log(var) + tanh(x) + Abs(x) + sign(x) + Sum(erf(x), N)",
        "var.sqrt() + gain.exp() + var.log() + x.tanh() + x.abs() + x.sign() + torch.erf(x).sum(0)",
    ),
    (
        "softmax_nll",
        "dloss*(probs - OneHot(labels, C))/N",
        "dloss*(probs - F.one_hot(labels, C))/n",
    ),
    ("softmax_nll", "Sum(OneHot(labels, C)*logprobs, C)", "logprobs[range(n), labels]"),
    ("softmax_nll", "Gather(logprobs, labels, C)", "logprobs[range(n), labels]"),
    ("softmax_nll", "counts/Sum(counts, C)", "counts/counts.sum(1, keepdim=True)"),
    ("mlp", "Flatten(demb, T, E, into=K) + 0*Sum(b1, H)", "demb.flatten(1)"),
    ("mlp", "Unflatten(dembcat, K, into=(T, E))*Sum(emb, N)", "dembcat.view(emb.shape)*emb.sum(0)"),
    ("mlp", "Sum(OneHot(contexts, V)*C, V)", "C[contexts]"),
]


@pytest.mark.parametrize("name, text, reference", NOTATION, ids=[case[1] for case in NOTATION])
def test_the_notation_aligns_by_name(name, text, reference):
    assert_same(DEFINITIONS[name], text, reference)


def test_every_word_that_is_read_is_in_one_of_the_texts():
    written = " ".join([text for _, text in CASES] + [text for _, text, _ in NOTATION])
    words = set(re.findall(r"\w+", written))
    functions = {w for name in OPERATIONS for w in (name, f"{name}_")} & words
    missing = {name for name in OPERATIONS if name not in words and f"{name}_" not in words}
    missing |= {name for name in (*ATTRIBUTES, *FILLS, *BUILTINS, *CALLS) if name not in words}
    elsewhere = {"Kept", "Identity", "Diagonal", *MATRICES, *SEGMENTS}
    elsewhere |= {"empty", "empty_like", "float_power"}  # written before it is read; pow
    elsewhere |= {*table}  # the lines of rows: torch_ops_rows.py
    elsewhere |= {name for name, word in WORDS.items() if word.runs_along or word.options}
    elsewhere |= {"Flip", "Axis", "unflatten"}
    elsewhere |= {"empty", "empty_like", "new_empty", "eye"}  # test_reading_parts.py, idioms.py
    assert functions and not missing - elsewhere


def test_equal_sizes_do_not_let_a_wrong_alignment_pass():
    """Where N equals C torch takes the wrong entries; the reader still says which axes meet."""
    definition = DEFINITIONS["batch_norm"]
    text = "x - (dy*xhat).sum(1)"
    names = Numbers(definition, {"N": 3, "C": 3}).python()
    assert eval(text, names).shape == (3, 3)
    (claim,) = read(text, definition, definition.inputs[0]).claims
    assert claim.actual is None and claim.given is None
    assert "C meets N" in claim.misaligned.problem
    assert "keepdim=True" in claim.misaligned.remedy and "[:, None]" in claim.misaligned.remedy
    assert str(claim.misaligned.spot).split("\n")[1].index("^") == text.index("-")


MISALIGNED = {  # mathematics, text, what is said, and the remedy
    "a sum along the wrong axis": ("batch_norm", "dgain = (dy*xhat).sum(1)", "is (C,)", "summed"),
    "not summed": ("batch_norm", "dgain = dy*xhat", "has shape (N, C)", "sum over N"),
    "not summed, size 1": ("batch_norm", "dmean = dy", "is (1, C)", "sum over N"),
    "a lost dimension": ("softmax_nll", "dlogit_maxes = probs.sum(1)", "is (N, 1)", "keepdim=True"),
    "two vectors": ("batch_norm", "dx = x.sum(0)*x.sum(1)", "C meets N", "from the right"),
    "a matrix in the wrong order": ("linear", "dx = dy @ weight", "H meets K", "right side"),
    "the left one": ("linear", "dweight = x @ dy", "K meets N", "left side"),
    "transposed": ("batch_norm", "dx = x.T*dy", "C meets N", ".T"),
    "in place": ("batch_norm", "dgain = gain.clone()\ndgain += dy", "cannot change", "equal"),
    "by a method": ("batch_norm", "dgain = gain.clone()\ndgain.add_(dy)", "cannot change", "equal"),
    "an index of another rank": ("softmax_nll", "probs.gather(1, labels)", "(N,)", "[:, None]"),
    "einsum": ("linear", "torch.einsum('nk,nh->kh', x, weight)", "N meets K", ""),
    "expanded": ("batch_norm", "dy.sum(1).expand_as(x)", "cannot be expanded", "size 1"),
    "where": ("batch_norm", "torch.where(x.sum(1) > 0, x, dy)", "N meets C", "keepdim"),
    "a class too many": ("softmax_nll", "logits - F.one_hot(labels, C + 1)", "C + 1", ""),
    "entries lost": ("batch_norm", "dx = x.view(n)", "different numbers of entries", ""),
    "by name": ("batch_norm", "dgain = Sum(dy, C)", "has the axis N", "Sum(..., N)"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISALIGNED.values(), ids=MISALIGNED.keys())
def test_shapes_that_do_not_fit_are_said_with_the_remedy(case):
    name, text, said, remedy = case
    definition = DEFINITIONS[name]
    (claim,) = read(text, definition, definition.differentiable[0]).claims
    assert claim.actual is None and said in claim.misaligned.problem
    assert remedy in claim.misaligned.remedy
    assert "^" in str(claim.misaligned) and claim.misaligned.by_name is None


def test_arithmetic_that_fits_by_name_alone_is_said_so():
    class Rows(derive.Forward):
        x = derive.Input(N, C)
        row = derive.Sum(x**2, C)
        loss = row + 1

    (claim,) = read("2*dloss*x", Rows.definition, Rows.definition.inputs[0]).claims
    assert "N meets C" in claim.misaligned.problem and "[:, None]" in claim.misaligned.remedy
    assert str(claim.misaligned.by_name) == "2*dloss*x"
    (claim,) = read("2*dloss[:, None]*x", Rows.definition, Rows.definition.inputs[0]).claims
    assert claim.misaligned is None and str(claim.actual) == "2*dloss*x"


def test_a_matrix_times_itself_needs_a_twin_of_its_axis():
    definition = DEFINITIONS["linear"]
    reading = read("x @ x.T @ dy @ weight.T", definition, definition.differentiable[0])
    assert [(str(a), str(b)) for a, b in reading.definition.twins] == [("N_2", "N")]
    assert [str(axis) for axis in reading.definition.axes] == ["N", "N_2", "K", "H"]
    assert definition.twins == ()


def test_axes_are_exchanged_all_at_once():
    """A bound axis steps aside for a name that comes in, and only axes with a size come out."""
    space = Space(DEFINITIONS["batch_norm"])
    M, P = space.twin(N, {N}), space.twin(N, {N, Axis("N_2")})
    e = Sum.over(Tensor("a", (N, M, P)) * Tensor("b", (M,)), [M])  # bound M, free N and P
    moved = placed(space, e, {N: M, P: N})
    assert axes_of(moved) == {M, N} and {*moved.atoms(Along)} <= {Along([N]), Along([P])}
    (a,) = (t for t in moved.atoms(Tensor) if t.name == "a")
    assert (a.axes[0], a.axes[2]) == (M, N) and a.axes[1] == moved.axes[0] == P
    swapped = placed(space, Tensor("a", (N, M)), {N: M, M: N})
    assert swapped == Tensor("a", (N, M)).along((M, N))
    choice = sympy.Piecewise((1, Tensor("a", (N,)) > 0), (0, True))
    assert axes_of(placed(space, choice, {N: M})) == {M}


def test_every_axis_that_is_read_has_a_size():
    for text in (
        "x @ x.T @ x",
        "(x[:, None] - x).sum(1) @ x.T @ dy",
        "x @ (x.T @ x).T @ (x.T @ x)",
    ):
        value, definition = value_of(DEFINITIONS["batch_norm"], text)
        bound = {axis for along in value.expression.atoms(Along) for axis in along.axes}
        assert {*value.axes, *bound, *axes_of(value.expression)} <= {*definition.axes}


NOTES = {
    "dgain = (dy*xhat).sum(0, keepdim=True)": "has shape (1, C); dgain is (C,)",
    "dgain = (dy*xhat).sum()": "has shape (); dgain is (C,)",
    "dmean = dy.sum(0)": "has shape (C,); dmean is (1, C)",
    "dgain = (dy*xhat).sum(0)": "",
    "dgain = Sum(dy*xhat, N)": "",
}


@pytest.mark.parametrize("text, note", NOTES.items())
def test_a_shape_that_broadcasts_is_noted(text, note):
    definition = DEFINITIONS["batch_norm"]
    (claim,) = read(text, definition, definition.inputs[0]).claims
    assert claim.note == note and claim.misaligned is None


NOT_UNDERSTOOD = {  # text, where the caret stands, the problem, what is said to do
    "a misspelt name": ("inv_sdt*dy", "inv_sdt", "there is no inv_sdt", "did you mean inv_std?"),
    "an unknown name": ("foo*dy", "foo", "there is no foo", "x (N, C), gain (C)"),
    "a misspelt function": ("x + torch.sotfmax(x, 1)", "sotf", "sotfmax", "did you mean softmax?"),
    "a misspelt method": ("x.exq()", "exq", "there is no .exq", "did you mean exp?"),
    "an unknown method": ("x.zzzzz()", "zzzzz", "there is no .zzzzz", "supported: abs"),
    "a missing *": ("2x + 1", "x", "", "2*x"),
    "a missing * before a bracket": ("2(x)", "2", "", "is a * missing?"),
    "two names": ("gain dy", "dy", "", "is a * missing?"),
    "a name called": ("gain(dy)", "gain", "not a function", "is a * missing?"),
    "a caret": ("x^2", "^", "not a power", "x**2"),
    "a sum of what": ("\u03a3 x", "\u03a3", "U+03A3", "type Sum"),
    "numpy": ("np.packbits(x)", "packbits", "not a supported function", "supported:"),
    "a reason": ("np.bincount(x)", "bincount", "sorting or counting", "do it outside"),
    "LaTeX": (r"\frac{dy}{n}", "f", "not an expression", "LaTeX is not read"),
    "two equal signs": ("dx == gain*dy", "==", "== compares", "dx = ..."),
    "the gradient itself": ("gain*dx", "dx", "gradient that is checked", "other values"),
    "x.grad": ("x.grad", "grad", "not supported", "called dx"),
    "Python's own names": ("x.__class__", "__class__", "not supported", "names that begin with _"),
    "a dimension too far": ("x.sum(2)", "sum", "no dimension 2", "from 0 to 1"),
    "a softmax of no dimension": ("F.softmax(dy)", "softmax", "is missing", "F.softmax(dy, 1)"),
    "a numbered Sum": ("Sum(x, 0)", "0", "not an axis", "in torch .sum(0)"),
    "an axis that is not there": ("Sum(gain, N)", "N", "no axis N", "its axes are: C"),
    "a wrong argument": ("x.sum(dims=0)", "sum", "argument 'dims'", "sum(input, dim"),
    "Python's sum": ("sum(x)", "sum", "Python built-in", "torch.sum"),
    "a label in a sum": ("x.sum(0) + x.argmax(0)", "+", "as a number", "one_hot"),
    "a part by a tensor": ("x[gain.sum() :]", "sum", "end of a slice", "x[:, 1:]"),
    "a tensor as exponent": ("x**dy", "**", "exponent is a tensor", "exp"),
    "an open bracket": ("x*(dy + 1", "(", "never closed", "close it with )"),
    "a pair": ("x.max(1)*dy", "max", "a pair", ".values"),
    "a number of classes": ("F.one_hot(x.argmax(1))", "one_hot", "how many", "one_hot(labels, C)"),
    "a device in a sum": ("x + x.device", "device", "neither a tensor nor a number", "write one"),
    "no dtype of torch's": ("x.to(math.float32)", "float32", "not a supported", "supported: abs"),
    "bools added": ("(x > 0) + (x > 1)", "+", "bools", ".float()"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_UNDERSTOOD.values(), ids=NOT_UNDERSTOOD.keys())
def test_what_is_not_understood_is_said_with_its_place(case):
    text, place, problem, remedy = case
    definition = DEFINITIONS["batch_norm"]
    with pytest.raises(NotUnderstood) as error:
        read(text, definition, definition.inputs[0])
    assert problem in error.value.problem and remedy in error.value.remedy
    assert error.value.spot.shown == text
    assert text[error.value.spot.column :].startswith(place)
    assert str(error.value).startswith("formula:1: ")


def test_the_caret_counts_characters_and_long_lines_are_cut():
    definition = DEFINITIONS["batch_norm"]
    for text in ("größe = x\ngröße*foo", "x + " * 60 + "foo" + " + x" * 30):
        with pytest.raises(NotUnderstood) as error:
            read(text, definition, definition.inputs[0])
        spot = error.value.spot
        assert spot.shown[spot.column :].startswith("foo") and len(spot.shown) < 100


def test_numbers_are_read_exactly():
    definition = DEFINITIONS["batch_norm"]

    def number(text):
        return read(f"dx = {text}", definition, definition.inputs[0]).claims[0].actual

    assert number("0.1") == sympy.Rational(1, 10) and number("1e-5") == sympy.Rational(1, 10**5)
    assert number("1_000.5") == sympy.Rational(2001, 2) and number("1/3") == sympy.Rational(1, 3)
    assert number("2**-3") == sympy.Rational(1, 8) and number(".5") == sympy.Rational(1, 2)


def test_sizes_and_ones_own_names():
    definition = DEFINITIONS["mlp"]
    let = {"Yb": "labels", "bnraw": "xhat", "m": "N", "dloss": "1"}
    text = "dbnraw = bnraw*m*n\ndloss_logprobs = -dloss*F.one_hot(Yb, V)/N"
    reading = read(text, definition, definition.differentiable[0], let)
    assert [claim.of.name for claim in reading.claims] == ["xhat", "logprobs"]
    assert str(reading.claims[0].actual) == "N**2*xhat"
    assert str(reading.claims[1].actual) == "-OneHot(labels, V)/N"
    assert reading.upstream == 1 and reading.mentions_upstream and not reading.single
    for wrong, said in (
        ({"a": "hpreact_xhatt"}, "did you mean hpreact_xhat?"),
        ({"1a": "N"}, "mine"),
    ):
        with pytest.raises(NotUnderstood) as error:
            read(text, definition, definition.differentiable[0], wrong)
        assert said in error.value.remedy


LEAVES = st.sampled_from(["x", "dy", "gain", "mean", "inv_std", "xhat", "eps", "(2)", "n", "dgain"])
BEHIND = st.sampled_from(
    [
        ".sum(0)",
        ".sum(1)",
        ".sum(-1,keepdim=True)",
        ".mean(0,keepdim=True)",
        ".sum()",
        ".T",
        "[:,None]",
        "[None]",
        "[...,None]",
        ".unsqueeze(0)",
        ".squeeze()",
        ".exp().softmax(0)",
        ".amax(0)",
        ".mT",
        ".transpose(0,1)",
        ".expand(n,C)",
        ".view(C,-1)",
        ".reshape(-1)",
        ".var(0)",
        ".expand_as(x)",
        ".view_as(x)",
        ".clone().add_(dy)",
        ".max(1).values",
        "[:,0]",
        ".permute(1,0)",
        ".flatten()",
        "[None,:,None]",
        ".max(0,keepdim=True)[0]",
    ]
)


def grown(inner):
    return st.one_of(
        st.tuples(inner, st.sampled_from("+-*@"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, BEHIND).map("".join),
        st.tuples(inner, inner).map(lambda t: f"torch.maximum({t[0]}, {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"torch.outer({t[0]}, {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"torch.einsum('ij,kj->ki', {t[0]}, {t[1]})"),
    )


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@example("torch.maximum(x.T, x[:,0])")
@given(st.recursive(LEAVES, grown, max_leaves=6))
def test_what_torch_runs_is_read_the_same_or_refused_and_never_called_misaligned(text):
    definition = DEFINITIONS["batch_norm"]
    numbers = Numbers(definition)
    try:
        expected = torch.as_tensor(eval(text, numbers.python()), dtype=torch.float64)
    except (RuntimeError, IndexError):
        expected = None  # the shapes do not fit
    except (TypeError, AttributeError):
        return  # a number where torch wants a tensor
    try:
        program, numbers.definition = run(definition, f"result = {text}")
    except Refusal:
        return
    cell = program.cells["result"]
    assert (cell.broken is None) == (expected is not None), cell.broken
    if cell.broken is None:
        numbers.sizes = numbers.definition.sizes_from(numbers.sizes)
        result = as_torch(cell.value, numbers)
        assert result.shape == expected.shape
        torch.testing.assert_close(result.double(), expected, rtol=1e-5, atol=1e-7)
