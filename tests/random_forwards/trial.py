"""One forward tried: taken through the whole driver, and what comes out compared with plain torch.

`tried` gives an `Outcome`, which says in which way it went. What is compared, at several sizes (1
and equal ones included): the value and the gradients of the differentiable function, of forward
and backward, of atoms and chain, and every statement with its gradient.
"""

from __future__ import annotations

import importlib.util
import random
import re
import signal
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import ModuleType

import torch

from codegen.driver import Generated, generate
from derive import forward_from
from derive.definition import Definition
from derive.errors import QuestionError, UnprovedError
from derive.symbols import Axes, Axis, size_divisors
from random_forwards.named import DOUBLE
from random_forwards.plain_torch import evaluate

TOLERANCE = 1e-9
DISTINCT = (3, 4, 2, 5, 6, 7)
IGNORED_SHARE = ZERO_SHARE = 0.3
ROOT = Path(__file__).parents[2]

# In which ways a trial goes. All but the first are findings.
RIGHT, REFUSED, UNPROVED, AWAY, CRASHED, WRONG, SLOW, UNTRIED = (
    "right",
    "refused by the notation",
    "unproved",
    "away from autograd",
    "crashed",
    "wrong",
    "out of time",
    "without a number to compare",
)


@dataclass(frozen=True)
class Outcome:
    """How a trial went; ``cause`` is what two findings of one cause have in common."""

    kind: str
    message: str = ""
    cause: str = ""
    seconds: float = 0.0
    text: str = ""  # that was generated


class Wrong(Exception):
    """What was generated differs from plain torch: where, and by how much."""


class OutOfTime(BaseException):
    """Raised where a trial takes too long; no handler of errors holds it up."""


def tried(text: str, seed: int = 0, limit: float = 20.0) -> Outcome:
    """Take the forward that stands last in ``text`` through the driver, and compare it."""
    start = time.process_time()
    generated: list[str] = []
    try:
        with _time_limit(limit), tempfile.TemporaryDirectory(prefix="gradform-") as folder:
            kind, message, cause = _tried(text, seed, Path(folder), generated)
    except OutOfTime as error:
        kind, message, cause = (
            SLOW,
            f"more than {limit:g} s of computing",
            f"{SLOW}: {_place(error)}",
        )
    seconds = time.process_time() - start
    return Outcome(kind, message, cause, seconds, "".join(generated))


def _tried(text: str, seed: int, folder: Path, generated: list[str]) -> tuple[str, str, str]:
    file = folder / "forward.py"
    file.write_text(text, encoding="utf-8")
    name = re.findall(r"^class (\w+)\(Forward\)", text, re.M)[-1]
    try:
        forward = forward_from(f"{file}:{name}")
        result = generate(forward)
        generated.append(result.text)
        module = _module(result, folder)
        compared = sum(
            _compared(module, result, forward.definition, text, batch)
            for batch in batches(forward.definition, seed)
        )
    except QuestionError as error:
        return REFUSED, str(error), f"{REFUSED}: {_shape(error.problem)}"
    except UnprovedError as error:
        kind = AWAY if AWAY in str(error) else UNPROVED
        return kind, str(error), kind
    except Wrong as error:
        return WRONG, str(error), WRONG
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        trace = "".join(traceback.format_exception(error)[-6:])
        return CRASHED, f"{said}\n{trace}", f"{type(error).__name__} in {_place(error)}"
    return (RIGHT if compared else UNTRIED), "", "" if compared else UNTRIED


def _shape(problem: str) -> str:
    """A sentence without what was written in it."""
    return re.sub(r".*: ", "", problem)[:40]


def _place(error: BaseException) -> str:
    """The innermost function of ours on the way to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if f.filename.startswith((f"{ROOT}/derive", f"{ROOT}/codegen"))]
    last = (ours or frames)[-1]
    return f"{Path(last.filename).name}:{last.name}"


@contextmanager
def _time_limit(seconds: float):
    def stop(*_):
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _module(result: Generated, folder: Path) -> ModuleType:
    path = folder / f"generated_{result.file}"
    path.write_text(result.text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# -- what is passed ---------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Sizes, and how the arguments are drawn: whether what may be left out is, whether numbers
    differ from their defaults, and whether dimensions of what is broadcast have size 1.
    """

    dims: Mapping[Axis, tuple[int, ...]]
    seed: int
    bare: bool = False
    other_numbers: bool = False
    narrow: bool = False


def batches(definition: Definition, seed: int) -> Iterator[Batch]:
    """Different sizes; small ones, many of them 1 or equal; and different ones again, with all
    that may be left out left out.
    """
    chance = random.Random(f"batches {seed}")
    yield Batch(_dims(definition, lambda i: DISTINCT[i % len(DISTINCT)], ()), seed)
    small = _dims(definition, lambda i: chance.choice((1, 1, 2, 2, 3)), (2, 1))
    yield Batch(small, seed + 1, other_numbers=True, narrow=True)
    if definition.optional:
        yield Batch(_dims(definition, lambda i: chance.choice((2, 3, 4)), ()), seed + 2, bare=True)


def _dims(definition: Definition, size, lead: tuple[int, ...]) -> dict[Axis, tuple[int, ...]]:
    """The dimensions of every axis; where the mathematics divides by a size that would be 0, all
    are larger.
    """
    divisors = [d for s in definition.statements for d in size_divisors(s.expression)]
    chosen = {axis: size(i) for i, axis in enumerate(definition.independent_axes)}
    for more in range(9):
        dims = {
            axis: (*lead, n + more) if isinstance(axis, Axes) else (n + more,)
            for axis, n in chosen.items()
        }
        sizes = definition.sizes_from({axis: prod(own) for axis, own in dims.items()})
        if all(d.subs(sizes) > 0 for d in divisors):
            break
    return {axis: (n,) for axis, n in sizes.items()} | dims


def _arguments(definition: Definition, labels, batch: Batch) -> dict[str, object]:
    """What is passed to the differentiable function."""
    generator = torch.Generator().manual_seed(batch.seed)
    chance = random.Random(f"arguments {batch.seed}")
    ignored = {i.label.name for i in definition.ignoring}
    optional = {t.name for t, _ in definition.optional}
    passed: dict[str, object] = {}
    for t in definition.arguments:
        shape = [n for axis in t.home for n in batch.dims[axis]]
        if batch.bare and t.name in optional:
            continue
        if t.role == "label":
            most = min((prod(batch.dims[a]) for a in labels.get(t.name, ())), default=1)
            value = torch.randint(most, tuple(shape), generator=generator)
            if t.name in ignored:
                out = torch.rand(tuple(shape), generator=generator) < IGNORED_SHARE
                value = value.masked_fill(out, _ignore_index(definition, batch))
            passed[t.name] = value
            continue
        if t.name in definition.broadcast and batch.narrow:
            shape = [1 if chance.random() < 0.5 else n for n in shape]
            while shape and shape[0] == 1 and chance.random() < 0.5:
                shape = shape[1:]
        value = torch.rand(tuple(shape), generator=generator, dtype=DOUBLE) * 4 - 2
        if t.role == "given":  # as in a mask, some are 0
            value = value * (torch.rand(tuple(shape), generator=generator) > ZERO_SHARE)
        passed[t.name] = value.requires_grad_() if t.role == "input" else value
    passed |= {name: prod(batch.dims[axis]) for name, axis in definition.size_arguments}
    if batch.other_numbers:
        passed |= {t.name: 1.25 * v for t, v in definition.scalars if isinstance(v, (int, float))}
        if ignored:
            passed["ignore_index"] = _ignore_index(definition, batch)
    return passed


def _ignore_index(definition: Definition, batch: Batch) -> int:
    return -3 if batch.other_numbers else definition.ignoring[0].default


# -- what is compared -------------------------------------------------------------------


def _compared(module, result: Generated, definition: Definition, text: str, batch: Batch) -> bool:
    """Whether there was anything to compare: numbers that are finite in plain torch. Raises
    `Wrong`.
    """
    labels: dict[str, list[Axis]] = {}
    by_name = {axis.name: axis for axis in definition.axes}
    for label, axis in result.program.labels:
        labels.setdefault(label, []).append(by_name[axis])
    passed = _arguments(definition, labels, batch)
    plain = _Plain(definition, text, batch, passed)
    if not plain.finite:
        return False
    compare = _Comparison(batch, plain)
    name = definition.snake
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output = getattr(module, name)(**passed)
        compare(f"{name}()", output, plain.output)
        inputs = [t.name for t in definition.differentiable if t.name in passed]
        if output.requires_grad:
            found = torch.autograd.grad(
                output, [passed[n] for n in inputs], plain.upstream, allow_unused=True
            )
            for n, gradient in zip(inputs, found, strict=True):
                compare(f"d{n} of {name}()", gradient, plain.gradient_of_passed(n))
        if not batch.bare:
            _stepwise_compared(module, result, plain, compare)
    return True


def _stepwise_compared(module, result: Generated, plain: _Plain, compare) -> None:
    """The four functions that do not differentiate by themselves."""
    program = result.program
    forward, backward, atoms, chain = (
        getattr(module, f.name)
        for f in (program.forward, program.backward, program.atoms, program.chain)
    )
    with torch.no_grad():
        whole = plain.whole
        saved = forward(**whole)
        compare("_forward", saved[0], plain.output)
        closed = backward(plain.upstream, **_chosen(program.backward, whole | saved._asdict()))
        values = atoms(**whole)
        chained = chain(plain.upstream, **_chosen(program.chain, whole | values._asdict()))
    for name in plain.inputs:
        compare(f"d{name} of _backward", getattr(closed, f"d{name}"), plain.gradient(name))
        compare(f"d{name} of _chain", getattr(chained, f"d{name}"), plain.gradient(name))
    for name, value in plain.statements.items():
        if hasattr(values, name):
            compare(f"{name} of _atoms", getattr(values, name).reshape(value.shape), value)
        if hasattr(chained, f"d{name}"):
            actual = getattr(chained, f"d{name}").reshape(value.shape)
            compare(f"d{name} of _chain", actual, plain.gradient(name))


def _chosen(function, values: Mapping) -> dict:
    return {p.name: values[p.name] for p in function.parameters[1:] if p.name in values}


class _Plain:
    """The same forward in plain torch: values, and gradients by autograd for a random upstream
    gradient.
    """

    def __init__(self, definition: Definition, text: str, batch: Batch, passed: Mapping):
        self.passed, self.whole, merged = passed, {}, {}
        for t in definition.arguments:
            if t.name in passed:
                full = [n for axis in t.home for n in batch.dims[axis]]
                value = passed[t.name]
                self.whole[t.name] = value = (
                    value if list(value.shape) == full else (value.broadcast_to(full))
                )
                merged[t.name] = value.reshape([prod(batch.dims[axis]) for axis in t.home])
                if t in definition.labels and definition.ignoring:
                    out = merged[t.name] == _ignore_index(definition, batch)
                    if t.name in {i.label.name for i in definition.ignoring}:
                        merged[t.name] = merged[t.name].masked_fill(out, -1)
        others = {n: v for n, v in passed.items() if n not in merged and n != "ignore_index"}
        self.whole |= {n: v for n, v in passed.items() if n not in merged}
        self.inputs = [t.name for t in definition.differentiable if t.name in passed]
        result = evaluate(text, definition.name, merged | others)
        homes = {s.name: [axis.name for axis in s.tensor.home] for s in definition.statements}
        if set(homes[definition.output.name]) != set(result.output.axes):
            raise Wrong(
                f"the output has the axes {homes[definition.output.name]}, in plain torch "
                f"{list(result.output.axes)}"
            )
        self._sources = {n: self.whole[n] for n in self.inputs}
        self.statements: dict[str, torch.Tensor] = {}
        for name, value in result.statements.items():
            if name in homes and set(homes[name]) == set(value.axes):
                self._sources[name] = value.data
                self.statements[name] = value.along(homes[name])
        self._axes = {n: (v.axes, homes.get(n)) for n, v in result.statements.items()}
        output = self.statements[definition.output.name]
        self.output = output.reshape(
            [n for axis in definition.output.home for n in batch.dims[axis]]
        )
        generator = torch.Generator().manual_seed(batch.seed + 100)
        self.upstream = torch.randn(tuple(self.output.shape), generator=generator, dtype=DOUBLE)
        self._gradients = self._differentiated()
        everything = [*self.statements.values(), *self._gradients.values()]
        self.finite = all(bool(value.isfinite().all()) for value in everything)

    def _differentiated(self) -> dict[str, torch.Tensor]:
        sources = dict(self._sources)
        leaves = {f"passed {n}": self.passed[n] for n in self.inputs}
        wanted = {n: v for n, v in (sources | leaves).items() if v.requires_grad}
        found = {}
        if self.output.requires_grad:
            gradients = torch.autograd.grad(
                self.output, list(wanted.values()), self.upstream, allow_unused=True
            )
            found = {n: g for n, g in zip(wanted, gradients, strict=True) if g is not None}
        return {n: found.get(n, torch.zeros_like(v)) for n, v in (sources | leaves).items()}

    def gradient_of_passed(self, name: str) -> torch.Tensor:
        return self._gradients[f"passed {name}"]

    def gradient(self, name: str) -> torch.Tensor:
        """With the dimensions of the tensor in their order."""
        gradient = self._gradients[name]
        if name in self.inputs:
            return gradient
        axes, home = self._axes[name]
        return gradient.permute([axes.index(axis) for axis in home])


class _Comparison:
    """Compares two tensors, and raises `Wrong` where they differ."""

    def __init__(self, batch: Batch, plain: _Plain):
        sizes = ", ".join(f"{axis}={'x'.join(map(str, n))}" for axis, n in batch.dims.items())
        left_out = ", what may be left out left out" if batch.bare else ""
        self.at = f"at {sizes} (data {batch.seed}){left_out}"

    def __call__(self, what: str, actual: torch.Tensor | None, expected: torch.Tensor) -> None:
        expected = expected.detach()
        if actual is None:
            actual = torch.zeros_like(expected)
        actual = actual.detach()
        if actual.shape != expected.shape:
            raise Wrong(
                f"{what} has the shape {tuple(actual.shape)}, in plain torch "
                f"{tuple(expected.shape)}, {self.at}"
            )
        if not expected.numel():
            return
        if not actual.isfinite().all():
            raise Wrong(f"{what} is not finite, {self.at}")
        gap, largest = (actual - expected).abs().max().item(), expected.abs().max().item()
        if gap > TOLERANCE * (largest + 0.01):
            raise Wrong(
                f"{what} is {gap:.1e} away from plain torch, whose largest is {largest:.1e}, "
                f"{self.at}:\n{actual}\n{expected}"
            )
