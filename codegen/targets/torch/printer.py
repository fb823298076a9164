"""Prints a Program's values and steps as torch expressions: one method for each class, no decision
about mathematics.

What torch calls a thing is decided here, in tables: functions by SymPy's name, roots by their
exponent. A value that holds no tensor (a size, a scalar argument) is a Python number and is printed
with ``math``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from string import ascii_lowercase

from codegen.program import arrays, parts, steps, values
from codegen.targets.torch.checks import PRODUCT, SIGN, Checks
from codegen.targets.torch.lines import broken
from derive.formulas.text import decimal
from derive.language.errors import QuestionError
from derive.notation.layout import Dim

FUNCTIONS = {
    "exp": "torch.exp",
    "log": "torch.log",
    "log1p": "torch.log1p",
    "expm1": "torch.expm1",
    "sigmoid": "torch.sigmoid",
    "logsigmoid": "torch.nn.functional.logsigmoid",
    "softplus": "torch.nn.functional.softplus",
    "tanh": "torch.tanh",
    "sinh": "torch.sinh",
    "cosh": "torch.cosh",
    "sin": "torch.sin",
    "cos": "torch.cos",
    "tan": "torch.tan",
    "atan": "torch.atan",
    "asin": "torch.asin",
    "acos": "torch.acos",
    "asinh": "torch.asinh",
    "acosh": "torch.acosh",
    "atanh": "torch.atanh",
    "erf": "torch.erf",
    "erfc": "torch.erfc",
    "Abs": "torch.abs",
    "sign": "torch.sign",
    "floor": "torch.floor",
    "ceiling": "torch.ceil",
}
# From 40 on, log(1 + exp(u)) is u to the last digit of double precision; torch's 20 is too soon.
MORE = {"softplus": ", threshold=40"}
ROOTS = {Fraction(1, 2): "torch.sqrt"}
# How torch's autograd passes a gradient g through a function of x with the value y: with the same
# operations, so that the step-by-step backward rounds as autograd does. The derivative of tanh is
# a fused multiply-add in there. Source: torch's derivatives.yaml.
PULLBACKS = {
    "log": "{g} / {x}",
    "tanh": "torch.ops.aten.tanh_backward({g}, {y})",
    "sigmoid": "torch.ops.aten.sigmoid_backward({g}, {y})",
    "sqrt": "{g} / (2 * {y})",
}
REDUCTIONS = {"sum": "sum", "max": "amax", "peak": "amax", "subtracted peak": "amax"}
# A row that is -oo everywhere is not shifted, and what is no number stays none. One with +oo in it
# is not shifted either where the peak is added again, as in the logarithm of a sum, which is +oo;
# where it is not, the row has no shares: +oo - +oo is no number.
UNSHIFTED = {
    "peak": ".nan_to_num(math.nan, 0.0, 0.0)",
    "subtracted peak": ".nan_to_num(math.nan, math.inf, 0.0)",
}

# What stands in the formula of a number. Longer formulas are written as the number that they are.
IN_NUMBERS = {"sqrt": "math.sqrt", "exp": "math.exp", "log": "math.log", "pi": "math.pi"}
IN_NUMBERS |= {"erf": "math.erf", "tanh": "math.tanh", "E": "math.e"}
LONGEST_FORMULA = 24  # more is no shorter to read than the digits

TOO_LARGE = 2**63  # as an integer of torch's

SUM, POWER, ATOM = 0, 3, 4  # how tightly a text binds; products and signs between them


class Printer(Checks):
    """Prints the lines of one function.

    ``sizes`` gives every axis the name of its length, ``numbers`` are the arguments that are Python
    numbers, ``like`` is a tensor whose number format and place new tensors take, and ``program`` is
    named where something is refused. ``dims`` and ``lengths`` are for `Checks`.
    """

    def __init__(
        self,
        sizes: Mapping[str, str],
        numbers: Iterable[str],
        like: str,
        program: str = "",
        dims: Mapping[str, str] | None = None,
        lengths: Mapping[str, int] | None = None,
        dtype: str = "dtype",
        hurried: bool = False,
    ):
        self.sizes, self.numbers, self.like = dict(sizes), set(numbers), like
        self.program, self.dtype, self.hurried = program, dtype, hurried
        self.dims, self.lengths = dict(dims or {}), dict(lengths or {})

    # -- steps ----------------------------------------------------------------

    def step(self, step: steps.Step) -> str:
        return getattr(self, f"_{type(step).__name__}")(step)

    def _Assign(self, step: steps.Assign) -> str:
        text = self.text(step.value)
        if isinstance(step.value, values.Compare):
            text = text[1:-1]
        return broken(f"{step.name} = {text}")

    def _SplitLabel(self, step: steps.SplitLabel) -> str:
        sizes = "".join(f", {self.sizes[size.name]}" for size in step.sizes)
        arguments = f'"{step.name}", {step.name}, {step.ignored}, {self.like}.dtype{sizes}'
        return f"{step.name}, {step.kept} = _split_label({arguments})"

    def _AddAt(self, step: steps.AddAt) -> str:
        if isinstance(step.index, values.Number):
            entry = f"{step.name}.select({step.along}, {self.text(step.index)})"
            return broken(f"{entry}.add_({self.text(step.value)})")
        index = f"{self.tight(step.index)}.unsqueeze({step.along})"
        dims, at = step.value.dims, step.along
        if isinstance(step.value, arrays.Expand) and not step.value.operand.dims:
            dims = (*dims[:at], Dim(dims[0].axis, one=True), *dims[at:])
            value = self.text(arrays.Expand(step.value.operand, dims=dims))
        else:
            value = f"{self.tight(step.value)}.unsqueeze({at})"
        return broken(f"{step.name}.scatter_add_({step.along}, {index}, {value})")

    # -- values ---------------------------------------------------------------

    def text(self, value: values.Value, at_least: int = SUM) -> str:
        """``value`` as code, in brackets where it binds less than ``at_least``."""
        text, binding = getattr(self, f"_{type(value).__name__}")(value)
        return text if binding >= at_least else f"({text})"

    def tight(self, value: values.Value) -> str:
        return self.text(value, ATOM)

    def is_number(self, value: values.Value) -> bool:
        """Whether the value is a Python number when the code runs."""
        return parts.is_number(value, self.numbers)

    def _Number(self, value: values.Number):
        n = value.value
        if n.denominator == 1:
            whole = abs(n.numerator) < TOO_LARGE
            return str(n.numerator if whole else float(n.numerator)), ATOM if n >= 0 else SIGN
        text = decimal(n)
        if text is not None:
            return text, ATOM if n >= 0 else SIGN
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

    def _LengthOf(self, value: values.LengthOf):
        return f"{value.tensor}.shape[{value.along}]", ATOM

    def _Load(self, value: values.Load):
        return value.name, ATOM

    def _Plus(self, value: values.Plus):
        text = ""
        for term, negative in value.terms:
            sign = (" - " if negative else " + ") if text else ("-" if negative else "")
            text += sign + self.text(term, PRODUCT if negative or not text else SUM + negative)
        if len(value.terms) > 1 or not value.terms[0][1]:
            return text, SUM
        _, inner = getattr(self, f"_{type(value.terms[0][0]).__name__}")(value.terms[0][0])
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
        """The function of torch, and its arguments."""
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
        name = FUNCTIONS.get(value.function)
        if name is None:
            raise QuestionError(
                f"the torch target has no function for {value.function}",
                "add its line to FUNCTIONS in codegen/targets/torch/printer.py",
            )
        if self.is_number(value.operand) and value.function == "sign":
            return (
                f"math.copysign({self.tight(value.operand)} != 0, {self.text(value.operand)})",
                ATOM,
            )
        if self.is_number(value.operand):
            name = {"torch.abs": "abs"}.get(name, name.replace("torch.", "math."))
        return f"{name}({self.text(value.operand)}{MORE.get(value.function, '')})", ATOM

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
        condition, yes, no = self.text(value.condition), self.text(value.yes), self.text(value.no)
        if condition.startswith("(") and condition.endswith(")"):
            condition = condition[1:-1]
        if self.is_number(value.condition):
            return f"({yes} if {condition} else {no})", ATOM
        if (yes, no) == ("1", "0"):
            return f"({condition}).to({self.like}.dtype)", ATOM
        if self.is_number(value.yes) and self.is_number(value.no):
            yes = f"{self.like}.new_tensor({yes})"  # two numbers would be of torch's default format
        return f"torch.where({condition}, {yes}, {no})", ATOM

    def _Extreme(self, value: values.Extreme):
        function = "torch.maximum" if value.largest else "torch.minimum"
        return f"{function}({self.text(value.left)}, {self.text(value.right)})", ATOM

    def _Clamp(self, value: values.Clamp):
        bounds = {"min": value.low, "max": value.high}
        known = {name: self.text(bound) for name, bound in bounds.items() if bound is not None}
        both = len(known) == 2
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
        value, scale, measure = map(self.text, (value.value, value.scale, value.measure))
        return f"torch.ops.aten.elu_backward({value}, {scale}, 1, 1, False, {measure})", ATOM

    def _Reduce(self, value: arrays.Reduce):
        along = value.along[0] if len(value.along) == 1 else value.along
        keep = ", keepdim=True" if value.keep else ""
        everything = (
            len(value.along) == len(value.operand.dims) and not keep and value.kind == "sum"
        )
        arguments = "" if everything else f"{along}{keep}"
        reduction = f"{self.tight(value.operand)}.{REDUCTIONS[value.kind]}({arguments})"
        return reduction + UNSHIFTED.get(value.kind, ""), ATOM

    def _ArgMaxOf(self, value: arrays.ArgMaxOf):
        return f"{self.tight(value.operand)}.argmax({value.along})", ATOM

    def _Pick(self, value: arrays.Pick):
        if isinstance(value.index, values.Number):
            entry = self.text(value.index)
            return f"{self.tight(value.operand)}.select({value.along}, {entry})", ATOM
        operand, index = self.tight(value.operand), self.tight(value.index)
        if not value.rowwise and len(value.operand.dims) == 2:  # refuses what is out of range
            return f"torch.nn.functional.embedding({self.text(value.index)}, {operand})", ATOM
        if not value.rowwise:
            return f"{operand}[{self.text(value.index)}]", ATOM
        along = value.along
        return f"{operand}.gather({along}, {index}.unsqueeze({along})).squeeze({along})", ATOM

    def _Positions(self, value: arrays.Positions):
        return f"torch.arange({self.sizes[value.size]}, device={self.like}.device)", ATOM

    def _AsNumber(self, value: arrays.AsNumber):
        return f"{self.tight(value.operand)}.to({self.like}.dtype)", ATOM

    def _OneHotOf(self, value: arrays.OneHotOf):
        index = self.text(value.index)
        if isinstance(value.index, values.Number):
            index = f"{self.like}.new_tensor({index}, dtype=torch.long)"
        one_hot = f"torch.nn.functional.one_hot({index}, {self.sizes[value.size]})"
        return f"{one_hot}.to({self.like}.dtype)", ATOM

    def _Gathered(self, value: arrays.Gathered):
        rank = len(value.index.dims)
        index, source = self.tight(value.index), self.tight(value.source)
        if value.source.dims != value.index.dims + value.dims[1:]:
            source = f"{source}.reshape({index}.numel(), {self.shape(value.dims[1:])})"
        elif rank > 1:
            source = f"{source}.flatten(0, {rank - 1})"
        index = f"{index}.flatten()" if rank > 1 else index
        shape = self.shape(value.dims)
        return f"{self.like}.new_zeros({shape}).index_add_(0, {index}, {source})", ATOM

    def _Expand(self, value: arrays.Expand):
        if self.is_number(value.operand):
            comma = "," if len(value.dims) == 1 else ""
            shape, filling = f"({self.shape(value.dims)}{comma})", self.text(value.operand)
            return f"{self.like}.new_full({shape}, {filling})", ATOM
        return f"{self.tight(value.operand)}.expand({self.shape(value.dims)})", ATOM

    def _Own(self, value: arrays.Own):
        if isinstance(value.operand, arrays.Expand) and self.is_number(value.operand.operand):
            return self.text(value.operand), ATOM  # filled, and so its own already
        return f"{self.tight(value.operand)}.clone()", ATOM

    def _Zeros(self, value: arrays.Zeros):
        return f"{self.like}.new_zeros({self.shape(value.dims) or '()'})", ATOM

    def shape(self, dims) -> str:
        return ", ".join("1" if dim.one else self.sizes[dim.axis.name] for dim in dims)

    def _Arrange(self, value: arrays.Arrange):
        text, existing = self.tight(value.operand), [i for i in value.order if i is not None]
        count = len(value.operand.dims)
        order = list(value.order)
        if existing != sorted(existing):
            rest = [i for i in range(count) if i not in existing]
            text = (
                f"{text}.permute({', '.join(map(str, rest + existing))})"
                if count > 2
                else f"{text}.mT"
            )
            place = {old: new for new, old in enumerate(rest + existing)}
            order = [None if i is None else place[i] for i in order]
        entries, upcoming = [], 0
        for i in order:
            if i is None:
                entries.append("None")
                continue
            entries += ["0"] * (i - upcoming) + [":"]
            upcoming = i + 1
        entries += ["0"] * (count - upcoming)
        while entries and entries[-1] == ":":
            entries.pop()
        return (f"{text}[{', '.join(entries)}]" if entries else text), ATOM

    def _Merge(self, value: arrays.Merge):
        last = value.first + value.count - 1
        return f"{self.tight(value.operand)}.flatten({value.first}, {last})", ATOM

    def _Split(self, value: arrays.Split):
        sizes = ", ".join(self.sizes[axis] for axis in value.into)
        return f"{self.tight(value.operand)}.unflatten({value.along}, ({sizes}))", ATOM

    # -- matrix products ------------------------------------------------------

    def _Contract(self, value: arrays.Contract):
        return self._matmul(value) or self._einsum(value)

    def _matmul(self, value: arrays.Contract):
        """``left @ right``, transposed as needed, where both are matrices (of a batch that they
        share).
        """
        if not value.is_of_matrices:
            return None
        return " @ ".join(self._matrices(value)), PRODUCT

    def _matrices(self, value: arrays.Contract) -> tuple[str, str]:
        """What is multiplied, in the order and the way round in which the result comes out."""
        (summed,) = value.summed
        left, right = ([dim.axis.name for dim in v.dims] for v in (value.left, value.right))
        first, second = self.tight(value.left), self.tight(value.right)
        if value.dims[-2].axis.name in left:
            turned = left[-1] != summed, right[-2] != summed
        else:
            (first, second), turned = (second, first), (right[-1] != summed, left[-2] != summed)
        return first + ".mT" * turned[0], second + ".mT" * turned[1]

    def _ContractAdd(self, value: arrays.ContractAdd):
        function = "torch.addmm" if len(value.product.dims) == 2 else "torch.baddbmm"
        arguments = [self.text(value.addend), *self._matrices(value.product)]
        if value.negative or value.factor != values.Number(Fraction(1)):
            sign = "-" * value.negative
            arguments.append(f"alpha={sign}{self.text(value.factor, SIGN if sign else SUM)}")
        return f"{function}({', '.join(arguments)})", ATOM

    def _einsum(self, value: arrays.Contract):
        letters: dict[str, str] = {}

        def word(dims):
            for dim in dims:
                free = [
                    c
                    for c in (dim.axis.name[0].lower(), *ascii_lowercase)
                    if c not in letters.values()
                ]
                letters.setdefault(dim.axis.name, next(c for c in free if c in ascii_lowercase))
            return "".join(letters[dim.axis.name] for dim in dims)

        spec = f"{word(value.left.dims)},{word(value.right.dims)}->{word(value.dims)}"
        return f'torch.einsum("{spec}", {self.text(value.left)}, {self.text(value.right)})', ATOM


def by_formula(number: values.Constant) -> str | None:
    """The formula of a number in Python, of names that it has, where that is short: a product."""
    names = set(re.findall(r"[A-Za-z_]\w*", number.text))
    long = len(number.text) > LONGEST_FORMULA or re.search(r"[-+]|\d{7}", number.text)
    if long or not names <= IN_NUMBERS.keys():
        return None
    text = re.sub(r"[A-Za-z_]\w*", lambda name: IN_NUMBERS[name[0]], number.text)
    return re.sub(r"(?<!\*)([*/])(?!\*)", r" \1 ", text)
