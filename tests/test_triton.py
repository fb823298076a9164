"""A sample of `make test-triton`, where Triton is installed, in the two processes that it takes:
one interprets kernels, the other one compiles them.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
INTERPRET = "TRITON_INTERPRET"
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="no Triton: make triton"
)
written = pytest.mark.skipif(
    not (ROOT / "generated" / "triton").is_dir(), reason="no kernels in generated/triton"
)


def test_the_command_compares_what_it_writes(tmp_path):
    """Though torch imports Triton, too: which interprets nothing if it was not told before."""
    known = {n: v for n, v in os.environ.items() if n not in ("GRADFORM_TARGET", INTERPRET)}
    command = [sys.executable, "-m", "codegen", "l1", "--no-cache", "--target", "triton"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], cwd=ROOT, env=known, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "triton" / "l1.py").exists()


def run(file: str, chosen: str, **variables: str) -> str:
    """Run some of the tests of `make test-triton`; returns pytest's output."""
    command = [sys.executable, "-m", "pytest", "-m", "triton", f"tests/{file}", "-k", chosen]
    known = {n: v for n, v in os.environ.items() if n != "GRADFORM_TARGET"}
    done = subprocess.run(
        command, cwd=ROOT, env={**known, **variables}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


@written
def test_a_sample_comes_out_as_from_the_lines():
    functions = "softmax_nll or layer_norm or gelu"
    run("test_triton_values.py", f"17 and ({functions})", TRITON_INTERPRET="1")


@written
def test_a_sample_of_what_needs_a_gpu_is_interpreted():
    run("test_gpu.py", "softmax and (bits or gradients)", TRITON_INTERPRET="1")


@written
def test_a_sample_compiles():
    run("test_triton_compiled.py", "every_function and 90 and rms_norm")


@written
@pytest.mark.parametrize("name", ["rms_norm", "softmax"])
def test_no_function_is_longer_than_one_written_by_hand(name):
    text = (ROOT / "generated" / "triton" / f"{name}.py").read_text()
    functions = [part for part in text.split("\n\n\n") if "@triton.jit" in part]
    assert functions and all(len(part.strip().split("\n")) <= 25 for part in functions)
