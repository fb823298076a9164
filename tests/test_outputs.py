"""`Outputs`: a forward that returns several tensors, each with an upstream gradient of its own."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from forwards import HEAD
from generating import draw, generated, labels

from codegen.driver import lean
from codegen.driver.ranks import generate_of_ranks
from codegen.targets.languages import kernels
from derive import NotationError, QuestionError, check, derive, forward_from
from derive.gradient.chain.chain import derive_chain
from derive.gradient.orders.second import second_order
from derive.show import document_of
from derive.show.formats import FORMATS

TOLERANCE = 1e-10
TOP = f"{HEAD}from derive import Axes, Outputs, Rename, Unflatten\n\nR = Axes('R')\n"

ADD_NORM = """    x = Input(R, C)
    residual = Input(R, C)
    gain = Input(C)
    eps = Scalar(1e-6)
    h = x + residual
    inv_rms = 1 / sqrt(Sum(h**2, C) / C + eps)
    y = gain * h * inv_rms
    outputs = Outputs(y, h)
"""
STATISTICS = """    x = Input(R, C)
    gain = Input(C)
    bias = Input(C, default=0)
    eps = Scalar(1e-5)
    mean = Sum(x, C) / C
    diff = x - mean
    rstd = 1 / sqrt(Sum(diff**2, C) / C + eps)
    xhat = diff * rstd
    y = gain * xhat + bias
    outputs = Outputs(y, mean, rstd)
"""
LOG_SUM = """    x = Input(R, C)
    lse = log(Sum(exp(x), C))
    p = exp(x - lse)
    outputs = Outputs(p, lse)
"""
CELL = """    x = Input(N, K)
    h = Input(N, H)
    c = Input(N, H)
    w = Input(K, P)
    u = Input(H, P)
    pre = Sum(x * w, K) + Sum(h * u, H)
    gates = Unflatten(pre, P, into=(Gate, H))
    i = 1 / (1 + exp(-Sum(OneHot(0, Gate) * gates, Gate)))
    f = 1 / (1 + exp(-Sum(OneHot(1, Gate) * gates, Gate)))
    g = tanh(Sum(OneHot(2, Gate) * gates, Gate))
    o = 1 / (1 + exp(-Sum(OneHot(3, Gate) * gates, Gate)))
    cell = f * c + i * g
    hidden = o * tanh(cell)
    outputs = Outputs(hidden, cell)
"""
SWIGLU = """    x = Input(R, C)
    gate = Input(R, C)
    silu = gate / (1 + exp(-gate))
    y = x * silu
    outputs = Outputs(y, silu)
"""
LOSS = """    logits = Input(N, C)
    labels = Label(N)
    logp = logits - log(Sum(exp(logits), C))
    p = exp(logp)
    loss = -Sum(OneHot(labels, C) * logp, C, N) / N
    outputs = Outputs(loss, p)
"""
PASSED = """    x = Input(N, C)
    w = Input(C)
    y = x * w
    z = w**2
    outputs = Outputs(y, x, z)
"""


def cell(x, h, c, w, u):
    i, f, g, o = (x @ w + h @ u).chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def statistics(x, gain, bias):
    mean, rstd = x.mean(-1), (x.var(-1, unbiased=False) + 1e-5).rsqrt()
    return F.layer_norm(x, x.shape[-1:], gain, bias), mean, rstd


def add_norm(x, residual, gain):
    h = x + residual
    return F.rms_norm(h, h.shape[-1:], gain, 1e-6), h


X, W = draw(3, 4), draw(4, seed=2)
REFERENCES = {
    "AddNorm": (ADD_NORM, add_norm, (X, draw(3, 4, seed=3), W)),
    "Stats": (STATISTICS, statistics, (X, W, draw(4, seed=3))),
    "LogSum": (LOG_SUM, lambda x: (x.softmax(-1), x.logsumexp(-1)), (X,)),
    "StepOfCell": (
        CELL,
        cell,
        (X, draw(3, 2), draw(3, 2, seed=4), draw(4, 8, seed=5), draw(2, 8, seed=6)),
    ),
    "Swiglu": (SWIGLU, lambda x, gate: (x * F.silu(gate), F.silu(gate)), (X, draw(3, 4, seed=3))),
    "LossOfRow": (
        LOSS,
        lambda logits, labels: (F.cross_entropy(logits, labels), logits.softmax(1)),
        (X, labels(3, 4)),
    ),
    "Passed": (PASSED, lambda x, w: (x * w, x, w**2), (X, W)),
}


def written(folder, name, body):
    file = folder / f"{name.lower()}.py"
    file.write_text(
        f"{TOP}H, P, Gate = Axis('H'), Axis('P'), Axis('Gate', 4)\n\n\n"
        f"class {name}(Forward):\n{body}"
    )
    return file


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """Each of the forwards as a module, emitted once."""
    found, folder = {}, tmp_path_factory.mktemp("outputs")

    def module_of(name):
        if name not in found:
            file = written(folder, name, REFERENCES[name][0])
            found[name] = generated(file, folder)
        return found[name]

    return module_of


def leaves_of(inputs):
    return [t.clone().requires_grad_(t.is_floating_point()) for t in inputs]


def gradients(function, inputs, given, graph=False):
    """The gradients by all inputs where the outputs at the places ``given`` have one each."""
    leaves = leaves_of(inputs)
    outputs = function(*leaves)
    drawing = torch.Generator().manual_seed(9)
    upstreams = [torch.randn(t.shape, generator=drawing, dtype=t.dtype) for t in outputs]
    own = [leaf for leaf in leaves if leaf.requires_grad]
    found = torch.autograd.grad(
        [outputs[i] for i in given],
        own,
        [upstreams[i] for i in given],
        materialize_grads=True,
        create_graph=graph,
    )
    return own, found


def assert_close(ours, wanted):
    for one, other in zip(ours, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=TOLERANCE, atol=TOLERANCE)


# -- what comes out ------------------------------------------------------------------


@pytest.mark.parametrize("name", REFERENCES)
def test_outputs_and_gradients_are_those_of_torch_for_every_choice_of_upstreams(name, modules):
    _, reference, inputs = REFERENCES[name]
    function, _, result = modules(name)
    assert result.proved.every_size
    outputs = function(*inputs)
    assert type(outputs) is tuple
    assert_close(outputs, reference(*inputs))
    places = range(len(outputs))
    chosen = [list(places), *([i] for i in places), list(places)[1:], list(places)[:-1]]
    for given in chosen:
        _, ours = gradients(function, inputs, given)
        _, wanted = gradients(reference, inputs, given)
        assert_close(ours, wanted)


@pytest.mark.parametrize("name", ["AddNorm", "LogSum", "Passed"])
def test_second_derivatives_whichever_outputs_have_a_gradient(name, modules):
    _, reference, inputs = REFERENCES[name]
    function, *_ = modules(name)
    places = range(len(function(*inputs)))
    for given in [list(places), *([i] for i in places)]:
        found = []
        for each in (function, reference):
            own, first = gradients(each, inputs, given, graph=True)
            squares = sum((g**2).sum() for g in first)
            found.append(
                torch.autograd.grad(squares, own, materialize_grads=True)
                if squares.requires_grad
                else [torch.zeros_like(t) for t in own]
            )
        assert_close(*found)


def test_the_pullback_reads_outputs_and_not_what_they_are_inside():
    """The sum, which lines read, is at hand as an output."""
    order = second_order(derive("add_rms_norm"))
    assert order.every_size
    assert {t.name for t in order.pullback.form.saved} >= {"h", "inv_rms"}


def test_the_closed_forms_are_those_of_an_expert(tmp_path):
    """What both gradients share is computed once, and outputs are read, not computed again."""
    forms = {
        "AddNorm": {
            "dgain": "Sum(dy*h*inv_rms, R)",
            "dx": "dh + inv_rms*(dy*gain - h*inv_rms**2*Sum(dy*gain*h, C)/C)",
            "dresidual": "dx",
        },
        "LogSum": {
            "dx_minus_lse_inner": "dp*p",
            "dx": "dx_minus_lse_inner + p*(dlse - Sum(dx_minus_lse_inner, C))",
        },
        "Passed": {"dx": "dx_out + dy*w", "dw": "2*dz*w + Sum(dy*x_out, N)"},
    }
    for name, lines in forms.items():
        proved = derive(written(tmp_path, name, REFERENCES[name][0]))
        found = {str(s.tensor): str(s.expression) for s in proved.closed_form.statements}
        assert found == lines


def test_an_output_without_a_gradient_adds_nothing(modules):
    """The plain backward takes the gradients of all outputs; a model uses one of them."""
    _, module, _ = modules("AddNorm")
    x, residual, gain = REFERENCES["AddNorm"][2]
    y, h, inv_rms = module.add_norm_forward(x, residual, gain, 1e-6)
    upstream = draw(3, 4, seed=7)
    kept = [gain, h, inv_rms]
    dx, dresidual, dgain = module.add_norm_backward(torch.zeros_like(y), upstream, *kept)
    assert torch.equal(dx, upstream) and torch.equal(dresidual, upstream) and not dgain.any()
    assert gradients(module.add_norm, (x, residual, gain), [1])[1][2].eq(0).all()


def test_the_forward_computes_an_output_under_its_own_name(modules):
    _, _, result = modules("AddNorm")
    assert [step.name for step in result.program.forward.steps] == ["h", "inv_rms", "y"]
    assert result.program.outputs == ("y", "h")
    assert "-> tuple[Tensor, Tensor]:" in result.text
    assert "Returns y (*R, C), h (*R, C)." in result.text


def test_transforms_take_all_outputs(modules):
    _, reference, inputs = REFERENCES["LogSum"]
    function, _, _ = modules("LogSum")

    def objective(f):
        return lambda x: sum((output**3).sum() for output in f(x))

    for transform in (
        lambda f: torch.func.vmap(torch.func.grad(objective(f)))(torch.stack([inputs[0]] * 2)),
        lambda f: torch.func.hessian(objective(f))(*inputs),
        lambda f: torch.func.jvp(f, inputs, inputs)[1],
    ):
        ours, wanted = transform(function), transform(reference)
        pairs = (ours, wanted) if isinstance(ours, tuple) else ([ours], [wanted])
        assert_close(*pairs)


def test_compiled_and_in_half_precision(modules):
    _, reference, inputs = REFERENCES["AddNorm"]
    function, _, _ = modules("AddNorm")
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    for given in ([0, 1], [1]):
        assert_close(gradients(compiled, inputs, given)[1], gradients(reference, inputs, given)[1])
    half = [t.bfloat16() for t in inputs]
    assert [output.dtype for output in function(*half)] == [torch.bfloat16] * 2
    several = [inputs[0].reshape(3, 1, 4), inputs[1].reshape(3, 1, 4), inputs[2]]
    assert [output.shape for output in function(*several)] == [(3, 1, 4)] * 2


# -- the mathematics ------------------------------------------------------------------


def test_no_chain_is_derived_where_a_statement_reads_an_output(tmp_path):
    """Its gradient would not be what arrives, and the proof takes what arrives for it."""
    definition = forward_from(written(tmp_path, "AddNorm", ADD_NORM)).definition
    assert [str(s) for s in definition.statements[-1:]] == ["h = h_inner"]
    with pytest.raises(AssertionError, match="a statement reads an output"):
        derive_chain(replace(definition, returned=("y", "h_inner")))


FUNCTION = """
class AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, residual, gain):
        h = x + residual
        inv = torch.rsqrt((h * h).mean(-1, keepdim=True) + 1e-6)
        ctx.save_for_backward(h, inv, gain)
        return h * inv * gain, h

    @staticmethod
    def backward(ctx, grad_y, grad_h):
        h, inv, gain = ctx.saved_tensors
        g = grad_y * gain
        dx = grad_h + inv * (g - h * inv**2 * (g * h).mean(-1, keepdim=True))
        return dx, dx, (grad_y * h * inv).sum(0)
"""


def test_a_formula_in_the_upstream_gradients_of_all_outputs(tmp_path):
    file = written(tmp_path, "AddNorm", ADD_NORM)
    right = "dh + inv_rms*(dy*gain - h*inv_rms**2*Sum(dy*gain*h, C)/C)"
    assert check(file, f"dx = {right}").answers[0].outcome == "right"
    torch_text = "dx = dh + inv_rms*(dy*gain - h*inv_rms**2*(dy*gain*h).mean(-1, keepdim=True))"
    assert check(file, torch_text).answers[0].outcome == "right"
    for wrong in ("dh", right.removeprefix("dh + "), right.replace("dh", "2*dh")):
        assert check(file, f"dx = {wrong}").answers[0].outcome == "wrong"
    verdict = check(file, FUNCTION)
    assert [answer.outcome for answer in verdict.answers] == ["right", "right", "right"]
    verdict = check(file, FUNCTION.replace("grad_h + ", ""))
    assert [answer.outcome for answer in verdict.answers] == ["wrong", "wrong", "right"]


def test_second_derivatives_are_checked_by_the_names_of_the_outputs(tmp_path):
    file = written(tmp_path, "Passed", PASSED)
    assert check(file, "v_y = v_x*w + x*v_w", order=2).answers[0].outcome == "right"
    assert check(file, "v_z = w*v_w", order=2).answers[0].outcome == "wrong"


def test_every_page_names_what_arrives_and_what_is_returned(tmp_path):
    document = document_of(derive(written(tmp_path, "Stats", STATISTICS)))
    for page in (page(document) for page in FORMATS.values()):
        assert page.count("an output") >= 3 and " arrive" in page


# -- the notation ------------------------------------------------------------------

INNER = """class Inner(Forward):
    x = Input(N, C)
    m = Sum(x, C) / C
    y = (x - m) ** 2
    outputs = Outputs(y, m)


"""


def test_both_results_of_a_call_are_used_each_statement_once(tmp_path):
    body = "    x = Input(N, C)\n    y, mean = Inner(x)\n    z = Sum(y, C) * mean\n"
    file = tmp_path / "outer.py"
    file.write_text(f"{TOP}\n\n{INNER}class Outer(Forward):\n{body}")
    definition = forward_from(f"{file}:Outer").definition
    assert [s.name for s in definition.statements] == ["mean", "y", "z"]
    function, _, result = generated(f"{file}:Outer", tmp_path)
    assert result.proved.every_size

    def reference(x):
        mean = x.mean(1, keepdim=True)
        return (((x - mean) ** 2).sum(1) * mean[:, 0],)

    (wanted,) = gradients(reference, (X,), [0])[1]
    (ours,) = gradients(lambda x: (function(x),), (X,), [0])[1]
    assert_close([ours], [wanted])


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("y, mean = Inner(x)\n    z = Sum(mean, N)", ["mean", "y", "z"]),
        ("_, mean = Inner(x)\n    z = mean**2", ["mean", "z"]),
        ("z, mean = Inner(x)\n    out = Outputs(z, mean)", ["mean_inner", "z", "mean"]),
    ],
)
def test_a_call_brings_what_is_read_of_it(line, names, tmp_path):
    file = tmp_path / "outer.py"
    file.write_text(f"{TOP}\n\n{INNER}class Outer(Forward):\n    x = Input(N, C)\n    {line}\n")
    definition = forward_from(f"{file}:Outer").definition
    assert [s.name for s in definition.statements] == names


REFUSED = {
    "o = Outputs(y, x + 1)": "give it a line and a name of its own",
    "o = Outputs(y, eps)": "that is not a statement",
    "o = Outputs(y)": "the last line is the output",
    "o = Outputs(y, z, y)": "names y twice",
    "o = Outputs(y, z); u = x": "u comes after o = Outputs",
    "losses = y**2; loss = Reduced(losses); o = Outputs(loss, z)": "comes after loss = Reduced",
}


@pytest.mark.parametrize("line", REFUSED)
def test_refused_with_the_remedy(line, tmp_path):
    lines = "".join(f"    {part}\n" for part in line.split("; "))
    start = "    x = Input(N, C)\n    eps = Scalar(1)\n    y = x * eps\n    z = x**2\n"
    top = f"{TOP}from derive import Reduced\n"
    file = tmp_path / "mine.py"
    file.write_text(f"{top}\n\nclass Mine(Forward):\n{start}{lines}")
    with pytest.raises(NotationError, match=REFUSED[line]):
        forward_from(file)


def test_what_influences_none_of_the_outputs_is_told(tmp_path):
    body = "    x = Input(N)\n    y = x**2\n    z = x**3\n    u = x\n    o = Outputs(y, z)\n"
    with pytest.warns(UserWarning, match="the statement u has no influence on y or z"):
        forward_from(written(tmp_path, "Told", body))


# -- what else is emitted --------------------------------------------------------------


def test_several_outputs_have_kernels_and_are_not_split(tmp_path):
    file = written(tmp_path, "Passed", PASSED)
    with pytest.raises(QuestionError, match="has several outputs, y and x_out and z"):
        generate_of_ranks(forward_from(file), ["N"])
    assert lean.generate(forward_from(file), kernels=kernels["cpp"]).kernels
