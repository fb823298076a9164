"""The search for the cheapest names does nothing twice, and finds the same."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from forwards import forward_file
from long_forwards import chain
from sympy import E, Expr, Integer, Rational, Symbol, exp

import derive
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing import closed_form, simplifying
from derive.language.operations import operations_in
from derive.language.traversal import parts_of

x, y = Symbol("x"), Symbol("y")


@pytest.mark.parametrize("name", ["batch_norm", "bce_with_logits", "masked_softmax", "focal"])
def test_operations_are_counted_as_sympy_counts_them(name, derived):
    steps = derived(name).closed_form.steps
    whole = [e for step in steps for e in (step.before, step.after)]
    parts = {part for e in whole for part in parts_of(e) if isinstance(part, Expr)}
    met = [part for part in parts if not part.is_Relational]
    assert met and all(operations_in(part) == part.count_ops() for part in met)


@pytest.mark.parametrize(
    "e",
    [
        *(Integer(1), Integer(-3), Rational(-1, 3), E, -x, -x - y, y - x, 1 / x, -1 / x, 2 / x),
        *(-2 * x / y, -(x**2), x**-2, (x - y) / 3, exp(-x / 2), 3 * x * y - 1, -x * (y - 1)),
    ],
    ids=str,
)
def test_signs_and_quotients_are_operations_too(e):
    assert operations_in(e) == e.count_ops()


def test_a_forward_of_twice_the_length_is_simplified_about_twice_as_often(tmp_path, monkeypatch):
    """When a name is removed, only its readers are simplified anew."""
    right, met = simplifying._forms, []
    monkeypatch.setattr(simplifying, "_forms", lambda *args: met.append(args) or right(*args))

    def simplified(length):
        met.clear()
        file = forward_file(tmp_path, f"Chain{length}", chain(length))
        closed_form.close(derive_chain(derive.forward_from(file).definition))
        return len(met)

    short, long = simplified(8), simplified(16)
    assert long < 2.5 * short, (short, long)


@pytest.mark.parametrize("first", ["derive", "codegen.driver.gate"])
def test_sympy_remembers_what_was_computed_for_the_gradients_before(first):
    program = (
        f"import {first}; from sympy.core.mul import Mul;"
        "assert Mul.__new__.cache_info().maxsize >= 20000"
    )
    root = Path(derive.__file__).parents[1]
    anew = {name: value for name, value in os.environ.items() if name != "SYMPY_CACHE_SIZE"}
    subprocess.run([sys.executable, "-c", program], check=True, cwd=root, env=anew)
