"""Recompute, rather than save, values that the backward gets entry by entry from what it reads
anyway, or from one argument read instead of the value.

The sigmoid of a gate is a function of the gate, and the gradient of the gate reads the gate. To
keep the sigmoid as well would cost memory of full size, and its writing and reading; to compute it
again costs operations, while the entry is at hand.

In: the statements of a closed form. Out: the same statements, which read fewer values of the
forward. A value recomputed for several places is a statement, called ``..._again``; equal values
are one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from sympy import Expr, preorder_traversal

from derive.gradient.closing.eager import entries
from derive.gradient.closing.facts import Facts
from derive.gradient.closing.risks import preference
from derive.gradient.closing.steps import Pairs, Record
from derive.gradient.values.naming import NamedValue, in_full, with_names
from derive.language.choices import written_in
from derive.language.names import unused
from derive.language.nodes import ArrayNode, along, sums_in
from derive.language.notation.statements import known_signs
from derive.language.operations import is_contraction, operations_in
from derive.language.symbols import Tensor, tensors_in


def computed_again(
    statements: Pairs, taken: set[str], knowledge: Facts, record: Record
) -> tuple[Pairs, dict[Tensor, Tensor]]:
    """``statements`` with every such value computed where it is read, and which value each of the
    new statements is; ``taken`` are the names that stand for something else.
    """
    before, again = dict(statements), {}
    while (found := _found(statements, knowledge)) is not None:
        statements, tensor = _with_definition(statements, *found, taken)
        again.setdefault(tensor, found[0])
    for tensor in list(again):
        if sum(times_read(e)[tensor] for _, e in statements) == 1:
            definition = dict(statements)[tensor]
            rest = [(t, e) for t, e in statements if t != tensor]
            statements = _replaced(rest, tensor, definition)
            del again[tensor]
    why = "its operands are read anyway, so it is recomputed, not saved"
    for tensor, e in before.items():
        record.add(tensor, "compute again", e, dict(statements)[tensor], why)
    return statements, again


def with_users_names(
    statements: Pairs, again: Mapping[Tensor, Tensor], taken: set[str], knowledge: Facts
) -> tuple[Pairs, dict[Tensor, Tensor]]:
    """``statements`` in which a statement of the forward, written out in one of them, is computed
    under its name if it takes more than one operation and nothing is risked for it; and the
    value that each of them is.
    """

    def risked(pairs: Pairs) -> tuple[int, int]:
        number, cost = preference(pairs, relations)
        return number, cost.exposed

    relations, again = knowledge.relations, dict(again)
    definition = relations.definition
    read = {t.name for _, e in statements for t in tensors_in(e)} | {*relations.same}
    read |= {t.name for t in (*definition.outputs, *again.values())} | definition.at_hand
    for value in reversed([s.tensor for s in definition.statements if s.name not in read]):
        written = relations.by_name[value.name].expression, relations.unfolded(value)
        forms = [in_full(relations.resolved(e), relations.parts) for e in written]
        before = risked(statements)
        worth_a_line = operations_in(forms[0]) > 1 and not forms[0].has(ArrayNode)
        for form in dict.fromkeys((*forms, *map(relations.with_parts, forms))):
            own = next((t for t, e in statements if e == form), None)
            if own is None and worth_a_line:
                name = unused(f"{value.name}_again", taken.__contains__)
                new = Tensor(name, value.home, role="adjoint", **known_signs(form))
                rest = [(t, with_names(e, [NamedValue(new, form)])) for t, e in statements]
                named = [(new, form), *rest]
                if rest != statements and risked(named) <= before:
                    own, statements = new, named
            if own is not None and {*own.home} == {*value.home}:
                again.setdefault(own, value)
    return statements, again


def under_their_names(
    statements: Sequence[tuple[Tensor, Expr]],
    again: Mapping[Tensor, Tensor],
    taken: Iterable[str],
    others: Mapping[Tensor, Tensor] = {},
) -> list[tuple[Tensor, Expr]]:
    """``statements`` with each value computed ``again`` under its own name, where neither they nor
    ``taken`` have that name, and the ``others`` as they are shown; for readers without the forward.
    """
    met = {t for tensor, e in statements for t in (tensor, *tensors_in(e))}
    names = {t.name for t in met} | set(taken)
    called = {
        tensor: named(tensor, again[tensor].name)
        for tensor, _ in statements
        if tensor in again and again[tensor].name not in names
    } | {t: shown for t, shown in others.items() if shown.name not in names}
    places = {t: along(called[t.at_home], t) for t in met if t.at_home in called}
    return [(called.get(tensor, tensor), e.xreplace(places)) for tensor, e in statements]


def named(tensor: Tensor, name: str) -> Tensor:
    """The same tensor under another name."""
    return Tensor(name, tensor.home, role=tensor.role, **tensor._assumptions_orig)


def _found(statements: Pairs, knowledge: Facts) -> tuple[Tensor, Expr] | None:
    """A saved value that need not be saved, and its expression in others that are read; the last of
    them first, because it may be what needs the others.
    """
    relations = knowledge.relations
    read = {t.at_home for _, e in statements for t in tensors_in(e)}
    whole = {
        t.at_home
        for _, e in statements
        for node in sums_in(e)
        if is_contraction(node)
        for t in tensors_in(node)
    }
    for value in sorted(read - whole, key=lambda t: -relations.position.get(t.name, 0)):
        again = computed_from(read, value, knowledge)
        if again is not None:
            return value, again
    return None


def computed_from(read: set[Tensor], value: Tensor, knowledge: Facts) -> Expr | None:
    """``value``, which is of the largest, in others that are ``read``, or in one argument more,
    entry by entry and without overflow, if it is that.
    """
    relations = knowledge.relations
    at_hand = relations.definition.at_hand
    if value.name not in relations.by_name or value.name in at_hand:
        return None
    largest = max(entries(t.home) for t in read | {value})
    if entries(value.home) < largest or knowledge.centred_along(value):
        return None
    read = read - {value}
    scales = relations.scales

    def unfolded(e: Expr, unknown: list[Tensor]) -> Expr:
        return written_in(e, {t: relations.unfolded(t) for t in unknown})

    def unknown_in(e: Expr) -> list[Tensor]:
        return [t for t in tensors_in(e) if t.role != "scalar" and t.at_home not in read]

    e, more = relations.unfolded(value), set()
    while not e.has(ArrayNode) and (unknown := unknown_in(e)):
        arguments = {t.at_home for t in unknown if t.name not in relations.by_name}
        more = more | arguments
        if len(more) > 1 or any(
            t.role not in ("input", "given") or t.name not in at_hand for t in more
        ):
            return None
        read = read | more
        e = unfolded(e, [t for t in unknown if t.at_home not in arguments])
    e = scales.safe(e)
    while not e.has(ArrayNode) and (unknown := unknown_in(e)):  # what made it safe has values too
        if any(t.name not in relations.by_name for t in unknown):
            return None
        e = unfolded(e, unknown)
    return None if e.has(ArrayNode) or scales.overflows(e) else e


def _with_definition(
    statements: Pairs, value: Tensor, definition: Expr, taken: set[str]
) -> tuple[Pairs, Tensor]:
    """``statements`` with ``value`` computed in one of them, and the tensor that stands for it."""
    again = next((t for t, e in statements if e == definition and t.home == value.home), None)
    if again is None:
        name = unused(f"{value.name}_again", taken.__contains__)
        again = Tensor(name, value.home, role="adjoint", **known_signs(definition))
        statements = [(again, definition), *statements]
    return _replaced(statements, value, again), again


def _replaced(statements: Pairs, value: Tensor, new: Expr) -> Pairs:
    return [
        (tensor, e.xreplace({met: along(new, met) for met in _places(value, e)}))
        if times_read(e)[value]
        else (tensor, e)
        for tensor, e in statements
    ]


def _places(value: Tensor, e: Expr) -> list[Tensor]:
    """The tensors that are ``value`` in ``e``, each as often as it is met."""
    return [node for node in _tensors_met(e) if node.at_home == value]


@lru_cache(maxsize=8192)
def times_read(e: Expr) -> Counter[Tensor]:
    """Number of times that ``e`` reads each tensor."""
    return Counter(node.at_home for node in _tensors_met(e))


def _tensors_met(e: Expr) -> Iterator[Tensor]:
    return (node for node in preorder_traversal(e) if isinstance(node, Tensor))
