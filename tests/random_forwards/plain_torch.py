"""Runs a file of forwards as plain torch: its class bodies, line by line, on named tensors.

    result = evaluate(text, "Loss", {"x": x, "labels": labels})
    result.output.data, result.statements["mean"].data

Arguments have one dimension for each of their axes; what is left out is its default. Of the text
the imports are read, not followed, so that SymPy and `derive` stay out of it; a class body is run
by Python in a namespace that binds its declarations to the arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from random_forwards import named
from random_forwards.named import DOUBLE, Axis, Named

GALLERY = Path(__file__).parents[2] / "derive" / "math"
TENSORS = ("Input", "Given", "Label")


@dataclass(frozen=True)
class Declared:
    """What a declaration says: its kind, its axes and what was written in it."""

    kind: str
    axes: tuple = ()
    options: Mapping = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """The values of a forward's statements, each by its name; the last one is the output. Where
    the largest of some entries or a sign was ``decided_by_rounding``, nobody can say where the
    gradient goes; where one was ``at_an_end`` of what a function is defined on, the gradients of
    statements on the way have several values.
    """

    statements: dict[str, Named]
    decided_by_rounding: bool = False
    at_an_end: bool = False

    @property
    def output(self) -> Named:
        return list(self.statements.values())[-1]


def evaluate(text: str, name: str, arguments: Mapping[str, object]) -> Result:
    """Every statement of the forward called ``name`` in ``text``.

    A label that is ignored is passed as -1.
    """
    named.sizes.clear()
    named.made_after.clear()
    named.decided_by_rounding.clear()
    named.at_an_end.clear()
    return _module(text)[name].run(arguments)


def _module(text: str) -> dict:
    """The names that a file defines, its forwards as `PlainForward`."""
    names: dict[str, object] = {"__builtins__": __builtins__}
    for line in ast.parse(text).body:
        if isinstance(line, ast.ImportFrom):
            names |= _imported(line)
        elif isinstance(line, ast.ClassDef):
            names[line.name] = PlainForward(line, names)
        else:
            exec(compile(ast.Module([line], []), "<forward>", "exec"), names)
    return names


def _imported(line: ast.ImportFrom) -> dict:
    if line.module == "sympy":
        source = named.SYMPY
    elif line.module == "derive":
        source = named.DERIVE | {kind: _declaration(kind) for kind in (*TENSORS, "Scalar", "Size")}
        source["Forward"] = None
    elif line.module.startswith("derive.math."):
        source = _module((GALLERY / f"{line.module.split('.')[-1]}.py").read_text())
    else:
        return {}
    return {alias.asname or alias.name: source[alias.name] for alias in line.names}


def _declaration(kind: str):
    return lambda *axes, **options: Declared(kind, axes, options)


class PlainForward:
    """A class body that can be run."""

    def __init__(self, written: ast.ClassDef, names: dict):
        self.names = names
        self.code = compile(ast.Module(written.body, []), f"<{written.name}>", "exec")
        self.declared = self._declarations(written)
        self.renamings = [
            (call.args[1].id, call.args[2].id)
            for call in ast.walk(written)
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Rename"
        ]

    def _declarations(self, written: ast.ClassDef) -> dict[str, Declared]:
        """The arguments, in the order of a signature: tensors, sizes, numbers."""
        found: dict[str, Declared] = {}
        for line in written.body:
            call = line.value if isinstance(line, ast.Assign) else None
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in (
                *TENSORS,
                "Scalar",
                "Size",
            ):
                kind = call.func.id
                axes = () if kind == "Scalar" else tuple(self.names[a.id] for a in call.args)
                found[line.targets[0].id] = Declared(kind, axes)
        order = (TENSORS, ("Size",), ("Scalar",))
        return {n: d for kinds in order for n, d in found.items() if d.kind in kinds}

    def run(self, arguments: Mapping[str, object]) -> Result:
        body = _Body(self.declared, arguments)
        for old, new in self.renamings:  # a size may be used in a line before
            old, new = self.names[old], self.names[new].name
            if old.length is not None or old.name in named.sizes:
                named.sizes.setdefault(new, named.size_of(old))
        exec(self.code, self.names, body)
        return Result(body.statements, any(named.decided_by_rounding), any(named.at_an_end))

    def __call__(self, *positional, **others) -> Named:
        """As a block of another forward: its axes are bound to those of the arguments by place."""
        given = dict(zip(self.declared, positional, strict=False)) | others
        bound: dict[str, tuple[str, ...]] = {}
        for name, value in given.items():
            if self.declared[name].kind == "Size":
                bound[self.declared[name].axes[0].name] = (value.name,)
            elif isinstance(value, Named):
                bound |= _bound(self.declared[name].axes, value.axes)
        caller, after = dict(named.sizes), dict(named.made_after)
        inner: dict[str, object] = {}
        for name, value in given.items():
            declared = self.declared[name]
            size = declared.kind == "Size"
            inner[name] = named.size_of(value) if size else _renamed_in(value, bound, declared)
        named.sizes.clear()
        named.made_after.clear()
        output = self.run(inner).output
        named.sizes.update(caller)
        named.made_after.clear()
        named.made_after.update(after)
        return _renamed_out(output, bound)


def _bound(formal, actual: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    rest, more = list(actual), len(actual) - len(formal)
    bound = {}
    for axis in formal:
        count = 1 + more if axis.several else 1
        bound[axis.name], rest = tuple(rest[:count]), rest[count:]
    return bound


def _renamed_in(value, bound, declared: Declared):
    """An argument under the names of the callee; the several axes of an `Axes` become one."""
    if not isinstance(value, Named) or isinstance(value, Axis) or not value.axes:
        return value
    formal = [axis.name for axis in declared.axes]
    data = value.along([axis for name in formal for axis in bound[name]])
    counts = [len(bound[name]) for name in formal]
    for i, count in enumerate(counts):
        if count == 0:
            data = data.unsqueeze(i)
        elif count > 1:
            data = data.flatten(i, i + count - 1)
    return Named(data, formal)


def _renamed_out(output: Named, bound) -> Named:
    data, axes = output.data, []
    for name in output.axes:
        own = bound.get(name, (name,))
        place = len(axes)
        if len(own) != 1:
            sizes = [named.sizes[axis] for axis in own]
            data = data.reshape([*data.shape[:place], *sizes, *data.shape[place + 1 :]])
        axes.extend(own)
    for axis, size in zip(axes, data.shape, strict=True):
        named.sizes.setdefault(axis, size)
    return Named(data, axes)


class _Body(dict):
    """The namespace of a class body: declarations become arguments, other lines statements."""

    def __init__(self, declared: Mapping[str, Declared], arguments: Mapping):
        super().__init__()
        self.arguments = arguments
        self.statements: dict[str, Named] = {}
        self.order: list[str] = []
        for name, declaration in declared.items():  # sizes may be used before their tensor
            value = arguments.get(name)
            if declaration.kind == "Size":
                named.sizes[declaration.axes[0].name] = value
            elif declaration.axes and value is not None:
                shape = value.data.shape if isinstance(value, Named) else value.shape
                if len(shape) == len(declaration.axes):
                    named.sizes.update(
                        {axis.name: n for axis, n in zip(declaration.axes, shape, strict=True)}
                    )
            if declaration.kind in TENSORS:
                self.order += [a.name for a in declaration.axes if a.name not in self.order]

    def __setitem__(self, name, value):
        if isinstance(value, Declared):
            value = self._argument(name, value)
        elif isinstance(value, Named) and not isinstance(value, Axis):
            value = self.statements[name] = self._stated(value)
        super().__setitem__(name, value)

    def _argument(self, name: str, declared: Declared):
        if declared.kind == "Size":
            return declared.axes[0]
        value = self.arguments.get(name)
        if value is None:
            default = declared.options.get("default")
            value = declared.axes[0] if declared.kind == "Scalar" else default
        if isinstance(value, Named) or declared.kind == "Scalar":
            return value
        axes = [axis.name for axis in declared.axes]
        if isinstance(value, (int, float)):
            value = torch.full([named.sizes[axis] for axis in axes], float(value), dtype=DOUBLE)
        return Named(value, axes)

    def _stated(self, value: Named) -> Named:
        """A value of its own, so that autograd can be asked for its gradient, with the dimensions
        in the order of the axes.
        """
        for axis in value.axes:
            self._place(axis)
        axes = sorted(value.axes, key=self.order.index)
        return Named(value.along(axes).clone(), axes)

    def _place(self, axis: str) -> None:
        if axis not in self.order:
            if axis in named.made_after:
                self._place(named.made_after[axis])
                self.order.insert(self.order.index(named.made_after[axis]) + 1, axis)
            else:
                self.order.insert(0, axis)
