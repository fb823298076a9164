"""The record of the certificates that Coq accepted, and whether it speaks of a closed form.

In: a `ClosedForm`. Out: the name of its certificate, empty where the record has none: where the
file or its library is not the one that Coq accepted, or the mathematics another. Coq is not asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from derive.gradient.closing.closed_form import ClosedForm
from derive.language.errors import CERTIFICATES
from derive.language.symbols import tensors_in
from derive.running.writing import MARK, current

LIBRARY = "Grad.v"
RECORD = "record.txt"
DIGITS = 16  # of a digest
ACCEPTED, WITHOUT = "accepted", "without"


@dataclass(frozen=True)
class Entry:
    """The record of one certificate: ``kind`` is `ACCEPTED`, and ``words`` the digests of the
    text and of the mathematics, lines and seconds; or `WITHOUT`, and why.
    """

    kind: str
    words: str

    @property
    def digests(self) -> tuple[str, ...]:
        return tuple(self.words.split()[:2]) if self.kind == ACCEPTED else ()


def certified(form: ClosedForm, folder: Path = CERTIFICATES) -> str:
    """The file in ``folder`` with which Coq accepted ``form``; empty if there is none."""
    name = form.definition.snake
    own = recorded(folder).get(name, Entry(WITHOUT, ""))
    file = folder / f"{name}.v"
    if own.kind == WITHOUT or own.digests != (committed(file), of_mathematics(form)):
        return ""
    return f"{folder.name}/{file.name}"


def recorded(folder: Path) -> dict[str, Entry]:
    """The record of a folder, by the names of the forwards."""
    lines = (current(folder / RECORD) or "").splitlines()[1:]
    fields = (line.split(" ", 2) for line in lines)
    return {name: Entry(kind, words) for kind, name, words in fields}


def as_text(record: dict[str, Entry]) -> str:
    lines = sorted(f"{entry.kind} {name} {entry.words}" for name, entry in record.items())
    return "\n".join([f"# {MARK}", *lines]) + "\n"


def committed(file: Path) -> str:
    """Digest of a certificate and of the library beside it."""
    return digest(current(file.with_name(LIBRARY)) or "", current(file) or "")


def digest(library: str, text: str) -> str:
    return hashlib.sha256((library + text).encode()).hexdigest()[:DIGITS]


def of_mathematics(form: ClosedForm) -> str:
    """Digest of all that a certificate of ``form`` is printed from."""
    return hashlib.sha256("\n".join(_mathematics(form)).encode()).hexdigest()[:DIGITS]


def _mathematics(form: ClosedForm) -> Iterator[str]:
    d = form.definition
    yield from (f"{tensor.content}" for tensor in (*d.inputs, *(t for t, _ in d.scalars)))
    moving, arriving = [t.name for t in d.differentiable], [t.name for t in form.chain.upstreams]
    yield f"{moving} {arriving} {d.needs} {d.flattened}"
    yield from (f"{demand.domain} {demand.expression}" for demand in d.demands)
    yield from (f"{axis} {d.size(axis)} {axis.length}" for axis in d.axes)
    forward = ((s.tensor, s.expression) for s in d.statements)
    for tensor, e in (*forward, *form.with_parts):
        read = sorted(f"{t.content}" for t in tensors_in(e))
        yield f"{tensor.content} = {e}, {read}"
