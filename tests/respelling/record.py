"""The record: the counts of the gallery, of every forward of it in every spelling, and of the long
forwards, in ``counts.json``, a line for each.

A spelling has a line where its counts are not those of the usual one; a relative, where it is less
safe or safer. What is found is no worse than the record: ``tests/test_respellings.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from forwards import forward_file
from long_forwards import LONG

from derive.language.notation.library import forward_from, list_forwards
from respelling.comparison import ERROR, Counts, counts, safety
from respelling.processes import apart
from respelling.spellings import respelled, spellings

RECORD = Path(__file__).with_name("counts.json")
SECONDS = 60  # for one forward in one spelling, when it is recorded
SPELLINGS = {spelling.name: spelling for spelling in spellings}
USUAL = ""  # the name of the spelling that has none

Task = tuple[str, str]  # the name of a forward, and of a spelling
Record = dict[str, Counts]


def tasks() -> list[Task]:
    """All that is recorded, the usual spelling of a forward before the others."""
    found = [(name, USUAL) for name in LONG]
    for definition in (forward.definition for forward in list_forwards()):
        others = (s.name for s in spellings if s.applies(definition))
        found += [(definition.snake, spelling) for spelling in (USUAL, *others)]
    return found


def key(task: Task) -> str:
    return ", ".join(filter(None, task))


def found(task: Task) -> Counts:
    """The counts of a forward in a spelling."""
    name, spelling = task
    with TemporaryDirectory() as folder:
        source = forward_file(Path(folder), name, LONG[name]) if name in LONG else name
        definition = forward_from(source).definition
        if spelling != USUAL:
            definition = respelled(definition, SPELLINGS[spelling]).definition
        return counts(definition)


def all_found(
    wanted: Iterable[Task], processes: int = 1, seconds: int = SECONDS
) -> Iterator[tuple[Task, Counts]]:
    """The counts of each, as they come."""
    for task, result, error in apart(found, wanted, seconds, processes):
        yield task, {ERROR: error} if error else result


def expected(record: Record, task: Task) -> Counts:
    """What the record has of it."""
    name, spelling = task
    usual = record[name]
    as_usual = usual if spelling == USUAL or SPELLINGS[spelling].same else safety(usual)
    return record.get(key(task), as_usual)


def recorded(counted: dict[Task, Counts]) -> Record:
    """The record of all that was counted."""
    record: Record = {name: c for (name, spelling), c in counted.items() if spelling == USUAL}
    for task, c in counted.items():
        as_usual = expected(record, task)
        own = c if task[1] == USUAL or SPELLINGS[task[1]].same else safety(c)
        if own != as_usual:
            record[key(task)] = own
    return record


def read() -> Record:
    return json.loads(RECORD.read_text("utf-8"))


def write(record: Record) -> None:
    lines = (f"{json.dumps(name)}: {json.dumps(record[name])}" for name in sorted(record))
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
