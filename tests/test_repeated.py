"""What is computed twice is named once, before the first line that reads it."""

from fractions import Fraction

from codegen.lowering.repeated import named_once
from codegen.program.steps import AddAt, Assign
from codegen.program.values import Apply, Clamp, Compare, Load, Number, Plus, Pullback, Times
from codegen.targets.torch.printer import Printer
from derive.language.notation.layout import Dim
from derive.language.symbols import Axis

N = (Dim(Axis("N")),)
x, y, z = (Load(name, dims=N) for name in "xyz")
k, one = Load("k"), Number(Fraction(1))
bounded, condition = Clamp(x, None, k, dims=N), Compare(x, ">=", Number(Fraction(-1)), dims=N)
root, difference = Apply("exp", x, dims=N), Plus(((x, False), (y, True)), dims=N)


def lines(*values, more=(), taken=()):
    steps = [Assign(name, value) for name, value in zip("abcd", values, strict=False)]
    named = named_once([*steps, *more], {"k"}, {"x", "y", "z", "k", *taken})
    return [Printer({}, ["k"], "x").step(step) for step in named]


def times(*factors):
    return Times(tuple((factor, False) for factor in factors), dims=N)


def test_it_stands_before_the_first_line_that_reads_it():
    assert lines(y, times(y, bounded), times(bounded, z)) == [
        "a = y",
        "x_clamped = x.clamp(max=k)",
        "b = y * x_clamped",
        "c = x_clamped * z",
    ]


def test_twice_in_one_line_is_twice():
    assert lines(times(root, root)) == ["exp_x = torch.exp(x)", "a = exp_x * exp_x"]


def test_a_condition_is_named_by_what_it_asks():
    assert lines(condition, condition)[0] == "x_from_minus_1 = x >= -1"
    between = Compare(difference, "==", y, dims=N)
    assert lines(between, between)[:2] == ["x_minus_y_is_y = x - y == y", "a = x_minus_y_is_y"]


def test_a_sum_of_two_is_named_by_its_terms():
    rest = Plus(((one, False), (x, True)), dims=N)
    assert lines(times(rest, y), times(rest, difference), difference) == [
        "one_minus_x = 1 - x",
        "a = one_minus_x * y",
        "x_minus_y = x - y",
        "b = one_minus_x * x_minus_y",
        "c = x_minus_y",
    ]


def test_the_longest_is_named_and_then_what_stands_in_it():
    outer = Apply("log", bounded, dims=N)
    assert lines(outer, times(outer, bounded)) == [
        "x_clamped = x.clamp(max=k)",
        "log_x_clamped = torch.log(x_clamped)",
        "a = log_x_clamped",
        "b = log_x_clamped * x_clamped",
    ]


def test_once_and_what_has_no_words_is_left():
    assert lines(bounded, root) == ["a = x.clamp(max=k)", "b = torch.exp(x)"]
    assert len(lines(times(x, y), times(x, y))) == 2


def test_numbers_are_left():
    number = Apply("exp", k)
    assert len(lines(times(number, x), times(number, y))) == 2


def test_a_name_that_is_taken_is_not_taken_twice():
    assert lines(root, root, taken=["exp_x"])[0] == "exp_x_here = torch.exp(x)"


def test_what_is_changed_in_place_is_computed_where_it_stands():
    changed = AddAt("x", one, 0, y, 1)
    assert len(lines(root, root, more=[changed])) == 3
    twice = [Assign("x", y), Assign("x", z)]
    assert len(lines(root, root, more=twice)) == 4


def test_a_derivative_that_a_target_has_a_function_for_is_not_counted():
    rest = Plus(((one, False), (x, True)), dims=N)
    passed = Pullback("sigmoid", y, None, x, times(x, rest), dims=N)
    assert lines(passed, times(rest, z)) == [
        "a = torch.ops.aten.sigmoid_backward(y, x)",
        "b = (1 - x) * z",
    ]
