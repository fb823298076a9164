"""Items of the suite that take seconds: ``make test`` leaves those of ``slow.txt`` to ``make
test-all``, which CI calls.

    pytest -n 2 --dist loadgroup -m "not names" --durations=0 -vv > build/durations
    python tests/slow.py build/durations [SECONDS]

writes the list anew from what pytest measured.
"""

import re
import sys
from pathlib import Path

LIST = Path(__file__).with_suffix(".txt")
SECONDS = 0.5  # of an idle machine with two cores
# What a change breaks most often is found before it is committed.
ALWAYS = (
    "house",
    "whole_classes",
    "rooms",
    "words",
    "types",
    "docs.py::*README",
    "notebook",
    "wheel.py::*sources",
)


def listed() -> frozenset[str]:
    return frozenset(LIST.read_text().splitlines())


def measured(text: str) -> dict[str, float]:
    """Seconds of the call of every item, by its id, without the group of xdist behind it."""
    calls = re.findall(r"^\s*([\d.]+)s call\s+(tests/[^\n]+)$", text, re.MULTILINE)
    return {re.sub(r"@[^@\]]*$", "", name): float(seconds) for seconds, name in calls}


def is_always_run(name: str) -> bool:
    return any(re.search(f"test_{where.replace('*', '.*')}", name) for where in ALWAYS)


def written(seconds: dict[str, float], longest: float) -> str:
    slow = sorted(n for n, own in seconds.items() if own > longest and not is_always_run(n))
    return "".join(f"{name}\n" for name in slow)


if __name__ == "__main__":
    found = measured(Path(sys.argv[1]).read_text())
    LIST.write_text(written(found, float(sys.argv[2]) if sys.argv[2:] else SECONDS))
