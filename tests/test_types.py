"""What a type checker sees of the public face: a user's file is right where it is, and its mistakes
are found; nothing that is public lacks a type.
"""

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import codegen.backwards
import codegen.importing
import derive
import gradform

ROOT = Path(__file__).resolve().parents[1]
STUB = ast.parse((ROOT / "derive" / "__init__.pyi").read_text())
OURS = ("derive", "codegen")
CALLED = ("__new__", "__init__", "__call__")

OWN = """
import gradform
from gradform import Axis, Flatten, Forward, Given, Input, Kept, Label, Max, OneHot, Position
from gradform import Outputs, Proved, Reduced, Scalar, Size, Sum, Unflatten, check, derive
from gradform import from_torch
from gradform.generated.rms_norm import rms_norm, rms_norm_forward
from sympy import Piecewise, Rational, exp, log
from torch import Tensor

N, C = Axis("N"), Axis("C")
G, K = Axis("G"), Axis("K")

class Norm(Forward):
    x = Input(N, C)
    gain = Input(C, default=1)
    groups = Size(G)
    eps = Scalar(1e-5, above=0)
    split = Unflatten(x, C, into=(G, K))
    mean = Sum(split, N, K) / (N * K)
    diff = split - mean
    var = Sum(diff**2, N, K) / (N * K - 1)
    flat = Flatten(diff * (var + eps) ** Rational(-1, 2), G, K, into=C)
    y = gain * flat

class Loss(Forward):
    x = Input(N, C)
    labels = Label(N, ignored=-100)
    weight = Given(C)
    scaled = 2 * Norm(x, weight, groups=3) - 1
    h = Piecewise((0, scaled <= Position(C)), (-scaled, True))
    logp = h - Max(h, C) - log(Sum(exp(h - Max(h, C)), C))
    losses = -Sum(weight * OneHot(labels, C) * logp, C)
    loss = Reduced(losses, mean=Sum(Kept(labels), N))

class Centred(Forward):
    x = Input(N, C)
    m = Sum(x, C) / C
    d = x - m
    outputs = Outputs(d, m)

class Scaled(Forward):
    x = Input(N, C)
    d, m = Centred(x)
    y = d * m

proved: Proved = derive(Loss, limit=3.0)
said: str = str(check(Loss, "dloss", of="x"))
again: type[Forward] = from_torch(lambda x: x.tanh(), "x: N")
version: str = gradform.__version__

def normed(x: Tensor) -> Tensor:
    return rms_norm(x, x[0]) + rms_norm_forward(x, x[0], 1e-6)[0]

gradform.nothing  # attr-defined
derive(3)  # arg-type
derive(Loss, limit="long")  # arg-type
check(Loss)  # call-overload
Input(N, defualt=1)  # call-arg
Axis(3)  # arg-type
rms_norm()  # call-arg
wrong: int = derive(Loss)  # assignment
"""
# Torch's own types are not followed, which takes a minute; SymPy has none.
SETTINGS = """
[mypy]
follow_imports = silent
[mypy-torch.*]
follow_imports = skip
[mypy-sympy.*]
ignore_missing_imports = True
"""
MISTAKE = re.compile(r"own\.py:(\d+): error: .*\[([\w-]+)\]")


def test_a_users_file_is_checked(tmp_path):
    """The gallery is where a wheel has it."""
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    for package in (*OURS, "gradform"):
        (tmp_path / package).symlink_to(ROOT / package)
    inside = tmp_path / "gradform"
    inside.unlink()
    inside.mkdir()
    for file in ROOT.joinpath("gradform").glob("*.py*"):
        (inside / file.name).symlink_to(file)
    (inside / "generated").symlink_to(ROOT / "generated")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", os.devnull, "own.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": str(tmp_path)},
    )
    wanted = [
        (number, word)
        for number, line in enumerate(OWN.split("\n"), 1)
        if (word := line.partition("  # ")[2])
    ]
    found = [(int(line), word) for line, word in MISTAKE.findall(done.stdout)]
    assert sorted(found) == sorted(wanted), done.stdout + done.stderr


def test_type_checkers_know_what_is_public():
    imported = {a.asname for n in STUB.body if isinstance(n, ast.ImportFrom) for a in n.names}
    made = {node.name for node in STUB.body if isinstance(node, ast.FunctionDef)}
    assert (imported | made) - {None} == {*derive.PUBLIC, *derive.BESIDE}
    assert {*derive.PUBLIC, *derive.BESIDE} <= {*dir(gradform)}


@pytest.mark.parametrize(
    "stub", [n for n in STUB.body if isinstance(n, ast.FunctionDef)], ids=lambda n: n.name
)
def test_a_declaration_takes_what_type_checkers_think(stub):
    def shape(function: ast.FunctionDef) -> list[str]:
        of = function.args
        names = [f"{a.arg}: {ast.unparse(a.annotation)}" for a in (*of.args, *of.kwonlyargs)]
        defaults = [d and ast.unparse(d) for d in (*of.defaults, *of.kw_defaults)]
        return [*names, of.vararg and of.vararg.arg, *defaults]

    source = inspect.getsource(import_module(getattr(derive, stub.name).__module__))
    bodies = {n.name: n for n in ast.parse(source).body if isinstance(n, ast.ClassDef)}
    own = (n for n in bodies[stub.name].body if isinstance(n, ast.FunctionDef))
    inherited = (n for n in bodies["Declaration"].body if isinstance(n, ast.FunctionDef))
    init = next(n for n in (*own, *inherited) if n.name == "__init__")
    init.args.args.pop(0)
    assert shape(stub) == shape(init)


PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module, names in {
        derive: [*derive.PUBLIC, *derive.BESIDE],
        codegen: codegen.__all__,
        codegen.importing: codegen.importing.PUBLIC,
        codegen.backwards: codegen.backwards.PUBLIC,
    }.items()
    for name in names
}


def functions_of(value) -> Iterator:
    """It, or the public methods of a class and of those of ours that it inherits from."""
    if inspect.isfunction(value):
        yield value
        return
    for base in inspect.getmro(value):
        if base.__module__.partition(".")[0] in OURS:
            for name, found in vars(base).items():
                found = getattr(found, "fget", None) or getattr(found, "func", found)
                found = inspect.unwrap(getattr(found, "__func__", found))
                if inspect.isfunction(found) and (name in CALLED or not name.startswith("_")):
                    yield found


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_has_types(name):
    for function in functions_of(PUBLIC[name]):
        of = inspect.signature(function)
        bare = [p.name for p in of.parameters.values() if p.annotation is p.empty]
        made = function.__name__ == "__init__" or of.return_annotation is not of.empty
        assert made and {*bare} <= {"self", "cls"}, f"{function.__qualname__}{of}"
