"""Rewrites of choices: conditions and one-hots in products and sums.

The identities that these are, with the conditions under which they hold, stand in the table of
``identities.py``, which also says what a rewrite receives and returns.
"""

from __future__ import annotations

from itertools import permutations

from sympy import Add, Expr, Mul, Piecewise, S, Tuple

from derive.language.symbols import Tensor, axes_of, tensors_in


def choose_once(node, knowledge):
    if not isinstance(node, Mul):
        return None
    choices = [f for f in node.args if isinstance(f, Piecewise)]
    for i, first in enumerate(choices):
        conditions = [condition for _, condition in first.args]
        alike = [f for f in choices[i:] if [condition for _, condition in f.args] == conditions]
        if len(alike) > 1:
            branches = zip(*([value for value, _ in f.args] for f in alike), strict=True)
            products = (Mul(*values) for values in branches)
            choice = Piecewise(*zip(products, conditions, strict=True))
            return Mul(choice, *(f for f in node.args if f not in alike))
    return None


def constant_of_choice(node, knowledge):
    if not isinstance(node, Piecewise):
        return None
    products = [_factors(value) for value, _ in node.args if value != 0]
    outside = [f for f in products[0] if _may_come_out(f, node, knowledge)]
    factor = Mul(*(f for f in outside if all(f in p for p in products)))
    if factor in (S.One, S.NegativeOne):
        return None
    return factor * Piecewise(*((value / factor, condition) for value, condition in node.args))


def _factors(value) -> tuple[Expr, ...]:
    """The factors of a value, including common divisors of a sum's terms."""
    content, rest = value.primitive() if isinstance(value, Add) else (S.One, value)
    return (*Mul.make_args(rest), content)


def _may_come_out(factor, choice: Piecewise, knowledge) -> bool:
    """A number, or a whole power of a scalar, or of a value that is summed up in the conditions:
    what else is made of one need not be defined where it is not chosen.
    """
    if factor.is_number:
        return True
    base, power = factor.as_base_exp()
    if not (isinstance(base, Tensor) and power.is_Integer and power > 0):
        return False
    return base.role == "scalar" or _is_summed_up(base, choice, knowledge)


def _is_summed_up(value: Tensor, choice: Piecewise, knowledge) -> bool:
    """Whether the conditions read reductions of ``value``: then they do not hide its entries."""
    asked = Tuple(*(condition for _, condition in choice.args))
    if value.role != "statement" or axes_of(value) <= axes_of(asked):
        return False
    relations = knowledge.relations
    return any(relations.is_made_of(t.name, value.name) for t in tensors_in(asked))


def cancel_in_choice(node, knowledge):
    if not isinstance(node, Mul):
        return None
    for choice in (f for f in node.args if isinstance(f, Piecewise)):
        chosen = [value.as_powers_dict() for value, _ in choice.args if value != 0]
        for factor in (f for f in node.args if isinstance(f, Tensor)):
            if all(powers.get(factor, S.Zero).is_negative for powers in chosen):
                inside = Piecewise(
                    *((factor * value, condition) for value, condition in choice.args)
                )
                return inside * Mul(*(f for f in node.args if f not in (factor, choice)))
    return None


def choose_one_of(node, knowledge):
    if not isinstance(node, Add):
        return None
    products = [Mul.make_args(term) for term in node.args]
    choices = [(term, f) for term in products for f in term if f.is_Piecewise]
    for (term, first), (other, second) in permutations(choices, 2):
        conditions, wider = ([condition for _, condition in f.args] for f in (first, second))
        alike = len(conditions) - 1
        if term == other or conditions[:alike] != wider[:alike]:
            continue
        values = [value for value, _ in first.args]
        values += [values[-1]] * (len(wider) - len(values))
        pairs = list(zip(values, (value for value, _ in second.args), strict=True))
        if all(0 in pair for pair in pairs):
            common = [f for f in term if f in other and f != first]
            here, there = (
                Mul(*(f for f in t if f not in (*common, first, second))) for t in (term, other)
            )
            choice = Piecewise(
                *((here * a + there * b, c) for (a, b), c in zip(pairs, wider, strict=True))
            )
            rest = (Mul(*t) for t in products if t not in (term, other))
            return Add(Mul(*common, choice), *rest)
    return None
