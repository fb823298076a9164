"""benchmarks/gpu.py: every function with kernels has a row, what is timed is the same function, a
failure is one row's, and without a GPU nothing is measured.
"""

import importlib.util
import os
import sys
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
MOST_ENTRIES = 2**29  # of an array: a gigabyte in bfloat16


def loaded(name: str):
    specification = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


loaded("gpu_beside")
gpu = loaded("gpu")
EVERY = {str(emitted): emitted for emitted in gpu.with_kernels()}
FOUND = gpu.Measured(0.5, 4, 30.0, 2**20)
SETTING = gpu.Setting(lambda run, small: FOUND, 4e12, "cpu", torch.float64, 6, 17)


@pytest.fixture
def short(monkeypatch):
    """The arrays of more axes are small, too."""
    sizes = {name: [min(length, 5) for length in own] for name, own in gpu.SIZES.items()}
    monkeypatch.setattr(gpu, "SIZES", sizes)
    monkeypatch.setattr(gpu, "SMALL", (3, 5))


@pytest.mark.filterwarnings("ignore:reduction")  # of F.kl_div's mean
@pytest.mark.parametrize("name", EVERY)
def test_torch_computes_the_same(name, short):
    emitted = EVERY[name]
    given = gpu.drawn(emitted, gpu.lengths_of(emitted, 6, 17), SETTING)
    wanted = gpu.wanted_of(emitted, given)
    ours = gpu.own_function(emitted)
    upstream = gpu.upstream_of(ours, given)
    assert gpu.gap_of(emitted, given, wanted, upstream) <= 1e-12
    found = gpu.both_ways(ours, given, wanted, upstream)()
    assert len(found) == len(upstream) + len(wanted)
    changed = [found[0] * 1.1, *found[1:]]
    assert gpu.apart(changed, found) > gpu.TOLERANCE
    assert gpu.apart([found[0] * float("nan"), *found[1:]], found) == float("inf")


@pytest.mark.parametrize("name", EVERY)
def test_arguments_fit_a_gpu(name):
    """And those of small calls are small."""
    emitted = EVERY[name]
    definition = emitted.definition
    for sizes, most in (((), MOST_ENTRIES), (gpu.SMALL, 2**20)):
        lengths = dict(
            zip(definition.independent_axes, gpu.lengths_of(emitted, *sizes), strict=True)
        )
        whole = definition.sizes_from(definition.fitting(lengths))
        homes = [t.home for t in (*definition.arguments, *definition.outputs)]
        assert max(prod(whole[axis] for axis in home) for home in homes) <= most


def test_every_name_is_a_function():
    for table in (gpu.SIZES, gpu.TORCHS, sys.modules["gpu_beside"].LIGERS):
        assert table.keys() <= EVERY.keys()


# Arrays of full size: those of the forward and then, but for a loss, those of the backward.
@pytest.mark.parametrize(
    ("name", "arrays"),
    [
        ("softmax", 2 + 3),
        ("rms_norm", 2 + 3),
        ("layer_norm", 2 + 3),
        ("add_rms_norm", 4 + 4),  # one gradient is the other
        ("swiglu", 3 + 5),
        ("relu", 2 + 3),
        ("norm", 1 + 2),
        ("cross_entropy", 2),
        ("mse", 3),
    ],
)
def test_what_passes_once_is_counted(name, arrays):
    emitted, rows, columns = EVERY[name], 200, 300
    setting = replace(SETTING, dtype=torch.bfloat16)
    given = gpu.drawn(emitted, gpu.lengths_of(emitted, rows, columns), setting)
    moved = gpu.least(emitted, given, gpu.wanted_of(emitted, given))
    assert moved == pytest.approx(2 * arrays * rows * columns, rel=0.05)


def test_a_row_has_every_figure(monkeypatch):
    """The ratios are ours to theirs."""
    them = iter([FOUND, gpu.Measured(1.0, 2, 120.0, 2**22), gpu.Measured(0.25, 2, 15.0, 2**19)])
    monkeypatch.setattr(gpu, "ligers_of", lambda name: None)
    line = gpu.row(EVERY["softmax"], replace(SETTING, measure=lambda run, small: next(them)))
    share = 5 * 6 * 17 * 8 / 0.5e-3 / 4e12
    assert "6 x 17 " in line and f"0.500 ms {share:5.0%} of a copy   4 kernels     30 us" in line
    assert "1.0 MiB" in line and "WRONG" not in line
    assert "torch 0.50 / 0.25 / 0.25" in line and "compiled 2.00 / 2.00 / 2.00" in line


def test_options_are_compared_with_the_lines():
    """Torch's functions here do not take them; they are those of functions that have them."""
    setting = replace(SETTING, numbers={"label_smoothing": 0.2}, optional=True)
    line = gpu.row(EVERY["cross_entropy"], setting)
    assert "lines 1.00" in line and "torch" not in line and "WRONG" not in line
    given = gpu.drawn(EVERY["cross_entropy"], [6, 17, 1], setting)
    assert given["label_smoothing"] == 0.2 and given["weight"].shape == (17,)
    assert "torch 1.00" in gpu.row(EVERY["softmax"], setting)
    assert ", label_smoothing 0.2, with all" in gpu.chosen(setting)


def test_a_failure_is_its_own_rows(monkeypatch, capsys):
    """Of a function, of what it is compared with, and of a result; the status says so."""
    names = ["softmax", "rms_norm", "tanh"]
    turns = iter(
        [FOUND, RuntimeError("out of memory\nmore"), FOUND, ValueError("no"), *3 * [FOUND]]
    )

    def measure(run, small):
        found = next(turns)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(gpu, "ligers_of", lambda name: None)
    monkeypatch.setitem(gpu.TORCHS, "tanh", lambda x: x.sigmoid())
    status = gpu.report([EVERY[n] for n in names], replace(SETTING, measure=measure), "A card")
    card, first, second, third, last = capsys.readouterr().out.splitlines()
    assert card.startswith("A card: a copy moves 4000 GB/s; torch ") and "float64" in card
    assert "torch failed: RuntimeError: out of memory   compiled 1.00" in first
    assert second.split() == ["rms_norm", "failed:", "ValueError:", "no"]
    assert "WRONG" in third and last == "1 of 3 functions measured and right"
    assert status == 1


@pytest.mark.triton
def test_what_is_written_by_hand_is_right():
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("not interpreted: see make test-triton")
    (x,) = given = [torch.randn(70, 33, requires_grad=True)]
    found = loaded("gpu_by_hand").silu(x)
    upstream = torch.randn(70, 33)
    for own, theirs in zip(
        (found, *torch.autograd.grad(found, given, upstream)),
        (F.silu(x), *torch.autograd.grad(F.silu(x), given, upstream)),
        strict=True,
    ):
        torch.testing.assert_close(own, theirs)


def test_nothing_is_measured_without_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    assert gpu.main() == 0
    assert capsys.readouterr().out == "not measured: no GPU\n"
