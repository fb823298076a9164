"""Writing a forward down anew, line by line, as a user would: through a class body, which checks
every line and finds axes, signs and renamed axes itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sympy import Basic, Expr, Mul

from derive.language.choices import replaced_finally, with_args
from derive.language.declarations import Declaration, Given, Input, Label, Scalar, Size
from derive.language.domain import Demand, Domain
from derive.language.nodes import ArrayNode, renamed
from derive.language.notation.class_body import ClassBody
from derive.language.notation.definition import Definition, Statement
from derive.language.notation.forward import Forward, ForwardMeta
from derive.language.notation.outputs import as_one_block
from derive.language.notation.splicing import read_along, spliced, taken_along
from derive.language.reading_at import At
from derive.language.symbols import Axis, Tensor

KINDS = {"input": Input, "given": Given}


class Pen:
    """Writes ``definition`` down anew: its declarations at once, its lines as it is told.

    ``naming`` gives a tensor its new name, ``along`` an axis those that stand in its place.
    ``meanings`` has what stands for every old tensor in the new forward, by the old name.
    """

    def __init__(
        self,
        definition: Definition,
        naming: Callable[[str], str] = str,
        along: Mapping[Axis, tuple[Axis, ...]] | None = None,
    ):
        self.definition, outputs = as_one_block(definition)
        self.returned = [outputs[name] for name in definition.returned]
        self.naming = naming
        self.along = {axis: (axis,) for axis in definition.axes} | dict(along or {})
        self.body = ClassBody(definition.name)
        self.meanings: dict[str, Expr] = {}
        self._declare_all()

    def line(self, statement: Statement) -> Expr:
        """The right-hand side of a statement, in the tensors and axes of the new forward."""
        return self._translated(replaced_finally(statement.expression))

    def state(self, statement: Statement, value: Expr) -> Tensor:
        """``value`` under the name of an old statement, for which it stands from here on."""
        tensor = self.body.state(
            self.naming(statement.name), value, statement.place, statement.block
        )
        self.meanings[statement.name] = tensor
        return tensor

    def part(self, statement: Statement, value: Expr) -> Tensor:
        """``value`` under a name of its own, on a line before that of ``statement``."""
        name = self.free(f"{self.naming(statement.name)}_part")
        return self.body.state(name, value, statement.place, statement.block)

    def free(self, words: str) -> str:
        """A name that nothing has, in the new forward or the old one."""
        taken = {*self.body.places, *map(self.naming, self.definition.position)}
        name, number = words, 2
        while name in taken:
            name, number = f"{words}_{number}", number + 1
        return name

    def declare(self, name: str, declaration: Declaration) -> Tensor | Axis:
        return self.body.declare(name, declaration, self.definition.place)

    def finished(self) -> type[Forward]:
        """The new forward. Raises `NotationError` where it is none."""
        self.body["__doc__"] = self.definition.doc
        self.body.last = (self.body.statements[-1].name, self.definition.place)
        self.body.returned = [self.meanings[name].name for name in self.returned]
        return ForwardMeta(self.definition.name, (Forward,), self.body)

    def _declare_all(self) -> None:
        definition = self.definition
        ignored = {i.label.name: i.default for i in definition.ignoring}
        optional = {t.name: number for t, number in definition.optional}
        for name, axis in definition.size_arguments:
            (size,) = self.along[axis]
            self.declare(self.naming(name), Size(size))
        for t in definition.arguments:
            axes = spliced(t.home, self.along)
            if t.role == "label":
                declaration = Label(*axes, ignored=ignored.get(t.name))
            else:
                broadcast = t.name in definition.broadcast
                default = optional.get(t.name)
                declaration = KINDS[t.role](*axes, default=default, broadcast=broadcast)
            self.meanings[t.name] = self.declare(self.naming(t.name), declaration)
        for i in definition.ignoring:
            new = self.meanings[i.label.name]
            self.meanings[i.kept.name] = next(
                own.kept for own in self.body.ignoring if own.label == new
            )
        for t, default in definition.scalars:
            scalar = Scalar(self._translated(default) if isinstance(default, Expr) else default)
            scalar.domain = self._domain_of(t)
            self.meanings[t.name] = self.declare(self.naming(t.name), scalar)
        for demand in definition.demands:
            new = Demand(
                self._translated(demand.expression), demand.domain.mapped(self._translated)
            )
            self.body.demands.setdefault(new, definition.place)

    def _domain_of(self, scalar: Tensor) -> Domain:
        """What is demanded of the scalar by itself."""
        own = (d.domain for d in self.definition.demands if d.expression == scalar)
        return next(own, Domain()).mapped(self._translated)

    def _translated(self, e: Basic) -> Basic:
        if isinstance(e, Tensor):
            home, met = (spliced(axes, self.along) for axes in (e.home, e.axes))
            return renamed(self.meanings[e.name], dict(zip(home, met, strict=True)))
        if isinstance(e, Axis):
            return Mul(*self.along[e])
        if isinstance(e, At):
            operand, index = map(self._translated, (e.operand, e.index))
            return read_along(e, operand, index, self.along)
        if isinstance(e, ArrayNode):
            return taken_along(e, [*map(self._translated, e.operands)], self.along)
        return with_args(e, map(self._translated, e.args)) if e.args else e
