"""What ``certificate`` does: certificates written, checked by Coq and recorded; or compared.

A folder of certificates has their library ``Grad.v`` and a record: of each that Coq accepted its
digest, lines and seconds; of every other forward that was asked for, why there is none.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path

from derive.certificate import LIBRARY, PARTIAL, Certificate, checked, installed
from derive.certificate.coq import INSTALL
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.language.errors import NotationError, QuestionError
from derive.language.notation.forward import Forward
from derive.language.notation.library import files_read, forwards_from, list_forwards
from derive.running.command import DONE, WRONG
from derive.running.writing import MARK, current, write_all

RECORD = "record.txt"
DIGITS = 16  # of a digest
FIRST = f"(* {MARK} *)\n"
ACCEPTED, WITHOUT = "accepted", "without"
REMEDY = "choose another folder with --out"


@dataclass(frozen=True)
class Entry:
    """What is known of one certificate: ``kind`` is `ACCEPTED`, and ``words`` the digest, lines and
    seconds; or `WITHOUT`, and why.
    """

    kind: str
    words: str

    @property
    def digest(self) -> str:
        return self.words.split()[0] if self.kind == ACCEPTED else ""


def certify(options: argparse.Namespace) -> int:
    """Write, or compare, the certificates that are meant."""
    names = options.names
    forwards = [f for name in names for f in forwards_from(name)] if names else list_forwards()
    if options.check:
        return _compared(forwards, options.out)
    statuses = [_certified(forward, options) for forward in forwards]
    return max(statuses) if names else DONE


def _certified(forward: type[Forward], options: argparse.Namespace) -> int:
    """One certificate, with what Coq says of it in the record."""
    name, folder = forward.definition.snake, options.out
    record, texts = recorded(folder), {folder / f.name: library(f) for f in (LIBRARY, PARTIAL)}
    own = record.pop(name, None)
    try:
        text = certificate_of(forward)
    except NotationError as error:
        entry = Entry(WITHOUT, " ".join(str(error).split()))
    else:
        if own and own.digest == digest(text) == _digest_of_file(folder, name):
            _say(f"{name}: up to date; Coq accepted it")
            return DONE
        if not installed():
            write_all(texts | {folder / f"{name}.v": text}, REMEDY, files_read(), options.force)
            _say(f"{name}: written, not checked: coqc is not installed ({INSTALL})")
            return DONE
        entry = _entry(text, options.limit)
        if entry.kind == ACCEPTED:
            texts[folder / f"{name}.v"] = text
    record[name] = entry
    texts[folder / RECORD] = _as_text(record)
    write_all(texts, REMEDY, files_read(), options.force)
    if entry.kind == WITHOUT:
        _say(f"{name}: no certificate: {entry.words}")
        return WRONG
    _, lines, seconds = entry.words.split()
    _say(f"{name}: accepted by Coq in {seconds} s, {lines} lines")
    return DONE


def _entry(text: str, limit: float) -> Entry:
    found = checked(text, limit)
    if not found.accepted:
        return Entry(WITHOUT, f"not accepted by Coq: {found.said}")
    return Entry(ACCEPTED, f"{digest(text)} {len(text.splitlines())} {found.seconds:.1f}")


def certificate_of(forward: type[Forward]) -> str:
    """The text for a forward. Raises `NotationError` for what has none."""
    return FIRST + Certificate(close(derive_chain(forward.definition))).text()


def library(file: Path = LIBRARY) -> str:
    return FIRST + file.read_text("utf-8")


def digest(text: str) -> str:
    """Of a certificate and its library."""
    return hashlib.sha256((library() + text).encode()).hexdigest()[:DIGITS]


def recorded(folder: Path) -> dict[str, Entry]:
    """The record of a folder, by the names of the forwards."""
    lines = (current(folder / RECORD) or "").splitlines()[1:]
    fields = (line.split(" ", 2) for line in lines)
    return {name: Entry(kind, words) for kind, name, words in fields}


def _as_text(record: dict[str, Entry]) -> str:
    lines = sorted(f"{entry.kind} {name} {entry.words}" for name, entry in record.items())
    return "\n".join([f"# {MARK}", *lines]) + "\n"


def _digest_of_file(folder: Path, name: str) -> str:
    return digest(current(folder / f"{name}.v") or "")


def _compared(forwards: list[type[Forward]], folder: Path) -> int:
    """Name the certificates that are not what would be written and was accepted."""
    record, stale = recorded(folder), []
    stale += [f.name for f in (LIBRARY, PARTIAL) if current(folder / f.name) != library(f)]
    for forward in forwards:
        name = forward.definition.snake
        own = record.get(name)
        if own is None or (
            own.kind == ACCEPTED
            and not own.digest == digest(certificate_of(forward)) == _digest_of_file(folder, name)
        ):
            stale.append(name)
    if stale:
        raise QuestionError(
            f"{folder} is out of date: {', '.join(stale)}", "run gradform certificate"
        )
    count = sum(entry.kind == ACCEPTED for entry in record.values())
    _say(f"{folder} is up to date: {count} certificates that Coq accepted")
    return DONE


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
