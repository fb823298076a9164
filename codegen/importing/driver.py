"""An import, stage by stage.

subject_of   what is asked     -> Subject     a function or a module; its file is run
example_of   Subject           -> Example     sizes and kinds of arguments for which it runs
trace        Example           -> Traced      a graph of operations, sizes as symbols
Reader.run   Traced            -> statements  every operation by its rule; twice, at other sizes
written      statements        -> Written     the file with the forward
forward_from Written           -> Forward     read back as any other
compared     Forward           -> Agreement   beside the function, in numbers
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sympy
import torch

from codegen.importing.asked import GIVEN, arguments_of, axes_of, options_of, sizes_of
from codegen.importing.beyond import beyond
from codegen.importing.blocks import as_one_block
from codegen.importing.comparing import Agreement, NumericComparison, compared
from codegen.importing.examples import SECOND, Example, axes_in, drawn, leaves_out, run
from codegen.importing.guessing import guessed_for
from codegen.importing.lengths import fitted
from codegen.importing.made import Floats, functions_keep, with_names
from codegen.importing.reader import Reader
from codegen.importing.relations import relations_of
from codegen.importing.states import written_into
from codegen.importing.subjects import Subject, subject_of
from codegen.importing.trace import Traced, trace
from codegen.importing.values import TreeValue
from codegen.importing.writing import Written, class_name, written
from derive.language.errors import LONGEST, NotationError, Place, QuestionError
from derive.language.names import snake_case
from derive.language.notation.completeness import generated_names
from derive.language.notation.forward import Forward
from derive.language.notation.library import forward_from
from derive.language.torch_ops.text import text

ENDING = "_forward.py"  # of the file written; the generated module is NAME.py
NUMBER_HERE = "a size becomes a Python number here, so the result is valid only for that size"
OF_SIZES = "keep sizes symbols: + - * /, ** and math.sqrt of x.shape[0]; no range, int or math.log"
ONE_BRANCH = "import one branch as a separate function"
OTHER_SIZES = "the function computes something else at other sizes: import one of its branches"


@dataclass(frozen=True)
class Imported:
    """A forward, its file's text, its agreement with the function, and its conditions on sizes."""

    subject: Subject
    forward: type[Forward]
    text: str
    agreement: Agreement
    notes: tuple[str, ...] = ()  # side effects of the function, and floats kept as constants
    needs: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        return f"{snake_case(self.forward.__name__)}{ENDING}"


def from_torch(
    function: Callable | torch.nn.Module,
    axes: str | Mapping[str, str],
    sizes: str | Mapping[str, int] = "",
    options: str | Mapping[str, Any] = "",
) -> type[Forward]:
    """The forward that a torch function or module computes.

    ``axes`` names the axes of its tensors, ``"x: N C, labels: N"``; parameters of a module need
    none. ``sizes`` are those of an example, if the function does not accept all sizes,
    ``options`` values of non-tensor arguments: ``"temperature=0.07"``. The forward is
    compared numerically with the function before it is returned.

    Raises `QuestionError`, with file and line, for code that the notation cannot express.
    """
    return imported(function, axes, sizes, options).forward


def imported(
    asked: str | Callable,
    axes: str | Mapping[str, str],
    sizes: str | Mapping[str, int] = "",
    options: str | Mapping[str, Any] = "",
) -> Imported:
    """Import ``FILE.py:function`` or an object, with all details of the result."""
    subject = subject_of(asked, options_of(options))
    arguments = (*arguments_of(axes),)
    subject.check(arguments)
    arguments, example = guessed_for(subject, arguments, sizes_of(sizes), read)
    example = replace(example, arguments=arguments, ignoring=leaves_out(subject, example))
    found, stay = with_names(
        lambda floats: _imported(subject, example, floats), subject.floats(arguments)
    )
    notes = (*written_into(subject, example), *stay)
    first, rest = found.text.split("\n", 1)
    return replace(found, text="\n".join([first, *(f"# {n}" for n in notes), rest]), notes=notes)


def _imported(subject: Subject, example: Example, floats: Mapping[str, float]) -> Imported:
    """Import with these floats as scalars."""
    arguments = example.arguments
    reader = read(subject, example, example.sizes, Floats(floats))
    _again(subject, example, reader)
    buffers = frozenset(
        d.name for d, a in zip(reader.inputs, arguments, strict=True) if a.kind == GIVEN
    )
    file = written(reader, subject, buffers)
    forward = read_back(file, subject)
    reader.ordered = _turned(reader, forward)
    if reader.ordered:
        file = written(reader, subject, buffers)
        forward = read_back(file, subject)
    names = file.names
    inputs = [replace(d, name=names.get(d.name, d.name)) for d in reader.inputs]
    high = {names.get(name, name): sorted(of) for name, of in reader.shapes.indices.items()}
    sizes_of_axes = reader.sizes.of_all
    own = {t.name for t, _ in forward.definition.scalars}
    scalars = {p: names.get(n, n) for p, n in reader.scalars.items() if names.get(n, n) in own}
    comparison = NumericComparison(
        subject, arguments, forward.definition, inputs, high, sizes_of_axes,
        {name: (path, floats[path]) for path, name in scalars.items()}, loops=reader.loops,
    )  # fmt: skip
    related = relations_of(forward.definition, reader.sizes, arguments)
    example = replace(example, recipe=related.over(example.recipe))
    agreement = compared(comparison, example, beyond(reader))
    return Imported(subject, forward, file.text, agreement, needs=related.words)


def read(
    subject: Subject, example: Example, sizes: Mapping[str, int], floats: Floats | None = None
) -> Reader:
    """Trace the function at these sizes and read the graph. Raises `QuestionError`,
    and `FloatRead`.
    """
    arguments = example.arguments
    floats = floats or Floats()
    module = subject.at(floats.near()).module(arguments)
    with functions_keep(floats), as_one_block(subject.function) as loops:
        traced = trace(module, arguments, drawn(arguments, sizes), sizes, subject.file)
    floats.check()
    _refuse_changes(traced, subject)
    taken = generated_names(class_name(subject.name))
    reader = Reader(traced, example.ignoring, taken, floats)
    try:
        reader.run()
        reader.loops = [replace(loop, end=reader.sizes.plain(loop.end)) for loop in loops]
        reader.finish(*_outputs(traced, reader, subject))
    except QuestionError as error:
        raise error.at(subject.place) from None
    return reader


def _refuse_changes(traced: Traced, subject: Subject) -> None:
    changed = [n for n in traced.changed if any(p.name == n for p in traced.placeholders)]
    if changed:
        names = [p.name for p in traced.placeholders]
        own = (traced.arguments[names.index(name)] for name in changed)
        loud = [a.name for a in own if a.name not in subject.of_module and a.kind != GIVEN]
        if not loud:
            return  # reported as having no gradient (`states`)
        argument = loud[0]
        raise QuestionError(
            f"{subject.name} modifies its argument {argument} in place",
            f"work on a copy: {argument} = {argument}.clone()",
            subject.place,
        )


def _outputs(traced: Traced, reader: Reader, subject: Subject) -> list[TreeValue]:
    """The tensors the function returns."""
    outputs = [out for out in traced.outputs if out is not None]
    values = [reader.values.get(out) if isinstance(out, torch.fx.Node) else None for out in outputs]
    if not values or not all(isinstance(value, TreeValue) for value in values):
        raise QuestionError(
            f"{subject.name} returns something that is not a tensor",
            "return tensors computed from the arguments",
            subject.place,
        )
    reader.node = outputs[-1]
    return values


def _turned(reader: Reader, forward: type[Forward]) -> dict[str, list[str]]:
    """Outputs whose dimensions the function returns in another order, with that order."""
    found = {}
    for name, output in zip(reader.returned, forward.definition.outputs, strict=True):
        wanted = next((s for s in reader.statements if s.name == name), None)
        axes = [axis for dim in wanted.dims for axis in dim] if wanted else []
        home = [axis.name for axis in output.home]
        if sorted(home) == sorted(axes) and home != axes:
            found[name] = axes
    return found


def _again(subject: Subject, example: Example, reader: Reader) -> None:
    """Trace at other sizes; a line that comes out differently depends on them in a hidden way."""
    axes = axes_in(example.arguments)
    row = SECOND[: len(axes)][::-1]
    other = {**dict(zip(axes, row, strict=False)), **example.asked}
    other = fitted(axes_of(example.arguments), other, example.asked, apart=True)
    sizes = next((way for way in example.ways(other) if _runs(subject, example, way)), None)
    floats = Floats(reader.floats.defaults, trace=1)
    if sizes is None:
        if not floats.defaults:
            return
        sizes = example.sizes
    second = read(subject, example, sizes, floats)
    pairs = zip(reader.statements, second.statements, strict=False)
    for one, two in pairs:
        texts = [text(s.tree, lambda axis: f"{axis}2") for s in (one, two)]
        if texts[0] != texts[1]:
            _refuse_branch(reader, sizes)
            at = [", ".join(f"{a} = {s[a]}" for a in axes) for s in (example.sizes, sizes)]
            raise QuestionError(
                f"{one.name} is {_short(texts[0])} at {at[0]}, and {_short(texts[1])} at {at[1]}",
                OTHER_SIZES + "; or use x.shape[1] and math.sqrt instead of a Python number",
                Place(subject.file, one.line) if one.line else subject.place,
            )
    if len(reader.statements) != len(second.statements):
        _refuse_branch(reader, sizes)
        raise QuestionError(
            f"{subject.name} has different steps at other sizes", OTHER_SIZES, subject.place
        )


def _refuse_branch(reader: Reader, sizes: Mapping[str, int]) -> None:
    """Refuse a line of the user's that branches on sizes."""
    known = {sympy.Symbol(axis): n for axis, n in sizes.items()}
    for relied, place in reader.traced.guards:
        held = reader.sizes.of_users(relied.xreplace(reader.sizes.symbols)).subs(known)
        if place and isinstance(relied, sympy.Eq) and held != sympy.true:
            raise QuestionError(NUMBER_HERE, OF_SIZES, place)
        if place and held == sympy.false:
            at = ", ".join(f"{axis} = {n}" for axis, n in sizes.items())
            raise QuestionError(f"it takes another branch at {at}", ONE_BRANCH, place)


def _short(words: str, most: int = LONGEST) -> str:
    return words if len(words) <= most else f"{words[:most]}..."


def _runs(subject: Subject, example: Example, sizes: Mapping[str, int]) -> bool:
    try:
        run(subject, example.arguments, drawn(example.arguments, sizes))
    except Exception:
        return False
    return True


def read_back(file: Written, subject: Subject) -> type[Forward]:
    """Load the forward from its text; the file lives as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="gradform_import_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / f"{snake_case(file.name)}{ENDING}"
    path.write_text(file.text, encoding="utf-8")
    try:
        return forward_from(path)
    except NotationError as error:
        line = file.lines.get(error.place.line if error.place else 0, 0)
        raise QuestionError(
            f"the notation does not allow this: {error.problem}",
            error.remedy,
            Place(subject.file, line) if line else subject.place,
        ) from None
