"""A draft of the backward: the closed form of every adjoint, in which those that keep their names
stand by these, and the others are inserted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass

from sympy import Add, Expr, Integer, Mul

from derive.gradient.chain.chain import Adjoint, Chain
from derive.gradient.closing.simplifying import Simplifier
from derive.gradient.closing.steps import Record
from derive.language.choices import written_in
from derive.language.nodes import OneHot, Reindexing, Sum, along, sums_in
from derive.language.operations import is_contraction, operations_in
from derive.language.symbols import Tensor, is_constant, is_number_or_size, tensors_in

LONGEST = 40  # operations of a gradient that is inserted into others; a longer one keeps its name


@dataclass
class Draft:
    """One way of writing the backward: the closed form of every adjoint, and which of them keep
    their name.
    """

    closed: dict[str, Expr]
    kept: frozenset[str]
    record: Record


def read_for(wanted: list[Adjoint], drafted: Draft) -> set[str]:
    """The kept gradients that some wanted one is computed from: that of a mask is not."""
    wanted_names, read = {adjoint.name for adjoint in wanted}, set()
    pending = [drafted.closed[name] for name in sorted(wanted_names)]
    while pending:
        new = {t.name for t in tensors_in(pending.pop())} & drafted.kept - wanted_names - read
        pending += [drafted.closed[name] for name in sorted(new)]
        read |= new
    return read


def draft_keeping(simplifier: Simplifier, kept: frozenset[str]) -> Draft:
    chain = simplifier.spelled
    record, closed, keep = Record(), {}, set(kept)
    contracted = in_contractions(chain)
    multiplied = _only_multiplied(chain)
    for adjoint in simplifier.adjoints:
        e = _inserted_in(
            adjoint, simplifier, closed, keep - multiplied.get(adjoint.name, set()), record
        )
        e = simplifier.closed(e, adjoint.tensor, record)
        e = _vanished(e, closed, adjoint, simplifier, record)
        closed[adjoint.name] = e
        wanted_whole = adjoint.name in contracted and is_computed(e)
        if e != 0 and (_has_contraction(e) or wanted_whole or operations_in(e) > LONGEST):
            keep.add(adjoint.name)
    return Draft(closed, frozenset(keep), record)


def _inserted_in(
    adjoint: Adjoint,
    simplifier: Simplifier,
    closed: dict[str, Expr],
    keep: set[str],
    record: Record,
) -> Expr:
    """The chain's expression for ``adjoint``, in the values of the forward and the gradients found
    so far; in one step, unless it is the forward's as written.
    """
    relations, target = simplifier.knowledge.relations, adjoint.tensor
    written = simplifier.chain.by_name.get(adjoint.name, adjoint).expression
    own, e = Record(), adjoint.expression
    one = relations.resolved(e)
    e = own.add(target, "unfold", e, one, "it is another name for a known value")
    why = "the gradients found so far are inserted"
    e = own.add(target, "chain rule", e, inserted(e, closed, keep), why)
    if written == adjoint.expression:
        record.steps.extend(own.steps)
        return e
    why += ", with the parts of the forward under their names"
    return record.add(target, "spelling", written, e, why)


def _vanished(e: Expr, closed, adjoint: Adjoint, simplifier: Simplifier, record: Record) -> Expr:
    """0 where the total of a gradient that keeps its name is found to be 0, else ``e``.

    So is the gradient of a bias in front of a normalisation.
    """
    if not isinstance(e, Sum) or not isinstance(e.operand, Tensor) or e.operand.name not in closed:
        return e
    trial = Record()
    whole = inserted(e, closed)
    why = "the gradient, although it keeps its name, is inserted"
    whole = trial.add(adjoint.tensor, "chain rule", e, whole, why)
    if simplifier.closed(whole, adjoint.tensor, trial) != 0:
        return e
    record.steps.extend(trial.steps)
    return Integer(0)


def inserted(e: Expr, closed: dict[str, Expr], keep: Container[str] = ()) -> Expr:
    """``e`` with the adjoints that keep no name of their own replaced by their closed forms."""
    return written_in(
        e,
        {
            t: along(closed[t.name], t)
            for t in tensors_in(e)
            if t.name in closed and t.name not in keep and t.role == "adjoint"
        },
    )


def in_contractions(chain: Chain) -> set[str]:
    """The adjoints that are an operand of a matrix product, which wants them as a whole, also
    where they are counted again before, or multiplied by a constant.
    """
    met = {
        t.name
        for adjoint in chain.adjoints
        for node in sums_in(adjoint.expression)
        if is_matrix_product(node)
        for t in tensors_in(node)
        if t.role == "adjoint"
    }
    for adjoint in reversed(chain.adjoints):
        if adjoint.name not in met:
            continue
        if isinstance(adjoint.expression, Reindexing):
            met |= {t.name for t in tensors_in(adjoint.expression) if t.role == "adjoint"}
        varying = [f for f in Mul.make_args(adjoint.expression) if not is_constant(f)]
        if len(varying) == 1 and isinstance(varying[0], Tensor):  # what is constant goes outside
            met = met - {adjoint.name} | {varying[0].name}
    return met


def _only_multiplied(chain: Chain) -> dict[str, set[str]]:
    """For every adjoint that is a number times another one, which nothing else reads, that one:
    its name would add nothing.
    """
    readers = Counter(t.name for a in chain.adjoints for t in tensors_in(a.expression))
    found = {}
    for adjoint in chain.adjoints:
        rest = adjoint.expression.as_coeff_Mul(rational=True)[1]
        if isinstance(rest, Tensor) and readers[rest.name] == 1:
            found[adjoint.name] = {rest.name}
    return found


def _has_contraction(e: Expr) -> bool:
    return any(map(is_matrix_product, sums_in(e)))


def is_matrix_product(e: Expr) -> bool:
    """Whether ``e`` is a matrix product, which wants whole factors; picking and adding up by a
    label are none.
    """
    return is_contraction(e) and not any(isinstance(f, OneHot) for f in e.operand.args)


def is_computed(e: Expr, reads: int = 1) -> bool:
    """Whether there is anything to compute, or a view to write out in several places: not for a
    tensor with numbers in front of it.
    """
    if isinstance(e, Add) or (isinstance(e, Reindexing) and reads > 1):
        return True
    return sum(not is_number_or_size(f) for f in Mul.make_args(e)) > 1
