"""Remedies for a file that is not a forward yet: syntax errors, and errors raised by its lines."""

from __future__ import annotations

import ast
import importlib
import keyword
import re
import traceback
from types import ModuleType

import sympy

from derive.language.errors import INTERNAL, MATH, Place, shortened_text
from derive.language.source.spellings import DECLARATIONS, NODES, closest, in_the_gallery

SYMPYS = "that works on numbers; use SymPy's: from sympy import exp"
TORCHS = ("Module", "Function")  # torch base classes, by the end of their names
LIBRARIES = ("derive", "gradform", "sympy", "torch", "numpy")
INSIDE = ("derive", "codegen")  # folders of a checkout that an installed gradform has inside
TYPED = {
    "\u2212": "-",
    "\u00d7": "*",
    "\u00b7": "*",
    "\u00f7": "/",
    "\u00b2": "**2",
    "\u00b3": "**3",
}
# Part of an error message, and the remedy.
REMEDIES = {
    "object has no attribute": "tensors have no methods: write Sum(x, axis); an axis is its size",
    "must be Tensor": SYMPYS,
    "Cannot convert expression to float": SYMPYS,
    "loop of ufunc": SYMPYS,
    "comparison of non-real": "numbers are real: leave out the root or logarithm of a negative one",
    "truth value of Relational": "a choice between tensors is Piecewise((a, condition), (b, True))",
    "is not iterable": "nothing goes through the entries of a tensor: write Sum(x, axis)",
    "Axis.__new__() missing": 'write N = Axis("N")',
    "expected at most 1 argument": "did you mean Input?",
}


def remedy_of(error: BaseException, module: ModuleType, place: Place) -> str:
    """The remedy for an error that the line at ``place`` of a file raised."""
    text = str(error)
    if getattr(module, "Sum", None) is sympy.Sum and isinstance(error, (TypeError, ValueError)):
        return "Sum is SymPy's here: import Sum from gradform, after SymPy"
    if isinstance(error, ImportError) and (found := _imported(error, place)):
        return found
    called = re.match(r"(\w+): \w+ must be a tensor, got Tensor", text)
    if called:  # a generated function, which computes with numbers
        name = called[1]
        return in_the_gallery(name) or f"call the forward that {name} was generated from"
    known = next((r for part, r in REMEDIES.items() if part in text), "")
    line = shortened_text(place.text)
    return known or (f"fix that line: {line}" if line else "fix that line")


def _imported(error: ImportError, place: Place) -> str:
    """The remedy for a failed import."""
    name = re.match(r"cannot import name '(\w+)' from '([\w.]+)'", str(error))
    if name is None:
        top = (error.name or "").partition(".")[0]
        if top in INSIDE:
            line = re.sub(rf"\b{top}\b", f"gradform.{top}", place.text, count=1)
            return f"write {line.replace('gradform.derive import', 'gradform import')}"
        if top in LIBRARIES:  # not installed, as in the playground
            return "leave the import out: a forward is written with SymPy's functions"
        meant = closest(top, LIBRARIES)
        return f"did you mean {meant}?" if meant else "install it, or put the file beside this one"
    wanted, module = name[1], name[2]
    if module.endswith(f".{MATH.name}"):
        line = in_the_gallery(wanted).partition("with: ")[2]
        return f"write {line}" if line else ""
    if wanted in (*NODES, *DECLARATIONS):
        return f"write from gradform import {wanted}"
    there = [n for n in dir(importlib.import_module(module)) if not n.startswith("_")]
    same = next((n for n in there if n.lower() == wanted.lower()), None)
    if meant := same or closest(wanted, there):
        return f"did you mean {meant}? write from {module} import {meant}"
    return f"write from sympy import {wanted}" if hasattr(sympy, wanted) else ""


def is_ours(error: BaseException) -> bool:
    """Whether gradform's own code raised it, not a line of the user's or SymPy."""
    frames = traceback.extract_tb(error.__traceback__)
    file = frames[-1].filename if frames else ""
    ours = any(file.startswith(f"{folder}/") for folder in INTERNAL)
    return ours and not file.startswith(f"{MATH}/") and not isinstance(error, SystemExit)


# -- syntax ---------------------------------------------------------------------------------------


def syntax_remedy(error: SyntaxError) -> str:
    """The remedy for a line that is not Python."""
    line = (error.text or "").rstrip()
    text, message = line.strip(), error.msg or ""
    for mended in _mended(text, message):
        if mended:
            return mended
    return f"fix that line: {shortened_text(text)}" if text else "fix the syntax of that line"


def _mended(text: str, message: str):
    """Possible corrections, the likeliest first; '' for one that is not valid Python."""
    returned = re.match(r"return\s+(.+)", text)
    if returned and "outside function" in message:
        name = returned[1].isidentifier()
        yield "leave it out: the last line is the output" if name else f"write y = {returned[1]}"
    name, equals, value = text.partition("=")
    if equals and keyword.iskeyword(name.strip()):
        new = f"{name.strip()}_"
        yield f"{name.strip()} is a word of Python's: write {new} ={value}"
    if "expected ':'" in message:
        yield f"write {text}:"
    if "was never closed" in message:
        yield _if_python(text + ")") or _if_python(text + "]") or _if_python(text + "))")
    if "indent" in message or "tabs" in message:
        yield "begin every line of a class with the same four spaces"
    if "cannot assign to" in message:
        yield "left of the = stands one name, and right of it the formula: y = 2 * x"
    typed = "".join(TYPED.get(letter, letter) for letter in text)
    yield _if_python(typed) if typed != text else ""
    product = re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?=[A-Za-z_(])", r"\1 * ", text)
    yield _if_python(product) if product != text else ""


def _if_python(text: str) -> str:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return ""
    return f"write {text}"


def not_defined(tree: ast.Module, path: object) -> str:
    """The remedy for a file without a forward, depending on its contents."""
    for node in tree.body:
        bases = [ast.unparse(base) for base in getattr(node, "bases", ())]
        if isinstance(node, ast.ClassDef) and not any(b.endswith(TORCHS) for b in bases):
            return f"{node.name} inherits from {', '.join(bases) or 'nothing'}: write " + (
                f"class {node.name}(Forward):"
            )
    own = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    if own:
        arguments = getattr(own[0], "args", None)
        names = [a.arg for a in arguments.args] if arguments else ["x"]
        axes = ", ".join(f"{name}: N C" for name in names)
        return f'torch code is read by: gradform import {path}:{own[0].name} --axes "{axes}"'
    return "write a class that inherits from Forward: class MyNorm(Forward): ..."
