"""The table of torch's operations.

A row is a function of the front end's `Arrays` and of torch's arguments, with the names, order and
defaults of torch's documentation. The annotation of an argument is its kind; a front end converts
what it has to that kind, or refuses:

    Tensor            an array of the front end
    AnyTensor         the same, whatever dtype the row asks of the others
    Tensors           several of them
    Number            an array without dimensions, or a number of Python's: both go into `each`
    Dim, Dims         one dimension, several (None: all), counted from the front
    NewDim            the place of a dimension that is added
    Size, Sizes       whole numbers and sizes of axes, as SymPy's expressions
    Numbers           one or several numbers of Python's and sizes, as SymPy's; or a word
    Parts             a size as it is, or several
    Axes              how many dimensions, or which of two tensors: ([1, 2], [0, 1])
    DimOrTensor       a dimension, or a tensor: of max and min
    Flag, Word        True or False; text
    Order             of a norm: a number of Python's
    Reduction         "none", "mean" or "sum"
    Default           nothing but its default: a front end refuses any other value

It returns an array, or a tuple of them, and calls `a.refuse(problem, remedy)` for unsupported
arguments. It may not depend on which front end calls it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

AnyTensor = Tensor = Tensors = Number = Dim = NewDim = Dims = Size = Sizes = Flag = Word = Any
Numbers = Order = Reduction = Default = Parts = Axes = DimOrTensor = Any
KINDS = ("Tensor", "Tensors", "Number", "Dim", "NewDim", "Dims", "Size", "Sizes", "Flag", "Word")
KINDS += ("Order", "Reduction", "Default", "AnyTensor", "Numbers", "Parts", "Axes", "DimOrTensor")
FLOAT, SAME, BOOL, INT = "float", "same", "bool", "int"
INTEGRAL = "integral"  # the same; bools become integers
KEPT = "kept"  # that of the tensor written into
TENSORS = "tensors"  # that of the tensors; numbers are converted


@dataclass(frozen=True)
class Op:
    """``names``: in Python and ATen alike; ``forms``: how Python calls it; ``called``: a name for
    an unnamed result; ``gives``: the result's dtype; ``of``: the only dtype it accepts ("float"),
    if torch rejects others.
    """

    names: tuple[str, ...]
    meaning: Callable[..., Any]
    forms: frozenset[str]
    called: str = ""
    gives: str = FLOAT
    of: str = ""
    makes: bool = False  # its dtype argument, or the default dtype, decides
    aten: Mapping[str, str] = field(default_factory=dict)  # ATen's argument names, if others
    also: frozenset[str] = frozenset()  # names only ATen has

    @property
    def arguments(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.meaning).parameters.values())[1:]


table: dict[str, Op] = {}


def op(*names: str, forms="method torch", called="", gives=FLOAT, of="", makes=False,
       aten=None, also=""):  # fmt: skip
    """Long: one argument for each field of the row."""

    def enter(meaning):
        known = (*names, *also.split())
        own = frozenset(also.split())
        ways = frozenset(forms.split())
        row = Op(known, meaning, ways, called, gives, of, makes, aten or {}, own)
        for parameter in row.arguments:
            kind = parameter.annotation.partition(" | ")[0]
            if kind not in KINDS:
                raise TypeError(f"{names[0]}: no argument is a {kind}: {parameter.name}")
        if twice := table.keys() & set(known):
            raise TypeError(f"{sorted(twice)} stand in the table twice")
        table.update(dict.fromkeys(known, row))
        return meaning

    return enter
