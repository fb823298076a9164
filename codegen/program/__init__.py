"""The Program: the computation in its order and shapes, with every decision made and in no language
yet.

In: nothing; it is a record. ``codegen.building`` fills it.
Out: what every target prints.

It stands between the closed form and the text of a target. Every value knows the dimensions that it
has (`Dim`), so that a printer neither counts axes nor chooses. All records are frozen.

A target implements one printing method for each `Value` class of ``values.py`` and ``arrays.py``,
and for each `Step` of ``steps.py``; ``tests`` hold it to that. ``parts.py`` walks through them.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.program.steps import InRange, Refuse, Step
from codegen.program.values import Value
from derive.gradient.closing.risks import Risk
from derive.language.notation.layout import Layout

NUMBERS = ("scalar", "index", "size", "shape")  # the roles of arguments that are no tensors


@dataclass(frozen=True)
class Parameter:
    """An argument: a tensor with its layout, or a number.

    ``default`` is its value if it is left out, for a tensor that of every entry; for a number it
    may be computed from sizes. ``role`` is 'input', 'given', 'label', 'kept' (a mask of labels),
    'statement', 'adjoint', and for non-tensors 'scalar', 'index' (the label that is ignored),
    'size' (the length of an axis) or 'shape' (the dimensions that an `Axes` stands for).
    """

    name: str
    layout: Layout = ()
    role: str = "input"
    default: float | Value | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(str(dim) for dim in self.layout)


@dataclass(frozen=True)
class Function:
    """A function of the generated module: arguments, lines, results.

    ``checks`` check and convert its arguments before its own ``steps``; ``sizes`` are (name,
    value): the sizes that these read off the shapes of the arguments.
    """

    name: str
    summary: str
    parameters: tuple[Parameter, ...]
    checks: tuple[Step, ...]
    sizes: tuple[tuple[str, Value], ...]
    steps: tuple[Step, ...]
    results: tuple[str, ...]
    result_class: str

    @property
    def tensors(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.role not in NUMBERS)

    @property
    def shapes(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.role == "shape")


@dataclass(frozen=True)
class Program:
    """Everything a target needs to write a module. ``notes`` are the lines of its docstring.

    ``sizes`` are (axis, name in code); ``several`` the names of those axes that stand for any
    number of dimensions, and ``ignored`` the labels that may be ignored. ``means`` are (statement,
    axis): it divides by that size, which may be 0. ``ranges`` are the checks of the labels, by the
    sizes of the inputs. ``broadcast`` are the arguments that are broadcast to their layouts.
    ``unsafe`` lists possible infinities and NaN in words, at first all ``risks`` that the
    derivation found. Of equal largest entries of a value in ``first`` one has the whole gradient.
    ``without_second`` is the reason why torch's derivatives of the backward's lines are wrong.
    ``derived`` are the sizes that follow from others, with the formulas in Python.
    ``without_options`` is the program of calls that pass nothing optional, if it moves less.
    """

    name: str
    title: str
    doc: str
    source: str
    source_hash: str
    formulas: tuple[str, ...]
    proved: str
    unsafe: tuple[str, ...]
    risks: tuple[Risk, ...]
    first: tuple[str, ...]
    sizes: tuple[tuple[str, str], ...]
    several: tuple[str, ...]
    flattened: tuple[tuple[str, tuple[str, ...]], ...]
    fixed: tuple[tuple[str, int], ...]
    requirements: tuple[Refuse, ...]
    means: tuple[tuple[str, str], ...]
    labels: tuple[tuple[str, str], ...]
    ranges: tuple[InRange, ...]
    ignored: tuple[str, ...]
    broadcast: tuple[str, ...]
    forward: Function
    backward: Function
    atoms: Function
    chain: Function
    without_second: str = ""
    derived: tuple[tuple[str, str], ...] = ()
    without_options: Program | None = None

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs: the forward returns them first."""
        return self.forward.results[: len(self.upstreams)]

    @property
    def upstreams(self) -> tuple[Parameter, ...]:
        """The upstream gradients: the first parameters of the backward."""
        return tuple(p for p in self.backward.parameters if p.role == "adjoint")

    @property
    def needs(self) -> tuple[Parameter, ...]:
        """Parameters of the backward other than upstream gradients."""
        return self.backward.parameters[len(self.upstreams) :]
