"""Rows of tables as operations of torch, which torch.compile puts into its graphs. On Triton's
interpreter: `make test-triton`.
"""

import hashlib
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch
from test_triton_values import INTERPRETED

import generated

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(not INTERPRETED, reason="not interpreted: see make test-triton"),
]
X = torch.randn(4, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def operation(start: str):
    own = import_module("generated.triton._operation")
    with generated.use("triton"):
        (name,) = [n for n in own.OPERATIONS if n.rpartition("_")[0] == start]
    return getattr(torch.ops.gradform, own.registered(name)).default


SEVERAL = [True, True, False]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    ("start", "arguments"),
    [
        ("rms_norm_forward", (X, X[0], 1e-5)),
        ("rms_norm_forward", (X, None, 1e-5)),  # gain is filled in, and a result
        ("rms_norm_backward", (X, X, X[0], X[:, :1], SEVERAL)),
        ("rms_norm_backward_dx", (X.T.contiguous().T, X, X[0], X[:, :1], [True, False, False])),
        ("softmax_nll_forward", (X, torch.tensor([0, 8, 3, 1]))),
        ("layer_norm_lean_forward", (X, X[0], X[1], 1e-5)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_torch_checks_the_operations(start, arguments, dtype):
    """That none returns an argument, or what was not promised."""
    given = [
        a.to(dtype) if isinstance(a, torch.Tensor) and a.is_floating_point() else a
        for a in arguments
    ]
    torch.library.opcheck(operation(start), tuple(given))


def test_another_version_is_another_operation(tmp_path, monkeypatch):
    """Also in the same process, where the module is read again."""
    monkeypatch.syspath_prepend(tmp_path)
    folder = Path(generated.__file__).parent
    own = tmp_path / "edited"
    (own / "triton").mkdir(parents=True)
    files = ["__init__.py", "_runtime.py", "softmax.py", "triton/softmax.py"]
    for name in [*files, *(f"triton/{file.name}" for file in folder.glob("triton/_*.py"))]:
        (own / name).write_text((folder / name).read_text())
    for factor in (1, 2):
        for name in [name for name in sys.modules if name.partition(".")[0] == "edited"]:
            del sys.modules[name]
        if factor == 2:
            edit(own)
        module = import_module("edited.softmax")
        with import_module("edited").use("triton"):
            compiled = torch.compile(module.softmax, backend="aot_eager", fullgraph=True)
            torch.testing.assert_close(compiled(X), factor * torch.softmax(X, 1))
    operations = import_module("edited.triton._operation").OPERATIONS
    assert not operations.keys() & import_module("generated.triton._operation").OPERATIONS.keys()


def edit(folder: Path) -> None:
    """The output is twice what it was."""
    file, kernels = folder / "softmax.py", folder / "triton" / "softmax.py"
    before = file.read_text()
    after = before.replace("return SoftmaxForward(y)", "return SoftmaxForward(2 * y)")
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in (before, after)]
    assert len({*digests}) == 2
    file.write_text(after)
    text = kernels.read_text().replace(*digests)
    kernels.write_text(text.replace("y_ptr + n * C + c, exp_x", "y_ptr + n * C + c, 2 * exp_x"))


def test_operations_have_no_derivative():
    x = X.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        operation("softmax_forward")(x)[0].sum().backward()


def test_lines_compute_what_has_no_entries():
    empty = X[0, :0]
    own = operation("mse_forward_sum")
    with import_module("generated.triton.mse").table.kernels.watched() as called:
        (loss,) = own(empty, empty, "sum")
        assert loss == 0 and not called


def test_nothing_that_is_returned_shares_memory():
    own = import_module("generated.triton._operation")
    made = X + 1
    found = own.apart([X.T, made, made[0]], [X, None])
    expected = [X.T, made, made[0]]
    assert found[1] is made and all(map(torch.equal, found, expected))
    assert len({own.memory(tensor) for tensor in (*found, X)}) == len(found) + 1


def test_what_is_filled_in_is_a_result():
    """The gain, which is 1 where it is left out."""
    from generated.rms_norm import rms_norm_forward

    torch._dynamo.reset()
    with generated.use("triton"):
        compiled = torch.compile(rms_norm_forward, backend="aot_eager", fullgraph=True)
        found = compiled(X)
    for own, other in zip(found, rms_norm_forward(X), strict=True):
        torch.testing.assert_close(own, other)
