"""What torch and numpy compute along dimensions, as lines of the notation.

An entry of `operations` makes a line that gives what they give: it receives a `Typed`, and returns
code; beside it stand the names of its arguments, in torch's order.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass

NAMES_OF_CORRECTIONS = ("correction", "unbiased", "ddof")


class Unclear(Exception):
    """Why no axis can be named, in words."""


@dataclass(frozen=True)
class Typed:
    """An operation on ``x``, which is that part of the line, along ``axes``; ``given`` are its
    other arguments by name, and ``torchs`` says whether torch's defaults hold.
    """

    x: str
    axes: tuple[str, ...]
    given: Mapping[str, ast.AST]
    torchs: bool

    @property
    def along(self) -> str:
        return ", ".join(self.axes)

    @property
    def axis(self) -> str:
        if len(self.axes) != 1:
            raise Unclear("it goes along one axis, which has to be named")
        return self.axes[0]

    @property
    def operand(self) -> str:
        """``x`` as an operand."""
        return self.x if self.x.isidentifier() else f"({self.x})"

    @property
    def count(self) -> str:
        return " * ".join(self.axes)


def total(t: Typed) -> str:
    return f"Sum({t.x}, {t.along})"


def mean(t: Typed) -> str:
    return f"{total(t)} / {t.count if len(t.axes) == 1 else f'({t.count})'}"


def variance(t: Typed) -> str:
    less = _correction(t)
    squares = f"Sum(({t.operand} - {mean(t)})**2, {t.along})"
    whole = f"{t.count} - {less}" if less != "0" else t.count
    return f"{squares} / {whole if whole.isidentifier() else f'({whole})'}"


def _correction(t: Typed) -> str:
    node = next((t.given[name] for name in NAMES_OF_CORRECTIONS if name in t.given), None)
    if node is None:
        return str(int(t.torchs))
    value = getattr(node, "value", None)
    return str(int(value)) if isinstance(value, bool) else ast.unparse(node)


def norm(t: Typed) -> str:
    node = t.given.get("p", ast.Constant(2))
    power = ast.unparse(node).strip("'\"")
    if power in ("2", "2.0", "None", "fro"):
        return f"sqrt(Sum({t.operand}**2, {t.along}))"
    if power in ("1", "1.0"):
        return f"Sum(Abs({t.x}), {t.along})"
    if not power.isdigit() or power == "0":
        raise Unclear(f"a norm of order {power} has to be written out")
    return f"Sum(Abs({t.x})**{power}, {t.along})**Rational(1, {power})"


def largest(t: Typed) -> str:
    code = t.x
    for axis in t.axes:
        code = f"Max({code}, {axis})"
    return code


def smallest(t: Typed) -> str:
    code = t.x
    for axis in t.axes:
        code = f"Min({code}, {axis})"
    return code


def picked(t: Typed) -> str:
    label = t.given.get("index")
    label = label.id if isinstance(label, ast.Name) else "labels"
    return f"Sum(OneHot({label}, {t.axis}) * {t.operand}, {t.axis})"


# What makes the line, the names of torch and numpy for it, and of their arguments in their order.
_OPERATIONS: dict[tuple[Callable[[Typed], str], str], str] = {
    (total, "dim keepdim"): "sum nansum reduce_sum fsum total Sum",
    (mean, "dim keepdim"): "mean nanmean average avg reduce_mean fmean",
    (variance, "dim unbiased keepdim"): "var variance nanvar reduce_variance",
    (lambda t: f"sqrt({variance(t)})", "dim unbiased keepdim"): "std stdev nanstd reduce_std",
    (norm, "p dim keepdim"): "norm vector_norm",
    (lambda t: f"exp(Sum(log({t.x}), {t.along}))", "dim keepdim"): "prod nanprod",
    (largest, "dim keepdim"): "max amax nanmax reduce_max Max",
    (smallest, "dim keepdim"): "min amin nanmin reduce_min Min",
    (
        lambda t: f"Piecewise((1, Eq({t.x}, Max({t.x}, {t.axis}))), (0, True))",
        "dim keepdim",
    ): "argmax",
    (lambda t: f"exp({t.x}) / Sum(exp({t.x}), {t.axis})", "dim"): "softmax",
    (lambda t: f"{t.operand} - log(Sum(exp({t.x}), {t.axis}))", "dim"): "log_softmax",
    (lambda t: f"exp(-{t.operand}) / Sum(exp(-{t.operand}), {t.axis})", "dim"): "softmin",
    (lambda t: f"log(Sum(exp({t.x}), {t.along}))", "dim keepdim"): "logsumexp reduce_logsumexp",
    (
        lambda t: f"Sum(Piecewise((1, Ne({t.x}, 0)), (0, True)), {t.along})",
        "dim keepdim",
    ): "count_nonzero",
    (lambda t: f"CumSum({t.x}, {t.axis})", "dim"): "cumsum cumulative_sum",
    (lambda t: f"CumProd({t.x}, {t.axis})", "dim"): "cumprod cumulative_prod",
    (lambda t: f"CumMax({t.x}, {t.axis})", "dim"): "cummax",
    (lambda t: f"log(CumSum(exp({t.x}), {t.axis}))", "dim"): "logcumsumexp",
    (picked, "dim index"): "gather index_select",
    (picked, "index dim"): "take_along_dim take_along_axis",
    (lambda t: t.count, "dim"): "size numel nelement len",
}
operations = {
    name: (make, tuple(arguments.split()))
    for (make, arguments), names in _OPERATIONS.items()
    for name in names.split()
}
NOTES = {
    "prod": "where x > 0",
    "nanprod": "where x > 0",
    "argmax": "which entries are the largest",
}
CUMULATIVE = ("cumsum", "cumprod", "cummax", "logcumsumexp")
IN_ONE = ("softmax", "log_softmax", "softmin", "gather", "index_select", *CUMULATIVE)  # no default
OF_TWO = {"max": "Max", "min": "Min"}  # of two tensors as well
