"""Python's syntax that is not read: what is said of it, and what to write in its place."""

from __future__ import annotations

import ast

NO_OPERATORS = {
    ast.BitXor: ("^ is no power", "a power is written with **: x**2"),
    ast.FloorDiv: ("// rounds", "write /"),
    ast.Mod: ("% is not read", "write the formula without it"),
    ast.LShift: ("<< is not read", "write the formula without it"),
    ast.RShift: (">> is not read", "write the formula without it"),
}
FOREIGN = {
    ast.Lambda: ("a function of one's own is not read", "write the expression itself"),
    ast.NamedExpr: (":= is not read", "give it a line of its own"),
    ast.IfExp: ("if is not read in an expression", "write torch.where(x > 0, a, b)"),
    ast.BoolOp: ("and, or are not read", "write (x > 0) & (x < 1)"),
    ast.ListComp: ("a comprehension is not read", "write it with tensors"),
    ast.SetComp: ("a comprehension is not read", "write it with tensors"),
    ast.DictComp: ("a comprehension is not read", "write it with tensors"),
    ast.GeneratorExp: ("a comprehension is not read", "write it with tensors"),
    ast.JoinedStr: ("text is not read", "write one expression in tensors"),
    ast.Starred: ("* in front of a value is not read", "write the values out"),
    ast.Slice: ("a slice is not read here", "write x[:, None]"),
}


LINES = "write the lines that it stands for, one after the other"
STATEMENTS = {
    ast.For: ("loops are not read", "write what the loop does with whole tensors"),
    ast.While: ("loops are not read", LINES),
    ast.If: ("if is not read", "write torch.where(x > 0, a, b), or the case that is meant"),
    ast.Import: ("imports are not read", "leave the line out: torch and F are known"),
    ast.ImportFrom: ("imports are not read", "leave the line out: torch and F are known"),
    ast.FunctionDef: ("a function is read only around all other lines", LINES),
    ast.With: ("with is read only around all other lines", LINES),
    ast.ClassDef: ("a class is not read", LINES),
    ast.Try: ("try is not read", LINES),
    ast.Assert: ("assert is not read", "leave the line out"),
    ast.Delete: ("del is not read", "leave the line out"),
}
