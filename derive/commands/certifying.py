"""The command ``certificate``: certificates written, checked by Coq and recorded; or compared.

A folder of certificates has their library ``Grad.v`` and a record: of each that Coq accepted its
digests, lines and seconds; of every other forward that was asked for, why there is none.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from derive.certificate import LIBRARY, PARTIAL, Certificate, checked, installed
from derive.certificate.coq import INSTALL
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import ClosedForm, close
from derive.language.errors import NotationError, QuestionError
from derive.language.notation.forward import Forward
from derive.language.notation.library import files_read, forwards_from, list_forwards
from derive.proof.proving.certified import (
    ACCEPTED,
    RECORD,
    WITHOUT,
    Entry,
    as_text,
    certified,
    committed,
    digest,
    of_mathematics,
    recorded,
)
from derive.running.command import DONE, WRONG
from derive.running.writing import MARK, current, write_all

FIRST = f"(* {MARK} *)\n"
REMEDY = "choose another folder with --out"


def certify(options: argparse.Namespace) -> int:
    """Write, or compare, the certificates that are meant."""
    names = options.names
    forwards = [f for name in names for f in forwards_from(name)] if names else list_forwards()
    if options.check:
        return _compared(forwards, options.out, names)
    statuses = [_certified(forward, options) for forward in forwards]
    return max(statuses) if names else DONE


def _certified(forward: type[Forward], options: argparse.Namespace) -> int:
    """One certificate, with what Coq says of it in the record."""
    name, folder = forward.definition.snake, options.out
    record, texts = recorded(folder), {folder / f.name: library(f) for f in (LIBRARY, PARTIAL)}
    form = form_of(forward)
    try:
        text = certificate_of(form)
    except NotationError as error:
        entry = Entry(WITHOUT, " ".join(str(error).split()))
    else:
        if _is_current(text, form, folder):
            _say(f"{name}: up to date; Coq accepted it")
            return DONE
        if not installed():
            write_all(texts | {folder / f"{name}.v": text}, REMEDY, files_read(), options.force)
            _say(f"{name}: written, not checked: coqc is not installed ({INSTALL})")
            return DONE
        entry = _entry(text, form, options.limit)
        if entry.kind == ACCEPTED:
            texts[folder / f"{name}.v"] = text
    texts[folder / RECORD] = as_text(record | {name: entry})
    write_all(texts, REMEDY, files_read(), options.force)
    if entry.kind == WITHOUT:
        _say(f"{name}: no certificate: {entry.words}")
        return WRONG
    *_, lines, seconds = entry.words.split()
    _say(f"{name}: accepted by Coq in {seconds} s, {lines} lines")
    return DONE


def _entry(text: str, form: ClosedForm, limit: float) -> Entry:
    found = checked(text, limit)
    if not found.accepted:
        return Entry(WITHOUT, f"not accepted by Coq: {found.said}")
    digests = f"{digest(library(), text)} {of_mathematics(form)}"
    return Entry(ACCEPTED, f"{digests} {len(text.splitlines())} {found.seconds:.1f}")


def _is_current(text: str, form: ClosedForm, folder: Path) -> bool:
    """Whether Coq accepted this text, which is in its file, with the library of today."""
    file = certified(form, folder)
    written = digest(library(), text)
    return bool(file) and committed(folder / Path(file).name) == written


def form_of(forward: type[Forward]) -> ClosedForm:
    return close(derive_chain(forward.definition))


def certificate_of(form: ClosedForm) -> str:
    """The text of a file. Raises `NotationError` for what has none."""
    return FIRST + Certificate(form).text()


def library(file: Path = LIBRARY) -> str:
    return FIRST + file.read_text("utf-8")


def _compared(forwards: list[type[Forward]], folder: Path, names: list[str]) -> int:
    """Name the certificates that are not what would be written and was accepted."""
    record, stale = recorded(folder), []
    if not names and record.keys().isdisjoint(f.definition.snake for f in forwards):
        raise QuestionError(
            f"{folder} has no certificate of the gallery",
            "name the file that it is of: gradform certificate my_norm.py --check",
        )
    stale += [f.name for f in (LIBRARY, PARTIAL) if current(folder / f.name) != library(f)]
    for forward in forwards:
        own = record.get(name := forward.definition.snake)
        if own is not None and own.kind == ACCEPTED:
            form = form_of(forward)
            stale += [] if _is_current(certificate_of(form), form, folder) else [name]
        elif own is None:
            stale.append(name)
    if stale:
        _say(f"{folder} is out of date: {', '.join(stale)}; run gradform certificate")
        return WRONG
    count = sum(entry.kind == ACCEPTED for entry in record.values())
    _say(f"{folder} is up to date: {count} certificates that Coq accepted")
    return DONE


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
