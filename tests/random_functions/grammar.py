"""A random ``torch.autograd.Function``: its forward, and the backward that follows by rule.

A seed decides everything. What `breaking` does to the backward is not the truth about it: that is
found by running it (`truth`), since what was broken may still be right, as a sum too few is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random

from random_functions.operations import KEPT, Line, Pull, Tensor, random_line

SIGNATURES = (  # axes of x, w and s
    ("N C",),
    ("N",),
    ("N C", "C"),
    ("N C", "N"),
    ("N C", ""),
    ("N C", "C", ""),
    ("N C", "C K"),
    ("N C", "N C"),
    ("N", ""),
    ("N C", "C", "N C"),
    ("N C", "C K", "K"),
    ("", ""),
)
OPTIONS = (("mode", "mean", ("sum", "none")), ("flag", "True", ("False",)))  # default, others
DRAWS = 60  # of a line, until it has a meaning


@dataclass
class Statement:
    """One gradient that is added to: ``branch`` is None, or for which alternative of the option."""

    target: Tensor
    factors: list[str]
    sums: str
    branch: bool | None
    text: str = ""  # in place of the product

    def __str__(self) -> str:
        if self.text:
            return self.text
        product = " * ".join(self.factors)
        return f"({product}){self.sums}" if self.sums and " " in product else product + self.sums


@dataclass
class Case:
    """What is written of a seed, in parts that can be broken."""

    inputs: list[Tensor]
    lines: list[tuple[Tensor, Line, Line | None]]
    option: tuple | None
    asks: str  # how needs_input_grad is used: "", "return", "tuple"
    set_up: bool  # in setup_context
    statements: list[Statement] = field(default_factory=list)
    first: list[str] = field(default_factory=list)  # lines of the forward, before the others
    last: list[str] = field(default_factory=list)  # lines of the backward, before it returns
    asked: list[int] = field(default_factory=list)  # the place that each input asks for
    returned: list[str] = field(default_factory=list)
    broken: str = ""

    @property
    def axes(self) -> str:
        return ", ".join(f"{t.name}: {' '.join(t.axes)}".rstrip() for t in self.inputs)

    @property
    def values(self) -> list[dict]:
        """The options that there are: one dict for each value."""
        if not self.option:
            return [{}]
        name, default, others = self.option
        if name == "flag":
            return [{name: True}, {name: False}]
        return [{name: value} for value in (default, *others)]


def random_case(seed: int) -> Case:
    rng = Random(seed)
    while True:
        case = _drawn(rng)
        if case is not None:
            break
    _write_backward(case)
    if rng.random() < 0.6:
        from random_functions.breaking import broken

        broken(case, rng)
    return case


def _drawn(rng: Random) -> Case | None:
    signature = rng.choice(SIGNATURES)
    names = ["x", "s"] if signature[-1:] == ("",) and len(signature) == 2 else ["x", "w", "s"]
    inputs = [Tensor(n, tuple(a.split())) for n, a in zip(names, signature, strict=False)]
    option = rng.choice([None, *OPTIONS])
    count = rng.randint(2, 4)
    chosen = rng.randrange(count) if option else None
    lines, known, used = [], list(inputs), {inputs[0]}
    for place in range(count):
        others = [t for t in inputs if t not in used] or known
        latest = known[-1] if lines else inputs[0]
        line = _line(rng, latest, others)
        other = _line(rng, latest, known, like=line) if place == chosen and line else None
        if line is None or (place == chosen and other is None):
            return None
        used |= {p.of for p in line.pulls}
        name = "y" if place == count - 1 else f"h{place + 1}"
        known.append(Tensor(name, line.axes))
        lines.append((known[-1], line, other))
    if not used >= set(inputs):
        return None
    asks = rng.choice(["", "return", "tuple"])
    case = Case(inputs, lines, option, asks, rng.random() < 0.25)
    case.asked = [*range(len(inputs))]
    case.returned = [f"d{t.name}" for t in inputs]
    return case


def _line(rng: Random, latest: Tensor, others: list[Tensor], like=None) -> Line | None:
    for _ in range(DRAWS):
        line = random_line(rng, latest, others)
        if line is None or latest not in [p.of for p in line.pulls]:
            continue
        if like is None or (line.axes == like.axes and line.text != like.text):
            return line
    return None


def _write_backward(case: Case) -> None:
    """The statements of the backward, from the last line to the first."""
    for y, line, other in reversed(case.lines):
        for branch, one in ((None if other is None else True, line), (False, other)):
            for pull in one.pulls if one else ():
                case.statements.append(_statement(y, pull, branch))


def _statement(y: Tensor, pull: Pull, branch: bool | None) -> Statement:
    factors = [f.replace("{y}", y.name).replace("{g}", f"d{y.name}") for f in pull.factors]
    return Statement(pull.of, factors, pull.sums, branch)


HEAD = "import torch\nfrom torch.autograd import Function\n\n\nclass F(Function):\n"


def text_of(case: Case) -> str:
    """The file with the class ``F``."""
    inputs = [t.name for t in case.inputs]
    default = (
        ""
        if not case.option
        else f", {case.option[0]}={case.option[1]}"
        if case.option[0] == "flag"
        else f', {case.option[0]}="{case.option[1]}"'
    )
    condition = _condition(case)
    forward = [*case.first]
    for y, line, other in case.lines:
        value = f"{y.name} = {line.text.replace('{y}', y.name)}"
        if other is None:
            forward.append(value)
        else:
            text = f"{y.name} = {other.text}"
            forward += [f"if {condition}:", f"    {value}", "else:", f"    {text}"]
    backward = _backward_lines(case)
    saved = _saved(case, backward)
    kept = [f"ctx.save_for_backward({', '.join(saved)})"] if saved else []
    kept += [f"ctx.{case.option[0]} = {case.option[0]}"] if case.option else []
    read = [f"({', '.join(saved)},) = ctx.saved_tensors"] if saved else []
    arguments = ", ".join(inputs) + default
    given = ", ".join([*inputs, *([case.option[0]] if case.option else [])])
    # With setup_context, only arguments and the output can be kept.
    if case.set_up and set(saved) <= {*inputs, "y"} and not case.first:
        unpacked = [f"{given}{',' * (',' not in given)} = inputs", *kept]
        unpacked = [line.replace("(y)", "(output)") for line in unpacked]
        unpacked = [re.sub(r"\by\b", "output", line) for line in unpacked]
        parts = [
            _method("forward", arguments, [*forward, "return y"]),
            _method("setup_context", "ctx, inputs, output", unpacked or ["pass"]),
        ]
    else:
        parts = [_method("forward", f"ctx, {arguments}", [*forward, *kept, "return y"])]
    parts.append(_method("backward", "ctx, dy", [*read, *backward]))
    return HEAD + "\n".join(parts)


def _method(name: str, arguments: str, lines: list[str]) -> str:
    body = "".join(f"        {line}\n" for line in lines)
    return f"    @staticmethod\n    def {name}({arguments}):\n{body}"


def _condition(case: Case, of: str = "") -> str:
    if not case.option:
        return ""
    name, default, _ = case.option
    return f"{of}{name}" if name == "flag" else f'{of}{name} == "{default}"'


def _backward_lines(case: Case) -> list[str]:
    """Assignments, with the branches of the option; then what is returned."""
    lines: list[str] = []
    known: set[str] = set()
    branch_of: bool | None = None
    both = {True: set(), False: set()}  # targets of each branch
    for s in case.statements:
        if s.branch is not None:
            both[s.branch].add(s.target.name)
    before = {}
    for s in case.statements:
        name = s.target.name
        if s.branch is None:
            lines.append(_assigned(s, known))
            branch_of = None
            continue
        if branch_of is None:
            for other in sorted(both[True] ^ both[False]):
                if other not in known:
                    lines.append(f"d{other} = torch.zeros_like({other})")
                    known.add(other)
            before = {True: set(known), False: set(known)}
        if branch_of is not s.branch:
            lines.append(f"if {_condition(case, 'ctx.')}:" if s.branch else "else:")
        branch_of = s.branch
        lines.append("    " + _assigned(s, before[s.branch]))
        known.add(name)
    lines += case.last
    returned = [*case.returned]
    if case.asks:
        places = [f"ctx.needs_input_grad[{i}]" for i in case.asked]
        if case.asks == "tuple":
            needs = [f"need_{t.name}" for t in case.inputs]
            rest = ", _" if case.option else ""
            comma = "," if len(needs) == 1 and not rest else ""
            lines.insert(0, f"{', '.join(needs)}{rest}{comma} = ctx.needs_input_grad")
            places = [needs[i] for i in case.asked]
        returned = [f"{d} if {p} else None" for d, p in zip(returned, places, strict=True)]
    return [*lines, f"return {', '.join([*returned, *(['None'] if case.option else [])])}"]


def _assigned(s: Statement, known: set[str]) -> str:
    name = f"d{s.target.name}"
    if s.target.name in known:
        return f"{name} = {name} + {s}"
    known.add(s.target.name)
    return f"{name} = {s}"


def _saved(case: Case, backward: list[str]) -> list[str]:
    text = "\n".join(backward)
    names = [t.name for t in case.inputs] + [y.name for y, _, _ in case.lines]
    return [name for name in names if re.search(rf"(?<![.\w]){name}\b", text)]


__all__ = ["KEPT", "Case", "Statement", "random_case", "text_of"]
