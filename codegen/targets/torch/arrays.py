"""Prints values that are whole arrays: permuted, reduced, matrix products, gathered, scattered,
created.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from string import ascii_lowercase

from codegen.program import arrays, parts, values
from codegen.program.parts import is_wide
from codegen.targets.torch.convolutions import Convolutions
from codegen.targets.torch.diagonals import Diagonals
from codegen.targets.torch.reads import ReadPrinter
from codegen.targets.torch.vocabulary import (
    ATOM,
    CUMULATIVE,
    OF_MATRIX,
    PRODUCT,
    REDUCTIONS,
    SIGN,
    SUM,
    UNSHIFTED,
    WITH_INDICES,
)


def opposite(value: values.Value) -> values.Value | None:
    """The value that ``value`` negates, if it is written as a negative."""
    if not isinstance(value, values.Plus) or not all(negative for _, negative in value.terms):
        return None
    terms = tuple((term, False) for term, _ in value.terms)
    return terms[0][0] if len(terms) == 1 else replace(value, terms=terms)


def as_least(value: values.Value) -> arrays.Reduce | None:
    """The minimum, if ``value`` is its negative: a maximum of negatives."""
    if not isinstance(value, arrays.Reduce) or value.kind != "max":
        return None
    inside = opposite(value.operand)
    return None if inside is None else replace(value, kind="min", operand=inside)


class ArrayPrinter(ReadPrinter, Convolutions, Diagonals):
    """The printing methods of the values of ``program/arrays.py``; `Printer` has the rest."""

    sizes: dict[str, str]
    like: str
    in_place: bool

    def _Arrange(self, value: arrays.Arrange):
        text, existing = self.tight(value.operand), [i for i in value.order if i is not None]
        count = len(value.operand.dims)
        order = list(value.order)
        if existing != sorted(existing):
            rest = [i for i in range(count) if i not in existing]
            turned = [*range(count - 2), count - 1, count - 2]
            text = (
                f"{text}.permute({', '.join(map(str, rest + existing))})"
                if rest + existing != turned
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
        return self.flattened(self.tight(value.operand), value.first, last), ATOM

    def flattened(self, text: str, first: int, last: int) -> str:
        return f"{text}.flatten({first}, {last})"

    def _Split(self, value: arrays.Split):
        sizes = ", ".join(self.sizes[axis] for axis in value.into)
        return f"{self.tight(value.operand)}.unflatten({value.along}, ({sizes}))", ATOM

    def _Reduce(self, value: arrays.Reduce):
        along = value.along[0] if len(value.along) == 1 else value.along
        keep = ", keepdim=True" if value.keep else ""
        everything = (
            len(value.along) == len(value.operand.dims) and not keep and value.kind == "sum"
        )
        arguments = "" if everything else f"{along}{keep}"
        if (least := as_least(value)) is not None:
            return f"-{self.tight(least)}", SIGN
        if value.kind in UNSHIFTED:
            how = ", added=True" * (value.kind == "peak")
            how += ", keepdim=False" * (not value.keep)
            return f"_runtime.peak({self.text(value.operand)}, {along}{how})", ATOM
        return f"{self.tight(value.operand)}.{REDUCTIONS[value.kind]}({arguments})", ATOM

    def _Cumulate(self, value: arrays.Cumulate):
        along = value.along
        if value.kind == "logarithm":
            operand = self.text(value.operand)
            if value.reverse:
                operand = f"{self.tight(value.operand)}.flip({along})"
            cumulated = f"_runtime.logcumsumexp({operand}, {along})"
            return f"{cumulated}.flip({along})" if value.reverse else cumulated, ATOM
        text = self.tight(value.operand)
        values = ".values" if value.kind in WITH_INDICES else ""
        cumulated = f"{CUMULATIVE[value.kind]}({along}){values}"
        if value.reverse:
            return f"{text}.flip({along}).{cumulated}.flip({along})", ATOM
        return f"{text}.{cumulated}", ATOM

    def _Scanned(self, value: arrays.Scanned):
        factor, term = self.text(value.factor), self.text(value.term)
        arguments = f"{factor}, {term}, {value.along}{self._ends(value)}"
        return f"_runtime.scanned({arguments})", ATOM

    def _Stepped(self, value: arrays.Stepped):
        return (
            f"_runtime.stepped({self.text(value.operand)}, {value.along}{self._ends(value)})",
            ATOM,
        )

    def _ends(self, value: arrays.Scanned | arrays.Stepped) -> str:
        initial = "" if value.initial is None else f", {self.text(value.initial)}"
        return initial + ", reverse=True" * value.reverse

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
        """Both factors, ordered and transposed so that the product has the result's layout."""
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

    def _OfMatrix(self, value: arrays.OfMatrix):
        return OF_MATRIX[value.kind].format(self.text(value.operand)), ATOM

    def _Solved(self, value: arrays.Solved):
        matrix, right = self.text(value.matrix), self.text(value.right)
        left = ", left=False" * value.from_the_right
        if not value.triangle:
            return f"_runtime.solve({matrix}, {right}{left})", ATOM
        right = f"{self.tight(value.right)}.unsqueeze(-1)" if value.is_vector else right
        upper = value.triangle == "upper"
        solved = f"torch.linalg.solve_triangular({matrix}, {right}, upper={upper}{left})"
        return solved + ".squeeze(-1)" * value.is_vector, ATOM

    def _ArgMaxOf(self, value: arrays.ArgMaxOf):
        least = opposite(value.operand)
        first = "argmax" if least is None else "argmin"
        return f"{self.tight(least or value.operand)}.{first}({value.along})", ATOM

    def _Pick(self, value: arrays.Pick):
        if isinstance(value.index, values.Number):
            entry = self.text(value.index)
            return f"{self.tight(value.operand)}.select({value.along}, {entry})", ATOM
        if value.rowwise and parts.on_diagonal(value.index) is not None:
            return self.diagonal_of(value), ATOM
        operand, index = self.tight(value.operand), self.tight(value.index)
        if not value.rowwise and len(value.operand.dims) == 2:  # raises for indices out of range
            return f"torch.nn.functional.embedding({self.text(value.index)}, {operand})", ATOM
        if not value.rowwise and not value.index.dims and len(value.operand.dims) == 1:
            place = f"{index}.unsqueeze(0)"  # an index without dimensions cannot be batched
            return f"{operand}.gather(0, {place}).squeeze(0)", ATOM
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
        if parts.on_diagonal(value.index) is not None:
            like = f"dtype={self.like}.dtype, device={self.like}.device"
            return f"torch.eye({self.sizes[value.size]}, {like})", ATOM
        one_hot = f"torch.nn.functional.one_hot({index}, {self.sizes[value.size]})"
        return f"{one_hot}.to({self.like}.dtype)", ATOM

    def _Gathered(self, value: arrays.Gathered):
        rank = len(value.index.dims)
        index, source = self.tight(value.index), self.tight(value.source)
        if value.source.dims != value.index.dims + value.dims[1:]:
            source = f"{source}.reshape({index}.numel(), {self.shape(value.dims[1:])})"
        elif rank > 1:
            source = self.flattened(source, 0, rank - 1)
        index = f"{index}.flatten()" if rank > 1 else index
        shape = self.shape(value.dims)
        return f"_runtime.index_added({self.like}.new_zeros({shape}), {index}, {source})", ATOM

    def _Scattered(self, value: arrays.Scattered):
        zeros = f"{self.like}.new_zeros({self.shape(value.dims)})"
        arguments = f"{value.along}, {self.text(value.index)}, {self.text(value.source)}"
        return f"{zeros}.scatter_add{'_' * self.in_place}({arguments})", ATOM

    def _SegmentMax(self, value: arrays.SegmentMax):
        return f"{self._segments('max', value)}{UNSHIFTED.get(value.kind, '')}", ATOM

    def _SegmentArgMax(self, value: arrays.SegmentArgMax):
        return self._segments("argmax", value), ATOM

    def _segments(self, function: str, value) -> str:
        size = self.sizes[value.size]
        source, index = self.text(value.source), self.text(value.index)
        return f"_runtime.segment_{function}({source}, {index}, {size})"

    def _Expand(self, value: arrays.Expand):
        if self.is_number(value.operand):
            comma = "," if len(value.dims) == 1 else ""
            shape, filling = f"({self.shape(value.dims)}{comma})", self.text(value.operand)
            if is_wide(value.operand):
                return f"{self.as_tensor(value.operand)}.expand{shape}.clone()", ATOM
            return f"{self.like}.new_full({shape}, {filling})", ATOM
        return f"{self.tight(value.operand)}.expand({self.shape(value.dims)})", ATOM

    def _Detached(self, value: arrays.Detached):
        return f"{self.tight(value.operand)}.detach()", ATOM

    def _Own(self, value: arrays.Own):
        if isinstance(value.operand, arrays.Expand) and self.is_number(value.operand.operand):
            return self.text(value.operand), ATOM  # filled, and so its own already
        return f"{self.tight(value.operand)}.clone()", ATOM

    def _Zeros(self, value: arrays.Zeros):
        return f"{self.like}.new_zeros({self.shape(value.dims) or '()'})", ATOM

    def shape(self, dims) -> str:
        return ", ".join("1" if dim.one else self.sizes[dim.axis.name] for dim in dims)
