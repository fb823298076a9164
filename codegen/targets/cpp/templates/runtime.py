"""Kernels in the place of lines of torch: built at first use, kept, and chosen in one word.

``use("cpp")`` lets the functions of all modules in the folder above run on kernels, ``use("torch")``
on torch again; as a context manager it holds inside of the block. It is one choice for all threads.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import torch
from torch.autograd import forward_ad

FOLDER = Path(__file__).parent
FORMATS = {torch.float32: "float", torch.float64: "double"}
PLAIN = (torch.Tensor, torch.nn.Parameter)
TARGETS = ("torch", "cpp")
FLAGS = (
    "-std=c++17",
    "-O3",
    "-march=native",
    "-fopenmp",
    "-fno-math-errno",  # no rule of arithmetic is relaxed by these two
    "-fno-trapping-math",
    "-shared",
    "-fPIC",
)
LIBRARIES = ("-lmvec", "-lm") if platform.libc_ver()[0] == "glibc" else ("-lm",)
LONGEST_BUILD = 600  # seconds


class NoCompiler(RuntimeError):
    """Kernels cannot be built here."""


class Original:
    """The functions of a module as they were before any kernel took their place."""

    def __init__(self, module, names):
        self.module = module
        for name in names:
            setattr(self, name, getattr(module, name))


class Kernels:
    """The kernels of one file, built when the first one is called.

    ``counts`` are, for each, how many arrays, sizes and numbers it is called with.
    """

    def __init__(self, file: str, counts: dict[str, tuple[int, int, int]]):
        self.source, self.counts = Path(file).with_suffix(".cpp"), counts
        self.found: dict = {}
        self.lock = threading.Lock()
        self.built = None

    def run(self, name: str, arrays, numbers) -> bool:
        """Whether a kernel could compute with these; the arrays lie one entry after the other."""
        key = name, arrays[-1].dtype
        function = self.found.get(key)
        if function is None:
            function = self.load(key)
        pointers = [array.data_ptr() for array in arrays]
        status = function(*pointers, *numbers, torch.get_num_threads())
        if status == 2:
            raise MemoryError(f"{self.source.stem}: {name} has no memory for its rows")
        return status == 0

    def load(self, key):
        name, dtype = key
        with self.lock:
            if self.built is None:
                self.built = ctypes.CDLL(str(built(self.source)))
            function = getattr(self.built, f"{name}_{FORMATS[dtype]}")
            arrays, sizes, numbers = self.counts[name]
            function.argtypes = (
                [ctypes.c_void_p] * arrays
                + [ctypes.c_int64] * sizes
                + [ctypes.c_double] * numbers
                + [ctypes.c_int]
            )
            function.restype = ctypes.c_int
            self.found[key] = function
        return function


def usable(*tensors) -> bool:
    """Whether kernels can compute with these: plain tensors in one format of 32 or 64 bits on the
    CPU, of which nothing wants to know how the result came about.
    """
    if (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack()
        or forward_ad._current_level >= 0
    ):
        return False
    recorded, formats = torch.is_grad_enabled(), set()
    for tensor in tensors:
        if tensor is None:
            continue
        if (
            type(tensor) not in PLAIN
            or not tensor.is_cpu
            or tensor.layout is not torch.strided
            or (recorded and tensor.requires_grad)
            or tensor.is_neg()
            or torch._C._functorch.is_legacy_batchedtensor(tensor)
        ):
            return False
        if tensor.dtype is not torch.int64:
            formats.add(tensor.dtype)
    return len(formats) == 1 and formats <= FORMATS.keys()


# -- building -----------------------------------------------------------------


def built(source: Path) -> Path:
    """The library made of a file: found by what it was made of, or made now. Processes that build
    the same one at once do not disturb each other. Raises `NoCompiler`.
    """
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        raise NoCompiler("no C++ compiler was found: install g++, or name one in CXX")
    made_of = [source.read_text(), (FOLDER / "loops.h").read_text(), *FLAGS, *LIBRARIES]
    made_of += [version(compiler), processor()]
    name = hashlib.sha256("\n".join(made_of).encode()).hexdigest()[:32]
    folder = cache()
    library = folder / f"{source.stem}-{name}.so"
    if library.exists():
        return library
    handle, fresh = tempfile.mkstemp(".so", f"{source.stem}-", folder)
    os.close(handle)
    try:
        command = [compiler, *FLAGS, f"-I{FOLDER}", str(source), "-o", fresh, *LIBRARIES]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_BUILD)
        if done.returncode:
            raise NoCompiler(f"{compiler} cannot build {source}:\n{done.stderr[:2000]}")
        os.replace(fresh, library)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoCompiler(f"{compiler} cannot build {source}: {error}") from error
    finally:
        Path(fresh).unlink(missing_ok=True)
    return library


def version(compiler: str) -> str:
    try:
        done = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoCompiler(f"{compiler} does not run: {error}") from error
    return done.stdout


def processor() -> str:
    """What ``-march=native`` means here."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def cache() -> Path:
    """Where libraries are kept: a folder of the user's, or one for this process alone."""
    kept = os.environ.get("GRADFORM_KERNELS")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(kept) if kept else Path(home) / "gradform" / "kernels"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return Path(tempfile.mkdtemp(prefix="gradform-kernels-"))


# -- choosing -----------------------------------------------------------------

_lock = threading.RLock()
_state = {"target": "torch"}


class use:
    """Lets all functions of the package run on a target: "torch", or "cpp" for kernels.

    As a context manager it restores what was chosen before. Where no kernel can be built, the
    functions run on torch, and a warning says so once. Raises ValueError for another word.
    """

    def __init__(self, target: str):
        if target not in TARGETS:
            raise ValueError(f"there is no target {target!r}: there are {', '.join(TARGETS)}")
        with _lock:
            self.before = _state["target"]
            _choose(target)

    def __enter__(self) -> use:
        return self

    def __exit__(self, *error) -> None:
        with _lock:
            _choose(self.before)


def _choose(target: str) -> None:
    if target == "cpp":
        try:
            built(FOLDER / "probe.cpp")
        except NoCompiler as error:
            if not _state.get("told"):
                warnings.warn(f"{error}; the functions run on torch", stacklevel=3)
                _state["told"] = True
            return
    for file in sorted(FOLDER.glob("*.cpp")):
        if file.stem != "probe":
            _replace(file.stem, target)
    _state["target"] = target


def _replace(name: str, target: str) -> None:
    full = f"{__name__}.{name}"
    if target == "torch" and full not in sys.modules:
        return
    wrapper = importlib.import_module(full)
    original = wrapper._of
    chosen = wrapper if target == "cpp" else original
    for function in vars(original):
        if function != "module":
            setattr(original.module, function, getattr(chosen, function))
