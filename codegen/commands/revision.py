"""Files as they were in a revision of git, in a folder of their own.

Git is asked to read alone: an index in that folder takes the place of the repository's, so that
neither the working tree nor what is staged is touched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from derive.language.errors import MATH, QuestionError
from derive.language.nearest import did_you_mean

TREE, INDEX, OVERLAY = "tree", "index", "gradform"
PACKAGES = (MATH.parent, Path(__file__).parents[1])


class NotInGitError(QuestionError):
    """Git has no earlier version of a file."""


class Revision:
    """The Python files of a repository as they were, below ``folder``.

    ``file`` is the old version of ``path``, ``folders`` are first on the path for its imports, and
    ``named`` is the prefix of its file names in messages. Raises `QuestionError` where there is no
    repository, no such revision, or no such file in it.
    """

    def __init__(self, path: Path, asked: str, folder: Path):
        self.path, self.tree, self.index = path.resolve(), folder / TREE, folder / INDEX
        revision, _, renamed = asked.partition(":")
        self.named = f"{revision}:"
        self.top = self._top()
        self.commit = self._commit(revision)
        self.relative = renamed or self.path.relative_to(self.top).as_posix()
        self._check_there(revision)
        self._write()
        self.file, self.folders = self.tree / self.relative, self._folders()
        if self.path.is_relative_to(MATH):
            overlay = folder / OVERLAY
            self.file, self.folders = self._in_gallery(overlay), [overlay]

    def _top(self) -> Path:
        found = self._git("rev-parse", "--show-toplevel", cwd=self.path.parent)
        if found.returncode:
            said = found.stderr.strip().removeprefix("fatal: ").splitlines() or ["no repository"]
            raise NotInGitError(
                f"{self.path.parent} is not in a git repository: {said[0]}",
                "diff compares a file with what git knows of it",
            )
        return Path(found.stdout.rstrip("\n")).resolve()

    def _commit(self, revision: str) -> str:
        wanted = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
        found = self._git(*wanted)
        if found.returncode:
            names = self._git("for-each-ref", "--format=%(refname:short)").stdout.split()
            remedy = "git log --oneline lists the commits, git branch and git tag the names"
            raise NotInGitError(
                f"git has no revision {revision!r} in {self.top}",
                did_you_mean(revision, names, remedy),
            )
        return found.stdout.strip()

    def _check_there(self, revision: str) -> None:
        if self._git("cat-file", "-e", f"{self.commit}:{self.relative}").returncode:
            raise NotInGitError(
                f"{self.relative} is not in {revision}",
                "git log --follow --oneline FILE lists the revisions with it; where it had another "
                f"name, write --against {revision}:OLD/PATH.py",
            )

    def _write(self) -> None:
        """Write every Python file of the revision: the file may import any of them."""
        listed = self._git("ls-tree", "-r", "-z", "--name-only", "--full-tree", self.commit)
        python = [name for name in listed.stdout.split("\0") if name.endswith(".py")]
        self._checked("read-tree", self.commit)
        prefix = f"--prefix={self.tree}/"
        self._checked("checkout-index", "-z", "--stdin", prefix, given="\0".join(python))

    def _checked(self, *command: str, given: str = "") -> None:
        found = self._git(*command, given=given)
        if found.returncode:
            raise QuestionError(
                f"git {command[0]} failed: {found.stderr.strip()}", "mend the repository"
            )

    def _git(
        self, *command: str, given: str = "", cwd: Path | None = None
    ) -> subprocess.CompletedProcess:
        try:
            return subprocess.run(
                ["git", *command],
                input=given,
                capture_output=True,
                text=True,
                errors="surrogateescape",
                cwd=cwd or self.top,
                env={**os.environ, "GIT_INDEX_FILE": str(self.index), "LC_ALL": "C"},
            )
        except FileNotFoundError:
            raise NotInGitError("there is no git here", "install git: diff asks it") from None

    def _folders(self) -> list[Path]:
        """The folders on Python's path inside the repository, as they are in the revision."""
        known = [Path(entry).resolve() for entry in sys.path if entry]
        own = [p for p in known if p.is_relative_to(self.top) and p != MATH.parents[1]]
        return [self.tree / entry.relative_to(self.top) for entry in own]

    def _in_gallery(self, overlay: Path) -> Path:
        """Overlay the old gallery on gradform as it is."""
        for package in PACKAGES:
            shutil.copytree(package, overlay / package.name, ignore=_without_gallery)
        then = self.tree / MATH.relative_to(self.top)
        shutil.copytree(then, overlay / MATH.parent.name / MATH.name)
        return overlay / MATH.parent.name / MATH.name / Path(self.relative).name


def _without_gallery(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(folder, name) == MATH]
