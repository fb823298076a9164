r"""Names and words in LaTeX: no text of a user reaches a document unescaped."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from keyword import iskeyword

from sympy.core.alphabets import greeks

CAPITALS = ("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi")
GREEK = {name: f"\\{name}" for name in (*greeks, *CAPITALS, "Omega") if name != "omicron"}
GREEK |= {"eps": r"\varepsilon", "lamda": r"\lambda"}  # Unicode and SymPy write lamda
# A letter, maybe with a hat and with a subscript: x_1, W1, beta1, xhat, z_hat, lambda_max.
SYMBOL = re.compile(rf"([^\W\d_]|{'|'.join(GREEK)})(_?hat)?(?:_?(\d+)|_([^\W_]+))?")
ACCENTS = {"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"'}
ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
}


Symbol = tuple[str, bool, str]  # its letter, whether it has a hat, its subscript
_owners: ContextVar[dict[Symbol, str] | None] = ContextVar("_owners", default=None)


@contextmanager
def told_apart() -> Iterator[None]:
    """Within, no two names are the same symbol: of beta1 and beta_1 the second is set as typed."""
    token = _owners.set({} if (known := _owners.get()) is None else known)
    try:
        yield
    finally:
        _owners.reset(token)


def latex_text(text: str) -> str:
    """Escape words, so that LaTeX finds no command in them."""
    return "".join(map(_character, re.sub(r"\s+", " ", text)))


def _character(character: str) -> str:
    if character.isascii():
        return ESCAPES.get(character, character if character.isprintable() else " ")
    greek = _greek(character)
    if greek:
        return f"${greek}$"
    plain, *marks = unicodedata.normalize("NFKD", character)
    if plain.isascii() and plain.isprintable() and set(marks) <= set(ACCENTS):
        accents = "".join(f"\\{ACCENTS[mark]}{{" for mark in marks)
        return f"{accents}{ESCAPES.get(plain, plain)}{'}' * len(marks)}"
    return rf"\texttt{{U+{ord(character):04X}}}"


def _greek(character: str) -> str | None:
    size, _, letter = unicodedata.name(character, "").removeprefix("GREEK ").partition(" LETTER ")
    name = letter.lower()
    return GREEK.get(name if size == "SMALL" else name.capitalize())


def latex_name(name: str) -> str:
    r"""A name as one symbol: ``x``, ``\hat{x}``, ``W_{1}``, ``\alpha``, ``\mathrm{inv\_std}``."""
    if not name.isascii():
        runs = re.findall(r"[\x00-\x7f]+|.", name)
        return "".join(
            rf"\mathrm{{{latex_text(run)}}}" if run.isascii() else _sign(run) for run in runs
        )
    letter, hat, below = symbol_of(name)
    if letter:
        over = rf"\hat{{{_letter(letter)}}}" if hat else _letter(letter)
        under = below if below.isdigit() else latex_name(below) if below else ""
        return f"{over}_{{{under}}}" if under else over
    return rf"\mathrm{{{latex_text(name)}}}"


def _letter(letter: str) -> str:
    return GREEK.get(letter, letter)


def symbol_of(name: str) -> Symbol:
    """The letter of a name, whether it has a hat, and its subscript; no letter, if it is a word."""
    plain = name.removesuffix("_")
    found = SYMBOL.fullmatch(plain if iskeyword(plain) else name)
    if found is None:
        return "", False, ""
    symbol = found[1], bool(found[2]), found[3] or found[4] or ""
    owners = _owners.get()
    if owners is not None and owners.setdefault((_letter(found[1]), *symbol[1:]), name) != name:
        return "", False, ""
    return symbol


def with_index(symbol: str, index: str) -> str:
    """``x_{1,2}`` for ``x``, and ``{x_{1}}_{1,2}`` for what has a subscript of its own."""
    own = symbol if not re.search(r"(?<!\\)_", symbol) else f"{{{symbol}}}"
    return f"{own}_{{{index}}}"


def gradient_name(name: str) -> str:
    r"""``\mathrm{d}x`` for ``dx``; of a longer word the letters stay together."""
    split = name.startswith("d") and len(name) > 1
    return rf"\mathrm{{d}}{latex_name(name[1:])}" if split else latex_name(name)


def named(function: str) -> str:
    return rf"\mathrm{{{latex_text(function)}}}"


def text_in_formula(text: str) -> str:
    r"""Words inside of a formula; special characters stand outside of ``\text``, where LaTeX, KaTeX
    and MathJax agree on how they are written.
    """
    signs = {"_": r"\_", "*": r"{\ast}", "<": "<", ">": ">", "\\": r"\backslash ", "|": r"\vert "}
    parts = re.split(r"([^A-Za-z0-9 ,.;:()=+/'?!\[\]-])", re.sub(r"\s+", " ", text))
    return "".join(
        rf"\text{{{part}}}" if i % 2 == 0 else signs.get(part) or _sign(part)
        for i, part in enumerate(parts)
        if part
    )


def _sign(sign: str) -> str:
    if sign == "$":
        return r"\text{\textdollar}"  # Markdown would end the formula at a dollar
    if sign.isascii():
        return f"\\{sign}" if sign in "{}&#%" else r"\cdot "
    return _greek(sign) or rf"\text{{{_character(sign)}}}"
