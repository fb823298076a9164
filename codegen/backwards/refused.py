"""Reasons why torch rejects a backward: it raises, or a gradient has the wrong shape."""

from __future__ import annotations

import traceback

import torch

ALL_DIFFER = (
    "all sizes differ here: are dimensions swapped, or is a sum over the wrong one? The other "
    "gradients were not checked"
)


class Raises(Exception):
    """The backward raises: ``words``, at ``line``; and the possible cause."""

    def __init__(self, words: str, line: int, advice: str = ALL_DIFFER):
        self.words, self.line, self.advice = words, line, advice
        super().__init__(words)


def raised(error: Exception, file: str) -> Raises:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    line = (frames[-1].lineno or 0) if frames else 0
    first = next((w.strip() for w in str(error).splitlines() if w.strip()), "no message")
    return Raises(f"{type(error).__name__}: {first}", line)


def misshapen(wanted: tuple[int, ...], got: tuple[int, ...], name: str) -> str:
    """The error for a gradient of that shape; empty if broadcasting reduces it to ``wanted``."""
    try:
        torch.empty(wanted).expand(got)
    except RuntimeError:
        return f"d{name} has shape {got} but {name} has {wanted}: torch raises an error"
    return ""
