"""What is added to a product is one operation of torch, and comes to the same."""

from fractions import Fraction

import pytest
import torch

from codegen.lowering.fused import fused
from codegen.program.arrays import Contract
from codegen.program.parts import values_in
from codegen.program.values import Apply, Load, MulAdd, Number, Plus, Power, Times
from codegen.targets.torch.printer import Printer
from derive.language.notation.layout import Dim
from derive.language.symbols import Axis

N, C = Axis("N"), Axis("C")
WHOLE, COLUMN = (Dim(N), Dim(C)), (Dim(N), Dim(C, one=True))
x, y, z = (Load(name, dims=WHOLE) for name in "xyz")
c, k, one = Load("c", dims=COLUMN), Load("k"), Number(Fraction(1))
TWO = Number(Fraction(2))


K = Axis("K")
a, b = Load("a", dims=(Dim(N), Dim(K))), Load("b", dims=(Dim(C), Dim(K)))
ab = Contract(a, b, ("K",), dims=WHOLE)


def times(*factors):
    return Times(tuple((f, False) for f in factors), dims=WHOLE)


def plus(*terms):
    signs = ((t[0], True) if isinstance(t, tuple) else (t, False) for t in terms)
    return Plus(tuple(signs), dims=WHOLE)


CASES = {
    "torch.addcmul(z, x, y)": plus(times(x, y), z),
    "torch.addcmul(z, c, y, value=-1)": plus(z, (times(c, y),)),
    "torch.addcmul(z, c * x, y)": plus(z, times(c, x, y)),
    "torch.addcmul(x * y, y, z)": plus(times(x, y), times(y, z)),
    "torch.addcmul(x - y, z, z)": plus(x, (y,), Power(z, Number(Fraction(2)), dims=WHOLE)),
    "torch.addcmul(torch.addcmul(z, x, y), c, x)": plus(z, times(x, y), times(c, x)),
    "torch.add(z, x, alpha=k)": plus(times(k, x), z),
    "torch.add(z, x, alpha=-k)": plus(z, (times(k, x),)),
    "torch.exp(torch.addcmul(z, x, y))": Apply("exp", plus(z, times(x, y)), dims=WHOLE),
    "x * y - z": plus(times(x, y), (z,)),
    "-x + y * z": plus((x,), times(y, z)),
    "x * y + 1": plus(times(x, y), one),
    "x + y / z": plus(x, Times(((y, False), (z, True)), dims=WHOLE)),
    "torch.addmm(x, a, b.mT)": plus(ab, x),
    "torch.addmm(x, a, b.mT, alpha=k)": plus(x, times(k, ab)),
    "torch.addmm(x, a, b.mT, alpha=-1)": plus(x, (ab,)),
    "torch.addcmul(a @ b.mT, c, x)": plus(ab, times(c, x)),
    "x + c * (a @ b.mT)": plus(x, times(c, ab)),
    "torch.add(z, x, alpha=-0.5)": plus(z, (Times(((x, False), (TWO, True)), dims=WHOLE),)),
    "z - x * y / 2": plus(z, (Times(((x, False), (y, False), (TWO, True)), dims=WHOLE),)),
    "x + k * k": plus(x, Times(((k, False), (k, False)))),
}


@pytest.mark.parametrize("expected", CASES)
def test_a_product_that_is_added_is_one_operation(expected):
    printer, value = Printer({}, ["k"], "x"), CASES[expected]
    written = fused(value, {"k"})
    assert printer.text(written) == expected
    shapes = {"x": (3, 4), "y": (3, 4), "z": (3, 4), "c": (3, 1), "a": (3, 5), "b": (4, 5)}
    names = {name: torch.randn(shape, dtype=torch.float64) for name, shape in shapes.items()}
    names |= {"torch": torch, "k": 0.7}
    both = [eval(printer.text(v), names) for v in (value, written)]
    torch.testing.assert_close(*both, rtol=1e-13, atol=1e-15)  # addcmul rounds once
    assert not any(isinstance(v, MulAdd) for v in values_in(value))
