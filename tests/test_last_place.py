"""What the comparison allows for autograd's own rounding, and that it allows no more."""

from functools import cache

import mpmath
import pytest
import torch

from codegen.driver import gate as driver
from codegen.driver.lean import Runs
from codegen.targets.lean.outside import outside_of
from codegen.targets.lean.target import written
from codegen.targets.torch import last_place
from codegen.targets.torch.last_place import LastPlace, rounding_of
from codegen.targets.torch.oracle import Difference
from derive import derive, forward_from
from derive.language.errors import UnprovedError

# The rows of s add up to 0: of dx and dw rounding leaves much, the bend of tanh little.
CANCELLING = """
from sympy import Rational, tanh
from derive import Axis, Flatten, Forward, Input, Scalar, Sum

N, C, M = Axis("N"), Axis("C"), Axis("M")


class Cancelling(Forward):
    x = Input(C, N)
    w = Input(N)
    alpha = Scalar(0.5)
    u = Flatten(x, C, N, into=M)
    v = w - Sum(w, N) / N
    h = tanh(Sum(v**2, N) / (N + 1) / 120)
    s = v * (h + alpha) ** Rational(-1, 2)
    t = tanh(s * (Sum(u, M) / M) / 120)
"""


# 1 - tanh(u)**2 has hardly a digit left where numbers are drawn large.
SATURATED = """
from sympy import tanh
from derive import Axis, Forward, Input, Sum

C = Axis("C")


class Saturated(Forward):
    x = Input(C)
    h = 3**x
    y = tanh(Sum(h, C))
"""

# The rows of t add up to hardly anything: with ones upstream rounding leaves little of dr.
ADDED_UP = """
from sympy import Rational, tanh
from derive import Axis, Forward, Input, Scalar, Sum

C = Axis("C")


class AddedUp(Forward):
    w = Input(C)
    alpha = Scalar(0.1)
    v = w/27 - C
    t = tanh((v - Sum(v, C)/C)/40)
    r = Sum(t**2, C)
    p = t*(r + alpha)**Rational(-1, 2)
"""


# The statement loses digits in 1 - tanh(u), which the code computes otherwise.
LOST = """
from sympy import log, tanh
from derive import Axis, Forward, Input

C = Axis("C")


class Lost(Forward):
    x = Input(C)
    y = log(1 - tanh(tanh(x) + 9))
"""


def compared(forward, program, text):
    return driver.compared(forward, program, text, Runs())


@pytest.fixture(scope="module")
def written_of(tmp_path_factory):
    """A forward, its program and its text, by name; derived once."""
    own = {}
    texts = {"cancelling": CANCELLING, "saturated": SATURATED, "added_up": ADDED_UP}
    texts["lost"] = LOST
    for name, text in texts.items():
        own[name] = tmp_path_factory.mktemp("last_place") / f"{name}.py"
        own[name].write_text(text)

    @cache
    def found(name):
        forward = forward_from(own.get(name, name))
        pair, text = written(forward, outside_of(forward.definition), derive(forward))
        return forward, pair.program, text

    return found


@pytest.mark.parametrize("name", ["cancelling", "lost"])
def test_what_autograd_finds_no_better_is_not_refused(written_of, name):
    assert compared(*written_of(name)) < 1e-12


def test_a_gradient_that_one_upstream_gradient_tells_may_be_lost_in_the_rounding_of_another(
    written_of,
):
    assert compared(*written_of("added_up")) < 1e-12


def test_it_is_the_rounding_that_is_allowed(written_of, monkeypatch):
    monkeypatch.setattr(last_place, "FACTOR", 0.0)
    with pytest.raises(UnprovedError, match="differs from autograd"):
        compared(*written_of("lost"))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("batch_norm", " dx = gain", " dx = (1 + 1e-8) * gain"),
        ("batch_norm", " dx = gain", " dx = (1 + 1e-8 * (xhat > 1).to(dy)) * gain"),  # at some
        ("cancelling", " dw = dv", " dw = (1 + 1e-8) * dv"),
        ("cancelling", " sum_in_dv = ", " sum_in_dv = (1 + 1e-8) * "),
        ("added_up", " dw = ", " dw = (1 + 1e-8) * "),
        ("saturated", " dx = ", " dx = (1 + 1e-9) * "),  # of one draw, which is not the first
    ],
)
def test_a_gradient_wrong_by_little_is_refused(written_of, name, old, new):
    forward, program, text = written_of(name)
    assert old in text
    with pytest.raises(UnprovedError, match="differs from autograd"):
        compared(forward, program, text.replace(old, new))


def test_what_rounding_could_excuse_altogether_it_does_not(written_of, monkeypatch):
    """As where a choice hangs on the last place, and the gradient jumps with it."""
    monkeypatch.setattr(last_place, "FACTOR", 1e14)
    forward, program, text = written_of("batch_norm")
    with pytest.raises(UnprovedError, match="differs from autograd"):
        for old in (" dx = gain", " dx = ddiff"):
            text = text.replace(old, old.replace("= ", "= (1 + 1e-8) * "))
        compared(forward, program, text)


def test_what_is_farther_than_rounding_is_wrong_however_much_that_is():
    far, near = (Difference("dx", distance, rounding=1e-3) for distance in (1.0, 1e-4))
    assert far.decides and far.counted == pytest.approx(0.999)
    assert not near.decides and near.counted == 1e-4


def rounding(function, *arguments):
    leaves = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arguments]

    def found():
        value = function(*leaves)
        gradients = torch.autograd.grad(value.sum(), leaves)
        return {"value": value.detach(), **{f"d{i}": g for i, g in enumerate(gradients)}}

    return rounding_of(found, found())


def test_digits_lost_inside_are_seen_where_moving_the_input_shows_nothing():
    found = rounding(torch.tanh, [9.0, 0.5])
    assert 1e-17 < found["value"] < 4e-15
    gradient = 1 - torch.tanh(torch.tensor(9.0, dtype=torch.float64)) ** 2
    assert abs(gradient.item() - float(1 / mpmath.cosh(9) ** 2)) < found["d0"] < 4e-15


def test_terms_that_cancel_in_a_sum():
    assert 1e-9 < rounding(torch.sum, [1e8, 0.1, -1e8])["value"] < 1e-6


def test_what_is_moved_is_not_moved_back_by_a_change_of_sign():
    x = torch.tensor([0.3, 0.7, -0.2], dtype=torch.float64)
    for sample in range(4):
        with LastPlace(sample):
            moved = x.exp()
            turned = (-moved, -1 * moved)
        assert not torch.equal(moved, x.exp()) and all(torch.equal(moved, -t) for t in turned)


def test_what_is_equal_stays_equal():
    x = torch.tensor([0.3, 0.7, 0.7, -0.2], dtype=torch.float64)
    for sample in range(4):
        with LastPlace(sample):
            assert (3 * x == (x * 3).max()).tolist() == [False, True, True, False]
            assert (torch.arange(3.0) + 1 == torch.tensor([1.0, 2.0, 3.0])).all()
