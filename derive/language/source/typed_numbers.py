"""Decimals in a class body are exact: the number that was typed.

SymPy would convert ``0.3`` to a rounded float: ``x / 0.3`` would have a factor of sixteen digits.
While a class body runs, numbers passed to SymPy are therefore made exact. If Python has computed
one before (``1/0.3``, ``math.sqrt(2/math.pi)``, a variable), the constant parts of the lines that
ran are searched for one with that value (``constants.py``).
"""

from __future__ import annotations

import inspect
import math
import sys
import warnings
from collections.abc import Iterator
from decimal import Decimal
from types import FrameType

from sympy import Expr, Float, Rational
from sympy.core.sympify import _convert_numpy_types, _sympy_converter, converter

from derive.language.errors import MATH, NotationWarning, Place, said
from derive.language.float_range import exact_number
from derive.language.source.constants import Constants, decimal_of

OURS = f"{MATH.parent}"


def as_typed(value: float | Decimal | Float) -> Expr:
    """The typed number for ``value``, used in a formula on a running line; with a `NotationWarning`
    if it was computed and rounded by an unknown formula.
    """
    if isinstance(value, Float) and not _is_held(value):
        return exact_number(value)  # SymPy's own; too many digits are refused
    if isinstance(value, (float, Float)):
        typed, number = decimal_of(float(value)), exact_number(value)
    else:
        typed = number = Rational(str(value))
    if typed is not None:
        return typed
    lines = list(_lines_of_users())
    for frame in lines:
        found = Constants(frame).equal_to(float(value))
        if found is not None:
            return found
    if lines and number == Rational(repr(float(value))):
        _warn(value, lines[0])
    return number


def _is_held(value: Float) -> bool:
    return value == 0 or 0 < abs(float(value)) < math.inf


def note_bodies(kind: type) -> None:
    """Make SymPy take numbers as exact while a body of this ``kind`` of namespace runs."""
    for of in (float, Decimal):
        converter.setdefault(of, lambda value, of=of: _converted(value, of, kind))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        floating = numpy.floating
        converter.setdefault(floating, lambda v: _converted(v, floating, kind))


def _converted(value, of: type, kind: type) -> Expr:
    """Sympify a Python or numpy number; in a class body, a finite one exactly, as typed."""
    finite = value == value and abs(value) != float("inf")
    if finite and any(is_body for _, is_body in _frames(kind)):
        return as_typed(value)
    usual = _sympy_converter.get(of, _convert_numpy_types)
    return usual(value)


def _frames(kind: type | None = None) -> Iterator[tuple[FrameType, bool]]:
    """Frames on the stack, innermost first, each with True for a class body of that ``kind``."""
    frame = sys._getframe(2)
    while frame is not None:
        is_class = not frame.f_code.co_flags & inspect.CO_OPTIMIZED
        yield frame, is_class and (kind is None or isinstance(frame.f_locals, kind))
        frame = frame.f_back


def _lines_of_users() -> Iterator[FrameType]:
    """Frames of the user's own code: up to the class body, and around that in the same files."""
    files, inside = set(), True
    for frame, is_class in _frames():
        file = frame.f_code.co_filename
        internal = file.startswith(OURS) and not file.startswith(f"{MATH}")
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if internal or package == "sympy" or not (inside or file in files):
            continue
        files.add(file)
        yield frame
        inside = inside and not is_class


def _warn(value, frame: FrameType) -> None:
    place = Place(frame.f_code.co_filename, frame.f_lineno)
    problem = f"{value} was calculated by Python, and rounded: the formula has all of its digits"
    remedy = "write what it is: Rational(1, 3), sqrt(2/pi) of SymPy, or the decimal that is meant"
    warnings.warn_explicit(said(problem, remedy), NotationWarning, place.file, place.line)
