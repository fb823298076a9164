"""How each word of the notation is written in a formula."""

from __future__ import annotations

from derive.language.lexicon import WORDS

USAGE = {
    **{name: f"write {word.usage}" for name, word in WORDS.items()},
    "Axis": 'write D = Axis("D", T - 1)',
    "Rational": "write Rational(-1, 2)",
    "Piecewise": "write Piecewise((a, x > 0), (b, True))",
}
