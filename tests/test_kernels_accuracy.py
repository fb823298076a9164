"""A function of a float that the header of kernels writes out is near the exact value."""

import ctypes
import math
import os
import shutil

import numpy as np
import pytest

from generated.kernels import _building

pytestmark = pytest.mark.skipif(
    not (os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")),
    reason="no C++ compiler",
)
MOST = 4  # units in the last place
SOURCE = """
#include "functions.h"
extern "C" void filled(const float* x, float* y, int64_t count) {
    for (int64_t i = 0; i < count; ++i) y[i] = erf(x[i]);
}
extern "C" void divided(float* x, const float* divisor, int64_t count) {
    const Divisor by = *divisor;
    for (int64_t i = 0; i < count; ++i) x[i] = x[i] / by;
}
"""


@pytest.fixture(scope="module", params=["", "-DGRADFORM_SCALAR -march=x86-64"])
def library(request, tmp_path_factory):
    """As built here, and as plain C++ without a product and a sum in one step."""
    source = tmp_path_factory.mktemp("accuracy") / "accuracy.cpp"
    source.write_text(SOURCE)
    flags = (*_building.FLAGS, *request.param.split())
    return ctypes.CDLL(str(_building.built(source, flags=flags)))


@pytest.fixture
def erf(library):
    def function(x: np.ndarray) -> np.ndarray:
        y = np.empty_like(x)
        places = (ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
        library.filled(*places, ctypes.c_int64(x.size))
        return y

    return function


def every_exponent(mantissas: int = 64) -> np.ndarray:
    """Numbers of both signs and all exponents, those below the normal ones too."""
    step = (1 << 23) // mantissas
    bits = np.arange(0, 0x7F800000, step, dtype=np.uint32) + np.uint32(12345)
    return np.concatenate([bits, bits | np.uint32(1 << 31)]).view(np.float32)


def test_erf_is_near_everywhere(erf):
    dense = np.linspace(-10, 10, 10**6, dtype=np.float32)
    smallest = np.arange(1, 100, dtype=np.uint32).view(np.float32)
    x = np.concatenate([every_exponent(), dense, smallest, -smallest])
    exact = np.array([math.erf(number) for number in x.tolist()])
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    found = erf(x)
    assert (np.abs(found - exact) / unit).max() <= MOST
    assert np.abs(found).max() == 1


def test_erf_at_the_ends_is_exact(erf):
    found = erf(np.array([0.0, -0.0, np.inf, -np.inf, 3e38, -3e38, np.nan], dtype=np.float32))
    assert found[:-1].tolist() == [0, 0, 1, -1, 1, -1] and np.isnan(found[-1])
    assert np.signbit(found[:2]).tolist() == [False, True]


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def test_a_quotient_by_an_inverse_is_near_everywhere(library):
    """Divisors and quotients of all exponents, zero, infinity and no number."""
    x = np.concatenate([every_exponent(2), np.float32([0.0, -0.0, np.inf, np.nan])])
    for divisor in np.concatenate([every_exponent(1), np.float32([1, 0.0, np.inf, np.nan])]):
        found, exact = x.copy(), x.astype(np.float64) / np.float64(divisor)
        places = (ctypes.c_void_p(found.ctypes.data), ctypes.byref(ctypes.c_float(divisor)))
        library.divided(*places, ctypes.c_int64(x.size))
        nearest = exact.astype(np.float32)
        finite = np.isfinite(nearest) & np.isfinite(found)
        unit = np.spacing(np.abs(nearest[finite])).astype(np.float64)
        assert (np.abs(found[finite] - exact[finite]) / unit <= 2).all(), divisor
        others = ~finite & ~(np.abs(np.abs(exact) / np.finfo(np.float32).max - 1) < 1e-6)
        assert np.array_equal(found[others], nearest[others], equal_nan=True), divisor
