"""The order of dimensions is the user's, and a statement may be called as a gradient is."""

import pytest
import torch
from forwards import forward_file
from generating import assert_same_gradients, draw, generated, module_from
from sampling import every

from codegen.driver.lean import generate
from derive import NotationError, forward_from
from derive.language.notation.layout import layouts_of, shape

ENTRIES = """\
    Q, I, J = Axis("Q", 4), Axis("I", 3), Axis("J", 3)
    q = Input(N, Q)
    w = Sum(OneHot(0, Q) * q, Q)
    x = Sum(OneHot(1, Q) * q, Q)
    y = Sum(OneHot(2, Q) * q, Q)
    z = Sum(OneHot(3, Q) * q, Q)
    first = OneHot(0, J)*(1 - 2*(y**2 + z**2)) + 2*OneHot(1, J)*(x*y - w*z)
    second = 2*OneHot(0, J)*(x*y + w*z) + OneHot(1, J)*(1 - 2*(x**2 + z**2))
    third = 2*OneHot(0, J)*(x*z - w*y) + 2*OneHot(1, J)*(y*z + w*x)
    a = first + 2*OneHot(2, J)*(x*z + w*y)
    b = second + 2*OneHot(2, J)*(y*z - w*x)
    c = third + OneHot(2, J)*(1 - 2*(x**2 + y**2))
    entries = OneHot(0, I)*a + OneHot(1, I)*b + OneHot(2, I)*c
"""


def rotation(q):
    """The matrices of unit quaternions (w, x, y, z): (N, 3, 3)."""
    w, x, y, z = q.unbind(1)
    rows = [
        [1 - 2 * (y**2 + z**2), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x**2 + z**2), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x**2 + y**2)],
    ]
    return torch.stack([torch.stack(row, 1) for row in rows], 1)


def rotated(q, p):
    return (rotation(q / q.norm(dim=1, keepdim=True)) @ p[:, :, None])[:, :, 0]


ROTATED = """\
    Q, I = Axis("Q", 4), Axis("I", 3)
    q = Input(N, Q)
    p = Input(N, I)
    u = q / sqrt(Sum(q**2, Q))
    w = Sum(OneHot(0, Q) * u, Q)
    x = Sum(OneHot(1, Q) * u, Q)
    y = Sum(OneHot(2, Q) * u, Q)
    z = Sum(OneHot(3, Q) * u, Q)
    a = Sum(OneHot(0, I) * p, I)
    b = Sum(OneHot(1, I) * p, I)
    c = Sum(OneHot(2, I) * p, I)
    e = 2 * (y * c - z * b)
    f = 2 * (z * a - x * c)
    g = 2 * (x * b - y * a)
    first = OneHot(0, I) * (a + w * e + y * g - z * f)
    second = OneHot(1, I) * (b + w * f + z * e - x * g)
    r = Ordered(first + second + OneHot(2, I) * (c + w * g + x * f - y * e), N, I)
"""


def unit(*shape):
    q = draw(*shape)
    return q / q.norm(dim=1, keepdim=True)


FORWARDS = {
    "Rotation": (f"{ENTRIES}    R = Ordered(entries, N, I, J)\n", rotation, [unit(5, 4)]),
    "Rotated": (ROTATED, rotated, [draw(5, 4), draw(5, 3, seed=2)]),
    "Swapped": (
        "    x = Input(N, C)\n    w = Input(C)\n    t = Ordered(x * w, C, N)\n"
        "    mean = Sum(t, N) / N\n    y = Ordered(t**2 - mean, C, N)\n",
        lambda x, w: ((x * w) ** 2 - (x * w).mean(0)).T,
        [draw(4, 3), draw(3, seed=2)],
    ),
    "Gates": (  # results side by side, each entry of the batch with its own
        '    Gate = Axis("Gate", 2)\n    x = Input(N, C)\n'
        "    y = Ordered(OneHot(0, Gate) * tanh(x) + OneHot(1, Gate) * x**2, N, Gate, C)\n",
        lambda x: torch.stack([x.tanh(), x**2], 1),
        [draw(4, 3)],
    ),
}


@pytest.mark.parametrize("name", every(2, FORWARDS))
def test_it_is_torchs_and_proved_for_every_size(name, tmp_path):
    body, reference, inputs = FORWARDS[name]
    function, _, result = generated(forward_file(tmp_path, name, body), tmp_path)
    assert_same_gradients(function, reference, *inputs)
    assert result.proved.every_size


def layouts(body, folder):
    definition = forward_from(forward_file(folder, "Laid", body)).definition
    return {name: shape(layout) for name, layout in layouts_of(definition).items()}


def test_what_leads_to_an_ordered_output_lies_as_it_does(tmp_path):
    found = layouts(FORWARDS["Rotation"][0], tmp_path)
    assert found["R"] == found["entries"] == "(N, I, J)" and found["first"] == "(N, J)"
    assert layouts(ENTRIES, tmp_path)["entries"] == "(J, I, N)"


def test_any_statement_says_its_order_and_the_others_keep_theirs(tmp_path):
    found = layouts(FORWARDS["Swapped"][0], tmp_path)
    assert (found["t"], found["mean"], found["y"]) == ("(C, N)", "(1, C)", "(C, N)")


def test_it_is_ordered_where_it_is_called(tmp_path):
    forward_file(tmp_path, "Gates", FORWARDS["Gates"][0])
    body = "    from gates import Gates\n    x = Input(N, C)\n    y = Gates(x)\n"
    assert layouts(body, tmp_path)["y"] == "(N, Gate, C)"


@pytest.mark.parametrize(
    ("line", "said"),
    {
        "Ordered(x, N)": "the axes of x are C, N",
        "Ordered(x, N, C, D)": "the axes of x are C, N",
        "Ordered(x, N, N)": "the axes of x are C, N",
        "2 * Ordered(x, C, N)": "give it a line of its own",
    }.items(),
)
def test_what_is_no_order_of_a_statement_is_refused(line, said, tmp_path):
    with pytest.raises(NotationError, match=said):
        forward_from(forward_file(tmp_path, "Refused", f"    x = Input(N, C)\n    y = {line}\n"))


def test_a_statement_called_as_a_gradient_is_a_value_of_that_name(tmp_path):
    body = (
        "    x = Input(N)\n    w = Input(N)\n    dx = x - w\n    dy = tanh(dx)\n"
        "    y = dx**2 + dy\n"
    )
    file = forward_file(tmp_path, "Named", body)
    function, _, result = generated(file, tmp_path)
    assert_same_gradients(
        function, lambda x, w: (x - w) ** 2 + (x - w).tanh(), draw(4), draw(4, seed=2)
    )
    assert "dy of the source is called dy_value here: dy is the gradient of y." in result.text
    chain = module_from(generate(forward_from(file), chain=True).chain, tmp_path, "chain")
    assert chain.NamedAtoms._fields == ("dx_value", "dy_value", "y")
    assert chain.NamedChain._fields[-2:] == ("dx", "dw")
    for declared in ("x = Input(N)\n    dx = Input(N)\n    y = x * dx", "x = Input(N)\n    dx = x"):
        with pytest.raises(NotationError, match="dx is the name of the gradient of x"):
            forward_from(forward_file(tmp_path, "Refused", f"    {declared}\n"))
