"""One forward tried: taken through the whole driver, and what comes out compared with plain torch.

`tried` gives an `Outcome`, which says in which way it went. What is compared, at several sizes (1
and equal ones included): the value and the gradients; of one forward in three the second
derivatives too.
"""

from __future__ import annotations

import importlib.util
import re
import signal
import tempfile
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from codegen.driver.gate import Generated
from codegen.driver.lean import generate
from derive import forward_from
from derive.language.errors import QuestionError, UnprovedError
from random_forwards.batches import batches
from random_forwards.comparison import Wrong, compared

TWICE = 3  # of as many forwards one is differentiated twice

ROOT = Path(__file__).parents[2]

# In which ways a trial goes. All but the first are findings.
RIGHT, REFUSED, UNPROVED, AWAY, CRASHED, WRONG, SLOW, UNTRIED = (
    "right",
    "refused by the notation",
    "unproved",
    "differs from autograd",
    "crashed",
    "wrong",
    "out of time",
    "without a number to compare",
)


@dataclass(frozen=True)
class Outcome:
    """How a trial went; ``cause`` is what two findings of one cause have in common."""

    kind: str
    message: str = ""
    cause: str = ""
    seconds: float = 0.0
    text: str = ""  # that was generated


class OutOfTime(BaseException):
    """Raised where a trial takes too long; no handler of errors holds it up."""


def tried(text: str, seed: int = 1, limit: float = 20.0) -> Outcome:
    """Take the forward that stands last in ``text`` through the driver, and compare it."""
    start = time.process_time()
    generated: list[str] = []
    try:
        with time_limit(limit), tempfile.TemporaryDirectory(prefix="gradform-") as folder:
            kind, message, cause = _tried(text, seed, Path(folder), generated)
    except OutOfTime as error:
        kind, message, cause = (
            SLOW,
            f"more than {limit:g} s of computing",
            f"{SLOW}: {place_of(error)}",
        )
    seconds = time.process_time() - start
    return Outcome(kind, message, cause, seconds, "".join(generated))


def _tried(text: str, seed: int, folder: Path, generated: list[str]) -> tuple[str, str, str]:
    file = folder / "forward.py"
    file.write_text(text, encoding="utf-8")
    name = re.findall(r"^class (\w+)\(Forward\)", text, re.M)[-1]
    try:
        forward = forward_from(f"{file}:{name}")
        result = generate(forward)
        generated.append(result.text)
        module = _module(result, folder)
        numbers = sum(
            compared(module, result, forward.definition, text, batch, seed % TWICE == 0)
            for batch in batches(forward.definition, seed)
        )
    except QuestionError as error:
        return REFUSED, str(error), f"{REFUSED}: {_shape(error.problem)}"
    except UnprovedError as error:
        kind = AWAY if AWAY in str(error) else UNPROVED
        return kind, str(error), kind
    except Wrong as error:
        return WRONG, str(error), WRONG
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        trace = "".join(traceback.format_exception(error)[-6:])
        return CRASHED, f"{said}\n{trace}", f"{type(error).__name__} in {place_of(error)}"
    return (RIGHT if numbers else UNTRIED), "", "" if numbers else UNTRIED


def _shape(problem: str) -> str:
    """A sentence without what was written in it."""
    return re.sub(r".*: ", "", problem)[:40]


def place_of(error: BaseException) -> str:
    """The innermost function of ours on the way to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f.filename.startswith((f"{ROOT}/derive", f"{ROOT}/codegen"))]
    last = (ours or frames)[-1]
    return f"{Path(last.filename).name}:{last.name}"


@contextmanager
def time_limit(seconds: float):
    def stop(*_):
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _module(result: Generated, folder: Path) -> ModuleType:
    path = folder / f"generated_{result.file}"
    path.write_text(result.text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"gradform.generated.{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
