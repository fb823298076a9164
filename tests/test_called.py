"""A value that nobody named is called what it is, everywhere: in the steps, in the formulas and in
the lines of a module.
"""

import math
import random
import re

import pytest
from sympy import Abs, Eq, Integer, Piecewise, Rational, erf, exp, log, sqrt, tanh

from codegen.targets.lean.outside import outside_of
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.target import lean_program, module_text
from derive import Axis, Forward, Input, Kept, Label, Max, OneHot, Outputs, Sum
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.language.called import LONGEST_NAME, names_of, words_of
from derive.language.notation.library import list_forwards
from derive.language.symbols import Tensor
from derive.proof.proving.proved import Proved

N, C, M = Axis("N"), Axis("C"), Axis("M")
x, gain, dy = Tensor("x", (N, C)), Tensor("gain", (C,)), Tensor("dy", (N, C), role="adjoint")
rms, met = Tensor("rms", (N,), role="statement"), Tensor("one_minus_met", (N,), role="statement")
gamma, labels = Tensor("gamma", (), role="scalar"), Tensor("labels", (N,), role="label")

NAMED = {
    gain * dy: "gain_times_dy",
    x / rms: "x_over_rms",
    1 - x: "one_minus_x",
    1 + exp(-x): "one_plus_exp_minus_x",
    1 / (1 + exp(-x)): "sigmoid_x",
    log(1 + exp(-Abs(x))): "softplus_minus_abs_x",
    Sum.over(x, [N]) / N: "mean_x",
    Sum.over(x**2, [C]): "sum_x_squared",
    Sum.over(dy * x, [N]): "sum_dy_x",
    Sum.over(x * OneHot(labels, C), [C]): "x_at_labels",
    Max(x, C): "max_x",
    1 / sqrt(rms): "one_over_sqrt_rms",
    met**gamma: "one_minus_met_to_gamma",
    exp(met): "exp_of_one_minus_met",
    x - met: None,
    x - Tensor("x", (M, C), (N, C)): "x_minus_other_x",
    Piecewise((1, Eq(rms, 0)), (0, True)): "rms_is_0",
    Piecewise((x, x > 0), (0, True)): "relu_x",
    1 + erf(sqrt(2) * x / 2): "one_plus_erf_scaled_x",
    x * rms * gain * dy: None,
    x: None,
    Integer(2): None,
    log(2) * x: "scaled_x",
}


@pytest.mark.parametrize("e", NAMED, ids=str)
def test_a_value_is_called_what_it_is(e):
    assert words_of(e) == NAMED[e]


def test_sums_of_the_same_along_other_axes_have_other_names():
    """And what makes no short name says where it stands."""
    assert [*names_of(Sum.over(x, [C]), "y")] == ["sum_x", "sum_x_along_C", "sum_in_y"]
    assert [*names_of(x * rms * gain * dy, "y")] == ["product_in_y"]


# -- names, read back ---------------------------------------------------------------

FUNCTIONS = {
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "tanh": math.tanh,
    "abs": abs,
    "square": lambda v: v * v,
    "softplus": lambda v: math.log1p(math.exp(v)),
    "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
}
NUMBERS = {word: i for i, word in enumerate(("zero", "one", "two", "three", "four"))}
BETWEEN = ("plus", "minus", "times", "over")


class Read:
    """What a name says, at ``values`` of the names in it."""

    def __init__(self, name, values):
        self.words, self.values = name.split("_"), values

    def next(self, *words):
        return self.words.pop(0) if self.words and self.words[0] in words else None

    def total(self):
        found = -self.product() if self.next("minus") else self.product()
        while (sign := self.next("plus", "minus")) is not None:
            found += self.product() if sign == "plus" else -self.product()
        return found

    def product(self):
        found = self.factor()
        while (sign := self.next("times", "over")) is not None:
            found = found * self.factor() if sign == "times" else found / self.factor()
        return found

    def factor(self):
        word = self.words.pop(0)
        if word in ("twice", "half"):
            return self.factor() * (2 if word == "twice" else 0.5)
        if word in FUNCTIONS:
            return FUNCTIONS[word](self.total() if self.next("of") else self.operand())
        found = NUMBERS.get(word, self.values.get(word))
        found = float(word) if found is None else found
        if self.next("to"):
            return found ** float(self.words.pop(0))
        return (
            found ** {"squared": 2, "cubed": 3}[post]
            if (post := self.next("squared", "cubed"))
            else found
        )

    def operand(self):
        """Names side by side are multiplied."""
        sign = -1 if self.next("minus") else 1
        found = self.factor()
        while self.words and self.words[0] not in BETWEEN:
            found *= self.factor()
        return sign * found


LETTERS = [Tensor(letter, (N,), positive=True) for letter in "abc"]


def written(some, depth):
    """A random expression of three values."""
    if depth == 0:
        return some.choice([*LETTERS, Integer(1), Integer(2)])
    one, other = (written(some, some.randrange(depth)) for _ in range(2))
    ways = [one + other, one - other, one * other, one / other, one**2, one**3, exp(one), -one]
    ways += [log(1 + exp(one)), tanh(one), sqrt(other), 1 / (1 + exp(-one)), other * Rational(1, 2)]
    return some.choice(ways)


def test_a_name_says_what_the_value_is():
    some = random.Random(0)
    values = {"a": 0.7, "b": 0.4, "c": 1.3}
    said = set()
    while len(said) < 400:
        e = written(some, some.randint(1, 3))
        name = words_of(e)
        if name is None or "scaled" in name:
            continue
        expected = e.subs({t: values[t.name] for t in LETTERS})
        if not expected.is_real:  # the root of a negative number
            continue
        reader = Read(name, values)
        assert reader.total() == pytest.approx(float(expected)), (e, name)
        assert not reader.words and len(name) <= LONGEST_NAME
        said.add(e)


# -- the gallery --------------------------------------------------------------------

FAST = [
    "focal",
    "rms_norm",
    "triplet",
    "masked_softmax",
    "focal_tversky",
    "cosine_embedding",
    "dpo",
]
BEFORE = "minus|plus|is|not|from|to|above|below"  # a number
SAYS_NOTHING = re.compile(
    rf"\w+_(term|again|scaled|unscaled|here|part)|(\w+_)?(?!({BEFORE})_)[a-z0-9]+_\d"
)
REST = {f.definition.snake for f in list_forwards()} - {*FAST}


@pytest.mark.parametrize(
    "name", [*FAST, *(pytest.param(n, marks=pytest.mark.thorough) for n in sorted(REST))]
)
def test_no_name_says_nothing(name):
    """In the lines and formulas of a lean module, and in what show prints."""
    (forward,) = (f for f in list_forwards() if f.definition.snake == name)
    outside = outside_of(forward.definition)
    proved = Proved(close(derive_chain(outside.inside)), (), ())
    text = module_text(Pair(lean_program(forward, proved), outside))
    definition = outside.inside
    own = {t.name for t in definition.arguments} | definition.by_name.keys()
    own |= {f"d{n}" for n in own}
    assert {n for n in re.findall(r"\b[a-z]\w*", text) if SAYS_NOTHING.fullmatch(n)} <= own
    shown = [tensor.name for tensor, _ in proved.closed_form.shown]
    assert len({*shown}) == len(shown)
    parts = [part.tensor.name for part in proved.closed_form.relations.parts]
    assert not {n for n in (*shown, *parts) if SAYS_NOTHING.fullmatch(n)} - own


# -- names of the user's ----------------------------------------------------------------


class Shares(Forward):
    """The share is read for one line alone, by which it is no value of the forward."""

    s = Input(N, C)
    v = Input(C, M)
    lse = log(Sum(exp(s), C))
    p = exp(s - lse)
    o = Sum(p * v, C)
    outputs = Outputs(o, lse)


class Attends(Forward):
    """The exponent is a part of the forward, which is saved."""

    q = Input(N, M)
    k = Input(C, M)
    v = Input(C, M)
    s = Sum(q * k, M)
    lse = log(Sum(exp(s), C))
    p = exp(s - lse)
    o = Sum(p * v, C)
    outputs = Outputs(o, lse)


class Squashed(Forward):
    """What the function is taken of is cheaper to compute again than to save."""

    s = Input(N, C)
    t = Input(N, C)
    theta = s * t + t
    o = tanh(theta / 2)
    more = o + theta**3


class Counted(Forward):
    """Only another name for what the labels say."""

    s = Input(N, C)
    labels = Label(N, ignored=-100)
    counts = Kept(labels)
    lse = log(Sum(exp(s), C))
    o = Sum(counts * lse + counts * lse**2, N) / Sum(counts, N)


@pytest.mark.parametrize(
    ("forward", "line", "nowhere"),
    [
        (Shares, "p = exp(-lse + s)", "exp"),
        (Attends, "p = exp(s_minus_lse_inner)", "exp"),
        (Squashed, "theta = s*t + t", "(s*t"),
        (Counted, "counts = Piecewise((1, Ne(labels_kept, 0)), (0, True))", "is_not"),
    ],
    ids=["shares", "attends", "squashed", "counted"],
)
def test_a_value_that_the_user_named_has_that_name(forward, line, nowhere):
    """Where the backward computes it, and everywhere else."""
    form = close(derive_chain(forward.definition))
    first, *rest = str(form).splitlines()
    assert first == line and nowhere not in "\n".join(rest)
    assert [*form.again.values()] == [forward.definition.by_name[first.split()[0]].tensor]
