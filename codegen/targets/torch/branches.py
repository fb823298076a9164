"""The lines of several programs as one text, with a branch where they differ.

Whatever the word is, what runs are the lines of its own program, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from codegen.program import Function, Program
from codegen.program.steps import Assign
from codegen.program.values import Load
from codegen.reduced import in_order
from codegen.targets.torch.functions import Functions, layouts_in
from codegen.targets.torch.lines import STEP
from derive.notation.definition import REDUCTION


@dataclass(frozen=True)
class Line:
    """A line as it stands in a function, and a step ``further`` in; ``inner`` are those that stand
    under it, where it is a condition.
    """

    text: str
    further: str
    inner: tuple[Line, ...] = ()


def lines_of(texts: Sequence[str], further: Sequence[str]) -> list[Line]:
    """The lines that were printed at two places, the second a step further in."""
    found: list[Line] = []
    for text, other in zip(texts, further, strict=True):
        if text.startswith(STEP):
            own = Line(text.removeprefix(STEP), other.removeprefix(STEP))
            found[-1] = replace(found[-1], inner=(*found[-1].inner, own))
        else:
            found.append(Line(text, other))
    return found


def branched(texts: Mapping[str, Sequence[Line]]) -> list[str]:
    """The lines of each word as one text; the last word stands in the ``else``."""
    words = list(texts)
    shared = [line.text for line in texts[words[0]]]
    for word in words[1:]:
        shared = _in_both(shared, [line.text for line in texts[word]])
    rest, found = {word: list(lines) for word, lines in texts.items()}, []
    for text in (*shared, None):
        taken = {word: _taken(lines, text) for word, lines in rest.items()}
        found += _branches({word: before for word, (before, _) in taken.items()})
        if text is not None:
            inner = branched({word: line.inner for word, (_, line) in taken.items()})
            found += [text, *(STEP + line for line in inner)]
    return found


def _taken(lines: list[Line], until: str | None) -> tuple[tuple[str, ...], Line | None]:
    """What stands in ``lines`` before a line, which is taken away with it."""
    found = []
    while lines:
        line = lines.pop(0)
        if line.text == until:
            return tuple(found), line
        found += [line.further, *(STEP + inner.further for inner in line.inner)]
    return tuple(found), None


def _branches(own: Mapping[str, tuple[str, ...]]) -> list[str]:
    alike: dict[tuple[str, ...], list[str]] = {}
    for word, lines in own.items():
        alike.setdefault(lines, []).append(word)
    last, found = next(reversed(own)), []
    groups = sorted(
        ((lines, words) for lines, words in alike.items() if lines), key=lambda g: last in g[1]
    )
    for i, (lines, words) in enumerate(groups):
        otherwise = i == len(groups) - 1 and () not in alike
        head = "else:" if otherwise else f"{'el' * bool(i)}if {_is_one_of(words)}:"
        found += [head, *(STEP + line for line in lines)]
    return found


def _is_one_of(words: Sequence[str]) -> str:
    named = quoted(words)
    return f"{REDUCTION} == {named}" if len(words) == 1 else f"{REDUCTION} in ({named})"


def quoted(words: Sequence[str], between: str = ", ") -> str:
    return between.join(f'"{word}"' for word in words)


def _in_both(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """The longest text that is in both, in the order of both."""
    lengths = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i in reversed(range(len(first))):
        for j in reversed(range(len(second))):
            longer = max(lengths[i + 1][j], lengths[i][j + 1])
            same = first[i] == second[j]
            lengths[i][j] = max(longer, 1 + lengths[i + 1][j + 1]) if same else longer
    found, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        if first[i] == second[j] and lengths[i][j] == 1 + lengths[i + 1][j + 1]:
            found.append(first[i])
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


class Branches(Functions):
    """The functions of a program whose caller chooses the reduction: the pages of the others stand
    beside it.
    """

    def __init__(self, program: Program, asked_for=(), whole: Branches | None = None):
        super().__init__(program, asked_for)
        self.variants: dict[int, dict[str, tuple[Branches, Function]]] = {}
        if whole is not None:
            self.dims, self.dtype, self.result = whole.dims, whole.dtype, whole.result
            self.needs = whole.needs
        every = dict(program.reductions)
        if program.reduction not in every:
            return
        pages = {w: type(self)(every[w], self.asked_for, self) for w in in_order(program)}
        for of in _every_function(program):
            own = {w: (page, of(page.program)) for w, page in pages.items()}
            self.variants[id(of(program))] = own

    def lines(self, function: Function, margin: str = STEP) -> list[str]:
        own = self.variants.get(id(function))
        if own is None:
            return super().lines(function, margin)
        return branched({w: self._lines_of(function, *each) for w, each in own.items()})

    def _lines_of(self, function: Function, page: Branches, own: Function) -> list[Line]:
        """The lines of one word; what only others compute is None there."""
        known = {p.name for p in function.parameters} | {*own.results}
        missing = [f"{name} = None" for name in function.results if name not in known]
        lines = lines_of(page.lines(own), page.lines(own, 2 * STEP))
        return [*lines, *(Line(line, line) for line in missing)]

    @property
    def entries(self) -> set[str]:
        """The values of the forward that are its output by another name, for any of the words."""
        output = self.program.forward.results[0]
        every = (f for _, f in self.variants.get(id(self.program.forward), {}).values())
        return {
            step.value.name
            for function in every
            for step in function.steps
            if isinstance(step, Assign) and step.name == output and isinstance(step.value, Load)
        }

    def guards_in(self, function: Function) -> bool:
        own = self.variants.get(id(function))
        if own is None:
            return super().guards_in(function)
        return any(page.guards_in(f) for page, f in own.values())

    def varying(self, function: Function, name: str) -> dict[str, tuple]:
        """The dimensions of a tensor by the word, where they are not always the same."""
        own = self.variants.get(id(function), {})
        found = {w: layouts_in(f).get(name) for w, (_, f) in own.items()}
        found = {w: layout for w, layout in found.items() if layout is not None}
        return found if len({*found.values()}) > 1 else {}

    def dimensions(self, function: Function, name: str, layout) -> str:
        """The dimensions of a tensor in words."""
        layouts = self.varying(function, name)
        if not layouts:
            return super().dimensions(function, name, layout)
        texts: dict[str, list[str]] = {}
        for word in reversed(layouts):
            texts.setdefault(self.printer(function).written(layouts[word]), []).append(word)
        first, *others = texts.items()
        said = (f"{text} for {quoted(words, ' and ')}" for text, words in others)
        return ", ".join([first[0], *said])


def _every_function(program: Program) -> list[Callable[[Program], Function]]:
    """How each of the functions is found in a program like this one."""
    found = [lambda p: p.forward, lambda p: p.backward, lambda p: p.atoms, lambda p: p.chain]
    if program.second is None:
        return found
    found += [lambda p: p.second.behind, lambda p: p.second.jvp, lambda p: p.second.double]
    found += [lambda p: p.second.pullback] * (program.second.pullback is not None)
    places = range(len(program.second.third))
    return [*found, *(lambda p, i=i: p.second.third[i].function for i in places)]
