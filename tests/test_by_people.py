"""Well-known functions as people write them come out right, proved, and as cheap as in their usual
spelling. The sample has every tenth; ``make test-thorough`` has all.
"""

import pytest
from forwards import HEAD
from respelling.at_extremes import function_of, wrong_at
from respelling.by_people import SPELLED, body_of

from derive import forward_from
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.proof.proving.proof import prove

MORE = (
    "from sympy import Max as Larger, Min as Smaller, acosh, asinh, atanh, cosh, erf, erfc, sinh\n"
)
SAMPLE = 10
NAMED = "an exponential is read by its name, which no row sees through"
ANOTHER = "another program: sums are taken in another order, or terms of which none is shared"
PIECES = "choices by Min, Max and Abs stay what they are written as"
CANCELS = "a difference of large numbers, of which few digits are left"
BEYOND = "what is read overflows before the gradient does"

# Why a spelling is dearer, or not as right at the extremes. These may only become fewer.
DEARER = {
    "mish by exponentials": NAMED,
    **dict.fromkeys(
        (
            "elu by its sides",
            "elu by the smaller inside",
            "huber by its smaller",
            "leaky relu by its larger",
            "leaky relu by its sides",
            "hard tanh by magnitudes",
        ),
        PIECES,
    ),
    **dict.fromkeys(
        (
            "sigmoid's slope by sech",
            "softmax by differences",
            "log softmax by differences",
            "cross entropy taken apart",
            "nll of what is picked",
            "nll, taken apart",
            "weighted mean of softmax",
            "rms norm of the sum",
            "power by exp and log",
            "entropy of logits",
            "cross entropy of a quotient",
            "variance by products",
            "layer norm by a root",
        ),
        ANOTHER,
    ),
}
OFF = {
    **dict.fromkeys(
        (
            "asinh by another log",
            "hard tanh by magnitudes",
            "softsign in pieces",
            "entropy of logits",
        ),
        CANCELS,
    ),
    **dict.fromkeys(("acosh by log", "power by exp and log", "softmax by differences"), BEYOND),
}
NOT_EVERY_SIZE = {"skewness by products": "a root of a power, in the usual spelling too"}


def proved(folder, name, written):
    """The forward, and what was proved of it."""
    file = folder / f"{name}.py"
    file.write_text(f"{HEAD}{MORE}\n\nclass Own(Forward):\n{body_of(written)}")
    forward = forward_from(file)
    return forward, prove(close(derive_chain(forward.definition)))


def up_to_operations(found):
    risk, cost = found.closed_form.preference
    return risk, cost.moved, cost.saved, cost.lines, cost.reductions


@pytest.mark.parametrize(
    "name, usual, other",
    [
        pytest.param(*row, id=row[0], marks=[pytest.mark.thorough] if i % SAMPLE else [])
        for i, row in enumerate(SPELLED)
    ],
)
def test_a_function_comes_out_as_good_in_another_spelling(name, usual, other, tmp_path):
    (one, of_one), (two, of_two) = (
        proved(tmp_path, n, w) for n, w in (("usual", usual), ("other", other))
    )
    assert of_two.every_size == (name not in NOT_EVERY_SIZE)
    cost, own = up_to_operations(of_one), up_to_operations(of_two)
    assert (own > cost) == (name in DEARER), f"{cost}, {own}"
    functions = [
        function_of(*pair, tmp_path, n)
        for *pair, n in ((one, of_one, "usual"), (two, of_two, "other"))
    ]
    names = {t.name for f in (one, two) for t in f.definition.arguments}
    off = wrong_at(*functions, names)
    assert bool(off) == (name in OFF), off


def test_what_is_excepted_is_in_the_table():
    assert {*DEARER, *OFF, *NOT_EVERY_SIZE} <= {name for name, *_ in SPELLED}
