"""Plan of the emitted forward, in a stable form: outputs, and values for the backward.

In: a `ClosedForm`. Out: the statements to compute, in order, each proved equal to what the user
wrote, or as it is written (``line_proof.py``). Unneeded statements are left out; a part that the
backward reads, or that is written twice, keeps its name. Two rewritings keep the numbers good:

- an exponential that overflows is taken of a difference to the largest, where that cancels, and a
  logarithm of one is what it is taken of (``scaled.py``);
- a difference that sums to zero, such as ``x - mean``, is centred once more. The rounded mean of
  numbers near 1e4 is off by up to 5e-4 in float32, and every entry of the difference with it; what
  the difference sums to is that error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sympy import Add, Expr, Mul

from derive.gradient.closing.closed_form import ClosedForm
from derive.gradient.closing.facts import Facts
from derive.gradient.values.naming import NamedValue, in_full
from derive.gradient.values.relations import Relations
from derive.language.choices import written_in
from derive.language.errors import UnprovedError
from derive.language.nodes import ArrayNode, OneHot, Peak, Reduction, SubtractedPeak, Sum, along
from derive.language.notation.definition import Definition
from derive.language.notation.layout import layouts_of
from derive.language.symbols import Tensor, tensors_in
from derive.proof.proving.line_proof import UNPROVED, ForwardLine, proved_lines


def forward_plan(form: ClosedForm) -> tuple[ForwardLine, ...]:
    """The statements that the forward function computes, the outputs among them.

    Each is proved; where one is not, it and the parts that it is made of stay as they are written.
    Raises `UnprovedError` where that is no help.
    """
    written: frozenset[str] = frozenset()
    while True:
        lines = proved_lines(_planned(form, written), form)
        wrong = {line.tensor.name: line for line in lines if line.how == UNPROVED}
        if not wrong:
            return lines
        if wrong.keys() <= written:
            line = next(iter(wrong.values()))
            raise UnprovedError(
                f"{form.definition.name}: the computed line {line.tensor} = "
                f"{line.expression} is not equal to the statement as written; nothing was emitted"
            )
        written |= _parts_of(wrong, form.relations)


def _parts_of(names: Iterable[str], relations: Relations) -> frozenset[str]:
    """The values of these names, and the parts in their definitions."""
    parts, found, new = {p.tensor.name for p in relations.parts}, set(), set(names)
    while new:
        found |= new
        read = {t.name for name in new for t in tensors_in(relations.by_name[name].expression)}
        new = (read & parts) - found
    return frozenset(found)


def _planned(form: ClosedForm, written: frozenset[str]) -> list[NamedValue]:
    """The lines of the forward; the values of the names ``written`` as they are written."""
    relations = form.relations
    facts = Facts(relations)
    needed = {t.name for t in form.saved if t.role == "statement"}
    needed |= {t.name for t in form.definition.outputs}
    values = [
        _as_written(value, form.definition)
        if value.tensor.name in written
        else _stable(value, facts)
        for value in relations.values
    ]
    values = _needed(values, needed)
    read = (t.name for v in values if v.tensor.name in written for t in tensors_in(v.expression))
    needed.update(read)
    parts = {part.tensor.name for part in relations.parts}
    values = _inlined(values, lambda v, uses: v.tensor.name in parts and uses == 1, needed)
    values = _inlined(values, lambda v, uses: uses == 1 and _only_picked(v.tensor, values), needed)
    values = [_with_its_readers(value, values) for value in values]
    values = values if written else _returned_at_once(values, needed, form.definition)
    return [
        line
        for value in values
        for line in ([value] if value.tensor.name in written else _centred(value, facts))
    ]


def _returned_at_once(
    values: list[NamedValue], needed: set[str], definition: Definition
) -> list[NamedValue]:
    """``values`` with an output that is another name for one under that name from the start, where
    it lies in the same dimensions.
    """
    layouts, outer = layouts_of(definition), {}
    for value in values:
        inner, tensor = value.expression, value.tensor.name
        if tensor in definition.returned and definition.by_name[tensor].renames == inner:
            free = inner.role == "statement" and inner.name not in {*needed, *outer}
            if free and layouts[inner.name] == layouts[value.tensor.name]:
                outer[inner.name] = value.tensor
    found = []
    for value in values:
        if value.tensor not in outer.values():
            e = written_in(value.expression, _met(value.expression, outer))
            found.append(NamedValue(outer.get(value.tensor.name, value.tensor), e))
    return found


def _met(e: Expr, outer: Mapping[str, Tensor]) -> dict[Tensor, Expr]:
    return {t: along(outer[t.name], t) for t in tensors_in(e) if t.name in outer}


def _as_written(value: NamedValue, definition: Definition) -> NamedValue:
    statement = definition.by_name.get(value.tensor.name)
    return value if statement is None else NamedValue(value.tensor, statement.expression)


def _with_its_readers(value: NamedValue, values: list[NamedValue]) -> NamedValue:
    """The value; a peak that none of ``values`` adds is one that is subtracted."""
    if not isinstance(value.expression, Peak):
        return value
    if any(_adds(v.expression, value.tensor.name) for v in values):
        return value
    return NamedValue(value.tensor, SubtractedPeak(*value.expression.args))


def _adds(e: Expr, name: str) -> bool:
    """Whether ``e`` reads the tensor other than as a term that is subtracted."""
    if isinstance(e, Tensor):
        return e.name == name
    terms = (a for a in e.args if not (isinstance(e, Add) and isinstance(-a, Tensor)))
    return any(_adds(a, name) for a in terms)


def _stable(value: NamedValue, facts: Facts) -> NamedValue:
    """The value in a form that neither overflows nor loses digits."""
    return NamedValue(value.tensor, facts.relations.scales.safe(value.expression))


def _centred(value: NamedValue, facts: Facts) -> list[NamedValue]:
    """The value, and a second line that centres it again where its sum is found to be zero."""
    e, tensor = value.expression, value.tensor
    if not isinstance(e, Add):
        return [value]
    missing = facts.centred_along(tensor)
    if not missing:
        return [value]
    count = Mul(*(facts.relations.size(axis) for axis in missing))
    return [value, NamedValue(tensor, tensor - Sum.over(tensor, missing) / count)]


def _needed(values: list[NamedValue], needed: set[str]) -> list[NamedValue]:
    kept: list[NamedValue] = []
    needed = set(needed)
    for value in reversed(values):
        if value.tensor.name in needed:
            kept.append(value)
            needed |= {t.name for t in tensors_in(value.expression)}
    return kept[::-1]


def _inlined(values: list[NamedValue], wanted, needed: set[str]) -> list[NamedValue]:
    """``values`` with those that are ``wanted`` (by value and number of uses) written where they
    are used.
    """
    uses = Counter(t.name for v in values for t in _occurrences(v.expression))
    gone = {
        v.tensor.name: v
        for v in values
        if v.tensor.name not in needed and wanted(v, uses[v.tensor.name])
    }
    result = []
    for value in values:
        if value.tensor.name not in gone:
            result.append(NamedValue(value.tensor, in_full(value.expression, gone.values())))
    return result


def _occurrences(e: Expr) -> list[Tensor]:
    return [e] if isinstance(e, Tensor) else [t for arg in e.args for t in _occurrences(arg)]


def _only_picked(tensor: Tensor, values: list[NamedValue]) -> bool:
    """Whether only one entry in each row is ever read: then the others need not be computed."""
    readers = [v.expression for v in values if tensor in tensors_in(v.expression)]
    definition = next(v.expression for v in values if v.tensor == tensor)
    return not definition.has(Reduction) and all(
        _is_picked(e, tensor, frozenset()) for e in readers
    )


def _is_picked(e: Expr, tensor: Tensor, hot: frozenset) -> bool:
    if e == tensor:
        return bool(hot & set(tensor.axes))
    if isinstance(e, OneHot):
        return True
    if isinstance(e, ArrayNode):
        hot = hot - set(e.binds)
    if isinstance(e, Sum):
        hots = (f.towards(e.axes) for f in Mul.make_args(e.operand) if isinstance(f, OneHot))
        hot |= {found.axis for found in hots if found is not None}
    return all(_is_picked(arg, tensor, hot) for arg in e.args if tensor in tensors_in(arg))
