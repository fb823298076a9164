"""What has no gradient, such as a one-hot, a mask, a place or what is given, may stand anywhere: as
a statement that others read in any way, or as an output. `generate` compares what it writes.
"""

import pytest
import torch
from forwards import HEAD
from generating import generated

pytestmark = pytest.mark.filterwarnings("ignore:.*has no influence")

TOP = f"""{HEAD}
from derive import Concat, CumSum, Identity, Outputs, Scan, Shift, Slice

T, E = Axis("T"), Axis("E")
P, Both = Axis("P", T - 1), Axis("Both", 2 * C)


class Mine(Forward):
    x = Input(T, C)
    tags = Label(T)
    given = Given(T, C)
    chosen = OneHot(tags, C)
"""

READ = (
    "loss = Sum(Shift(chosen, T, 1) * x, T, C)",
    "later = Slice(chosen, T, into=P, start=1)\nloss = Sum(later * Slice(x, T, into=P), P, C)",
    "flat = Flatten(chosen, T, C, into=K)\nloss = Sum(flat * Flatten(x, T, C, into=K)**2, K)",
    "same = Sum(chosen * Rename(chosen, T, H), C)\ny = Sum(same * x * Rename(x, T, H), H)",
    "y = Scan(chosen * x, chosen, T) * x",
    "y = Concat((chosen, C), (x, C), into=Both)**2",
    "count = CumSum(chosen, T)\nbest = Max(chosen, C)\ny = Sum(count * x, C) * best",
    "signs = 2 * chosen - 1\ny = Sum(Shift(signs, T, -1) * x**2 * given, C)",
    "m = Sum(x * Rename(x, C, D), T)\n"
    "on = Piecewise((1, Eq(Position(C), Position(D))), (0, True))\n"
    "loss = Sum(on * (m - 1)**2, C, D) + Sum((1 - on) * m**2, C, D)",
    "m = Sum(x * Rename(x, C, D), T)\neye = Identity(C, D)\nloss = Sum(eye * log(1 + m**2), C, D)",
)
RETURNED = (
    "loss = Sum(x**2 * chosen, C)\nouts = Outputs(loss, chosen)",
    "y = Sum(x, C)\nu = Sum(given, C)\nouts = Outputs(y, u)",
    "y = Sum(x, C)\nu = Position(T) + 1\nouts = Outputs(u, y)",
    "before = Shift(chosen, T, 1)\ny = Sum(before * x, C)\nouts = Outputs(y, before)",
)


def written(lines: str, folder):
    file = folder / "mine.py"
    body = "".join(f"    {line}\n" for line in lines.splitlines())
    file.write_text(TOP + body)
    return generated(file, folder)


@pytest.mark.parametrize("lines", READ)
def test_it_may_be_read_in_any_way(lines, tmp_path):
    *_, result = written(lines, tmp_path)
    assert "dchosen" not in result.program.chain.results
    assert result.largest_difference < 1e-12


@pytest.mark.parametrize("lines", RETURNED)
def test_it_may_be_returned(lines, tmp_path):
    """With second derivatives; a loss that reads the other output alone has its gradient."""
    function, _, result = written(lines, tmp_path)
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    given = torch.randn(4, 3, dtype=torch.float64)
    own = {"x": x, "tags": torch.tensor([0, 2, 1, 1]), "given": given}
    outputs = function(**{p.name: own[p.name] for p in result.program.forward.parameters})
    read = next(
        o for o, t in zip(outputs, result.program.outputs, strict=True) if t in ("y", "loss")
    )
    assert torch.autograd.grad(read.sum(), x)[0].isfinite().all()


def test_a_name_of_the_second_order_may_be_an_inputs(tmp_path):
    """The upstream gradient has another one then."""
    file = tmp_path / "mine.py"
    lines = "class Mine(Forward):\n    x = Input(N, C)\n    g = Given(N)\n    v_x = Given(N)\n"
    file.write_text(f"{HEAD}\n{lines}    m = Max(g, N)\n    y = x**3 * exp(g - m) * v_x\n")
    assert generated(file, tmp_path)
