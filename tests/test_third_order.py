"""Third derivatives: derived, proved, shown, and written where they are asked for."""

import pytest
import torch
from gallery import Emitted
from generating import forward_file, generated, module_from

from codegen.cli import gradform
from codegen.driver import generate
from derive.derivation import derive
from derive.formulas.text import formula
from derive.notation.library import forward_from
from derive.orders import THIRD
from derive.orders.second import second_order
from derive.orders.third import third_order

# One that saves its output, one that saves other values and has options, one with labels and a
# shorter pair without options, one with an addition at an index.
NAMES = ("softmax", "layer_norm", "nll", "embedding")
OWN = """
    x = Input(N, C)
    w = Input(C)
    a = tanh(x * w)
    y = a / sqrt(1 + Sum(a**2, C))
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The generated module of each, with third derivatives."""
    folder, known = tmp_path_factory.mktemp("third"), {}

    def of(name):
        if name not in known:
            result = generate(forward_from(name), order=THIRD)
            emitted = Emitted(result.proved.definition)
            emitted.__dict__["module"] = module_from(result.text, folder, name)
            known[name] = emitted, result
        return known[name]

    return of


def weighed(tensor, generator):
    return (tensor * torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype)).sum()


def orders_of(function, arguments, names, orders):
    generator = torch.Generator().manual_seed(5)
    inputs = [arguments[name] for name in names]
    output = function(**arguments)
    total, found = weighed(output, generator) + output.square().sum(), []
    while total.requires_grad and len(found) < orders:
        found.append(torch.autograd.grad(total, inputs, create_graph=True, materialize_grads=True))
        total = sum(weighed(gradient, generator) for gradient in found[-1])
    return found


def assert_alike(got, expected):
    for one, other in zip(got, expected, strict=True):
        assert (one - other).abs().max() <= 1e-10 * (1 + other.abs().max())


@pytest.mark.parametrize("name", NAMES)
def test_it_is_derived_and_proved_for_every_size(name):
    third = third_order(second_order(derive(forward_from(name))))
    assert third.every_size
    for again in third.programs:
        at_hand = {t.name for t in again.program.proved.definition.inputs}
        assert set(again.program.results) <= at_hand
        assert {v.name for v in again.vectors.values()} <= at_hand


def test_behind_the_pullback_of_a_softmax_it_is_the_textbooks():
    third = third_order(second_order(derive(forward_from("softmax"))))
    lines = {s.tensor.name: formula(s.expression) for s in third.of_pullback.program.statements}
    assert lines["c_c_y"] == "dc_y_minus_sum_c_y_y - sum_dc_y_minus_sum_c_y_y*y"


@pytest.mark.parametrize("options", [True, False], ids=["whole", "plain"])
@pytest.mark.parametrize("name", NAMES)
def test_four_orders_are_those_of_the_statements(name, options, written):
    emitted, result = written(name)
    left_out = () if options else {t.name for t, _ in emitted.definition.optional}
    arguments = {n: a for n, a in emitted.leaves(seed=3).items() if n not in left_out}
    names = [n for n in emitted.inputs if n not in left_out]
    found = orders_of(emitted.function, arguments, names, 4)
    expected = orders_of(emitted.stated, arguments, names, 4)
    assert result.program.second.third
    for got, other in zip(found, expected, strict=False):
        assert_alike(got, other)


@pytest.mark.parametrize("name", NAMES[:-1])  # the last is linear
def test_the_third_order_runs_its_closed_form(name, written):
    """And none of the lines of the second is differentiated."""
    emitted, _ = written(name)
    title = emitted.definition.name
    arguments = emitted.leaves(seed=3)
    (gradients, *_), *_ = orders_of(emitted.function, arguments, emitted.inputs, 2)
    again = torch.autograd.grad(
        gradients.square().sum(), arguments[emitted.inputs[0]], create_graph=True
    )
    names, waiting = set(), [again[0].grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node.name() not in names:
            names.add(node.name())
            waiting += [inner for inner, _ in node.next_functions]
    assert {f"{title}BehindBackward", f"{title}PullbackBackward"} & names


@pytest.mark.parametrize("name", NAMES)
def test_transforms_of_transforms_are_those_of_the_statements(name, written):
    emitted, _ = written(name)
    arguments, x = emitted.arguments(seed=3), emitted.inputs[0]

    def loss(function):
        return lambda tensor: function(**{**arguments, x: tensor}).pow(3).sum()

    def third(function):
        hessian = torch.func.jacrev(torch.func.jacrev(loss(function)))
        yield torch.func.grad(lambda tensor: hessian(tensor).square().sum())(arguments[x])

    assert_alike(third(emitted.function), third(emitted.stated))


def test_of_a_forward_of_ones_own(tmp_path):
    head = "from sympy import sqrt, tanh"
    file = forward_file(tmp_path, "Own", OWN)
    file.write_text(f"{head}\n{file.read_text()}")
    function, module, result = generated(file, tmp_path, THIRD)
    assert result.program.second.third and not result.refused
    drawn = torch.Generator().manual_seed(0)
    arguments = {
        name: torch.randn(shape, generator=drawn, dtype=torch.float64).requires_grad_()
        for name, shape in (("x", (5, 3)), ("w", (3,)))
    }
    found = orders_of(function, arguments, arguments, 4)
    expected = orders_of(lambda **them: module.own_atoms(**them).y, arguments, arguments, 4)
    for got, other in zip(found, expected, strict=True):
        assert_alike(got, other)


def test_it_is_written_beside_kernels_where_it_is_asked_for(tmp_path, capsys):
    out = "--out", str(tmp_path), "--target", "cpp"
    assert gradform(["tanh", "--order", "3", *out]) == 0
    assert "def _behind_again(" in (tmp_path / "tanh.py").read_text()
    assert gradform(["tanh", "--order", "3", *out, "--check"]) == 0
    assert gradform(["tanh", *out, "--check"]) == 1
    assert gradform(["tanh", "--order", "1", *out]) == 0
    assert "_double_backward" not in (tmp_path / "tanh.py").read_text()
    capsys.readouterr()
    assert gradform(["tanh", "--order", "4", *out]) == 2
    assert "there are orders 1, 2 and 3" in capsys.readouterr().err


def test_a_lean_module_needs_none(tmp_path, capsys):
    assert gradform(["tanh", "--order", "3", "--out", str(tmp_path)]) == 2
    assert "can be differentiated any number of times" in capsys.readouterr().err


def test_it_is_shown(capsys):
    assert gradform(["show", "softmax", "--order", "3"]) == 0
    text = capsys.readouterr().out
    assert "Third order: double backward, differentiated" in text
    assert "Third order: the pullback, differentiated" in text
    assert "c_v_x" in text and "Exactly zero difference" in text
    assert gradform(["show", "softmax", "--order", "3", "--of", "x"]) == 2
    assert "as a whole" in capsys.readouterr().err
