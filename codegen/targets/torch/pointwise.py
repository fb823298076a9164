"""How pointwise values are written as torch expressions: numbers, arithmetic, functions, choices.

Torch's names are in the tables of ``vocabulary.py``. A value that holds no tensor (a size, a scalar
argument) is a Python number and is printed with ``math``.
"""

from __future__ import annotations

import math
from fractions import Fraction

from codegen.program import parts, steps, values
from codegen.targets.functions import IN_TARGETS
from codegen.targets.torch.arrays import as_least
from codegen.targets.torch.diagonals import with_diagonal
from codegen.targets.torch.formulas import by_formula
from codegen.targets.torch.rows import TORCH, Prints
from codegen.targets.torch.vocabulary import (
    ATOM,
    FUNCTIONS,
    POWER,
    PRODUCT,
    PULLBACKS,
    ROOTS,
    SEVERAL,
    SIGN,
    SUM,
)
from derive.language.errors import QuestionError
from derive.language.formulas.text import decimal, over_decimal

TOO_LARGE = 2**63  # as an integer of torch's
LONG = 64  # bits of a numerator or a denominator, of which the quotient has 53


@TORCH.of(steps.Assign)
def _assign(p: Prints, step: steps.Assign) -> str:
    text = p.text(step.value)
    if isinstance(step.value, values.Compare):
        text = text[1:-1]
    return f"{step.name} = {text}"


@TORCH.of(steps.SplitLabel)
def _split_label(p: Prints, step: steps.SplitLabel) -> str:
    sizes = "".join(f", {p.sizes[size.name]}" for size in step.sizes)
    arguments = f'"{step.name}", {step.name}, {step.ignored}, {p.like}.dtype{sizes}'
    return f"{step.name}, {step.kept} = _inputs.split_label({arguments})"


@TORCH.of(values.Number)
def _number(p: Prints, value: values.Number) -> tuple[str, int]:
    n = value.value
    if n.denominator == 1:
        whole = abs(n.numerator) < TOO_LARGE
        return str(n.numerator if whole else float(n.numerator)), ATOM if n >= 0 else SIGN
    text = decimal(n)
    if text is not None:
        return text, ATOM if n >= 0 else SIGN
    if (parts := over_decimal(n)) is not None:
        return f"{parts[0]} / {decimal(parts[1])}", PRODUCT
    if max(n.numerator.bit_length(), n.denominator.bit_length()) > LONG:
        return repr(float(n)), ATOM if n >= 0 else SIGN  # Python divides to the same number
    return f"{n.numerator} / {n.denominator}", PRODUCT


@TORCH.of(values.Constant)
def _constant(p: Prints, value: values.Constant) -> tuple[str, int]:
    if math.isinf(value.value):
        return "-math.inf", SIGN
    formula = by_formula(value)
    if formula is not None:
        return formula, PRODUCT
    return repr(value.value), ATOM if value.value >= 0 else SIGN


@TORCH.of(values.SizeOf)
def _size_of(p: Prints, value: values.SizeOf) -> tuple[str, int]:
    return p.sizes[value.name], ATOM


@TORCH.of(values.Quotient, values.WholeQuotient)
def _quotient(p: Prints, value: values.Quotient) -> tuple[str, int]:
    return f"{p.text(value.dividend, PRODUCT)} // {p.tight(value.divisor)}", PRODUCT


@TORCH.of(values.Derived)
def _derived(p: Prints, value: values.Derived) -> tuple[str, int]:
    if value.divisor == values.Number(Fraction(1)):
        return p.text(value.dividend), SUM
    return f"{p.text(value.dividend, PRODUCT)} // {p.tight(value.divisor)}", PRODUCT


@TORCH.of(values.LengthOf)
def _length_of(p: Prints, value: values.LengthOf) -> tuple[str, int]:
    return f"{value.tensor}.shape[{value.along}]", ATOM


@TORCH.of(values.Plus)
def _plus(p: Prints, value: values.Plus) -> tuple[str, int]:
    text, terms = "", [turned(*term) for term in value.terms]
    for term, negative in terms:
        sign = (" - " if negative else " + ") if text else ("-" if negative else "")
        together = negative or not text or isinstance(term, values.Plus)
        text += sign + p.text(term, PRODUCT if together else SUM)
    if len(terms) > 1:
        return text, SUM
    ((term, negative),) = terms
    _, inner = p.printed(term)
    if not negative:
        return text, inner
    return text, min(SIGN, max(inner, PRODUCT))  # -p / 2 binds as a product does


@TORCH.of(values.Times)
def _times(p: Prints, value: values.Times) -> tuple[str, int]:
    text = ""
    for factor, divides in value.factors:
        sign = (" / " if divides else " * ") if text else ""
        text += sign + p.text(factor, SIGN if text else PRODUCT)
    return text, PRODUCT if len(value.factors) > 1 else SUM


@TORCH.of(values.MulAdd)
def _mul_add(p: Prints, value: values.MulAdd) -> tuple[str, int]:
    function, arguments = _fused(p, value)
    return f"{function}({', '.join(arguments)})", ATOM


def _fused(p: Prints, value: values.MulAdd) -> tuple[str, list[str]]:
    """The torch function, and its arguments."""
    addend, right, sign = p.text(value.addend), p.text(value.right), "-" * value.negative
    if p.is_number(value.left):
        number = sign + p.text(value.left, SIGN if sign else SUM)
        return "torch.add", [addend, right, f"alpha={number}"]
    option = ["value=-1"] if value.negative else []
    return "torch.addcmul", [addend, p.text(value.left), right, *option]


@TORCH.of(values.Power)
def _power(p: Prints, value: values.Power) -> tuple[str, int]:
    exponent = value.exponent.value if isinstance(value.exponent, values.Number) else None
    if exponent in ROOTS and not p.is_number(value.base):
        return f"{ROOTS[exponent]}({p.text(value.base)})", ATOM
    if exponent == -1 and p.is_number(value.base):
        return f"1 / {p.text(value.base, SIGN)}", PRODUCT
    return f"{p.tight(value.base)} ** {p.text(value.exponent, SIGN)}", POWER


@TORCH.of(values.Apply)
def _apply(p: Prints, value: values.Apply) -> tuple[str, int]:
    if value.others:
        return _of_several(p, value), ATOM
    name = FUNCTIONS.get(value.function)
    if name is None:
        raise QuestionError(
            f"the torch target has no function for {value.function}",
            "add its row to codegen/targets/functions.py",
        )
    if p.is_number(value.operand) and value.function == "sign":
        return (
            f"math.copysign({p.tight(value.operand)} != 0, {p.text(value.operand)})",
            ATOM,
        )
    if p.is_number(value.operand):
        plain = IN_TARGETS[value.function].python or name.replace("torch.", "math.")
        if not plain.startswith("math.") or hasattr(math, plain.removeprefix("math.")):
            return f"{plain}({p.text(value.operand)})", ATOM
        return f"{name}({p.as_tensor(value.operand)})", ATOM
    return f"{name}({p.text(value.operand)}{IN_TARGETS[value.function].more})", ATOM


def _of_several(p: Prints, value: values.Apply) -> str:
    """A function of several operands; numbers become tensors, unless torch takes them."""
    first = p.as_tensor if p.is_number(value.operand) else p.text
    alike = p.as_tensor if IN_TARGETS[value.function].tensors else p.text
    others = ((alike if p.is_number(v) else p.text)(v) for v in value.others)
    return SEVERAL[value.function].format(first(value.operand), *others)


@TORCH.of(values.Pullback)
def _pullback(p: Prints, value: values.Pullback) -> tuple[str, int]:
    formula = PULLBACKS.get(value.function, "")
    at_hand = {"g": value.upstream, "x": value.argument, "y": value.output}
    used = {name: v for name, v in at_hand.items() if f"{{{name}}}" in formula}
    if not formula or None in used.values():
        slope = p.text(value.derivative, SIGN)
        return f"{p.text(value.upstream, PRODUCT)} * {slope}", PRODUCT
    if "(" in formula.partition("{")[0]:  # a call: its arguments need no brackets
        return formula.format(**{name: p.text(v) for name, v in used.items()}), ATOM
    return formula.format(**{name: p.text(v, SIGN) for name, v in used.items()}), PRODUCT


@TORCH.of(values.Compare)
def _compare(p: Prints, value: values.Compare) -> tuple[str, int]:
    return f"({p.text(value.left)} {value.relation} {p.text(value.right)})", ATOM


@TORCH.of(values.Combine)
def _combine(p: Prints, value: values.Combine) -> tuple[str, int]:
    if value.operator == "not" and p.is_number(value):
        return f"(not {p.tight(value.operands[0])})", ATOM
    if value.operator == "not":
        return f"~{p.tight(value.operands[0])}", SIGN
    sign = {"and": " & ", "or": " | "}[value.operator]
    return f"({sign.join(p.tight(operand) for operand in value.operands)})", ATOM


@TORCH.of(values.Choose)
def _choose(p: Prints, value: values.Choose) -> tuple[str, int]:
    if (text := with_diagonal(p, value)) is not None:
        return text, ATOM
    condition, yes, no = p.text(value.condition), p.text(value.yes), p.text(value.no)
    if condition.startswith("(") and condition.endswith(")"):
        condition = condition[1:-1]
    if p.is_number(value.condition):
        return f"({yes} if {condition} else {no})", ATOM
    if (yes, no) == ("1", "0"):
        return f"({condition}).to({p.like}.dtype)", ATOM
    yes, no = p.argument(value.yes), p.argument(value.no)
    if p.is_number(value.yes) and p.is_number(value.no) and "new_tensor" not in yes:
        yes = f"{p.like}.new_full((), {yes})"  # two numbers would be of torch's default format
    return f"torch.where({condition}, {yes}, {no})", ATOM


@TORCH.of(values.Extreme)
def _extreme(p: Prints, value: values.Extreme) -> tuple[str, int]:
    function = "torch.maximum" if value.largest else "torch.minimum"
    return f"{function}({p.text(value.left)}, {p.text(value.right)})", ATOM


@TORCH.of(values.Clamp)
def _clamp(p: Prints, value: values.Clamp) -> tuple[str, int]:
    bounds = {"min": value.low, "max": value.high}
    known = {name: p.argument(bound) for name, bound in bounds.items() if bound is not None}
    both = len(known) == 2
    if any(parts.is_wide(bound) for bound in bounds.values() if bound is not None):
        known = {name: p.as_tensor(bounds[name]) for name in known}  # both or none
    arguments = [text if both else f"{name}={text}" for name, text in known.items()]
    return f"{p.tight(value.operand)}.clamp({', '.join(arguments)})", ATOM


@TORCH.of(values.Gate)
def _gate(p: Prints, value: values.Gate) -> tuple[str, int]:
    arguments = map(p.text, (value.value, value.measure, value.threshold))
    return f"torch.ops.aten.threshold_backward({', '.join(arguments)})", ATOM


@TORCH.of(values.Bend)
def _bend(p: Prints, value: values.Bend) -> tuple[str, int]:
    measure, slope = p.text(value.measure), p.text(value.slope)
    if value.value == value.measure:
        return f"torch.nn.functional.leaky_relu({measure}, {slope})", ATOM
    arguments = f"{p.text(value.value)}, {measure}, {slope}, False"
    return f"torch.ops.aten.leaky_relu_backward({arguments})", ATOM


@TORCH.of(values.Slope)
def _slope(p: Prints, value: values.Slope) -> tuple[str, int]:
    """Without elu_backward, which passes NaN as a value above 0."""
    measure, scale = p.text(value.measure), p.text(value.scale)
    grown = f"{p.tight(value.value)} * torch.exp({p.tight(value.measure)}.clamp(max=0))"
    return f"torch.ops.aten.leaky_relu_backward({grown}, {measure}, {scale}, False)", ATOM


def turned(term: values.Value, negative: bool) -> tuple[values.Value, bool]:
    """A term of a sum, and True if it is subtracted."""
    least = as_least(term)
    return (term, negative) if least is None else (least, not negative)


@TORCH.of(values.Load)
def _load(p: Prints, value: values.Load) -> tuple[str, int]:
    return p.loaded(value.name), ATOM
