"""What a block computes has the block's name in front only where two names would collide."""

import pytest
from sympy import exp

from derive import Axis, Forward, Input, Sum, check
from derive.derivation import derive

N, C = Axis("N"), Axis("C")


class Centred(Forward):
    x = Input(N, C)
    mean = Sum(x, C) / C
    diff = x - mean
    y = diff * diff


class Grown(Forward):
    x = Input(N, C)
    inner = Centred(x)
    y = exp(inner)


def names(forward) -> list[str]:
    return [s.name for s in forward.definition.statements]


def test_the_only_one_has_its_own_name():
    class One(Forward):
        x = Input(N, C)
        h = Centred(x)
        y = h * x

    assert names(One) == ["mean", "diff", "h", "y"]


def test_two_blocks_keep_theirs_apart():
    class Two(Forward):
        x = Input(N, C)
        h = Centred(x)
        y = Centred(h)

    assert names(Two) == ["h_mean", "h_diff", "h", "y_mean", "y_diff", "y"]


def test_a_block_in_a_block():
    class Deep(Forward):
        x = Input(N, C)
        z = Grown(x)
        y = z * x

    assert names(Deep) == ["mean", "diff", "inner", "z", "y"]


def test_a_name_of_the_callers_is_in_the_way_also_if_it_comes_later():
    class Later(Forward):
        x = Input(N, C)
        h = Centred(x)
        mean = Sum(h, C)
        y = h * mean

    assert names(Later) == ["h_mean", "diff", "h", "mean", "y"]


def test_an_input_an_axis_a_gradient_and_the_module_are_in_the_way():
    class Held(Forward):
        x = Input(N, C)
        dd = x * x
        size = dd + x
        kept = size * dd
        y = kept * x

    K = Axis("kept")

    class Around(Forward):
        x = Input(N, C)
        d = Input(N, C)
        w = Input(K)
        size = Sum(w, K) * Sum(x * d, C)
        z = Held(x)
        y = z * size

    assert names(Around) == ["size", "z_dd", "z_size", "z_kept", "z", "y"]

    class Size(Forward):
        x = Input(N, C)
        z = Held(x)
        y = z * x

    assert names(Size) == ["dd", "z_size", "kept", "z", "y"]  # the function is called size


def test_a_formula_may_say_the_name_with_the_blocks_in_front():
    class Scaled(Forward):
        x = Input(N, C)
        h = Centred(x)
        y = exp(h)

    for diff in ("diff", "h_diff"):
        formula = f"2*(dy*y*{diff} - (dy*y*{diff}).mean(1, keepdim=True))"
        assert check(Scaled, formula).right
    assert check(Scaled, "dy*y", of="h").right


@pytest.mark.parametrize("forward", [Grown])
def test_it_is_derived_and_proved(forward):
    assert derive(forward).every_size
