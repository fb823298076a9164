"""Gradients that the backward of a Function returns, as expressions over its own forward.

In: a `FunctionSubject` and the axes of its tensors. Out: its forward in the notation, and a
`GradientClaim` for each argument that a gradient is needed for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from sympy import Expr

from codegen.backwards.expressed import Expressed, with_told
from codegen.backwards.functions import BACKWARD, Both, FunctionSubject, Seen
from codegen.backwards.lines import returning
from codegen.backwards.refused import misshapen, raised
from codegen.backwards.speech import spoken_for
from codegen.backwards.turn import Turn, give_sizes
from codegen.importing.asked import GIVEN, KINDS, Argument
from codegen.importing.comparing import Scalars
from codegen.importing.double import in_double, run_in_double
from codegen.importing.driver import read_back
from codegen.importing.examples import Example, drawn, example_of
from codegen.importing.lattices import refuse_lattice
from codegen.importing.made import Floats, functions_keep
from codegen.importing.reader import Declared, Reader
from codegen.importing.relations import relations_of
from codegen.importing.trace import Traced, quiet, trace
from codegen.importing.values import Dims, TreeValue
from codegen.importing.writing import class_name, written
from derive.claims.checking.words.spoken import AS_NAMED, Spoken
from derive.claims.reading import TextLine
from derive.language.errors import QuestionError
from derive.language.notation.completeness import generated_names
from derive.language.notation.definition import Definition
from derive.language.symbols import Axis, Tensor
from derive.language.torch_ops import trees


@dataclass(frozen=True)
class GradientClaim:
    """The gradient of the argument ``name``: an expression, None where nothing was returned;
    ``problem`` is the mismatch if it does not have that argument's shape. ``line`` is the user's.
    """

    name: str
    expression: Expr | None
    line: int = 0
    problem: str = ""
    argument: str = ""  # the user's name
    numbers: Mapping[str, Expr] = field(default_factory=dict)  # that are typed in it
    with_numbers: Callable[[Mapping[Expr, Expr]], Expr] | None = None
    lines: tuple[TextLine, ...] = ()  # named values of the backward

    def is_zero(self, closed: Mapping[str, Expr]) -> bool:
        """True if None was returned for an argument without influence or without a derivative."""
        none = self.expression is None and not self.problem
        return none and closed.get(f"d{self.name}", 0) == 0


@dataclass(frozen=True)
class Backward:
    """The forward of a Function, and its returned gradients; ``between`` names saved values, other
    than inputs and outputs, that the backward reads.
    """

    definition: Definition
    said: tuple[GradientClaim, ...]
    between: tuple[str, ...]
    example: Example
    both: Both
    inputs: Sequence[Declared] = ()
    indexed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    of_axis: Mapping[str, Expr] = field(default_factory=dict)  # sizes in those of the user's axes
    unignored: bool = False  # labels that torch would leave out are taken for none such
    outputs: tuple[tuple[str | None, ...], ...] = ()  # the axes of each as torch has them
    needs: tuple[str, ...] = ()  # sizes that depend on others
    spoken: Spoken = AS_NAMED
    scalars: Scalars = field(default_factory=dict)
    text: str = ""  # of the forward's file


def backward_of(
    subject: FunctionSubject,
    arguments: Sequence[Argument],
    sizes: Mapping[str, int],
    floats: Mapping[str, float],
) -> Backward:
    """Trace both with these options as scalars. Raises `QuestionError` for unsupported code,
    `FloatRead` if it looks at the value of a scalar, and `Raises`.
    """
    subject.check(arguments)
    order = {p.name: i for i, p in enumerate(subject.parameters)}
    arguments = tuple(sorted(arguments, key=lambda a: order[a.name]))
    example = example_of(subject, arguments, sizes)
    refuse_lattice(subject, example)
    found = _Backward(subject, example, Floats(floats)).read()
    if floats:
        again = _Backward(subject, example, Floats(floats, trace=1)).read()
        one, other = ([b.text, *(str(s.expression) for s in b.said)] for b in (found, again))
        if one != other:
            raise QuestionError("it is another Function for other values", "", subject.place)
    return found


class _Backward:
    """The reading of one Function at one choice of sizes."""

    def __init__(self, subject: FunctionSubject, example: Example, floats: Floats):
        self.subject, self.example, self.floats = subject, example, floats
        self.arguments = example.arguments
        kinds = {a.name: a.kind for a in self.arguments}
        self.needs = [kinds.get(p.name, GIVEN) not in KINDS for p in self.subject.parameters]
        self.noted = Seen()
        self.both = Both(subject.at(floats.near()), self.arguments, self.needs, self.noted)

    def read(self) -> Backward:
        self.tensors = drawn(self.arguments, self.example.sizes)
        with torch.no_grad():
            self.ups = self._run()
            noted = replace(self.noted)
            with in_double(), functions_keep(self.floats):
                traced = trace(
                    self.both, self.arguments, [*self.tensors, *self.ups],
                    self.example.sizes, self.subject.file,
                )  # fmt: skip
        ignoring = "ignore_index" in self.subject.source
        taken = generated_names(class_name(self.subject.name))
        self.floats.check()
        reader = Reader(traced, ignoring, taken, self.floats)
        return self._read(traced, reader, noted)

    def _run(self) -> list[torch.Tensor]:
        """The upstream gradients, after a run that shows whether the backward raises."""
        with quiet(), run_in_double():
            outputs = self.both.outputs(self.tensors)
            if not outputs:
                raise QuestionError(
                    f"{self.subject.name} returns nothing differentiable",
                    "return a floating-point tensor",
                    self.subject.place,
                )
            ups = [torch.randn(y.shape, dtype=torch.float64) for y in outputs]
            try:
                self.both(*(t.clone() for t in (*self.tensors, *ups)))
            except Exception as error:
                if self.noted.phase != BACKWARD:
                    raise
                raise raised(error, self.subject.file) from None
        return ups

    def _read(self, traced: Traced, reader: Reader, noted: Seen) -> Backward:
        """One pass, in which the upstream gradient arrives when the outputs are known."""
        outs, count = traced.outputs, sum(noted.gradients)
        ys, grads = outs[: noted.outputs], outs[noted.outputs : noted.outputs + count]
        places = traced.placeholders[len(self.arguments) :]
        give_sizes(reader, places, ys)
        turn = Turn(reader, places, ys, self.subject.upstreams)
        reader.run(turn.arrive, ys)
        behind, reader.statements = reader.statements, turn.ahead
        given = frozenset(d.name for d in reader.inputs if d.kind == GIVEN)
        text = written(reader, self.subject, given)
        known = {text.names.get(d.name, d.name): d for d in reader.inputs[: len(self.arguments)]}
        definition = _with_idle(read_back(text, self.subject).definition, known)
        definition = with_told(definition, reader)
        lines = [*turn.made, *behind]
        mapped = Expressed(reader, definition, lines, times_upstream=len(ys) > 1)
        said = tuple(self._said(reader, mapped, traced, grads, noted))
        related = relations_of(mapped.definition, reader.sizes, self.arguments)
        return Backward(
            definition=mapped.definition,
            said=said,
            between=self._between(traced, reader, outs[noted.outputs + count :], noted, ys),
            example=replace(self.example, recipe=related.over(self.example.recipe)),
            both=Both(self.subject, self.arguments, self.needs, Seen()),
            inputs=reader.inputs[: len(self.arguments)],
            indexed=reader.shapes.indices,
            of_axis=reader.sizes.of_all,
            unignored=not reader.ignoring and any(map(_ignores, traced.nodes)),
            outputs=tuple(tuple(dim[0] if dim else None for dim in dims) for dims in turn.along),
            needs=related.words,
            spoken=spoken_for(reader, mapped.definition, self.arguments, turn.names),
            scalars=_scalars_of(mapped.definition, reader, text.names),
            text=text.text,
        )

    def _said(self, reader, mapped, traced, grads, noted):
        """Yield a `GradientClaim` for each argument: the gradient that is returned for it."""
        found = iter(grads)
        names = {a.name: d for a, d in zip(self.arguments, reader.declared, strict=False)}
        shapes = {a.name: tuple(t.shape) for a, t in zip(self.arguments, self.tensors, strict=True)}
        given = [*noted.gradients, *[False] * len(self.subject.parameters)]
        for i, p in enumerate(self.subject.parameters):
            node = next(found) if given[i] else None
            declared = names.get(p.name)
            if declared is None or not self.needs[i]:
                continue
            if node is None:
                yield GradientClaim(declared.name, None, argument=p.name)
                continue
            place = traced.place(node)
            line = place.line if place else returning(self.subject)
            problem = self._refused(noted) or misshapen(
                shapes[p.name], noted.shapes[i], declared.name
            )
            if problem:
                yield GradientClaim(declared.name, None, line, problem, p.name)
                continue
            value = node if not isinstance(node, torch.fx.Node) else reader.values[node]
            tree = _reduced(reader, reader.shapes.as_number(value), declared.dims)
            yield GradientClaim(
                declared.name, mapped.gradient(tree), line, "", p.name, mapped.typed_in(tree),
                partial(mapped.with_numbers, tree), tuple(mapped.lines(self.subject.file)),
            )  # fmt: skip

    def _refused(self, noted: Seen) -> str:
        """The reason why torch rejects all gradients; empty if it does not."""
        returned, names = len(noted.gradients), [p.name for p in self.subject.parameters]
        tensors = {a.name for a in self.arguments}
        wrong = ""
        if returned < len(names) or any(noted.gradients[len(names) :]):
            wrong = f"{returned} gradients for {len(names)} arguments"
        for name, given in zip(names, noted.gradients, strict=False):
            if given and name not in tensors:
                wrong = wrong or f"a gradient for {name}, which is no tensor"
        return f"backward returns {wrong}: torch raises an error" if wrong else ""

    def _between(self, traced, reader, kept, noted, ys) -> tuple[str, ...]:
        """Names of saved values that are read and are neither inputs nor outputs."""
        order = {node: i for i, node in enumerate(traced.nodes)}
        names = []
        for i in noted.between:
            node = kept[i]
            later = isinstance(node, torch.fx.Node) and any(
                order[user] > max(order[y] for y in ys) and user.op != "output"
                for user in node.users
            )
            value = reader.values.get(node) if later else None
            if isinstance(value, TreeValue) and trees.tensors_in(value.tree):
                names.append(reader.assigned.get(node) or self._called(value))
        return tuple(dict.fromkeys(names))

    def _called(self, value: TreeValue) -> str:
        if value.tree.kind != "tensor":
            return "an intermediate"
        name = value.tree.args[0]
        return f"a view of {name}" if name in {a.name for a in self.arguments} else name


def _with_idle(definition: Definition, known: Mapping[str, Declared]) -> Definition:
    """The definition with arguments that do not affect the output, as for some values of an option:
    the backward returns gradients for them, and may read them.
    """
    axes = {axis.name: axis for axis in definition.axes}
    met = {t.name for t in definition.inputs}
    idle = []
    for name, declared in known.items():
        if name not in met and declared.kind not in KINDS:
            along = [axis for dim in declared.dims for axis in dim]
            axes |= {axis: Axis(axis) for axis in along if axis not in axes}
            idle.append(Tensor(name, [axes[axis] for axis in along]))
    inputs = (*definition.inputs, *idle)
    return replace(definition, inputs=inputs, axes=tuple(axes.values()))


def _scalars_of(definition: Definition, reader: Reader, names: Mapping[str, str]) -> Scalars:
    own = {t.name for t, _ in definition.scalars}
    called = {names.get(name, name): option for option, name in reader.scalars.items()}
    return {n: (o, reader.floats.defaults[o]) for n, o in called.items() if n in own}


def _reduced(reader: Reader, value: TreeValue, dims: Dims) -> trees.Tree:
    """A gradient along its argument's dimensions, summed over broadcast ones as in autograd."""
    extra = value.rank - len(dims)
    tree, own = value.tree, [*value.dims]
    for i, dim in enumerate(own):
        if dim and (i < extra or not dims[i - extra]):
            free = [a for a in dim if a in tree.free]
            less = reader.sizes.of(tuple(a for a in dim if a not in tree.free))
            tree = trees.product(trees.number(less), trees.total(tree, free))
            own[i] = ()
    left = TreeValue(tree, tuple(own[extra:]))
    return reader.shapes.moved(left, dims).tree


def _ignores(node: torch.fx.Node) -> bool:
    """True if an operation ignores labels of -100 by default."""
    schema = getattr(node.target, "_schema", None)
    return bool(schema) and any(a.name == "ignore_index" for a in schema.arguments)
