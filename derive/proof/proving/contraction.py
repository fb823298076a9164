"""Is a difference of indexed sums zero for every size? Sums in a normal form of their own.

Products are multiplied out, what does not vary moves out of its sum, Kronecker deltas are
contracted, bound indices numbered. Nothing of the chain, its rules or the identities of the closed
form is used. Where that does not bring a difference to zero, the answer is "not shown", never
"wrong".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import sympy
from sympy import (
    Add,
    Basic,
    Dummy,
    Eq,
    Expr,
    Gt,
    Indexed,
    Integer,
    KroneckerDelta,
    Mul,
    Ne,
    Piecewise,
    Pow,
    Symbol,
    exp,
    expand,
    expand_power_exp,
    log,
    oo,
)

from derive.language.symbols import MINUS_INFINITY
from derive.proof.proving.index_nodes import IndexOfLargest, LargestAlong, Zero
from derive.proof.proving.numbering import numbered
from derive.proof.proving.products_between import one_step
from derive.proof.zero.exact import is_zero
from derive.proof.zero.positive import log_of_number, split_log

LARGEST = 12000  # nodes of an expression


def vanishes(e: Expr) -> bool:
    """Whether ``e`` is zero for every size; False also where that could not be shown."""
    e = normal_form(e).replace(lambda node: isinstance(node, Mul), _without_own_indicators)
    e = e.replace(lambda node: isinstance(node, Mul), _without_empty_segments)
    return _is_zero(e) or _vanishes_under_sums(e)


def _is_zero(e: Expr) -> bool:
    """Whether ``e`` is zero: where the two indices of a delta in a constant exponent are the same,
    and where they are not.
    """
    if is_zero(e):
        return True
    bound = {index for total in e.atoms(sympy.Sum) for index in total.variables}
    deltas = {delta for node in e.atoms(exp) for delta in node.atoms(KroneckerDelta)}
    fixed = (d for d in deltas if not d.free_symbols & bound and any(i.is_Symbol for i in d.args))
    delta = min(fixed, key=str, default=None)
    if delta is None:
        return False
    one, other = sorted(delta.args, key=lambda index: not index.is_Symbol)
    apart, same = (e.xreplace({delta: Integer(k)}) for k in (0, 1))
    return all(_is_zero(normal_form(part)) for part in (apart, same.xreplace({one: other})))


def _without_own_indicators(whole: Mul) -> Expr:
    """u*[u is not 0] = u."""
    powers = whole.as_powers_dict()
    known = {
        _indicator(condition)
        for base, power in powers.items()
        if isinstance(base, (Symbol, Indexed)) and power.is_positive
        for condition in (Ne(base, 0), Ne(0, base))
    }
    return Mul(*(f for f in whole.args if f not in known))


def _without_empty_segments(whole: Mul) -> Mul:
    """sum(delta*a)*n*Piecewise((k, Eq(n, 0)), (b/n, True)) = sum(delta*a)*b for n = sum(delta):
    where n is 0, so is each delta.
    """
    for choice in (f for f in whole.args if isinstance(f, Piecewise) and len(f.args) == 2):
        (_, condition), (other, _) = choice.args
        n = condition.args[0] if isinstance(condition, Eq) and condition.rhs == 0 else None
        if not isinstance(n, sympy.Sum) or not isinstance(n.function, KroneckerDelta):
            continue
        rest, value = whole / choice / n, n * other
        sums = (f for f in Mul.make_args(rest) if isinstance(f, sympy.Sum) and f.limits == n.limits)
        if any(n.function in Mul.make_args(f.function) for f in sums) and not value.has(n):
            return rest * value
    return whole


def _vanishes_under_sums(e: Expr) -> bool:
    """Whether the summand is zero once sums over the same indices are one sum, as in sum(f) -
    sum(f**2) - sum(f*(1 - f)).
    """
    totals: dict[tuple, Expr] = {}
    for term in Add.make_args(e):
        factors = Mul.make_args(term)
        sums = [f for f in factors if isinstance(f, sympy.Sum)]
        limits = sums[0].limits if len(sums) == 1 else ()
        inside = Mul(*(f for f in factors if f not in sums), sums[0].function) if limits else term
        totals[limits] = totals.get(limits, Integer(0)) + inside
    return any(totals) and all(map(_is_zero, totals.values()))


@lru_cache(maxsize=8192)
def normal_form(e: Expr) -> Expr:
    """Sums multiplied out and contracted, with bound indices numbered."""
    if not e.args or _nodes(e) > LARGEST:
        return e
    if isinstance(e, Indexed):
        return e.func(e.base, *map(normal_form, e.indices))
    if isinstance(e, sympy.Sum):
        return _summed(
            normal_form(e.function),
            [limit[0] for limit in e.limits],
            {v: b for v, _, b in e.limits},
        )
    if isinstance(e, (LargestAlong, IndexOfLargest, KroneckerDelta)):
        return e.func(*map(normal_form, e.args))
    if isinstance(e, Piecewise) and _is_by_indicators(e):
        return normal_form(_by_indicators(e))
    e = e.func(*map(normal_form, e.args))
    if isinstance(e, log):
        return split_log(e.args[0])
    if isinstance(e, Pow) and e.base.is_Rational and e.base > 0 and not e.exp.is_number:
        return exp(expand(e.exp * log_of_number(e.base)))
    if isinstance(e, exp) and e.exp.has(log):
        return exp(expand(e.exp))
    if isinstance(e, Pow) and isinstance(e.base, Add) and e.exp.is_Integer:
        number, rest = e.base.primitive()
        return number**e.exp * rest**e.exp
    return _at_deltas(e) if isinstance(e, (Add, Mul)) and e.has(KroneckerDelta) else e


@lru_cache(maxsize=65536)
def _nodes(e: Basic) -> int:
    return 1 + sum(map(_nodes, e.args))


@lru_cache(maxsize=8192)
def _indicator(condition) -> Expr:
    """1 where the condition holds, else 0: of a delta that is above 0, the delta."""
    if isinstance(condition, Gt) and condition.rhs == 0 and condition.lhs.func == KroneckerDelta:
        return condition.lhs
    of_indices = isinstance(condition, Eq) and not condition.has(Indexed)
    if of_indices and all(symbol.is_integer for symbol in condition.free_symbols):
        return Zero(condition.lhs - condition.rhs)
    return Piecewise((1, condition), (0, True))


def _is_by_indicators(e: Piecewise) -> bool:
    """Whether a choice is to be written by indicators: 0 times infinity would be no number."""
    infinite = any(value in (MINUS_INFINITY, -oo) for value, _ in e.args)
    return not infinite and e.args != _indicator(e.args[0].cond).args


def _by_indicators(e: Piecewise) -> Expr:
    """A choice as the sum of its branches, each times the 0 or 1 of its condition."""
    value: Expr = Integer(0)
    for chosen, condition in reversed(e.args):
        holds = _indicator(condition)
        value = holds * chosen + (1 - holds) * value
    return value


def _multiplied_out(e: Expr) -> Expr:
    """Multiply out products of sums, except under a root, a bar or a function."""
    opaque: dict[Expr, Dummy] = {}

    def skeleton(node: Expr) -> Expr:
        if isinstance(node, (Add, Mul)):
            return node.func(*map(skeleton, node.args))
        if isinstance(node, exp):
            split = expand_power_exp(node)
            if isinstance(split, Mul):
                return skeleton(split)
        elif isinstance(node, Pow) and node.exp.is_Integer and node.exp.is_positive:
            return skeleton(node.base) ** node.exp
        if not node.args or isinstance(node, Indexed):
            return node
        return opaque.setdefault(node, Dummy())

    expanded = skeleton(e).expand()
    return expanded.xreplace({dummy: node for node, dummy in opaque.items()})


def _at_deltas(e: Expr) -> Expr:
    """Next to delta(a, i), a function of i may be read at a, and of a at i: where i is summed over
    or a is a number, a is used, and else i, which does not vary in a sum.
    """
    terms = []
    for term in Add.make_args(_multiplied_out(e)):
        for delta in sorted(term.atoms(KroneckerDelta), key=lambda d: d.sort_key()):
            if delta not in Mul.make_args(term):
                continue
            plain = sorted((i for i in delta.args if i.is_Symbol), key=str)
            other = [i for i in delta.args if not i.is_Symbol]
            if len(plain) == 2:
                kept, read = sorted(plain, key=lambda i: isinstance(i, Dummy))
                rest = Mul(*(f for f in Mul.make_args(term) if f != delta))
                term = delta * rest.xreplace({read: kept})
            elif len(plain) == 1 and other:
                rest = Mul(*(f for f in Mul.make_args(term) if f != delta))
                (index,), (label, *_) = plain, other
                at_label = isinstance(index, Dummy) or label.is_number
                read = {index: label} if at_label else {label: index}
                term = delta * rest.xreplace(read)
        terms.append(term)
    return Add(*terms)


def _summed(e: Expr, variables: list[Symbol], bounds: Mapping[Symbol, Expr]) -> Expr:
    return Add(
        *(_summed_term(term, list(variables), bounds) for term in Add.make_args(_multiplied_out(e)))
    )


def _summed_term(term: Expr, variables: list[Symbol], bounds) -> Expr:
    variables, bounds = list(variables), dict(bounds)
    factors = []
    for factor in Mul.make_args(term):  # a sum inside this sum is part of it
        powers = [factor] if isinstance(factor, sympy.Sum) else []
        if powers and factor.free_symbols & set(variables):
            fresh = {v: Dummy(v.name, integer=True) for v in factor.variables}
            for v, _, bound in factor.limits:
                variables.append(fresh[v])
                bounds[fresh[v]] = bound
            factors.append(factor.function.xreplace(fresh))
        else:
            factors.append(factor)
    if len(factors) > 1 or factors[0] != term:
        term = _multiplied_out(Mul(*factors))
        if isinstance(term, Add):
            return _summed(term, variables, bounds)
    term = _at_constant_labels(term, {*variables})
    for variable in list(variables):
        contracted = _contracted(term, variable)
        if contracted is None:
            contracted = _shares_added(term, variable, bounds[variable])
        if contracted is None:
            contracted = one_step(term, variable)
        if contracted is not None:
            term = contracted
            variables.remove(variable)
            if isinstance(_multiplied_out(term), Add):
                return _summed(term, variables, bounds)
    carried = [v for v in variables if v in term.free_symbols]
    count = Mul(*(bounds[v] for v in variables if v not in carried))
    outside = Mul(*(f for f in Mul.make_args(term) if not f.free_symbols & set(carried)))
    inside = Mul(*(f for f in Mul.make_args(term) if f.free_symbols & set(carried)))
    return count * outside * numbered(inside, carried, bounds) if carried else count * term


def _at_constant_labels(term: Expr, variables: set[Symbol]) -> Expr:
    """In a sum over j, next to delta(label[i], label[j]): a function of label[j] read at label[i],
    which does not vary.
    """
    for delta in (f for f in Mul.make_args(term) if isinstance(f, KroneckerDelta)):
        varying = [label for label in delta.args if label.free_symbols & variables]
        if len(varying) == 1 and not varying[0].is_Symbol:
            (constant,) = {*delta.args} - {*varying}
            rest = Mul(*(f for f in Mul.make_args(term) if f != delta))
            term = delta * rest.xreplace({varying[0]: constant})
    return term


def _contracted(term: Expr, variable: Symbol) -> Expr | None:
    """sum over i of delta(i, a)*f(i) = f(a), for an index a that does not contain i."""
    for delta in sorted(
        (f for f in Mul.make_args(term) if isinstance(f, KroneckerDelta)),
        key=lambda d: d.sort_key(),
    ):
        if variable in delta.args:
            other = next((i for i in delta.args if i != variable), None)
            if other is not None and not other.has(variable):
                rest = Mul(*(f for f in Mul.make_args(term) if f != delta))
                return normal_form(rest.xreplace({variable: other}))
    return None


def _shares_added(term: Expr, variable: Symbol, bound: Expr) -> Expr | None:
    """sum over i of f(i)/sum(f) = 1."""
    factors = Mul.make_args(term)
    share = Mul(*(f for f in factors if variable in f.free_symbols))
    for whole in factors:
        total = whole.base if isinstance(whole, Pow) and whole.exp == -1 else None
        if not isinstance(total, sympy.Sum) or len(total.limits) > 1 or total.has(variable):
            continue
        ((index, _, last),) = total.limits
        if last == bound and total.function.xreplace({index: variable}) == share:
            return Mul(*(f for f in factors if f != whole and variable not in f.free_symbols))
    return None
