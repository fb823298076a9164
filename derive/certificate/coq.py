"""Coq on a certificate, under a limit of processor time, beside the library of all certificates.

In: the text of a certificate. Out: `Checked`: accepted or not, what Coq says, and after how long.
It is accepted only if the theorem rests on the axioms of Coq's real numbers and on no other.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from pathlib import Path

from derive.language.errors import QuestionError

LIBRARY = Path(__file__).with_name("Grad.v")
PARTIAL = Path(__file__).with_name("Partial.v")  # of the theorem: one entry moves
INSTALL = "apt-get install coq libcoq-coquelicot"
SECONDS = 120.0  # of the processor, for one certificate: a busy machine decides as an idle one
WAIT = 20  # times as long by the clock
SAID = 300  # characters of a message of Coq
QUIET = ("-q", "-w", "-all")
# Coq's real numbers are built on these, and Coquelicot on them.
AXIOMS = frozenset(
    {
        "ClassicalDedekindReals.sig_not_dec",
        "ClassicalDedekindReals.sig_forall_dec",
        "FunctionalExtensionality.functional_extensionality_dep",
        "Classical_Prop.classic",
    }
)
AXIOM = re.compile(r"^([\w.']+)(?= ?$| :)", re.MULTILINE)


@dataclass(frozen=True)
class Checked:
    """``said`` is why a certificate is not accepted, empty where it is."""

    said: str
    seconds: float

    @property
    def accepted(self) -> bool:
        return not self.said


def installed() -> bool:
    """Whether Coq is."""
    return shutil.which("coqc") is not None


def checked(text: str, limit: float = SECONDS) -> Checked:
    """Run Coq on a certificate. Raises `QuestionError` where it is not installed."""
    if not installed():
        raise QuestionError("coqc is not installed", INSTALL)
    with tempfile.TemporaryDirectory() as folder:
        for part in ("Grad.v", "Grad.vo"):
            shutil.copy(Path(_library().name) / part, folder)
        began = _used()
        said = _run(folder, "certificate.v", text, limit)
        return Checked(_rests_on(said) if isinstance(said, set) else said, _used() - began)


def _used() -> float:
    """Seconds of the processor, of all programs that this process ran."""
    used = os.times()
    return used.children_user + used.children_system


@lru_cache(maxsize=1)
def _library() -> tempfile.TemporaryDirectory:
    """The library, compiled once for a process."""
    folder = tempfile.TemporaryDirectory()
    said = _run(folder.name, LIBRARY.name, LIBRARY.read_text("utf-8"), SECONDS)
    if isinstance(said, str):
        raise QuestionError(f"Coq does not accept {LIBRARY.name}: {said}", INSTALL)
    return folder


def _run(folder: str, name: str, text: str, limit: float) -> str | set[str]:
    """Coq's error, or the axioms that the theorem rests on."""
    (Path(folder) / name).write_text(text, encoding="utf-8")
    limited = ["sh", "-c", f'ulimit -t {ceil(limit)}; exec coqc "$@"', "coqc", *QUIET, name]
    try:
        done = subprocess.run(
            limited, cwd=folder, capture_output=True, text=True, timeout=WAIT * limit
        )
    except subprocess.TimeoutExpired:
        return f"undecided after {WAIT * limit:g} seconds by the clock"
    if done.returncode < 0:  # by a signal
        return f"undecided after {limit:g} seconds"
    if done.returncode == 0:
        return set(AXIOM.findall(done.stdout.partition("Axioms:")[2]))
    line = re.search(r"line (\d+)", done.stderr)
    shown = text.splitlines()[int(line[1]) - 1] if line else ""
    lemma = _lemma_before(text, int(line[1])) if line else ""
    return " ".join(f"{lemma or shown}: {done.stderr.partition('Error:')[2]}".split())[:SAID]


def _lemma_before(text: str, line: int) -> str:
    """The name of the lemma whose proof Coq stopped in."""
    names = re.findall(r"^(?:Lemma|Theorem) ([\w']+)", "\n".join(text.splitlines()[:line]), re.M)
    return names[-1] if names else ""


def _rests_on(axioms: set[str]) -> str:
    """An objection to the axioms; empty if all are Coq's own."""
    others = sorted(axioms - AXIOMS)
    return f"the theorem rests on {', '.join(others)}" if others else ""
