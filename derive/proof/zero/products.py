"""Products of polynomials: large ones by python-flint where it is installed, else by SymPy."""

from __future__ import annotations

from functools import cache

from sympy import QQ
from sympy.polys.rings import PolyElement

LARGE = 5000  # products of two terms: below, converting takes longer than it saves


def product(a: PolyElement, b: PolyElement) -> PolyElement:
    """``a * b``, of polynomials of one ring over the rationals."""
    context = _context(len(a.ring.gens)) if len(a) * len(b) >= LARGE else None
    if context is None:
        return a * b
    fraction, polynomials = context
    left, right = (
        polynomials.from_dict(
            {m: fraction(int(c.numerator), int(c.denominator)) for m, c in p.items()}
        )
        for p in (a, b)
    )
    found = (left * right).to_dict()
    return a.ring.from_dict({m: QQ(int(c.numer()), int(c.denom())) for m, c in found.items()})


@cache
def _context(count: int):
    """flint's fraction, and its ring in so many symbols; None without python-flint."""
    try:
        from flint import fmpq, fmpq_mpoly_ctx
    except ImportError:
        return None
    return fmpq, fmpq_mpoly_ctx.get([f"x{i}" for i in range(count)], "lex")
