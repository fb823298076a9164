"""Autograd Functions as repositories have them, right ones and wrong in known ways: the wrong
gradient is named, and no other.
"""

import re
from pathlib import Path

import pytest

import derive
from codegen.backwards.checking import check_function
from codegen.backwards.expressed import Expressed
from derive.language.errors import QuestionError

SOURCE = (Path(__file__).parent / "torch_functions.py").read_text()
HEAD, *CLASSES = re.split(r"\n\n\n(?=class )", SOURCE)
TEXTS = {text.split("(")[0].removeprefix("class "): text for text in CLASSES}
AXES = {
    "Swish": "x: N C",
    "SwishSetup": "x: N",
    "GELU": "x: N C",
    "GELUTanh": "x: N",
    "LayerNorm": "x: B T C, weight: C, bias: C",
    "RMSNorm": "x: N C, weight: C",
    "Standardize": "x: N C",
    "BatchNorm": "x: N C, gamma: C, beta: C",
    "Softmax": "x: N C",
    "LogSoftmax": "x: N C",
    "CrossEntropy": "logits: N C, target: N",
    "SmoothedCrossEntropy": "logits: N C, labels: N",
    "Dice": "p: N M, t: N M given",
    "Focal": "x: N, t: N given",
    "Linear": "x: N D, w: K D, b: K",
    "BatchedLinear": "x: B T D, w: D K",
    "ReLU": "x: N",
    "LeakyReLU": "x: N C",
    "PReLU": "x: N C, a: C",
    "Clamp": "x: N",
    "MSE": "x: N C, y: N C",
    "SmoothL1": "x: N, y: N",
    "Mish": "x: N",
    "SwiGLU": "a: N C, b: N C",
    "Scale": "x: B T C, scale: C, shift: C",
    "Embedding": "table: V E, ids: N int",
    "Normalize": "x: N C",
    "Attention": "q: T E, k: S E, v: S F",
    "KLDiv": "logits: N C, target: N C",
    "LogSumExp": "x: N C",
    "Reciprocal": "x: N",
    "Cosine": "a: N C, b: N C",
    "Huber": "pred: N, target: N",
    "WeightedCrossEntropy": "logits: N C, labels: N int, weight: C given",
}
# The class, what is exchanged in it, and the gradients that are wrong then.

BROKEN = {
    "a missing term: Swish": ("Swish", "1 + x * (1 - s)", "1 + x", "dx"),
    "a sign: SwishSetup": ("SwishSetup", "y + s", "y - s", "dx"),
    "a missing term: GELU": ("GELU", "(cdf + x * pdf)", "cdf", "dx"),
    "a wrong constant: GELU": ("GELU", "2 * math.pi", "math.pi", "dx"),
    "a wrong constant: GELUTanh": ("GELUTanh", "3 * 0.044715", "2 * 0.044715", "dx"),
    "a missing term: LayerNorm": ("LayerNorm", " - xhat * c2", "", "dx"),
    "detached mean: LayerNorm": ("LayerNorm", "g - c1 - xhat", "g - xhat", "dx"),
    "a forgotten weight: LayerNorm": ("LayerNorm", "g = dy * weight", "g = dy", "dx"),
    "None: LayerNorm": (
        "LayerNorm",
        "return dx, dweight, dbias",
        "return dx, dweight, None",
        "dbias",
    ),
    "swapped: LayerNorm": (
        "LayerNorm",
        "dx, dweight, dbias, None",
        "dx, dbias, dweight, None",
        "dweight dbias",
    ),
    "a wrong axis: LayerNorm": ("LayerNorm", "c1 = g.mean(-1,", "c1 = g.mean(0,", "dx"),
    "n for sum: RMSNorm": ("RMSNorm", "rstd**3 / n", "rstd**3", "dx"),
    "a power: RMSNorm": ("RMSNorm", "rstd**3", "rstd**2", "dx"),
    "no rstd: RMSNorm": ("RMSNorm", "(dy * x * rstd)", "(dy * x)", "dweight"),
    "n for n - 1: Standardize": ("Standardize", ".sum(0) / (n - 1)\n", ".sum(0) / n\n", "dx"),
    "n - 1 for n: Standardize": ("Standardize", "dout.mean(0)", "dout.sum(0) / (n - 1)", "dx"),
    "a forgotten upstream: BatchNorm": (
        "BatchNorm",
        "gbeta = gy.sum(dim=0)",
        "gbeta = torch.full_like(mean, N)",
        "dx dbeta",
    ),
    "swapped: BatchNorm": (
        "BatchNorm",
        "return gx, ggamma, gbeta",
        "return gx, gbeta, ggamma",
        "dgamma dbeta",
    ),
    "a forgotten weight: BatchNorm": ("BatchNorm", "(gamma * invstd / N)", "(invstd / N)", "dx"),
    "a missing term: Softmax": ("Softmax", "dy - (dy * y).sum(dim=-1, keepdim=True)", "dy", "dx"),
    "a wrong axis: Softmax": ("Softmax", "(dy * y).sum(dim=-1", "(dy * y).sum(dim=0", "dx"),
    "no upstream: Softmax": ("Softmax", "y * (dy - (dy * y)", "y * (1 - y + 0 * (dy * y)", "dx"),
    "a wrong axis: LogSoftmax": ("LogSoftmax", "dy.sum(1,", "dy.sum(0,", "dx"),
    "a forgotten upstream: CrossEntropy": (
        "CrossEntropy",
        "return g * grad",
        "return grad",
        "dlogits",
    ),
    "no mean: CrossEntropy": ("CrossEntropy", "g * grad / grad.shape[0]", "g * grad", "dlogits"),
    "no one hot: CrossEntropy": (
        "CrossEntropy",
        "        grad[torch.arange(grad.shape[0]), target] -= 1\n",
        "",
        "dlogits",
    ),
    "the classes' number: SmoothedCrossEntropy": (
        "SmoothedCrossEntropy",
        "p.size(0)",
        "p.size(1)",
        "dlogits",
    ),
    "a missing term: Dice": ("Dice", "(t * u - inter.unsqueeze(1)) / u**2", "t / u", "dp"),
    "a forgotten upstream: Dice": ("Dice", "return g.unsqueeze(1) * dp", "return dp", "dp"),
    "a constant: Focal": (
        "Focal",
        "(k * p * torch.log(p) - (1 - p))",
        "(p * torch.log(p) - (1 - p))",
        "dx",
    ),
    "half of it: Focal": ("Focal", "g * (da + db)", "g * da", "dx"),
    "transposed: Linear": ("Linear", "gw = g.t() @ x", "gw = x.t() @ g", "dw"),
    "a missing reduction: Linear": ("Linear", "gb = g.sum(0)", "gb = g.sum()", "db"),
    "None: Linear": ("Linear", "return gx, gw, gb", "return gx, None, gb", "dw"),
    "swapped inputs: BatchedLinear": (
        "BatchedLinear",
        '"btk,dk->btd", g, w',
        '"btk,dk->btd", 2 * g, w',
        "dx",
    ),
    "at the boundary: ReLU": ("ReLU", "(x > 0)", "(x >= 0)", "dx"),
    "another condition: LeakyReLU": (
        "LeakyReLU",
        "torch.where(x > 0, g",
        "torch.where(x > 1, g",
        "dx",
    ),
    "a forgotten slope: LeakyReLU": ("LeakyReLU", "ctx.slope * g", "0 * g", "dx"),
    "a missing reduction: PReLU": ("PReLU", "x * g).sum(0)", "x * g).sum(0) / x.shape[0]", "da"),
    "a missing choice: PReLU": (
        "PReLU",
        "torch.where(x > 0, torch.zeros_like(x), x * g)",
        "(x * g)",
        "da",
    ),
    "one side: Clamp": ("Clamp", "((x >= ctx.lo) & (x <= ctx.hi))", "(x >= ctx.lo)", "dx"),
    "beyond a number: Clamp": ("Clamp", "(x <= ctx.hi)", "(x <= 2 * ctx.hi)", "dx"),
    "a factor: MSE": ("MSE", "gx = 2 * g", "gx = g", "dx dy"),
    "a sign: MSE": ("MSE", "return gx, -gx", "return gx, gx", "dy"),
    "no mean: MSE": ("MSE", " / d.numel()", "", "dx dy"),
    "beyond: SmoothL1": ("SmoothL1", "d.sign()", "d", "dx dy"),
    "a missing term: Mish": ("Mish", "(t + x * s", "(x * s", "dx"),
    "a derivative's derivative: Mish": ("Mish", "(1 - t * t)", "(1 - t)", "dx"),
    "swapped: SwiGLU": ("SwiGLU", "return da, db", "return db, da", "da db"),
    "a forgotten factor: SwiGLU": ("SwiGLU", " + sig) * b", " + sig)", "da"),
    "a missing reduction: Scale": ("Scale", "g.sum(dim=(0, 1))", "g.sum(dim=1)[0]", "dshift"),
    "a mean for a sum: Scale": ("Scale", "(g * x).sum(", "(g * x).mean(", "dscale"),
    "written, not added: Embedding": (
        "Embedding",
        "d.index_add_(0, ids, g)",
        "d.index_add_(0, ids, 2 * g)",
        "dtable",
    ),
    "a missing term: Normalize": (
        "Normalize",
        "(g - y * (g * y).sum(1, keepdim=True)) / n",
        "g / n",
        "dx",
    ),
    "a power: Normalize": ("Normalize", " / n\n", " / n**2\n", "dx"),
    "a forgotten scale: Attention": ("Attention", "dq = ds @ k * ctx.scale", "dq = ds @ k", "dq"),
    "a missing term: Attention": (
        "Attention",
        "dp - (dp * p).sum(-1, keepdim=True)",
        "dp",
        "dq dk",
    ),
    "exchanged: Attention": ("Attention", "return dq, dk, dv", "return dq, 2 * dk, dv", "dk"),
    "a missing term: KLDiv": (
        "KLDiv",
        "(target.log() + 1 - logp)",
        "(target.log() - logp)",
        "dtarget",
    ),
    "normalized targets: KLDiv": (
        "KLDiv",
        "logp.exp() * target.sum(-1, keepdim=True)",
        "logp.exp()",
        "dlogits",
    ),
    "no upstream: LogSumExp": ("LogSumExp", "g[:, None] * torch", "torch", "dx"),
    "a sign: Reciprocal": ("Reciprocal", "-g * y", "g * y", "dx"),
    "a power: Cosine": ("Cosine", "a / na**2", "a / na", "da"),
    "not clamped: Huber": ("Huber", "ctx.delta * r.sign()", "r.sign()", "dpred dtarget"),
    "a forgotten weight: WeightedCrossEntropy": (
        "WeightedCrossEntropy",
        "d * w.unsqueeze(1)",
        "d",
        "dlogits",
    ),
}
SAMPLE = ("Swish", "GELUTanh", "LayerNorm", "CrossEntropy", "Linear", "Clamp")
SAMPLED = (
    "a missing term: LayerNorm",
    "None: LayerNorm",
    "swapped: BatchNorm",
    "a forgotten upstream: CrossEntropy",
    "a missing reduction: Linear",
    "beyond a number: Clamp",
    "at the boundary: ReLU",
)


def _some(names, sample):
    return [n if n in sample else pytest.param(n, marks=pytest.mark.thorough) for n in names]


def verdict_of(folder: Path, name: str, before: str = "", after: str = ""):
    assert before in TEXTS[name]
    path = folder / f"{name.lower()}.py"
    path.write_text(f"{HEAD}\n\n\n{TEXTS[name].replace(before, after)}\n")
    return check_function(f"{path}:{name}", AXES[name])


@pytest.mark.parametrize("name", _some(AXES, SAMPLE))
def test_a_right_backward_is_proved(tmp_path, name):
    verdict = verdict_of(tmp_path, name)
    assert verdict.outcome == "right", str(verdict)


@pytest.mark.parametrize("name", _some(BROKEN, SAMPLED))
def test_a_wrong_gradient_is_named_and_no_other(tmp_path, name):
    of, before, after, wrong = BROKEN[name]
    verdict = verdict_of(tmp_path, of, before, after)
    assert verdict.outcome == "wrong"
    assert verdict.wrong == wrong.split()


MORE = """
import torch
from torch.autograd import Function


def reference(x):
    return torch.sin(x)


class Opaque(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(__import__("numpy").sin(x.detach().numpy()))

    @staticmethod
    def backward(ctx, g):
        return g * torch.cos(ctx.saved_tensors[0])


class Unmoved(Opaque):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.round(x).long().double() + x.data.cpu().numpy().astype("float32").sum().item()


class Bits(Opaque):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * 127).round().long().bitwise_and(255).double()


class OpaqueWrong(Opaque):
    @staticmethod
    def backward(ctx, g):
        return g * torch.sin(ctx.saved_tensors[0])


class Rounded(Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, g):
        return g


class Transposed(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        dx = g @ w.t()
        dw = x @ g
        return dx, dw


class Moments(Function):
    @staticmethod
    def forward(ctx, x):
        m = x.mean(1)
        ctx.save_for_backward(x, m)
        return x - m[:, None], m * m

    @staticmethod
    def backward(ctx, g, gm):
        x, m = ctx.saved_tensors
        return g - g.mean(1, keepdim=True) + (2 * m * gm)[:, None] / x.shape[1]


class Few(Function):
    @staticmethod
    def forward(ctx, x, k=2.0):
        return x * k

    @staticmethod
    def backward(ctx, g):
        return g * 2.0


class Branch(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2 if x.sum() > 0 else x

    @staticmethod
    def backward(ctx, g):
        return g * 2


class BranchBack(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 * x if torch.allclose(x, 0 * x) else g * x


class Autocast(Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=False):
            return x.float() @ w

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return g @ w.t(), x.t() @ g


class AutocastWrong(Autocast):
    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        with torch.autocast("cpu"):
            return g @ w.t(), 2 * x.t() @ g


class Typed(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        t = torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x))
        inner = 0.79788456 + 0.1070322243 * x * x
        return g * (0.5 * x * ((1 - t * t) * inner) + 0.5 * (1 + t))
"""
SAID = {  # axes, --like, the outcome, what is wrong, and what is said
    "Opaque": ("x: N", "reference", "agrees", [], "not that anything is proved"),
    "OpaqueWrong": ("x: N", "reference", "wrong", ["dx"], "numerically wrong"),
    "Rounded": ("x: N", "", "by definition", [], "straight through"),
    "Bits": ("x: N", "", "not checked", [], "surrogate"),
    "Transposed": ("x: N D, w: D K", "", "wrong", ["dw"], "raises while computing dw"),
    "Autocast": ("x: N D, w: D K", "", "right", [], "proved"),
    "AutocastWrong": ("x: N D, w: D K", "", "wrong", ["dw"], "the coefficient"),
    "Moments": ("x: N C", "", "right", [], "m is saved but"),
    "Few": ("x: N", "", "wrong", ["dx"], "for 2 arguments"),
    "Typed": ("x: N", "", "right", [], "right up to rounding"),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_found_is_said(tmp_path, name):
    axes, like, outcome, wrong, words = SAID[name]
    (tmp_path / "more.py").write_text(MORE)
    verdict = check_function(f"{tmp_path}/more.py:{name}", axes, like=like)
    assert (verdict.outcome, verdict.wrong) == (outcome, wrong)
    assert words in str(verdict)
    assert verdict.as_json()["outcome"] == outcome


@pytest.mark.parametrize("name", ["Opaque", "Unmoved", "Branch", "BranchBack"])
def test_what_cannot_be_traced_is_not_understood(tmp_path, name):
    (tmp_path / "more.py").write_text(MORE)
    with pytest.raises(QuestionError, match="--like") as error:
        check_function(f"{tmp_path}/more.py:{name}", "x: N")
    if "Branch" in name:
        assert "depends on the values of a tensor" in error.value.problem
        assert " if " in MORE.splitlines()[error.value.place.line - 1]


def test_what_is_read_wrongly_is_no_verdict(tmp_path, monkeypatch):
    """A mistake of a rule shows beside the numbers of the Function itself."""
    (tmp_path / "more.py").write_text(MORE)
    read = Expressed.gradient
    monkeypatch.setattr(Expressed, "gradient", lambda self, tree: 2 * read(self, tree))
    with pytest.raises(QuestionError, match="was read as a different function"):
        check_function(f"{tmp_path}/more.py:Moments", "x: N C")


def test_the_assertion_is_the_verdict(tmp_path):
    (tmp_path / "more.py").write_text(MORE)
    derive.assert_gradient(f"{tmp_path}/more.py:Moments", axes="x: N C")
    with pytest.raises(AssertionError, match="raises while computing dw"):
        derive.assert_gradient(f"{tmp_path}/more.py:Transposed", axes="x: N D, w: D K")


def test_every_class_is_in_the_battery():
    assert {*AXES} == {*TEXTS} and {of for of, *_ in BROKEN.values()} >= {*TEXTS} - {"Embedding"}


SEVERAL = """
import torch

class Pair(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w, x + w

    @staticmethod
    def backward(ctx, gproduct, gsum):
        x, w = ctx.saved_tensors
        return gproduct * x + gsum, gproduct * x + gsum
"""


def test_upstream_gradients_go_by_the_names_that_the_backward_gives_them(tmp_path):
    file = tmp_path / "pair.py"
    file.write_text(SEVERAL)
    said = str(check_function(f"{file}:Pair", "x: N C, w: N C"))
    assert "gproduct" in said and "up0" not in said
