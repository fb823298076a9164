"""What all generated modules share: how arguments are looked at, and how torch is met.

This file stands beside the modules that gradform writes, and needs torch alone. It is the only one
that knows torch's private names.

What holds for all functions:

- TypeError for what is no tensor, and for inputs that are not floating point, or not all of one
  dtype; beside a float16 or bfloat16 input those that are repeated along it, such as the gain of a
  norm, may be float32, and the result has its dtype. A tensor without gradient may be of any dtype
  that the one computed in holds. ValueError for shapes that do not fit.
- TypeError where a number is none of Python's or numpy's, such as a tensor.
- float16 and bfloat16 are computed in float32, and rounded once at the end; under torch.autocast
  nothing changes.
- Derivatives of any order: those of which a module prints the closed form, higher ones by autograd
  through its lines, by torch.func as by torch.autograd.
- Under torch.compile NotImplementedError where a gradient is asked for with create_graph=True.

Long: one file is copied beside the modules, and it is read there as one.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections import namedtuple
from collections.abc import Callable, Sequence
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


class Arguments:
    """The arguments of the functions of one module, which is called ``name`` in errors."""

    def __init__(self, name: str):
        self.name = name

    def fits(self, name, tensor, axes, shape, dtype=None, single=False, *, wide=False) -> None:
        """Long: TypeError for what is no tensor of the ``dtype`` (``single``: float32 will do, or
        this beside float32; ``wide``: float32 beside half a format), ValueError for one of another
        ``shape``, of which None and ``...`` are not known.
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
                    f"{self.name}: {name} must have the dimensions {axes}, here ({here}),"
                    f" got the shape {tuple(tensor.shape)}"
                )
        if tensor.dtype != dtype:
            if not (tensor.is_floating_point() or dtype == torch.int64):
                raise TypeError(f"{self.name}: {name} must be floating point, got {tensor.dtype}")
            pair = (tensor.dtype, dtype)
            enough = single and torch.float32 in pair and (pair[0] in HALF or pair[1] in HALF)
            enough = enough or (wide and tensor.dtype == torch.float32 and dtype in HALF)
            if dtype is not None and not enough:
                raise TypeError(
                    f"{self.name}: {name} is of {tensor.dtype}, but computed is in {dtype}:"
                    f" convert one of them, as in {name}.to({dtype})"
                )

    def index(self, name: str, label) -> Tensor:
        """A label of integers as an index; TypeError for any other kind of tensor."""
        self._is_tensor(name, label)
        if label.dtype == torch.bool or label.is_floating_point() or label.is_complex():
            raise TypeError(f"{self.name}: {name} must be of an integer dtype, got {label.dtype}")
        return label.long()

    def in_range(self, name: str, index: Tensor, *lengths: int) -> None:
        """IndexError outside of an axis; not asked are a GPU, which would have to wait, and what
        has no data.
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
                raise IndexError(f"{self.name}: {name} holds {wrong}, outside of 0 .. {last}")

    def split_label(self, name, label, ignored, dtype, *lengths) -> tuple[Tensor, Tensor]:
        """The label as an index, 0 where it is ``ignored``, and 1 where it counts, else 0.

        IndexError where it counts and is outside of the axis.
        """
        kept = label != ignored
        index = torch.where(kept, label, 0)
        self.in_range(name, index, *lengths)
        return index, kept.to(dtype)

    def as_number(self, name: str, tensor, dtype: torch.dtype) -> Tensor:
        """A tensor without gradient in the format that is computed in; TypeError where that does
        not hold what it has.
        """
        computed = torch.float32 if dtype in HALF else dtype
        self._is_tensor(name, tensor)
        if tensor.dtype == computed:
            return tensor
        if tensor.is_complex():
            raise TypeError(f"{self.name}: {name} must be real, got {tensor.dtype}")
        if torch.promote_types(tensor.dtype, computed) != computed:
            raise TypeError(
                f"{self.name}: {name} is of {tensor.dtype}, but computed is in {computed}:"
                f" convert it, as in {name}.to({computed})"
            )
        return tensor.to(computed)

    def without_gradient(self, name: str, tensor) -> None:
        """RuntimeError where a gradient is required that is not derived."""
        if isinstance(tensor, Tensor) and tensor.requires_grad and torch.is_grad_enabled():
            raise RuntimeError(
                f"{self.name}: {name} requires a gradient, and none is derived for it: pass"
                f" {name}.detach()"
            )

    def number(self, name: str, value) -> float:
        """A number as one of Python's; TypeError for what is none."""
        if isinstance(value, Real):
            return float(value)
        raise TypeError(
            f"{self.name}: {name} must be a number, got {type(value).__name__}; it has no gradient,"
            " so a tensor is to be passed as the number that it holds: .item()"
        )

    def whole(self, name: str, value) -> int:
        """A whole number as one of Python's; TypeError for what is none."""
        try:
            return operator.index(value)
        except TypeError:
            kind = type(value).__name__
            raise TypeError(f"{self.name}: {name} must be a whole number, got {kind}") from None

    def one_of(self, name: str, word, *words: str) -> None:
        """ValueError for a word that is none of the ``words``."""
        if word not in words:
            *others, last = map(repr, words)
            raise ValueError(
                f"{self.name}: {name} must be {', '.join(others)} or {last}, got {word!r}"
            )

    def shape(self, name: str, shape) -> tuple[int, ...]:
        """TypeError for what is no shape."""
        if not isinstance(shape, tuple):
            kind = type(shape).__name__
            raise TypeError(f"{self.name}: {name} must be a shape, a tuple of sizes, got {kind}")
        return shape

    def _is_tensor(self, name: str, value) -> None:
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise TypeError(f"{self.name}: {name} must be a tensor, got {kind}")


# Tensors as the lines of a module take them


def single(*tensors: Tensor | None) -> list:
    """The tensors in the format that is computed in."""
    return [t.float() if t is not None and t.dtype in HALF else t for t in tensors]


def spread(tensor, shape):
    """The tensor repeated to a shape without memory, where broadcasting gets it there."""
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
    """The dimensions from ``first`` to ``last`` (counted from the end) as one; new, for none."""
    found = []
    for tensor in tensors:
        if tensor is not None:
            shape = list(tensor.shape)
            shape[first : last + tensor.dim()] = [math.prod(shape[first : last + tensor.dim()])]
            tensor = tensor.reshape(shape)
        found.append(tensor)
    return found


def restored(tensor: Tensor | None, place: int, sizes: Sequence[int]) -> Tensor | None:
    """The dimension at ``place`` as the several that it stands for; None as it is."""
    if len(sizes) == 1 or tensor is None:
        return tensor
    return tensor.reshape((*tensor.shape[:place], *sizes, *tensor.shape[place + 1 :]))


def all_count(label: Tensor, ignored: int, *lengths: int) -> bool:
    """Whether no label is ignored and all are in range; False where a GPU would have to wait, and
    without data.
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


def added_at(tensor: Tensor, along: int, place: int, source: Tensor) -> Tensor:
    """``tensor`` with ``source`` added at one place, in place unless there is a batch."""
    if batched(source):  # there select_scatter is silently wrong
        index = torch.tensor([place], device=tensor.device)
        return tensor.index_add(along, index, source.unsqueeze(along))
    tensor.select(along, place).add_(source)
    return tensor


# What is at work around a call


def batched(tensor: Tensor) -> bool:
    """Whether it may be a batch of tensors, which nothing that is none holds in place."""
    if transforms_active():
        return True
    if is_compiling():
        return False
    return functorch.is_legacy_batchedtensor(tensor)


def in_plain_torch(*tensors: Tensor) -> bool:
    """Whether something is at work that sees through plain torch alone: forward mode, a transform
    under the compiler, or a batch of gradients.
    """
    if forward_ad._current_level >= 0:
        return True
    if not transforms_active():
        return any(functorch.is_legacy_batchedtensor(tensor) for tensor in tensors)
    if is_compiling():
        return True
    seen = (functorch.TransformType.Grad, functorch.TransformType.Vmap)
    return any(i.key() not in seen for i in functorch.get_interpreter_stack())


def applied(function: type[Function], *arguments):
    """``function.apply`` without its look at the signature, which transforms alone need."""
    if transforms_active() or is_compiling():
        return function.apply(*arguments)
    arguments = unwrap_dead_wrappers(arguments)
    return super(Function, function).apply(*arguments)


def differentiated(outputs, vectors, inputs, needs, graph: bool) -> list:
    """What the ``outputs``, times their ``vectors`` and added up, have as gradients, of which
    ``needs`` says that they are asked for; None for the others.
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
    """The function without torch.autocast, which would change the format of matrix products."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        device = next(a.device.type for a in (*args, *kwargs.values()) if isinstance(a, Tensor))
        if device == "meta" or not torch.is_autocast_enabled(device):
            return function(*args, **kwargs)
        with torch.autocast(device, enabled=False):
            return function(*args, **kwargs)

    return called


class TakenApart(torch.overrides.TorchFunctionMode):
    """flatten, unflatten and einsum as the operations that they are made of: torch's vmap of
    batches of gradients (is_grads_batched) has no rule for what is made of others.
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
    """The ``backward``, for batches of gradients too, where the lines that it runs are composed."""
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


class Pair:
    """A function with its gradient in closed form, called as a `torch.autograd.Function` is
    applied: ``functions`` are those of a `Rule`.

    ``lines`` is the same function in plain torch, to be differentiated line by line. Of the
    arguments ``numbers`` are no tensors, ``optional`` have a gradient and may be None, ``made`` are
    not saved as they are; ``views`` are values that are others by a new name. ``plain`` is a test
    of the arguments, and the functions of a shorter rule for where it is true. ``again`` are those
    of the third order, for both rules, each with the places of the vectors that it takes. With
    ``by_lines`` the second order has no closed form, and autograd goes through the lines.
    """

    def __init__(
        self,
        name: str,
        lines: Callable,
        functions: Sequence[Callable],
        *,
        numbers: str = "",
        optional: str = "",
        made: str = "",
        views: str = "",
        plain: tuple[Callable, Sequence[Callable]] | None = None,
        again: Sequence = ((), ()),
        by_lines: bool = False,
    ):
        """Long: all that a module says of its pair, by name and left out where it is usual."""
        self.lines, self.by_lines = lines, by_lines
        self.numbers, self.optional, self.made, self.views = (
            {*names.split()} for names in (numbers, optional, made, views)
        )
        self.title = fields(functions[1]).__name__.removesuffix("Gradients")
        output = parameters(functions[1])[0][1:]
        self.refusal = (
            f"{name}: a gradient of it is differentiated again where that cannot be done;"
            f" {lines.__name__}(...).{output} is the same in plain torch, which autograd"
            " differentiates to any order"
        )
        names = [field[1:] for field in fields(functions[1])._fields]
        self.rule = self.function = Rule(self, functions, names, again[0])
        self.transformed, self.plain = self.rule.transformed, None
        if plain is not None:
            self.takes_plain, functions = plain
            inputs = parameters(functions[0])
            self.plain = Rule(self, functions, [n for n in names if n in inputs], again[1])
            self.less = picked(self.rule.inputs, inputs)
            self.function = self  # which chooses

    def __call__(self, *arguments):
        if self.transformed is not None and transforms_active():
            output = self.transformed.apply(*arguments)[0]
        elif is_compiling():
            rule, arguments = self.chosen(arguments)
            output = rule.paired.apply(*arguments)[0]
        else:
            return self.function.apply(*arguments)[0]
        if is_compiling() and not is_exporting():
            return torch.ops.gradform.once(output, self.refusal)
        return output

    def apply(self, *arguments) -> tuple:
        rule, arguments = self.chosen(arguments)
        return rule.apply(*arguments)

    def chosen(self, arguments) -> tuple[Rule, Sequence]:
        """The shorter rule where it holds, and its arguments."""
        if self.plain is not None and self.takes_plain(*arguments):
            return self.plain, self.less(arguments)
        return self.rule, arguments


class Rule:
    """The lines of a closed form, and the functions of autograd's that call them.

    ``forward(*inputs)`` returns the output, and what ``backward(upstream, *saved, *numbers,
    needs)`` takes; ``behind(*vectors, upstream, *saved, *numbers, needs)`` what comes back through
    the gradients, times vectors, to their own arguments; ``pullback`` what comes back to the inputs
    from the output and what was saved. ``needs`` says by name what is asked for.
    """

    def __init__(self, pair: Pair, functions: Sequence[Callable], gradients, again):
        self.pair, self.gradients = pair, gradients
        self.forward, self.backward, self.behind, self.pullback = (*functions, None, None)[:4]
        self.inputs = parameters(self.forward)
        upstream, *kept, _ = parameters(self.backward)
        self.saved = [name for name in kept if name not in pair.numbers]
        self.numbers = [name for name in kept if name in pair.numbers]
        self.results = [upstream[1:], *(name for name in kept if name != upstream[1:])]
        self.outputs = self.results[:1]  # as autograd sees them
        if self.pullback is not None:
            self.outputs += [n[2:] for n in parameters(self.pullback)[1 : -len(kept) - 1]]
        self.needs = self.needs_behind = namedtuple("Needs", self.inputs)
        self.every = self.needs(*[True] * len(self.inputs))
        self.usual = tuple([name in gradients for name in self.inputs])
        if self.behind is not None:
            upstream = parameters(self.behind)[-len(kept) - 2]
            self.needs_behind = namedtuple("Needs", (upstream, *self.saved))
            self.every_behind = self.needs_behind(*[True] * (1 + len(self.saved)))
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
        if again:
            lines = [functions[0] for functions in again if functions]
            behind = self.behind, self.needs_behind, self.third(*again[0])
            self.again["Behind"] = again_function(self, "Behind", *behind, *lines)
            pullback = self.pullback, self.needs, self.third(*again[-1])
            self.again["Pullback"] = again_function(self, "Pullback", *pullback, *lines)

    def apply(self, *arguments) -> tuple:
        return self.fast(*unwrap_dead_wrappers(arguments))

    def back(self, ctx, upstream, *cotangents) -> tuple:
        """What comes back to the inputs from the output and from what was saved."""
        needs = ctx.needs_input_grad
        if self.pair.by_lines:
            found = self.by_lines(ctx, upstream)
        elif some(cotangents):
            found = self.pulled_back(ctx, (upstream, *cotangents))
        elif upstream is None:
            return (None,) * len(needs)
        elif torch.is_grad_enabled() and not in_plain_torch(upstream):
            if self.behind is None:
                raise NotImplementedError(self.pair.refusal)
            found = applied(self.gradient, needs, ctx.numbers, upstream, *ctx.saved_tensors)
        else:
            asked = self.every if needs == self.usual else self.needs(*needs)
            found = self.backward(upstream, *ctx.saved_tensors, *ctx.numbers, asked)
        if self.some_optional:  # one that was left out has none
            pairs = zip(self.arranged(found), needs, strict=True)
            return tuple([g if need else None for g, need in pairs])
        return self.arranged(found)

    def pulled_back(self, ctx, gradients):
        tensors, needs = (*gradients, *ctx.saved_tensors), ctx.needs_input_grad
        again = self.again and torch.is_grad_enabled()
        if again and not in_plain_torch(*[g for g in gradients if g is not None]):
            return applied(self.again["Pullback"], needs, ctx.numbers, *tensors)
        return self.pullback(*tensors, *ctx.numbers, self.needs(*needs))

    def behind_gradients(self, vectors, tensors, numbers, needs):
        """What comes back through the gradients."""
        if self.again and torch.is_grad_enabled() and not in_plain_torch(tensors[0]):
            return applied(self.again["Behind"], needs, numbers, *vectors, *tensors)
        return self.behind(*vectors, *tensors, *numbers, self.needs_behind(*needs))

    def third(self, function: Callable | None = None, places: Sequence[int] = ()):
        """What comes back through a function of the second order: ``function`` takes the vectors at
        these places.
        """
        if function is None:
            return None
        asked = namedtuple("Needs", parameters(function)[len(places) : -len(self.numbers) - 1])

        def through(vectors, tensors, numbers, needs):
            vectors = [vectors[place] for place in places]
            found = function(*vectors, *tensors, *numbers, asked(*needs))
            return [g if t is not None else None for g, t in zip(found, tensors, strict=True)]

        return through

    def by_lines(self, ctx, upstream):
        """The gradients; autograd takes theirs, through plain lines."""
        if upstream is None:
            return (None,) * len(self.gradients)
        known, count = ctx.saved_tensors, len(self.saved)  # once: a checkpoint gives them once
        saved, tensors = known[:count], known[count:]
        needs, graph = self.needs(*ctx.needs_input_grad), torch.is_grad_enabled()
        if graph and (in_plain_torch(upstream) or transforms_active()):
            return self.line_by_line(needs, ctx.others, upstream, *tensors)
        with torch.no_grad():
            gradients = self.backward(upstream, *saved, *ctx.numbers, needs)
        if not graph:
            return gradients
        return LineByLine.apply(self, gradients, (needs, ctx.others), upstream, *tensors)

    def line_by_line(self, needs, others, upstream, *tensors) -> list:
        """The gradients of the inputs by autograd."""
        numbers, tensors = iter(others), iter(tensors)
        given = [next(numbers if n in self.pair.numbers else tensors) for n in self.inputs]
        given = [a.view_as(a) if need else a for a, need in zip(given, needs, strict=True)]
        found = uncast(self.pair.lines)(**dict(zip(self.inputs, given, strict=True)))
        output = getattr(found, self.results[0])
        found = differentiated([output], [upstream], given, needs, True)
        return [g for g, name in zip(found, self.inputs, strict=True) if name in self.gradients]


def paired(rule: Rule) -> type[Function]:
    """The rule as torch.autograd sees it. Outputs are the values too that are saved: they have a
    gradient where the backward is differentiated.
    """
    pair, count = rule.pair, len(rule.outputs)
    handed = picked(rule.results, rule.outputs, pair.views)
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
            if count == 1 or is_compiling():  # under which nothing is differentiated again
                return tuple(result[:1])
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
    more = [n for n in rule.results[1:] if n not in rule.outputs]
    more = [n for n in more if n in own or n not in rule.inputs]
    returned = picked(rule.results, [*rule.outputs, *more], rule.pair.views | own)
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
    def forward(ctx, rule, gradients, known, upstream, *tensors):
        ctx.set_materialize_grads(False)
        ctx.rule, ctx.known = rule, known
        ctx.save_for_backward(upstream, *tensors)
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


def some(values: Sequence) -> bool:
    """Whether any is not None; a tensor is compared with nothing, which takes long."""
    for value in values:  # noqa: SIM110, a generator takes longer
        if value is not None:
            return True
    return False


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
            raise NotImplementedError(f"{ctx.refusal}; no create_graph under torch.compile")
        return upstream, None


if not hasattr(torch.ops.gradform, "once"):  # an operation, since Dynamo traces what is none
    torch.library.define("gradform::once", "(Tensor(a) output, str refusal) -> Tensor(a)")
    torch.library.impl("gradform::once", "CompositeImplicitAutograd", Once.apply)
