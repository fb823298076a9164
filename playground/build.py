"""Builds the playground, a folder of static files: python playground/build.py [--output DIR]

    npm ci               the packages of package-lock.json
    pip download, wheel  those of requirements.txt, and gradform itself, unpacked into one library
    snapshot.js          Python with all of that imported, as its memory
    esbuild              the page and its worker
    pages                the page, the stylesheet, the gallery, the licences, the service worker

What is built already from the same files is not built again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
MODULES = HERE / "node_modules"
STAMP = "built.txt"
# What Pyodide needs, and under which name: every host knows what a .js file is.
PYODIDE = {
    "pyodide.asm.mjs": "pyodide.asm.js",
    "pyodide.asm.wasm": "pyodide.asm.wasm",
    "python_stdlib.zip": "python_stdlib.zip",
}
# Of the library, what nothing here imports.
LEFT_OUT = ("sympy/physics", "sympy/parsing/autolev")
FETCHING = "its packages come from the registries of npm and Python, which must be within reach"
PACKAGES = ("derive", "codegen", "gradform", "certificates")
SOURCES = (*PACKAGES, "playground")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=ROOT / "site" / "play", metavar="DIR")
    parser.add_argument("--force", action="store_true", help="build what is built already, too")
    options = parser.parse_args()
    folder, wanted = options.output, _digest()
    stamp = folder / STAMP
    if not options.force and stamp.exists() and stamp.read_text() == wanted:
        print(f"up to date: {folder}")
        return 0
    with tempfile.TemporaryDirectory() as work:
        made = build(Path(work))
        if folder.exists():
            if not stamp.exists():
                sys.exit(f"{folder} was not written by this program; choose another --output")
            shutil.rmtree(folder)
        shutil.copytree(made, folder)
    stamp.write_text(wanted)
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"written to {folder}: {len(list(folder.iterdir()))} files, {size / 1e6:.1f} MB")
    return 0


def build(work: Path) -> Path:
    """The folder of files, in ``work``."""
    library, out = work / "library", work / "play"
    out.mkdir()
    if not _installed():
        _run("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", cwd=HERE)
    wheels = _wheels(work / "wheels")
    for wheel in wheels:
        _unpack(wheel, library)
    _run("node", "snapshot.js", str(library), str(out), cwd=HERE)
    bundled = _bundle(out)
    for name, known_as in PYODIDE.items():
        shutil.copy(MODULES / "pyodide" / name, out / known_as)
    _pages(out)
    (out / "licences.txt").write_text(_licences(wheels, bundled), encoding="utf-8")
    _service_worker(out)
    return out


def _installed() -> bool:
    kept = MODULES / ".package-lock.json"
    return kept.exists() and kept.stat().st_mtime >= (HERE / "package-lock.json").stat().st_mtime


def _wheels(folder: Path) -> list[Path]:
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    wanted = ("--no-deps", "--only-binary", ":all:", "--dest", str(folder))
    _run(*pip, "download", *wanted, "--requirement", str(HERE / "requirements.txt"))
    _run(*pip, "wheel", "--no-deps", "--wheel-dir", str(folder), _tracked(folder / "source"))
    return sorted(folder.glob("*.whl"))


def _tracked(copy: Path) -> str:
    """A copy of what gradform's wheel is made of: building leaves files beside its sources."""
    for name in PACKAGES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy / name)
    return str(copy)


def _unpack(wheel: Path, library: Path) -> None:
    """The Python of a wheel and its templates; nothing that is compiled, and no tests."""
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            top, parts = name.split("/")[0], name.split("/")[:-1]
            kept = name.endswith((".py", ".jinja")) and not top.endswith((".data", ".dist-info"))
            if kept and not {"tests", "benchmarks"} & {*parts} and not name.startswith(LEFT_OUT):
                packed.extract(name, library)


def _bundle(out: Path) -> list[str]:
    """The page and the worker, each as one file; returns the packages that are in them."""
    found = out.parent / "bundled.json"
    esbuild = MODULES / ".bin" / "esbuild"
    what = ("main.js", "worker.js", "--bundle", "--minify", "--format=esm", "--target=es2022")
    where = (f"--outdir={out}", f"--metafile={found}", "--external:node:*", "--external:ws")
    quiet = ("--legal-comments=none", "--log-level=warning")
    _run(str(esbuild), *what, *where, *quiet, cwd=HERE)
    inputs = (Path(name).parts for name in json.loads(found.read_text())["inputs"])
    inside = (
        parts[parts.index("node_modules") + 1 :] for parts in inputs if "node_modules" in parts
    )
    return sorted({"/".join(p[: 2 if p[0].startswith("@") else 1]) for p in inside} | {"pyodide"})


def _pages(out: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", TELLING],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=out,
        check=True,
        capture_output=True,
        text=True,
    )
    said = json.loads(told.stdout)
    (out / "gallery.json").write_text(json.dumps(said["gallery"]), encoding="utf-8")
    style = said["style"] + (HERE / "play.css").read_text(encoding="utf-8")
    (out / "style.css").write_text(style, encoding="utf-8")
    nonce = hashlib.sha256(style.encode()).hexdigest()[:32]
    page = (HERE / "index.html").read_text(encoding="utf-8").replace("NONCE", nonce)
    (out / "index.html").write_text(page, encoding="utf-8")


TELLING = """
import json
from codegen.playground import gallery
from derive.show.html import style
print(json.dumps({"gallery": gallery(), "style": style()}))
"""


def _licences(wheels: list[Path], packages: list[str]) -> str:
    """Everything that is in the folder, with the words it is given under."""
    parts = ["What the playground is made of, and the licences of its parts.\n"]
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as packed:
            names = packed.namelist()
            (metadata,) = (n for n in names if n.endswith(".dist-info/METADATA"))
            about = HeaderParser().parsestr(packed.read(metadata).decode())
            kind = about.get("License-Expression") or about.get("License") or ""
            texts = [packed.read(n).decode() for n in names if _is_licence(Path(n).name)]
            parts.append(_licence(about["Name"], about["Version"], kind, texts))
    for package in packages:
        folder = MODULES / package
        about = json.loads((folder / "package.json").read_text())
        texts = [file.read_text() for file in sorted(folder.iterdir()) if _is_licence(file.name)]
        home = about.get("repository", {}).get("url", "").removeprefix("git+")
        name = f"{about['name']} ({home})"
        parts.append(_licence(name, about["version"], about["license"], texts))
    parts.append("Pyodide holds CPython, under the licence of the Python Software Foundation.\n")
    return "\n".join(parts)


def _is_licence(name: str) -> bool:
    return name.upper().startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE"))


def _licence(name: str, version: str, kind: str, texts: list[str]) -> str:
    title = f"{name} {version}: {kind.splitlines()[0] if kind else 'as below'}"
    return "\n".join([title, "-" * len(title), *(text.strip() for text in texts), ""])


def _service_worker(out: Path) -> None:
    """Its list of files, each with its hash."""
    files = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(out.iterdir())
    }
    version = hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]
    values = f"const VERSION = {json.dumps(version)};\nconst FILES = {json.dumps(files)};\n"
    text = values + (HERE / "service-worker.js").read_text(encoding="utf-8")
    (out / "service-worker.js").write_text(text, encoding="utf-8")


def _digest() -> str:
    """Of every file that what is built depends on."""
    digest = hashlib.sha256(sys.version.encode())
    for folder in SOURCES:
        for file in sorted((ROOT / folder).rglob("*")):
            parts = file.relative_to(ROOT).parts
            if file.is_file() and not {"node_modules", "__pycache__"} & {*parts}:
                digest.update(f"{'/'.join(parts)}\n".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _run(*command: str, cwd: Path = ROOT) -> None:
    try:
        done = subprocess.run(command, cwd=cwd)
    except FileNotFoundError:
        sys.exit(f"{command[0]} is needed to build the playground: make playground installs it")
    if done.returncode:
        told = f"{' '.join(command[:4])} failed, as it says above"
        sys.exit(f"{told}; {FETCHING}" if {"ci", "pip"} & {*command} else told)


if __name__ == "__main__":
    sys.exit(main())
