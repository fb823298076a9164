"""Parts of dimensions, scans, joined tensors and convolutions in a formula: beside torch, which
runs the same text, and in the verdict on what people paste, with the mistakes that they make.
"""

import math

import pytest
import torch
import torch.nn.functional as F
from sampling import every

from codegen.targets.torch.interpret import Interpreter
from derive import check, forward_from
from derive.claims.reading import NotUnderstood
from derive.claims.reading.names import TextNames
from derive.claims.reading.notation import uses_notation
from derive.claims.reading.program import TextProgram
from derive.claims.reading.source import Source
from derive.claims.reading.values import Space, TextValue

FORWARDS = """\
from sympy import exp, log
from derive import *

N, C, D, T, K = Axis("N"), Axis("C"), Axis("D"), Axis("T"), Axis("K")
V, M, Two = Axis("V"), Axis("M"), Axis("Two", 2)
E = Axis("E")
H = Axis("H", E / 2)
Less = Axis("Less", T - 1)
To = Axis("To", (T + 2 - 2 * (K - 1) - 1) // 2 + 1)
Half = Axis("Half")


class Plain(Forward):
    x = Input(N, E)
    a = Input(N, H)
    y = Sum(x, E) + Sum(a, H)


class Differences(Forward):
    x = Input(N, T)
    d = Slice(x, T, into=Less, start=1) - Slice(x, T, into=Less)
    y = d**2


class Depthwise(Forward):
    x = Input(N, C, T)
    w = Input(C, K)
    y = Sum(Window(x, T, into=(T, K), padding=K - 1) * w, K)


class Strided(Forward):
    x = Input(N, C, T)
    w = Input(D, C, K)
    b = Input(D)
    y = Sum(Window(x, T, into=(To, K), stride=2, dilation=2, padding=1) * w, C, K) + b


class Interleaved(Forward):
    x = Input(N, C)
    c = Given(N, Half)
    s = Given(N, Half)
    pair = Unflatten(x, C, into=(Half, Two))
    a = Sum(OneHot(0, Two) * pair, Two)
    b = Sum(OneHot(1, Two) * pair, Two)
    y = Flatten(OneHot(0, Two) * (a*c - b*s) + OneHot(1, Two) * (a*s + b*c), Half, Two, into=C)


class SegmentSoftmax(Forward):
    x = Input(M)
    dst = Label(M)
    v = Input(V)
    e = exp(x)
    z = SegmentSum(e, dst, V)
    p = e / Gather(z, dst, V)
    y = p * Gather(v, dst, V)


class Straight(Forward):
    x = Input(N)
    w = Input(N)
    y = w * x + w * Detach(exp(x) - x)


class Exclusive(Forward):
    x = Input(N, T)
    y = CumSum(x, T, exclusive=True)


class SoFar(Forward):
    x = Input(N, T)
    y = CumSum(x, T) ** 2
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """The path of a forward of the file above, by its name."""
    file = tmp_path_factory.mktemp("forwards") / "forwards.py"
    file.write_text(FORWARDS)
    return lambda name: name if name.islower() else f"{file}:{name}"


# Each text beside what torch makes of it: x is (2, 6), a is (2, 3).
TEXTS = [
    "x[:, 1:] * x[:, :-1] + x[0, 2:3] - x[:, -1:] * x[:, -2, None]",
    "x[..., ::2] - a * x[..., 1::2] + x[:, 1::2]",
    "x[..., : x.shape[-1] // 2] + x[:, x.shape[1] // 2 :] * a",
    "x[1] + x[-1] * x[0, 3]",
    "torch.cat((-x[:, 3:], x[:, :3]), 1) * torch.cat([a, a], dim=-1)",
    "torch.cat([a[:, :1], a[:, 1:] - a[:, :-1], -a[:, -1:]], 1)",
    "torch.concat((x, a), 1).sum(1) + torch.concatenate((a, x), 1)[:, 2]",
    "torch.stack((a, -a), -1).sum(1) + torch.stack([x, 2 * x])[1].sum()",
    "x.flip(1) + torch.flip(x, [0, 1]) - torch.flip(x, dims=(0,))",
    "torch.roll(x, 1, 1) - x.roll(-2, -1) + torch.roll(x, (1, -1), (0, 1))",
    "F.pad(x, (1, 2))[:, 1:-2] + F.pad(a, (0, a.shape[1]), value=0.5) - F.pad(x, (-1, 1))",
    "F.pad(x, (0, 0, 1, 0))[:-1] * F.pad(x[:-1], (0, 0, 0, 1))",
    "torch.roll(x, 1) * F.pad(x[:, 1:-1], (1, 1), mode='reflect')",
    "torch.cumsum(x, -1) - x.flip(-1).cumsum(-1).flip(-1) + x.cumprod(0)",
    "torch.logcumsumexp(x, 1) + torch.ones_like(x).cumsum(1)",
    "torch.diff(x, dim=1)[:, :3] - x.diff(dim=0).sum()",
    "x.narrow(1, 1, 3) + x.select(1, 2)[:, None]",
    "sum_of[0] * sum_of[1]",
    "x.unfold(1, 3, 2).sum(1) + x.unfold(-1, 2, 1)[..., 1].sum()",
    "torch.diagonal(x @ x.T) + (x @ x.T).diagonal(0, 1, 0) * (x.T @ x).diagonal().sum()",
    "p * q",
    "torch.eye(x.shape[0], dtype=torch.float64) @ x",
    "x.split(x.shape[1] // 2, 1)[1] - x.split((2, x.shape[1] - 2), dim=1)[0].sum()",
    "x.chunk(2, 1)[1] * x.chunk(2, dim=-1)[0]",
]
BEFORE = {
    "sum_of[0] * sum_of[1]": "sum_of = torch.stack((x, a.repeat(1, 1).sum() + x)).unbind(0)",
    "p * q": "p, q = torch.stack((a, 2 * a), 1).unbind(1)",
}
CONVOLUTIONS = [
    "F.conv1d(x, w, b)",
    "F.conv1d(x, w, stride=2, padding=1, dilation=2)",
    "F.conv1d(x, w, None, 2, (3,))",
    "torch.conv1d(x[0], w, b, padding='valid')",
    "F.conv_transpose1d(y, w)",
    "F.conv_transpose1d(y, w, stride=2, padding=1, dilation=2)",
    "F.conv_transpose1d(y, w, None, 3, 1, 2)",
    "F.conv1d(x, w[0][:, None], groups=x.shape[1])",
    "F.conv_transpose1d(x, w[0][:, None], padding=1, groups=x.shape[1])",
    "F.conv2d(x[:, :, None], w[:, :, None] + w[..., None], padding=(2, 1))",
    "F.conv_transpose2d(y[..., None], w[..., None] * w[:, :, None], stride=(2, 1))",
]


def as_torch(definition, text):
    """The value of the text that is read, and the tensors of the forward by name."""
    torch.manual_seed(1)
    sizes = {"N": 2, "E": 6, "T": 7, "C": 4, "D": 3, "K": 2}
    sizes = definition.sizes_from({a: sizes[a.name] for a in definition.independent_axes})
    given = {
        t.name: torch.randn([sizes[a] for a in t.home], dtype=torch.float64)
        for t in definition.inputs
    }
    interpreter = Interpreter(definition, given)
    given |= interpreter.run()
    source = Source(text, "text")
    space = Space(definition, uses_notation(source.parsed()))
    program = TextProgram(source, space, TextNames(definition, {}), definition.inputs[0])
    program.run(source.parsed().body)
    value = program.cells["result"].value
    assert isinstance(value, TextValue) and not program.cells["result"].broken
    interpreter.definition = space.definition
    interpreter.sizes = space.definition.sizes_from(interpreter.sizes)
    order = interpreter.definition.axes
    found = interpreter.value(value.expression)
    wanted = [order.index(axis) for axis in value.axes]
    shape = [interpreter.size(a) if a in value.axes else 1 for a in order]
    found = found.broadcast_to(shape).permute(
        wanted + [i for i in range(len(order)) if i not in wanted]
    )
    return found.reshape([1 if a is None else interpreter.size(a) for a in value.dims]), given


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_read_is_what_torch_computes(text, own):
    definition = forward_from(own("Plain")).definition
    lines = f"{BEFORE.get(text, 'o = 1')}\nresult = {text}"
    found, names = as_torch(definition, lines)
    scope = {"torch": torch, "F": F, **names}
    exec(lines, scope)
    torch.testing.assert_close(found, scope["result"], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("text", CONVOLUTIONS)
def test_convolutions_are_those_of_torch(text, own):
    definition = forward_from(own("Strided")).definition
    found, names = as_torch(definition, f"result = {text}")
    expected = eval(text, {"torch": torch, "F": F, **names})
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


WRITTEN = [
    "r = torch.zeros_like(x)\nr[:, 1:] = x[:, :-1]\nr[:, 0] += 2\nr[1:] *= 3\nresult = r",
    "r = x.clone()\nr[:, ::2] -= a\nr[:, 1::2] = a * x[:, ::2]\nr[0, :2] = a[1, :2]\nresult = r",
    "r = x * 2\nr[..., -1] = a[:, 0]\nr[:, : x.shape[1] // 2] += a\nresult = r",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_what_is_written_into_a_part_is_what_torch_writes(text, own):
    found, names = as_torch(forward_from(own("Plain")).definition, text)
    scope = {"torch": torch, **names}
    exec(text, scope)
    torch.testing.assert_close(found, scope["result"])


NOTATION = {
    "Flip(x, E)": "x.flip(1)",
    "Shift(x, E, 2) - Shift(x, E, -1, fill=3)": "F.pad(x, (2, -2)) - F.pad(x, (-1, 1), value=3.0)",
    "Slice(x, E, into=H, start=1, step=2)": "x[:, 1::2]",
    "Pad(a, H, into=E, before=2, fill=1) + At(a, H, Position(E) - 1)": (
        "F.pad(a, (2, 1), value=1.0) + F.pad(a, (1, 2))"
    ),
    "Sum(Window(x, E, into=(E, H), padding=2) * a, H)": (
        "(F.pad(x, (2, 0)).unfold(1, 3, 1) * a[:, None]).sum(2)"
    ),
    "Max(Window(x, E, into=(E, H), padding=1, fill=-oo), H)": (
        "F.pad(x, (1, 1), value=-math.inf).unfold(1, 3, 1).amax(2)"
    ),
    "Concat((-a, H), (a, H), into=E)": "torch.cat((-a, a), 1)",
}


@pytest.mark.parametrize("text", NOTATION)
def test_the_words_of_the_notation(text, own):
    found, names = as_torch(forward_from(own("Plain")).definition, f"result = {text}")
    expected = eval(NOTATION[text], {"torch": torch, "F": F, "math": math, **names})
    torch.testing.assert_close(found, expected)


ROPE = """
h = dy.shape[-1] // 2
g = dy * sine
dx = dy * cosine + torch.cat((g[..., h:], -g[..., :h]), dim=-1)
"""
CONV = """
k = weight.shape[-1]
dx = F.conv1d(F.pad(dy, (k - 1, k - 1)), weight.flip(-1).transpose(0, 1))
dweight = F.conv1d(x.transpose(0, 1), dy.transpose(0, 1)).transpose(0, 1)
dbias = dy.sum((0, 2))
"""
STRIDED = """
dx = F.conv_transpose1d(dy, w, stride=2, padding=1, dilation=2)
dx = F.pad(dx, (0, x.shape[-1] - dx.shape[-1]))
dw = torch.einsum("ndt,nctk->dck", dy, F.pad(x, (1, 1)).unfold(2, 2 * w.shape[2] - 1, 2)[..., ::2])
"""
COX = """
p = torch.exp(score)
risk = p.flip(0).cumsum(0).flip(0)
g = dloss / event.sum()
dscore = g * (p * (event / risk).cumsum(0) - event)
"""
SEGMENTS = """
g = dy * v[dst]
s = torch.zeros_like(v).index_add(0, dst, g * p)
dx = p * (g - s[dst])
dv = torch.zeros_like(v).scatter_add(0, dst, dy * p)
"""
NORM = """
g = dy * gain
dx = dh + inv_rms * (g - h * inv_rms**2 * (g * h).mean(-1, keepdim=True))
dresidual = dx
dgain = (dy * h * inv_rms).sum(0)
"""
DIFFERENCES = """
g = 2 * d * dy
dx = torch.zeros_like(x)
dx[:, 1:] += g
dx[:, :-1] -= g
"""
CAUSAL = """
k = w.shape[1]
dx = F.conv1d(F.pad(dy, (0, k - 1)), w.flip(-1)[:, None], groups=x.shape[1])
dw = (F.pad(x, (k - 1, 0)).unfold(-1, k, 1) * dy[..., None]).sum((0, 2))
"""
PAIRS = """
p, q = dy[:, ::2], dy[:, 1::2]
dx = torch.stack((p * c + q * s, q * c - p * s), -1).flatten(1)
"""
SLICED = "dy[:, ::2], dy[:, 1::2]"
# A backward, and what people get wrong in it: each replacement, and what is then wrong.
BACKWARDS = {
    "rotary_embedding": (
        ROPE,
        {
            ("(g[..., h:], -g[..., :h])", "(-g[..., h:], g[..., :h])"): "dx",
            ("(g[..., h:], -g[..., :h])", "(g[..., :h], -g[..., h:])"): "dx",
            ("dy * sine", "dy"): "dx",
        },
    ),
    "conv1d": (
        CONV,
        {
            ("weight.flip(-1)", "weight"): "dx",
            ("(k - 1, k - 1)", "(k, k - 2)"): "dx",
            ("(k - 1, k - 1)", "(k, k)"): "dx",
            ("dbias = dy.sum((0, 2))", "dbias = dy.mean((0, 2))"): "dbias",
        },
    ),
    "Depthwise": (
        CAUSAL,
        {
            ("(0, k - 1)", "(k - 1, 0)"): "dx",
            ("w.flip(-1)", "w"): "dx",
            ("(k - 1, 0)).unf", "(0, k - 1)).unf"): "dw",
        },
    ),
    "cox": (
        COX,
        {
            (".flip(0).cumsum(0).flip(0)", ".cumsum(0)"): "dscore",
            ("risk).cumsum(0)", "risk).flip(0).cumsum(0).flip(0)"): "dscore",
            (" / event.sum()", ""): "dscore",
        },
    ),
    "SegmentSoftmax": (
        SEGMENTS,
        {("s[dst]", "(g * p).sum()"): "dx", ("g * p)", "g)"): "dx", ("dy * p)", "p)"): "dv"},
    ),
    "add_rms_norm": (NORM, {("dh + ", ""): "dx", ("inv_rms**2", "inv_rms"): "dx"}),
    "Differences": (
        DIFFERENCES,
        {
            ("-= g", "+= g"): "dx",
            ("[:, :-1] -= g", "[:, :-1] = -g"): "dx",
            ("[:, :-1] -=", "[:, 1:] -="): "dx",
            ("2 * d", "d"): "dx",
        },
    ),
    "Interleaved": (
        PAIRS,
        {("q * c - p * s", "q * c + p * s"): "dx", ("(p * c", "(-p * c"): "dx"},
    ),
    "Straight": (
        "dx = dy * w\ndw = dy * torch.exp(x)",
        {("dy * w", "dy * w * torch.exp(x)"): "dx", ("torch.exp(x)", "x"): "dw"},
    ),
    "Exclusive": (
        "dx = F.pad(dy, (0, 1))[:, 1:].flip(1).cumsum(1).flip(1)",
        {
            ("F.pad(dy, (0, 1))[:, 1:]", "dy"): "dx",
            (".flip(1).cumsum(1).flip(1)", ".cumsum(1)"): "dx",
        },
    ),
    "SoFar": (
        "g = 2 * x.cumsum(1) * dy\ndx = g.sum(1, keepdim=True) - g.cumsum(1) + g",
        {(" + g", ""): "dx", ("2 * ", ""): "dx"},
    ),
    "Strided": (STRIDED, {}),
}
CASES = [(name, text, (), "") for name, (text, _) in BACKWARDS.items() if name != "Strided"]
CASES += [("Interleaved", PAIRS.replace(SLICED, "dy.unflatten(-1, (-1, 2)).unbind(-1)"), (), "")]
CASES += [
    (name, text, change, wrong)
    for name, (text, mistakes) in BACKWARDS.items()
    for change, wrong in mistakes.items()
]


@pytest.mark.parametrize("name, text, change, wrong", every(2, CASES))
def test_the_verdict_on_what_is_pasted(name, text, change, wrong, own):
    if change:
        assert change[0] in text
        text = text.replace(*change)
    verdict = check(own(name), text)
    outcomes = {f"d{a.of.name}": a.outcome for a in verdict.answers}
    assert [n for n, outcome in outcomes.items() if outcome == "wrong"][:1] == [wrong][
        : bool(wrong)
    ]
    for answer in verdict.answers:
        found = answer.refutation
        assert answer.outcome in ("right", "wrong")
        assert answer.outcome == "right" or found.counterexample or found.misaligned


PROVED = {
    "rotary_embedding": [ROPE, "dx = dy*cosine + Shift(dy*sine, E, -D) - Shift(dy*sine, E, D)"],
    "conv1d": [CONV, "dx = F.conv_transpose1d(dy, weight)"],
    "cox": [COX, COX.replace("p.flip(0).cumsum(0).flip(0)", "Flip(CumSum(Flip(p, N), N), N)")],
    "Depthwise": [
        CAUSAL,
        "dx = F.conv_transpose1d(dy, w[:, None], groups=x.shape[1])[..., w.shape[1] - 1 :]",
    ],
    "Differences": [DIFFERENCES, "g = 2*d*dy\ndx = F.pad(g, (1, 0)) - F.pad(g, (0, 1))"],
    "SegmentSoftmax": [SEGMENTS],
    "add_rms_norm": [NORM],
}
CASES_PROVED = [(name, text) for name, texts in PROVED.items() for text in texts]


@pytest.mark.parametrize("name, text", CASES_PROVED)
def test_what_people_write_is_proved_for_every_size(name, text, own):
    for answer in check(own(name), text).answers:
        assert answer.outcome == "right" and answer.proved.every_size


def test_a_slice_that_small_tensors_do_not_have_is_said(own):
    text = "g = 2*d*dy\ndx = torch.cat([-g[:, :1], g[:, :-1] - g[:, 1:], g[:, -1:]], 1)"
    verdict = check(own("Differences"), text)
    assert verdict.right and "read where T - 2 is at least 1" in str(verdict)


REFUSED = {
    "x[:, ::-1]": "a slice with the step -1",
    "x[:, 1.5:]": "the end of a slice",
    "x[:, dy.sum() :]": "the end of a slice",
    "x.split(2, 1)": "the number of parts of width 2 in",
    "x.unbind(0)": "unbind along N",
    "torch.empty_like(x)": "dx is only partly written",
    "x[:, 1:][None] // 2": "// is supported for sizes only",
    "At(x, E, Position(E) * Position(N))": "not affine",
    "Window(x, E, into=E)": "does not name where a window is",
    "Slice(x, E, start=1)": "does not name the new axis",
    "Concat((a, H), (x, E), into=E)": "not as long as the parts",
    "Flip(x)": "takes other arguments",
    "Pad(x, E, into=E, behind=1)": "no such argument",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_read_is_said(text, own):
    with pytest.raises(NotUnderstood, match=REFUSED[text].replace("(", r"\(")):
        check(own("Plain"), f"dx = {text}")


@pytest.mark.parametrize(
    "text",
    ["x[:, 1:] + x", "torch.cat((x, a), 1)[:, 1:] + x", "F.pad(x, (1, 0))", "x.diff(dim=1)"],
)
def test_lengths_that_differ_by_a_number_do_not_fit(text, own):
    (answer,) = check(own("Plain"), f"dx = {text}").answers
    assert answer.outcome == "wrong"
    assert "differ" in str(answer.refutation.misaligned) or "equal" in str(
        answer.refutation.misaligned
    )
