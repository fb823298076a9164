"""What a module tells the runtime of its pair, as text."""

from __future__ import annotations

from codegen.lowering.differentiated import lines_to_differentiate
from codegen.program import NUMBERS
from codegen.program.steps import Assign
from codegen.program.values import Load
from codegen.targets.torch.lines import broken
from codegen.targets.torch.pairs import Pairs
from codegen.targets.torch.printed import Core
from codegen.targets.torch.wrapping import in_tuple, wrapped
from derive.notation.definition import IGNORE_INDEX

KINDS = ("behind", "pullback")  # the functions of the second order


class Autograd(Pairs):
    """The declaration of the pair, and the lines of the shorter one."""

    def declared(self) -> str:
        """``_pair = _runtime.Pair(...)``."""
        program, forward = self.program, self.program.forward
        made = {step.name for step in forward.steps}
        steps = [step for pair in self.pairs for step in pair.program.forward.steps]
        views = [s.name for s in steps if isinstance(s, Assign) and isinstance(s.value, Load)]
        seen = {result for pair in self.pairs for result in pair.program.forward.results[1:]}
        names = {
            "numbers": [p.name for p in self._every_parameter() if p.role in NUMBERS],
            "optional": [
                p.name for p in forward.parameters if p.role == "input" and p.default is not None
            ],
            "views": [
                *(name for name in dict.fromkeys(views) if name in seen),
                *[forward.results[0]] * bool(seen.intersection(self.entries_of_all)),
            ],
            "made": [p.name for p in forward.parameters if p.name in made],
        }
        functions = [in_tuple(pair.functions_of(name)) for pair, name in self._named_pairs()]
        items = [f'"{program.name}"', lines_to_differentiate(program).name, functions[0]]
        items += [f'{word}="{" ".join(found)}"' for word, found in names.items() if found]
        if self.plain is not None:
            items.append(f"plain=(_takes_plain, {functions[1]})")
        if self.third:
            again = [in_tuple(pair.third_of(name)) for pair, name in self._named_pairs()]
            items.append(f"again={in_tuple(again)}")
        items += ["by_lines=True"] * self.by_lines
        return wrapped("_pair = _runtime.Pair", items)

    @property
    def entries_of_all(self) -> set[str]:
        """What is the output by another name, in any pair."""
        return set().union(*(pair.entries for pair in self.pairs))

    def _named_pairs(self) -> list[tuple[Pairs, str]]:
        return list(zip(self.pairs, ("", "_plain"), strict=False))

    def _every_parameter(self) -> list:
        """Those of all functions, each once."""
        found = {}
        for pair in self.pairs:
            for function in (pair.program.forward, pair.program.backward):
                found |= {p.name: p for p in function.parameters}
        return list(found.values())

    def functions_of(self, name: str) -> list[str]:
        """The names of the functions that a rule is made of."""
        second = self.program.second
        there = (second is not None, second is not None and second.pullback is not None)
        found = [f"{name}_forward", f"{name}_backward"]
        return found + [
            f"{name}_{kind}" for kind, is_there in zip(KINDS, there, strict=True) if is_there
        ]

    def third_of(self, name: str) -> list[str]:
        """The functions of the third order, each with the places of the vectors that it takes."""
        second, found = self.program.second, []
        tensors = [p.name for p in self.program.backward.parameters[1:] if p.role not in NUMBERS]
        cotangents = ((c, tensors.index(of) + 1) for of, c in second.cotangents)
        places = [{second.behind.results[0]: 0, **dict(cotangents)}]
        if second.pullback is not None:
            places.append({result: i for i, result in enumerate(second.pullback.results)})
        for kind, again, place in zip(KINDS, second.third, places, strict=False):
            taken = in_tuple([str(place[of]) for of, _ in again.vectors])
            found.append(f"({name}_{kind}_again, {taken})")
        if len(found) < len(places):
            found.append("()")
        return found

    def takes_plain(self) -> str:
        """When the shorter pair is taken; nothing where there is none."""
        plain = self.program.plain
        if plain is None:
            return ""
        printer = self.printer(self.program.forward)
        tests = [f"{name} is None" for name in plain.absent]
        tests += [f"{name} == 0" for name in plain.zero]
        for step in plain.counting:
            lengths = "".join(f", {printer.text(length)}" for length in step.lengths)
            tests.append(f"_runtime.all_count({step.name}, {IGNORE_INDEX}{lengths})")
        return " and ".join(tests)

    def plain_pair(self) -> tuple[Core, ...]:
        """The lines of the shorter pair, and when it is taken."""
        if self.plain is None:
            return ()
        page, pair = self.plain, self.plain.program
        test = broken(f"return {self.takes_plain()}")
        return (
            Core(wrapped("def _takes_plain", [self.inputs], " -> bool:"), (), test),
            page.core(pair.forward, "_plain_forward", returned=pair.forward.results),
            page.core(
                pair.backward, "_plain_backward", [page.needs], returned=pair.backward.results
            ),
            *page.second_cores("_plain"),
        )
