"""The lean module of every function of the gallery: every transform of torch, of every order, and
where a branch is not taken; compiled, for all lengths.
"""

import pytest
import torch
from gallery import WHOLE, Emitted
from torch._dynamo.testing import CompileCounterWithBackend
from transforms import COMPILED, EAGER, of_plain_torch

import codegen.driver.lean
from codegen.called.functions import function
from codegen.targets.torch.edges import FAR, edges_of, on_edge
from codegen.targets.torch.interpret import interpreted
from codegen.targets.torch.several import joined, of_statements
from codegen.targets.torch.taken import taken
from derive.language.notation.definition import NONE, REDUCTION
from derive.language.notation.library import forward_from
from derive.language.notation.reduced import reduced

# The suite takes these, which are derived in a second each: with a scan and labels, several
# outputs, products that torch has no batching rule for, and what is singular beside a choice.
SAMPLE = ("alpha_compositing", "add_rms_norm", "bilinear", "l2_normalize", "entropy")
# Where torch's derivatives of the lines as they are written would be NaN.
HELD = ("clip", "info_nce", "entropy", "js_div", "kl_div", "l2_normalize", "norm", "norm_p")
HELD += ("siglip", "std")
UNROLLED = ("cox",)  # compiled as a whole, but again for most lengths


def sampled(names):
    return [
        name if name in SAMPLE else pytest.param(name, marks=pytest.mark.thorough) for name in names
    ]


everything = pytest.mark.parametrize("name", sampled(f.definition.snake for f in WHOLE))


@pytest.fixture(autouse=True)
def nothing_compiled():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Lean:
    """A function and its statements, of which every entry is returned."""

    def __init__(self, name):
        definition = forward_from(name).definition
        word = NONE if definition.reductions else None
        self.more = {} if word is None else {REDUCTION: word}
        self.emitted = Emitted(reduced(definition, word))
        self.run = getattr(self.emitted.module, name)
        self.definition, self.inputs = self.emitted.definition, self.emitted.inputs
        self.at(self.emitted.arguments(seed=3))
        draw = torch.Generator().manual_seed(5)
        self.vs = [torch.randn(x.shape, generator=draw, dtype=x.dtype) for x in self.xs]

    def at(self, arguments):
        self.arguments, self.xs = arguments, [arguments[name] for name in self.inputs]

    def all_of(self, xs):
        return {**self.arguments, **dict(zip(self.inputs, xs, strict=True))}

    def __call__(self, *xs):
        return joined(self.run(**self.all_of(xs), **self.more))

    def stated(self, by=interpreted):
        def of(*xs):
            found = by(self.definition, self.all_of(xs))
            return of_statements([found[t.name] for t in self.definition.results])

        return of


def assert_alike(found, expected, where_finite=False):
    """Relative to the largest entry; ``where_finite``, where autograd has a number."""
    pair = ([t] if isinstance(t, torch.Tensor) else t for t in (found, expected))
    for one, other in zip(*pair, strict=True):
        assert one.shape == other.shape
        if where_finite:
            one, other = (torch.where(other.isfinite(), t, 0) for t in (one, other))
        if other.numel():
            assert (one - other).abs().max() <= 1e-8 * (1 + other.abs().max())


@everything
def test_every_transform_is_that_of_the_statements(name):
    lean = Lean(name)
    for what, of in EAGER.items():
        expected = of_plain_torch(what)(lean.stated(), lean.xs, lean.vs)
        try:
            assert_alike(of(lean, lean.xs, lean.vs), expected)
        except Exception as error:
            raise AssertionError(f"{what} of {name}") from error


@everything
@pytest.mark.thorough
def test_compiled_it_is_what_it_was(name):
    lean = Lean(name)
    for of in COMPILED.values():
        expected = EAGER["gradient"](lean, lean.xs, lean.vs)
        assert_alike(of(lean, lean.xs, lean.vs), expected)


@everything
@pytest.mark.slow
def test_it_is_compiled_twice_for_all_lengths(name):
    """Once for the first, and once for all others."""
    lean = Lean(name)
    counter = CompileCounterWithBackend("eager")
    compiled = torch.compile(lean.run, backend=counter, fullgraph=True)
    for seed in range(5):
        lean.at(lean.emitted.leaves(seed=seed, lengths=(7 - seed, 3, 5, 2, 6)))
        found, expected = joined(compiled(**lean.arguments, **lean.more)), lean(*lean.xs)
        up, how = torch.rand_like(expected), {"materialize_grads": True}
        assert_alike(
            torch.autograd.grad(found, lean.xs, up, **how),
            torch.autograd.grad(expected, lean.xs, up, **how),
        )
    if name in UNROLLED:
        pytest.xfail(f"{counter.frame_count} graphs: a scan is unrolled for its length")
    assert counter.frame_count <= 2


@pytest.mark.parametrize("name", sampled(HELD))
def test_where_a_branch_is_not_taken_every_order_is_finite(name):
    lean = Lean(name)
    assert "second derivatives may be" not in lean.emitted.module.__doc__
    for edge in edges_of(lean.definition):
        drawn = lean.emitted.arguments(seed=3)
        moved = on_edge(edge, {n: drawn[n] for n in lean.inputs})
        for name, value in moved.items():
            if value.dim():
                value[-1] = drawn[name][-1]  # beside what is ordinary
        lean.at({**drawn, **moved})
        if not lean.stated(taken)(*lean.xs).isfinite().all():
            assert edge is FAR  # where the mathematics has no number, as the logarithm of -10000
            continue
        for what, of in EAGER.items():
            found = of(lean, lean.xs, lean.vs)
            for one in [found] if isinstance(found, torch.Tensor) else found:
                assert one.isfinite().all(), f"{what} {edge}"
        for what in ("double backward", "third order"):
            assert_alike(
                EAGER[what](lean, lean.xs, lean.vs),
                EAGER[what](lean.stated(taken), lean.xs, lean.vs),
                where_finite=True,
            )


def test_what_cannot_be_held_is_said(monkeypatch):
    """Where the lines stay as they are written, the module says what is NaN."""
    monkeypatch.setattr(codegen.driver.lean, "with_arguments_held", lambda program: program)
    source = function(forward_from("l2_normalize")).source
    assert "- second derivatives may be NaN or infinite where an entry is 0." in source
