"""Examples from a file of words: three symbols of context, and the next one."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from character_model.mistakes import Mistake

CONTEXT = 3
END = "."  # begins and ends every word; its index is 0
SYMBOLS = END + "abcdefghijklmnopqrstuvwxyz"
SHUFFLING_SEED = 42
LONGEST_SHOWN = 40  # of a word in a message
OWN_WORDS = Path(__file__).resolve().parents[1] / "words.txt"


@dataclass(frozen=True)
class Examples:
    """Contexts (n, 3) and the symbol that follows each (n), both as indices of symbols."""

    contexts: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Dataset:
    """80, 10 and 10 % of the shuffled words as examples; ``fingerprint`` tells word lists apart."""

    words: int
    fingerprint: str
    training: Examples
    validation: Examples
    test: Examples

    @property
    def parts(self) -> dict[str, Examples]:
        return {"training": self.training, "validation": self.validation, "test": self.test}


def load(path: Path, symbols: str = SYMBOLS) -> Dataset:
    """The words of a file, shuffled and split. Raises Mistake for a file that cannot be used."""
    words = words_of(path, symbols)
    fingerprint = hashlib.sha256("\n".join(words).encode()).hexdigest()
    random.Random(SHUFFLING_SEED).shuffle(words)
    first, second = int(0.8 * len(words)), int(0.9 * len(words))
    if first == 0:
        raise Mistake(f"{path} holds one word only: at least two are needed to train")
    parts = words[:first], words[first:second], words[second:]
    return Dataset(len(words), fingerprint, *(examples_of(part, symbols) for part in parts))


def words_of(path: Path, symbols: str) -> list[str]:
    """The words of a file, one per line; blank lines and surrounding space are ignored."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise Mistake(f"{path} does not exist") from None
    except UnicodeDecodeError:
        raise Mistake(f"{path} is not a text file (UTF-8, one word per line)") from None
    except OSError as error:
        raise Mistake(f"{path} cannot be read: {error.strerror}") from None
    if "\0" in text:
        raise Mistake(f"{path} is not a text file (UTF-8, one word per line)")
    words = []
    for number, line in enumerate(text.split("\n"), start=1):
        word = line.strip()
        foreign = next((letter for letter in word if letter not in symbols[1:]), None)
        if foreign is not None:
            raise Mistake(_foreign(path, number, word, foreign, symbols))
        if word:
            words.append(word)
    if not words:
        raise Mistake(f"{path} is empty: one word per line is expected")
    return words


def _foreign(path: Path, number: int, word: str, letter: str, symbols: str) -> str:
    """The message about a character outside the vocabulary."""
    shown = word if len(word) <= LONGEST_SHOWN else f"{word[:LONGEST_SHOWN]}..."
    if letter.isspace():
        remedy = "one word per line"
    elif letter.lower() in symbols[1:]:
        remedy = "write it in lower case"
    else:
        remedy = f"the vocabulary is {symbols[1]} to {symbols[-1]}"
    return f"{path}, line {number}: {shown!r} holds {letter!r}: {remedy}"


def examples_of(words: list[str], symbols: str = SYMBOLS) -> Examples:
    """One example per letter of each word, and one for its end."""
    index = {symbol: number for number, symbol in enumerate(symbols)}
    contexts, labels = [], []
    for word in words:
        context = (0,) * CONTEXT
        for symbol in word + END:
            contexts.append(context)
            labels.append(index[symbol])
            context = (*context[1:], index[symbol])
    return Examples(
        torch.tensor(contexts, dtype=torch.int64).view(-1, CONTEXT),
        torch.tensor(labels, dtype=torch.int64),
    )
