"""Extract the lines of a backward from the class, functions and imports around them.

In: the syntax tree of a text as it was pasted. Out: its `Pasted` lines in order, as if they had
been typed alone.

- Imports, docstrings, assertions and decorators are ignored.
- A class is its ``forward`` and its ``backward``; what the one saves in ``ctx`` the other reads. A
  function ``f_forward`` beside ``f_backward`` the same, with its ``cache``.
- ``ctx`` and ``cache`` of a backward that stands alone hold what their names say.
- What is returned are gradients: by their names, or in the order of what the forward takes.

Names are resolved elsewhere (``names.py``).
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from derive.claims.reading.calling import Callee, arguments_of
from derive.claims.reading.containers import GRADIENT, is_cache, is_none, name_of
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.roles import is_gradients_name
from derive.claims.reading.scopes import FunctionScope, Result, spoken

BACKWARD = re.compile(r"_?(backward|backprop|bwd)(s|_pass|_propagation)?_?", re.IGNORECASE)
FORWARD = re.compile(r"_?(forward|fwd)(_pass|_propagation)?_?", re.IGNORECASE)
GRADIENTS_OF_ALL = {"grad", "grads", "gradient"}


@dataclass(frozen=True)
class Pasted:
    """``lines`` in the order they run. ``takes``: the parameters of the forward, if the text has
    its signature; ``returned``: the gradients returned.

    ``arriving``: the upstream gradients, where torch's protocol identifies them; otherwise
    ``arguments``: the parameters of the function or method (None if there is none), with
    ``defaults`` for those whose default is a number. ``assumed``: the options taken. Raises
    `Refusal` if no line is left to read.
    """

    lines: tuple[ast.stmt, ...]
    takes: tuple[str, ...] = ()
    returned: tuple[str, ...] = ()
    arriving: tuple[str, ...] = ()
    arguments: tuple[str, ...] | None = None
    defaults: Mapping[str, ast.expr] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()

    def __post_init__(self):
        if not self.lines:
            raise Refusal("there is no formula", "write a formula: dx = 2*dy")


def pasted_in(tree: ast.Module, with_forward: bool = True) -> Pasted:
    """The lines of a text. With ``with_forward``, also the forward's lines; without, saved values
    are known by name only. Raises `Refusal`.
    """
    lines = spoken(copy.deepcopy(tree).body)
    classes = [line for line in lines if isinstance(line, ast.ClassDef)]
    functions = [line for line in lines if isinstance(line, ast.FunctionDef)]
    if classes:
        return _of_class(classes, functions, with_forward)
    known = {f.name: Callee(f) for f in functions} | _lambdas(lines)
    others = [line for line in lines if line not in functions and not _lambdas([line])]
    called = {name_of(n.func) for line in others for n in ast.walk(line) if isinstance(n, ast.Call)}
    if functions and all(map(_is_setting, others)) and not called & {*known}:
        pasted = _of_functions(functions, known, with_forward)
        return replace(pasted, lines=(*others, *pasted.lines))
    scope = FunctionScope(functions=known)
    typed = scope.lines(others)
    last = [] if scope.result is None else [scope.result.statement]
    return Pasted((*typed, *last))


def _lambdas(lines: Iterable[ast.stmt]) -> dict[str, Callee]:
    """Lambdas assigned to a name, as functions."""
    named = [n for n in lines if isinstance(n, ast.Assign) and isinstance(n.value, ast.Lambda)]
    return {name_of(n.targets[0]): Callee(n.value) for n in named}


def _is_setting(line: ast.stmt) -> bool:
    """Whether a line beside functions assigns a number to a name."""
    return isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant)


def _by_name(functions: Sequence[ast.FunctionDef]) -> dict[str, Callee]:
    return {function.name: Callee(function) for function in functions}


def _of_class(
    classes: Sequence[ast.ClassDef], functions: Sequence[ast.FunctionDef], with_forward: bool
) -> Pasted:
    methods = [{m.name: m for m in c.body if isinstance(m, ast.FunctionDef)} for c in classes]
    found = [own for own in methods if any(BACKWARD.fullmatch(name) for name in own)]
    if len(found) != 1:
        what = "several classes have" if found else "no class here has"
        remedy = "paste the class that you mean, a torch.autograd.Function"
        raise Refusal(f"{what} a backward", remedy, classes[-1])
    (own,) = found
    backward = next(own[name] for name in own if BACKWARD.fullmatch(name))
    ahead = [own[n] for n in own if FORWARD.fullmatch(n) or n == "__call__"]
    forward, setup = (ahead or [None])[0], own.get("setup_context")
    context, *arguments = (*arguments_of(backward),)
    is_layer = context == "self"  # of another framework: not torch's protocol
    known = _by_name(functions) | _by_method(own.values(), context)
    lines, takes, before = [], (), None
    if forward is not None:
        first = 0 if setup else 1
        takes = tuple(n for n in [*arguments_of(forward)][first:] if n not in ("self", "cls"))
        if with_forward:
            own_context = {*[*arguments_of(forward)][:first]}
            before = FunctionScope("forward", own_context, saving=True, functions=known)
            lines = before.lines(forward.body)
            if setup is not None:
                lines += _set_up(setup, before, takes)
    back = FunctionScope("backward", {context}, parameters=arguments * is_layer, functions=known)
    if before is not None:
        back.after(before)
    back.options(backward)
    lines += back.lines(backward.body)
    pasted = _returning(lines, back, takes, () if is_layer else tuple(arguments))
    if not is_layer:
        return pasted
    gradients = tuple(n for n in dict.fromkeys(back.gradients) if n not in pasted.returned)
    return replace(
        pasted, returned=(*pasted.returned, *gradients), **_signature(backward, back, {context})
    )


def _by_method(methods: Iterable[ast.FunctionDef], context: str) -> dict[str, Callee]:
    """The other methods of a class, by the name that calls them."""
    found = {}
    for method in methods:
        function = copy.deepcopy(method)
        if not any(name_of(d) == "staticmethod" for d in method.decorator_list):
            function.args.args = function.args.args[1:]
        if not method.name.startswith("__"):
            found[f"{context}.{method.name}"] = Callee(function)
    return found


def _signature(function: ast.FunctionDef, scope: FunctionScope, context: set[str]) -> dict:
    """The arguments of a backward, as far as its signature says."""
    wanted = {n: d for n, d in arguments_of(function).items() if n not in context}
    read = scope.caches | {
        n
        for n in wanted
        if is_cache(n) or isinstance(scope.meant.get(n), (ast.Dict, ast.Tuple, ast.Constant))
    }
    numbers = {
        n: d
        for n, d in wanted.items()
        if isinstance(d, ast.Constant) and type(d.value) in (int, float)
    }
    arguments = tuple(n for n in wanted if n not in read)
    return {"arguments": arguments, "defaults": numbers, "assumed": tuple(scope.assumed)}


def _set_up(setup: ast.FunctionDef, scope: FunctionScope, takes: Sequence[str]) -> list[ast.stmt]:
    """The lines of ``setup_context(ctx, inputs, output)``, placed after the forward's."""
    context, inputs, output = (*arguments_of(setup), "", "", "")[:3]
    scope.context.add(context)
    given = ast.Tuple([scope.named(name) for name in takes], ast.Load())
    scope.meant[inputs] = given
    if scope.result is not None:
        scope.meant[output] = scope.result.node
    return scope.lines(setup.body)


def _of_functions(
    functions: Sequence[ast.FunctionDef], known: Mapping[str, Callee], with_forward: bool
) -> Pasted:
    called = {
        name_of(n.func) for n in ast.walk(ast.Module([*functions], [])) if isinstance(n, ast.Call)
    }
    back = [f for f in functions if BACKWARD.search(f.name)]
    back = [f for f in back if f.name not in called] if len(back) > 1 else back
    top = [f for f in functions if f.name not in called]
    if not back and len(top) == 1:
        back = [f for f in top if any(map(is_cache, arguments_of(f)))]
    if not back and len(top) == 1:  # forward and backward in one, or a backward
        return _of_one(top[0], known)
    if len(back) != 1:
        what = "several functions are backwards" if back else "none of these is a backward"
        remedy = "paste the one that you mean, with its forward: f_forward, f_backward"
        raise Refusal(what, remedy, (back or functions)[-1])
    arguments = arguments_of(back[0])
    stem = BACKWARD.sub("", back[0].name)
    ahead = [f for f in functions if f not in back and FORWARD.search(f.name)]
    ahead = [f for f in ahead if FORWARD.sub("", f.name) == stem]
    scope, lines = FunctionScope(parameters=arguments, functions=known), []
    takes: tuple[str, ...] = ()
    if ahead and with_forward:
        before = FunctionScope("forward", functions=known)
        takes = tuple(arguments_of(ahead[0]))
        lines = before.lines(ahead[0].body)
        scope.take(before.result, filter(is_cache, arguments))
    scope.options(back[0])
    lines += scope.lines(back[0].body)
    pasted = _returning(lines, scope, (), (), takes)
    return replace(pasted, **_signature(back[0], scope, set()))


def _of_one(function: ast.FunctionDef, known: Mapping[str, Callee]) -> Pasted:
    """A function that computes both directions, or one named after the derivative it returns."""
    arguments = tuple(arguments_of(function))
    scope = FunctionScope(parameters=arguments, functions=known)
    scope.options(function)
    lines = scope.lines(function.body)
    takes = tuple(name for name in arguments if not is_gradients_name(name))
    arriving = len(takes) < len(arguments)
    pasted = _returning(lines, scope, () if arriving else takes, ())
    return replace(pasted, takes=takes, **_signature(function, scope, set()))


def _returning(
    lines: list[ast.stmt],
    scope: FunctionScope,
    takes: Sequence[str],
    arriving: Sequence[str],
    signature: Sequence[str] = (),
) -> Pasted:
    """The lines followed by assignments of what is returned: ``return a, None, b`` becomes ``dx =
    a`` and ``dbias = b`` for a forward that takes x, weight and bias.
    """
    takes, arriving = tuple(takes), tuple(arriving)
    known = {"takes": takes or tuple(signature), "arriving": arriving}
    if scope.result is None:
        stored = tuple(dict.fromkeys(scope.gradients))
        return Pasted(tuple(lines), returned=stored, **known)
    result = scope.result
    entries, parts = result.entries, result.parts
    if scope.name and takes and not entries:  # backward of a class: by position
        pairs = [(f"d{n}", p) for n, p in zip(takes, parts, strict=False) if not is_none(p)]
    else:
        alone = not takes
        pairs = [(n, p) for p in parts if (n := _gradient(name_of(p), takes, alone))] + entries
    last, only = result.statement, name_of(result.node)
    if not pairs or (len(pairs) == 1 == len(parts) and only == pairs[0][0]):
        named = (only,) if pairs else ()
        return Pasted((*lines, last), returned=named, **known)
    assigned = [_assigned(n, p, result) for n, p in pairs if name_of(p) != n]
    return Pasted((*lines, *assigned), returned=tuple(n for n, _ in pairs), **known)


def _gradient(name: str, takes: Sequence[str], alone: bool) -> str:
    """``dx`` for ``dx``, ``grad_x`` and ``x_grad``; empty for any other name. If one function
    computes both directions, only gradients of its arguments count.
    """
    if name in GRADIENTS_OF_ALL and takes:
        return f"d{takes[0]}"
    found = GRADIENT.fullmatch(name)
    of = found and next(filter(None, found.groups()))
    if not of:
        return ""
    own = next((n for n in takes if n.lower() == of.lower()), of)
    return f"d{own}" if alone or not takes or own in takes else ""


def _assigned(name: str, value: ast.expr, result: Result) -> ast.stmt:
    node = ast.Assign([ast.Name(name, ast.Store())], value)
    for new in ast.walk(node):
        if not hasattr(new, "lineno"):
            ast.copy_location(new, result.statement)
    return node
