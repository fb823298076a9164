"""Powers with an exponent that is not written as a number, where the base is 0.

The derivatives of ``u**p`` are made of ``u**(p - 1)`` and ``u**p*log(u)``. The second is 0 at u = 0
for any p above 0, and a backward would have ``0*log(0)``, which is NaN; so it would have 0/0 where
the first is written as ``u**p/u``. Of magnitudes both have the factor sign(u), and the next
derivative that twice: it is 1 in the mathematics, of ``|u|**2`` at 0 too. The rules, for such
powers of the forward in the lines of its derivatives:

| written | computed | why |
|---|---|---|
| log(u) | log(u), and 0 where u is 0 | u**p beside it is 0 there, as torch's derivative has it |
| u**p/u**k, u not above 0 | u**(p - k) | the same where u is not 0 |
| sign(u)**2*abs(u)**q | abs(u)**q | the same where u is not 0 or q not 0 |

A choice has such powers where it asks for them alone. What a forward itself has, a logarithm or a
sign that is a square in its first derivatives, is left as it is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sympy import Abs, Eq, Expr, Mul, Piecewise, Pow, S, log, sign

from derive.gradient.values.naming import written_out
from derive.language.symbols import Tensor, tensors_in

Pairs = Sequence[tuple[Tensor, Expr]]


def with_powers_at_zero(pairs: Pairs, forward: Pairs, first: Pairs) -> list:
    """The lines ``pairs`` of derivatives of a ``forward``, finite where such a power is; ``first``
    are its first derivatives.
    """
    rules = _Rules(dict(pairs), dict(forward), [e for _, e in first])
    if not rules.bases:
        return [*pairs]
    return [(t, rules.applied(e)) for t, e in pairs]


class _Rules:
    def __init__(
        self, lines: Mapping[Tensor, Expr], forward: Mapping[Tensor, Expr], first: Iterable[Expr]
    ):
        self.own: dict[str, Tensor] = {t.name: t for t in forward}
        self.made = {t.name: e for t, e in (forward | lines).items() if _is_plain(e)}
        written = [self.full(e) for e in forward.values()]
        read = [
            e.replace(lambda part: isinstance(part, Piecewise), lambda *_: S.Zero) for e in written
        ]
        self.bases = {p.base for e in read for p in e.atoms(Pow) if _is_raised(p)}
        own = {self.full(part.args[0]) for e in written for part in e.atoms(log)}
        self.logarithms = self.bases - own
        known = [*written, *map(self.full, first)]  # in these autograd has 0, too
        self.signs = not any(_is_square_of_sign(p) for e in known for p in e.atoms(Pow))

    def full(self, e: Expr) -> Expr:
        """``e`` without names of powers, magnitudes and signs; saved values count as inputs."""
        e = written_out(e, self.made)
        return e.xreplace({t: self.own.setdefault(t.name, t) for t in tensors_in(e)})

    def applied(self, e: Expr) -> Expr:
        e = e.replace(lambda part: isinstance(part, log), self._logarithm)
        return e.replace(lambda part: isinstance(part, Mul), self._product)

    def _logarithm(self, e: Expr) -> Expr:
        (u,) = e.args
        if self.full(u) not in self.logarithms:
            return e
        return log(Piecewise((1, Eq(u, 0)), (u, True)))

    def _product(self, e: Expr) -> Expr:
        factors = [(f, *self.full(f).as_base_exp()) for f in e.args]
        found = dict(enumerate(e.args))
        for i, (_, u, p) in enumerate(factors):
            for k, (divisor, base, n) in enumerate(factors):
                if i == k or i not in found or k not in found:
                    continue
                if self.signs and isinstance(base, sign) and n == 2 and u == Abs(*base.args):
                    del found[k]
                elif base == u and n.is_Integer and n < 0 and _is_raised(Pow(u, p)):
                    del found[k]
                    found[i] = divisor.as_base_exp()[0] ** (p + n)
        return Mul(*found.values()) if [*found.values()] != [*e.args] else e


def _is_plain(e: Expr) -> bool:
    return isinstance(e, (Abs, sign)) or (isinstance(e, Pow) and not e.exp.is_number)


def _is_raised(e: Pow) -> bool:
    """True if it is a power that may have base 0, with an unknown exponent."""
    return not (e.exp.is_number or e.base.is_positive or e.base.is_number)


def _is_square_of_sign(e: Pow) -> bool:
    return isinstance(e.base, sign) and e.exp.is_even is not False
