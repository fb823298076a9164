"""Prints values that are whole arrays: permuted, reduced, matrix products, gathered, scattered,
created.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from string import ascii_lowercase

from codegen.program import arrays, parts, values
from codegen.program.loops import Collected
from codegen.program.parts import is_wide
from codegen.targets.torch.diagonals import diagonal_of
from codegen.targets.torch.rows import TORCH, Prints
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


@TORCH.of(arrays.Arrange)
def _arrange(p: Prints, value: arrays.Arrange) -> tuple[str, int]:
    text, existing = p.tight(value.operand), [i for i in value.order if i is not None]
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


@TORCH.of(arrays.Merge)
def _merge(p: Prints, value: arrays.Merge) -> tuple[str, int]:
    last = value.first + value.count - 1
    return p.flattened(p.tight(value.operand), value.first, last), ATOM


@TORCH.of(arrays.Split)
def _split(p: Prints, value: arrays.Split) -> tuple[str, int]:
    sizes = ", ".join(p.sizes[axis] for axis in value.into)
    return f"{p.tight(value.operand)}.unflatten({value.along}, ({sizes}))", ATOM


@TORCH.of(arrays.Reduce)
def _reduce(p: Prints, value: arrays.Reduce) -> tuple[str, int]:
    along = value.along[0] if len(value.along) == 1 else value.along
    keep = ", keepdim=True" if value.keep else ""
    everything = len(value.along) == len(value.operand.dims) and not keep and value.kind == "sum"
    arguments = "" if everything else f"{along}{keep}"
    if (least := as_least(value)) is not None:
        return f"-{p.tight(least)}", SIGN
    if value.kind in UNSHIFTED:
        how = ", added=True" * (value.kind == "peak")
        how += ", keepdim=False" * (not value.keep)
        return f"_runtime.peak({p.text(value.operand)}, {along}{how})", ATOM
    return f"{p.tight(value.operand)}.{REDUCTIONS[value.kind]}({arguments})", ATOM


@TORCH.of(arrays.Cumulate)
def _cumulate(p: Prints, value: arrays.Cumulate) -> tuple[str, int]:
    along = value.along
    if value.kind == "logarithm":
        operand = p.text(value.operand)
        if value.reverse:
            operand = f"{p.tight(value.operand)}.flip({along})"
        cumulated = f"_runtime.logcumsumexp({operand}, {along})"
        return f"{cumulated}.flip({along})" if value.reverse else cumulated, ATOM
    text = p.tight(value.operand)
    values = ".values" if value.kind in WITH_INDICES else ""
    cumulated = f"{CUMULATIVE[value.kind]}({along}){values}"
    if value.reverse:
        return f"{text}.flip({along}).{cumulated}.flip({along})", ATOM
    return f"{text}.{cumulated}", ATOM


@TORCH.of(arrays.Scanned)
def _scanned(p: Prints, value: arrays.Scanned) -> tuple[str, int]:
    factor, term = p.text(value.factor), p.text(value.term)
    arguments = f"{factor}, {term}, {value.along}{_ends(p, value)}"
    return f"_runtime.scanned({arguments})", ATOM


@TORCH.of(arrays.Stepped)
def _stepped(p: Prints, value: arrays.Stepped) -> tuple[str, int]:
    return (
        f"_runtime.stepped({p.text(value.operand)}, {value.along}{_ends(p, value)})",
        ATOM,
    )


def _ends(p: Prints, value: arrays.Scanned | arrays.Stepped) -> str:
    initial = "" if value.initial is None else f", {p.text(value.initial)}"
    return initial + ", reverse=True" * value.reverse


@TORCH.of(arrays.Contract)
def _contract(p: Prints, value: arrays.Contract) -> tuple[str, int]:
    return _matmul(p, value) or _einsum(p, value)


def _matmul(p: Prints, value: arrays.Contract):
    """``left @ right``, transposed as needed, where both are matrices (of a batch that they
    share).
    """
    if not value.is_of_matrices:
        return None
    return " @ ".join(matrices(p, value)), PRODUCT


def matrices(p: Prints, value: arrays.Contract) -> tuple[str, str]:
    """Both factors, ordered and transposed so that the product has the result's layout."""
    (summed,) = value.summed
    left, right = ([dim.axis.name for dim in v.dims] for v in (value.left, value.right))
    first, second = p.tight(value.left), p.tight(value.right)
    if value.dims[-2].axis.name in left:
        turned = left[-1] != summed, right[-2] != summed
    else:
        (first, second), turned = (second, first), (right[-1] != summed, left[-2] != summed)
    return first + ".mT" * turned[0], second + ".mT" * turned[1]


@TORCH.of(arrays.ContractAdd)
def _contract_add(p: Prints, value: arrays.ContractAdd) -> tuple[str, int]:
    function = "torch.addmm" if len(value.product.dims) == 2 else "torch.baddbmm"
    arguments = [p.text(value.addend), *matrices(p, value.product)]
    if value.negative or value.factor != values.Number(Fraction(1)):
        sign = "-" * value.negative
        arguments.append(f"alpha={sign}{p.text(value.factor, SIGN if sign else SUM)}")
    return f"{function}({', '.join(arguments)})", ATOM


def _einsum(p: Prints, value: arrays.Contract):
    letters: dict[str, str] = {}

    def word(dims):
        for dim in dims:
            free = [
                c for c in (dim.axis.name[0].lower(), *ascii_lowercase) if c not in letters.values()
            ]
            letters.setdefault(dim.axis.name, next(c for c in free if c in ascii_lowercase))
        return "".join(letters[dim.axis.name] for dim in dims)

    spec = f"{word(value.left.dims)},{word(value.right.dims)}->{word(value.dims)}"
    return f'{p.einsum}("{spec}", {p.text(value.left)}, {p.text(value.right)})', ATOM


@TORCH.of(arrays.OfMatrix)
def _of_matrix(p: Prints, value: arrays.OfMatrix) -> tuple[str, int]:
    return OF_MATRIX[value.kind].format(p.text(value.operand)), ATOM


@TORCH.of(arrays.Solved)
def _solved(p: Prints, value: arrays.Solved) -> tuple[str, int]:
    matrix, right = p.text(value.matrix), p.text(value.right)
    left = ", left=False" * value.from_the_right
    if not value.triangle:
        return f"_runtime.solve({matrix}, {right}{left})", ATOM
    right = f"{p.tight(value.right)}.unsqueeze(-1)" if value.is_vector else right
    upper = value.triangle == "upper"
    solved = f"torch.linalg.solve_triangular({matrix}, {right}, upper={upper}{left})"
    return solved + ".squeeze(-1)" * value.is_vector, ATOM


@TORCH.of(arrays.ArgMaxOf)
def _arg_max_of(p: Prints, value: arrays.ArgMaxOf) -> tuple[str, int]:
    least = opposite(value.operand)
    first = "argmax" if least is None else "argmin"
    return f"{p.tight(least or value.operand)}.{first}({value.along})", ATOM


@TORCH.of(arrays.Pick)
def _pick(p: Prints, value: arrays.Pick) -> tuple[str, int]:
    if isinstance(value.index, values.Number):
        entry = p.text(value.index)
        return f"{p.tight(value.operand)}.select({value.along}, {entry})", ATOM
    if value.rowwise and parts.on_diagonal(value.index) is not None:
        return diagonal_of(p, value), ATOM
    operand, index = p.tight(value.operand), p.tight(value.index)
    if not value.rowwise and len(value.operand.dims) == 2:  # raises for indices out of range
        return f"torch.nn.functional.embedding({p.text(value.index)}, {operand})", ATOM
    if not value.rowwise and not value.index.dims and len(value.operand.dims) == 1:
        place = f"{index}.unsqueeze(0)"  # an index without dimensions cannot be batched
        return f"{operand}.gather(0, {place}).squeeze(0)", ATOM
    if not value.rowwise:
        return f"{operand}[{p.text(value.index)}]", ATOM
    along = value.along
    return f"{operand}.gather({along}, {index}.unsqueeze({along})).squeeze({along})", ATOM


@TORCH.of(arrays.Positions)
def _positions(p: Prints, value: arrays.Positions) -> tuple[str, int]:
    return f"torch.arange({p.sizes[value.size]}, device={p.like}.device)", ATOM


@TORCH.of(arrays.AsNumber)
def _as_number(p: Prints, value: arrays.AsNumber) -> tuple[str, int]:
    return f"{p.tight(value.operand)}.to({p.like}.dtype)", ATOM


@TORCH.of(arrays.OneHotOf)
def _one_hot_of(p: Prints, value: arrays.OneHotOf) -> tuple[str, int]:
    index = p.text(value.index)
    if isinstance(value.index, values.Number):
        index = f"{p.like}.new_tensor({index}, dtype=torch.long)"
    if parts.on_diagonal(value.index) is not None:
        like = f"dtype={p.like}.dtype, device={p.like}.device"
        return f"torch.eye({p.sizes[value.size]}, {like})", ATOM
    one_hot = f"torch.nn.functional.one_hot({index}, {p.sizes[value.size]})"
    return f"{one_hot}.to({p.like}.dtype)", ATOM


@TORCH.of(arrays.Gathered)
def _gathered(p: Prints, value: arrays.Gathered) -> tuple[str, int]:
    rank = len(value.index.dims)
    index, source = p.tight(value.index), p.tight(value.source)
    if value.source.dims != value.index.dims + value.dims[1:]:
        source = f"{source}.reshape({index}.numel(), {p.shape(value.dims[1:])})"
    elif rank > 1:
        source = p.flattened(source, 0, rank - 1)
    index = f"{index}.flatten()" if rank > 1 else index
    shape = p.shape(value.dims)
    return f"_runtime.index_added({p.like}.new_zeros({shape}), {index}, {source})", ATOM


@TORCH.of(arrays.Scattered)
def _scattered(p: Prints, value: arrays.Scattered) -> tuple[str, int]:
    zeros = f"{p.like}.new_zeros({p.shape(value.dims)})"
    arguments = f"{value.along}, {p.text(value.index)}, {p.text(value.source)}"
    return f"{zeros}.scatter_add{'_' * p.in_place}({arguments})", ATOM


@TORCH.of(arrays.SegmentMax)
def _segment_max(p: Prints, value: arrays.SegmentMax) -> tuple[str, int]:
    return f"{_segments(p, 'max', value)}{UNSHIFTED.get(value.kind, '')}", ATOM


@TORCH.of(arrays.SegmentArgMax)
def _segment_arg_max(p: Prints, value: arrays.SegmentArgMax) -> tuple[str, int]:
    return _segments(p, "argmax", value), ATOM


def _segments(p: Prints, function: str, value) -> str:
    size = p.sizes[value.size]
    source, index = p.text(value.source), p.text(value.index)
    return f"_runtime.segment_{function}({source}, {index}, {size})"


@TORCH.of(arrays.Expand)
def _expand(p: Prints, value: arrays.Expand) -> tuple[str, int]:
    if p.is_number(value.operand):
        comma = "," if len(value.dims) == 1 else ""
        shape, filling = f"({p.shape(value.dims)}{comma})", p.text(value.operand)
        if is_wide(value.operand):
            return f"{p.as_tensor(value.operand)}.expand{shape}.clone()", ATOM
        return f"{p.like}.new_full({shape}, {filling})", ATOM
    return f"{p.tight(value.operand)}.expand({p.shape(value.dims)})", ATOM


@TORCH.of(arrays.Detached)
def _detached(p: Prints, value: arrays.Detached) -> tuple[str, int]:
    return f"{p.tight(value.operand)}.detach()", ATOM


@TORCH.of(arrays.Own)
def _own(p: Prints, value: arrays.Own) -> tuple[str, int]:
    if isinstance(value.operand, arrays.Expand) and p.is_number(value.operand.operand):
        return p.text(value.operand), ATOM  # filled, and so its own already
    return f"{p.tight(value.operand)}.clone()", ATOM


@TORCH.of(arrays.Zeros)
def _zeros(p: Prints, value: arrays.Zeros) -> tuple[str, int]:
    return f"{p.like}.new_zeros({p.shape(value.dims) or '()'})", ATOM


@TORCH.of(Collected)
def _collected(p: Prints, value: Collected) -> tuple[str, int]:
    record = p.text(value.record)
    if value.along is None:
        return f"{record}[-1][{value.number}]", ATOM
    record += "[::-1]" if value.reverse else ""
    return f"torch.stack([step[{value.number}] for step in {record}], {value.along})", ATOM
