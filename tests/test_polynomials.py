"""Products of polynomials are the same by python-flint and by SymPy."""

import random
from fractions import Fraction

import pytest
from sympy import QQ, ring, symbols

from derive.proof.zero import products
from derive.proof.zero.fractions import Fractions, TermBudget

numbers = random.Random(0)


def polynomial(of, terms):
    powers = {tuple(numbers.randrange(4) for _ in of.gens) for _ in range(terms)}
    some = (Fraction(numbers.randint(-(10**20), 10**20), numbers.randint(1, 9)) for _ in powers)
    return of.from_dict(
        {p: QQ(f.numerator, f.denominator) for p, f in zip(powers, some, strict=True)}
    )


@pytest.mark.parametrize("count", [1, 3, 7])
def test_a_large_product_is_that_of_sympy(count):
    pytest.importorskip("flint")
    of, *_ = ring(symbols(f"a:{count}"), QQ)
    for terms in (1, 40, 300):
        a, b = polynomial(of, terms), polynomial(of, 300)
        found = products.product(a, b)
        assert found == a * b and found.ring is of
        assert {type(c) for c in found.values()} <= {type(QQ(1, 2))}
    a = sum(of.gens, of.one) ** 60 if count == 1 else sum(of.gens, of.one) ** 4
    assert products.product(a, -a) + a * a == 0


def test_flint_multiplies_what_is_large(monkeypatch):
    pytest.importorskip("flint")
    asked, known = [], products._context
    monkeypatch.setattr(products, "_context", lambda count: asked.append(count) or known(count))
    x, y, z = symbols("x y z")
    for e, is_large in (
        ((x + y) ** 2 * (x + z), False),
        ((x + y + z + 1) ** 8 * (x + 2 * y) ** 40, True),
    ):
        asked.clear()
        of_sympy = e.expand()
        found = Fractions([x, y, z], TermBudget()).of(e).numerator
        assert found.as_expr() == of_sympy and bool(asked) == is_large


@pytest.mark.parametrize("is_there", [True, False])
def test_it_runs_with_and_without(is_there, monkeypatch):
    if is_there:
        pytest.importorskip("flint")
    else:
        monkeypatch.setattr(products, "_context", lambda count: None)
    x, y = symbols("x y")
    short = (x + 2 * y) * (x - y)
    assert Fractions([x, y], TermBudget()).of(short).numerator.as_expr() == short.expand()
    e = (x + 2 * y) ** 80 * (x - y) ** 80 - ((x + 2 * y) * (x - y)) ** 80
    assert Fractions([x, y], TermBudget()).of(e).numerator == 0
