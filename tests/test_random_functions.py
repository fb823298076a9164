"""Random Functions, right ones and broken ones: the verdict is what torch's own runs say.

``make fuzz-functions`` takes as many as one likes.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from random_forwards.trial import RIGHT
from random_functions import trial
from random_functions.breaking import WAYS
from random_functions.grammar import random_case, text_of
from random_functions.trial import FALSELY_RIGHT, FALSELY_WRONG, tried

SAMPLE = (2, 7, 8, 14, 15, 16, 17, 25, 26)  # quick ones: with options, subsets, writes, scalars
LIMIT = 100.0  # seconds of computing


@pytest.mark.parametrize("seed", SAMPLE)
def test_the_verdict_is_what_torch_does(seed):
    case = random_case(seed)
    outcome = tried(case, LIMIT)
    again = f"make fuzz-functions CASE={seed}"
    assert outcome.kind == RIGHT, f"{outcome.kind} ({again}): {outcome.message}\n\n{outcome.text}"


def test_a_false_verdict_is_found(monkeypatch):
    """Of one that is right and of one that is wrong, with the truth turned round."""
    monkeypatch.setattr(trial, "wrongs", lambda *_: ["differs"])
    assert tried(random_case(2)).kind == FALSELY_RIGHT
    monkeypatch.setattr(trial, "wrongs", lambda *_: [])
    assert tried(random_case(14)).kind == FALSELY_WRONG


def test_every_way_to_break_is_drawn_and_all_that_is_written_is_python():
    cases = [random_case(seed) for seed in range(600)]
    for case in cases:
        compile(text_of(case), "ops.py", "exec")
    assert {c.broken for c in cases} == {*WAYS, ""}
    texts = "".join(map(text_of, cases))
    for words in ("setup_context", "if ctx.flag", 'mode == "mean"', "need_x", "keepdim=True"):
        assert words in texts


def test_a_seed_makes_the_same_function_in_every_process():
    program = (
        "from random_functions.grammar import *\nfor i in range(40): print(text_of(random_case(i)))"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": str(Path(__file__).parents[1])},
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "".join(f"{text_of(random_case(i))}\n" for i in range(40))
