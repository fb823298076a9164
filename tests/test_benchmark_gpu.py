"""benchmarks/gpu.py: what is timed is the same function, and without a GPU nothing is."""

import importlib.util
import sys
from pathlib import Path

import pytest
import torch

FILE = Path(__file__).resolve().parents[1] / "benchmarks" / "gpu.py"
SPECIFICATION = importlib.util.spec_from_file_location("benchmark_gpu", FILE)
gpu = importlib.util.module_from_spec(SPECIFICATION)
sys.modules[SPECIFICATION.name] = gpu
SPECIFICATION.loader.exec_module(gpu)


@pytest.mark.parametrize("name", gpu.CASES)
def test_torch_computes_the_same(name):
    case = gpu.CASES[name]
    given = gpu.drawn(case, 6, 17, "cpu", torch.float64)
    ours, theirs = (gpu.both_ways(f, given)() for f in (gpu.ours_of(name), case.torchs))
    assert len(ours) == 1 + sum(t.is_floating_point() for t in given)
    assert gpu.apart(ours, theirs) <= 1e-12
    ours[0].mul_(1.1)
    assert gpu.apart(ours, theirs) > gpu.TOLERANCE


def test_nothing_is_measured_without_a_gpu(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    gpu.main()
    assert capsys.readouterr().out == "not measured: no GPU\n"
