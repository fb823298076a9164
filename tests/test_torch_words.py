"""The table from torch to the notation in docs/notation.md: what is written is what torch computes,
and is derived; what cannot be written is refused, with that page.
"""

import re
import warnings

import pytest
import torch
import torch.nn.functional as F
from documentation import PAGES
from generating import draw, labels

from codegen.targets.torch.interpret import interpreted
from derive import NotationError, derive, forward_from
from derive.language.errors import PAGE

ROW = re.compile(r"^\| (`.*`) \| (.*) \|$", re.M)
NAME, SECTION = "docs/notation.md", "## From torch\n"
TEXT = PAGES[NAME].read_text().partition(SECTION)[2].partition("\n## ")[0]
ROWS = ROW.findall(TEXT)
CODES = {torchs[1:-1]: code[1:-1] for torchs, code in ROWS if re.fullmatch(r"`[^`]*`", code)}
WORDS = 60
HEAD = """\
from sympy import Abs, Eq, Mod, Piecewise, atan2, digamma, erf, erfc, exp, floor, log, loggamma
from sympy import sign, sqrt, tanh
from derive import Axis, Broadcast, Cholesky, CumMax, CumProd, CumSum, Detach, Diagonal, Flatten
from derive import Flip, Forward, Gather, Given, Gradient, Identity, Input, Inverse, Label, LogDet
from derive import Max, Min, OneHot, Ordered, Position, Rename, Round, SegmentSum, Solve, Sum
from derive import Unflatten

N, C, K, M, J, H = Axis("N"), Axis("C"), Axis("K"), Axis("M"), Axis("J"), Axis("H")
Two, G = Axis("Two", 2), Axis("G", 2)
"""
DECLARED = {  # rows first: so the axes become dimensions in this order
    **dict.fromkeys(("x", "w", "p", "s"), "Input(N, C)"),
    "labels": "Label(N)",
    "t": "Input(N)",
    "v": "Input(C)",
    "a": "Input(N, M)",
    "weight": "Input(K, C)",
    "bias": "Input(K)",
    "table": "Input(C, K)",
    "mask": "Given(N, C)",
}
SQUARE = "M"  # an axis as long as N


def values():
    found = {"x": draw(4, 6), "w": draw(4, 6, seed=2), "a": draw(4, 4), "bias": draw(5)}
    found |= {"p": draw(4, 6).abs() + 0.1, "s": draw(4, 6).sigmoid(), "v": draw(6), "t": draw(4)}
    found |= {"weight": draw(5, 6), "table": draw(6, 5), "labels": labels(4, 6)}
    return found | {"mask": (draw(4, 6, seed=3) > 0).double()}


def file_of(code, folder):
    """A forward of the code with what it reads, and what else gives its axes their sizes."""
    used = [name for name in DECLARED if re.search(rf"\b{name}\b", code)]
    if "labels" in used and not {"x", "table"} & {*used}:
        used += ["v"]
    if re.search(rf"\b{SQUARE}\b", code) and not {"a", "x"} & {*used}:
        used += ["a"]
    body = "".join(f"    {name} = {DECLARED[name]}\n" for name in used)
    file = folder / "mine.py"
    file.write_text(f"{HEAD}\n\nclass Mine(Forward):\n{body}    y = {code}\n")
    return file, used


@pytest.mark.parametrize("torchs", CODES)
def test_what_is_written_is_what_torch_computes_and_is_proved(torchs, tmp_path):
    file, used = file_of(CODES[torchs], tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what is declared for its size
        forward = forward_from(file)
    data = values()
    expected = eval(torchs, {**data, "torch": torch, "F": F})
    found = interpreted(forward.definition, {name: data[name] for name in used})["y"]
    torch.testing.assert_close(found, expected.to(found.dtype), rtol=1e-10, atol=1e-10)
    assert derive(forward).every_size


def test_the_table_is_long_and_every_row_says_what_to_do():
    words = [word for torchs, _ in ROWS for word in re.findall(r"`(.*?)`", torchs)]
    assert len(words) == len({*words}) >= WORDS
    for torchs, code in ROWS:
        assert torchs[1:-1] in CODES or "cannot be written" in code or ": " in code


IMPOSSIBLE = [
    *("torch.sort(x)", "x.topk(3)", "torch.median(x)", "torch.quantile(x, 0.5)"),
    *("torch.linalg.svd(x)", "torch.linalg.eigh(x)", "torch.matrix_exp(x)"),
    *("sympy.integrate(x**2, x)", "sqrt(-1) * x", "torch.linalg.qr(x)"),
]


@pytest.mark.parametrize("code", IMPOSSIBLE)
def test_what_cannot_be_written_is_refused_with_the_page(code, tmp_path):
    file, _ = file_of("x", tmp_path)
    text = file.read_text().replace("    y = x\n", f"    z = Sum(x**2, N)\n    y = {code}\n")
    text = "import sympy, torch\nimport torch.nn.functional as F\n" + text
    file.write_text(text.replace("    z", "    w = Input(N, C)\n    z", 1))
    with pytest.raises(NotationError, match=re.escape(PAGE)):
        forward_from(file)
    assert NAME in PAGE and "\n## What cannot be written\n" in PAGES[NAME].read_text()
