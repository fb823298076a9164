"""No count of a forward, in any spelling, is worse than in ``respelling/counts.json``: here of a
sample of the spellings and of the long forwards, in ``make test-thorough`` of all.

Where a count is worse for a reason, or better, ``make record`` writes them anew.
"""

import os
import time
from dataclasses import fields

import pytest
from respelling.comparison import ERROR, EVERY_SIZE, RISK, counts, worse
from respelling.processes import apart
from respelling.record import (
    SECONDS,
    SPELLINGS,
    USUAL,
    all_found,
    expected,
    key,
    read,
    recorded,
    tasks,
)

from derive.gradient.closing.cost import Cost
from derive.language.notation.library import list_forwards

RECORD = read()
FIELDS = [RISK, *(field.name for field in fields(Cost)), EVERY_SIZE]
ANEW = "make record writes tests/respelling/counts.json anew"
LATER = 2 * SECONDS  # what ended when it was recorded does on a slower machine
# A few seconds of long forwards, and of every spelling a few forwards.
SHORTER, EVERY = ("Chain8", "LayerNorms4", "Sinkhorn3", "Transformer1"), 15
SPELLED = sorted((task for task in tasks() if task[1] != USUAL), key=lambda task: task[1])
SAMPLE = [*((name, USUAL) for name in SHORTER), *SPELLED[::EVERY]]
# What went wrong when it was recorded cannot be worse.
HELD = [task for task in tasks() if ERROR not in expected(RECORD, task)]


def test_the_record_is_one_of_these_forwards_spellings_and_counts():
    named = {name for name, _ in tasks()}
    assert named <= RECORD.keys() <= {key(task) for task in tasks()}, ANEW
    for name in named:
        assert ERROR in RECORD[name] or list(RECORD[name]) == FIELDS, f"{name}: {ANEW}"


@pytest.mark.slow
def test_no_count_of_the_gallery_is_worse():
    for forward in list_forwards():
        found = counts(forward.definition, proving=False)
        said = worse(found, RECORD[forward.definition.snake])
        assert not said, f"{forward.definition.snake}: {said}"


@pytest.mark.parametrize(
    "task",
    [pytest.param(t, id=key(t), marks=() if t in SAMPLE else pytest.mark.thorough) for t in HELD],
)
def test_no_count_of_a_spelling_is_worse(task):
    for _, found in all_found([task], seconds=LATER):
        said = worse(found, expected(RECORD, task))
        assert not said, f"{key(task)}: {said}; where there is a reason, {ANEW}"


def test_the_sample_meets_every_spelling():
    assert {spelling for _, spelling in SAMPLE} == {USUAL, *SPELLINGS}


USUALLY = {RISK: 0, "traffic": 64, "operations": 5, EVERY_SIZE: True}


@pytest.mark.parametrize(
    "now, said",
    [
        ({}, ""),
        ({"operations": 4}, ""),
        ({"operations": 6}, "operations 5 -> 6"),
        ({"traffic": 32, "operations": 6}, ""),
        ({"traffic": 96, "operations": 4}, "traffic 64 -> 96"),
        ({RISK: 1, "traffic": 32}, "risk 0 -> 1"),
        ({EVERY_SIZE: False, "traffic": 32}, "no longer proved for every size"),
        ({"new": 7}, ""),
        ({ERROR: "not within 3 s"}, "not within 3 s"),
    ],
)
def test_the_first_count_that_differs_decides(now, said):
    assert worse(USUALLY | now, USUALLY) == said
    assert worse(USUALLY | now, {ERROR: "died"}) == ""


def test_a_line_is_what_is_not_as_usual():
    """Of a relative its risk and what was proved of it alone."""
    dearer, riskier = USUALLY | {"traffic": 96}, USUALLY | {"traffic": 96, RISK: 1}
    counted = {("f", "added"): USUALLY, ("f", USUAL): USUALLY, ("f", "inlined"): dearer}
    counted |= {("f", "weighted"): dearer, ("f", "along two"): riskier}
    record = recorded(counted)
    own = {"f, along two": {RISK: 1, EVERY_SIZE: True}}
    assert record == {"f": USUALLY, "f, inlined": dearer} | own
    assert all(not worse(found, expected(record, task)) for task, found in counted.items())


def test_what_does_not_end_or_dies_is_told_apart():
    def work(task):
        while task == "endless":
            time.process_time()
        if task == "dead":
            os._exit(1)
        return 1 / len(task)

    found = {task: rest for task, *rest in apart(work, ["endless", "dead", "", "it"], 1, 2)}
    assert found == {
        "endless": [None, "not within 1 s"],
        "dead": [None, "died"],
        "": [None, "ZeroDivisionError: division by zero"],
        "it": [0.5, ""],
    }
