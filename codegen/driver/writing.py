"""Writing generated modules: all of them or none, into a folder that is a package."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from codegen.files.quality import Emitted
from codegen.targets.languages import KernelLanguage
from codegen.targets.tables.kernel import TEMPLATES
from codegen.targets.torch.parts import beside
from derive.language.errors import QuestionError
from derive.running import writing
from derive.running.folders import is_empty

OURS = '"""Generated modules'
MARKER = f'{OURS}. Not edited by hand."""\n'
REMEDY = "choose another folder with --out"


def kernel_files(out: Path, results: Iterable[Emitted], kernels: KernelLanguage) -> dict[Path, str]:
    """Texts of the folder of kernels in ``out``; also of the package, if gradform wrote it.

    Raises `QuestionError` where two forwards would have the same file.
    """
    folder = out / kernels.folder
    texts = {folder / name: text for name, text in kernels.shared().items()}
    for result in results:
        if result.kernels:
            name = Path(result.file).stem
            paths = (folder / f"{name}{end}" for end in kernels.ends)
            pairs = zip(paths, result.kernels, strict=False)
            for path, text in pairs:
                if path in texts:
                    raise QuestionError(
                        f"{path} would be written twice, once for {name}",
                        f"rename one of the two classes, or {REMEDY} for it",
                    )
                texts[path] = text
    package = out / "__init__.py"
    if (writing.current(package) or OURS).startswith(OURS):
        texts[package] = (TEMPLATES / "package.py").read_text()
    return texts


def with_runtime(texts: Mapping[Path, str]) -> dict[Path, str]:
    """The modules, and in each folder the runtime file that they import."""
    shared = {
        p.parent / name: own for p, text in texts.items() for name, own in beside(text).items()
    }
    return shared | dict(texts)


def outdated(texts: Mapping[Path, str]) -> list[Path]:
    """The files that are out of date; the differences are printed."""
    return [path for path, text in texts.items() if _show_difference(path, text)]


def write_modules(
    texts: Mapping[Path, str], inputs: Iterable[Path] = (), force: bool = False
) -> list[Path]:
    """Replace every file by its new text; in an empty folder, make modules importable.

    Raises `QuestionError` where the folder cannot be written, and what
    `derive.running.writing.refuse` raises.
    """
    folders = sorted({path.parent for path in texts})
    for folder in folders:
        if folder.parent in folders and folder.is_symlink():  # nobody has named it
            raise QuestionError(
                f"{folder} is a symbolic link: its target would be overwritten",
                f"remove the link, or {REMEDY}",
            )
    try:
        new = [folder for folder in folders if not folder.exists() or is_empty(folder)]
    except OSError as error:
        problem = f"{error.filename} cannot be written: {error.strerror}"
        raise QuestionError(problem, REMEDY) from None
    markers = {folder / "__init__.py": MARKER for folder in new}
    return writing.write_all(markers | dict(texts), REMEDY, inputs, force)


def _show_difference(path: Path, text: str) -> bool:
    """Print the difference of the file from its new text; True if there is one."""
    old = writing.current(path)
    if old == text:
        return False
    lines = difflib.unified_diff(
        (old or "").splitlines(),
        text.splitlines(),
        f"{path} (as written)",
        f"{path} (now)",
        lineterm="",
    )
    shown = [line for line in lines if line[1:].partition(":")[0] != "# source sha256"]
    sys.stdout.write("\n".join(shown) + "\n")
    return True
