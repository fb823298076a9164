"""Statements and chain of a forward, in a file of their own: equal to autograd of the statements
and to the backward of the lean module, statement by statement.
"""

from types import ModuleType

import pytest
import torch
from forwards import HEAD
from gallery import Emitted
from sympy import exp, log, sqrt
from torch import Tensor

import codegen.driver.chain
from codegen.commands.cli import main
from codegen.driver.chain import chain_module, kept_chain
from codegen.files.loading import loaded
from codegen.targets.lean.chain_check import plain_arguments
from codegen.targets.lean.outside import outside_of
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.plain import PlainFunctions
from codegen.targets.lean.target import lean_program, module_text, whole_program
from derive import Axes, Axis, Forward, Given, Input, Label, OneHot, Outputs, Reduced, Scalar, Sum
from derive.derivation import derive_definition
from derive.language.errors import UnprovedError
from derive.language.notation.library import forward_from, list_forwards

N, C, S = Axis("N"), Axis("C"), Axes("S")
SAMPLE = {"batch_norm", "focal", "gru_cell", "huber", "embedding"}


class Entropy(Forward):
    """A reduction and ignored labels, which stand outside."""

    logits = Input(N, C)
    labels = Label(N, ignored=-100)
    weight = Given(C, default=1)
    logp = log(exp(logits) / Sum(exp(logits), C))
    counted = Sum(OneHot(labels, C) * weight, C)
    losses = -counted * Sum(OneHot(labels, C) * logp, C)
    loss = Reduced(losses, mean=Sum(counted, N))


class Masked(Forward):
    """An ignored label has a value: the mask stands inside."""

    x = Input(N, C)
    labels = Label(N, ignored=-1)
    picked = Sum(OneHot(labels, C) * x, C)
    y = exp(picked)


class Several(Forward):
    """Several outputs, of which one is a statement of the other; scalars; what may be left out."""

    x = Input(S, C)
    gain = Input(C, default=1)
    eps = Scalar(1e-5, above=0)
    power = Scalar(3)
    square = Sum(x**2, C) / C
    norm = sqrt(square + eps)
    y = gain * x / norm
    z = norm**power + Sum(y, C)
    outputs = Outputs(y, z)


class Named(Forward):
    """Its names are those that the text uses itself."""

    x = Input(N)
    wide = 2 * x
    dtype = Sum(wide, N)
    y = wide * dtype


OWN = (Entropy, Masked, Several, Named)
GALLERY = {forward.definition.snake: forward for forward in list_forwards()}
CASES = [
    *OWN,
    *(
        forward if name in SAMPLE else pytest.param(forward, marks=pytest.mark.thorough)
        for name, forward in GALLERY.items()
    ),
]


class Beside:
    """The file of a forward and its lean module, with arguments for both."""

    def __init__(self, forward):
        self.outside = outside_of(forward.definition)
        self.definition = self.outside.inside
        proved = derive_definition(self.definition)
        self.text = chain_module(forward, self.outside, whole_program(forward, proved))
        self.program = lean_program(forward, proved)
        self.page = PlainFunctions(self.program, self.outside)
        name = self.program.name
        lean = loaded(module_text(Pair(self.program, self.outside)), name)
        chain = loaded(self.text, f"{name}_chain")
        self.forward, self.backward = (
            getattr(lean, f"{name}_{k}") for k in ("forward", "backward")
        )
        self.atoms, self.chain = (getattr(chain, f"{name}_{kind}") for kind in ("atoms", "chain"))

    def arguments(self, dtype=torch.float64) -> dict[str, object]:
        given = Emitted(self.definition).arguments(dtype=dtype)
        shown = {}
        for t in self.definition.arguments:
            shown |= dict(zip(t.home, given[t.name].shape, strict=True)) if t.name in given else {}
        shown |= {axis: given[name] for name, axis in self.definition.size_arguments}
        sizes = self.definition.sizes_from(shown)
        self.sizes = {self.page.sizes[axis.name]: n for axis, n in sizes.items()}
        dims = {axis: (n,) for axis, n in sizes.items()}
        taken = plain_arguments(self.definition, given, dims)
        return {p.name: taken[p.name] for p in self.page.inner}

    def upstreams(self, outputs) -> tuple[Tensor, ...]:
        return tuple(torch.cos(torch.arange(y.numel()).to(y)).reshape(y.shape) for y in outputs)

    def by_autograd(self, arguments, upstreams) -> dict[str, Tensor]:
        """The gradients of all that the lines of the statements meet."""
        names = [p.name for p in self.program.forward.parameters if p.role == "input"]
        leaves = {n: arguments[n].clone().requires_grad_() for n in names}
        atoms = self.atoms(**{**arguments, **leaves})
        met = {n: t for n, t in {**atoms._asdict(), **leaves}.items() if t.requires_grad}
        pairs = [
            (getattr(atoms, n), up) for n, up in zip(self.page.outputs, upstreams, strict=True)
        ]
        outputs, ups = zip(*((y, up) for y, up in pairs if y.requires_grad), strict=True)
        found = torch.autograd.grad(
            outputs, [*met.values()], ups, allow_unused=True, materialize_grads=True
        )
        return {f"d{name}": g for name, g in zip(met, found, strict=True)}

    def by_closed_form(self, arguments, upstreams) -> dict[str, Tensor]:
        found = self.forward(**arguments)
        found = (found,) if isinstance(found, Tensor) else found
        values = (
            self.sizes
            | arguments
            | dict(zip([*self.page.outputs, *self.page.made], found, strict=True))
        )
        gradients = self.backward(*upstreams, *(values[name] for name in self.page.read))
        gradients = (gradients,) if isinstance(gradients, Tensor) else gradients
        return dict(zip(self.program.backward.results, gradients, strict=True))


@pytest.mark.parametrize("forward", CASES, ids=lambda forward: forward.__name__)
def test_the_chain_is_that_of_autograd_and_of_the_closed_form(forward):
    beside = Beside(forward)
    arguments = beside.arguments()
    atoms = beside.atoms(**arguments)
    outputs = [getattr(atoms, name) for name in beside.page.outputs]
    upstreams = beside.upstreams(outputs)
    # by place: the arguments of the plain forward, then the atoms
    chain = beside.chain(*upstreams, *arguments.values(), atoms)._asdict()
    expected = beside.by_autograd(arguments, upstreams)
    for name, upstream in zip(beside.page.outputs, upstreams, strict=True):
        expected[f"d{name}"] = upstream  # a statement that is an output and no more has its tensor
    closed = beside.by_closed_form(arguments, upstreams)
    assert closed.keys() <= chain.keys() and chain.keys() & expected.keys()
    for name in chain.keys() & expected.keys():
        torch.testing.assert_close(chain[name], expected[name], rtol=1e-9, atol=1e-9, msg=name)
    for name, gradient in closed.items():
        torch.testing.assert_close(chain[name], gradient, rtol=1e-9, atol=1e-9, msg=name)


def test_it_computes_in_float32_what_has_16_bits():
    beside = Beside(Several)
    arguments = beside.arguments(torch.bfloat16)
    atoms = beside.atoms(**arguments)
    upstreams = [t.bfloat16() for t in beside.upstreams([atoms.y, atoms.z])]
    chain = beside.chain(*upstreams, **arguments, atoms=atoms)
    assert {t.dtype for t in (*atoms, *chain)} == {torch.float32}
    wide = {n: v.float() if isinstance(v, Tensor) else v for n, v in arguments.items()}
    expected = beside.chain(*(t.float() for t in upstreams), **wide, atoms=beside.atoms(**wide))
    torch.testing.assert_close(chain, expected)


# What is broken in the text, and what nobody is shown then.
BREAKS = (
    ("    y = ", "    y = 2 * "),
    ("    norm = ", "    norm = square + "),
    ("    dsquare = ", "    dsquare = 2 * "),
    ("    dgain = ", "    dgain = 2 * "),
    ("return SeveralChain(dsquare", "return SeveralChain(2 * dsquare"),  # of a statement alone
    ("return SeveralChain(dsquare", "return SeveralChain(dsquare[0]"),
    ("return SeveralChain(", "dy += 1; return SeveralChain("),
    ("wide = atoms", "wide = torch.bfloat17 or atoms"),
)


@pytest.mark.parametrize("before, after", BREAKS)
def test_nothing_wrong_is_written(before, after, monkeypatch):
    right = codegen.driver.chain.chain_text

    def broken(*arguments):
        text = right(*arguments)
        assert text.count(before) == 1
        return text.replace(before, after)

    monkeypatch.setattr(codegen.driver.chain, "chain_text", broken)
    outside = outside_of(Several.definition)
    program = whole_program(Several, derive_definition(outside.inside))
    with pytest.raises(UnprovedError, match="nothing was emitted"):
        chain_module(Several, outside, program)


# The command

NORM = (
    "\n\nclass MyNorm(Forward):\n    x = Input(N)\n    square = Sum(x**2, N)\n    y = x / square\n"
)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The words of the command, and the file that it writes."""
    monkeypatch.setenv("GRADFORM_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "my_norm.py"
    source.write_text(HEAD + NORM)
    out = tmp_path / "out"
    return [str(source), "--chain", "--out", str(out)], out / "chain" / "my_norm.py"


def test_it_stands_in_a_folder_of_its_own(asked, capsys):
    words, file = asked
    assert main(words) == 0
    assert capsys.readouterr().out == f"written to {file.parent}: my_norm.py\n"
    assert sorted(p.name for p in file.parent.iterdir()) == ["__init__.py", "my_norm.py"]
    alone = ModuleType("alone")
    exec(file.read_text(), vars(alone))
    x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    atoms = alone.my_norm_atoms(x)
    chain = alone.my_norm_chain(torch.ones_like(x), x, atoms)
    assert alone.MyNormAtoms._fields == ("square", "y")
    torch.testing.assert_close(chain.dx, torch.autograd.grad(atoms.y.sum(), x)[0])
    lines = [line for line in file.read_text().splitlines() if line.startswith(("import", "from"))]
    assert {line.split()[1] for line in lines} <= {"math", "functools", "typing", "torch"}


def test_what_is_out_of_date_is_said_and_what_is_not_ours_stays(asked, capsys):
    words, file = asked
    assert main([*words, "--check"]) == 1 and not file.exists()
    assert main(words) == 0 and main([*words, "--check"]) == 0
    text = file.read_text()
    file.write_text(text.replace("dx = ", "dx = 2 * "))
    assert main([*words, "--check"]) == 1
    assert "-    dx = 2 * " in capsys.readouterr().out
    assert main(words) == 2 and "was edited: the edits would be lost" in capsys.readouterr().err
    file.write_text("# mine\n")
    assert main(words) == 2 and file.read_text() == "# mine\n"
    assert main([*words, "--force"]) == 0 and file.read_text() == text


def test_it_is_derived_once(asked, monkeypatch):
    words, file = asked
    monkeypatch.setattr(
        codegen.driver.chain, "STARTED", float("inf")
    )  # the file is older than that
    assert main(words) == 0
    text = file.read_text()
    file.unlink()

    def derived_again(*_):
        raise AssertionError("it was not kept")

    monkeypatch.setattr(codegen.driver.chain, "chain_module", derived_again)
    assert main(words) == 0 and file.read_text() == text
    with pytest.raises(AssertionError, match="not kept"):
        kept_chain(forward_from(words[0]), cached=False)


@pytest.mark.parametrize(
    "more", [["--target", "cpp"], ["--shard", "N"], ["--reduction", "sum"]], ids=" ".join
)
def test_what_it_does_not_write_is_refused(asked, more, capsys):
    words, file = asked
    assert main([*words, *more]) == 2
    assert "leave" in capsys.readouterr().err and not file.exists()
