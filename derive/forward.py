"""A forward: a class body whose assignments are the statements of a network, in order.

    class Standardize(Forward):
        x    = Input(N, C)
        mean = Sum(x, N) / N
        y    = x - mean

``Standardize.definition`` is then the frozen record that the rest of gradform works on. The class
body runs in a namespace of ours (``__prepare__``), which turns every assignment into a named
statement at once, so that later lines refer to the name and not to the expression. Calling a
forward inside another one composes them (see ``composition.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import FunctionType, ModuleType

from sympy import Expr, preorder_traversal
from sympy.core.relational import Relational
from sympy.logic.boolalg import BooleanAtom, BooleanFunction

from derive.choices import kept_tensor, with_ignored
from derive.declarations import Declaration, Label, Scalar, Size, exact
from derive.definition import IGNORE_INDEX, Definition, Ignoring, Statement, snake_case
from derive.domain import Demand
from derive.errors import NotationError, Place, caller_place
from derive.made_axes import axis_order, fixed_in, flattened_in, known_sizes, twins_in
from derive.nodes import ArrayNode, Reshaping
from derive.statements import (
    UNDEFINED,
    check_statement,
    in_notation,
    may_be_infinite,
    tensors_outside_conditions,
    without_marks,
)
from derive.symbols import (
    Along,
    Axes,
    Axis,
    MinusInfinity,
    Tensor,
    axes_of,
    check_axes,
    checked_name,
    is_constant,
    same_name,
    with_sizes,
)

FUNCTIONS = ("forward", "backward", "atoms", "chain")
CLASSES = ("Forward", "Gradients", "Atoms", "Chain", "Function", "Again")
PYTHON_NAMES = (Relational, BooleanAtom, BooleanFunction, str, type, FunctionType, ModuleType)


class ClassBody(dict):
    """The namespace of a forward's class body: it makes a statement of every assignment."""

    def __init__(self):
        super().__init__()
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
        self.last = ("", Place("<unknown>", 0))

    def __setitem__(self, name, value):
        if name.startswith("__") or name == "_":
            return super().__setitem__(name, value)
        place = caller_place() or Place("<unknown>", 0)
        self.last = (name, place)
        try:
            super().__setitem__(name, self._received(name, value, place))
        except NotationError as error:
            raise error.at(place) from None

    def _received(self, name, value, place):
        if isinstance(value, Declaration):
            return self.declare(name, value, place)
        if isinstance(value, (tuple, list)) and any(isinstance(v, Declaration) for v in value):
            raise NotationError(
                f"{name} declares several tensors at once", "one line for each tensor"
            )
        if isinstance(value, (Axis, *PYTHON_NAMES)):
            return value  # a name in Python, not a tensor
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return value
        if not isinstance(value, Expr):
            kind = type(value).__name__
            raise NotationError(
                f"{name} is a {kind}, not an expression in tensors",
                "write one expression on the line: y = x - Sum(x, N) / N",
            )
        if is_constant(value) and not value.has(*UNDEFINED):
            return value
        from derive.composition import PendingBlock, placed_block

        placed = placed_block(self, name, value, place)
        return placed if isinstance(value, PendingBlock) else self.state(name, placed, place)

    def claim(self, name: str, place: Place) -> None:
        """Take a name, once."""
        if name in self.places:
            raise NotationError(
                f"{name} is defined already (line {self.places[name].line})",
                "every tensor has one definition: give this one a name of its own",
            )
        self.places[name] = place

    def declare(self, name: str, declaration: Declaration, place: Place) -> Tensor | Axis:
        if isinstance(declaration, Size):
            self.claim(checked_name(name, "a size"), place)
            self.sizes.append((name, declaration.axis))
            return declaration.axis
        tensor = declaration.named(name)
        self._check_axes(tensor)
        self.claim(name, place)
        self.tensors[name] = tensor
        if isinstance(declaration, Scalar):
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
                self._ignore(tensor, declaration.ignored, place)
        return tensor

    def _ignore(self, label: Tensor, ignored: int, place: Place) -> None:
        """``label`` counts only where it is not ``ignored``."""
        if self.ignoring and self.ignoring[0].default != ignored:
            other = self.ignoring[0]
            raise NotationError(
                f"{label} is ignored where it is {ignored}, {other.label} where it is "
                f"{other.default}, but {IGNORE_INDEX} is one number",
                f"write {label} = Label(..., ignored={other.default})",
            )
        if not self.ignoring:
            self.claim(IGNORE_INDEX, place)
        kept = kept_tensor(label)
        self.claim(kept.name, place)
        self.inputs.append(kept)
        self.tensors[kept.name] = kept
        self.ignoring.append(Ignoring(label, kept, ignored))

    def state(self, name: str, value: Expr, place: Place, block: str = "") -> Tensor:
        """Append the statement ``name = value``; what later lines see is its tensor."""
        checked_name(name, "a tensor")
        value = with_ignored(in_notation(value), {i.kept.name: i.kept for i in self.ignoring})
        self._check_own(value)
        self._check_axes(value)
        expressions = [*(s.expression for s in self.statements), value]
        twins = twins_in(expressions)
        check_statement(value, twins)
        axes = sorted(axes_of(value), key=self._axis_order(expressions, twins))
        self.claim(name, place)
        expression = with_sizes(without_marks(value), twins)
        tensor = Tensor(name, axes, role="statement", **known_signs(expression))
        self.statements.append(Statement(tensor, expression, place, block))
        self.tensors[name] = tensor
        return tensor

    def axis_for(self, axis: Axis, made_of, bound: Collection[Axis], block: str) -> Axis:
        """The name here of an axis that a callee made for itself: its own, unless something else
        has it, such as an axis that is ``bound`` to one of the callee's.
        """
        expressions = [s.expression for s in self.statements]
        twins = twins_in(expressions)
        made = twins | flattened_in(expressions, twins)
        taken = {a for t in self.tensors.values() for a in t.axes} | set(bound)
        if made.get(axis, made_of) == made_of and (axis in made or axis not in taken):
            return axis
        return Axis(f"{axis.name}_{block}")

    def _check_axes(self, value: Expr) -> None:
        """Every name of an axis means one thing in a class body, and no part of ``value`` lies
        along two `Axes`.
        """
        along = {axis for node in value.atoms(Along) for axis in node.axes}
        along |= {axis for tensor in value.atoms(Tensor) for axis in tensor.axes}
        earlier = {axis for tensor in self.tensors.values() for axis in tensor.axes}
        same_name(earlier | along | value.atoms(Axis))
        if sum(isinstance(axis, Axes) for axis in along) > 1:
            for part in preorder_traversal(value):
                check_axes(axes_of(part), part)

    def differentiable_in(self, value: Expr) -> Tensor | None:
        """A differentiable input that ``value`` is computed from, if there is one. What it is only
        compared with in a condition passes no gradient on.
        """
        statements = {s.name: s.expression for s in self.statements}
        unread, seen = [value], set()
        while unread:
            for t in tensors_outside_conditions(unread.pop()):
                if t.role == "input":
                    return t.at_home
                if t.name in statements and t.name not in seen:
                    seen.add(t.name)
                    unread.append(statements[t.name])
        return None

    def _check_own(self, value: Expr) -> None:
        """Every symbol in a statement is a tensor of this class body, or the size of an axis."""
        for symbol in sorted(value.free_symbols, key=str):
            if isinstance(symbol, (Axis, MinusInfinity)):
                continue
            if not isinstance(symbol, Tensor):
                raise NotationError(
                    f"{symbol} is a symbol of SymPy's, not a tensor",
                    f"declare it: {symbol} = Input(N, C), or {symbol} = Scalar(1.0)",
                )
            if self.tensors.get(symbol.name) != symbol.at_home:
                raise NotationError(
                    f"{symbol} is not a tensor of this forward",
                    "to use another forward, call it: h = Other(x)",
                )

    def _check_sizes_of_optional(self) -> None:
        """What is left out has the sizes of what is passed."""
        passed = {a for t in self.inputs if t.name not in self.optional for a in t.axes}
        for t in self.inputs:
            for axis in t.axes:
                if axis not in passed:
                    raise NotationError(
                        f"{t} may be left out, but no other input has the axis {axis}: its size "
                        "would be unknown",
                        f"leave out the default of {t}, or declare it along other axes",
                        self.places[t.name],
                    )
        for scalar, default in self.scalars:
            unknown = default.atoms(Axis) - passed if isinstance(default, Expr) else ()
            for axis in sorted(unknown, key=str):
                raise NotationError(
                    f"the default of {scalar} needs the size of {axis}, which no input has",
                    f"declare an input along {axis}",
                    self.places[scalar.name],
                )

    def _check_demands(self) -> None:
        """What the scalars have to be, they are where they are left out."""
        defaults = {t: exact(default) for t, default in self.scalars}
        known = {axis for t in self.inputs for axis in t.axes} | {axis for _, axis in self.sizes}
        for demand, place in self.demands.items():
            limits = {axis for bound in demand.domain.bounds for axis in bound.limit.atoms(Axis)}
            for axis in sorted(limits - known, key=str):
                raise NotationError(
                    f"{demand.expression} is to be {demand.domain}, but no input has the axis "
                    f"{axis}: its size is unknown",
                    f"declare an input along {axis}",
                    place,
                )
            if demand.holds(defaults) is False:
                raise NotationError(
                    f"{demand.expression} has to be {demand.domain}, and is not with the defaults",
                    "choose defaults with which it is",
                    place,
                )

    def _check_names(self, name: str) -> None:
        """No tensor has a name that the generated module gives to something else."""
        taken = {snake_case(name)} | {f"{snake_case(name)}_{kind}" for kind in FUNCTIONS}
        taken |= {f"{name}{kind}" for kind in CLASSES}
        for tensor, place in self.places.items():
            if tensor in taken:
                raise NotationError(
                    f"{tensor} is a name of the generated module", "choose another one", place
                )

    def _axis_order(self, expressions, twins):
        order = self._ordered_axes(expressions, twins, flattened_in(expressions, twins))
        return lambda axis: (order.index(axis) if axis in order else len(order), axis.name)

    def _ordered_axes(self, expressions, twins, flattened) -> list[Axis]:
        given = dict.fromkeys([*(axis for _, axis in self.sizes), *fixed_in(expressions)])
        return axis_order(self.inputs, twins, flattened, given)

    def finished(self, name: str, doc: str, place: Place) -> Definition:
        """The frozen record; raises `NotationError` where something is missing as a whole."""
        if not self.statements:
            raise NotationError(f"{name} states nothing", "write at least one line: y = ...", place)
        last, last_place = self.last
        if last != self.statements[-1].name:
            raise NotationError(
                f"{last} stands last, where the output is stated, but it is no tensor",
                f"move {last} up, or state the output after it",
                last_place,
            )
        if not any(t.role == "input" for t in self.inputs):
            raise NotationError(
                f"{name} has no differentiable input", "declare one: x = Input(N, C)", place
            )
        expressions = [s.expression for s in self.statements]
        twins = twins_in(expressions)
        flattened = flattened_in(expressions, twins)
        order = self._ordered_axes(expressions, twins, flattened)
        self._check_sizes_of_optional()
        self._check_demands()
        self._check_size_arguments(twins)
        for statement in self.statements:
            _check_sizes_known(statement, order)
        self._check_parts_known(order, twins, flattened)
        for taken in self.places:
            if f"d{taken}" in self.places:
                raise NotationError(
                    f"d{taken} is the name of the gradient of {taken}",
                    f"rename d{taken}",
                    self.places[f"d{taken}"],
                )
        self._check_names(name)
        return Definition(
            name,
            doc,
            place,
            tuple(self.inputs),
            tuple(self.scalars),
            tuple(self.statements),
            tuple(order),
            tuple(twins.items()),
            tuple(flattened.items()),
            tuple((t, self.optional[t.name]) for t in self.inputs if t.name in self.optional),
            tuple(self.ignoring),
            tuple(self.sizes),
            tuple(self.broadcast),
            tuple(self.demands),
        )

    def _check_size_arguments(self, twins) -> None:
        """No size is given twice: by a shape and by an argument, or by two arguments."""
        known = {twins.get(axis, axis) for tensor in self.inputs for axis in tensor.axes}
        for name, axis in self.sizes:
            if axis in known:
                raise NotationError(
                    f"{name} = Size({axis}): the size of {axis} is known already",
                    f"leave {name} out, and write {axis} where the size is meant",
                    self.places[name],
                )
            known.add(axis)

    def _check_parts_known(self, order, twins, flattened) -> None:
        """When an axis is split, all new sizes but one must be known."""
        known = {twins.get(axis, axis) for tensor in self.inputs for axis in tensor.axes}
        known |= {axis for _, axis in self.sizes} | {a for a in order if a.length is not None}
        known |= set(known_sizes(known, flattened))
        for statement in self.statements:
            for node in sorted(statement.expression.atoms(Reshaping), key=str):
                axes = [*node.binds, *node.brings]
                unknown = [axis.name for axis in axes if twins.get(axis, axis) not in known]
                if unknown:
                    raise NotationError(
                        f"{node}: the size of {unknown[0]} is unknown",
                        f"make it an argument: count = Size({unknown[0]})",
                        statement.place,
                    )


def known_signs(e: Expr) -> dict[str, bool]:
    """What is known of the sign of a statement, so that later powers and logarithms may rely on
    it.
    """
    if may_be_infinite(e):
        return {"extended_real": True}
    if e.is_positive:
        return {"positive": True}
    return {"nonnegative": True} if e.is_nonnegative else {}


def _check_sizes_known(statement: Statement, order) -> None:
    used = set(statement.tensor.axes) | statement.expression.atoms(Axis)
    for node in statement.expression.atoms(ArrayNode):
        used |= {*node.binds, *node.brings}
    unknown = sorted(axis.name for axis in used if axis not in order)
    if unknown:
        raise NotationError(
            f"{statement.name} uses the axis {unknown[0]}, which no input has: its size is unknown",
            f"declare an input along it, Input({unknown[0]}), or rename an axis into it",
            statement.place,
        )


class ForwardMeta(type):
    """Reads a class body as mathematics."""

    @classmethod
    def __prepare__(mcs, name, bases, **kwargs):
        if bases and bases != (Forward,):
            raise NotationError(
                f"{name} inherits from {', '.join(base.__name__ for base in bases)}",
                "a forward inherits from Forward alone; call the other inside it to reuse it",
            )
        return ClassBody() if bases else {}

    def __new__(mcs, name, bases, body, **kwargs):
        if not bases:
            return super().__new__(mcs, name, bases, dict(body))
        place = _class_place(body)
        try:
            checked_name(name, "a forward")
            if len(name) > 100 or snake_case(name) in sys.stdlib_module_names:
                raise NotationError(
                    f"{name[:100]} cannot be the name of a forward: its file would be in the way",
                    "choose a name of at most 100 letters that no module of Python's has",
                )
            checked_name(snake_case(name), "a generated function")
        except NotationError as error:
            raise error.at(place) from None
        cls = super().__new__(mcs, name, bases, dict(body))
        cls.definition = body.finished(name, _paragraph(body.get("__doc__")), place)
        return cls

    def __call__(cls, *args, **kwargs):
        from derive.composition import block_call

        return block_call(cls, args, kwargs)


def _class_place(body: ClassBody) -> Place:
    place = caller_place() or Place("<unknown>", 0)
    first = min((p.line for p in body.places.values() if p.file == place.file), default=place.line)
    return Place(place.file, min(place.line, first))


def _paragraph(doc: str | None) -> str:
    import inspect

    return inspect.cleandoc(doc) if doc else ""


class Forward(metaclass=ForwardMeta):
    """Inherit from it to write mathematics down; see the module's docstring.

    Raises `NotationError`, with file, line and remedy, where the class body is not in the notation.
    """

    definition: Definition
