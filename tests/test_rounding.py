"""The chain rounds as autograd does: bit for bit, in whatever network these statements stand.

The reference is autograd through the generated atoms, which compute the statements one operation at
a time; `test_exercises.py` compares the project's network with one typed by hand.
"""

import pytest
import torch
from forwards import HEAD
from generating import draw, labels, module_from

from codegen.driver.lean import generate
from derive import forward_from

HEAD = HEAD + "T, E, V = (Axis(name) for name in 'TEV')\n"

X = draw(6, 5)

# Statements of one function, one product or one sum each, as a network's are.
CASES = {
    "tanh": ("x = Input(N, C)\nh = tanh(x)\ny = h**2", X),
    "tanh of a sum": ("x = Input(N, C)\nb = Input(C)\ny = tanh(x + b)", X, draw(5)),
    "tanh of a matrix product": (
        "x = Input(N, C)\nw = Input(C, H)\nh = tanh(Sum(x * w, C))\ny = exp(h)",
        X,
        draw(5, 3),
    ),
    "powers": (
        "x = Input(N, C)\ns = exp(x)\nr = s ** Rational(-1, 2)\nq = r**3\np = q ** (-1)\ny = p**2",
        X,
    ),
    "a root": ("x = Input(N, C)\ns = exp(x)\ny = sqrt(s)", X),
    "a power that is an argument": (
        "x = Input(N, C)\np = Scalar(2.5)\ns = exp(x)\ny = s**p",
        X,
    ),
    "exp and log": ("x = Input(N, C)\ns = Sum(exp(x), C)\nl = log(s)\ny = x - l", X),
    "means over an odd number": (
        "x = Input(N, C)\nm = Sum(x, C) / C\nd = x - m\ny = Sum(d**2, C) / (C - 1)",
        X,
    ),
    "an absolute value": ("x = Input(N, C)\na = Abs(x)\ny = exp(a)", X),
    "a fraction of a tensor": ("x = Input(N, C)\nh = 3 * x / C\ny = Sum(h, C) / (2 * C - 3)", X),
    "three uses of a tensor": (
        "x = Input(N, C)\ng = Input(C)\nu = tanh(x)\na = exp(u)\nb = u * g\nc = tanh(u)\n"
        "d = a + b\ny = d * c",
        X,
        draw(5),
    ),
    "a picked entry": (
        "x = Input(N, C)\ni = Label(N)\nl = log(exp(x))\ny = -Sum(OneHot(i, C) * l, C)",
        X,
        labels(6, 5),
    ),
    "a maximum": ("x = Input(N, C)\nm = Max(x, C)\nd = x - m\ny = exp(d)", X),
    "an embedding, flattened": (
        "i = Label(N, T)\ntable = Input(V, E)\nw = Input(K, H)\n"
        "emb = Sum(OneHot(i, V) * table, V)\nrow = Flatten(emb, T, E, into=K)\n"
        "z = Sum(row * w, K)\ny = tanh(z)",
        torch.randint(7, (6, 3), generator=torch.Generator().manual_seed(3)),
        draw(7, 2),
        draw(6, 4),
    ),
}


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    text, *inputs = CASES[request.param]
    folder = tmp_path_factory.mktemp("rounding")
    lines = "".join(f"    {line}\n" for line in text.split("\n"))
    (folder / "net.py").write_text(f"{HEAD}\n\nclass Net(Forward):\n{lines}", encoding="utf-8")
    result = generate(forward_from(folder / "net.py"), chain=True)
    return module_from(result.chain, folder, "net_chain"), result, inputs


@pytest.mark.parametrize("dtype", (torch.float64, torch.float32))
def test_every_gradient_has_the_same_bits(case, dtype):
    module, result, inputs = case
    leaves = [
        t.to(dtype, copy=True).requires_grad_() if t.is_floating_point() else t for t in inputs
    ]
    numbers = [p.default for p in result.program.forward.parameters if p.role == "scalar"]
    atoms = module.net_atoms(*leaves, *numbers)
    for value in atoms:
        value.retain_grad()
    generator = torch.Generator().manual_seed(5)
    upstream = torch.randn(tuple(atoms[-1].shape), generator=generator, dtype=dtype)
    atoms[-1].backward(upstream)
    values = [value.detach() for value in atoms]
    given = *(t.detach() for t in leaves), *numbers
    chain = module.net_chain(upstream, *given, type(atoms)(*values))
    names = [p.name for p in result.program.forward.parameters if p.role != "scalar"]
    tensors = dict(zip(names, leaves, strict=True)) | atoms._asdict()
    for name, tensor in [(n, t) for n, t in tensors.items() if t.requires_grad]:
        ours = getattr(chain, f"d{name}")
        assert ours.shape == tensor.shape, name
        assert torch.equal(ours, tensor.grad), f"d{name} differs by a rounding"
