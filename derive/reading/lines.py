"""The lines of a text before they are run: what is around them, and what they assign."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from derive.language.symbols import Tensor
from derive.reading.names import Names
from derive.reading.refusals import Refusal


def lines_of(tree: ast.Module) -> list[ast.stmt]:
    """The statements, without a function or a ``with torch.no_grad():`` around all of them."""
    lines = tree.body
    while True:
        lines = [line for line in lines if not _is_text(line)] or lines
        if len(lines) != 1 or not isinstance(lines[0], (ast.FunctionDef, ast.With)):
            break
        _check_wrapper(lines[0])
        lines = lines[0].body
    for line in lines[:-1]:
        if isinstance(line, ast.Return):
            raise Refusal("lines behind a return are not reached", "leave them out", line)
    return lines


def _is_text(line: ast.stmt) -> bool:
    """A line that is a docstring."""
    value = line.value if isinstance(line, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _check_wrapper(line: ast.FunctionDef | ast.With) -> None:
    if isinstance(line, ast.With):
        allowed = {"torch.no_grad()", "torch.inference_mode()"}
        written = [ast.unparse(item.context_expr) for item in line.items]
        if any(item.optional_vars for item in line.items) or not set(written) <= allowed:
            raise Refusal("this with is not read", "leave it out", line)
        return
    if line.decorator_list:
        raise Refusal("decorators are not read", "leave them out", line)
    arguments = line.args
    if arguments.vararg or arguments.kwarg:
        raise Refusal("* and ** are not read", "name the arguments", line)
    for default in [*arguments.defaults, *filter(None, arguments.kw_defaults)]:
        if not isinstance(default, ast.Constant):
            raise Refusal("this default is not read", "leave it out", default)
    own = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for annotation in [line.returns, *(argument.annotation for argument in own)]:
        check_annotation(annotation)


def check_annotation(annotation: ast.AST | None) -> None:
    """An annotation is a name, which is not looked up: ``torch.Tensor``."""
    if not isinstance(annotation, (ast.Name, ast.Attribute, ast.Constant, type(None))):
        raise Refusal("this annotation is not read", "leave it out", annotation)


def assigned_in(statements: list[ast.stmt], names: Names, of: Tensor) -> dict[str, int]:
    """The names that a text assigns, each with the first line that does."""
    found: dict[str, int] = {}
    for statement in statements:
        for name in _targets(statement):
            found.setdefault(names.ours(name), statement.lineno)
    last = statements[-1]
    if isinstance(last, (ast.Expr, ast.Return)) and not writes(last.value):
        found.setdefault(f"d{of.name}", last.lineno)
    return found


def writes(node: ast.AST | None) -> bool:
    """Whether an expression is a method that writes into its tensor: ``dx.add_(y)``."""
    call = node.func if isinstance(node, ast.Call) else None
    return isinstance(call, ast.Attribute) and call.attr.endswith("_")


def _targets(node: ast.stmt) -> Iterator[str]:
    targets = {
        ast.Assign: lambda n: n.targets,
        ast.AnnAssign: lambda n: [n.target],
        ast.AugAssign: lambda n: [n.target],
    }.get(type(node), lambda n: [])(node)
    while targets:
        target, *targets = targets
        if isinstance(target, (ast.Tuple, ast.List)):
            targets = [*target.elts, *targets]
        elif isinstance(target, ast.Subscript):
            targets = [target.value, *targets]
        elif isinstance(target, ast.Name):
            yield target.id
