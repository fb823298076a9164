"""What stands around the lines of a backward where it comes from: a class, functions, imports.

In: the syntax tree of a text as it was pasted. Out: its `Pasted` lines, one after the other, as if
they had been typed without all that.

- Imports, docstrings, assertions and decorators are ignored.
- A class is its ``forward`` and its ``backward``; what the one saves in ``ctx`` the other reads. A
  function ``f_forward`` beside ``f_backward`` the same, with its ``cache``.
- ``ctx`` and ``cache`` of a backward that stands alone hold what their names say.
- What is returned are gradients: by their names, or in the order of what the forward takes.

What a name means is not asked here (``names.py``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from derive.reading.refusals import Refusal
from derive.reading.scopes import Result, Scope, name_of, spoken

BACKWARD = re.compile(r"_?(backward|backprop|bwd)_?", re.IGNORECASE)
FORWARD = re.compile(r"_?(forward|fwd)_?", re.IGNORECASE)
GRADIENT = re.compile(r"grad_(?P<a>\w+)|(?P<b>\w+)_grad|d_?(?P<c>[A-Za-z_]\w*)|g_(?P<d>\w+)")
GRADIENTS_OF_ALL = {"grad", "grads", "gradient"}
CACHES = {"cache", "caches", "saved", "residuals", "res", "ctx"}


@dataclass(frozen=True)
class Pasted:
    """``lines`` to be run in this order. ``takes`` are the names of what the forward takes, where
    the text has its signature; ``returned`` the names of the gradients that are returned;
    ``arriving`` are the names of the upstream gradients, where they are arguments.
    Raises `Refusal` where nothing is left to read.
    """

    lines: tuple[ast.stmt, ...]
    takes: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    arriving: tuple[str, ...] = ()

    def __post_init__(self):
        if not self.lines:
            raise Refusal("there is no formula", "write a formula: dx = 2*dy")


def pasted_in(tree: ast.Module, with_forward: bool = True) -> Pasted:
    """The lines of a text. ``with_forward``: what it computes forward is read too; without, what
    is saved there goes by its names. Raises `Refusal`.
    """
    lines = spoken(tree.body)
    classes = [line for line in lines if isinstance(line, ast.ClassDef)]
    functions = [line for line in lines if isinstance(line, ast.FunctionDef)]
    if classes:
        return _of_class(classes, with_forward)
    if functions and len(functions) == len(lines):
        return _of_functions(functions, with_forward)
    scope = Scope()
    typed = scope.lines(lines)
    last = [] if scope.result is None else [scope.result.statement]
    return Pasted((*typed, *last))


def _of_class(classes: Sequence[ast.ClassDef], with_forward: bool) -> Pasted:
    methods = [{m.name: m for m in c.body if isinstance(m, ast.FunctionDef)} for c in classes]
    found = [own for own in methods if "backward" in own]
    if len(found) != 1:
        what = "several classes have" if found else "no class here has"
        remedy = "paste the class that you mean, a torch.autograd.Function"
        raise Refusal(f"{what} a backward", remedy, classes[-1])
    (own,) = found
    _, *arriving = _arguments(own["backward"])
    forward, setup = own.get("forward"), own.get("setup_context")
    context = {_arguments(own["backward"])[0]}
    lines, takes, saved = [], (), None
    if forward is not None:
        first = 0 if setup else 1
        takes = tuple(name for name in _arguments(forward)[first:] if name not in ("self", "cls"))
        if with_forward:
            scope = Scope("forward", {*_arguments(forward)[:first]}, saving=True)
            lines = scope.lines(forward.body)
            if setup is not None:
                lines += _set_up(setup, scope, takes)
            saved = scope.saved
    back = Scope("backward", context, held=saved)
    lines += back.lines(own["backward"].body)
    return _returning(lines, back, takes, tuple(arriving))


def _set_up(setup: ast.FunctionDef, scope: Scope, takes: Sequence[str]) -> list[ast.stmt]:
    """The lines of ``setup_context(ctx, inputs, output)``, after those of the forward."""
    context, inputs, output = (*_arguments(setup), "", "", "")[:3]
    scope.context.add(context)
    given = ast.Tuple([scope.named(name) for name in takes], ast.Load())
    scope.meant[inputs] = given
    if scope.result is not None:
        scope.meant[output] = scope.result.node
    return scope.lines(setup.body)


def _of_functions(functions: Sequence[ast.FunctionDef], with_forward: bool) -> Pasted:
    back = [f for f in functions if BACKWARD.search(f.name)]
    if len(functions) == 1:
        back = back or [f for f in functions if {*_arguments(f)} & CACHES]
    if not back and len(functions) == 1:  # both directions in one
        scope = Scope()
        lines = scope.lines(functions[0].body)
        return _returning(lines, scope, _arguments(functions[0]), ())
    if len(back) != 1:
        what = "several functions are backwards" if back else "none of these is a backward"
        remedy = "paste the one that you mean, with its forward: f_forward, f_backward"
        raise Refusal(what, remedy, (back or functions)[-1])
    arriving, *others = (*_arguments(back[0]), "")
    if arriving in CACHES:  # backward(cache, dout)
        arriving, others = others[0], [arriving]
    stem = BACKWARD.sub("", back[0].name)
    ahead = [f for f in functions if f not in back and FORWARD.sub("", f.name) == stem]
    scope, lines = Scope(caches={*others} & CACHES, parameters={arriving}), []
    takes: tuple[str, ...] = ()
    if ahead and with_forward:
        before = Scope("forward")
        takes = _arguments(ahead[0])
        lines = before.lines(ahead[0].body)
        scope.take(before.result, {*others} & CACHES)
    lines += scope.lines(back[0].body)
    return _returning(lines, scope, (), (arriving,) * bool(arriving), takes)


def _arguments(function: ast.FunctionDef) -> tuple[str, ...]:
    own = function.args
    return tuple(a.arg for a in (*own.posonlyargs, *own.args, *own.kwonlyargs))


def _returning(
    lines: list[ast.stmt],
    scope: Scope,
    takes: Sequence[str],
    arriving: Sequence[str],
    signature: Sequence[str] = (),
) -> Pasted:
    """The lines with what is returned as the last of them: ``return a, None, b`` are ``dx = a`` and
    ``dbias = b`` for a forward that takes x, weight and bias.
    """
    takes, arriving = tuple(takes), tuple(arriving)
    if scope.result is None:
        return Pasted(tuple(lines), takes or tuple(signature), (), arriving)
    result = scope.result
    parts = result.parts
    if scope.name and takes:  # the backward of a class: by position
        pairs = [(f"d{n}", p) for n, p in zip(takes, parts, strict=False) if not _is_none(p)]
    else:
        pairs = [(n, p) for p in parts if (n := _gradient(name_of(p), takes, bool(arriving)))]
    if not pairs or (len(pairs) == 1 == len(parts) and name_of(parts[0]) == pairs[0][0]):
        return Pasted((*lines, result.statement), takes or tuple(signature), (), arriving)
    assigned = [_assigned(n, p, result) for n, p in pairs if name_of(p) != n]
    names = tuple(n for n, _ in pairs)
    return Pasted((*lines, *assigned), takes or tuple(signature), names, arriving)


def _gradient(name: str, takes: Sequence[str], alone: bool) -> str:
    """``dx`` for ``dx``, ``grad_x``, ``x_grad``; empty for what is no gradient. Of a function that
    is both directions these are the gradients of what it takes; the rest is what it computes.
    """
    if name in GRADIENTS_OF_ALL and takes:
        return f"d{takes[0]}"
    found = GRADIENT.fullmatch(name)
    of = found and next(filter(None, found.groups()))
    if not of:
        return ""
    own = next((n for n in takes if n.lower() == of.lower()), of)
    return f"d{own}" if alone or not takes or own in takes else ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _assigned(name: str, value: ast.expr, result: Result) -> ast.stmt:
    node = ast.Assign([ast.Name(name, ast.Store())], value)
    for new in ast.walk(node):
        if not hasattr(new, "lineno"):
            ast.copy_location(new, result.statement)
    return node
