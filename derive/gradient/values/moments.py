"""Sums of products in which the products of means cancel, taken about the means instead.

``Sum(x**2, N)/N - m**2`` has no digit left where the mean ``m`` is large; ``Sum((x - m)**2, N)/N``,
which is equal, keeps them, and so do its gradients. `equations` is the table;
``tests/test_moments.py`` evaluates both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, product

from sympy import Add, Dummy, Expr, Mul, Pow, S, binomial, exp, expand

from derive.language.divisors import divisors_in
from derive.language.identity import IdentityRule
from derive.language.nodes import Sum, along, summed, sums_in
from derive.language.operations import is_contraction, operations_in
from derive.language.symbols import Axis, Tensor, axes_of, is_number_or_size
from derive.language.traversal import everywhere
from derive.proof.zero.positive import is_positive

LARGEST = 80  # operations of a difference of sums that is multiplied out
Powers = tuple[int, ...]  # of each entry, in a product of them


def about_means(e: Expr, moments: MomentValues) -> Expr:
    """``e`` with every sum of products about the means where products of means cancel, and with
    means by exponentials as means by shares.
    """
    read = [t for t in e.atoms(Tensor) if t.at_home in moments.known]
    if not sums_in(e) and not any(sums_in(moments.known[t.at_home]) for t in read):
        return e

    def rewritten(node: Expr) -> Expr | None:
        results = (equation.rewrite(moments, node) for equation in equations)
        found = next((r for r in results if r is not None), None)
        if found is not None:
            moments.made[node] = found
        return None if found == node else found

    return everywhere(e, rewritten)


@dataclass(frozen=True)
class MomentValues:
    """The values of a forward that are made of sums.

    ``known`` are the values so far, ``size`` is that of an axis, ``name`` gives a mean a name.
    ``made`` is what was replaced by what: by itself, where that would be about the means, but
    nothing says that the weights do not come to 0, or it would be a matrix product no more.
    """

    known: Mapping[Tensor, Expr]
    size: Callable[[Axis], Expr]
    name: Callable[[Expr], Tensor]
    made: dict[Expr, Expr] = field(default_factory=dict)

    @property
    def sums(self) -> dict[Tensor, Expr]:
        """Values that are sums, products and powers of sums, expanded in sums."""
        found: dict[Tensor, Expr] = {}
        for tensor, e in self.known.items():
            whole = self.in_sums(e, found)
            if _sums(whole):
                found[tensor] = whole
        return found

    @property
    def names(self) -> dict[Expr, Tensor]:
        """Values by their definitions, as they are and expanded."""
        return {e: t for values in (self.known, self.sums) for t, e in [*values.items()][::-1]}

    def in_sums(self, e: Expr, sums: Mapping[Tensor, Expr] | None = None) -> Expr:
        """``e`` with values made of sums expanded, and each sum of a difference as a difference of
        sums.
        """
        sums = self.sums if sums is None else sums
        if isinstance(e, Tensor):
            return along(sums[e.at_home], e) if e.at_home in sums else e
        if isinstance(e, Sum) and isinstance(e.operand, Add):
            terms = (summed(term, e.axes, self.size) for term in e.operand.args)
            return Add(*(self.in_sums(term, sums) for term in terms))
        if isinstance(e, (Add, Mul)) or (isinstance(e, Pow) and e.exp.is_Integer):
            return e.func(*(self.in_sums(arg, sums) for arg in e.args))
        return e

    def is_exponential(self, e: Expr) -> bool:
        """Whether an exponential is a factor of ``e``."""
        factors = (
            self.known.get(f.at_home, f) if isinstance(f, Tensor) else f for f in Mul.make_args(e)
        )
        return any(f.has(exp) for f in factors)

    def total(self, weight: Expr, axes: Sequence[Axis]) -> Expr:
        """The total of a weight along ``axes``: 1 for shares of a whole."""
        value = self.known.get(weight.at_home) if isinstance(weight, Tensor) else None
        factors = Mul.make_args(weight if value is None else along(value, weight))
        shared = [self.in_sums(f) for f in factors if not axes_of(f) & {*axes}]
        whole = summed(Mul(*(f for f in factors if axes_of(f) & {*axes})), axes, self.size)
        whole *= Mul(*shared)
        return whole if is_number_or_size(whole) else summed(weight, axes, self.size)


@dataclass(frozen=True)
class Family:
    """Sums along the same axes of products of ``entries``, all with the same weight."""

    moments: MomentValues
    axes: tuple[Axis, ...]
    weight: Expr
    entries: tuple[Expr, ...]

    def powers(self, total: Sum) -> tuple[Expr, Powers] | None:
        """The sum's operand over the weight: its constant factor, and the power of each entry."""
        if total.axes != self.axes:
            return None
        rest, powers = total.operand / self.weight, []
        for entry in self.entries:
            powers.append(_times(rest, entry))
            rest /= entry ** powers[-1]
        return None if axes_of(rest) & {*self.axes} else (rest, tuple(powers))

    def about_means(self, e: Expr) -> Expr | None:
        """``e`` about the means, or as it is where that may not be; None where no product of means
        cancels.
        """
        known = {s: found for s in _sums(e) if (found := self.powers(s)) is not None}
        weights, total = Dummy("total"), self.moments.total(self.weight, self.axes)
        allowed = is_number_or_size(total) or is_positive(total) or total in divisors_in(e)
        total_is_sum = not is_number_or_size(total)
        weights = weights if total_is_sum else total
        means, made = [Dummy("mean") for _ in self.entries], {}
        sums = {s: Dummy("sum") for s in known} | ({total: weights} if total_is_sum else {})
        about = {
            s: rest * self._written_out(powers, means, weights, made)
            for s, (rest, powers) in known.items()
        }
        before = expand(e.xreplace(sums))
        after = expand(e.xreplace(about | ({total: weights} if total_is_sum else {})))
        if len(Add.make_args(after)) >= len(Add.make_args(before)):
            return None
        if not allowed or any(map(self._is_larger, known)):
            return e
        values = dict(zip(means, map(self._mean, self.entries), strict=True))
        centred = [self._named(a - m) for a, m in zip(self.entries, values.values(), strict=True)]
        for powers, dummy in made.items():
            factors = (d**k for d, k in zip(centred, powers, strict=True))
            values[dummy] = Sum.over(self.weight * Mul(*factors), self.axes)
        return after.xreplace(values | {weights: self._named(total)})

    def _is_larger(self, total: Sum) -> bool:
        """Whether a matrix product would be none about the means."""
        return is_contraction(total) and any(
            _times(total.operand / self.weight, entry)
            and not axes_of(Sum.over(self.weight * entry, self.axes)) <= axes_of(entry)
            for entry in self.entries
        )

    def _written_out(
        self, powers: Powers, means: Sequence[Dummy], total: Expr, made: dict[Powers, Dummy]
    ) -> Expr:
        """A sum of products in those about the means, which are ``made`` on the way."""
        whole = S.Zero
        for chosen in product(*(range(k + 1) for k in powers)):
            if sum(chosen) == 1:
                continue  # the sum about the mean is 0
            moment = made.setdefault(chosen, Dummy("moment")) if sum(chosen) else total
            whole += moment * Mul(
                *(
                    binomial(k, j) * m ** (k - j)
                    for k, j, m in zip(powers, chosen, means, strict=True)
                )
            )
        return whole

    def _mean(self, entry: Expr) -> Expr:
        total = self.moments.total(self.weight, self.axes)
        along_axes = Sum.over(self.weight * entry, self.axes)
        mean = self._named(along_axes / total)
        if isinstance(mean, Tensor):
            return mean
        return self.moments.name(self._named(along_axes) / self._named(total))

    def _named(self, e: Expr) -> Expr:
        return self.moments.names.get(e, e)


def _families(sums: Sequence[Sum], moments: MomentValues) -> Iterator[Family]:
    """Sum(w*a)*Sum(w*b) is to be subtracted from Sum(w*a*b): of these three follows w."""
    found: dict[tuple, dict[Expr, None]] = {}
    for whole in sums:
        alike = [s for s in sums if s.axes == whole.axes and s != whole]
        for one, other in combinations_with_replacement(alike, 2):
            weight = one.operand * other.operand / whole.operand
            entries = found.setdefault((whole.axes, weight), {})
            entries |= dict.fromkeys([one.operand / weight, other.operand / weight])
    for (axes, weight), entries in found.items():
        prime = [e for e in entries if not any(_times(e, o) for o in entries if o != e)]
        yield Family(moments, axes, weight, tuple(prime))


def _times(e: Expr, entry: Expr) -> int:
    """Multiplicity of ``entry`` as a factor of ``e``."""
    powers = e.as_powers_dict()
    factors = [(b, k) for b, k in entry.as_powers_dict().items() if not is_number_or_size(b)]
    times = [powers.get(b, S.Zero) / k for b, k in factors]
    whole = [int(k) for k in times if k.is_number and k > 0]
    return min(whole) if len(whole) == len(times) > 0 else 0


def _sums(e: Expr) -> list[Sum]:
    """The sums that ``e`` is made of by adding, multiplying and whole powers."""
    if isinstance(e, Sum):
        return [e]
    if isinstance(e, (Add, Mul)) or (isinstance(e, Pow) and e.exp.is_Integer):
        return list(dict.fromkeys(s for arg in e.args for s in _sums(arg)))
    return []


def _centred(moments: MomentValues, e: Expr) -> Expr | None:
    whole = moments.in_sums(e)
    if (
        not isinstance(e, (Add, Sum))
        or not isinstance(whole, Add)
        or operations_in(whole) > LARGEST
    ):
        return None
    for family in _families(_sums(whole), moments):
        terms = {term: moments.in_sums(term) for term in Add.make_args(e)}
        met = [t for t, e in terms.items() if any(map(family.powers, _sums(e)))]
        about = family.about_means(Add(*(terms[t] for t in met)))
        if about is not None and about == Add(*(terms[t] for t in met)):
            return e
        if about is not None:
            rest = Add(*(term for term in terms if term not in met))
            return (_centred(moments, rest) or rest) + about
    return None


def _share(moments: MomentValues, e: Expr) -> Expr | None:
    if not isinstance(e, Mul):
        return None
    powers = moments.in_sums(e).as_powers_dict()
    sums = [s for s, k in powers.items() if isinstance(s, Sum) and k.is_Integer]
    for total, whole in product(sums, repeat=2):
        rest = total.operand / whole.operand
        alike = total.axes == whole.axes and divisors_in(rest) <= divisors_in(total.operand)
        if powers[whole] > 0 or powers[total] < 0 or not alike or not is_contraction(total):
            continue
        if moments.is_exponential(whole.operand):
            share = whole.operand / moments.names.get(whole, whole)
            times = min(powers[total], -powers[whole])
            mean = total.on(rest * share) ** times
            left = Mul(*(b**k for b, k in powers.items())) * (whole / total) ** times
            return (_share(moments, left) or left) * mean
    return None


# The contract: ``rewrite(moments, e)`` gives the right side, ``e`` where that would be unsafe or
# dearer, or None where the left side is not met.
equations: tuple[IdentityRule, ...] = (
    IdentityRule(
        "Sum(w*a*b, N) - Sum(w*a, N)*Sum(w*b, N)/W = Sum(w*(a - m)*(b - k), N)",
        "W = Sum(w, N) is not 0, m = Sum(w*a, N)/W and k = Sum(w*b, N)/W; so too for more factors",
        _centred,
    ),
    IdentityRule(
        "Sum(e*v, N)/Sum(e, N) = Sum(p*v, N) with p = e/Sum(e, N)",
        "e is an exponential, and Sum(e*v, N) a matrix product: its gradients are named",
        _share,
    ),
)
