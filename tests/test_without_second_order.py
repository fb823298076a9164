"""Where second derivatives have no closed form, autograd takes them, line by line."""

import pytest
import torch
from gallery import Emitted
from generating import forward_file, module_from
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from codegen import beside, driver
from derive.language.errors import UnprovedError
from derive.notation.library import forward_from

# Their pullback reads what is not saved, and the derivative of a peak is not shown to be 0.
OWN = {
    "Scaled": """
    x = Input(N)
    alpha = Scalar(0.5)
    u = x - Sum(x, N) / N
    v = tanh(Sum(u**2, N) / N)
    t = u / sqrt(v + alpha)
    p = tanh(Max(t, N))
""",
    "Attended": """
    x = Input(N)
    u = exp(x)
    v = tanh(u * Rename(u, N, C))
    h = v * v
    s = exp(h) / Sum(exp(h), C)
    p = Sum(log(s), N, C)
""",
}
# These have a closed form, which is left out.
MORE = {
    "Picked": """
    x = Input(C)
    label = Label()
    u = x - Sum(x, C) / C
    v = tanh(Sum(u**2, C) / C)
    t = u / sqrt(v + 1)
    p = Sum(OneHot(label, C) * t, C) * tanh(Max(t, C))
""",
}
# As have these: with labels and numbers, what may be left out, several
# dimensions, and without any.
LEFT_OUT = ("cross_entropy", "layer_norm", "rms_norm", "masked_attention")
REASON = "the second derivatives were not looked for"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("without_second")


@pytest.fixture(scope="module", params=[*OWN, *MORE, *LEFT_OUT])
def emitted(request, folder):
    with pytest.MonkeyPatch.context() as patch:
        if request.param in LEFT_OUT:
            forward = forward_from(request.param)
        else:
            body = {**OWN, **MORE}[request.param]
            forward = forward_from(forward_file(folder, request.param, body))
        if request.param not in OWN:
            patch.setattr(beside, "second_order", not_looked_for)
        result = driver.generate(forward)
    assert result.refused and result.program.second is None
    found = Emitted(forward.definition)
    found.__dict__["module"] = module_from(result.text, folder, str(found))
    return found


def not_looked_for(*how):
    raise UnprovedError(f"{REASON}; nothing was emitted")


def alike(got, expected, tolerance=1e-10):
    for one, other in zip(got, expected, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        assert (one - other).abs().max() <= tolerance * (1 + other.abs().max())


def weighed(tensor, generator):
    return (tensor * torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype)).sum()


def of_every_order(emitted, function, arguments, wrt, orders=3):
    generator = torch.Generator().manual_seed(5)
    inputs, output = [arguments[name] for name in wrt], function(**arguments)
    total, found = weighed(output, generator) + output.square().sum(), []
    while total.requires_grad and len(found) < orders:
        found.append(torch.autograd.grad(total, inputs, create_graph=True, materialize_grads=True))
        total = sum(weighed(gradient, generator) for gradient in found[-1])
    return found


@pytest.mark.parametrize("options", [True, False], ids=["whole", "plain"])
def test_every_order_is_that_of_the_statements(emitted, options):
    left_out = () if options else {t.name for t, _ in emitted.definition.optional}
    wrt = [name for name in emitted.inputs if name not in left_out]
    found = []
    for function in (emitted.function, emitted.stated):
        arguments = {n: a for n, a in emitted.leaves(seed=3).items() if n not in left_out}
        found.append(of_every_order(emitted, function, arguments, wrt))
    assert len(found[1]) == 3
    for got, expected in zip(*found, strict=True):
        alike(got, expected)


def test_the_gradient_is_the_closed_form_to_the_bit(emitted):
    arguments = emitted.leaves(seed=1)
    inputs, output = [arguments[n] for n in emitted.inputs], emitted.function(**arguments)
    upstream = torch.full_like(output, 0.5)
    kept = torch.autograd.grad(output, inputs, upstream, create_graph=True)
    for one, other in zip(kept, torch.autograd.grad(output, inputs, upstream), strict=True):
        assert one.requires_grad and torch.equal(one, other)


def test_torch_checks_it_by_differences(emitted):
    arguments, name = emitted.leaves(seed=3), emitted.inputs[0]

    def of(tensor):
        return emitted.function(**{**arguments, name: tensor})

    assert torch.autograd.gradgradcheck(of, arguments[name])


def both(emitted, arguments, names):
    def loss(function):
        def of(*tensors):
            output = function(**{**arguments, **dict(zip(names, tensors, strict=True))})
            return output.square().sum() + output.sum()

        return of

    return loss(emitted.function), loss(emitted.stated)


def test_every_transform_is_that_of_the_statements(emitted):
    arguments, func = emitted.arguments(seed=3), torch.func
    ours, plain = both(emitted, arguments, emitted.inputs[:1])
    x = arguments[emitted.inputs[0]]
    v = torch.rand(x.shape, generator=torch.Generator().manual_seed(4), dtype=x.dtype)

    def found(of):
        yield func.hessian(of)(x)
        yield func.jacrev(func.jacrev(of))(x)
        yield func.grad(lambda one: func.jacrev(func.jacrev(of))(one).square().sum())(x)
        yield func.jvp(func.grad(of), (x,), (v,))[1]
        with forward_ad.dual_level():
            tangent = forward_ad.unpack_dual(of(forward_ad.make_dual(x, v))).tangent
        yield tangent
        yield torch.autograd.functional.hessian(of, x)
        yield torch.autograd.functional.hessian(of, x, vectorize=True)
        yield torch.autograd.functional.hvp(of, x, v)[1]

    alike(found(ours), found(plain))


def test_the_gradients_of_every_example_are_those_of_the_statements(emitted):
    one, two = emitted.arguments(seed=3), emitted.arguments(seed=4)
    names = [name for name, value in one.items() if isinstance(value, torch.Tensor)]
    ours, plain = both(emitted, one, names)
    of = tuple(i for i, name in enumerate(names) if name in emitted.inputs)
    batch = [torch.stack([one[name], two[name]]) for name in names]
    found = torch.func.vmap(torch.func.grad(ours, of))(*batch)
    for i, drawn in enumerate((one, two)):
        expected = torch.func.grad(plain, of)(*(drawn[name] for name in names))
        alike([gradient[i] for gradient in found], expected)


@pytest.mark.parametrize("way", ["batched", "vmapped", "checkpointed"])
def test_it_is_right_on_every_way(emitted, way):
    found = []
    for function in (emitted.function, emitted.stated):
        arguments, name = emitted.leaves(seed=3), emitted.inputs[0]
        leaf = arguments[name]
        of = {**arguments, name: leaf * 1}

        def called(x, function=function, of=of, name=name):
            return function(**{**of, name: x})

        if way == "checkpointed":
            output = checkpoint(called, of[name], use_reentrant=False)
        else:
            output = called(of[name])
        upstream = torch.stack([torch.ones_like(output), 2 * output.detach()]).requires_grad_()

        def asked(v, output=output, leaf=leaf, **how):
            return torch.autograd.grad(output, leaf, v, create_graph=True, **how)[0]

        if way == "batched":
            batch = asked(upstream, is_grads_batched=True)
        elif way == "vmapped":
            batch = torch.func.vmap(asked)(upstream)
        else:
            batch = asked(upstream[0])
        again = torch.autograd.grad(batch.square().sum(), [leaf, upstream])
        found.append((batch, *again))
    alike(*found)


def test_one_tensor_passed_for_two_and_what_depends_on_another(folder, monkeypatch):
    """Each has a gradient of its own, in which the other is held."""
    forward = forward_from(
        forward_file(
            folder,
            "Two",
            """
    x = Input(N)
    w = Input(N)
    u = x * w - Sum(x, N) / N
    v = tanh(Sum(u**2, N) / N)
    t = u / sqrt(v + 1)
    p = tanh(Max(t, N))
""",
        )
    )
    monkeypatch.setattr(beside, "second_order", not_looked_for)
    result = driver.generate(forward)
    module = module_from(result.text, folder, "two")
    found = []
    for function in (module.two, lambda *of: module.two_atoms(*of).p):
        x = torch.linspace(0.1, 1, 5, dtype=torch.float64).requires_grad_()
        total = function(x, x) + function(x, 2 * x * x)
        (gradient,) = torch.autograd.grad(total, x, create_graph=True)
        found.append((gradient, *torch.autograd.grad(gradient.square().sum(), x)))
    alike(*found)


def test_half_precision_keeps_its_format_and_compiled_it_is_the_closed_form(emitted):
    arguments, name = emitted.leaves(seed=3, dtype=torch.bfloat16), emitted.inputs[0]
    found = []
    for _ in range(2):
        output = emitted.function(**arguments)
        gradient = torch.autograd.grad(output.sum(), arguments[name], create_graph=True)[0]
        assert output.dtype == gradient.dtype == torch.bfloat16
        found.append(torch.autograd.grad(gradient.sum(), arguments[name])[0])
    assert found[0].isfinite().all()
    arguments = emitted.leaves(seed=3)
    compiled = torch.compile(emitted.function, backend="aot_eager", fullgraph=True)
    got = torch.autograd.grad(compiled(**arguments).sum(), arguments[name])
    alike(got, torch.autograd.grad(emitted.function(**arguments).sum(), arguments[name]))
    torch._dynamo.reset()


def test_tensors_without_data(emitted):
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        arguments = {
            n: mode.from_tensor(t) if isinstance(t, torch.Tensor) else t
            for n, t in emitted.leaves(seed=3).items()
        }
        leaf = arguments[emitted.inputs[0]]
        output = emitted.function(**arguments)
        (gradient,) = torch.autograd.grad(output.sum(), leaf, create_graph=True)
        assert torch.autograd.grad(gradient.sum(), leaf)[0].shape == leaf.shape


def test_the_page_says_why(emitted):
    words = " ".join(emitted.module.__doc__.split())
    assert "differentiate the lines by autograd" in words and "nothing was emitted" not in words
    reasons = {
        "scaled": "the gradients of the saved values need u, which is not saved",
        "attended": "of max_x",
    }
    assert reasons.get(str(emitted), REASON) in words


def test_a_number_is_added_where_the_largest_of_all_stands(folder):
    """At a place of a tensor with one dimension, where the number has none."""
    body = "\n    x = Input(N)\n    u = x - Max(x, N)\n    y = tanh(x * Sum(u, N) / N)\n"
    result = driver.generate(forward_from(forward_file(folder, "BelowTheLargest", body)))
    assert result.program.second is not None
    module = module_from(result.text, folder, "below_the_largest")
    found = []
    for function in (module.below_the_largest, lambda x: module.below_the_largest_atoms(x).y):
        x = torch.linspace(0.1, 1, 5, dtype=torch.float64).requires_grad_()
        (gradient,) = torch.autograd.grad(function(x).square().sum(), x, create_graph=True)
        found.append((gradient, *torch.autograd.grad(gradient.square().sum(), x)))
    alike(*found)
