"""The text of a formula as a syntax tree, checked for size first.

The text is never evaluated: its characters are checked, then Python parses it, then the size of the
tree is checked. Every refusal is a `NotUnderstood` with a caret.
"""

# ruff: noqa: RUF001 (this file is about letters that only look like code)

from __future__ import annotations

import ast
import re
import textwrap
import unicodedata
import warnings
from collections.abc import Iterator

from derive.claims.reading.book import as_code
from derive.claims.reading.refusals import Caret, NotUnderstood, Refusal, printable, spot_in

LONGEST_TEXT = 2**16  # characters
MOST_LINES = 2_000  # a backward written by hand has a hundred
DEEPEST_BRACKETS = 30  # nested; Python's parser stops at 200
LONGEST_OPERATOR = 40  # consecutive signs, as in - - - x
MOST_NODES = 10_000  # of the syntax tree, so that reading terminates
DEEPEST_NODE = 100  # deeper trees would exceed the recursion limit
LONGEST_SHOWN, LONGEST_MESSAGE = 200, 120  # characters of a line, and of Python's message

CLOSING = {"(": ")", "[": "]", "{": "}"}
QUOTE = re.compile(r"'''|\"\"\"|'|\"")
TYPED = {  # typographic characters and their ASCII equivalents
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”", '"'),
    "√": "sqrt(...)",
    "Σ": "Sum(..., N), or .sum(0)",
    "ᵀ": ".T",
    "⊤": ".T",
}


class Source:
    """A text and its lines. ``name`` is how messages refer to it: a file name, or "formula"."""

    def __init__(self, text: str, name: str):
        self.name = printable(name, LONGEST_SHOWN)
        self.lines: list[str] = []
        self.is_numpy = False
        if len(text) > LONGEST_TEXT:
            raise self.refused(
                f"the text has {len(text)} characters",
                f"at most {LONGEST_TEXT} are supported: check one part of it at a time",
            )
        text = as_code(textwrap.dedent(text.replace("\r\n", "\n").replace("\r", "\n").rstrip()))
        first, newline, rest = text.partition("\n")
        if rest[:1].isspace() and _is_whole(first):  # pasted from the middle of its first line
            text = first + newline + textwrap.dedent(rest)
        self.text = text if newline else text.strip(" \t")
        self.lines = self.text.split("\n")

    def parsed(self) -> ast.Module:
        """The syntax tree, limited in size and depth."""
        if len(self.lines) > MOST_LINES:
            raise self.refused(
                f"the text has {len(self.lines)} lines", f"at most {MOST_LINES} are supported"
            )
        self._scan()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # 2x: reported below, as an error
                tree = ast.parse(self.text)
        except SyntaxError as error:
            raise self._not_python(error) from None
        except (ValueError, RecursionError, MemoryError, OverflowError):
            raise self.refused("this is nested too deeply", "name its parts") from None
        if not tree.body:
            raise self.refused("there is no formula", "write a formula: dx = 2*dy")
        self._measure(tree)
        self.is_numpy = _is_numpy(tree)
        return tree

    def refused(self, problem: str, remedy: str = "", line: int = 1, column: int = 0):
        """The error, placed at a line and column."""
        return NotUnderstood(problem, remedy, self.spot(line, column) if self.lines else None)

    def placed(self, error: Refusal) -> NotUnderstood:
        placed = NotUnderstood(error.problem, error.remedy, self.spot_of(error.node))
        placed.cause = error
        return placed

    def spot(self, line: int, column: int) -> Caret:
        line = max(1, min(line, len(self.lines)))
        return spot_in(self.lines[line - 1], line, column, self.name)

    def spot_of(self, node: ast.AST | None) -> Caret:
        """The position of a node: for an operation its operator, for a method its name."""
        node = node.func if isinstance(node, ast.Call) else node
        if node is None:
            return self.spot(1, 0)
        left = {ast.BinOp: "left", ast.Attribute: "value", ast.Compare: "left"}.get(type(node))
        if left is None:
            return self.spot(node.lineno, self._column(node.lineno, node.col_offset))
        left = getattr(node, left)
        column = self._column(left.end_lineno, left.end_col_offset)
        rest = self.lines[left.end_lineno - 1][column:]
        found = re.match(r"[\s).]*" if isinstance(node, ast.Attribute) else r"[\s)]*", rest)
        if not rest[found.end() :].strip():  # the operator stands on a later line
            return self.spot(node.lineno, self._column(node.lineno, node.col_offset))
        return self.spot(left.end_lineno, column + found.end())

    def written(self, node: ast.AST) -> str:
        """The source of a node on one line."""
        line = self.lines[node.lineno - 1].encode()
        return line[node.col_offset : node.end_col_offset].decode(errors="replace")

    def line_of(self, node: ast.AST) -> str:
        return printable(self.lines[node.lineno - 1].strip(), LONGEST_SHOWN)

    def _column(self, line: int, offset: int) -> int:
        """Convert the byte offset of ``ast`` to characters."""
        return len(self.lines[line - 1].encode()[:offset].decode(errors="ignore"))

    def _scan(self) -> None:
        """Refuse unclosed brackets, deep nesting and unusual characters before parsing."""
        open_brackets: list[tuple[str, int, int]] = []
        signs = 0
        for character, line, column in self._code():
            signs = signs + 1 if character in "+-~" else signs if character == " " else 0
            if signs > LONGEST_OPERATOR:
                raise self.refused("too many signs in a row", "one is enough", line, column)
            if not character.isascii():
                self._check_letter(character, line, column)
            if character in CLOSING:
                open_brackets.append((character, line, column))
                if len(open_brackets) > DEEPEST_BRACKETS:
                    remedy = f"at most {DEEPEST_BRACKETS} are supported: name the parts"
                    raise self.refused("brackets are nested too deeply", remedy, line, column)
            elif character in CLOSING.values() and (
                not open_brackets or CLOSING[open_brackets.pop()[0]] != character
            ):
                problem = f"this {character} closes nothing"
                raise self.refused(problem, "remove it, or open it", line, column)
        if open_brackets:
            bracket, line, column = open_brackets[-1]
            raise self.refused(
                f"this {bracket} is never closed", f"close it with {CLOSING[bracket]}", line, column
            )

    def _code(self) -> Iterator[tuple[str, int, int]]:
        """Every character outside comments and strings, with its position."""
        quote = ""
        for number, line in enumerate(self.lines, 1):
            column = 0
            while column < len(line):
                character = line[column]
                self._check_visible(character, number, column)
                if quote:
                    if line.startswith(quote, column):
                        column, quote = column + len(quote) - 1, ""
                    elif character == "\\":
                        column += 1
                elif opening := QUOTE.match(line, column):
                    quote = opening[0]
                    column += len(quote) - 1
                elif character == "#":
                    for place in range(column, len(line)):
                        self._check_visible(line[place], number, place)
                    break
                else:
                    yield character, number, column
                column += 1
            quote = quote if len(quote) == 3 else ""

    def _check_visible(self, character: str, line: int, column: int) -> None:
        kind = unicodedata.category(character)
        if character != "\t" and kind in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
            raise self.refused(
                f"the character U+{ord(character):04X} is invisible", "remove it", line, column
            )

    def _check_letter(self, character: str, line: int, column: int) -> None:
        named = f"{character} (U+{ord(character):04X})"
        if character in TYPED:
            remedy = f"type {TYPED[character]}"
            raise self.refused(f"{named} is not code", remedy, line, column)
        plain = unicodedata.normalize("NFKC", character)
        if plain != character or not f"a{character}".isidentifier():
            remedy = f"type {plain}" if plain != character and plain.isascii() else "remove it"
            raise self.refused(f"{named} is not code", remedy, line, column)

    def _not_python(self, error: SyntaxError) -> NotUnderstood:
        line, column = error.lineno or 1, max((error.offset or 1) - 1, 0)
        text = self.lines[min(line, len(self.lines)) - 1]
        for pattern, remedy in SLIPS:
            for found in re.finditer(pattern, text):
                if found.start() - 2 <= column <= found.end() + 1:
                    place = found.start("at")
                    return self.refused("this is not valid Python", remedy, line, place)
        message = printable(str(error.msg or "invalid syntax"), LONGEST_MESSAGE)
        remedy = next(
            (words for part, words in SYNTAX.items() if part in message),
            "write one expression, or lines of the form dx = expression",
        )
        return self.refused(f"this is not an expression: {message}", remedy, line, column)

    def _measure(self, tree: ast.Module) -> None:
        count, level = 0, [tree]
        for _ in range(DEEPEST_NODE + 1):
            count += len(level)
            if count > MOST_NODES:
                raise self.refused(
                    f"the text has more than {MOST_NODES} parts", "check one part of it at a time"
                )
            parent, level = level, [child for n in level for child in ast.iter_child_nodes(n)]
            if not level:
                return
        deep = next((node for node in parent if hasattr(node, "lineno")), None)
        spot = self.spot_of(deep)
        raise NotUnderstood("more than a hundred operations are nested", "name parts of it", spot)


def _is_whole(line: str) -> bool:
    """Whether no other line belongs to this one: it opens nothing that it does not close."""
    opened = sum(line.count(bracket) for bracket in "([{")
    closed = sum(line.count(bracket) for bracket in ")]}")
    return opened == closed and not line.rstrip().endswith((":", "\\", *"+-*/=,"))


NUMPY, TORCH = {"np", "numpy"}, {"torch", "F", "ctx", "nn"}
NUMPYS_OWN = {"copy", "astype"}  # methods


def _is_numpy(tree: ast.Module) -> bool:
    """Whether a text uses numpy: it names numpy or calls a numpy-only method, and does not name
    torch.
    """
    nodes = [*ast.walk(tree)]
    names = {n.id for n in nodes if isinstance(n, ast.Name)}
    calls = [n for n in nodes if isinstance(n, ast.Call)]
    called = [n.func for n in calls if isinstance(n.func, ast.Attribute)]
    methods = {func.attr for func in called}
    counts = any(
        isinstance(n, ast.Attribute) and n.attr == "size" and n not in called for n in nodes
    )
    keeps = any(keyword.arg == "keepdims" for n in calls for keyword in n.keywords)
    is_numpy = names & NUMPY or methods & NUMPYS_OWN or counts or keeps
    return bool(is_numpy) and not names & TORCH


# Typical mistakes: the pattern, and the correction.
SLIPS = (
    (r"(?<![\w.])[\d.]+(?P<at>)[A-DF-Za-df-z_]\w*", "a product is written with *: 2*x"),
    (r"(?<![\w.])[\d.]+(?P<at>)\(", "a product is written with *: 2*(x + y)"),
    (r"[\w)\]] +(?P<at>)[A-Za-z_(]", "two values are next to each other: is a * missing?"),
    (r"(?<=\))(?P<at>)\w", "two values are next to each other: is a * missing?"),
)
SYNTAX = {
    "cannot assign": "the left side of = must be one name: dx = expression; a comparison is ==",
    "Maybe you meant": "the left side of = must be one name: dx = expression; a comparison is ==",
    "unexpected indent": "put an expression of several lines in brackets: (a + b)",
    "expected an indented block": "write the lines without def, for or if",
    "unterminated string": "close the quotation mark",
    "line continuation": r"LaTeX is not read: \frac{a}{b} is a/b, \sum_j x_j is x.sum(1)",
    "invalid decimal literal": "a product is written with *: 2*x",
}
