"""What is asked of arguments, once; what is asked for, and nothing else; what is left out."""

import inspect
import re
from itertools import combinations

import pytest
import torch
from gallery import EVERYTHING
from generating import forward_file

from derive import forward_from
from derive.language.notation.specialised import without_options
from generated.hinge import hinge_backward
from generated.smooth_l1 import smooth_l1
from generated.softmax import softmax_backward, softmax_forward

SEVERAL = [e for e in EVERYTHING if len(e.inputs) > 1]


def upstream_of(output):
    generator = torch.Generator().manual_seed(5)
    return torch.randn(tuple(output.shape), generator=generator, dtype=output.dtype)


def gradients(emitted, asked, arguments):
    """Those of the inputs ``asked`` for, by name."""
    leaves = {n: v.clone().requires_grad_() if n in asked else v for n, v in arguments.items()}
    output = emitted.function(**leaves)
    found = torch.autograd.grad(output, [leaves[n] for n in asked], upstream_of(output))
    return dict(zip(asked, found, strict=True))


@pytest.mark.parametrize("emitted", SEVERAL, ids=str)
def test_a_gradient_does_not_depend_on_which_others_are_asked_for(emitted):
    arguments = emitted.arguments()
    everything = gradients(emitted, emitted.inputs, arguments)
    for asked in combinations(emitted.inputs, 1):
        found = gradients(emitted, asked, arguments)
        for name, gradient in found.items():
            torch.testing.assert_close(gradient, everything[name], rtol=1e-12, atol=1e-12)


def watched(function, seen):
    def called(*args, **kwargs):
        seen.append(function(*args, **kwargs))
        return seen[-1]

    return called


@pytest.mark.parametrize("emitted", SEVERAL, ids=str)
def test_what_nobody_asks_for_is_not_computed(emitted, monkeypatch):
    """The lines of the backward that only other gradients need do not run."""
    arguments, seen = emitted.arguments(), []
    name = f"{emitted.snake}_backward"
    monkeypatch.setattr(emitted.module, name, watched(getattr(emitted.module, name), seen))
    for asked in emitted.inputs:
        seen.clear()
        gradients(emitted, (asked,), arguments)
        (computed,) = seen
        there = {n for n, d in zip(emitted.inputs, computed, strict=True) if d is not None}
        assert asked in there and not there & (alone_in(emitted) - {asked})


def alone_in(emitted) -> set[str]:
    """The inputs whose gradients stand under a question for themselves alone."""
    lines = inspect.getsource(getattr(emitted.module, f"{emitted.snake}_backward")).split("\n")
    margin = " " * (8 if any("_uncast" in line for line in lines) else 4)
    found, under = set(), None
    for line in lines:
        question = re.fullmatch(rf"{margin}if need_(\w+):", line)
        if question is not None:
            under = question[1]
        elif not line.startswith(f"{margin}    "):
            under = None
        elif under is not None and line.strip().startswith(f"d{under} = "):
            found.add(under)
    return found


def test_most_functions_of_several_inputs_have_gradients_that_stand_alone():
    assert len([e for e in SEVERAL if alone_in(e)]) > 0.8 * len(SEVERAL)


def test_mathematics_without_options_is_shorter():
    without = without_options(forward_from("cross_entropy").definition)
    assert [t.name for t in without.inputs] == ["logits", "labels"]
    assert not {"losses_counted", "counted", "smoothing"} & without.by_name.keys()
    assert str(without.by_name["loss"].expression) == "Sum(losses, N, S)/(N*S)"
    assert without_options(forward_from("softmax").definition) is None


def test_an_output_that_is_an_option_itself_has_no_pair_without_it(tmp_path):
    body = "    x = Input(N, C)\n    z = Input(C, N, default=0)\n    h = x + z\n    s = z\n"
    definition = forward_from(forward_file(tmp_path, "Drawn", body)).definition
    assert without_options(definition) is None


# -- what a caller may pass to the backward --------------------------------------


def test_a_backward_takes_weights_of_whole_numbers():
    x, target = torch.randn(4, 3), torch.ones(4, 3, dtype=torch.int64)
    dloss = torch.ones(4, 3)
    found, expected = (hinge_backward(dloss, x, t) for t in (target, target.float()))
    torch.testing.assert_close(found, expected)


def test_a_backward_takes_what_was_rounded_beside_single_precision():
    x, dy = torch.randn(4, 3).bfloat16(), torch.randn(4, 3)
    y = softmax_forward(x)
    torch.testing.assert_close(softmax_backward(dy, y), softmax_backward(dy, y.float()))


@pytest.mark.parametrize(("size", "beta"), [(1e20, 1e20), (3e38, 2.0), (1e30, 1e10), (1e-3, 1.0)])
def test_a_bend_far_out_stays_finite(size, beta):
    x, target = torch.tensor([size]), torch.zeros(1)
    expected = torch.nn.functional.smooth_l1_loss(x, target, beta=beta)
    torch.testing.assert_close(smooth_l1(x, target, beta), expected)
