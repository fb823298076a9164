"""Derivatives of any order of every generated function, however they are reached: beside autograd
through the statements themselves.
"""

import pytest
import torch
from forwards import forward_file
from functorch.compile import make_boxed_func
from gallery import EVERYTHING
from generating import generated as emitted_from
from sampling import sampled
from torch._dynamo.backends.common import aot_autograd
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

import generated
from codegen.targets.torch.interpret import interpreted
from generated.batch_norm_biased import batch_norm_biased
from generated.huber import huber
from generated.layer_norm import layer_norm, layer_norm_backward, layer_norm_forward
from generated.linear import linear
from generated.relu import relu
from generated.softmax import softmax
from generated.softmax_nll import softmax_nll

everything = pytest.mark.parametrize("emitted", sampled(EVERYTHING, lambda e: e.snake), ids=str)


def drawn(*shape, seed=0):
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    ).requires_grad_()


def stated(name):
    """The statements of a forward, as torch computes them, of tensors of any shape."""
    emitted = next(emitted for emitted in EVERYTHING if emitted.snake == name)
    ranks = [len(t.home) for t in emitted.definition.arguments]

    def of(*tensors):
        merged = [
            t.flatten() if t.dim() > rank else t.reshape(*t.shape, *[1] * (rank - t.dim()))
            for t, rank in zip(tensors, ranks, strict=False)
        ]
        found = emitted.stated(*merged)
        return found.reshape(tensors[0].shape) if found.shape == merged[0].shape else found

    return of


def alike(got, expected, tolerance=1e-10):
    """Relative to the largest entry."""
    for one, other in zip(got, expected, strict=True):
        assert one.shape == other.shape
        assert (one - other).abs().max() <= tolerance * (1 + other.abs().max())


def gradients_of_every_order(function, arguments, names, orders):
    """Those of a sum that is not linear in the output, then of one that weighs these, and so on."""
    generator = torch.Generator().manual_seed(5)

    def weighed(tensor):
        return (tensor * torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype)).sum()

    inputs = [arguments[name] for name in names]
    output = function(**arguments)
    total, found = weighed(output) + output.square().sum(), []
    while total.requires_grad and len(found) < orders:
        found.append(torch.autograd.grad(total, inputs, create_graph=True, materialize_grads=True))
        total = sum(map(weighed, found[-1]))
    return found


@everything
@pytest.mark.parametrize("options", [True, False], ids=["whole", "plain"])
def test_every_order_is_that_of_the_statements(emitted, options):
    """Up to the third, and with everything that may be left out or without it."""
    left_out = () if options else {t.name for t, _ in emitted.definition.optional}
    arguments = {n: a for n, a in emitted.leaves(seed=3).items() if n not in left_out}
    names = [name for name in emitted.inputs if name not in left_out]
    found = gradients_of_every_order(emitted.function, arguments, names, 3)
    expected = gradients_of_every_order(emitted.stated, arguments, names, 3)
    assert len(expected) >= 2
    for got, other in zip(found, expected, strict=False):
        alike(got, other)


KINKED = {
    "below 0": """bend = Piecewise((exp(x) - 1, x <= 0), (x, True))""",
    "above 0": """bend = Piecewise((exp(x) - 1, x < 0), (x, True))""",
    "a square": """bend = Piecewise((x**2, x > 0), (0, True))""",
}


@pytest.mark.parametrize("statement", KINKED.values(), ids=KINKED)
def test_a_value_of_two_parts_is_differentiated_on_the_side_that_is_stated(statement, tmp_path):
    """At 0 the lines ``max(x, 0) + expm1(min(x, 0))`` have the derivative 2."""
    body = f"    x = Input(N)\n    w = Input(N)\n    {statement}\n    y = w * (bend + 1)**2\n"
    function, _, result = emitted_from(forward_file(tmp_path, "Kinked", body), tmp_path)
    leaves = {
        "x": torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64).requires_grad_(),
        "w": torch.ones(3, dtype=torch.float64).requires_grad_(),
    }
    assert "clamp" in result.text or "relu" in result.text  # or nothing is tested

    def stated(**arguments):
        return interpreted(result.proved.definition, arguments)["y"]

    found, expected = (
        gradients_of_every_order(f, leaves, ["x", "w"], 3) for f in (function, stated)
    )
    for got, other in zip(found, expected, strict=True):
        alike(got, other)


HAS_KINKS = {"norm_inf"}  # where several magnitudes are the largest


@everything
@pytest.mark.parametrize("kind", ["zeros", "signs"])
def test_they_are_right_where_parts_of_a_smooth_function_have_a_kink(emitted, kind):
    """Each input in turn 0, or -1, 0 and 1, where branches meet, and the statements are finite."""
    if emitted.snake in HAS_KINKS:
        return
    for name in emitted.inputs:
        arguments = emitted.leaves(seed=3)
        leaf = arguments[name]
        signs = (torch.arange(leaf.numel()).reshape(leaf.shape) % 3 - 1).to(leaf.dtype)
        arguments[name] = (signs * (kind == "signs")).requires_grad_()
        found, expected = (
            gradients_of_every_order(function, arguments, emitted.inputs, 3)
            for function in (emitted.function, emitted.stated)
        )
        for got, other in zip(found, expected, strict=False):
            if all(gradient.isfinite().all() for gradient in other):
                alike(got, other, 1e-9)


def both(emitted, arguments, names):
    """A loss that is not linear in the output, as a function of the arguments that have the
    ``names``: of what was generated, and through the statements.
    """

    def loss(function):
        def of(*tensors):
            output = function(**{**arguments, **dict(zip(names, tensors, strict=True))})
            return output.square().sum() + output.sum()

        return of

    return loss(emitted.function), loss(emitted.stated)


@everything
@pytest.mark.parametrize("options", [True, False], ids=["whole", "plain"])
def test_the_gradients_of_every_example_are_those_of_the_statements(emitted, options):
    """Of all tensors, labels and masks among them: vmap of grad."""
    left_out = () if options else {t.name for t, _ in emitted.definition.optional}
    one, two = (
        {n: a for n, a in emitted.arguments(seed=seed).items() if n not in left_out}
        for seed in (3, 4)
    )
    names = [name for name, value in one.items() if isinstance(value, torch.Tensor)]
    ours, plain = both(emitted, one, names)
    of = tuple(i for i, name in enumerate(names) if name in emitted.inputs)
    batch = [torch.stack([one[name], two[name]]) for name in names]
    found = torch.func.vmap(torch.func.grad(ours, of))(*batch)
    for i, drawn in enumerate((one, two)):
        expected = torch.func.grad(plain, of)(*(drawn[name] for name in names))
        alike([gradient[i] for gradient in found], expected)


@everything
def test_a_batch_of_gradients_is_that_of_the_statements(emitted):
    found = []
    for function in (emitted.function, emitted.stated):
        arguments = emitted.leaves(seed=3)
        leaf, output = arguments[emitted.inputs[0]], function(**arguments)
        generator = torch.Generator().manual_seed(6)
        upstream = torch.rand(2, *output.shape, generator=generator, dtype=output.dtype)
        if function == emitted.function:
            how = {"create_graph": True, "is_grads_batched": True}
            batch = torch.autograd.grad(output, leaf, upstream, **how)[0]
        else:
            batch = torch.stack(
                [torch.autograd.grad(output, leaf, one, create_graph=True)[0] for one in upstream]
            )
        again = torch.zeros_like(leaf)
        if batch.requires_grad:
            (again,) = torch.autograd.grad(batch.square().sum(), leaf, materialize_grads=True)
        found.append((batch, again))
    alike(*found)


@everything
def test_a_batch_of_second_derivatives_is_that_of_the_statements(emitted):
    found = []
    for function in (emitted.function, emitted.stated):
        arguments = emitted.leaves(seed=3)
        inputs = [arguments[name] for name in emitted.inputs]
        total = function(**arguments).square().sum()
        gradients = torch.autograd.grad(total, inputs, create_graph=True, materialize_grads=True)
        generator = torch.Generator().manual_seed(6)
        vectors = [torch.rand(2, *g.shape, generator=generator, dtype=g.dtype) for g in gradients]
        kept = [i for i, gradient in enumerate(gradients) if gradient.requires_grad]
        gradients, vectors = [gradients[i] for i in kept], [vectors[i] for i in kept]
        how = {"retain_graph": True, "materialize_grads": True}
        if function == emitted.function:
            again = torch.autograd.grad(gradients, inputs, vectors, is_grads_batched=True, **how)
        else:
            rows = [
                torch.autograd.grad(gradients, inputs, one, **how)
                for one in zip(*vectors, strict=True)
            ]
            again = [torch.stack(pair) for pair in zip(*rows, strict=True)]
        found.append(again)
    alike(*found)


def test_the_third_order_of_batch_norm_is_that_of_its_statements():
    """torch's own is 0.0019 on this example, where the statements give -0.5316."""
    x = drawn(6, 3, seed=8)
    weights = [drawn(6, 3, seed=seed).detach() for seed in (9, 10, 11)]

    def third(function):
        total = (function(x) * weights[0]).sum()
        for weight in weights[1:]:
            (gradient,) = torch.autograd.grad(total, x, create_graph=True)
            total = (gradient * weight).sum()
        return torch.autograd.grad(total, x)

    statements = stated("batch_norm_biased")
    alike(third(batch_norm_biased), third(lambda x: statements(x[:, :, None])[:, :, 0]))


@everything
def test_a_gradient_that_could_be_differentiated_again_is_the_gradient_to_the_bit(emitted):
    """(What a kernel computes is the lines' within rounding.)"""
    leaves = emitted.leaves(seed=1)
    inputs = [leaves[name] for name in emitted.inputs]
    with generated.use("torch"):
        output = emitted.function(**leaves)
        for number in (0.5, -0.0):  # the sign of a zero is kept too
            upstream = torch.full_like(output, number).requires_grad_()
            kept = torch.autograd.grad(output, inputs, upstream, create_graph=True)
            plain = torch.autograd.grad(output, inputs, upstream, retain_graph=True)
            for one, other in zip(kept, plain, strict=True):
                assert one.requires_grad or not one.any()  # as that of a bias before a batch norm
                assert not other.requires_grad
                assert torch.equal(one.detach().view(torch.int64), other.view(torch.int64))


X = drawn(4, 3)
TARGET = drawn(4, 3, seed=1).detach()
GAIN = drawn(3, seed=2).detach()
WEIGHT, BIAS = drawn(3, 2, seed=3), drawn(2, seed=4)
LABELS = torch.tensor([0, 2, 1, 1])
# One that saves the output, one that saves what is neither an input nor the output, one whose
# derivative does not depend on the data, one that saves its inputs, a loss, and one with labels.
SAVING = {
    "softmax": lambda x: softmax(x).square().sum(),
    "layer_norm": lambda x: layer_norm(x, GAIN).square().sum(),
    "relu": lambda x: relu(x).square().sum(),
    "linear": lambda x: linear(x, WEIGHT, BIAS).square().sum(),
    "huber": lambda x: huber(x, TARGET),
    "softmax_nll": lambda x: softmax_nll(x, LABELS),
}
PLAIN = {
    "softmax": lambda x: stated("softmax")(x).square().sum(),
    "layer_norm": lambda x: stated("layer_norm")(x, GAIN).square().sum(),
    "relu": lambda x: stated("relu")(x.reshape(-1)).square().sum(),
    "linear": lambda x: stated("linear")(x, WEIGHT, BIAS).square().sum(),
    "huber": lambda x: stated("huber")(x.reshape(-1), TARGET.reshape(-1)),
    "softmax_nll": lambda x: stated("softmax_nll")(x, LABELS),
}


def gradient_of(function, x, **how):
    return torch.autograd.grad(function(x), x, create_graph=True, **how)[0]


def of_a_leaf(function):
    return gradient_of(function, X).square().sum(), X


def of_a_tensor_that_is_no_leaf(function):
    x = X * 2
    return gradient_of(function, x).square().sum(), x


def by_what_is_behind_a_tensor(function):
    x = X * 2
    return gradient_of(function, x).square().sum(), X


def of_one_tensor_passed_for_two(function):
    both = drawn(4, 3)
    return gradient_of(lambda x: huber(x, x * 2) + function(x), both).square().sum(), both


def through_a_checkpoint(function):
    x = X * 1
    output = checkpoint(function, x, use_reentrant=False)
    return torch.autograd.grad(output, x, create_graph=True)[0].square().sum(), X


def through_hooks_of_what_is_saved(function):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), torch.from_numpy):
        output = function(X.detach().requires_grad_())
    x = X.detach().requires_grad_()
    with torch.autograd.graph.save_on_cpu():
        output = function(x)
    return torch.autograd.grad(output, x, create_graph=True)[0].square().sum(), x


def of_many_at_once(function):
    rows = torch.stack([function(X), 2 * function(X)])
    (batched,) = torch.autograd.grad(
        rows, X, torch.eye(2, dtype=rows.dtype), is_grads_batched=True, create_graph=True
    )
    return batched.square().sum(), X


WAYS = (
    of_a_leaf,
    of_a_tensor_that_is_no_leaf,
    by_what_is_behind_a_tensor,
    of_one_tensor_passed_for_two,
    through_a_checkpoint,
    through_hooks_of_what_is_saved,
    of_many_at_once,
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", SAVING)
def test_it_is_right_on_every_way(name, way):
    found = []
    for functions in (SAVING, PLAIN):
        total, by = way(functions[name])
        found.append(torch.autograd.grad(total, by, allow_unused=True, materialize_grads=True))
    alike(*found)


@pytest.mark.parametrize("name", SAVING)
def test_it_is_right_by_torchs_own_functions_for_it(name):
    ours, plain, v = SAVING[name], PLAIN[name], torch.ones_like(X)
    of = torch.autograd.functional
    for x in (X, X.detach()):
        for second in (of.hvp, of.vhp):
            alike(second(ours, x, v), second(plain, x, v))
        expected = of.hessian(plain, x)
        for vectorize in (False, True):
            alike([of.hessian(ours, x, vectorize=vectorize)], [expected])
    assert torch.autograd.gradgradcheck(ours, X)


@pytest.mark.parametrize("name", SAVING)
def test_first_derivatives_by_those_functions_are_right(name):
    """(To be differentiated, what a pair on kernels computes is computed again by the lines.)"""
    function = SAVING[name]
    (expected,) = torch.autograd.grad(function(X), X)
    for vectorize in (False, True):
        jacobian = torch.autograd.functional.jacobian(function, X, vectorize=vectorize)
        torch.testing.assert_close(jacobian, expected)
    torch.testing.assert_close(gradient_of(function, X).detach(), expected)
    with generated.use("torch"):
        (expected,) = torch.autograd.grad(function(X), X)
        assert torch.equal(gradient_of(function, X).detach(), expected)


def test_a_gradient_of_none_is_none():
    """Where nothing arrives from what comes after, nothing is passed on."""

    class Stop(torch.autograd.Function):
        @staticmethod
        def forward(ctx, y):
            return y.clone()

        @staticmethod
        def backward(ctx, dy):
            return None

    x = drawn(4, 3)
    (x.sum() + Stop.apply(layer_norm(x)).sum()).backward()
    assert torch.equal(x.grad, torch.ones_like(x))


def test_a_loss_may_be_scaled_in_place():
    x = drawn(4, 3)
    for function in (lambda x: softmax_nll(x, LABELS), lambda x: huber(x, TARGET)):
        (expected,) = torch.autograd.grad(function(x), x)
        loss = function(x)
        loss /= 4
        (quarter,) = torch.autograd.grad(loss, x)
        torch.testing.assert_close(quarter, expected / 4)


def test_compiled_it_is_refused_by_torch():
    function = SAVING["layer_norm"]
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(
        torch.autograd.grad(compiled(X), X), torch.autograd.grad(function(X), X)
    )
    with pytest.raises(RuntimeError):
        gradient_of(compiled, X).sum().backward()
    torch._dynamo.reset()


def test_compiled_the_first_order_is_the_closed_form_alone():
    """Nothing is computed again but what the backward's own lines compute."""
    graphs = []

    def backend(graph, inputs):
        return aot_autograd(fw_compiler=traced, bw_compiler=traced)(graph, inputs)

    def traced(graph, inputs):
        graphs.append(operations(graph))
        return make_boxed_func(graph.forward)

    def operations(graph):
        called = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
        return sorted(name for name in called if "view" not in name)

    gain, bias = GAIN.clone().requires_grad_(), GAIN.clone().requires_grad_()
    compiled = torch.compile(layer_norm, backend=backend, fullgraph=True)
    compiled(X, gain, bias).sum().backward()
    X.grad = None
    torch._dynamo.reset()
    _, *kept = layer_norm_forward(X.detach(), GAIN, GAIN, 1e-5)
    own = make_fx(lambda *own: layer_norm_backward(*own))(TARGET, X.detach(), GAIN, *kept)
    assert graphs[1] == operations(own)


def test_tensors_without_data():
    """Labels are not looked through there."""
    with FakeTensorMode():
        x = torch.randn(4, 3, requires_grad=True)
        (gradient,) = torch.autograd.grad(
            softmax_nll(x, torch.randint(3, (4,))), x, create_graph=True
        )
        (again,) = torch.autograd.grad(gradient.sum(), x)
        assert again.shape == (4, 3)
    x = torch.randn(4, 3, device="meta", requires_grad=True)
    labels = torch.zeros(4, dtype=torch.int64, device="meta")
    (gradient,) = torch.autograd.grad(softmax_nll(x, labels), x, create_graph=True)
    assert torch.autograd.grad(gradient.sum(), x)[0].shape == (4, 3)


@everything
def test_tensors_without_data_have_derivatives_of_every_function(emitted):
    for device in ("fake", "meta"):
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            arguments = {
                name: value if not isinstance(value, torch.Tensor) else mode.from_tensor(value)
                for name, value in emitted.leaves(seed=3).items()
            }
        if device == "meta":
            arguments = {
                name: value
                if not isinstance(value, torch.Tensor)
                else value.detach().to("meta").requires_grad_(name in emitted.inputs)
                for name, value in emitted.leaves(seed=3).items()
            }
        leaf = arguments[emitted.inputs[0]]
        (gradient,) = torch.autograd.grad(
            emitted.function(**arguments).sum(), leaf, create_graph=True
        )
        assert gradient.shape == leaf.shape
        if gradient.requires_grad:
            again = torch.autograd.grad(gradient.sum(), leaf, materialize_grads=True)
            assert again[0].shape == leaf.shape


@everything
def test_forward_mode_keeps_the_format(emitted):
    arguments, name = emitted.arguments(seed=3, dtype=torch.bfloat16), emitted.inputs[0]

    def of(tensor):
        return emitted.function(**{**arguments, name: tensor})

    x = arguments[name]
    for tensor in torch.func.jvp(of, (x,), (torch.ones_like(x),)):
        assert tensor.dtype == of(x).dtype == torch.bfloat16
