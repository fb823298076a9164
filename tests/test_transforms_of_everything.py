"""What torch does with a function as a whole, of every function: compiled, exported, checked by
finite differences, computed again from a checkpoint.
"""

from copy import deepcopy

import pytest
import torch
from gallery import EVERYTHING
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.thorough
everything = pytest.mark.parametrize("emitted", EVERYTHING, ids=str)


def alike(got, expected, tolerance=1e-10):
    """Relative to the largest entry."""
    for one, other in zip(got, expected, strict=True):
        assert one.shape == other.shape
        assert (one - other).abs().max() <= tolerance * (1 + other.abs().max())


@pytest.fixture(autouse=True)
def nothing_compiled():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def loss(function, arguments, names, held=()):
    """A number that is not linear in the output, of the tensors called ``names``."""

    def of(*tensors):
        output = function(**{**arguments, **dict(zip(names, tensors, strict=True))})
        return output.square().sum() + output.sum()

    return of


def in_batches(emitted):
    """The arguments with five lengths of the first axis that all inputs allow to vary."""
    for seed in range(5):
        yield emitted.leaves(seed=seed, lengths=(7 - seed, 3, 5, 2, 6))


@everything
def test_compiled_it_is_what_it_was_for_all_lengths_by_two_frames(emitted):
    counter = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(emitted.function, backend=counter, fullgraph=True)
    names = emitted.inputs
    for arguments in in_batches(emitted):
        inputs = [arguments[name] for name in names]
        output, expected = compiled(**arguments), emitted.stated(**arguments)
        alike([output], [expected])
        upstream = torch.rand_like(expected)
        how = {"materialize_grads": True}
        alike(
            torch.autograd.grad(output, inputs, upstream, **how),
            torch.autograd.grad(expected, inputs, upstream, **how),
        )
    assert counter.frame_count <= 2


@everything
def test_compiled_it_needs_nothing_that_has_a_gradient(emitted):
    """Of two arguments Dynamo would take the first for the context of a function of autograd's."""
    optional = {t.name for t, _ in emitted.definition.optional}
    for left_out in (set(), optional):
        arguments = {n: v for n, v in emitted.arguments().items() if n not in left_out}
        compiled = torch.compile(emitted.function, backend="eager", fullgraph=True)
        alike([compiled(**arguments)], [emitted.function(**arguments)])


@everything
def test_transforms_of_it_are_compiled_as_a_whole(emitted):
    arguments, name = emitted.arguments(seed=3), emitted.inputs[0]
    x = arguments[name]
    v = torch.rand(x.shape, generator=torch.Generator().manual_seed(4), dtype=x.dtype)
    ours, plain = (
        loss(function, arguments, [name]) for function in (emitted.function, emitted.stated)
    )
    func = torch.func
    for transform in (
        func.grad,
        func.hessian,
        lambda of: lambda x: func.jvp(of, (x,), (v,))[1],
        lambda of: lambda x: func.jvp(func.grad(of), (x,), (v,))[1],
    ):
        compiled = torch.compile(transform(ours), backend="aot_eager", fullgraph=True)
        alike([compiled(x)], [transform(plain)(x)])


@everything
def test_exported_it_is_what_it_was(emitted):
    class Module(torch.nn.Module):
        def forward(self, arguments):
            return emitted.function(**arguments)

    arguments = emitted.arguments(seed=3)
    exported = torch.export.export(Module(), (arguments,))
    other = emitted.arguments(seed=4)
    alike([exported.module()(other)], [emitted.stated(**other)])


@everything
def test_second_derivatives_are_those_by_finite_differences(emitted):
    arguments, names = emitted.leaves(seed=3), emitted.inputs
    of = loss(emitted.function, arguments, names)
    inputs = tuple(arguments[name] for name in names)
    assert torch.autograd.gradcheck(of, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(of, inputs, fast_mode=True)


@everything
def test_from_a_checkpoint_and_through_hooks_it_is_what_it_was(emitted):
    found = []
    for function in (
        deepcopy(emitted.function),
        lambda **arguments: checkpoint(emitted.function, use_reentrant=False, **arguments),
        emitted.stated,
    ):
        arguments, names = emitted.leaves(seed=3), emitted.inputs
        inputs = [arguments[name] for name in names]
        with torch.autograd.graph.save_on_cpu():
            total = loss(function, arguments, names)(*inputs)
        how = {"create_graph": True, "materialize_grads": True}
        first = torch.autograd.grad(total, inputs, **how)
        second = sum(g.square().sum() for g in first if g.requires_grad)
        how = {"materialize_grads": True}
        again = torch.autograd.grad(second, inputs, **how) if torch.is_tensor(second) else ()
        found.append((*first, *again))
    alike(found[0], found[2])
    alike(found[1], found[2])
