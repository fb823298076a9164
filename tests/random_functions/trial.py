"""One Function tried: the verdict of `check_function` beside the truth."""

from __future__ import annotations

import importlib.util
import tempfile
import time
import traceback
from pathlib import Path

from random_forwards.trial import CRASHED, RIGHT, SLOW, Outcome, OutOfTime, place_of, time_limit

from codegen.backwards.checking import check_function
from derive.language.errors import QuestionError
from random_functions.grammar import Case, text_of
from random_functions.truth import wrongs

# Beside these: what has no verdict, and the two ways in which one is false.
REFUSED, NO_VERDICT = "refused", "without a verdict"
FALSELY_RIGHT, FALSELY_WRONG = "called right, and is wrong", "called wrong, and is right"
SEEN = ("right", "agrees")


def tried(case: Case, limit: float = 20.0) -> Outcome:
    start = time.process_time()
    text = text_of(case)
    try:
        with time_limit(limit), tempfile.TemporaryDirectory(prefix="gradform-") as folder:
            file = Path(folder) / "ops.py"
            file.write_text(text, encoding="utf-8")
            kind, message, cause = _tried(case, file)
    except OutOfTime as error:
        kind, cause = SLOW, f"{SLOW}: {place_of(error)}"
        message = f"more than {limit:g} s of computing"
    return Outcome(kind, message, cause, time.process_time() - start, text)


def _tried(case: Case, file: Path) -> tuple[str, str, str]:
    found = wrongs(_function(file), case)
    truth = "; ".join(found[:2]) or "right"
    try:
        verdict = check_function(f"{file}:F", case.axes)
        words, outcome = str(verdict), verdict.outcome
    except QuestionError as error:
        said = f"truth: {truth}\n{error}".replace(str(file.parent), "")
        return REFUSED, said, f"{REFUSED}: {error.problem[-60:]}"
    except Exception as error:
        trace = "".join(traceback.format_exception(error)[-6:])
        said = f"truth: {truth}\n{type(error).__name__}: {error}\n{trace}"
        return CRASHED, said, f"{type(error).__name__} in {place_of(error)}"
    beside = f"truth: {truth}\n{words}".replace(str(file.parent), "")
    if outcome in SEEN and found:
        return FALSELY_RIGHT, beside, f"{FALSELY_RIGHT} ({case.broken})"
    if outcome == "wrong" and not found:
        return FALSELY_WRONG, beside, f"{FALSELY_WRONG} ({case.broken})"
    if outcome not in (*SEEN, "wrong"):
        return NO_VERDICT, beside, f"{NO_VERDICT}: {outcome}"
    return RIGHT, beside, ""


def _function(file: Path) -> type:
    spec = importlib.util.spec_from_file_location("random_function", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.F
