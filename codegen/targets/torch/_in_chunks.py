"""What autograd sees of modules in chunks: this file is read, and no module imports it.

Its gradients are another function in chunks, so that no loop is recorded. What comes back through
the gradients from a vector is, as second derivatives are symmetric, how the gradients move when the
arguments move along the vector: the same loops, in forward mode.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ._chunks import formats
from ._helpers import uncast


class LoopsOfChunks(NamedTuple):
    """Functions with loops, and how to call them. ``output`` returns ``outputs``, then what
    ``gradients`` reads; or ``both`` returns outputs and gradients.
    """

    output: Callable
    both: Callable | None = None
    gradients: Callable | None = None
    outputs: int = 1
    ranks: tuple = ()
    first_order: str = ""  # what has gradients of autograd alone, in words
    chunk: int | None = None
    formats: tuple = ()

    def forward(self, inner):
        """The outputs, and what is kept of them."""
        with uncast(inner[0]):
            return self.output(self.formats, self.chunk, *self.ranks, *inner)

    def backward(self, inner, upstreams, needs, kept=None):
        """The outputs, if they are made again, and the gradients that are needed."""
        given, made = (self.formats, self.chunk, *self.ranks, *inner, *upstreams), ()
        if self.both is None and kept is None:
            found = self.forward(inner)
            made, kept = found[: self.outputs], found[self.outputs :]
        with uncast(inner[0]):
            if self.both is None:
                found = self.gradients(*given, *kept, needs)
            else:
                found = self.both(*given, needs)
                made, found = found[: self.outputs], found[self.outputs :]
        return made, tuple(g for g in found if g is not None)


def in_chunks(loops: LoopsOfChunks, chunk: int | None, *inner):
    """The outputs, however torch asks for them."""
    floats = (t for t in inner if isinstance(t, Tensor) and t.is_floating_point())
    loops = loops._replace(chunk=chunk, formats=formats(*floats))
    recorded = torch.is_grad_enabled()
    needs = tuple(recorded and isinstance(t, Tensor) and t.requires_grad for t in inner)
    is_moved = torch.autograd.forward_ad._current_level >= 0
    is_transformed = torch._C._are_functorch_transforms_active()
    if loops.first_order and (is_moved or is_transformed):
        raise NotImplementedError(f"{loops.first_order} have neither forward mode nor torch.func")
    if torch.compiler.is_compiling():
        by_lines = is_moved or not any(needs)
        inner = in_one_batch(inner) if by_lines and is_transformed else inner
        if any(isinstance(t, Tensor) and t.requires_grad for t in inner) and not any(needs):
            raise NotImplementedError(
                "torch.func.grad is compiled into lines, which chunks overwrite: compile a function"
                " that calls backward, or torch.func.grad of it without fullgraph"
            )
    else:
        by_lines = is_moved and not is_transformed
    if by_lines:
        found = loops.forward(inner)
        if any(needs) and not torch.compiler.is_compiling():
            found = without_backward(found)
    elif is_moved:
        found = ForwardMode.apply(loops, (False,) * len(inner), *inner)
    else:
        found = InChunks.apply(loops, needs, *inner)
    return found[0] if loops.outputs == 1 else tuple(found[: loops.outputs])


def without_backward(found):
    """What lines computed that write over what autograd records."""

    def refused(_):
        raise NotImplementedError(
            "no backward in a level of torch.autograd.forward_ad: take torch.func.jvp of"
            " torch.func.grad"
        )

    for t in found:
        t.register_hook(refused)
    return found


def in_one_batch(inner):
    """With all floating-point tensors in the batch of vmap that any tensor is in: lines add to them
    in place.
    """
    none = sum(t.reshape(-1)[:0].sum() for t in inner if isinstance(t, Tensor))
    return [
        t + none.to(t.dtype) if isinstance(t, Tensor) and t.is_floating_point() else t
        for t in inner
    ]


class OneByOne(torch.autograd.Function):
    """A Function of loops, flags and tensors, which vmap calls for each entry of its batch."""

    @classmethod
    def vmap(cls, info, in_dims, loops, flags, *given):
        dims, rows = in_dims[2:], []
        for i in range(info.batch_size):
            own = (t if d is None else t.select(d, i) for t, d in zip(given, dims, strict=True))
            rows.append(cls.apply(loops, flags, *own))
        found = tuple(torch.stack(each) for each in zip(*rows, strict=True))
        return found, (0,) * len(found)

    @staticmethod
    def hold(ctx, inputs, *more):
        """Save the inputs, for both modes, and more tensors."""
        ctx.loops, ctx.flags, *given = inputs
        ctx.numbers = [... if isinstance(t, Tensor) else t for t in given]
        ctx.set_materialize_grads(False)
        tensors = [t for t in given if isinstance(t, Tensor)]
        ctx.save_for_backward(*tensors, *more)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def setup_context(ctx, inputs, output):
        OneByOne.hold(ctx, inputs)

    @staticmethod
    def held(ctx):
        """The inputs, then what else was saved."""
        saved = list(ctx.saved_tensors)
        return [saved.pop(0) if t is ... else t for t in ctx.numbers], saved


class InChunks(OneByOne):
    """The outputs. A gradient for an upstream gradient of 1 is made with them, and handed out once;
    in float16 it is not: an upstream gradient scales what would be too small.
    """

    @staticmethod
    def forward(loops, needs, *inner):
        if not any(needs):
            return loops.forward(inner)[: loops.outputs]
        if loops.both is None or loops.formats[2] == torch.float16:
            found = loops.forward(inner)  # an output may be kept, too
            return *found[: loops.outputs], *(t.detach() for t in found[loops.outputs :])
        made, found = loops.backward(inner, [torch.ones((), device=inner[0].device)], needs)
        return *made, *found

    @staticmethod
    def setup_context(ctx, inputs, output):
        loops, needs = inputs[:2]
        rest = output[loops.outputs :]
        ctx.mark_non_differentiable(*rest)
        ctx.shapes = [(t.shape, t.dtype) for t in output[: loops.outputs]]
        ctx.made = dict(zip(true(needs), rest, strict=False))
        OneByOne.hold(ctx, inputs, *(rest if loops.both is None else ()))

    @staticmethod
    def backward(ctx, *upstreams):
        loops, needs = ctx.loops, ctx.needs_input_grad[2:]
        inner, known = OneByOne.held(ctx)
        upstreams = upstreams[: loops.outputs]
        if all(t is None for t in upstreams):
            return (None,) * (2 + len(inner))
        upstreams = [
            inner[0].new_zeros(shape, dtype=dtype) if t is None else t
            for t, (shape, dtype) in zip(upstreams, ctx.shapes, strict=True)
        ]
        if loops.both is not None:
            there = all(i in ctx.made for i in true(needs))
            known = [ctx.made[i] for i in true(needs)] if there else None
            ctx.made = {}
        elif not any(ctx.flags):
            known = None
        if torch.is_grad_enabled() and loops.first_order:
            raise NotImplementedError(f"no second derivatives in {loops.first_order}")
        if torch.is_grad_enabled():
            flags = needs, known is not None
            found = Gradients.apply(loops, flags, *inner, *upstreams, *(known or ()))
        elif loops.both is None or known is None:
            found = loops.backward(inner, upstreams, needs, known)[1]
        else:
            # An expanded gradient has one place in memory for several entries.
            by = upstreams[0]
            found = [g.mul_(by) if g.is_contiguous() else g * by for g in known]
        return None, None, *placed(found, needs)


class ForwardMode(InChunks):
    """The outputs with their tangents; whatever a backward reads has tangents too, so it is made
    again.
    """

    @staticmethod
    def jvp(ctx, *tangents):
        inner, _ = OneByOne.held(ctx)
        return Tangents.apply(ctx.loops, (False,) * len(inner), *inner, *tangents[2:])


class Gradients(OneByOne):
    """The gradients that are needed, as a function of arguments and upstream gradients; with what
    the forward made of them, if it is known.
    """

    @staticmethod
    def forward(loops, flags, *given):
        needs, is_known = flags
        inner, upstreams, known = parts(given, len(needs), loops.outputs)
        if is_known and loops.both is not None:
            return tuple(g * upstreams[0] for g in known)
        found = loops.backward(inner, upstreams, needs, known if is_known else None)[1]
        return tuple(g.view_as(g) for g in found)  # one may be an upstream gradient itself

    @staticmethod
    def setup_context(ctx, inputs, output):
        loops, (needs, _) = inputs[:2]
        OneByOne.hold(ctx, inputs[: 2 + len(needs) + loops.outputs])  # without what is known

    @staticmethod
    def backward(ctx, *vectors):
        (needs, _), loops = ctx.flags, ctx.loops
        if all(t is None for t in vectors):
            return (None,) * len(ctx.needs_input_grad)
        given, _ = OneByOne.held(ctx)
        inner, upstreams = given[: len(needs)], given[len(needs) :]
        own = ctx.needs_input_grad[2 : 2 + len(needs)]
        found = Tangents.apply(loops, own, *inner, *placed(vectors, needs), *upstreams)
        made, found = found[: loops.outputs], found[loops.outputs :]
        rest = (None,) * (len(ctx.needs_input_grad) - 2 - len(given))
        return None, None, *placed(found, own), *made, *rest

    @staticmethod
    def jvp(ctx, _, __, *tangents):
        given, _ = OneByOne.held(ctx)
        function = functools.partial(Gradients.forward, ctx.loops, (ctx.flags[0], False))
        return tangents_of(function, given, tangents[: len(given)])


class Tangents(OneByOne):
    """How outputs move when the arguments do, and the gradients that are needed, if any: at the
    same upstream gradients.
    """

    @staticmethod
    def forward(loops, needs, *given):
        inner, vectors, upstreams = parts(given, len(needs), len(needs))

        def both(*own):
            if not any(needs):
                return loops.forward(own)[: loops.outputs]
            made, found = loops.backward(own, upstreams, needs)
            return *made, *found

        return tangents_of(both, inner, vectors)

    @staticmethod
    def backward(ctx, *upstreams):
        if any(ctx.flags):
            raise NotImplementedError(
                f"{ctx.loops.output.__name__}: no third derivatives in chunks"
            )
        loops, count = ctx.loops, len(ctx.flags)
        given, _ = OneByOne.held(ctx)
        inner, vectors, rest = parts(given, count, count)
        own, along = parts(ctx.needs_input_grad[2:], count, count)[:2]
        first, second = (), ()
        if any(own):
            first = Tangents.apply(loops, own, *inner, *vectors, *upstreams)[loops.outputs :]
        if any(along):
            second = Gradients.apply(loops, (along, False), *inner, *upstreams)
        return None, None, *placed(first, own), *placed(second, along), *(None for _ in rest)

    @staticmethod
    def jvp(ctx, _, __, *tangents):
        given, _ = OneByOne.held(ctx)
        function = functools.partial(Tangents.forward, ctx.loops, ctx.flags)
        return tangents_of(function, given, tangents)


def tangents_of(function, given, tangents):
    """How the results of a function move when what it is given does, in forward mode."""
    along = [i for i, t in enumerate(tangents) if t is not None]

    def moved(*own):
        changed = dict(zip(along, own, strict=True))
        return function(*(changed.get(i, t) for i, t in enumerate(given)))

    primals, own = tuple(given[i] for i in along), tuple(tangents[i] for i in along)
    return torch.func.jvp(moved, primals, own)[1]


def parts(given, first, second):
    """The first ones, as many second ones, and the rest."""
    return given[:first], given[first : first + second], given[first + second :]


def true(flags):
    return [i for i, flag in enumerate(flags) if flag]


def placed(found, flags):
    """The found ones where the flags are set, else None."""
    waiting = iter(found)
    return [next(waiting, None) if flag else None for flag in flags]
