"""Kernels of tiles, compiled for GPUs that are not there: at the sizes of the table none spills."""

import importlib.util
import os
import subprocess
import sys

import pytest
import torch
from compiled_kernels import is_counted
from compiled_tiles import launches, used

from codegen.files.loading import loaded

pytestmark = [
    pytest.mark.triton,
    pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no Triton"),
    pytest.mark.skipif("TRITON_INTERPRET" in os.environ, reason="this process interprets"),
]
ROWS, FEATURES, WORDS = 8192, 4096, 128256
HEADS = (64, 4096, 64)
CASES = (  # the dtype, the GPU, and bytes of a thread that do not fit into registers
    *(("linear_cross_entropy", "V", torch.bfloat16, arch, 0) for arch in (80, 90)),
    ("linear_cross_entropy", "V", torch.float32, 80, 0),
    *(("causal_attention", "S", torch.bfloat16, arch, 0) for arch in (80, 90)),
    ("causal_attention", "S", torch.float32, 80, 48),
)
SHAPES = {
    "linear_cross_entropy": {
        "hidden": (ROWS, FEATURES),
        "weight": (WORDS, FEATURES),
        "labels": (ROWS,),
    },
    "causal_attention": dict.fromkeys(("query", "key", "value"), HEADS),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The files of both, which another process writes: it interprets."""
    folder = tmp_path_factory.mktemp("tiles")
    for name, axis in {case[:2] for case in CASES}:
        command = [sys.executable, "-m", "codegen", name, "--chunk", axis, "--target", "triton"]
        own = {**os.environ, "TRITON_INTERPRET": "1"}
        subprocess.run([*command, "--out", folder], env=own, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(("name", "axis", "dtype", "arch", "most"), CASES)
def test_nothing_spills(name, axis, dtype, arch, most, written):
    file = f"{name}_tiles_{axis.lower()}"
    module = loaded((written / f"{file}.py").read_text(encoding="utf-8"), file)
    found = launches(module, getattr(module, file), SHAPES[name], dtype)
    assert len(found) == 3
    for kernel, (function, given, how) in found.items():
        registers, spilled, _ = used(function, given, how, arch)
        assert spilled <= most or not is_counted(), (kernel, registers, spilled)
