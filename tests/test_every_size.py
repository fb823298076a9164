"""The indexed sums of the second route: what vanishes for every size, and what does not."""

from itertools import product

import pytest
import sympy
from sympy import (
    Add,
    Dummy,
    Indexed,
    IndexedBase,
    Integer,
    KroneckerDelta,
    Ne,
    Piecewise,
    Symbol,
    exp,
    sqrt,
)

from derive import Axis, Flatten, Forward, Input, Max, OneHot, Position, Scalar, Sum, Unflatten
from derive.proof.proving.contraction import vanishes
from derive.proof.proving.every_size import IndexedForward, NotShown
from derive.proof.proving.index_nodes import IndexOfLargest, LargestAlong
from derive.proof.proving.indexed_sum import IndexedSum
from derive.proof.proving.small_batch import LargestOf, SmallBatch

SIZE = Symbol("size_C", integer=True, positive=True)
i = Symbol("i", integer=True)
x, eps = IndexedBase(Symbol("x", real=True)), Symbol("eps", real=True)
N, T, E, K, C = map(Axis, "NTEKC")
H = Axis("H", 2)
squares = sympy.Sum(x[i] ** 2, (i, 1, SIZE))


def test_a_size_may_stand_inside_or_outside_of_a_root():
    inside = 1 / sqrt(squares / SIZE + eps)
    assert vanishes(sqrt(SIZE) / sqrt(squares + SIZE * eps) - inside)
    assert not vanishes(sqrt(SIZE) / sqrt(squares + eps) - inside)


def test_what_has_a_sign_stays_under_its_root():
    shift = Symbol("shift", real=True)
    outside = sqrt(shift) / sqrt(squares + shift * eps)
    assert not vanishes(outside - 1 / sqrt(squares / shift + eps))


def test_an_index_of_a_sum_is_no_index_outside_of_it():
    """What is put in for an index is put in where that is free, and is not captured."""
    y, j, n = IndexedBase(Symbol("y", real=True)), Symbol("j", integer=True), sympy.Integer(1)
    total = IndexedSum(x[i] * y[j], (i, 1, SIZE))
    assert total.xreplace({i: n}) == total
    assert total.xreplace({j: n}) == IndexedSum(x[i] * y[1], (i, 1, SIZE))
    assert total.xreplace({x[i]: n}) == total and total.xreplace({total: n}) == n
    moved = total.xreplace({j: i})
    (own,) = moved.variables
    assert own != i and moved.function == x[own] * y[i]
    assert not vanishes(moved - IndexedSum(x[i] * y[i], (i, 1, SIZE)))
    largest = LargestAlong(x[i] * y[j], i)
    assert largest.xreplace({i: n}) == largest
    assert largest.xreplace({j: i}).args[0].has(y[i])
    assert not largest.xreplace({j: i}).args[0].has(x[i])


def total(e, *indices):
    return IndexedSum(e, *((index, 1, SIZE) for index in indices or (i,)))


def test_sums_over_the_same_indices_are_one_sum():
    """No sum vanishes by itself, and no term of one is that of the other."""
    share, same = 1 / (1 + exp(-x[i])), exp(x[i]) / (1 + exp(x[i]))
    assert vanishes(total(share) - total(same))
    assert not vanishes(total(share) - 2 * total(same))


def test_factors_that_share_no_index_are_sums_of_their_own():
    y, j = IndexedBase(Symbol("y", real=True)), Symbol("j", integer=True)
    assert vanishes(total(x[i] * y[j], i, j) - total(x[i]) * total(y[i]))
    assert not vanishes(total(x[i] * y[j], i, j) - total(x[i] * y[i]))


def test_two_sums_are_not_one_of_them():
    y = IndexedBase(Symbol("y", real=True))
    assert not vanishes(total(x[i]) * total(y[i]) - total(x[i]))


def test_shares_of_a_whole_add_up_to_one():
    """Of every row by itself, under a sum over the rows too; of another whole they need not."""
    rows, j = Symbol("size_N", integer=True, positive=True), Symbol("j", integer=True)

    def shares(whole):
        """exp(x_ij) over the whole of its row, added up over all."""
        own = sympy.Sum(exp(whole * x[i, j]), (i, 1, SIZE))
        return sympy.Sum(exp(x[i, j]) / own, (i, 1, SIZE), (j, 1, rows))

    assert vanishes(shares(1) - rows)
    assert not vanishes(shares(2) - rows)
    assert not vanishes(sympy.Sum(exp(x[i]), (i, 1, SIZE)) / sympy.Sum(exp(x[i]), (i, 1, rows)) - 1)


def test_what_does_not_vary_counts_once_for_every_index():
    j = Symbol("j", integer=True)
    assert vanishes(total(x[i], i, j) - SIZE * total(x[i]))


def test_indices_of_two_sums_that_are_multiplied_stay_apart():
    w, (j, k) = IndexedBase(Symbol("w", real=True)), sympy.symbols("j k", integer=True)
    product_of_sums = total(total(w[i, j]) * total(w[i, j] * x[i]), j)
    assert vanishes(product_of_sums - total(w[i, j] * w[k, j] * x[k], i, j, k))
    assert not vanishes(product_of_sums - total(w[i, j] ** 2 * x[i], i, j))


def test_an_index_within_a_function_is_not_that_around_it():
    w, j = IndexedBase(Symbol("w", real=True)), Symbol("j", integer=True)
    columns = total(exp(total(w[i, j], i)), j)
    assert vanishes(columns - total(exp(total(w[j, i], j)), i))
    assert not vanishes(columns - total(exp(total(w[i, j], j)), i))


def test_a_label_that_varies_with_the_index_is_not_taken_outside_of_the_sum():
    label = IndexedBase(Symbol("label", integer=True))
    assert not vanishes(total(KroneckerDelta(i, label[i])) - 1)


def test_what_is_flattened_in_two_orders_has_no_form():
    class BothOrders(Forward):
        a = Input(T, E)
        b = Input(T, E)
        y = Flatten(a, T, E, into=K) * Flatten(b, E, T, into=K)

    forward = IndexedForward(BothOrders.definition)
    with pytest.raises(NotShown):
        forward.computed("y", {K: forward.index(K)})


def test_a_choice_is_the_sum_of_its_branches():
    def chosen(one, other):
        return Piecewise((one, x[i] > 0), (other, True))

    assert vanishes(total(chosen(x[i], eps)) - total(x[i] * chosen(1, 0) + eps * chosen(0, 1)))
    assert vanishes(total(chosen(3, 1)) - 2 * total(chosen(1, 0)) - SIZE)
    assert not vanishes(total(chosen(x[i], eps)) - total(x[i] * chosen(1, 0)))


def test_next_to_a_label_its_entry_is_read():
    label = IndexedBase(Symbol("label", integer=True))
    hot = KroneckerDelta(label[1], i)
    assert vanishes(hot * x[i] - hot * x[label[1]])
    assert vanishes(total(hot * x[i]) - x[label[1]])
    assert not vanishes(hot * x[i] - hot * x[1])


def test_the_largest_is_routed_to_where_it_is():
    j = Symbol("j", integer=True)
    largest, place = LargestAlong(x[i] ** 2, i), IndexOfLargest(Integer(0), x[i] ** 2, i)
    assert vanishes(largest.diff(x[j]) - 2 * x[place] * KroneckerDelta(place, j))
    assert place.xreplace({i: j}) == place


class Written(Forward):
    """Whatever an index does: summed over, flattened and back, counted, compared, the largest."""

    x = Input(N, T, E)
    w = Input(N, C)
    v = Input(H)
    eps = Scalar(1.0)
    flat = Flatten(x, T, E, into=K) * Position(K) + eps
    back = Unflatten(flat**2, K, into=(T, E)) * Sum(OneHot(1, H) * v, H)
    largest = Max(Sum(back, E) + x * T, E)
    y = largest * Sum(w * Position(N), C) / N


SIZES = {N: 2, T: 3, E: 2, C: 2, H: 2}


def written_out(e, sizes):
    """An indexed expression as a sum of scalars, for these sizes by name."""
    if isinstance(e, IndexedSum):
        bounds = [range(1, sizes[str(bound)] + 1) for _, _, bound in e.limits]
        terms = (dict(zip(e.variables, map(Integer, at), strict=True)) for at in product(*bounds))
        return Add(*(written_out(e.function.xreplace(term), sizes) for term in terms))
    if isinstance(e, LargestAlong):
        operand, index = e.args
        count = sizes[f"size_{index.name.split('_')[1]}"]
        row = (operand.xreplace({index: Integer(k)}) for k in range(1, count + 1))
        return LargestOf(*(written_out(entry, sizes) for entry in row))
    if isinstance(e, Indexed):
        return Symbol(f"{e.base}[{','.join(map(str, e.indices))}]", real=True)
    if e.is_Symbol:
        return Integer(sizes[e.name]) if e.name in sizes else e
    return e.func(*(written_out(arg, sizes) for arg in e.args)) if e.args else e


def test_both_routes_write_the_same_forward():
    definition = Written.definition
    batch, forward = SmallBatch(definition, SIZES), IndexedForward(definition)
    sizes = {f"size_{axis}": size for axis, size in SIZES.items()}
    for name in ("flat", "back", "y"):
        home = definition.by_name[name].tensor.home
        at = {axis: forward.index(axis) for axis in home}
        indices = [index for axis in home for index in at[axis]]
        counts = [range(sizes[str(bound)]) for axis in home for bound in forward.sizes(axis)]
        e = forward.computed(name, at)
        for entry, place in zip(batch.computed(name).values(), product(*counts), strict=True):
            numbers = {i: Integer(k + 1) for i, k in zip(indices, place, strict=True)}
            assert (written_out(e.xreplace(numbers), sizes) - entry).expand() == 0


def test_a_factor_may_stand_beside_what_says_that_it_is_not_zero():
    u, v = Symbol("u", real=True), Symbol("v", real=True)
    nonzero, positive = (Piecewise((1, c), (0, True)) for c in (Ne(u, 0), v > 0))
    inside = IndexedSum(nonzero * positive * u * x[i], (i, 1, SIZE))
    assert vanishes(inside - u * IndexedSum(positive * x[i], (i, 1, SIZE)))
    assert not vanishes(IndexedSum(nonzero * x[i], (i, 1, SIZE)) - IndexedSum(x[i], (i, 1, SIZE)))
    assert not vanishes(positive * v * u - v * u) and not vanishes(nonzero * v - v)
    assert not vanishes(positive * u - u)


def test_what_is_read_at_a_label_may_stand_outside_of_a_sum_over_labels():
    """sum over j of delta(k, label of j)*x[label of j] is x[k] times how often k is the label."""
    label, k = IndexedBase(Symbol("label", integer=True)), Symbol("k", integer=True)
    j = Dummy("j", integer=True)
    picked = KroneckerDelta(k, label[j])
    count = IndexedSum(picked, (j, 1, SIZE))
    assert vanishes(IndexedSum(picked * x[label[j]], (j, 1, SIZE)) - x[k] * count)
    assert vanishes(IndexedSum(picked * x[k], (j, 1, SIZE)) - x[k] * count)
    assert not vanishes(IndexedSum(picked * x[j], (j, 1, SIZE)) - x[k] * count)
    second = KroneckerDelta(2, k)
    assert vanishes(2 * second * x[2] ** 2 - 2 * second * x[k] ** 2)
    assert vanishes(second * (1 - 2 * x[2]) * x[2] - (second * x[2] - 2 * second * x[2] ** 2))
