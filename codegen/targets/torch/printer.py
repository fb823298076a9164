"""Prints a Program's values and steps as torch expressions: one method for each class, no decision
about mathematics.

Torch's names are in the tables of ``vocabulary.py``. A value that holds no tensor (a size, a scalar
argument) is a Python number and is printed with ``math``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

from codegen.program import parts, steps, values
from codegen.program.loops import Looped
from codegen.targets.functions import IN_TARGETS
from codegen.targets.torch.arrays import ArrayPrinter, as_least
from codegen.targets.torch.checks import ALONE, Checks, Surroundings
from codegen.targets.torch.formulas import by_formula
from codegen.targets.torch.lines import STEP, broken
from codegen.targets.torch.loops import LoopPrinter
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


class Printer(Checks, LoopPrinter, ArrayPrinter):
    """Prints the lines of one function.

    ``sizes`` maps every axis to the name of its length, ``numbers`` are the arguments that are
    Python numbers, and ``like`` is a tensor whose dtype and device new tensors take; ``around`` is
    for `Checks`. If ``in_place``, additions change the tensor.
    """

    in_place = True

    def __init__(
        self,
        sizes: Mapping[str, str],
        numbers: Iterable[str],
        like: str,
        around: Surroundings = ALONE,
    ):
        self.sizes, self.numbers, self.like = dict(sizes), set(numbers), like
        self.around, self.slices = around, {}

    # -- steps ----------------------------------------------------------------

    def step(self, step: steps.Step, margin: str = STEP) -> str:
        """The lines of a step; all but the first have their ``margin``."""
        if isinstance(step, steps.Assign) and isinstance(step.value, Looped):
            return self.looped(step.name, step.value, margin)
        text = getattr(self, f"_{type(step).__name__}")(step)
        if isinstance(step, (steps.Assign, steps.AddAt)):
            return broken(text, margin)
        return text.replace("\n", "\n" + margin.removeprefix(STEP))

    def _Assign(self, step: steps.Assign) -> str:
        text = self.text(step.value)
        if isinstance(step.value, values.Compare):
            text = text[1:-1]
        return f"{step.name} = {text}"

    def _SplitLabel(self, step: steps.SplitLabel) -> str:
        sizes = "".join(f", {self.sizes[size.name]}" for size in step.sizes)
        arguments = f'"{step.name}", {step.name}, {step.ignored}, {self.like}.dtype{sizes}'
        return f"{step.name}, {step.kept} = _inputs.split_label({arguments})"

    # -- values ---------------------------------------------------------------

    def text(self, value: values.Value, at_least: int = SUM) -> str:
        """``value`` as code, in brackets if its precedence is below ``at_least``."""
        text, binding = getattr(self, f"_{type(value).__name__}")(value)
        return text if binding >= at_least else f"({text})"

    def tight(self, value: values.Value) -> str:
        return self.text(value, ATOM)

    def argument(self, value: values.Value) -> str:
        """``value`` as an argument of a torch function."""
        wide = self.is_number(value) and parts.is_wide(value)
        return self.as_tensor(value) if wide else self.text(value)

    def as_tensor(self, number: values.Value) -> str:
        """A number in the dtype of the tensors, infinite where it overflows."""
        return f"{self.like}.new_tensor({self.text(number)})"

    def is_number(self, value: values.Value) -> bool:
        """True if the value is a Python number when the code runs."""
        return parts.is_number(value, self.numbers)

    def _Number(self, value: values.Number):
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

    def _Constant(self, value: values.Constant):
        if math.isinf(value.value):
            return "-math.inf", SIGN
        formula = by_formula(value)
        if formula is not None:
            return formula, PRODUCT
        return repr(value.value), ATOM if value.value >= 0 else SIGN

    def _SizeOf(self, value: values.SizeOf):
        return self.sizes[value.name], ATOM

    def _Quotient(self, value: values.Quotient):
        return f"{self.text(value.dividend, PRODUCT)} // {self.tight(value.divisor)}", PRODUCT

    _WholeQuotient = _Quotient

    def _Derived(self, value: values.Derived):
        if value.divisor == values.Number(Fraction(1)):
            return self.text(value.dividend), SUM
        return f"{self.text(value.dividend, PRODUCT)} // {self.tight(value.divisor)}", PRODUCT

    def _LengthOf(self, value: values.LengthOf):
        return f"{value.tensor}.shape[{value.along}]", ATOM

    def _Plus(self, value: values.Plus):
        text, terms = "", [turned(*term) for term in value.terms]
        for term, negative in terms:
            sign = (" - " if negative else " + ") if text else ("-" if negative else "")
            together = negative or not text or isinstance(term, values.Plus)
            text += sign + self.text(term, PRODUCT if together else SUM)
        if len(terms) > 1:
            return text, SUM
        ((term, negative),) = terms
        _, inner = getattr(self, f"_{type(term).__name__}")(term)
        if not negative:
            return text, inner
        return text, min(SIGN, max(inner, PRODUCT))  # -p / 2 binds as a product does

    def _Times(self, value: values.Times):
        text = ""
        for factor, divides in value.factors:
            sign = (" / " if divides else " * ") if text else ""
            text += sign + self.text(factor, SIGN if text else PRODUCT)
        return text, PRODUCT if len(value.factors) > 1 else SUM

    def _MulAdd(self, value: values.MulAdd):
        function, arguments = self._fused(value)
        return f"{function}({', '.join(arguments)})", ATOM

    def _fused(self, value: values.MulAdd) -> tuple[str, list[str]]:
        """The torch function, and its arguments."""
        addend, right, sign = self.text(value.addend), self.text(value.right), "-" * value.negative
        if self.is_number(value.left):
            number = sign + self.text(value.left, SIGN if sign else SUM)
            return "torch.add", [addend, right, f"alpha={number}"]
        option = ["value=-1"] if value.negative else []
        return "torch.addcmul", [addend, self.text(value.left), right, *option]

    def _Power(self, value: values.Power):
        exponent = value.exponent.value if isinstance(value.exponent, values.Number) else None
        if exponent in ROOTS and not self.is_number(value.base):
            return f"{ROOTS[exponent]}({self.text(value.base)})", ATOM
        if exponent == -1 and self.is_number(value.base):
            return f"1 / {self.text(value.base, SIGN)}", PRODUCT
        return f"{self.tight(value.base)} ** {self.text(value.exponent, SIGN)}", POWER

    def _Apply(self, value: values.Apply):
        if value.others:
            return self._of_several(value), ATOM
        name = FUNCTIONS.get(value.function)
        if name is None:
            raise QuestionError(
                f"the torch target has no function for {value.function}",
                "add its row to codegen/targets/functions.py",
            )
        if self.is_number(value.operand) and value.function == "sign":
            return (
                f"math.copysign({self.tight(value.operand)} != 0, {self.text(value.operand)})",
                ATOM,
            )
        if self.is_number(value.operand):
            plain = IN_TARGETS[value.function].python or name.replace("torch.", "math.")
            if not plain.startswith("math.") or hasattr(math, plain.removeprefix("math.")):
                return f"{plain}({self.text(value.operand)})", ATOM
            return f"{name}({self.as_tensor(value.operand)})", ATOM
        return f"{name}({self.text(value.operand)}{IN_TARGETS[value.function].more})", ATOM

    def _of_several(self, value: values.Apply) -> str:
        """A function of several operands; numbers become tensors, unless torch takes them."""
        first = self.as_tensor if self.is_number(value.operand) else self.text
        alike = self.as_tensor if IN_TARGETS[value.function].tensors else self.text
        others = ((alike if self.is_number(v) else self.text)(v) for v in value.others)
        return SEVERAL[value.function].format(first(value.operand), *others)

    def _Pullback(self, value: values.Pullback):
        formula = PULLBACKS.get(value.function, "")
        at_hand = {"g": value.upstream, "x": value.argument, "y": value.output}
        used = {name: v for name, v in at_hand.items() if f"{{{name}}}" in formula}
        if not formula or None in used.values():
            slope = self.text(value.derivative, SIGN)
            return f"{self.text(value.upstream, PRODUCT)} * {slope}", PRODUCT
        if "(" in formula.partition("{")[0]:  # a call: its arguments need no brackets
            return formula.format(**{name: self.text(v) for name, v in used.items()}), ATOM
        return formula.format(**{name: self.text(v, SIGN) for name, v in used.items()}), PRODUCT

    def _Compare(self, value: values.Compare):
        return f"({self.text(value.left)} {value.relation} {self.text(value.right)})", ATOM

    def _Combine(self, value: values.Combine):
        if value.operator == "not" and self.is_number(value):
            return f"(not {self.tight(value.operands[0])})", ATOM
        if value.operator == "not":
            return f"~{self.tight(value.operands[0])}", SIGN
        sign = {"and": " & ", "or": " | "}[value.operator]
        return f"({sign.join(self.tight(operand) for operand in value.operands)})", ATOM

    def _Choose(self, value: values.Choose):
        if (text := self.with_diagonal(value)) is not None:
            return text, ATOM
        condition, yes, no = self.text(value.condition), self.text(value.yes), self.text(value.no)
        if condition.startswith("(") and condition.endswith(")"):
            condition = condition[1:-1]
        if self.is_number(value.condition):
            return f"({yes} if {condition} else {no})", ATOM
        if (yes, no) == ("1", "0"):
            return f"({condition}).to({self.like}.dtype)", ATOM
        yes, no = self.argument(value.yes), self.argument(value.no)
        if self.is_number(value.yes) and self.is_number(value.no) and "new_tensor" not in yes:
            yes = (
                f"{self.like}.new_full((), {yes})"  # two numbers would be of torch's default format
            )
        return f"torch.where({condition}, {yes}, {no})", ATOM

    def _Extreme(self, value: values.Extreme):
        function = "torch.maximum" if value.largest else "torch.minimum"
        return f"{function}({self.text(value.left)}, {self.text(value.right)})", ATOM

    def _Clamp(self, value: values.Clamp):
        bounds = {"min": value.low, "max": value.high}
        known = {name: self.argument(bound) for name, bound in bounds.items() if bound is not None}
        both = len(known) == 2
        if any(parts.is_wide(bound) for bound in bounds.values() if bound is not None):
            known = {name: self.as_tensor(bounds[name]) for name in known}  # both or none
        arguments = [text if both else f"{name}={text}" for name, text in known.items()]
        return f"{self.tight(value.operand)}.clamp({', '.join(arguments)})", ATOM

    def _Gate(self, value: values.Gate):
        arguments = map(self.text, (value.value, value.measure, value.threshold))
        return f"torch.ops.aten.threshold_backward({', '.join(arguments)})", ATOM

    def _Bend(self, value: values.Bend):
        measure, slope = self.text(value.measure), self.text(value.slope)
        if value.value == value.measure:
            return f"torch.nn.functional.leaky_relu({measure}, {slope})", ATOM
        arguments = f"{self.text(value.value)}, {measure}, {slope}, False"
        return f"torch.ops.aten.leaky_relu_backward({arguments})", ATOM

    def _Slope(self, value: values.Slope):
        """Without elu_backward, which passes NaN as a value above 0."""
        measure, scale = self.text(value.measure), self.text(value.scale)
        grown = f"{self.tight(value.value)} * torch.exp({self.tight(value.measure)}.clamp(max=0))"
        return f"torch.ops.aten.leaky_relu_backward({grown}, {measure}, {scale}, False)", ATOM


def turned(term: values.Value, negative: bool) -> tuple[values.Value, bool]:
    """A term of a sum, and True if it is subtracted."""
    least = as_least(term)
    return (term, negative) if least is None else (least, not negative)
