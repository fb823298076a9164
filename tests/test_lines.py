"""Lines of generated code: none is too long, and broken they say the same."""

import ast

import pytest

from codegen.targets.torch.lines import LONGEST, STEP, broken

LONG = {
    "plain names, as many a line as it holds": (
        "first_of_them, second_of_them, *others = _single(first_of_them, second_of_them, third)",
        """first_of_them, second_of_them, *others = _single(
        first_of_them, second_of_them, third,
    )""",
    ),
    "names that are set, where they are too many": (
        "first_of_the_names, second_of_the_names, third_of_the_names, _ = _single(x)",
        """(
        first_of_the_names, second_of_the_names,
        third_of_the_names, _,
    ) = _single(x)""",
    ),
    "a formula, whose products have no spaces": (
        "dx = first_of_the_factors*second_of_them**2*third_of_them*(dy - Sum(dy*y, C))/other",
        """dx = (
        first_of_the_factors*second_of_them**2*third_of_them
        *(dy - Sum(dy*y, C))/other
    )""",
    ),
    "a sum, a term a line": (
        "y = first_term_of_the_sum * a + second_term_of_the_sum * b - third_term_of_the_sum * c\n",
        """y = (
        first_term_of_the_sum * a
        + second_term_of_the_sum * b
        - third_term_of_the_sum * c
    )""",
    ),
    "the arguments of the longest call": (
        "y = dy * torch.addcmul(first_argument_of_it, second_argument_of_it, third_one, value=-1)",
        """y = dy * torch.addcmul(
        first_argument_of_it, second_argument_of_it, third_one,
        value=-1,
    )""",
    ),
    "a call and what is done with it": (
        "y.scatter_add_(1, labels.unsqueeze(1), torch.where(kept, dloss * first, 0).unsqueeze(1))",
        """y.scatter_add_(
        1,
        labels.unsqueeze(1),
        torch.where(kept, dloss * first, 0).unsqueeze(1),
    )""",
    ),
    "a number that decides": (
        'y = (first_of_the_branches + 1 if alpha >= 0 else torch.einsum("nc,ck->nk", left, right))',
        """y = (
        first_of_the_branches + 1
        if alpha >= 0
        else torch.einsum("nc,ck->nk", left, right)
    )""",
    ),
    "a product, a factor a line": (
        "y = first_factor_of_the_product * second_factor_of_the_product / third_factor_of_it",
        """y = (
        first_factor_of_the_product
        * second_factor_of_the_product
        / third_factor_of_it
    )""",
    ),
}


@pytest.mark.parametrize("what", LONG)
def test_a_long_line_is_broken_where_a_person_would(what):
    line, expected = LONG[what]
    line = line.rstrip()
    assert broken(line, longest=65) == expected
    assert ast.dump(ast.parse(expected)) == ast.dump(ast.parse(line))


def test_a_line_that_fits_stays():
    line = "y = " + "x" * (LONGEST - len(STEP) - 4)
    assert broken(line) == line


def test_what_cannot_be_broken_stays():
    line = "y = " + "x" * LONGEST
    assert broken(line) == line


def test_every_line_says_the_same_however_narrow():
    lines = [line for line, _ in LONG.values()]
    for line, longest in ((line.rstrip(), n) for line in lines for n in range(20, 100)):
        text = broken(line, longest=longest)
        assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(line)), text
