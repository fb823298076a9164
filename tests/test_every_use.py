"""What is emitted was used in every way before: twice differentiated with each subset of what needs
a gradient, and finite where the mathematics is, in branches that are not taken too.
"""

import inspect
import itertools
import pickle

import pytest
import torch
from generating import forward_file, module_from

import codegen.driver.lean
from codegen.driver.lean import generate
from codegen.targets.lean import page
from codegen.targets.lean.check import check_every_use
from codegen.targets.lean.outside import outside_of
from codegen.targets.lean.pair import pairs_of
from codegen.targets.torch.interpret import interpreted
from codegen.targets.torch.wrong import WrongUse
from derive import forward_from
from derive.language.notation.library import as_forward

FIRST_LINE = '    """A forward of the tests."""\n'
FORWARDS = {
    # The pullback reads t, which the backward does not.
    "Tempered": "x = Input(N, C); t = Scalar(1.0); y = t * log(Sum(exp(x / t), C))",
    "Scaled": "x = Input(N); a = Scalar(2.0); b = Scalar(3.0); y = log(Sum(exp(a * x), N)) / b",
    "Weighed": "x = Input(N, C); w = Input(C); y = Sum(w * x, C, N) / Sum(w, C)",
    # Nothing saved shows N: a cotangent does, which may be None.
    "Normed": "x = Input(N, C); v = Input(C); y = x / sqrt(v + 1)",
    "Power": "x = Input(N); w = Input(N); y = Piecewise((x**w, x > 0), (0, True))",
    "Named": "x = Input(N); w = Input(N); p = x**w; y = Piecewise((p, x > 0), (0, True))",
    "Logged": "x = Input(N); y = Piecewise((x * log(x), x > 0), (0, True))",
    "Rooted": "x = Input(N); y = Piecewise((sqrt(x), x > 1), (x**2, True))",
    "Grown": "x = Input(N); a = Scalar(1.0); y = Piecewise((a * exp(x), x < 0), (x**2, True))",
    "Turned": "x = Input(N); y = Piecewise((1 / x, Ne(x, 0)), (0, True))",
    "Magnitude": "x = Input(N); p = Scalar(2.0); y = Abs(x)**p",
    # Its second derivatives read x**(p - 1) in several lines, beside p.
    "Shared": (
        "x = Input(N); w = Input(N); p = Scalar(1.0, at_least=0); q = Scalar(1.0, at_least=0);"
        " y = x**p*w**q*exp(x + w)"
    ),
    # Its gradient is added at the label, beside that of every entry.
    "Picked": (
        "x = Input(N, C); k = Label(N); p = Scalar(1.0, at_least=0);"
        " y = Sum((OneHot(k, C) + Rational(1, 2))*Abs(x)**p, C)"
    ),
    "Free": "x = Input(N); w = Input(N); y = Abs(x)**w",
    "FreeRow": "x = Input(N, C); w = Input(N); s = Sum(Abs(x), C); y = s**w",
    "OnEdge": "x = Input(N); y = Abs(x)**Rational(5, 2)",
    "Bounded": "x = Input(N); y = Piecewise((x**2/2, Abs(x) <= 1), (Abs(x) - 1, True))",
    "Elu": "x = Input(N); a = Scalar(1.5); y = Piecewise((x, x > 0), (a*(exp(x) - 1), True))",
    "Outside": "x = Input(N); s = sqrt(x); y = Piecewise((s * x + s, x > 0), (x**2, True))",
    "OfARow": (
        "x = Input(N, C); w = Input(N); s = Sum(sqrt(x), C); y = Piecewise((s, w > 0), (w, True))"
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Each forward, generated once: (module, `Generated`)."""
    folder, known = tmp_path_factory.mktemp("every_use"), {}

    def make(name):
        if name not in known:
            lines = "".join(f"    {line}\n" for line in FORWARDS[name].split("; "))
            file = forward_file(folder, name, FIRST_LINE + lines)
            result = generate(forward_from(file))
            known[name] = module_from(result.text, folder, result.program.name), result
        return known[name]

    return make


def penalty(function, arguments, names, of):
    """The gradient of what is not linear in the gradients ``of`` some inputs, by others."""
    leaves = {n: a.clone().requires_grad_() if n in names else a for n, a in arguments.items()}
    output = function(**leaves)
    how = {"create_graph": True, "materialize_grads": True}
    found = torch.autograd.grad(output.square().sum(), [leaves[n] for n in of], **how)
    total = sum(g.square().sum() for g in found)
    return torch.autograd.grad(total, [leaves[n] for n in names], materialize_grads=True)


@pytest.mark.parametrize("name", ["Tempered", "Scaled", "Weighed", "Normed"])
def test_what_is_read_behind_a_backward_alone_is_kept(made, name):
    module, result = made(name)
    definition, generator = result.proved.definition, torch.Generator().manual_seed(1)
    sizes = {"N": 3, "C": 4}
    arguments = {
        t.name: torch.rand([sizes[a.name] for a in t.home], generator=generator).double() + 0.5
        for t in definition.inputs
    }
    function = getattr(module, name.lower())

    def plain(**own):
        return interpreted(definition, own)["y"]

    for count in range(1, len(arguments) + 1):
        for names in itertools.combinations(arguments, count):
            for of in {names, *((n,) for n in names)}:
                ours, expected = (penalty(f, arguments, names, of) for f in (function, plain))
                for one, other in zip(ours, expected, strict=True):
                    torch.testing.assert_close(one, other)


HELD = {  # the same with arguments that are held by hand
    "Power": lambda x, w: torch.where(x > 0, torch.where(x > 0, x, 1) ** w, 0),
    "Named": lambda x, w: torch.where(x > 0, torch.where(x > 0, x, 1) ** w, 0),
    "Logged": lambda x: torch.where(x > 0, x * torch.where(x > 0, x, 1).log(), 0),
    "Rooted": lambda x: torch.where(x > 1, torch.where(x > 1, x, 1).sqrt(), x**2),
    "Grown": lambda x: torch.where(x < 0, x.clamp(max=0).exp(), x**2),
    "Turned": lambda x: torch.where(x != 0, 1 / torch.where(x != 0, x, 1), 0),
    "Outside": lambda x: torch.where(x > 0, torch.where(x > 0, x, 1).sqrt() * (x + 1), x**2),
}


@pytest.mark.parametrize("name", HELD)
def test_a_branch_that_is_not_taken_has_no_part_in_any_order(made, name):
    """Gradients of three orders by autograd, by torch.func backward and forward."""
    module, result = made(name)
    x = torch.tensor([-2.0, -1e4, 0.0, 0.5, 3.0, 1e4], dtype=torch.float64)
    x = x[:-1] if name in ("Power", "Named") else x
    others = [torch.full_like(x, 2.5)] if name in ("Power", "Named") else []
    ours = getattr(module, name.lower())
    func = torch.func

    def found(function):
        leaves = [t.clone().requires_grad_() for t in (x, *others)]
        gradients = [function(*leaves).sum()]
        for _ in range(3):
            total = sum(g.sum() for g in gradients)
            how = {"create_graph": True, "materialize_grads": True}
            gradients = torch.autograd.grad(total, leaves, **how)
            yield from gradients

        def total(t):
            return function(t, *others).sum()

        yield func.hessian(total)(x)
        yield func.jacrev(func.jacrev(total))(x)
        yield func.jvp(lambda t: function(t, *others), (x,), (torch.ones_like(x),))[1]

    for one, other in zip(found(ours), found(HELD[name]), strict=True):
        assert other.isfinite().all()
        torch.testing.assert_close(one.detach(), other.detach())
    assert not result.program.unsafe


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0])
def test_a_power_that_is_none_or_straight_has_derivatives_at_0(made, p):
    module, _ = made("Magnitude")
    x = torch.tensor([0.0, 1.0, -2.0], dtype=torch.float64)
    power = x.abs() ** max(p - 2, 0) * p * (p - 1)
    if p == 2:
        power[0] = 0  # as torch has it of x.abs()**2: the lines are differentiated, by sign(x)**2

    def total(t):
        return module.magnitude(t, p).sum()

    for hessian in (torch.func.jacrev(torch.func.jacrev(total))(x), torch.func.hessian(total)(x)):
        torch.testing.assert_close(hessian.diag(), power)
    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(module.magnitude(leaf, p).sum(), leaf, create_graph=True)
    again = torch.autograd.grad(gradient.sum(), leaf, materialize_grads=True)[0]
    torch.testing.assert_close(again, power)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0])
def test_a_power_that_several_lines_read_is_held_at_0(made, p):
    module, _ = made("Shared")
    x = torch.tensor([0.0, 0.0, 1.0, 0.5], dtype=torch.float64)
    w = torch.tensor([1.0, 0.0, 0.0, 2.0], dtype=torch.float64)

    def written(x, w):
        return x**p * w**p * (x + w).exp()

    found, expected = ([], [])
    for function, results in ((lambda *a: module.shared(*a, p, p), found), (written, expected)):
        leaves = [t.clone().requires_grad_() for t in (x, w)]
        first = torch.autograd.grad(function(*leaves).sum(), leaves, create_graph=True)
        second = torch.autograd.grad(sum(g.sum() for g in first), leaves, materialize_grads=True)
        results += [g.detach() for g in (*first, *second)]
        results.append(torch.func.jvp(function, (x, w), (w, x))[1])
    assert all(t.isfinite().all() for t in expected)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0])
def test_a_power_in_what_is_added_at_a_label_is_held_at_0(made, p):
    module, _ = made("Picked")
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0]], dtype=torch.float64, requires_grad=True)
    k = torch.tensor([0, 0])
    weight = torch.nn.functional.one_hot(k, 2) + 0.5
    assert "scatter_add" in inspect.getsource(module.picked_backward)
    (found,) = torch.autograd.grad(module.picked(x, k, p).sum(), x)
    expected = weight * p * x.detach().sign() * x.detach().abs() ** max(p - 1, 0)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["Free", "FreeRow"])
def test_powers_with_an_exponent_that_has_a_gradient_are_finite_at_0(made, name):
    """Where w is above 2; torch's own first derivatives are finite, its second ones are not."""
    module, _ = made(name)
    x = torch.tensor([[0.0, 0.0], [1.0, -2.0], [0.0, 3.0]], dtype=torch.float64)
    w = torch.full_like(x[:, :1], 2.5)

    def ours(x, w):
        if name == "FreeRow":
            return module.free_row(x, w[:, 0])
        return module.free(x.reshape(-1), w.expand(3, 2).reshape(-1))

    def held(x, w):
        u = x.abs() if name == "Free" else x.abs().sum(1, keepdim=True)
        return torch.where(u == 0, 0, torch.where(u == 0, 1, u) ** w).reshape(-1)

    for of in (ours, held):
        leaves = [t.clone().requires_grad_() for t in (x, w)]
        first = torch.autograd.grad(of(*leaves).sum(), leaves, create_graph=True)
        second = torch.autograd.grad(sum(g.sum() for g in first), leaves)
        found = [*first, *second]
        if of is ours:
            expected = found
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(one.detach(), other.detach())


def test_what_is_infinite_at_0_alone_is_named(made):
    _, result = made("OnEdge")
    assert [line for line in result.program.unsafe if "NaN or" in line] == [
        "second derivatives may be NaN or infinite where an entry is 0"
    ]
    _, result = made("Bounded")
    assert not result.program.unsafe


def test_what_is_read_in_two_branches_is_held_where_neither_is_taken(made):
    module, _ = made("Elu")
    x = torch.tensor([1e4, -1.0, 0.0, 1.0], dtype=torch.float64, requires_grad=True)
    gradient = module.elu(x, 1.5).sum()
    for _ in range(3):
        (gradient,) = torch.autograd.grad(gradient.sum(), x, create_graph=True)
    wanted = torch.where(x > 0, 0, 1.5 * x.clamp(max=0).exp())
    torch.testing.assert_close(gradient, wanted)


def test_what_stays_infinite_is_named(made):
    module, result = made("OfARow")  # s is NaN where x is below 0, and its branch is not taken
    assert any("where a branch is not taken" in line for line in result.program.unsafe)
    said = " ".join(module.__doc__.split())
    assert "may be NaN or infinite where a branch is not taken" in said


BROKEN = {
    "statistics that are kept for constants": ("torch.is_grad_enabled()", "False"),
    "what is not there": ("if torch.is_grad_enabled():", "if missing():"),
    "another number": ("dx = ", "dx = (1 + torch.is_grad_enabled()) * "),
    "a graph that ends": ("        return tempered_backward(", "        return cut("),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_second_derivative_does_not_get_through(made, kind):
    _, result = made("Tempered")
    right, wrong = BROKEN[kind]
    assert right in result.text
    text = result.text.replace(right, wrong)
    text += "\n\ndef cut(*given):\n    return tempered_backward(*given)[0].detach(), None\n"
    (pair,) = pairs_of(result.whole, outside_of(result.proved.definition))
    with pytest.raises(WrongUse):
        check_every_use(text, pair)
    assert check_every_use(result.text, pair) == ()


def test_a_second_derivative_of_both_parts_is_wrong_on_the_edge_between_them(monkeypatch, tmp_path):
    """Of ``max(x, 0) + expm1(min(x, 0))`` torch's clamp passes one of each at 0."""
    monkeypatch.setattr(page, "with_kinks_as_stated", lambda program: program)
    lines = "    x = Input(N)\n    s = Piecewise((exp(x) - 1, x <= 0), (x, True))\n"
    file = forward_file(tmp_path, "Parts", FIRST_LINE + lines + "    y = (s + 1)**2\n")
    text = generate(forward_from(file)).text
    assert "no second derivatives" in text and "neither side" in text


def test_what_is_refused_in_a_process_of_its_own_is_said():
    error = WrongUse("Worn: the gradient differs", 2)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.order) == (str(error), 2)


NO_TANGENT = """
class Same(torch.autograd.Function):
    forward = staticmethod(lambda ctx, tensor: tensor.clone())
    backward = staticmethod(lambda ctx, gradient: gradient)
"""


def test_forward_mode_runs_where_torch_has_formulas_of_its_own_for_it(monkeypatch):
    """What has a gradient may have no tangent, which the gradient of the lines does not show."""
    printed, factors = codegen.driver.lean.module_text, "torch.linalg.lu_factor(matrix).LU"

    def broken(*pairs):
        text = printed(*pairs)
        assert factors in text
        return text.replace(factors, f"Same.apply({factors})") + NO_TANGENT

    monkeypatch.setattr(codegen.driver.lean, "module_text", broken)
    with pytest.raises(WrongUse, match="forward mode of the generated code does not run"):
        generate(as_forward("gaussian_process"))
