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

import inspect
import sys
from collections.abc import Collection, Sequence
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from sympy import Expr
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

from derive.language.errors import NotationError, Place, caller_place
from derive.language.names import checked_name, snake_case
from derive.language.notation.block_names import without_prefixes
from derive.language.notation.class_body import ClassBody
from derive.language.notation.completeness import check_complete, generated_names
from derive.language.notation.composition import block_call
from derive.language.notation.definition import Carried, Definition, Statement
from derive.language.notation.gradient import what_is_said, without_idle
from derive.language.notation.influence import warn_of
from derive.language.notation.made_axes import flattened_in, twins_in
from derive.language.notation.outputs import split
from derive.language.notation.reduced import reduced
from derive.language.source.class_source import OutsideNames
from derive.language.symbols import Axis, Tensor

LONGEST_NAME = 100  # letters: file systems hold 255 bytes, and endings are added
OF_FOLDER = ("kernels", "use")  # what a folder of modules has beside them


class ForwardMeta(type):
    """Reads a class body as mathematics."""

    @classmethod
    def __prepare__(mcs, name, bases, **kwargs):
        if bases and bases != (Forward,):
            raise NotationError(
                f"{name} inherits from {', '.join(base.__name__ for base in bases)}",
                "a forward inherits from Forward alone; call the other inside it to reuse it",
            )
        return ClassBody(name) if bases else {}

    def __new__(mcs, name, bases, body, **kwargs):
        if not bases:
            return super().__new__(mcs, name, bases, dict(body))
        place = _class_place(body)
        try:
            checked_name(name, "a forward")
            _check_file(name)
            checked_name(snake_case(name), "a generated function")
        except NotationError as error:
            raise error.at(place) from None
        cls = super().__new__(mcs, name, bases, dict(body))
        cls.definition = _finished(body, name, _paragraph(body.get("__doc__")), place)
        if body.reading is not None:
            cls.outside_names = OutsideNames.of(body.reading.code, body.reading.scope)
        return cls

    def __call__(cls, *args: Expr | float, **kwargs: Expr | float | str) -> Expr | tuple[Expr, ...]:
        if not hasattr(cls, "definition"):
            raise NotationError(
                "Forward is inherited from, and not called", "write class MyNorm(Forward):"
            )
        return block_call(cls, args, kwargs)


def _check_file(name: str) -> None:
    """Refuse a generated module that would hide another one."""
    taken = snake_case(name) in OF_FOLDER
    if len(name) > LONGEST_NAME or is_in_the_way(name):
        beside = f"; {' and '.join(OF_FOLDER)} stand beside the modules" if taken else ""
        raise NotationError(
            f"{name[:LONGEST_NAME]} cannot be the name of a forward: its file would be in the way"
            f"{beside}",
            f"choose a name of at most {LONGEST_NAME} letters that no module of Python's has",
        )


def is_in_the_way(name: str) -> bool:
    """Whether the module of a forward with that name would hide another one."""
    return snake_case(name) in OF_FOLDER or snake_case(name) in sys.stdlib_module_names


def _finished(body: ClassBody, name: str, doc: str, place: Place) -> Definition:
    """The frozen record; raises `NotationError` where something is missing as a whole."""
    _check_stated(body, name, place)
    body.recurrences.complete()
    body.statements = without_idle(body)
    expressions = [s.expression for s in body.statements]
    twins = twins_in(expressions)
    flattened = flattened_in(expressions, twins)
    order = body.ordered_axes(expressions, twins, flattened)
    check_complete(body, name, order, twins, flattened)
    warn_of(body)
    taken = {*body.places, *generated_names(name), *(axis.name for axis in order)}
    outputs = _by_word(body, taken, order)
    default = next(iter(outputs))
    statements, returned, carried = _returning(body, outputs[default], taken)
    return Definition(
        name,
        "\n\n".join([doc, *_remarks(body, outputs[default])]).strip(),
        place,
        (*body.inputs, *(state.before for state in carried)),
        tuple(body.scalars),
        statements,
        tuple(order),
        tuple(twins.items()),
        tuple(flattened.items()),
        tuple((t, body.optional[t.name]) for t in body.inputs if t.name in body.optional),
        tuple(body.ignoring),
        tuple(body.sizes),
        tuple(body.broadcast),
        tuple(body.demands),
        ordered=_ordered(body, outputs[default]),
        reductions=tuple((word, found[-1]) for word, found in outputs.items() if word),
        reduction=default,
        returned=returned,
        carried=carried,
        inner=(*body.differentiated.inner, *body.differentiated.called),
        chunked=_chunked(body, place, order),
    )


def _chunked(body: ClassBody, place: Place, axes: Sequence[Axis]) -> str:
    """The axis that ``chunked`` names, if the class body does."""
    axis = dict(body).get("chunked")
    if not isinstance(axis, Axis):
        return ""
    if axis not in axes:
        raise NotationError(
            f"chunked = {axis.name}, and nothing lies along {axis.name}",
            f"name one of {', '.join(own.name for own in axes)}",
            body.places.get("chunked", place),
        )
    return axis.name


def _by_word(body: ClassBody, taken: set[str], order: Sequence[Axis]):
    """The statements with the output as each word reduces it, under the names that they have."""
    *before, last = body.statements
    return {
        word: without_prefixes([*before, s], taken, order, body.renamed, body.orders)
        for word, s in (body.reductions or {"": last}).items()
    }


def _returning(
    body: ClassBody, statements: tuple[Statement, ...], taken: Collection[str]
) -> tuple[tuple[Statement, ...], tuple[str, ...], tuple[Carried, ...]]:
    """The statements, of which none reads an output, with the names of several outputs, and the
    states at which recurrences are cut open.
    """
    named = {old.name: s.tensor for old, s in zip(body.statements, statements, strict=True)}
    returned = [named.get(name, body.tensors.get(name)) for name in body.returned]
    if not body.recurrences.states:
        return (*split(statements, returned, taken), ()) if returned else (statements, (), ())
    opened, carried = body.recurrences.cut_open(statements, named, {*taken, *named})
    cuts = dict.fromkeys(t for c in carried for t in (c.after, c.initial) if isinstance(t, Tensor))
    cuts = [t for t in cuts if t.role == "statement"]
    own = returned or [statements[-1].tensor]
    return (*split(opened, [*own, *cuts], taken), tuple(carried))


def _ordered(body: ClassBody, statements: Sequence[Statement]) -> frozenset[str]:
    """Statements that say the order of their dimensions, under their final names."""
    pairs = zip(body.statements, statements, strict=True)
    return frozenset(new.name for old, new in pairs if old.name in body.orders)


def _remarks(body: ClassBody, after: Sequence[Statement]) -> list[str]:
    """Remarks on the statements that are a gradient, or named like that of another tensor."""
    before = body.statements
    return what_is_said(body, before, after) + [
        f"{s.name} of the source is called {other.name} here: {s.name} is the gradient of "
        f"{s.name[1:]}."
        for s, other in zip(before, after, strict=True)
        if not s.block and s.name != other.name
    ]


def _check_stated(body: ClassBody, name: str, place: Place) -> None:
    """Check that the body states an output that depends on a differentiable input."""
    if body.deleted:
        raise NotationError(
            f"del {body.deleted[0]}: what is defined stays in the mathematics",
            "leave the line out",
            body.deleted[1],
        )
    last, last_place = body.last
    value = dict(body).get(last)
    stated = body.statements[-1].name if body.statements else ""
    if not stated and (not last or isinstance(value, (Tensor, Axis))):
        below = "below what is declared" if last else "below an input, x = Input(N)"
        raise NotationError(f"{name} states nothing", f"write a line {below}: y = 2 * x", place)
    if isinstance(value, Tensor) and last != stated and not body.returned:
        raise NotationError(
            f"{last} stands last, where the output is stated, but {stated} is computed after it",
            f"say what is returned: outputs = Outputs({stated}, {last})",
            last_place,
        )
    if last != stated and not body.returned:
        raise NotationError(
            f"{last} stands last, where the output is stated, but it is {_kind(value)}",
            _as_output(last, value),
            last_place,
        )
    if not any(t.role == "input" for t in body.inputs):
        raise NotationError(
            f"{name} has no differentiable input", "declare one: x = Input(N, C)", place
        )


def _kind(value: object) -> str:
    """The kind of a value that is no tensor, in words."""
    kinds = {
        (Axis,): "a size",
        (Relational, Boolean): "a condition",
        str: "text",
        type: "a class",
        FunctionType: "a function",
        ModuleType: "a module",
    }
    kind = next((kind for types, kind in kinds.items() if isinstance(value, types)), "a number")
    return f"{kind}, not a tensor"


def _as_output(name: str, value: object) -> str:
    """The remedy where a name that is no tensor stands last."""
    if isinstance(value, (Relational, Boolean)) and not isinstance(value, Axis):
        return f"write {name} = Piecewise((1, {value}), (0, True))"
    return f"move {name} up, or state the output after it: y = ..."


def _class_place(body: ClassBody) -> Place:
    place = caller_place() or Place("<unknown>", 0)
    first = min((p.line for p in body.places.values() if p.file == place.file), default=place.line)
    return Place(place.file, min(place.line, first))


def _paragraph(doc: str | None) -> str:
    return inspect.cleandoc(doc) if doc else ""


def reduced_forward(forward: type[Forward], word: str | None) -> type[Forward]:
    """``forward`` where ``word`` is passed as its reduction; as it is, for None.

    Raises `QuestionError` where there is no such word.
    """
    definition = reduced(forward.definition, word)
    if definition is forward.definition:
        return forward
    found = type.__new__(ForwardMeta, forward.__name__, (Forward,), {})
    found.definition, found.outside_names = definition, forward.outside_names
    return found


class Forward(metaclass=ForwardMeta):
    """Base class of a forward, whose body is its mathematics; see the module's docstring.

    Raises `NotationError`, with file, line and remedy, if the class body is not in the notation.
    """

    definition: Definition
    outside_names: OutsideNames | None = None  # with which it can be run once more

    if TYPE_CHECKING:  # mypy asks for it, and not for `ForwardMeta.__call__`
        # An expression, or a tuple where there are several outputs.
        def __new__(cls, *args: Expr | float, **kwargs: Expr | float | str) -> Any: ...
