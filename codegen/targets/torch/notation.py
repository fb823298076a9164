"""What a module says of its arguments, in the notation that the runtime's `Arguments` reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap

from codegen.program import NUMBERS, Function
from codegen.program.steps import Default, Fill, NameSize, Refuse, Step, Within
from codegen.program.values import Derived, Quotient
from codegen.targets.torch.branches import Branches
from codegen.targets.torch.checks import TURNED
from codegen.targets.torch.functions import layouts_in
from codegen.targets.torch.lines import broken
from codegen.targets.torch.printed import Core
from codegen.targets.torch.vocabulary import PRODUCT
from codegen.targets.torch.wrapping import in_tuple, used, wrapped
from derive.notation.definition import NONE, REDUCTION, SUM
from derive.notation.layout import Layout

DERIVED = ("d", "v_", "c_")  # a name with this before it has the axes of the name
WIDTH = 92  # of a line of the notation
NARROWEST = 40  # of the names in one


class Notation(Branches):
    """The names of a program, their axes, and what is asked of them, as text."""

    asks = "_pair"

    def notation(self) -> list[str]:
        """The lines, one for all names of which the same is said."""
        same: dict[str, list[str]] = {}
        for name, said in self._said().items():
            same.setdefault(said, []).append(name)
        lines = [f"{', '.join(names)}: {said}" for said, names in same.items()]
        lines = [part for line in lines for part in _parts(line)]
        if self.program.reductions:
            lines.append(f"{REDUCTION}: {' | '.join(self._words())}")
        lines += [f"{size} = {length}" for size, length in self.program.fixed]
        lines += self._flat_sizes()
        return [*lines, *dict.fromkeys(self._asked_of_numbers())]

    def _flat_sizes(self) -> list[str]:
        """The sizes of axes that others were put together to, where no input has them."""
        shown = {dim.axis.name for p in self.program.forward.tensors for dim in p.layout}
        return [
            f"{flat} = {' * '.join(parts)}"
            for flat, parts in self.program.flattened
            if flat not in shown
        ]

    def declared_core(
        self, function: Function, name: str, decorator: str, returned: Sequence[str] = ()
    ) -> Core:
        """The lines of a function that the runtime calls, or hands out; ``returned`` as a plain
        tuple, if it is given. Vectors that are None are the runtime's to fill in.
        """
        public = name == function.name
        names = self.arguments(function) if public else [p.name for p in function.parameters]
        if self.places(function):
            names.append(f"{self.needs}=None" if any("=" in name for name in names) else self.needs)
        kind = "tuple" if returned else function.result_class
        last = wrapped(f"return {function.result_class}", function.results, indent=4)
        if returned:
            last = broken(f"return {in_tuple(returned)}")
        uncast = "@_runtime.uncast\n" * self.multiplies_matrices(function)
        head = wrapped(f"def {name}", names, f" -> {kind}:")
        return Core(f"{decorator}\n{uncast}{head}", tuple(used(self.lines(function), last)), last)

    def is_left_out(self, step: Step, function: Function) -> bool:
        vectors = {p.name for p in function.parameters if p.role == "adjoint"}
        return isinstance(step, Fill) and step.name in vectors

    def _words(self) -> list[str]:
        words = [word for word, _ in self.program.reductions]
        return sorted(words, key=[NONE, SUM, self.program.reduction, *words].index)

    def _said(self) -> dict[str, str]:
        """By name its axes, and what else is said; what is derived from another is left out."""
        known, needed = self._layouts(), self._needed()
        inputs = {p.name: p for p in self.program.forward.parameters if p.role not in NUMBERS}
        found = {}
        for name in sorted(known, key=lambda n: n not in inputs):
            if name not in inputs and any(
                known.get(name.removeprefix(mark)) == known[name]
                for mark in DERIVED
                if name.startswith(mark)
            ):
                continue
            said = self._axes(known[name])
            p = inputs.get(name)
            if p is not None:
                axes = [self.sizes[axis] for of, axis in self.program.labels if of == name]
                said += f" -> {' '.join(axes)}" * bool(axes)
                said += ", whole" * (p.role == "label" and not axes)
                said += f" = {float(p.default or 0)!r}".removesuffix(".0") * (p.default is not None)
                said += ", constant" * (p.role == "given")
                said += ", broadcast" * (name in self.program.broadcast)
                said += ", ignored" * (name in self.program.ignored)
            found[name] = said + f", needed for {' '.join(needed.get(name, ()))}" * (name in needed)
        return found

    def _needed(self) -> dict[str, list[str]]:
        """What a function takes for some of the reductions alone, with their words."""
        found: dict[str, list[str]] = {}
        for function in self.functions:
            own = self.variants.get(id(function), {})
            names = {word: {p.name for p in each.tensors} for word, (_, each) in own.items()}
            for p in function.tensors:
                if p.sometimes:
                    words = [word for word in names if p.name in names[word]]
                    found[p.name] = [w for w in found.get(p.name, words) if w in words]
        return found

    def _axes(self, layouts: Mapping[str, Layout]) -> str:
        printer, texts = self.printer(self.program.forward), {}
        for word, layout in layouts.items():
            dims = " ".join(dim.written(printer.size(dim)) for dim in layout) or "()"
            texts.setdefault(dims, []).append(word)
        if {*layouts} in ({""}, {*self._words()}) and len(texts) == 1:
            return next(iter(texts))
        return "; ".join(f"{dims} for {' '.join(words)}" for dims, words in texts.items())

    def _layouts(self) -> dict[str, dict[str, Layout]]:
        """By name and by the word of the reduction the axes of all tensors that a function takes or
        returns.
        """
        found: dict[str, dict[str, Layout]] = {}
        for page in self.pairs:
            for function in page.functions:
                own = page.variants.get(id(function)) or {"": (page, function)}
                for word, (_, each) in own.items():
                    known = layouts_in(each)
                    for name in (*(p.name for p in each.tensors), *each.results):
                        if name in known:
                            found.setdefault(name, {}).setdefault(word, known[name])
        return found

    def _asked_of_numbers(self) -> Iterator[str]:
        """The sizes that others fix, the numbers that may be left out, what has to be so."""
        for function in self.functions:
            own = self.variants.get(id(function)) or {"": (self, function)}
            for page, each in own.values():
                printer = page.printer(each)
                for step in each.checks:
                    yield from _as_notation(step, printer)


def _as_notation(step: Step, printer) -> Iterator[str]:
    text = printer.text
    if isinstance(step, NameSize) and isinstance(step.value, Quotient):
        yield f"{step.name} = {step.value.flat} / {step.value.by}"
    elif isinstance(step, NameSize) and isinstance(step.value, Derived):
        yield f"{step.name} = {step.value.formula}"
    elif isinstance(step, Default):
        yield f"{step.name} = {text(step.value)}"
    elif isinstance(step, Refuse):
        left, right = text(step.left), text(step.right)
        sign, wrong = ("==", "is not") if step.equal else ("!=", "is")
        yield f"{left} {sign} {right}: {step.name} {step.use}, but {left} {wrong} {right}"
    elif isinstance(step, Within):
        (sign, limit), *above = step.bounds
        value, limit = text(step.value, PRODUCT), text(limit, PRODUCT)
        test = f"{value} {sign} {limit}"
        for other, largest in above:
            test = f"{limit} {TURNED[sign]} {value} {other} {text(largest, PRODUCT)}"
        yield f"{test}: {step.name} must be {step.domain}"


def _parts(line: str) -> Iterable[str]:
    """A long line in several, each for some of the names."""
    if len(line) <= WIDTH:
        return [line]
    names, _, said = line.partition(": ")
    rows = wrap(names, max(WIDTH - len(said), NARROWEST), break_long_words=False)
    return [f"{row.removesuffix(',')}: {said}" for row in rows]
