"""The graph becomes statements of the notation: one pass, forwards.

Every node becomes a `TreeValue`: an expression over named axes, and what each dimension is. What an
operation means is a rule of ``operations``; this loop knows none.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch

from codegen.importing.asked import GIVEN, GUESSED, LABELS, MASK, Argument, axes_of
from codegen.importing.blocks import BlockLoop
from codegen.importing.calls import OTHER_WAY, given_to, operation_of
from codegen.importing.examples import IGNORED
from codegen.importing.lengths import is_made
from codegen.importing.made import NONE
from codegen.importing.names import OF_SYMPY, assigned_names, is_taken, plain_name
from codegen.importing.shapes import NamedShapes, name_of
from codegen.importing.sizes import Sizes
from codegen.importing.trace import Traced
from codegen.importing.values import (
    CONDITION,
    LABEL,
    NUMBER,
    OUTSIDE,
    Declared,
    Dim,
    Refused,
    TracedStatement,
    TreeValue,
    needed_of,
)
from derive.language.errors import QuestionError
from derive.language.torch_ops import trees
from derive.language.torch_ops.refused import refused
from derive.language.torch_ops.trees import Tree

DEEPEST = 10  # nodes inside of each other, on one line
UNNAMED = "z"  # what a value is called of which nothing else is known
ONE_AXIS = "One"  # along which a dimension of size 1 of an input lies
MARK = "?"  # how no tensor is called
NAMELESS = ("tensor", "number", "position", "rename", "kept")  # need no line of their own
KEEP_PARTS = ("slice", "slice_scatter", "select_scatter", "alias", "clone", "detach", "contiguous")
CUT = "wrap_with_set_grad_enabled"
WITHOUT_GRAPH = "leave it out where torch.autograd.grad is not called on what it computes"


def _known(name: str, value: Any) -> Any:
    """Of a view of what is empty nothing is known to be written."""
    if isinstance(value, list):
        return [_known(name, one) for one in value]
    if isinstance(value, TreeValue) and value.parts and name not in KEEP_PARTS:
        return replace(value, parts=())
    return value


class Reader:
    """Reads a trace. ``statements``, ``declared`` and ``scalars`` (names of floats) are found.

    ``ignoring`` says whether labels of -100 are left out where torch does that unasked: the graph
    does not show an argument that has its default. ``prefix`` goes before the names of statements,
    none of which is among ``taken``. ``shapes`` knows the axes that the values of nodes lie along.
    """

    def __init__(self, traced: Traced, ignoring=True, taken: Iterable[str] = (), named=NONE):
        self.sizes = Sizes(traced.sizes)
        self.shapes = NamedShapes(self.sizes, named.meant)
        self.floats = named
        self.traced, self.ignoring, self.prefix = traced, ignoring, ""
        self.statements: list[TracedStatement] = []
        self.declared: list[Declared] = []
        self.known: dict[Tree, Tree] = {}  # what is a statement, and what it is called
        self.ignored: dict[str, int] = {}
        self.theirs: dict[str, str] = {}  # of a statement, where the user's line names it
        self.returned: list[str] = []
        self.ordered: dict[str, list[str]] = {}
        self.loops: list[BlockLoop] = []
        self.values: dict[torch.fx.Node, Any] = {}
        self.node: torch.fx.Node | None = None
        self.sizes.taken |= {*taken, *(axis for a in traced.arguments for axis in a.axes)}
        self.assigned = assigned_names(traced.nodes, traced.file)
        self._call_axes()
        for argument, node in zip(traced.arguments, traced.placeholders, strict=False):
            self.declare(argument, node)
        self.scalars = named.called(lambda name: self.free_name(name, argument=True))
        for name, constant in traced.constants.items():
            self._lifted(name, constant)

    # Inputs

    def _call_axes(self) -> None:
        """Names for the axes that are called by expressions; what these are made of comes first."""
        made = [axis for axis in axes_of(self.traced.arguments) if is_made(axis)]
        if made:
            self.sizes.taken |= {*self.traced.sizes}
            for argument, node in zip(
                self.traced.arguments, self.traced.placeholders, strict=False
            ):
                for axis, size in zip(argument.axes, node.meta["val"].shape, strict=True):
                    if axis.isidentifier():
                        self.sizes.declare(axis, size)
            self.sizes.call(made)

    def declare(self, argument: Argument, node: torch.fx.Node) -> None:
        """An argument as an input of the forward, and as the value of its placeholder."""
        name = self.free_name(argument.name, argument=True)
        dims: list[Dim] = []
        for axis, size in zip(argument.axes, node.meta["val"].shape, strict=True):
            if axis == "1":
                dims.append(())
                continue
            used = {a for dim in dims for a in dim}
            if axis.isdigit():
                fixed = self.sizes.plain(int(axis))
                dims.append((self.sizes.axis_of(fixed, used),))
                continue
            axis = self.sizes.called.get(axis, axis)
            self.sizes.declare(axis, size)
            if axis.startswith(GUESSED):
                self.shapes.guessed.add(axis)
            dims.append((axis if axis not in used else self.sizes.again(axis, used),))
        self.declared.append(Declared(name, tuple(dims), argument.kind))
        tree = trees.tensor(name, [axis for dim in dims for axis in dim])
        if () in dims:
            whole = replace(tree, free=tree.free | {ONE_AXIS})
            tree = trees.total(whole, [ONE_AXIS])
        kind = {LABELS: LABEL}.get(argument.kind, NUMBER)
        if argument.kind == MASK:
            tree, kind = trees.compared("!=", tree, trees.ZERO), CONDITION
        self.values[node] = TreeValue(tree, tuple(dims), kind)

    def _lifted(self, name: str, constant: torch.Tensor | None) -> None:
        """A tensor that the function did not get as an argument, where it is what was typed."""
        node = next(n for n in self.traced.nodes if n.name == name)
        if constant is not None and node.users and not constant.requires_grad:
            for value in self.shapes.typed(constant):
                self.values[node] = value

    # The pass

    def run(self, late: Callable[[], None] | None = None, after: Iterable = ()) -> None:
        """Values of all nodes. ``late`` is called as soon as those of ``after`` are known, before
        anything that comes behind them; what it needs it finds in ``values``.

        Raises `QuestionError`, with the user's line, where an operation is not understood.
        """
        waiting = {node for node in after if isinstance(node, torch.fx.Node)}
        needed = self.traced.needed
        for node in self.traced.nodes:
            if node.op == "call_function" and node in needed:
                try:
                    self.values[node] = self._value_of(node)
                except QuestionError as error:
                    place = self.traced.place(node)
                    raise (error.at(place) if place else error) from None
            waiting.discard(node)
            if late is not None and not waiting:
                late()
                late = None

    def _value_of(self, node: torch.fx.Node) -> Any:
        from codegen.importing.rules import checks, rules

        found = node.meta.get("val")
        if isinstance(found, torch.SymBool):
            return None  # a check of sizes
        if isinstance(found, (torch.SymInt, torch.SymFloat)):
            return self.sizes.plain(found)
        name = operation_of(node)
        if name == CUT:
            if node.args[0]:
                raise Refused("torch.enable_grad() makes a graph of its own", WITHOUT_GRAPH)
            raise Refused(
                "torch.no_grad() stops gradients, which is read only of .detach()",
                "write what it computes outside of it, with .detach() behind",
            )
        if name in checks:
            return None
        rule = rules.get(name)
        if rule is None:
            typed = self.traced.typed(node, name)
            if name in refused:
                why, remedy = refused[name]
                raise Refused(f"{typed}: {why}", remedy)
            raise Refused(f"{typed}: the operation {name} is not supported", OTHER_WAY)
        self.node = node
        value = _known(name, rule(self, **given_to(node, rule, self._argument)))
        return self._named(node, name, value) if isinstance(value, TreeValue) else value

    def _argument(self, of: Any) -> Any:
        if isinstance(of, torch.fx.Node):
            return self.values.get(of, OUTSIDE)
        return self.floats.meant(of)

    def _named(self, node: torch.fx.Node, operation: str, value: TreeValue) -> TreeValue:
        from codegen.importing.rules import names

        found = node.meta.get("val")
        if isinstance(found, torch.Tensor) and not found.is_floating_point():
            return value  # whole numbers, of which something is picked
        users = [user for user in node.users if isinstance(user.meta.get("val"), torch.Tensor)]
        if node in self.assigned:
            value = self.let(self.assigned[node], value)
            if value.tree.kind == "tensor":
                self.theirs.setdefault(value.tree.args[0], self.assigned[node])
            return value
        several = len(users) > 1 or (users and users[0].all_input_nodes.count(node) > 1)
        if several or trees.depth_of(value.tree) > DEEPEST:
            return self.let(names.get(operation, UNNAMED), value)
        return value

    # Of several values

    def pointwise(self, f: Callable[..., Tree], *values: object) -> TreeValue:
        """``f`` of expressions that are aligned; one that it writes down twice has a name first."""
        aligned, dims = self.shapes.aligned(*map(self.shapes.as_number, values))
        marks = [trees.tensor(f"{MARK}{i}", v.tree.free) for i, v in enumerate(aligned)]
        counts = trees.counts_of(f(*marks))
        named = [
            self.let(self.called(v), v) if counts.get(f"{MARK}{i}", 0) > 1 else v
            for i, v in enumerate(aligned)
        ]
        return TreeValue(f(*(v.tree for v in named)), dims)

    def sum_like(self, f: Callable[[Tree, Tree], Tree], a: object, b: object) -> TreeValue:
        """a + b or a - b: one side has the axes of the other, or `Broadcast` says so."""

        def both(x: Tree, y: Tree) -> Tree:
            if x.free - y.free and y.free - x.free:
                x = trees.broadcast(x, sorted(y.free - x.free))
            return f(x, y)

        return self.pointwise(both, a, b)

    # Statements

    def let(self, name: str, value: TreeValue) -> TreeValue:
        """A statement of that name, and the value as what it is called from then on."""
        if value.kind != NUMBER or value.tree.kind in NAMELESS:
            return value
        tree = self.shared(value.tree)
        if tree.kind in NAMELESS:
            return value.of(tree)
        name = self.free_name(name)
        line = self.traced.place(self.node) if self.node else None
        self.statements.append(TracedStatement(name, tree, value.dims, line.line if line else 0))
        self.known[tree] = trees.tensor(name, tree.free)
        return value.of(self.known[tree])

    def called(self, value: TreeValue) -> str:
        """By the operation that it came from."""
        from codegen.importing.rules import names

        for node in self.node.all_input_nodes if self.node else ():
            known = self.values.get(node)
            if (
                isinstance(known, TreeValue)
                and known.tree == value.tree
                and node.op != "placeholder"
            ):
                return names.get(operation_of(node), UNNAMED)
        return UNNAMED

    def shared(self, tree: Tree) -> Tree:
        """A value that is a statement already, by its name."""
        if tree in self.known:
            return self.known[tree]
        args = tuple(self.shared(a) if isinstance(a, Tree) else a for a in tree.args)
        tree = replace(tree, args=args)
        return self.known.get(tree, tree)

    def written_as(self, tree: Tree) -> Tree:
        """The expression of a statement that is called by its name."""
        return next((s.tree for s in self.statements if self.known[s.tree] == tree), tree)

    def ignore(self, label: TreeValue, number: int | None) -> None:
        """The labels that are this number pick nothing; None is any that is said elsewhere."""
        name = name_of(label.tree)
        before = self.ignored.get(name)
        number = (IGNORED if before is None else before) if number is None else number
        if before not in (None, number):
            raise Refused(
                f"labels {name} are ignored at {before} and at {number}",
                "use one ignore_index",
            )
        self.ignored[name] = number

    def free_name(self, wanted: str, argument: bool = False) -> str:
        """``wanted``, or that and a number; an argument may be called ``cos`` or ``input``."""
        may_be = argument and (wanted in OF_SYMPY or hasattr(builtins, wanted))
        base, k = self.prefix + plain_name(wanted), 2
        name = base
        while self._is_taken(name) and not (may_be and name == wanted):
            name, k = f"{base}{k}", k + 1
        self.sizes.taken.add(name)
        return name

    def _is_taken(self, name: str) -> bool:
        """Also what would be the gradient of another tensor, or have one as its own."""
        taken = self.sizes.taken
        of_gradients = (name[:1] == "d" and name[1:] in taken) or f"d{name}" in taken
        return of_gradients or name in taken or name in self.sizes.of_axis or is_taken(name)

    def finish(self, *outputs: TreeValue, name: str = "y") -> None:
        """The outputs as the last statements, with an axis for each of their dimensions."""
        try:
            self.returned = [self._finished(output, name) for output in outputs]
        except QuestionError as error:
            place = self.traced.place(self.node) if self.node else None
            raise (error.at(place) if place else error) from None
        last = [s for s in self.statements if s.name in self.returned]
        before = [s for s in self.statements if s.name not in self.returned]
        moved = before + last if len(last) == 1 else self.statements
        self.statements = needed_of(moved, self.returned)

    def _finished(self, output: TreeValue, name: str) -> str:
        """The name of a statement, or of an input, that is this output."""
        value = self.as_output(output)
        value = value.of(self.shared(trees.broadcast(value.tree, value.axes)))
        last = next((s for s in self.statements if value.tree == self.known[s.tree]), None)
        if last is None:
            name = self.free_name(name if value.axes else "loss")
            place = self.traced.place(self.node) if self.node else None
            last = TracedStatement(name, value.tree, value.dims, place.line if place else 0)
            self.statements.append(last)
            self.known[value.tree] = trees.tensor(name, value.tree.free)
        return last.name

    def as_output(self, value: TreeValue) -> TreeValue:
        """With an axis for each dimension, the user's own where it can be."""
        value = self.shapes.as_number(value)
        for i in range(value.rank):
            value = self.shapes.plain(value, i)
        return self._at_home(value)

    def _at_home(self, value: TreeValue) -> TreeValue:
        """Along the user's own axes, where a sibling of one stands for it."""
        users = {axis for d in self.declared for dim in d.dims for axis in dim}
        to: dict[str, str] = {}
        for axis in value.axes:
            size = self.sizes.of_axis[axis]
            same = (a for a in self.sizes.hints if a in users and self.sizes.of_axis[a] == size)
            home = next((a for a in same if a not in {*value.axes, *to.values()}), None)
            if home and axis not in self.sizes.hints and axis not in self.shapes.windows:
                to[axis] = home
        dims = [tuple(to.get(axis, axis) for axis in dim) for dim in value.dims]
        return self.shapes.moved(value, dims)

    @property
    def inputs(self) -> list[Declared]:
        """The declarations, with the kinds that were found."""
        known = self.ignored
        return [replace(d, kind=self._kind(d), ignored=known.get(d.name)) for d in self.declared]

    def _kind(self, declared: Declared) -> str:
        """Labels that are only met as numbers are given; so is what is only compared."""
        if declared.kind == LABELS and declared.name in self.shapes.compared:
            if declared.name in {*self.shapes.indices, *self.ignored}:
                raise Refused(
                    f"{declared.name} is an index in one place and a number in another",
                    "pass it as two arguments",
                )
            return GIVEN
        if declared.kind == MASK or (declared.kind == "" and self._only_compared(declared.name)):
            return GIVEN
        return declared.kind

    def _only_compared(self, name: str) -> bool:
        found = [trees.met_in(s.tree, name) for s in self.statements]
        return any(c for c, _ in found) and not any(v for _, v in found)
