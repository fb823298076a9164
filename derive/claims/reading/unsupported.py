"""Unsupported Python syntax: the message, and the replacement to suggest."""

from __future__ import annotations

import ast

NO_OPERATORS = {
    ast.BitXor: ("^ is not a power", "a power is written with **: x**2"),
    ast.Mod: ("% is not supported", "write the formula without it"),
    ast.LShift: ("<< is not supported", "write the formula without it"),
    ast.RShift: (">> is not supported", "write the formula without it"),
}
FOREIGN = {
    ast.Lambda: ("a function definition is not supported", "write the expression itself"),
    ast.NamedExpr: (":= is not supported", "give it a line of its own"),
    ast.IfExp: ("if is not supported in an expression", "write torch.where(x > 0, a, b)"),
    ast.BoolOp: ("and/or are not supported", "write (x > 0) & (x < 1)"),
    ast.ListComp: ("a comprehension is not supported", "write it with tensors"),
    ast.SetComp: ("a comprehension is not supported", "write it with tensors"),
    ast.DictComp: ("a comprehension is not supported", "write it with tensors"),
    ast.GeneratorExp: ("a comprehension is not supported", "write it with tensors"),
    ast.JoinedStr: ("text is not supported", "write one expression in tensors"),
    ast.Starred: ("* in front of a value is not supported", "write the values out"),
    ast.Slice: ("a slice is not supported here", "write x[:, None]"),
}


LINES = "write its lines one after the other"
STATEMENTS = {
    ast.For: ("loops are not supported", "write it with whole tensors instead of a loop"),
    ast.While: ("loops are not supported", LINES),
    ast.If: ("if is not supported", "write torch.where(x > 0, a, b), or the case that you mean"),
    ast.Import: ("imports are not supported", "leave the line out: torch and F are known"),
    ast.ImportFrom: ("imports are not supported", "leave the line out: torch and F are known"),
    ast.FunctionDef: ("a function is supported only if it contains all other lines", LINES),
    ast.With: ("with is supported only if it contains all other lines", LINES),
    ast.ClassDef: ("a class is not supported", LINES),
    ast.Try: ("try is not supported", LINES),
    ast.Assert: ("assert is not supported", "leave the line out"),
    ast.Delete: ("del is not supported", "leave the line out"),
}
