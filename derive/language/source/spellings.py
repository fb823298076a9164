"""Names from torch, numpy and SymPy that the notation lacks, and their replacements.

They cover functions, tensor methods and names of other libraries. A `Spelling` is code for ``x``
along (N, C), or the reason why there is none; the tests derive all of this code.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sympy
from sympy import Function

from derive.language.errors import MATH, PAGE
from derive.language.functions import TABLE
from derive.language.lexicon import WORDS

SIMILAR = 0.8  # between words of the notation; a wrong guess would mislead

NODES = sorted({name for name, word in WORDS.items() if word.is_public} | {"Detach", "Round"})
DECLARATIONS = (
    *("Axes", "Axis", "Forward", "Given", "Input", "Label", "Ordered", "Outputs", "Reduced"),
    *("Scalar", "Size"),
)
HAS = f"the notation has {', '.join(NODES)}, and the functions of SymPy"


@dataclass(frozen=True, init=False)
class Spelling:
    """Code for ``x`` along (N, C), possibly in several variants; or the reason ``why`` there is
    none.
    """

    codes: tuple[str, ...]
    why: str

    def __init__(self, *codes: str, why: str = ""):
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "why", why)

    def __str__(self) -> str:
        if not self.codes:
            return self.why + (f" ({PAGE})" if IMPOSSIBLE in self.why else "")
        codes = " or ".join(self.codes)
        whose = "for x along (N, C) " if re.search(r"\b[NC]\b", codes) else ""
        return f"{whose}write {codes}" + (f": {self.why}" if self.why else "")


PICKED = "Sum(OneHot(labels, C) * x, C)"
CHOICE = "Piecewise((x, x > 0), (0, True))"
BESIDE = "OneHot(0, State) * x + OneHot(1, State) * w"
NAMED = (
    "axes have names: nothing is moved, leave it out, and name axes instead of numbers; the order "
    "of a result is y = Ordered(e, C, N)"
)
LEFT_OUT = "leave it out: it changes no value"
IMPOSSIBLE = "cannot be written in the notation"
ORDER = "it orders entries, which cannot be written in the notation"
RANDOM = "nothing is random in the mathematics: draw it outside, and pass it as Given(N, C)"
SIZE = "an axis stands for its own size: write its name where the size is meant"
REWRITES = (
    "leave it out: how a formula is written changes nothing, and gradform simplifies by itself"
)
_SPELLINGS: dict[Spelling, str] = {
    Spelling("Sum(x, N)"): "sum nansum reduce_sum add_reduce fsum total",
    Spelling("Sum(x, N) / N"): "mean nanmean average avg reduce_mean fmean",
    Spelling("Sum((x - Sum(x, N) / N)**2, N) / N"): "var variance pvariance moment",
    Spelling("sqrt(Sum((x - Sum(x, N) / N)**2, N) / N)"): "std stdev pstdev std_dev",
    Spelling("sqrt(Sum(x**2, C))"): "norm vector_norm l2norm l2_norm",
    Spelling("exp(Sum(log(x), C))", why="a product, where x > 0"): "prod product cumproduct",
    Spelling("Max(x, C)", "Max(x, w)", why="along an axis, or of two tensors"): (
        "max amax reduce_max nanmax rowmax maximum fmax larger"
    ),
    Spelling("Min(x, C)", "Min(x, w)", why="along an axis, or of two tensors"): (
        "min amin reduce_min nanmin rowmin minimum fmin smaller"
    ),
    Spelling("Piecewise((1, Eq(x, Max(x, C))), (0, True))", why="which entries are the largest"): (
        "argmax argmin"
    ),
    Spelling(CHOICE): "where select heaviside threshold ifelse if_else",
    Spelling("Max(x, 0)"): "clamp_min",
    Spelling("Piecewise((0, x < 0), (1, x > 1), (x, True))"): "clamp clip",
    Spelling("Min(Max(x, -1), 1)"): "hardtanh",
    Spelling("log(1 + x)"): "log1p",
    Spelling("exp(x) - 1"): "expm1",
    Spelling("x**2"): "square power",
    Spelling("1 / sqrt(x)"): "rsqrt",
    Spelling("1 / x"): "reciprocal",
    Spelling("Sum(x * w, C)", why="a matrix product, of w along (N, C)"): (
        "matmul mm bmm mv dot vdot einsum tensordot inner addmm contract outer"
    ),
    Spelling(PICKED, why="the entry of a label, or the row of a table"): (
        "gather index_select take take_along_dim take_along_axis pick index"
    ),
    Spelling("Sum(OneHot(labels, C) * w, N)", why="what is added up by its label"): (
        "scatter scatter_add index_add segment_sum bincount"
    ),
    Spelling("Piecewise((1, Ne(x, 0)), (0, True))"): "bool nonzero count_nonzero",
    Spelling(why="a step has no gradient: pass what it gives as Given(N, C)"): (
        "int long divmod fmod"
    ),
    Spelling("Piecewise((ceiling(x), x < 0), (floor(x), True))"): "trunc fix",
    Spelling("floor(x / w)"): "floor_divide",
    Spelling("OneHot(labels, C)"): "one_hot onehot",
    Spelling("Piecewise((1, Position(C) < Position(N)), (0, True))"): (
        "arange indices range iota positions tril triu tri mask"
    ),
    Spelling("Identity(N, C)", why="two axes of one size"): "eye delta kroneckerdelta",
    Spelling("Diagonal(x, N, C)", "Identity(N, C) * x", why="read, or put, on the diagonal"): (
        "diag diag_embed diagonal_scatter"
    ),
    Spelling("Sum(Diagonal(x, N, C), N)"): "trace",
    Spelling("CumSum(x, N)"): "cumsum cumulative_sum prefix_sum accumulate",
    Spelling("CumProd(x, N)"): "cumprod cumulative_prod",
    Spelling("Scan(w, x, N)", why="h[n] = w[n]*h[n - 1] + x[n]"): (
        "scan associative_scan selective_scan lfilter ewm ema"
    ),
    Spelling("Previous(x, N)", why="the entry before each; behind it stands Next(x, N)"): (
        "shift roll lag"
    ),
    Spelling("Flatten(x, N, C, into=K)"): "reshape view ravel flatten",
    Spelling("Unflatten(x, C, into=(G, K))", why="with an axis of a known size"): (
        "chunk split rearrange"
    ),
    Spelling(BESIDE, why='two results side by side, with State = Axis("State", 2)'): "stack vstack",
    Spelling("Concat((x, C), (w, C), into=L)", why='with L = Axis("L", C + C)'): (
        "cat concat concatenate hstack"
    ),
    Spelling("Flip(x, C)"): "flip fliplr flipud reverse reversed",
    Spelling("Shift(x, C, 1)", why="with 0 where nothing comes from"): "roll shift lag",
    Spelling("Pad(x, C, into=P, before=1)", why='with P = Axis("P", C + 1)'): "pad padding",
    Spelling("Slice(x, C, into=D, start=1)", why='with D = Axis("D", C - 1)'): "narrow slice",
    Spelling("Window(x, C, into=(C, K), padding=1)", why="windows of K entries along C"): (
        "unfold as_strided im2col sliding_window_view"
    ),
    Spelling("Sum(Window(x, C, into=(C, K), padding=1) * k, K)", why="with k = Given(K)"): (
        "conv conv1d conv2d conv3d convolve correlate conv_transpose1d"
    ),
    Spelling(
        "Max(Window(x, C, into=(C, K), padding=1, fill=-oo), K)", why="the largest in windows of K"
    ): "maxpool max_pool max_pool1d max_pool2d avg_pool1d avg_pool2d",
    Spelling("Broadcast(x, K)"): "expand expand_as broadcast_to repeat tile",
    Spelling("CumMax(x, N)"): "cummax running_max",
    Spelling("-CumMax(-x, N)"): "cummin running_min",
    Spelling(why=ORDER): (
        "sort sorted argsort topk top_k median quantile kthvalue unique searchsorted msort mode"
    ),
    Spelling(why="a Fourier transform cannot be written in the notation"): "fft rfft ifft",
    Spelling(
        "Inverse(Sum(x * Rename(x, C, K), N), C, K)", why="of a square matrix, here along (C, K)"
    ): "inv inverse",
    Spelling(
        "LogDet(Sum(x * Rename(x, C, K), N), C, K)",
        why="log|det| of a square matrix, here along (C, K)",
    ): "det slogdet logdet",
    Spelling(
        "Cholesky(Sum(x * Rename(x, C, K), N), C, K)",
        why="of a positive definite matrix, here along (C, K)",
    ): "cholesky",
    Spelling(
        "Solve(Sum(x * Rename(x, C, K), N), x, C, K)",
        why="the solution lies along K, where the matrix lies along (C, K)",
    ): "solve solve_triangular cholesky_solve lstsq",
    Spelling(why="what is solved for cannot be written in the notation"): (
        "pinv svd eig eigh qr matrix_exp"
    ),
    Spelling(why=RANDOM): "rand randn random randint dropout bernoulli normal uniform rand_like",
    Spelling("Detach(x)"): "detach stop_gradient stop_grad no_grad",
    Spelling(why="declare what passes no gradient: x = Given(N, C)"): (
        "requires_grad requires_grad_"
    ),
    Spelling(
        why="a number is written as it is: 0, 1; what is passed is declared: weight = Given(C)"
    ): "zeros ones full zeros_like ones_like full_like empty tensor array asarray as_tensor "
    "linspace logspace",
    Spelling(
        why="declare what is passed on a line of its own: weight = Input(C), or Given(C) without a "
        "gradient"
    ): "Tensor Parameter Variable placeholder register_buffer FloatTensor ndarray",
    Spelling(why=SIZE): "size shape numel ndim dim len count nelement length",
    Spelling(why=NAMED): (
        "T t mT transpose permute swapaxes moveaxis movedim unsqueeze squeeze expand_dims "
        "newaxis broadcast adjoint"
    ),
    Spelling(why=LEFT_OUT): (
        "contiguous clone copy item numpy cpu cuda to float double half type astype tolist "
        "is_contiguous retain_grad"
    ),
    Spelling(why=REWRITES): (
        "simplify factor together cancel apart collect expand_log nsimplify evalf n N radsimp "
        "ratsimp powsimp trigsimp logcombine doit rewrite subs xreplace replace refine "
        "expand_mul factor_terms separatevars combsimp powdenest signsimp piecewise_fold"
    ),
    Spelling("Gradient(tanh(x), x)", why="of the sum of all entries, along the axes of x"): (
        "diff grad Derivative gradient derivative backward autograd jacobian"
    ),
    Spelling(
        why="what is integrated, summed up as a series or solved for has to be written out: itself "
        "it cannot be written in the notation"
    ): "integrate Integral limit Limit series Order solveset nsolve summation Product dsolve",
}
for _row in TABLE:
    _name, *_operands = _row.called(*"xw"[: _row.arguments])
    if _others := [n for n in _row.in_libraries if n != _name]:
        _SPELLINGS[Spelling(f"{_name}({', '.join(map(str, _operands))})")] = " ".join(_others)
spellings = {name: spelling for spelling, names in _SPELLINGS.items() for name in names.split()}


def in_the_notation(name: str) -> str:
    """The remedy for a ``name`` that is not in the notation."""
    known = _plain(name)
    found = spellings.get(name) or spellings.get(_KNOWN.get(known, ""))
    return str(found) if found else in_the_gallery(name) or HAS


def is_pointwise(name: str) -> bool:
    """Whether SymPy has a pointwise function of that name."""
    found = getattr(sympy, name, None)
    return name in ("sqrt", "cbrt") or (isinstance(found, type) and issubclass(found, Function))


def in_the_gallery(name: str, tensors: Sequence[str] = (), others: Sequence[str] = ()) -> str:
    """A call of the gallery's forward of that name with ``tensors``, followed by ``others``; '' if
    there is none.
    """
    wanted = (_plain(name), _plain(name).removesuffix("loss"), _DIMENSIONS.sub("", _plain(name)))
    for file in sorted(MATH.glob("*.py")):
        for forward, body in _CLASS.findall(file.read_text("utf-8")):
            if forward.lower() in wanted:
                needed = [each for each in _NEEDED.findall(body) if OPTIONAL not in each[2]]
                passed = [*tensors, *(tensor for tensor, *_ in needed[len(tensors) :])]
                more = [f"{n} = {kind}({axes})" for n, kind, axes in needed[len(tensors) :]]
                where = f", where {', '.join(more)}" if more and tensors else ""
                call = f"{forward}({', '.join([*passed, *others])}){where}"
                return f"write {call}, with: from gradform.derive.math.{file.stem} import {forward}"
    return ""


OPTIONAL = "default="
_DIMENSIONS = re.compile(r"[123]d$")  # suffix of a torch module such as nn.BatchNorm1d
_CLASS = re.compile(r"^class (\w+)\(Forward\):\n((?:(?: .*)?\n)*)", re.M)
_NEEDED = re.compile(r"^    (\w+) = (Input|Given|Label)\((.*)\)", re.M)


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


_KNOWN = {_plain(name): name for name in spellings}


def closest(name: str, known: Iterable[str], cutoff: float = SIMILAR) -> str | None:
    """The ``known`` name that was probably meant, or None."""
    found = difflib.get_close_matches(name, [*known], n=1, cutoff=cutoff)
    return found[0] if found else None
