"""The tests nearest to what was changed: ``make test-fast``.

``python tests/touched.py`` prints the test files to run, nearest first, as many as fit in the
time, and says on stderr how many more there are. Near is few imports away: a file that imports the
changed one comes before a file that imports its importer. Seconds are those of the last
``--record``, which reads them from pytest's ``--junitxml``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

from test_rooms import ROOT, arrows, files, module_of

import derive

TESTS = Path(__file__).parent
SECONDS = TESTS / "seconds.json"
ALWAYS = ("test_house", "test_rooms")  # every change touches them
MOST = 110  # seconds of tests, which two processes share
UNKNOWN = 10  # seconds of a file that was never timed
GALLERY, FACE = re.compile(r"^gradform\.generated"), re.compile(r"^gradform\b")
# What is no Python: the test files that read it.
READ_BY = {".md": "test_docs", ".jinja": "test_codegen", ".html": "test_pages"}


def changed(against: str = "HEAD") -> list[Path]:
    """What differs from a revision, and what git does not know yet."""

    def told(*command: str) -> list[str]:
        return subprocess.check_output(["git", *command], cwd=ROOT, text=True).splitlines()

    new = told("ls-files", "--others", "--exclude-standard")
    return [ROOT / name for name in told("diff", "--name-only", against) + new]


def importers() -> dict[str, set[str]]:
    """For every module those that import it. A forward's generated module follows the forward; a
    name of the public face comes from the module that it is looked up in.
    """
    own = {module_of(f): f for folder in ("derive", "codegen", "generated") for f in files(folder)}
    own |= {file.stem: file for file in TESTS.glob("*.py")}
    doors = {f"derive.{name}": f"derive.{of}" for name, of in derive.PUBLIC.items()}
    doors |= {f"derive.{name}": of for name, of in derive.BESIDE.items()}
    doors["derive"] = "derive.derivation"  # who imports the whole face derives with it
    found: dict[str, set[str]] = defaultdict(set)
    for module, file in own.items():
        if module.startswith("generated."):
            found[f"derive.math.{module.rpartition('.')[2]}"].add(module)
        for arrow in arrows(file) if module not in ("derive", "codegen") else ():
            of = FACE.sub("derive", GALLERY.sub("generated", arrow.of))
            of = doors.get(of, of)
            found[of if of in own else of.rpartition(".")[0]].add(module)
    return found


def nearest(names: set[str]) -> list[str]:
    """The test files that a change of these modules can touch, in the order of their distance."""
    towards, seen, order = importers(), set(names), sorted(names)
    for name in order:  # grows while it is walked: breadth first
        further = sorted(towards[name] - seen)
        seen.update(further)
        order += further
    return [name for name in order if name.startswith("test_")]


def modules(paths: list[Path]) -> set[str]:
    inside = {p: p.relative_to(ROOT) for p in paths if p.suffix == ".py"}
    names = {p.stem if p.is_relative_to(TESTS) else module_of(p) for p in inside}
    return names | {READ_BY[p.suffix] for p in paths if p.suffix in READ_BY}


def chosen(names: list[str], most: float = MOST) -> tuple[list[str], list[str]]:
    """Those that fit into ``most`` seconds, and those that do not."""
    seconds = json.loads(SECONDS.read_text())
    fitting, left = [], []
    for name in dict.fromkeys([*ALWAYS, *names]):
        takes = seconds.get(name, UNKNOWN)
        (fitting if takes <= most else left).append(name)
        most -= takes if takes <= most else 0
    return fitting, left


def record(report: Path) -> None:
    """Keep the seconds of a whole run, by test file."""
    total: dict[str, float] = defaultdict(float)
    for case in ElementTree.parse(report).iter("testcase"):
        total[case.get("classname", "").split(".")[1]] += float(case.get("time", 0))
    kept = {name: round(took, 1) for name, took in sorted(total.items())}
    SECONDS.write_text(json.dumps(kept, indent=0) + "\n")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--record"]:
        return record(Path(arguments[1]))
    paths = changed(*arguments)
    fitting, left = chosen(nearest(modules(paths)))
    print(*(TESTS.name + f"/{name}.py" for name in fitting if (TESTS / f"{name}.py").exists()))
    if left:
        print(f"{len(left)} more test files may be touched; make test runs all", file=sys.stderr)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
