"""Torch code that goes along a dimension or reads parts of it, as statements of the notation; each
is compared with the code when it is imported.
"""

import pytest
import torch
import torch.nn.functional as F

from codegen.importing.driver import imported
from derive import derive
from derive.language.errors import QuestionError
from derive.language.torch_ops import reads


def cumulative(x):
    return x.flip(-1).cumsum(-1).flip(-1) + torch.cumprod(x, 1)


def exclusive(x):
    return torch.cat((torch.zeros_like(x[:, :1]), x.cumsum(1)[:, :-1]), 1)


def rotary(x, c, s):
    a, b = x.chunk(2, -1)
    return x * c + torch.cat((-b, a), -1) * s


def rotary_by_slices(x, c, s):
    h = x.shape[-1] // 2
    return x * c + torch.cat((-x[..., h:], x[..., :h]), -1) * s


def side_by_side(x, y):
    return torch.cat((x, y), 1).softmax(1)


def every_second(x):
    return x[:, 1::2] * x[:, 1::2]


def causal(x, w):
    return F.conv1d(F.pad(x, (w.shape[-1] - 1, 0)), w, groups=x.shape[1])


def strided(x, w, b):
    return F.conv1d(x, w, b, stride=2, padding=1, dilation=2)


def grouped(x, w):
    return F.conv1d(x, w, groups=2)


def pooled(x):
    return F.max_pool1d(x, 3, stride=2, padding=1)


def two_results(x, residual, gain):
    h = x + residual
    return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6) * gain, h


def with_its_input(x):
    return x + (torch.sign(x) - x).detach(), x


IMPORTED = {
    cumulative: ("x: N T", ["CumSum(x, T, reverse=True) + CumProd(x, T)"]),
    exclusive: ("x: N T", ["Pad(Slice(CumSum(x, T), T, into=P), P, into=T, before=1)"]),
    rotary: ("x: N T E, c: T E given, s: T E given", ["-Shift(x, E, -", "+ Shift(x, E, "]),
    rotary_by_slices: ("x: N T E, c: T E given, s: T E given", ["-Shift(x, E, -", "E / 2)"]),
    side_by_side: ("x: N T, y: N S", ["Pad(x, T, into=P) + Pad(", ", S, into=P, before=T)"]),
    every_second: ("x: N T", ["Slice(x, T, into=P, start=1, step=2)", 'Axis("P", T // 2)']),
    causal: ("x: N C T, w: C 1 K", ["Window(x, T, into=(T, K), padding=K - 1)"]),
    strided: (
        "x: N C T, w: D C K, b: D",
        ["(-2*K + T + 3) // 2 + 1", "into=(P, K), stride=2, dilation=2, padding=1)"],
    ),
    grouped: ("x: N 4 T, w: 6 2 K", ["Unflatten(", "Window(", "Flatten("]),
    pooled: ("x: N C T", ["stride=2, padding=1, fill=-oo)", "Max(Window("]),
    two_results: ("x: N C, residual: N C, gain: C", ["outputs = Outputs(y, h)"]),
    with_its_input: ("x: N", ["Detach(sign(x) - x)", "Outputs(y, "]),
}


@pytest.mark.parametrize("function", IMPORTED, ids=lambda f: f.__name__)
def test_the_statements_say_what_torch_computes(function):
    axes, words = IMPORTED[function]
    found = imported(function, axes)
    assert found.agreement.values <= 1e-12 and found.agreement.gradients <= 1e-10
    assert all(word in found.text for word in words), found.text


def test_a_mistake_in_a_rule_is_seen_beside_the_function(monkeypatch):
    right = reads.at

    def off_by_one(e, axis, parts, offset, *more, **named):
        return right(e, axis, parts, offset + 1, *more, **named)

    monkeypatch.setattr(reads, "at", off_by_one)
    with pytest.raises(QuestionError, match="read as a different function"):
        imported(strided, IMPORTED[strided][0])


@pytest.mark.parametrize("function", [rotary, cumulative, two_results], ids=lambda f: f.__name__)
def test_what_is_imported_is_proved_for_every_size(function):
    assert derive(imported(function, IMPORTED[function][0]).forward).every_size


REFUSED = {
    "cut off": ("x: N C T", lambda x: F.avg_pool1d(x, 2, ceil_mode=True)),
    "size of the window": ("x: N C T, w: D C K", lambda x, w: F.conv1d(x, w, padding="same")),
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_is_not_read_is_refused_with_the_remedy(said):
    axes, function = REFUSED[said]
    with pytest.raises(QuestionError, match=said) as error:
        imported(function, axes)
    assert error.value.remedy
