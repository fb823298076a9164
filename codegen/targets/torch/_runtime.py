"""What all generated modules share: argument checks, and registration with autograd.

This file is copied next to the generated modules and needs only torch. It is the only one that uses
private names of torch.

Common to all functions:

- TypeError if a tensor argument is not a tensor, or if an input is not floating point.
- Inputs of different dtypes are promoted as torch promotes them, and each gradient has the dtype of
  its input. Exception: next to a float16 or bfloat16 input, an input that is broadcast along it,
  such as the gain of a norm, may be float32; the result keeps the half dtype. A tensor without a
  gradient may have any dtype that converts to the inputs' dtype without loss.
- ValueError if shapes do not match.
- TypeError if a number is not a Python or NumPy number; a tensor is not a number.
- float16 and bfloat16 are computed in float32 and rounded once at the end. torch.autocast has no
  effect.
- Derivatives of any order, by torch.autograd and torch.func: in closed form where the module prints
  one, otherwise by autograd through its lines.
- NotImplementedError under torch.compile if a gradient is taken with create_graph=True.

Long: one file, copied next to the modules, where it is read as a whole.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import operator
from collections import namedtuple
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from numbers import Real

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active as transforms_active
from torch._C import _functorch as functorch
from torch._functorch.utils import unwrap_dead_wrappers
from torch._subclasses import FakeTensor
from torch.autograd import Function, forward_ad
from torch.compiler import is_compiling, is_exporting

HALF = (torch.float16, torch.bfloat16)
MOST = 1000  # shapes and dtypes of arguments that are remembered, for each function
OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Formula:
    """An expression of sizes and numbers, or a comparison, as a function of these by name. The
    ``words`` say what must hold.
    """

    def __init__(self, text: str, words: str = ""):
        node = ast.parse(text, mode="eval").body
        self.value, self.words = computed(node), words
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id != "math"]
        self.names = tuple(dict.fromkeys(names))
        self.parts = ()  # dividend and divisor, each with its text; what is compared
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            self.parts = [(ast.unparse(n), computed(n)) for n in (node.left, node.right)]
        elif isinstance(node, ast.Compare):
            compared = [node.left, *node.comparators]
            self.parts = [(words, computed(compared[len(compared) - 2]))]

    def missing(self, known: Mapping[str, float]) -> list[str]:
        """The unknown names; a list, since the compiler does not trace sets of keys."""
        return [name for name in self.names if name not in known]

    def demanded(
        self, name: str, known: Mapping[str, float], numbers: Collection[str] = ()
    ) -> None:
        """ValueError if the comparison does not hold; NaN is refused too."""
        if not self.value(known):
            tested = any(n in numbers for n in self.names)
            got = f", got {self.parts[0][1](known)}" if tested else ""
            sizes = [f"{n} = {known[n]}" for n in self.names if n not in numbers]
            where = f" where {', '.join(sizes)}" if sizes else ""
            raise ValueError(f"{name}: {self.words}{got}{where}")

    def divided(self, name: str, known: Mapping[str, float]) -> int:
        """A size; ValueError if the dividend is not a multiple of the divisor."""
        if not self.parts:
            return self.value(known)
        (what, dividend), (by, divisor) = [(text, value(known)) for text, value in self.parts]
        if divisor < 1 or dividend % divisor:
            raise ValueError(f"{name}: {what} = {dividend} is not a multiple of {by} = {divisor}")
        return dividend // divisor


def computed(node: ast.expr) -> Callable[[Mapping], float]:
    """The value of an expression, as a function of the known names."""
    match node:
        case ast.Constant(value=number):
            return lambda known: number
        case ast.Name(id=name):
            return lambda known: known[name]
        case ast.UnaryOp(operand=operand):
            value = computed(operand)
            return lambda known: -value(known)
        case ast.BinOp(left=left, op=sign, right=right):
            left, apply, right = computed(left), OPERATORS[type(sign)], computed(right)
            return lambda known: apply(left(known), right(known))
        case ast.Call(func=ast.Attribute(attr=name), args=[argument]):
            function, value = getattr(math, name), computed(argument)
            return lambda known: function(value(known))
        case ast.Compare(left=left, ops=signs, comparators=others):
            values = [computed(each) for each in (left, *others)]
            signs = [OPERATORS[type(sign)] for sign in signs]

            def holds(known):
                numbers = [value(known) for value in values]
                pairs = zip(signs, numbers, numbers[1:], strict=False)
                return all(sign(one, other) for sign, one, other in pairs)

            return holds
    raise TypeError(f"no arithmetic: {ast.unparse(node)}")


class Arguments:
    """The arguments of the functions of one module; errors begin with its ``name``. The
    ``notation`` declares them, one line each:

        x, y: *N C                the axes of a tensor, *N any number of them; also dx, v_x, c_x
        mean: *N=1 1              size 1 along these
        gain: C = 1               optional, filled with 1
        weight: C = 1, constant   has no gradient, and may have a narrower dtype
        target: N C, broadcast    expanded to this shape
        labels: N -> C            integers: for each of N an index along C
        groups: N, whole          integers
        labels: N -> C, ignored   unless they equal ignore_index
        loss: () for mean; N for none       depends on the reduction
        count: N, needed for mean   may be None for other reductions
        reduction: none | mean    one of these strings
        D = 4                     a size; also K = C / groups, or a number with a default
        eps > 0: WORDS            a condition, and the error if it fails
    """

    def __init__(self, name: str, notation: str = ""):
        self.name = name
        self.axes: dict[str, dict[str, tuple[str, ...]]] = {}  # by name and by word, "" for all
        self.fills: dict[str, float] = {}
        self.bounds: dict[str, tuple[str, ...]] = {}
        kinds = ("constant", "broadcast", "ignored", "needed", "whole")
        self.flags: dict[str, set[str]] = {kind: set() for kind in kinds}
        self.needed_for: dict[str, list[str]] = {}
        self.words: tuple[str, ...] = ()
        self.sizes: dict[str, Formula] = {}
        self.demands: list[Formula] = []
        self.products: list[tuple[str, Formula]] = []
        for line in filter(None, map(str.strip, notation.split("\n"))):
            self._read(line)
        every = [a for own in self.axes.values() for axes in own.values() for a in axes]
        self.several = {axis[1:] for axis in every if axis[0] == "*" and "=" not in axis}
        self.lengths = {axis.strip("*") for axis in every} - {"1"}
        parts = (formula.names for formula in self.sizes.values())
        following = self.lengths.union(*parts) & self.sizes.keys()
        pending = [name for name in self.sizes if name in following]
        self.following: list[str] = []  # the sizes with a formula, each after those that it reads
        while pending:
            ready = (n for n in pending if not {*self.sizes[n].names} & {*pending} - {n})
            self.following.append(next(ready))
            pending.remove(self.following[-1])

    def _read(self, line: str) -> None:
        head, colon, said = line.partition(": ")
        if not colon:
            name, _, text = line.partition(" = ")
            self.sizes[name] = Formula(text)
            dividend, divides, divisor = text.partition(" / ")
            if divides and dividend.isidentifier():
                self.products.append((dividend, Formula(f"{name} * {divisor}")))
            elif " * " in text:
                self.products.append((name, self.sizes[name]))
        elif any(sign in head for sign in "<>="):
            self.demands.append(Formula(head, said))
            whole, equal, parts = head.partition(" == ")
            if equal and whole.isidentifier() and "+" not in parts and "-" not in parts:
                self.products.append((whole, Formula(parts)))
        elif " | " in said:
            self.words = tuple(said.split(" | "))
        else:
            for name in head.split(", "):
                self._noted(name, said)

    def _noted(self, name: str, said: str) -> None:
        said, *flags = said.split(", ")
        for flag in flags:
            flag, _, words = flag.partition(" for ")
            self.flags[flag].add(name)
            if words:
                self.needed_for[name] = words.split()
        said, _, bounds = said.partition(" -> ")
        said, _, fill = said.partition(" = ")
        if bounds:
            self.bounds[name] = tuple(bounds.split())
        if fill:
            self.fills[name] = float(fill)
        own = self.axes[name] = {}
        for each in said.split("; "):
            axes, _, words = each.partition(" for ")
            own |= dict.fromkeys(words.split() or [""], tuple(axes.replace("()", "").split()))

    def axes_of(self, name: str) -> dict[str, tuple[str, ...]]:
        """The axes of a tensor, by reduction; empty for what is not a tensor."""
        if name in self.axes:
            return self.axes[name]
        if name[:2] in ("v_", "c_"):
            return self.axes_of(name[2:])
        return self.axes_of(name[1:]) if name[:1] == "d" else {}

    def with_fixed(self, known: dict[str, int]) -> dict[str, int]:
        """The sizes, and those that follow: from ``K = C / groups``, and from ``P == K * H``."""
        for name in self.following:
            formula = self.sizes[name]
            if name not in known and not formula.missing(known):
                known[name] = formula.divided(self.name, known)
        for whole, parts in self.products:
            unknown = parts.missing(known)
            if whole not in known and not unknown:
                known[whole] = parts.value(known)
            elif whole in known and len(unknown) == 1:
                (name,) = unknown
                known[name] = known[whole] // (parts.value({**known, name: 1}) or 1)
        return known

    def along(self, name: str, word: str) -> tuple[str, ...] | None:
        """The axes of a tensor; None if this reduction has no such tensor."""
        own = self.axes_of(name)
        return own.get(word, own.get(""))

    def fits(self, name, tensor, axes, shape, dtype=None, single=False, *, wide=False) -> None:
        """Long: TypeError unless it is a tensor of the ``dtype`` (``single``: float32 may stand in
        for a half dtype, or a half dtype for it; ``wide``: float32 for a half dtype), ValueError
        unless it has the ``shape``, where None and ``...`` are unknown.
        """
        self._is_tensor(name, tensor)
        if tensor.shape != shape:
            known = list(shape)
            if ... in known:
                place = known.index(...)
                known[place : place + 1] = [None] * (tensor.dim() - len(known) + 1)
            pairs = zip(known, tensor.shape, strict=False)
            if len(known) != tensor.dim() or any(size not in (None, own) for size, own in pairs):
                here = ", ".join({None: "any", ...: "..."}.get(size, str(size)) for size in shape)
                raise ValueError(
                    f"{self.name}: {name} must have shape {axes}, here ({here}),"
                    f" got {tuple(tensor.shape)}"
                )
        if tensor.dtype != dtype:
            if not (tensor.is_floating_point() or dtype == torch.int64):
                raise TypeError(f"{self.name}: {name} must be floating point, got {tensor.dtype}")
            pair = (tensor.dtype, dtype)
            enough = single and torch.float32 in pair and (pair[0] in HALF or pair[1] in HALF)
            enough = enough or (wide and tensor.dtype == torch.float32 and dtype in HALF)
            if dtype is not None and not enough:
                raise TypeError(
                    f"{self.name}: {name} has dtype {tensor.dtype}, expected {dtype}:"
                    f" convert one of them, as in {name}.to({dtype})"
                )

    def index(self, name: str, label) -> Tensor:
        """A tensor of integers as an index; TypeError for any other dtype."""
        self._is_tensor(name, label)
        if label.dtype == torch.bool or label.is_floating_point() or label.is_complex():
            raise TypeError(f"{self.name}: {name} must have an integer dtype, got {label.dtype}")
        return label.long()

    def in_range(self, name: str, index: Tensor, *lengths: int) -> None:
        """IndexError for an index out of range. Not checked on a GPU, which would synchronize, nor
        for a tensor without data.
        """
        on_cpu = index.device.type == "cpu" and not is_compiling()
        if lengths and index.numel() and on_cpu:
            while functorch.is_functorch_wrapped_tensor(index):
                index = functorch.get_unwrapped(index)  # under vmap all of them at once
            if isinstance(index, FakeTensor):
                return
            low, high = (bound.item() for bound in index.aminmax())
            if low < 0 or high >= min(lengths):
                wrong = low if low < 0 else high
                last = min(lengths) - 1
                raise IndexError(f"{self.name}: {name} holds {wrong}, not in 0 .. {last}")

    def split_label(self, name, label, ignored, dtype, *lengths) -> tuple[Tensor, Tensor]:
        """The label as an index, with 0 where it is ``ignored``; and a mask, 1 where it counts.

        IndexError if a label that counts is out of range.
        """
        kept = label != ignored
        index = torch.where(kept, label, 0)
        self.in_range(name, index, *lengths)
        return index, kept.to(dtype)

    def as_number(self, name: str, tensor, dtype: torch.dtype) -> Tensor:
        """A tensor without gradient in the dtype of the computation; TypeError if the conversion
        would lose precision.
        """
        computed = torch.float32 if dtype in HALF else dtype
        self._is_tensor(name, tensor)
        if tensor.dtype == computed:
            return tensor
        if tensor.is_complex():
            raise TypeError(f"{self.name}: {name} must be real, got {tensor.dtype}")
        if torch.promote_types(tensor.dtype, computed) != computed:
            raise TypeError(
                f"{self.name}: {name} has dtype {tensor.dtype}, expected {computed}:"
                f" convert it, as in {name}.to({computed})"
            )
        return tensor.to(computed)

    def without_gradient(self, name: str, tensor) -> None:
        """RuntimeError if it requires a gradient that was not derived."""
        if isinstance(tensor, Tensor) and tensor.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f"{self.name}: {name} requires grad, but no gradient is derived for it: pass"
                f" {name}.detach()"
            )

    def number(self, name: str, value) -> float:
        """A number as a Python float; TypeError for anything else."""
        if isinstance(value, Real):
            return float(value)
        raise TypeError(
            f"{self.name}: {name} must be a number, got {type(value).__name__}; it has no gradient,"
            " so pass a one-element tensor as .item()"
        )

    def whole(self, name: str, value) -> int:
        """An integer as a Python int; TypeError for anything else."""
        try:
            return operator.index(value)
        except TypeError:
            kind = type(value).__name__
            raise TypeError(f"{self.name}: {name} must be an integer, got {kind}") from None

    def one_of(self, name: str, word, *words: str) -> None:
        """ValueError unless the word is one of the ``words``."""
        if word not in words:
            *others, last = map(repr, words)
            raise ValueError(
                f"{self.name}: {name} must be {', '.join(others)} or {last}, got {word!r}"
            )

    def shape(self, name: str, shape) -> tuple[int, ...]:
        """TypeError unless it is a tuple of sizes."""
        if not isinstance(shape, tuple):
            kind = type(shape).__name__
            raise TypeError(f"{self.name}: {name} must be a tuple of sizes, got {kind}")
        return shape

    def _is_tensor(self, name: str, value) -> None:
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(f"{self.name}: {name} must be a tensor, got {kind}")


class Asked:
    """What one function requires of its ``parameters``, and how it converts them.

    Saved values and upstream gradients may be float32 next to float16 or bfloat16 ``inputs``; those
    that are ``optional`` may be None.
    """

    optional: Sequence[str] = ()

    def __init__(
        self, own: Arguments, parameters: Mapping[str, inspect.Parameter], inputs: Sequence[str]
    ):
        self.own = own
        places = {name: place for place, name in enumerate(parameters)}
        tensors = [name for name in places if own.axes_of(name)]
        others = {name: place for name, place in places.items() if name not in tensors}
        self.shapes = [(name, p) for name, p in others.items() if name in own.several]
        self.given = [(n, p) for n, p in others.items() if n in own.lengths - own.several]
        self.word = others.get("reduction") if own.words else None
        self.numbers = []
        for name, place in others.items():
            kind = parameters[name].annotation
            if kind.startswith(("int", "float")) and name not in own.lengths:
                kinds = int if kind.startswith("int") else (float, int)
                self.numbers.append((place, name, kinds, own.sizes.get(name)))
        self.names = [name for _, name, *_ in self.numbers]
        names = {*self.names}
        every, known = [(d, {*d.names}) for d in own.demands], names | own.lengths
        self.demands = [d for d, read in every if read & names and read <= known]
        self.of_sizes = [d for d, read in every if read <= own.lengths]
        told = bool(inputs) and {*inputs} <= {*parameters}
        first = self._ordered([n for n in tensors if n in inputs] if told else tensors)
        rest = self._ordered([n for n in tensors if n not in first])
        ordered = [*first, *rest]
        self.order = [(places[name], name) for name in ordered]
        typed = own.flags["constant"] | own.flags["whole"] | {*own.bounds}
        self.promoted = {*first} - typed if told else set()
        self.first = [(places[n], n) for n in ordered if len(own.axes_of(n)) > 1]
        self.labels = [(places[n], n, own.bounds[n]) for n in tensors if n in own.bounds]
        self.labels = [label for label in self.labels if label[1] not in own.flags["ignored"]]
        self.tensors = [places[name] for name in tensors]
        self.rest = [
            place for place in others.values() if place not in [n[0] for n in self.numbers]
        ]
        self.passed: dict = {}

    def _ordered(self, names: Sequence[str]) -> list[str]:
        """The tensor that decides the dtype comes first, those that must match it last, and one
        with size 1 along several dimensions after the one that shows how many these are.
        """
        own, found, shown = self.own, [], {name for name, _ in self.shapes}
        late = {*own.fills} | own.flags["broadcast"]
        typed = own.flags["constant"] | own.flags["whole"] | {*own.bounds}
        waiting = sorted(names, key=lambda n: 2 if n in late else n in typed)
        waiting.sort(key=lambda n: len(own.axes_of(n)) > 1)
        while waiting:
            ones = [{a[1:-2] for a in self._axes(n) if a[-2:] == "=1"} for n in waiting]
            name = waiting.pop(next((i for i, own in enumerate(ones) if own <= shown), 0))
            shown |= {axis.strip("*") for axis in self._axes(name)}
            found.append(name)
        return found

    def _axes(self, name: str) -> tuple[str, ...]:
        return next(iter(self.own.axes_of(name).values()))

    def prepared(self, given: Sequence, narrow: bool = False) -> tuple:
        """The dtype, the sizes by name, those of several dimensions, and the arguments as the
        formulas take them; ``narrow`` ones stay in 16 bits. Raises what the docstring above says.
        Shapes and dtypes that passed once are remembered.
        """
        key = None
        try:
            if not is_compiling():
                key = self._key(given)
            dtype, known, several, changes, accepted = self.passed[key]
        except (AttributeError, KeyError, TypeError):
            dtype, known, several, changes, accepted = found = self._looked_at(given)
            if key is not None:
                self._remember(key, found)
        if not (changes or self.numbers or self.shapes):
            return dtype, known, several, given
        arguments = [*given]
        for name, place in self.shapes:
            arguments[place] = known[name]
        for place, own, shapes in changes:
            stays = narrow and own == torch.float32 and arguments[place].dtype in HALF
            if own is not None and not stays:
                arguments[place] = arguments[place].to(own)
            for change, shape in shapes:
                arguments[place] = change(arguments[place], shape)
        for place, name, kinds, default in self.numbers:
            if not isinstance(given[place], kinds):
                arguments[place] = self._number(given[place], name, kinds, default, known)
        if self.demands:
            numbers = tuple([arguments[place] for place, *_ in self.numbers])
            if numbers not in accepted:
                self._demanded(dict(zip(self.names, numbers, strict=True)), known)
                if len(accepted) == MOST:
                    accepted.clear()
                accepted.add(numbers)
        return dtype, known, several, arguments

    def _demanded(self, numbers: Mapping[str, float], known: Mapping[str, float]) -> None:
        known = {**known, **numbers}
        for demand in self.demands:
            if not demand.missing(known):
                demand.demanded(self.own.name, known, numbers)

    def _key(self, given: Sequence) -> tuple:
        """What decides whether the arguments are valid, except for numbers."""
        tensors = [given[place] for place in self.tensors]
        key = [None if tensor is None else (tensor.shape, tensor.dtype) for tensor in tensors]
        return (*key, *[given[place] for place in self.rest]) if self.rest else tuple(key)

    def _remember(self, key: tuple, found: tuple) -> None:
        try:
            if len(self.passed) == MOST:
                self.passed.clear()
            self.passed[key] = found
        except TypeError:  # sizes that are not known yet, while torch traces
            pass

    def _number(self, number, name: str, kinds, default: Formula | None, known: Mapping):
        if number is not None:
            return (self.own.whole if kinds is int else self.own.number)(name, number)
        if default is None:
            raise TypeError(f"{self.own.name}: {name} is missing")
        try:
            return default.value(known)
        except ZeroDivisionError:
            zeros = " and ".join(n for n in default.names if known[n] == 0)
            words = f"{self.own.name} divides by {zeros}, which is 0"
            raise ValueError(words) from None

    def _looked_at(self, given: Sequence) -> tuple:
        own, known, several, owners, dtype = self.own, {}, {}, {}, self.dtype_of(given)
        word = "" if self.word is None else given[self.word]
        if self.word is not None:
            own.one_of("reduction", word, *own.words)
            known["reduction"] = word
        known |= {n: f.value({}) for n, f in own.sizes.items() if not f.names}
        known |= {name: given[place] for name, place in self.given}
        for name, place in self.shapes:
            several[name] = own.shape(name, given[place])
            known[name] = math.prod(given[place])
        shown = dtype
        for place, name in self.first:
            axes = own.along(name, word)
            if axes is None:
                continue
            shape, alike = expected_shape(axes, {}, {}), None if name in self.promoted else shown
            own.fits(name, given[place], written_axes(axes), shape, alike, True)
            shown = shown or given[place].dtype
        found = {}
        for place, name in self.order:
            axes, tensor = own.along(name, word), given[place]
            if axes is None or (tensor is None and self._may_be_none(name, word)):
                continue
            if name in own.flags["broadcast"]:
                tensor = spread(tensor, tuple(expected_shape(axes, known, several)))
            sizes = known, several, owners
            tensor, dtype = self._of_kind(name, tensor, axes, dtype, sizes)
            if not all(axis in known for axis in names_in(axes)):
                measure(name, axes, tensor.shape, sizes)
                self._of_kind(name, tensor, axes, dtype, sizes)  # an axis is there twice
            found[place] = tensor, axes
        for name, formula in own.sizes.items():
            if name in own.lengths and not formula.parts and not formula.missing(known):
                known.setdefault(name, formula.value(known))
        for demand in self.of_sizes:
            if not demand.missing(known):
                demand.demanded(own.name, known)
        changes = self._changes(given, found, known, several)
        return dtype, own.with_fixed(known), several, changes, set()

    def _changes(self, given: Sequence, found: Mapping, known: Mapping, several: Mapping) -> list:
        """The dtype and shapes that each tensor is converted to, by position."""
        changes = []
        for place, (tensor, axes) in found.items():
            target = torch.float32 if tensor.dtype in HALF else tensor.dtype
            shapes = []
            if tensor.shape != given[place].shape:
                shapes.append((Tensor.expand, tensor.shape))
            if any(a[0] == "*" and len(several[a[1:].removesuffix("=1")]) != 1 for a in axes):
                shape = [1 if a[-2:] in ("1", "=1") else known[a.strip("*")] for a in axes]
                shapes.append((Tensor.reshape, shape))
            if shapes or target != given[place].dtype:
                changes.append((place, target if target != given[place].dtype else None, shapes))
        return changes

    def _may_be_none(self, name: str, word: str) -> bool:
        needed = self.own.needed_for.get(name, [word])
        return name in self.own.fills or name in self.optional or word not in needed

    def _of_kind(self, name, tensor, axes, dtype, sizes):
        """The tensor as the formulas take it, and the dtype of all inputs."""
        (known, several, owners), own, words = sizes, self.own, written_axes(axes)
        by: dict[str, list[str]] = {}
        for axis in dict.fromkeys(names_in(axes)):
            if axis in owners:
                by.setdefault(owners[axis], []).append(axis)
        if by:
            words += " with " + " and ".join(f"{', '.join(a)} as in {n}" for n, a in by.items())
        shape = tuple(expected_shape(axes, known, several))
        if name in own.bounds or name in own.flags["whole"]:
            tensor = own.index(name, tensor)
            own.fits(name, tensor, words, shape, torch.int64)
        elif name in own.flags["constant"]:
            tensor = own.as_number(name, tensor, dtype)
            own.fits(name, tensor, words, shape, tensor.dtype)
        else:
            alike = None if name in self.promoted else dtype
            own.fits(name, tensor, words, shape, alike, single=True)
            if name in self.promoted:
                tensor = tensor.to(dtype)
            dtype = tensor.dtype if dtype is None else dtype
        return tensor, dtype

    def dtype_of(self, given: Sequence) -> torch.dtype | None:
        """The dtype of the result: that to which torch promotes the inputs, where those broadcast
        along the first leave a half dtype as it is; None if the function has no inputs.
        """
        inputs = [
            (given[place], {*self._axes(name)})
            for place, name in self.order
            if name in self.promoted
            and isinstance(given[place], Tensor)
            and given[place].is_floating_point()
        ]
        if not inputs:
            return None
        first = inputs[0][1]
        beside = [t for t, axes in inputs if axes < first and t.dtype == torch.float32]
        dtype = promoted([t for t, _ in inputs if not any(t is other for other in beside)])
        return dtype if dtype in HALF else promoted([t for t, _ in inputs])

    def in_range(self, arguments: Sequence, known: Mapping[str, int]) -> None:
        """IndexError for a label that is out of range."""
        for place, name, bounds in self.labels:
            lengths = [known[axis] for axis in bounds if axis in known]
            self.own.in_range(name, arguments[place], *lengths)


def promoted(tensors: Sequence[Tensor]) -> torch.dtype:
    """The dtype that torch computes with: a tensor without dimensions decides alone."""
    deciding = [t for t in tensors if t.dim()] or tensors
    return functools.reduce(torch.promote_types, [t.dtype for t in deciding])


def names_in(axes: Sequence[str]) -> list[str]:
    return [axis.strip("*") for axis in axes if axis[-2:] not in ("1", "=1")]


def written_axes(axes: Sequence[str]) -> str:
    """The shape in words: ``(*N, C)``."""
    return f"({', '.join(axes)},)" if len(axes) == 1 else f"({', '.join(axes)})"


def expected_shape(axes: Sequence[str], known: Mapping, several: Mapping) -> Iterator:
    """The shape as far as it is known: None for an unknown size, ``...`` for several."""
    for axis in axes:
        if axis[0] == "*":
            name = axis[1:].removesuffix("=1")
            own = several.get(name, (...,))
            yield from own if name == axis[1:] else [1] * len(own)
        else:
            yield 1 if axis == "1" else known.get(axis)


def measure(name: str, axes: Sequence[str], shape: Sequence[int], sizes: tuple) -> None:
    """Records the sizes of axes that are not known yet, and which tensor has them."""
    (known, several, owners), more, place = sizes, len(shape) - len(axes), 0
    for axis in axes:
        end = place + 1 + more * (axis[0] == "*")
        own, size = axis.strip("*"), tuple(shape[place:end])
        if axis[-2:] not in ("1", "=1") and own not in known:
            owners[own], known[own] = name, math.prod(size)
            if axis[0] == "*":
                several[own] = size
        place = end


# Tensors as the lines of a module take them


def single(*tensors: Tensor | None) -> list:
    """The tensors in the dtype of the computation."""
    return [t.float() if t is not None and t.dtype in HALF else t for t in tensors]


def widened(values: Sequence) -> list:
    """With float32 instead of 16 bits, which kernels alone compute with."""
    return [v.float() if isinstance(v, Tensor) and v.dtype in HALF else v for v in values]


def spread(tensor, shape):
    """The tensor expanded to a shape without a copy, if it broadcasts to it."""
    fits = (
        isinstance(tensor, Tensor)
        and tensor.dim() <= len(shape)
        and all(
            size in (1, length)
            for size, length in zip(tensor.shape[::-1], shape[::-1], strict=False)
        )
    )
    return tensor.expand(shape) if fits and tensor.shape != shape else tensor


def merged(first: int, last: int, *tensors: Tensor | None) -> list:
    """The dimensions ``first`` to ``last`` (from the end) flattened; a new one, if none."""
    found = []
    for tensor in tensors:
        if tensor is not None:
            shape = list(tensor.shape)
            shape[first : last + tensor.dim()] = [math.prod(shape[first : last + tensor.dim()])]
            tensor = tensor.reshape(shape)
        found.append(tensor)
    return found


def restored(tensor: Tensor | None, place: int, sizes: Sequence[int]) -> Tensor | None:
    """The dimension at ``place`` unflattened into ``sizes``; None stays None."""
    if len(sizes) == 1 or tensor is None:
        return tensor
    return tensor.reshape((*tensor.shape[:place], *sizes, *tensor.shape[place + 1 :]))


def all_count(label: Tensor, ignored: int, *lengths: int) -> bool:
    """Whether no label is ignored and all are in range; False on a GPU, which would synchronize,
    and for a tensor without data.
    """
    if not label.numel() or label.device.type != "cpu" or is_compiling():
        return False
    if isinstance(label, FakeTensor):
        return False
    low, high = (bound.item() for bound in label.aminmax())
    return low >= 0 and high < min(lengths, default=math.inf) and not low <= ignored <= high


def index_added(tensor: Tensor, index: Tensor, source: Tensor) -> Tensor:
    """``tensor`` with the rows of ``source`` added, in place unless there is a batch."""
    if batched(source):
        return tensor.index_add(0, index, source)
    return tensor.index_add_(0, index, source)


def scatter_added(tensor: Tensor, along: int, index: Tensor, source: Tensor) -> Tensor:
    """``tensor`` with ``source`` added, in place unless there is a batch."""
    if batched(source):
        return tensor.scatter_add(along, index, source)
    return tensor.scatter_add_(along, index, source)


def added_on_diagonal(tensor: Tensor, first: int, second: int, source) -> Tensor:
    """``tensor`` with ``source`` added on its diagonal, in place unless there is a batch."""
    diagonal = tensor.diagonal(0, first, second)
    total = diagonal + source
    if batched(total):
        return tensor.diagonal_scatter(total, 0, first, second)
    diagonal.copy_(total)
    return tensor


def with_diagonal(tensor: Tensor, first: int, second: int, number: float) -> Tensor:
    """A copy of ``tensor`` with a number everywhere on its diagonal."""
    diagonal = torch.full_like(tensor.diagonal(0, first, second), number)
    return tensor.diagonal_scatter(diagonal, 0, first, second)


def segment_max(source: Tensor, index: Tensor, size: int) -> Tensor:
    """The largest of the rows with each index, minus infinity where there is none."""
    index = index.reshape(-1, *[1] * (source.dim() - 1)).expand_as(source)
    empty = source.new_full((size, *source.shape[1:]), -math.inf)
    return empty.scatter_reduce(0, index, source, "amax")


def segment_argmax(source: Tensor, index: Tensor, size: int) -> Tensor:
    """Which of the rows with each index is the first of the largest; 0 where there is none."""
    count = source.shape[0]
    largest = segment_max(source, index, size)[index]
    rows = torch.arange(count, device=source.device).reshape(-1, *[1] * (source.dim() - 1))
    first = torch.where((source == largest) | source.isnan(), rows, count)
    index = index.reshape(rows.shape).expand_as(first)
    empty = first.new_zeros(size, *first.shape[1:])
    return empty.scatter_reduce(0, index, first, "amin", include_self=False)


def added_at(tensor: Tensor, along: int, place: int, source: Tensor) -> Tensor:
    """``tensor`` with ``source`` added at one place, in place unless there is a batch."""
    if batched(source):  # there select_scatter is silently wrong
        index = torch.tensor([place], device=tensor.device)
        return tensor.index_add(along, index, source.unsqueeze(along))
    tensor.select(along, place).add_(source)
    return tensor


def stepped(tensor: Tensor, along: int, initial=0.0, reverse: bool = False) -> Tensor:
    """What stands one place before along a dimension, ``initial`` at the first; with ``reverse``
    one place behind, 0 at the last.
    """
    count = tensor.shape[along]
    if count == 0:
        return tensor
    initial = torch.zeros_like(tensor.narrow(along, 0, 1)) + initial
    if reverse:
        return torch.cat([tensor.narrow(along, 1, count - 1), initial], along)
    return torch.cat([initial, tensor.narrow(along, 0, count - 1)], along)


def scanned(factor, term: Tensor, along: int, initial=0.0, reverse: bool = False) -> Tensor:
    """h[t] = factor[t]*h[t-1] + term[t] along a dimension, with ``initial`` before it; with
    ``reverse`` from the end: h[t] = factor[t]*h[t+1] + term[t].

    The row is cut into about as many parts as each has entries; all parts go on at the same time,
    and then the last states of the parts are carried over.
    """
    count = term.shape[along]
    if count == 0:
        return term
    initial = (torch.zeros_like(term.narrow(along, 0, 1)) + initial).select(along, 0)
    factor = (torch.zeros_like(term) + factor).movedim(along, 0)
    term = term.movedim(along, 0)
    if reverse:
        factor, term = factor.flip(0), term.flip(0)
    length = int(math.sqrt(count - 1)) + 1  # not isqrt, which torch.compile does not trace
    parts = -(-count // length)
    padding = torch.zeros_like(term[:1]).expand(parts * length - count, *term.shape[1:])
    cut = (parts, length, *term.shape[1:])
    factor, term = (torch.cat([t, padding]).reshape(cut) for t in (factor, term))
    states = [term[:, 0]]
    for a, b in zip(factor.unbind(1)[1:], term.unbind(1)[1:], strict=True):
        states.append(a * states[-1] + b)
    states, products = torch.stack(states, 1), factor.cumprod(1)
    carried = [initial]
    for product, state in zip(products[:-1, -1], states[:-1, -1], strict=True):
        carried.append(product * carried[-1] + state)
    states = states + products * torch.stack(carried).unsqueeze(1)
    states = states.reshape(parts * length, *cut[2:])[:count]
    return (states.flip(0) if reverse else states).movedim(0, along)


def logcumsumexp(tensor: Tensor, along: int) -> Tensor:
    """torch's own; where that is differentiated forward it loses what is far below the largest, so
    there it is a recurrence of exponentials relative to the largest so far.
    """
    if not in_plain_torch(tensor):
        return tensor.logcumsumexp(along)
    most = torch.finfo(tensor.dtype).max
    largest = tensor.detach().cummax(along).values.clamp(-most, most)
    steps = torch.exp(stepped(largest, along, -math.inf) - largest)
    return largest + torch.log(scanned(steps, torch.exp(tensor - largest), along))


def peak(tensor: Tensor, along, added: bool = False, keepdim: bool = True) -> Tensor:
    """The largest entry along dimensions, by which exponentials are shifted; 0 where that is
    minus infinity, or there is no entry.

    Where it is infinity, a row has no shares: +oo - +oo is no number. Where it is ``added`` again,
    as to the logarithm of a sum, it is 0 there, too: the sum is infinite by itself.
    """
    if tensor.numel() == 0:  # torch has no largest of nothing
        return tensor.sum(along, keepdim=keepdim)
    largest = tensor.amax(along, keepdim=keepdim)
    return largest.nan_to_num(math.nan, 0.0 if added else math.inf, 0.0)


# Square matrices: torch differentiates the forward derivatives of linalg.solve and linalg.slogdet
# as if the LU factors that they hold were constants, which is silently wrong. Derivatives of the
# factors themselves are right in any order.


def solve(matrix: Tensor, right: Tensor, left: bool = True) -> Tensor:
    """torch.linalg.solve, by the factors where that is differentiated forward."""
    if not in_plain_torch(matrix, right):
        return torch.linalg.solve(matrix, right, left=left)
    factors, pivots, info = torch.linalg.lu_factor_ex(matrix)
    torch._linalg_check_errors(info, "torch.linalg.solve", is_matrix=matrix.dim() == 2)
    if right.dim() < matrix.dim():
        return torch.linalg.lu_solve(factors, pivots, right.unsqueeze(-1)).squeeze(-1)
    return torch.linalg.lu_solve(factors, pivots, right, left=left)


def logdet(matrix: Tensor) -> Tensor:
    """torch.linalg.slogdet's logarithm, by the factors where that is differentiated forward."""
    if not in_plain_torch(matrix):
        return torch.linalg.slogdet(matrix).logabsdet
    factors = torch.linalg.lu_factor_ex(matrix).LU
    return factors.diagonal(0, -2, -1).abs().log().sum(-1)


# Entries read at another index


def padded(tensor: Tensor, along: int, before: int, after: int, fill: float = 0.0) -> Tensor:
    """``tensor`` with as many more entries ``fill`` at the ends of a dimension; fewer entries where
    they are less than 0.
    """
    length = tensor.shape[along]
    start, stop = min(max(-before, 0), length), length - min(max(-after, 0), length)
    kept = tensor.narrow(along, start, max(stop - start, 0))
    whole = length + before + after  # what is cut off may be more than there is
    before = min(max(before, 0), whole)
    places = (0, 0) * (tensor.dim() - 1 - along)
    ends = (before, whole - before - kept.shape[along])
    return torch.nn.functional.pad(kept, (*places, *ends), value=fill)


def spaced(tensor: Tensor, along: int, step: int) -> Tensor:
    """``tensor`` with zeros after every entry along a dimension: ``step`` entries for each."""
    places = (0, 0) * (tensor.dim() - 1 - along)
    apart = torch.nn.functional.pad(tensor.unsqueeze(along + 1), (*places, 0, step - 1))
    return apart.flatten(along, along + 1)


def overlapped(
    tensor: Tensor, along: int, step: int, spacing: int, offset: int, length: int
) -> Tensor:
    """The last dimension added up along another: entry k of row n at place
    ``step*n + spacing*k + offset`` of ``length``. What lies outside is left out.
    """
    count, entries = tensor.shape[along], tensor.shape[-1]
    low, extent = extent_of(count, entries, step, spacing)
    shape = list(tensor.shape[:-1])
    shape[along] = extent
    total = tensor.new_zeros(shape)
    for k in range(entries if count else 0):
        first = spacing * k - low
        rows = total.narrow(along, first, step * (count - 1) + 1)
        rows[(slice(None),) * along + (slice(None, None, step),)].add_(tensor.select(-1, k))
    return padded(total, along, low + offset, length - low - offset - extent)


def placed(tensor: Tensor, label: Tensor, *lines: tuple[int, ...]) -> Tensor:
    """``tensor`` added up where its entries lie. A line ``(along, entries, step, spacing, offset,
    length)`` says it for a dimension: entry k of row n at ``step*n + spacing*k + offset`` of
    ``length``. What lies outside is left out. ``label`` is k, counted along all lines.
    """
    dims = [line[0] for line in lines]
    rest, inside, place, count = label, True, 0, 1
    for along, entries, step, spacing, offset, length in reversed(lines):
        rows = torch.arange(tensor.shape[along], device=tensor.device)
        rows = rows.view(-1, *[1] * (tensor.dim() - 1 - along))
        at = step * rows + spacing * (rest % entries) + offset
        inside, rest = inside & (at >= 0) & (at < length), rest // entries
        place, count = place + count * at, count * length
    index, source = torch.where(inside, place, 0), torch.where(inside, tensor, 0.0)
    last = range(-len(dims), 0)
    index, source = (t.expand(tensor.shape).movedim(dims, [*last]) for t in (index, source))
    index, source = index.flatten(-len(dims)), source.flatten(-len(dims))
    total = source.new_zeros((*source.shape[:-1], count)).scatter_add(-1, index, source)
    return total.unflatten(-1, [line[-1] for line in lines]).movedim([*last], dims)


def extent_of(count: int, entries: int, step: int, spacing: int) -> tuple[int, int]:
    """The first place of windows that begin at 0, and how far it is from there to the last."""
    low = min(0, spacing * (entries - 1))
    extent = step * (count - 1) + abs(spacing) * (entries - 1) + 1
    return low, extent if count and entries else 0


def entries_at(
    tensor: Tensor,
    along: int,
    places: tuple[int | None, ...],
    index: Tensor,
    divisor: int = 1,
    fill: float = 0.0,
) -> Tensor:
    """``tensor`` at an index along a dimension, over ``divisor``, and ``fill`` where that is the
    index of no entry. ``places`` are for each dimension of the result that of ``tensor``.
    """
    rest = [i for i in places if i is not None]
    row = tensor.permute(*rest, along)
    row = row[tuple(slice(None) if i is not None else None for i in places)]
    length = tensor.shape[along]
    there = (index >= 0) & (index < length * divisor) & (index % divisor == 0)
    shape = torch.broadcast_shapes(row.shape[:-1], index.shape)
    index = torch.where(there, index // divisor, 0).expand(shape)
    found = row.expand(*shape, length).gather(-1, index.unsqueeze(-1)).squeeze(-1)
    return torch.where(there, found, fill)


# Transforms and modes around a call


def batched(tensor: Tensor) -> bool:
    """Whether it may be a batch under vmap, which a plain tensor cannot hold in place."""
    if transforms_active():
        return True
    if is_compiling():
        return False
    return functorch.is_legacy_batchedtensor(tensor)


def in_plain_torch(*tensors: Tensor) -> bool:
    """Whether only plain torch operations will do: under forward mode, a transform under the
    compiler, or a batch of gradients.
    """
    if forward_ad._current_level >= 0:
        return True
    if not transforms_active():
        return not is_compiling() and any(map(functorch.is_legacy_batchedtensor, tensors))
    if is_compiling():
        return True
    seen = (functorch.TransformType.Grad, functorch.TransformType.Vmap)
    return any(i.key() not in seen for i in functorch.get_interpreter_stack())


def applied(function: type[Function], *arguments):
    """``function.apply`` without inspecting the signature, which only transforms need."""
    if transforms_active() or is_compiling():
        return function.apply(*arguments)
    arguments = unwrap_dead_wrappers(arguments)
    return super(Function, function).apply(*arguments)


def differentiated(outputs, vectors, inputs, needs, graph: bool) -> list:
    """The gradients of the sum of the ``outputs`` times their ``vectors``, for the inputs that
    ``needs`` marks; None for the others.
    """
    pairs = zip(outputs, vectors, strict=False)
    given = [(o, v) for o, v in pairs if v is not None and o is not None and o.requires_grad]
    asked = [tensor for tensor, need in zip(inputs, needs, strict=False) if need]
    if not given or not asked:
        return [None] * len(needs)
    outputs, vectors = zip(*given, strict=True)
    how = {"create_graph": graph, "allow_unused": True}
    found = iter(torch.autograd.grad(outputs, asked, vectors, **how))
    return [next(found) if need else None for need in needs]


def uncast(function: Callable) -> Callable:
    """The function without torch.autocast, which would change the dtype of matrix products."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        device = next(a.device.type for a in (*args, *kwargs.values()) if isinstance(a, Tensor))
        if device == "meta" or not torch.is_autocast_enabled(device):
            return function(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return function(*args, **kwargs)

    return called


class TakenApart(torch.overrides.TorchFunctionMode):
    """flatten, unflatten and einsum decomposed: the vmap behind is_grads_batched has no rule for
    composite operations.
    """

    made_of = {
        Tensor.flatten: torch.ops.aten.flatten.using_ints,
        Tensor.unflatten: torch.ops.aten.unflatten.int,
    }

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.einsum:
            return torch.ops.aten.einsum.default.decompose(args[0], args[1:])
        if function in self.made_of:
            return self.made_of[function].decompose(*args)
        return function(*args, **(kwargs or {}))


def for_batches(backward: Callable, *lines: Callable | None) -> Callable:
    """The ``backward``, also for batches of gradients if its lines use composite operations."""
    names = set().union(*(inspect.unwrap(f).__code__.co_names for f in lines if f is not None))
    if names.isdisjoint({"flatten", "unflatten", "einsum"}):
        return backward

    @functools.wraps(backward)
    def called(ctx, *gradients):
        given = [g for g in gradients if g is not None]
        if is_compiling() or not any(map(functorch.is_legacy_batchedtensor, given)):
            return backward(ctx, *gradients)
        with TakenApart():
            return backward(ctx, *gradients)

    return called


# A pair of forward and backward as autograd sees it


class Lines:
    """The functions of a closed form, which a module declares by decorators."""

    def __init__(self):
        self.functions: dict[str, Callable] = {}
        self.again: dict[str, tuple[Callable, tuple[int, ...]]] = {}
        self.of_one: dict[str, Callable] = {}

    def forward(self, function: Callable) -> Callable:
        """Returns the outputs, then what the backward needs."""
        return self._declared("forward", function)

    def backward(self, function: Callable) -> Callable:
        """Returns the gradients, from the upstream gradients, saved values, numbers and needs."""
        return self._declared("backward", function)

    def behind(self, function: Callable) -> Callable:
        """The backward of the backward, from a vector per gradient, then the same arguments."""
        return self._declared("behind", function)

    def pullback(self, function: Callable) -> Callable:
        """The gradients of the inputs from the cotangents of the outputs and saved values."""
        return self._declared("pullback", function)

    def alone(self, output: str) -> Callable[[Callable], Callable]:
        """The backward where one of several outputs has a gradient, and no other one."""

        def declared(function):
            self.of_one[output] = function
            return function

        return declared

    def _declared(self, kind: str, function: Callable) -> Callable:
        self.functions[kind] = function
        return function

    def third(self, kind: str, *places: int) -> Callable[[Callable], Callable]:
        """The backward of ``behind`` or ``pullback``; ``places`` are those of its vectors."""

        def declared(function):
            self.again[kind] = function, places
            return function

        return declared


class Pair(Arguments, Lines):
    """A function with its gradient in closed form: what a module declares, and the callable that is
    public. For the ``notation`` see `Arguments`.

    ``outputs`` are the names of several outputs. ``views`` are values that alias others. ``late``
    labels are checked by torch itself. ``by_lines``: the second order has no closed form, so
    autograd differentiates the lines of the ``differentiated`` function, in plain torch.
    """

    def __init__(
        self,
        name: str,
        notation: str,
        *,
        outputs: str = "",
        views: str = "",
        late: str = "",
        by_lines: bool = False,
        differentiated: str = "forward",
    ):
        """Long: what is not the rule has a name."""
        Arguments.__init__(self, name, notation)
        Lines.__init__(self)
        self.outputs, self.count = outputs.split(), len(outputs.split()) or 1
        self.views, self.late, self.by_lines = {*views.split()}, {*late.split()}, by_lines
        self.made = {*self.fills} | self.flags["ignored"]
        self.constants: list[tuple[int, str]] = []
        self.differentiated = differentiated
        self.transformed, self.plain, self.shorter = None, None, None
        self.narrow = None  # whether kernels compute with arguments in 16 bits as they are

    # What a module declares

    def forward(self, function: Callable) -> Callable:
        super().forward(function)
        self.inputs = parameters(function)
        self.outputs = [*fields(function)._fields[: self.count]]
        self.output = self.outputs[0]
        self.asked = Asked(self, types(function), self.inputs)
        constant = self.flags["constant"]
        self.constants = [(i, name) for i, name in enumerate(self.inputs) if name in constant]
        self.labels = [label for label in self.asked.labels if label[1] in self.late]
        self.asked.labels = [label for label in self.asked.labels if label[1] not in self.late]

        def called(arguments, known):
            try:
                return self.rule.forward(*arguments)
            except (IndexError, RuntimeError):
                self.explain(arguments, known)
                raise

        return self._public(function, called, {*self.outputs}, self.asked)

    def backward(self, function: Callable) -> Callable:
        super().backward(function)
        result = fields(function)
        self.gradients = result._fields
        asked = Asked(self, types(function), self.inputs)
        asked.optional = parameters(function)[: self.count] if self.count > 1 else ()

        def called(arguments, known):
            found = self.rule.backward(*arguments, self.rule.every)
            return found if self.count == 1 else result(*found)

        return self._public(function, called, {*self.gradients}, asked)

    def checked(self, function: Callable) -> Callable:
        """A function of the inputs, in plain torch."""
        return self._public(function, lambda arguments, known: function(*arguments))

    def jvp(self) -> Callable:
        """The tangents of the outputs as a function: ``behind``, with only the vectors."""
        vectors, kept = self._behind()
        saved, count = self._saved(), self.count
        upstreams, kept = kept[:count], kept[count:]
        needs = namedtuple("Needs", [*upstreams, *saved])
        needs = needs(*[True] * count, *[False] * len(saved))
        tangents = namedtuple("Tangents", [f"v_{name}" for name in self.outputs])

        def called(arguments, known):
            given, rest = arguments[: len(vectors)], arguments[len(vectors) :]
            found = self.rule.behind(*given, *[None] * count, *rest, needs)
            return tangents(*found[:count]) if count > 1 else found[0]

        of = " and ".join(self.outputs)
        words = f"The tangent of {of}, from those of the inputs and the saved values."
        result = tangents if count > 1 else "Tensor"
        return self._made("jvp", [*vectors, *kept], result, words, called)

    def double_backward(self, result: type) -> Callable:
        """The backward of the backward as a function: ``behind``, then ``pullback``."""
        vectors, kept = self._behind()
        rounded = {*result._fields}

        def called(arguments, known):
            rule, rest = self.rule, arguments[len(vectors) + self.count :]
            found = rule.behind(*arguments, rule.every_behind)
            tangents, found = found[: self.count], found[self.count :]
            found = dict(zip(self._saved(), found, strict=True))
            back, gradients = [found.get(name) for name in rule.outputs], [None] * len(rounded)
            comes = any(value is not None for value in back)
            if comes and rule.pullback is not None:
                gradients = rule.pullback(*back, *rest, rule.every)
            elif comes:
                gradients = rule.backward(back[0], *rest, rule.every)
            own = [found.get(name[1:]) for name in self.gradients]
            sums = [
                b if a is None else a if b is None else a + b
                for a, b in zip(gradients, own, strict=False)
            ]
            return result(*tangents, *sums)

        arriving = zip(kept, self.outputs, strict=False)
        arriving = ", ".join([f"{g} (d{output})" for g, output in arriving])
        words = f"The gradients with respect to {arriving} and the inputs, of the"
        words += " sum of each gradient times its v."
        return self._made("double_backward", [*vectors, *kept], result, words, called, rounded)

    def special(self, holds: Callable[..., bool]) -> Lines:
        """A shorter closed form, used for arguments that pass the test."""
        self.takes_plain, self.shorter = holds, Lines()
        return self.shorter

    def complete(self) -> None:
        """Called last, after all declarations."""
        lines = f"{self.name}_{self.differentiated}"
        self.lines = inspect.unwrap(self.functions["backward"]).__globals__[lines]
        self.title = fields(self.functions["backward"]).__name__.removesuffix("Gradients")
        self.refusal = (
            f"{self.name}: double backward is not supported here; {lines}(...).{self.output} is the"
            " same in plain torch, which autograd differentiates to any order"
        )
        names = [name[1:] for name in self.gradients]
        self.optional = self.fills.keys() & {*names}
        own = [self, self.shorter] if self.shorter else [self]
        used = {n for each in own for f in each.functions.values() for n in parameters(f)}
        self.numbers = {name for name in used if not self.axes_of(name)}
        self.rule = self.function = Rule(self, self, names)
        self.transformed = self.rule.transformed
        if self.shorter is not None:
            inputs = parameters(self.shorter.functions["forward"])
            self.plain = Rule(self, self.shorter, [n for n in names if n in inputs])
            self.less = picked(self.rule.inputs, inputs)
            self.function = self  # which chooses

    def _behind(self) -> tuple[list[str], list[str]]:
        """The vectors of ``behind``, then the upstream gradients and all saved values."""
        count = len(parameters(self.functions["backward"])) - 1
        *names, _ = parameters(self.functions["behind"])
        return names[:-count], names[-count:]

    def _saved(self) -> list[str]:
        kept = parameters(self.functions["backward"])[self.count : -1]
        return [name for name in kept if self.axes_of(name)]

    def _made(self, kind, names, result, words, called, rounded=None) -> Callable:
        numbers = types(self.functions["forward"]) | types(self.functions["backward"])
        own = inspect.Parameter("of", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation="Tensor")
        shown = [
            own.replace(name=name)
            if self.axes_of(name)
            else numbers[name].replace(
                default=numbers[name].default if name == "reduction" else own.empty
            )
            for name in names
        ]

        def function():
            pass

        function.__name__ = function.__qualname__ = f"{self.name}_{kind}"
        function.__module__ = inspect.unwrap(self.functions["backward"]).__module__
        function.__doc__ = words
        function.__signature__ = inspect.Signature(shown, return_annotation=result)
        return self._public(function, called, rounded or {"v"})

    def _public(self, function, called, rounded=frozenset(), asked=None) -> Callable:
        """The public function: it checks its arguments and rounds its results."""
        signature = inspect.signature(function)
        shown = types(function)
        asked = asked or Asked(self, shown, self.inputs)
        count, result = len(shown), fields(function)
        names = getattr(result, "_fields", None)
        whole = names is not None and self.several.intersection(names)
        signature = inspect.Signature(
            [*shown.values()], return_annotation=signature.return_annotation
        )

        @functools.wraps(function)
        def public(*args, **kwargs):
            if kwargs or len(args) != count:
                args = signature.bind(*args, **kwargs)
                args.apply_defaults()
                args = args.args
            dtype, known, several, arguments = asked.prepared(args)
            asked.in_range(arguments, known)
            word = known.get("reduction", "")
            found = called(arguments, known)
            merged = any(len(sizes) != 1 for sizes in several.values())
            if not (merged or whole or dtype in HALF):
                return found
            if names is None:
                return self.whole(self.output, found, several, word).to(dtype)
            own = [self.whole(*pair, several, word) for pair in zip(names, found, strict=True)]
            pairs = zip(names, own, strict=True)
            return result(*[t.to(dtype) if n in rounded and t is not None else t for n, t in pairs])

        public.__signature__ = signature
        return public

    def whole(self, name: str, value, several: Mapping, word: str):
        """A result with several dimensions restored where they were flattened."""
        if name in several:
            return tuple(several[name])
        for place, axis in enumerate(self.along(name, word) or ()):
            if axis[0] == "*" and isinstance(value, Tensor):
                sizes = several[axis[1:].removesuffix("=1")]
                return restored(value, place, [1] * len(sizes) if axis[-2:] == "=1" else sizes)
        return value

    # What is called

    def explain(self, arguments: Sequence, known: Mapping) -> None:
        """IndexError if it was a label that torch refused."""
        for place, name, bounds in self.labels:
            self.in_range(name, arguments[place], *[known[axis] for axis in bounds])

    def __call__(self, *given):
        """The output, differentiable; a tuple of several."""
        for place, name in self.constants:
            self.without_gradient(name, given[place])
        if in_plain_torch() or (self.by_lines and transforms_active()):
            found, dtype = self.lines(*given), self.asked.dtype_of(given)
            return self.returned([getattr(found, name).to(dtype) for name in self.outputs])
        narrow = self.narrow is not None and self.narrow(given)
        dtype, known, several, arguments = self.asked.prepared(given, narrow)
        if self.asked.labels:
            self.asked.in_range(arguments, known)
        try:
            outputs = self._applied(arguments)
        except (IndexError, RuntimeError):
            self.explain(arguments, known)
            raise
        if several:
            word, pairs = known.get("reduction", ""), zip(self.outputs, outputs, strict=False)
            outputs = [self.whole(name, output, several, word) for name, output in pairs]
        if self.count == 1:
            output = outputs[0]
            return output if output.dtype == dtype else output.to(dtype)
        return tuple([output.to(dtype) for output in outputs[: self.count]])

    def returned(self, outputs: Sequence[Tensor]):
        """The output, or a tuple of several."""
        return tuple(outputs) if self.count > 1 else outputs[0]

    def _applied(self, arguments) -> Sequence[Tensor]:
        """The outputs, and what may stand behind them."""
        if self.transformed is not None and transforms_active():
            return self.transformed.apply(*arguments)
        if not is_compiling():
            return self.function.apply(*arguments)
        outputs = self.function.traced(*arguments)
        if is_exporting():
            return outputs
        return [torch.ops.gradform.once(output, self.refusal) for output in outputs]

    def apply(self, *arguments) -> tuple:
        rule, arguments = self.chosen(arguments)
        return rule.apply(*arguments)

    def traced(self, *arguments) -> tuple:
        """The same under torch.compile."""
        rule, arguments = self.chosen(arguments)
        return rule.traced(*arguments)

    def chosen(self, arguments) -> tuple[Rule, Sequence]:
        """The shorter rule with its arguments, if it applies."""
        if self.plain is not None and self.takes_plain(*arguments):
            return self.plain, self.less(arguments)
        return self.rule, arguments


class Rule:
    """The lines of a closed form, and the functions of autograd's that call them.

    ``forward(*inputs)`` returns the outputs, and what ``backward(*upstreams, *saved, *numbers,
    needs)`` takes; ``behind(*vectors, *upstreams, *saved, *numbers, needs)`` what comes back
    through the gradients, times vectors, to their own arguments; ``pullback`` what comes back to
    the inputs from the outputs and what was saved. ``needs`` says by name what is asked for.
    """

    def __init__(self, pair: Pair, lines: Lines, gradients: Sequence[str]):
        self.pair, self.gradients, self.views = pair, gradients, pair.views
        kinds = ("forward", "backward", "behind", "pullback")
        self.forward, self.backward, *second = map(lines.functions.get, kinds)
        self.inputs, names = parameters(self.forward), parameters(self.backward)
        count = pair.count
        outputs, kept = [name[1:] for name in names[:count]], names[count:-1]
        self.saved = [name for name in kept if name not in pair.numbers]
        self.numbers = [name for name in kept if name in pair.numbers]
        self.behind, self.pullback = map(self.filling, second)
        self.results = [*outputs, *(name for name in kept if name not in outputs)]
        self.outputs = self.results[:count]  # as autograd sees them
        if self.pullback is not None:
            self.outputs += [n[2:] for n in parameters(self.pullback)[count : -len(kept) - 1]]
        if count > 1:
            self._of_several_outputs(lines, outputs)
        self.needs = self.needs_behind = namedtuple("Needs", self.inputs)
        self.every = self.needs(*[True] * len(self.inputs))
        self.usual = tuple([name in gradients for name in self.inputs])
        if self.behind is not None:
            upstreams = parameters(self.behind)[-len(kept) - 1 - count : -len(kept) - 1]
            self.needs_behind = namedtuple("Needs", (*upstreams, *self.saved))
            self.every_behind = self.needs_behind(*[True] * (count + len(self.saved)))
        self.arranged = picked(gradients, self.inputs)
        self.some_optional = bool(pair.optional.intersection(self.inputs))
        self.paired, self.transformed = paired(self), None
        if self.behind is not None and not pair.by_lines:
            self.transformed = transformed(self)
        # What torch.autograd.Function.apply does besides is for transforms alone, and takes time.
        self.fast = super(Function, self.paired).apply
        backward = lambda *arguments: self.backward(*arguments)  # noqa: E731, kernels replace it
        self.gradient = again_function(
            self, "Gradient", backward, self.needs, self.behind_gradients
        )
        self.again = {}
        if lines.again:
            third = [function for function, _ in lines.again.values()]
            for kind, needs in (("behind", self.needs_behind), ("pullback", self.needs)):
                own = getattr(self, kind), needs, self.third(*lines.again.get(kind, ()))
                self.again[kind] = again_function(self, kind.title(), *own, *third)

    def _of_several_outputs(self, lines: Lines, outputs: Sequence[str]) -> None:
        """Of these some may have no gradient, and be other values by new names."""
        self.of_one = [lines.of_one[name] for name in outputs]
        self.of_all, self.backward = self.filling(self.backward), self.of_several
        marks = [name in self.views for name in outputs]
        self.views = self.views.difference(outputs)
        if any(marks):
            self.forward = viewed(self.forward, marks)

    def apply(self, *arguments) -> tuple:
        return self.fast(*unwrap_dead_wrappers(arguments))

    def traced(self, *arguments) -> tuple:
        """Dynamo mistakes the first of two arguments for the context where none has a gradient."""
        if needs_gradient(arguments):
            return self.paired.apply(*arguments)
        return tuple(self.forward(*arguments)[: self.pair.count])

    def of_several(self, *arguments) -> tuple:
        """The backward of several outputs: of one alone, where no other one has a gradient."""
        upstreams, rest = arguments[: self.pair.count], arguments[self.pair.count :]
        given = [place for place, upstream in enumerate(upstreams) if upstream is not None]
        if len(given) == 1:
            return self.of_one[given[0]](upstreams[given[0]], *rest)
        return self.of_all(*arguments)

    def back(self, ctx, *gradients) -> tuple:
        """The gradients of the inputs from the cotangents of the outputs and saved values."""
        needs, upstreams = ctx.needs_input_grad, gradients[: self.pair.count]
        if self.pair.by_lines:
            found = self.by_lines(ctx, upstreams)
        elif some(gradients[self.pair.count :]):
            found = self.pulled_back(ctx, gradients)
        elif not some(upstreams):
            return (None,) * len(needs)
        elif torch.is_grad_enabled() and not in_plain_torch(*present(upstreams)):
            if self.behind is None:
                raise NotImplementedError(self.pair.refusal)
            tensors = widened((*upstreams, *ctx.saved_tensors))
            found = applied(self.gradient, needs, ctx.numbers, *tensors)
        else:
            asked = self.every if needs == self.usual else self.needs(*needs)
            found = self.backward(*upstreams, *ctx.saved_tensors, *ctx.numbers, asked)
        if self.some_optional:  # one that was left out has none
            pairs = zip(self.arranged(found), needs, strict=True)
            return tuple([g if need else None for g, need in pairs])
        return self.arranged(found)

    def pulled_back(self, ctx, gradients):
        tensors, needs = widened((*gradients, *ctx.saved_tensors)), ctx.needs_input_grad
        again = self.again and torch.is_grad_enabled()
        if again and not in_plain_torch(*present(gradients)):
            return applied(self.again["pullback"], needs, ctx.numbers, *tensors)
        return self.pullback(*tensors, *ctx.numbers, self.needs(*needs))

    def behind_gradients(self, vectors, tensors, numbers, needs):
        """The backward of the backward."""
        plain = in_plain_torch(*present(tensors[: self.pair.count]))
        if self.again and torch.is_grad_enabled() and not plain:
            return applied(self.again["behind"], needs, numbers, *vectors, *tensors)
        found = self.behind(*vectors, *tensors, *numbers, self.needs_behind(*needs))
        if self.pair.count == 1:
            return found
        return [g if t is not None else None for g, t in zip(found, tensors, strict=True)]

    def filling(self, function: Callable | None) -> Callable | None:
        """A function of the second order, with 0 for vectors that are None."""
        if function is None:
            return None
        pair, names = self.pair, parameters(function)
        axes = [pair.axes_of(name) for name in names]
        places = [i for i, own in enumerate(axes) if own and names[i] not in self.saved]
        number = names.index("reduction") if pair.words else None

        @functools.wraps(function)
        def full(*arguments):
            left_out = [place for place in places if arguments[place] is None]
            if not left_out:
                return function(*arguments)
            word, known, like = "" if number is None else arguments[number], {"1": 1}, None
            own = [each.get(word, each.get("")) for each in axes]
            for name, along, value in zip(names, own, arguments, strict=True):
                if isinstance(value, Tensor) and along is not None:
                    known.update(zip(along, value.shape, strict=True))
                    like = value if value.is_floating_point() else like
                elif name in pair.lengths:
                    known[name] = known[f"*{name}"] = value
            known, arguments = pair.with_fixed(known), [*arguments]
            for place in left_out:
                if own[place] is None:  # this reduction has no such value
                    continue
                shape = [1 if axis[-2:] == "=1" else known[axis] for axis in own[place]]
                arguments[place] = like.new_zeros(()).expand(shape)
            return function(*arguments)

        return full

    def third(self, function: Callable | None = None, places: Sequence[int] = ()):
        """What comes back through a function of the second order: ``function`` takes the vectors at
        these places.
        """
        if function is None:
            return None
        asked = namedtuple("Needs", parameters(function)[len(places) : -len(self.numbers) - 1])
        function = self.filling(function)

        def through(vectors, tensors, numbers, needs):
            vectors = [vectors[place] for place in places]
            found = function(*vectors, *tensors, *numbers, asked(*needs))
            return [g if t is not None else None for g, t in zip(found, tensors, strict=True)]

        return through

    def by_lines(self, ctx, upstreams):
        """The gradients; autograd differentiates them through the plain lines."""
        if not some(upstreams):
            return (None,) * len(self.gradients)
        known, count = widened(ctx.saved_tensors), len(self.saved)  # a checkpoint gives them once
        saved, tensors = known[:count], known[count:]
        needs, graph = self.needs(*ctx.needs_input_grad), torch.is_grad_enabled()
        if graph and (in_plain_torch(*present(upstreams)) or transforms_active()):
            return self.line_by_line(needs, ctx.others, *upstreams, *tensors)
        with torch.no_grad():
            gradients = self.backward(*upstreams, *saved, *ctx.numbers, needs)
        if not graph:
            return gradients
        return LineByLine.apply(self, gradients, (needs, ctx.others), *upstreams, *tensors)

    def line_by_line(self, needs, others, *tensors) -> list:
        """The gradients of the inputs by autograd, from the upstream ones and what it needs."""
        count = self.pair.count
        upstreams, numbers, tensors = tensors[:count], iter(others), iter(tensors[count:])
        given = [next(numbers if n in self.pair.numbers else tensors) for n in self.inputs]
        given = [a.view_as(a) if need else a for a, need in zip(given, needs, strict=True)]
        found = uncast(self.pair.lines)(**dict(zip(self.inputs, given, strict=True)))
        outputs = [getattr(found, name) for name in self.results[:count]]
        found = differentiated(outputs, upstreams, given, needs, True)
        return [g for g, name in zip(found, self.inputs, strict=True) if name in self.gradients]


def paired(rule: Rule) -> type[Function]:
    """The rule as torch.autograd sees it. Outputs are the values too that are saved: they have a
    gradient where the backward is differentiated.
    """
    pair, count = rule.pair, len(rule.outputs)
    handed = picked(rule.results, rule.outputs, rule.views)
    saved = picked(rule.results, rule.saved)
    numbers = picked(rule.results, rule.numbers)
    tensors = [i for i, name in enumerate(rule.inputs) if name not in pair.numbers]
    others = [i for i, name in enumerate(rule.inputs) if name in pair.numbers]
    lines = rule.backward, rule.pullback, pair.lines if pair.by_lines else None
    back = for_batches(rule.back, *lines)

    class Paired(Function):
        @staticmethod
        def forward(ctx, *arguments):
            ctx.set_materialize_grads(False)
            result = rule.forward(*arguments)
            if pair.by_lines:
                ctx.save_for_backward(*saved(result), *[arguments[i] for i in tensors])
                ctx.others = [arguments[i] for i in others]
            else:
                ctx.save_for_backward(*saved(result))
            ctx.numbers = numbers(result)
            if count == pair.count or is_compiling():  # under which nothing is differentiated again
                return tuple(result[: pair.count])
            return handed(result)

        @staticmethod
        def backward(ctx, *gradients):
            return back(ctx, *gradients[:count])

    return named(Paired, f"{pair.title}Function")


def transformed(rule: Rule) -> type[Function]:
    """The rule as torch.func sees it, which sets the context up apart: all that is saved is what
    went in or came out.
    """
    own = rule.pair.made.intersection(rule.inputs)  # such as filled in, or split
    more = [n for n in rule.results if n not in rule.outputs]
    more = [n for n in more if n in own or n not in rule.inputs]
    returned = picked(rule.results, [*rule.outputs, *more], rule.views | own)
    known = ["" if name in own else name for name in rule.inputs] + [*rule.outputs, *more]
    saved, numbers = picked(known, rule.saved), picked(known, rule.numbers)
    optional = rule.pair.optional & own & {*rule.saved}
    given = [i for i, name in enumerate(rule.inputs) if name in optional]

    class Transformed(Function):
        generate_vmap_rule = True
        backward = staticmethod(rule.paired.backward)

        @staticmethod
        def forward(*arguments):
            return returned(rule.forward(*arguments))

        @staticmethod
        def setup_context(ctx, inputs, outputs):
            ctx.set_materialize_grads(False)
            found = [*saved((*inputs, *outputs))]
            for i in given:
                if inputs[i] is not None:
                    found[rule.saved.index(rule.inputs[i])] = inputs[i]
            ctx.save_for_backward(*found)
            ctx.numbers = numbers((*inputs, *outputs))

    return named(Transformed, f"{rule.pair.title}Transformed")


def again_function(rule: Rule, kind: str, function, needs_of, through, *lines) -> type[Function]:
    """A ``function`` as it is where it is differentiated again; ``through`` is what comes back."""

    class Again(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(needs, numbers, *tensors):
            gradients = function(*tensors, *numbers, needs_of(*needs))
            return tuple([g if g is None else g.view_as(g) for g in gradients])  # each of its own

        @staticmethod
        def setup_context(ctx, inputs, outputs):
            ctx.set_materialize_grads(False)
            _, ctx.numbers, *tensors = inputs
            ctx.save_for_backward(*tensors)

        @staticmethod
        def backward(ctx, *vectors):
            return back(ctx, *vectors)

    def come_back(ctx, *vectors):
        if through is None:
            raise NotImplementedError(rule.pair.refusal)
        needs = ctx.needs_input_grad[2:]
        return (None, None, *through(vectors, ctx.saved_tensors, ctx.numbers, needs))

    back = for_batches(come_back, rule.behind, rule.pullback, *lines)

    return named(Again, f"{rule.pair.title}{kind}")


class LineByLine(Function):
    """Gradients that a closed form gave, and theirs by autograd through plain lines."""

    @staticmethod
    def forward(ctx, rule, gradients, known, *tensors):
        ctx.set_materialize_grads(False)
        ctx.rule, ctx.known = rule, known
        ctx.save_for_backward(*tensors)
        return tuple([g if g is None else g.view_as(g) for g in gradients])  # each of its own

    @staticmethod
    def backward(ctx, *vectors):
        needs, graph = ctx.needs_input_grad[3:], torch.is_grad_enabled()
        with torch.enable_grad():
            pairs = zip(ctx.saved_tensors, needs, strict=True)
            own = [t.view_as(t) if need else t for t, need in pairs]
            gradients = ctx.rule.line_by_line(*ctx.known, *own)
        return None, None, None, *differentiated(gradients, vectors, own, needs, graph)


def named(function: type[Function], name: str) -> type[Function]:
    """With the name under which profiles and errors show it."""
    for kind, own in ((function, name), (function._backward_cls, f"{name}Backward")):
        kind.__name__ = kind.__qualname__ = own
    return function


def needs_gradient(arguments: Sequence) -> bool:
    """Whether autograd records what is computed of these."""
    tensors = [a for a in arguments if isinstance(a, Tensor)]
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


def some(values: Sequence) -> bool:
    """Whether any is not None; a tensor is compared with nothing, which takes long."""
    for value in values:  # noqa: SIM110, a generator takes longer
        if value is not None:
            return True
    return False


def viewed(forward: Callable, marks: Sequence[bool]) -> Callable:
    """The forward with views of the outputs that are marked: other values by new names."""

    @functools.wraps(forward)
    def called(*arguments):
        result = forward(*arguments)
        found = [*result]
        for place, mark in enumerate(marks):
            if mark:
                found[place] = found[place].view_as(found[place])
        return getattr(result, "_make", tuple)(found)

    return called


def present(values: Sequence) -> list:
    """Those that are not None."""
    return [value for value in values if value is not None]


def picked(names: Sequence[str], wanted: Sequence[str], views=()) -> Callable[[Sequence], tuple]:
    """What takes the ``wanted`` ones out of what has these names: None for one that is not there,
    and ``views`` of some.
    """
    places = [names.index(name) if name in names else None for name in wanted]
    viewed = [name in views for name in wanted]
    if None in places or any(viewed):

        def pick(values):
            found = [None if place is None else values[place] for place in places]
            pairs = zip(found, viewed, strict=True)
            return tuple([value.view_as(value) if view else value for value, view in pairs])

        return pick
    if places == [*range(len(places))]:
        return lambda values: tuple(values[: len(places)])
    if len(places) == 2:
        first, second = places
        return lambda values: (values[first], values[second])
    return lambda values: tuple([values[place] for place in places])


def parameters(function: Callable) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def types(function: Callable) -> dict[str, inspect.Parameter]:
    """The annotated parameters."""
    own = inspect.signature(function).parameters
    return {name: p for name, p in own.items() if p.annotation is not p.empty}


def fields(function: Callable) -> type:
    """The named tuple that it returns."""
    return inspect.signature(function, eval_str=True).return_annotation


class Once(Function):
    """The output under torch.compile, which runs a backward as if none could be differentiated."""

    @staticmethod
    def forward(ctx, output, refusal):
        ctx.refusal = refusal
        return output.view_as(output)

    @staticmethod
    def backward(ctx, upstream):
        if torch.is_grad_enabled():
            raise NotImplementedError(
                f"{ctx.refusal}; torch.compile does not support create_graph=True"
            )
        return upstream, None


if not hasattr(torch.ops.gradform, "once"):  # an operation, since Dynamo traces what is none
    torch.library.define("gradform::once", "(Tensor(a) output, str refusal) -> Tensor(a)")
    torch.library.impl("gradform::once", "CompositeImplicitAutograd", Once.apply)
