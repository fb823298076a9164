"""The namespace of a class body, which makes a statement of every assignment."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import count
from types import FunctionType, ModuleType

from sympy import Expr
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom, BooleanFunction

from derive.language.awaited import Awaited
from derive.language.choices import comparing, nesting
from derive.language.declarations import Declaration, Label, Scalar, Size
from derive.language.diagonals import with_identities
from derive.language.domain import Demand
from derive.language.errors import NotationError, Place, caller_place
from derive.language.extremes import of_notation
from derive.language.float_range import check_numbers
from derive.language.kept_labels import with_ignored
from derive.language.names import checked_name
from derive.language.nodes import Broadcast
from derive.language.notation.composition import PendingBlock, no_expression, placed_block
from derive.language.notation.definition import Ignoring, Statement
from derive.language.notation.gradient import Differentiated, placed_gradient
from derive.language.notation.ignored_labels import ignore
from derive.language.notation.lost import Vanished, Widened
from derive.language.notation.made_axes import axis_order, fixed_in, flattened_in, twins_in
from derive.language.notation.ordered import Ordered
from derive.language.notation.outputs import Outputs, state_outputs
from derive.language.notation.placing import names_in, placed_in
from derive.language.notation.recurrences import Recurrences
from derive.language.notation.reduced import Reduced
from derive.language.notation.reduced_output import check_not_ended, state_reduced
from derive.language.notation.scope import check_along, check_own
from derive.language.notation.statements import (
    check_axes_meant,
    check_statement,
    in_notation,
    is_stated,
    known_signs,
    without_marks,
)
from derive.language.pending import Pending
from derive.language.source.class_reading import ClassReading
from derive.language.source.typed_numbers import note_bodies
from derive.language.symbols import (
    Axis,
    Tensor,
    axes_of,
    ordered,
    with_sizes,
)

PYTHON_NAMES = (Relational, BooleanAtom, BooleanFunction, str, type, FunctionType, ModuleType)


class ClassBody(dict):
    """The namespace of a forward's class body: it makes a statement of every assignment."""

    def __init__(self, name: str = ""):
        super().__init__()
        note_bodies(ClassBody)
        self.name = name
        self.reading: ClassReading | None = None  # none where nothing is written, as in a loop
        self.vanished: list[Vanished] = []
        self.widened: list[Widened] = []
        self.deleted: tuple[str, Place | None] | None = None
        self.places: dict[str, Place] = {}
        self.inputs: list[Tensor] = []
        self.optional: dict[str, float] = {}
        self.broadcast: list[str] = []
        self.ignoring: list[Ignoring] = []
        self.scalars: list[tuple[Tensor, float | Expr]] = []
        self.demands: dict[Demand, Place] = {}
        self.sizes: list[tuple[str, Axis]] = []
        self.statements: list[Statement] = []
        self.tensors: dict[str, Tensor] = {}
        self.orders: dict[str, tuple[Axis, ...]] = {}  # of the statements that say it
        self.rounds: dict[str, int] = {}  # the number of what was bound last in a loop, by name
        self.nested: dict[str, int] = {}  # how many choices stand in one another
        self.last = ("", Place("<unknown>", 0))
        self.reductions: dict[str, Statement] = {}  # the last statement, for each of the words
        self.returned: list[str] = []  # the outputs, where there are several
        self.renamed: dict[str, str] = {}  # statements that are outputs of calls
        self.differentiated = Differentiated()
        self.recurrences = Recurrences(self)

    def __getitem__(self, name):
        reading, frame = self.reading, sys._getframe(1)
        if reading is not None and frame.f_code is reading.code:
            reading.reach(frame.f_lineno, self.tensors)
            reading.read.add(name)
            if name not in self and reading.is_read_before(name, frame.f_lineno):
                return Awaited(name, self.recurrences.before)
            if name not in self and (ours := reading.outside(name, frame.f_lineno)):
                return ours
        return super().__getitem__(name)

    def __setitem__(self, name, value):
        frame = sys._getframe(1)
        if name == "__module__" and frame.f_code.co_name == self.name:
            self.reading = ClassReading(frame, self)
        if name.startswith("__") or name == "_":
            if isinstance(value, FunctionType):
                self._read(frame)
            return super().__setitem__(name, value)
        place = caller_place() or Place("<unknown>", 0)
        stated, order = name, None
        try:
            if isinstance(value, Ordered):
                value, order = value.expression, value.axes
            if self._read(frame):
                if self.reading.goes_through(name, frame.f_lineno) and name not in self.places:
                    return super().__setitem__(name, value)
                value = self._as_written(name, value, frame.f_lineno)
                if self.reading.is_in_a_loop(frame.f_lineno) and is_stated(value):
                    stated = self._numbered(name, place)
            self.last = (stated, place)
            if order is not None:
                self.orders[stated] = order
            super().__setitem__(name, self._received(stated, value, place))
        except NotationError as error:
            raise error.at(place) from None

    def _read(self, frame) -> bool:
        """Whether the line that ``frame`` is at is one of the class body, which is then read."""
        if self.reading is None or frame.f_code is not self.reading.code:
            return False
        self.reading.reach(frame.f_lineno, self.tensors)
        return True

    def __delitem__(self, name):
        if name not in self.places:
            return super().__delitem__(name)
        self.deleted = self.deleted or (name, caller_place())  # Python would hide an error here

    def _as_written(self, name: str, value, line: int):
        """``value`` along all the axes of its ``line``, where SymPy lost some; other losses are
        recorded.
        """
        if not isinstance(value, Expr) or isinstance(value, Axis):
            return value
        written = self.reading.written(name, line)
        gone = written.names - names_in(value)
        place = caller_place() or Place("<unknown>", 0)
        if lost := self.reading.lost(name, line, value):
            self.widened.append(Widened(name, value, tuple(lost), place))
        if gone:
            self.vanished.append(Vanished(name, tuple(sorted(gone)), place))
        lost = ordered(written.axes - axes_of(value))
        return Broadcast(value, *lost) if lost else value

    def _received(self, name, value, place):
        if name in self.places:
            self.claim(name, place)
        self._check_no_axis(name, value)
        check_not_ended(self, name)
        if isinstance(value, Declaration):
            return self.declare(name, value, place)
        if isinstance(value, Reduced):
            return state_reduced(self, name, value, place)
        if isinstance(value, Outputs):
            return state_outputs(self, name, value, place)
        if isinstance(value, (tuple, list)) and any(isinstance(v, Declaration) for v in value):
            raise NotationError(
                f"{name} declares several tensors at once", "one line for each tensor"
            )
        kind = value.__name__ if isinstance(value, type) else ""
        if kind not in ("", name) and issubclass(value, Declaration):  # no import of it
            raise NotationError(f"{name} = {kind} declares nothing", f"write {name} = {kind}(N, C)")
        if isinstance(value, (Axis, *PYTHON_NAMES)):
            return of_notation(value)  # a name in Python, not a tensor
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
        if not isinstance(value, Expr):
            raise no_expression(name, value)
        if not is_stated(value):
            return value
        placed = placed_in(self, name, value, place)
        return placed if isinstance(value, Pending) else self.state(name, placed, place)

    def _numbered(self, name: str, place: Place) -> str:
        """``u_1``, ``u_2`` and so on, for the statements that a loop binds to ``u``: the next free
        name. Outside of a loop ``u`` is taken from then on.
        """
        self.places.setdefault(name, place)
        taken = self.places.keys() | self.reading.assigned.keys()
        numbers = count(self.rounds.get(name, 0) + 1)
        self.rounds[name] = next(n for n in numbers if f"{name}_{n}" not in taken)
        return f"{name}_{self.rounds[name]}"

    def claim(self, name: str, place: Place) -> None:
        """Take a name, once."""
        if name in self.places:
            free = next(n for k in count(2) if (n := f"{name}_{k}") not in self.places)
            raise NotationError(
                f"{name} is defined already (line {self.places[name].line})",
                f"give this one a name of its own: write {free} = {place.formula or '...'}",
            )
        self.places[name] = place

    def _check_no_axis(self, name: str, value) -> None:
        """Refuse a name that was an axis on a line above."""
        if self.reading is None or isinstance(value, (Axis, Size)):
            return
        if name in self.reading.read and isinstance(self.reading.scope.outside(name), Axis):
            raise NotationError(
                f"{name} is an axis, and would be something else from here on",
                f"give one of the two another name: {name}_tensor = ...",
            )

    def declare(self, name: str, declaration: Declaration, place: Place) -> Tensor | Axis:
        if isinstance(declaration, Size):
            self.claim(checked_name(name, "a size"), place)
            self.sizes.append((name, declaration.axis))
            return declaration.axis
        tensor = declaration.named(name)
        check_along(tensor, self.tensors)
        self.claim(name, place)
        self.tensors[name] = tensor
        if isinstance(declaration, Scalar):
            if isinstance(declaration.default, Expr):
                check_numbers(declaration.default, f"the default of {name}")
            self.scalars.append((tensor, declaration.default))
            if declaration.domain:
                self.demands[Demand(tensor, declaration.domain)] = place
        else:
            if self.optional and declaration.default is None:
                first = next(iter(self.optional))
                raise NotationError(
                    f"{name} has to be passed, but stands after {first}, which may be left out",
                    f"declare {name} before {first}, as in the signature of a function",
                )
            if declaration.default is not None:
                self.optional[name] = declaration.default
            if declaration.broadcast:
                self.broadcast.append(name)
            self.inputs.append(tensor)
            if isinstance(declaration, Label) and declaration.ignored is not None:
                ignore(self, tensor, declaration.ignored, place)
        return tensor

    def has(self, name: str) -> bool:
        """Whether a name is given to something, here or on a line below."""
        return name in self.places or (self.reading is not None and name in self.reading.assigned)

    def state(
        self, name: str, value: Expr, place: Place, block: str = "", known: bool = False
    ) -> Tensor:
        """Append ``name = value``. What is ``known`` has the axes that it means."""
        tensor, expression = self.stated(name, value, known)
        return self.append(Statement(tensor, expression, place, block))

    def placed(self, pending: Pending, name: str, place: Place) -> Expr:
        """The result of a call, under that ``name``; the statements that it takes join these."""
        place_it = placed_block if isinstance(pending, PendingBlock) else placed_gradient
        return place_it(self, pending, name, place)

    def append(self, statement: Statement, at: int | None = None) -> Tensor:
        self.claim(statement.name, statement.place)
        self.statements.insert(len(self.statements) if at is None else at, statement)
        self.nested[statement.name] = nesting(statement.expression, self.nested)
        self.tensors[statement.name] = statement.tensor
        return self.recurrences.met(statement.tensor)

    def stated(self, name: str, value: Expr, known: bool = False) -> tuple[Tensor, Expr]:
        """The tensor and the checked expression of the line ``name = value``."""
        checked_name(name, "a tensor")
        value = in_notation(value)
        check_numbers(value, name)
        value = with_ignored(value, {i.kept.name: i.kept for i in self.ignoring})
        check_own(value, self.tensors)
        check_along(value, self.tensors)
        expressions = [*(s.expression for s in self.statements), value]
        twins = twins_in(expressions)
        value = with_identities(value, twins)
        check_statement(value)
        if not known:
            check_axes_meant(value, twins)
        axes = self.in_order(axes_of(value), value)
        expression = with_sizes(without_marks(comparing(value, self.nested)), twins)
        return Tensor(name, axes, role="statement", **known_signs(expression)), expression

    def in_order(self, axes: Iterable[Axis], *more: Expr) -> list[Axis]:
        """``axes``, with ``more``, in the order of dimensions, as far as it is known by now."""
        expressions = [*(s.expression for s in self.statements), *more]
        twins = twins_in(expressions)
        order = self.ordered_axes(expressions, twins, flattened_in(expressions, twins))
        return sorted(axes, key=lambda a: (order.index(a) if a in order else len(order), a.name))

    def ordered_axes(self, expressions, twins, flattened) -> list[Axis]:
        given = dict.fromkeys([*(axis for _, axis in self.sizes), *fixed_in(expressions)])
        orders = self.orders.values()
        return axis_order(self.inputs, twins, flattened, given, orders, expressions)
