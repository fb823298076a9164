"""Recurrences: a statement that reads itself, or a later one, at the place before.

    h = tanh(x + Sum(W * Rename(Previous(h, T, initial=h0), H, J), J))

The forward is cut open there. ``h_before``, the state before each place, is an input, and
``h_after = h`` an output, as is ``h_initial = h0``: so every statement is one step at all places at
once, and its gradients are derived and proved as those of any other forward. Tied together again,

    h_before[t] = h_after[t-1]      and so, backwards,      dh_after[t] = dh_before[t+1]
    h_before[0] = h_initial                                 dh_initial  = dh_before[0]

with dh_after = 0 at the last place: the chain rule through places that follow one another, by
induction over them. Whoever runs the functions goes from one place to the next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sympy import Expr, S

from derive.language.errors import NotationError, Place, caller_place
from derive.language.names import unused
from derive.language.nodes import ArrayNode, RecurrenceBefore
from derive.language.notation.definition import Carried, Statement
from derive.language.notation.statements import may_be_infinite
from derive.language.symbols import Axis, Tensor, axes_of, is_constant, tensors_in


@dataclass
class State:
    """The state that the statement ``name`` carries along ``axis``, read at the place before;
    ``initial`` is a number, or the statement that says it.
    """

    name: str
    axis: Axis
    initial: Expr
    before: Tensor
    place: Place


class Recurrences:
    """The states of a class body that are read on lines above their own."""

    def __init__(self, body):
        self.body = body
        self.states: dict[tuple[str, Axis, Expr], State] = {}

    def before(self, name: str, axis: Axis, initial: Expr) -> Tensor:
        """The state before each place, for a line that reads it before it is defined."""
        found = self.states.get((name, axis, initial))
        if found is None:
            found = self._new(name, axis, initial)
            self.states[name, axis, initial] = found
        return found.before

    def _new(self, name: str, axis: Axis, initial: Expr) -> State:
        body, place = self.body, caller_place() or Place("<unknown>", 0)
        if body.reading.is_in_a_loop(place.line):
            raise NotationError(
                f"Previous({name}, {axis}) reads {name} before it is defined, inside of a for loop",
                "write the loop out, or give each recurrence lines of its own",
            )
        other = next((s for s in self.states.values() if s.name == name and s.axis != axis), None)
        if other is not None:
            raise NotationError(
                f"{name} follows from the places before it along {other.axis} and along {axis}",
                "a recurrence goes along one axis: make the other one an axis of the state",
            )
        initial = self._stated(name, initial, "", place)
        along = {axis} | axes_of(initial) | body.reading.axes_below(name)
        return State(
            name, axis, initial, self.opened(f"{name}_before", body.in_order(along)), place
        )

    def opened(self, name: str, along: Sequence[Axis]) -> Tensor:
        """Open a state before each place, called ``name`` if that is free."""
        before = Tensor(self._free(name), along)
        self.body.tensors[before.name] = before
        return before

    def close(
        self, before: Tensor, after: Tensor, axis: Axis, initial: Expr, of: tuple[str, Place]
    ) -> None:
        """``before`` is ``after`` one place before, in the block, and at the place, ``of``."""
        block, place = of
        initial = self._stated(after.name, initial, block, place)
        state = State(after.name, axis, initial, before, place)
        self.states[before.name, axis, initial] = state

    def _stated(self, name: str, initial: Expr, block: str, place: Place) -> Expr:
        """The state before the first place as a statement, if it is no number."""
        _check_finite(f"the initial state of {name}", initial)
        if is_constant(initial):
            return initial
        return self.body.state(self._free(f"{name}_initial"), initial, place, block)

    def _free(self, name: str) -> str:
        body = self.body
        taken = body.places.keys() | body.tensors.keys()
        taken |= body.reading.assigned.keys() if body.reading is not None else set()
        return unused(name, lambda n: n in taken or f"d{n}" in taken)

    def met(self, tensor: Tensor) -> Tensor:
        """Record a new statement; the states that are it have its axes from then on."""
        for state in [s for s in self.states.values() if s.name == tensor.name]:
            narrow, wide = state.before, Tensor(state.before.name, tensor.axes)
            if state.axis not in tensor.axes or not {*narrow.axes} <= {*tensor.axes}:
                along = ", ".join(a.name for a in narrow.axes)
                raise NotationError(
                    f"{tensor.name} has not all the axes of the state before it: {along}",
                    f"let the line lie along {along}, and the initial state along all of these but "
                    f"{state.axis}",
                )
            _check_finite(tensor.name, tensor)
            state.before = self.body.tensors[wide.name] = wide
            statements = self.body.statements
            for i, s in enumerate(statements):
                statements[i] = replace(s, expression=_with_state(s.expression, wide))
                if axes_of(statements[i].expression) - {*s.tensor.axes}:
                    raise NotationError(
                        f"{s.name} reads {tensor.name} at the place before, and that has more "
                        "axes than its initial state",
                        f"say them all: Previous({tensor.name}, {state.axis}, initial=h0), with an "
                        f"h0 along {_all_but(wide.axes, state.axis)}",
                    )
        return tensor

    def complete(self) -> None:
        """`Previous` of a statement above is a state too where that follows from this one."""
        while (found := self._step_inside()) is not None:
            i, node = found
            statements, of = self.body.statements, node.operand
            reader, count = statements[i], len(statements)
            before = self.opened(f"{of.name}_before", of.home)
            block = reader.block, reader.place
            self.close(before, of.at_home, node.axis, node.initial, block)
            replaced = reader.expression.xreplace({node: before.along(of.axes)})
            statements[i] = replace(reader, expression=replaced)
            statements[i:i] = [statements.pop() for _ in statements[count:]]  # the initial state

    def _step_inside(self) -> tuple[int, Expr] | None:
        """The first such `Previous`, and where it stands."""
        statements, named = self.body.statements, self.body.tensors
        states = [Carried(s.before, named[s.name], s.initial, s.axis) for s in self.states.values()]
        for together, inside in gone_along(statements, states):
            for i, s in enumerate(statements):
                for node in s.expression.atoms(RecurrenceBefore) if s.name in inside else ():
                    of, axis = node.operand, together[0].axis
                    own = isinstance(of, Tensor) and of.name in inside and of.axes == of.home
                    if own and node.is_step and node.axis == axis:
                        return i, node
        return None

    def following(self) -> Iterator[tuple[str, set[str]]]:
        """Each input that cuts the forward open, with the names that it follows from."""
        for state in self.states.values():
            yield state.before.name, {state.name, *(t.name for t in tensors_in(state.initial))}

    def cut_open(
        self, statements: Sequence[Statement], named: Mapping[str, Tensor], taken: Collection[str]
    ) -> tuple[list[Statement], list[Carried]]:
        """The ``statements`` with those of the cuts, before the last one; ``named`` are the tensors
        that they are called by now.
        """
        found, carried = [*statements], []
        for state in self.states.values():
            of = named[state.name]
            before = Tensor(state.before.name, of.home)
            found = [replace(s, expression=_with_state(s.expression, before)) for s in found]
            used = {*taken, *(c.after.name for c in carried)}
            name = unused(f"{of.name}_after", used.__contains__)
            after = Tensor(name, of.home, role="statement", **of._assumptions_orig)
            place = 1 + next(i for i, s in enumerate(found) if s.name == of.name)
            found.insert(place, Statement(after, of, state.place))
            initial = state.initial
            if isinstance(initial, Tensor) and initial.role == "statement":
                own = [a for a in of.home if a != state.axis]
                initial = Tensor(named[initial.name].name, own, role="statement")
                found = [replace(s, tensor=initial) if s.name == initial.name else s for s in found]
            carried.append(Carried(before, after, initial, state.axis))
        _check_steps(found, carried)
        return found, carried


def _check_finite(what: str, e: Expr) -> None:
    if may_be_infinite(e) or e.has(S.NegativeInfinity, S.Infinity):
        raise NotationError(
            f"{what} may be -oo, and a state is a number everywhere",
            "write one far below all others, such as -10**30: its exponential is 0 beside theirs",
        )


def _with_state(e: Expr, state: Tensor) -> Expr:
    """``e`` with a state as it is known now, met along the same axes."""
    found = {}
    for t in tensors_in(e):
        if t.name == state.name:
            along = dict(zip(t.home, t.axes, strict=True))
            found[t] = state.along(along.get(axis, axis) for axis in state.home)
    return e.xreplace(found) if found else e


def _all_but(axes: Sequence[Axis], axis: Axis) -> str:
    return ", ".join(a.name for a in axes if a != axis)


def _check_steps(statements: Sequence[Statement], states: Sequence[Carried]) -> None:
    """Check that a state follows from its own place and the one before alone, along one axis."""
    for together, inside in gone_along(statements, states):
        axis, *others = {state.axis for state in together}
        if others:
            raise NotationError(
                f"{together[0].after} follows from places along {axis} and along {others[0]}",
                "a recurrence goes along one axis: make the other one an axis of the state",
            )
        moving = inside | {state.before.name for state in together}
        for s in (s for s in statements if s.name in inside):
            if node := _mixes_places(s.expression, axis, moving):
                raise NotationError(
                    f"{s.name}: its places along {axis} follow from one another, and {node} takes "
                    "several of them together",
                    f"read what is before as Previous(..., {axis}, initial=...) alone, or take "
                    "them together in a line that no state follows from",
                    s.place,
                )


def _mixes_places(e: Expr, axis: Axis, moving: set[str]) -> Expr | None:
    """The part of ``e`` that reads a ``moving`` name along ``axis`` at other places."""
    for node in sorted(e.atoms(ArrayNode), key=str):
        if axis in {*node.binds, *node.brings} and moving & {t.name for t in tensors_in(node)}:
            return node
    for t in tensors_in(e):
        if t.name in moving and dict(zip(t.home, t.axes, strict=True)).get(axis, axis) != axis:
            return t
    return None


def gone_along(
    statements: Sequence[Statement], states: Sequence[Carried]
) -> list[tuple[list[Carried], set[str]]]:
    """The recurrences: states that depend on each other, with the statements between them."""
    reads = {s.name: {t.name for t in tensors_in(s.expression)} for s in statements}
    for state in states:
        reads[state.before.name] = {state.after.name}
        reads[state.after.name] |= {state.before.name}  # at least one step is computed there
    needs = {name: _needed(name, reads) for name in reads}
    found: list[tuple[list[Carried], set[str]]] = []
    for state in states:
        own = state.before.name
        if any(state in together for together, _ in found):
            continue
        names = {name for name in needs[own] & needs.keys() if own in needs[name]}
        together = [other for other in states if other.before.name in names]
        found.append((together, names - {other.before.name for other in together}))
    return found


def _needed(name: str, reads: Mapping[str, set[str]]) -> set[str]:
    found, new = set[str](), {name}
    while new:
        new = set[str]().union(*(reads.get(each, set()) for each in new)) - found
        found |= new
    return found
