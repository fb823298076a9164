"""Several outputs: the last line of a class body names them.

    h = x + residual
    y = h * inv_rms * gain
    outputs = Outputs(y, h)

Each output ``y`` has an upstream gradient of its own, ``dy``. What a line reads, or is an input,
has another gradient too: with what comes back from there it is the whole of it. So such an output
is split in two, ``h_inner``, which the lines read, and ``h = h_inner``, which nobody does; an input
``x`` is returned as ``x_out``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from sympy import Expr

from derive.language.errors import NotationError, Place
from derive.language.names import unused
from derive.language.notation.definition import Definition, Statement
from derive.language.symbols import Tensor, tensors_in

WRITTEN = "outputs = Outputs(y, mean)"
RETURNED = ("statement", "input", "given")


class Outputs:
    """``outputs = Outputs(y, mean)``: all of these statements are returned, in this order."""

    def __init__(self, *outputs: Tensor):
        for e in outputs:
            if not isinstance(e, Tensor) or e.role not in RETURNED or e.axes != e.home:
                raise NotationError(
                    f"Outputs(..., {e}): that is not a statement",
                    f"give it a line and a name of its own: mean = ...; {WRITTEN}",
                )
        if len(outputs) < 2:
            raise NotationError(
                f"Outputs({', '.join(map(str, outputs))}) names fewer than two",
                f"the last line is the output: leave Outputs out, or write {WRITTEN}",
            )
        twice = [str(e) for i, e in enumerate(outputs) if e in outputs[:i]]
        if twice:
            raise NotationError(f"Outputs(...) names {twice[0]} twice", f"write {WRITTEN}")
        self.outputs = outputs


def state_outputs(body, name: str, outputs: Outputs, place: Place) -> Outputs:
    """Record the tensors that a class body returns."""
    body.claim(name, place)
    body.returned = [t.name for t in outputs.outputs]
    return outputs


def split(
    statements: Sequence[Statement], returned: Sequence[Tensor], taken: Collection[str]
) -> tuple[tuple[Statement, ...], tuple[str, ...]]:
    """The statements, of which none reads one of the outputs ``returned``; and the names of these,
    each new one not ``taken``, nor its gradient.
    """
    every = {*taken, *(s.name for s in statements)}

    def free(name: str) -> str:
        name = unused(name, lambda name: name in every or f"d{name}" in every)
        every.add(name)
        return name

    read = {t.name for s in statements for t in tensors_in(s.expression)}
    stated = {s.name: s for s in statements}
    inner = {
        t.name: free(f"{t.name}_inner") for t in returned if t.name in stated and t.name in read
    }
    found, outputs = list(_renamed(statements, inner)), []
    tensors = {s.name: s.tensor for s in found}
    for t in returned:
        name = t.name if t.name in stated else free(f"{t.name}_out")
        outputs.append(name)
        if t.name in inner or t.name not in stated:
            value, of = tensors.get(inner.get(t.name, ""), t), stated.get(t.name, statements[-1])
            own = Tensor(name, value.home, role="statement", **value._assumptions_orig)
            found.append(Statement(own, value, of.place))
    return tuple(found), tuple(outputs)


def rejoined(
    statements: Sequence[Statement], returned: Collection[str], kept: Collection[str]
) -> list[Statement]:
    """Undo the `split` of the outputs where something else is the output, except those to be
    ``kept``.
    """
    found = [s for s in statements if s.name in returned and s.renames is not None]
    inner = {s.renames.name: s.name for s in found if s.renames.role == "statement"}
    inner = {name: outer for name, outer in inner.items() if name not in kept}
    return list(_renamed([s for s in statements if s.name not in inner.values()], inner))


def as_one_block(definition: Definition) -> tuple[Definition, Mapping[str, str]]:
    """The definition with its outputs as they were before they were `split`, for a call: there they
    are values like any other. And the name of the tensor that each output is.
    """
    own = [definition.by_name[name] for name in definition.returned]
    again = {s.name: s.renames for s in own if s.renames is not None}
    inner = {t.name: name for name, t in again.items() if t.role == "statement"}
    rest = [s for s in definition.statements if s.name not in again]
    names = {s.name: again[s.name].name if s.name in again else s.name for s in own}
    names = {name: inner.get(of, of) for name, of in names.items()}
    statements = tuple(_renamed(rest, inner))
    of = {t.name: _called(inner.get(t.name, t.name), t) for t in again.values()}
    carried = tuple(
        replace(c, after=of[again[c.after.name].name], initial=_as_called(c.initial, again, of))
        for c in definition.carried
    )
    return replace(definition, statements=statements, returned=(), carried=carried), names


def _as_called(initial: Expr, again: Mapping[str, Tensor], of: Mapping[str, Tensor]) -> Expr:
    """The state before the first place, under the name that it has where outputs have one."""
    known = again.get(getattr(initial, "name", ""))
    return initial if known is None else of[known.name]


def _renamed(statements: Sequence[Statement], names: Mapping[str, str]) -> Iterator[Statement]:
    """The statements, some under other names."""
    for s in statements:
        met = {t: _called(names[t.name], t) for t in tensors_in(s.expression) if t.name in names}
        tensor = _called(names.get(s.name, s.name), s.tensor)
        yield replace(s, tensor=tensor, expression=s.expression.xreplace(met))


def _called(name: str, t: Tensor) -> Tensor:
    return Tensor(name, t.axes, t.home, t.role, **t._assumptions_orig)
