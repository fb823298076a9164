"""What a module tells the runtime of its pair, as text."""

from __future__ import annotations

from codegen.lowering.differentiated import lines_to_differentiate
from codegen.program.steps import Assign
from codegen.program.values import Load
from codegen.targets.torch.lines import LONGEST, STEP
from codegen.targets.torch.pairs import Pairs
from codegen.targets.torch.printed import Core
from derive.notation.definition import IGNORE_INDEX


class Autograd(Pairs):
    """The declaration of the pair, and the lines of the shorter one."""

    def declared(self) -> str:
        """``_pair = _runtime.Pair(...)``, with the notation of its names."""
        program = self.program
        named = {
            "views": " ".join(self._views()),
            "late": " ".join(step.name for step in self.left_to_torch()),
            "outputs": " ".join(program.outputs) if len(program.outputs) > 1 else "",
            "differentiated": lines_to_differentiate(program).name.removeprefix(f"{program.name}_"),
        }
        named["differentiated"] = named["differentiated"].replace("forward", "")  # as is usual
        more = [f'{word}="{said}"' for word, said in named.items() if said]
        more += ["by_lines=True"] * self.by_lines
        lines = [f"{STEP}{line}" for line in self.notation()]
        end = ", ".join(['"""', *more]) if more else '"""'
        if len(end) + 1 > LONGEST:
            end = '""", ' + ",\n    ".join(more)
        return "\n".join([f'_pair = _runtime.Pair("{program.name}", """', *lines, f"{end})"])

    def _views(self) -> list[str]:
        """What is another value by a new name."""
        steps = [step for pair in self.pairs for step in pair.program.forward.steps]
        views = [s.name for s in steps if isinstance(s, Assign) and isinstance(s.value, Load)]
        seen = {result for pair in self.pairs for result in pair.program.forward.results[1:]}
        if len(self.program.outputs) > 1:
            seen |= {self.program.outputs[0]}
            views = [name for name in views if name not in self.program.outputs]
        entries = set().union(*(pair.entries for pair in self.pairs))
        output = [self.program.outputs[0]] * bool(seen.intersection(entries))
        views += self._returned_twice()
        return [*(name for name in dict.fromkeys(views) if name in seen), *output]

    def _returned_twice(self) -> list[str]:
        """Of several outputs those that are an argument, or another result, by a new name."""
        forward, found = self.program.forward, []
        if len(self.program.outputs) == 1:
            return []
        seen = {*forward.results, *(p.name for p in forward.parameters)}
        for step in forward.steps:
            loads = isinstance(step, Assign) and isinstance(step.value, Load)
            if loads and step.name in self.program.outputs and step.value.name in seen:
                found.append(step.name)
            seen |= {step.value.name} if loads and step.name in self.program.outputs else set()
        return found

    def takes_plain(self) -> str:
        """When the shorter pair is taken."""
        plain = self.program.plain
        printer = self.printer(self.program.forward)
        tests = [f"{name} is None" for name in plain.absent]
        tests += [f"{name} == 0" for name in plain.zero]
        for step in plain.counting:
            lengths = "".join(f", {printer.text(length)}" for length in step.lengths)
            tests.append(f"_runtime.all_count({step.name}, {IGNORE_INDEX}{lengths})")
        return " and ".join(tests)

    def special(self) -> str:
        """``_plain = _pair.special(...)``."""
        line = f"_plain = _pair.special(lambda {self.inputs}: {self.takes_plain()})"
        if len(line) <= LONGEST:
            return line
        first, *others = self.takes_plain().split(" and ")
        lines = [f"    lambda {self.inputs}: {first}", *(f"    and {test}" for test in others)]
        return "\n".join(["_plain = _pair.special(", *lines, ")"])

    def plain_pair(self) -> tuple[Core, ...]:
        """The lines of the shorter pair."""
        page, pair = self.plain, self.plain.program
        pairs = (("forward", pair.forward), ("backward", pair.backward))
        return (
            *(
                page.declared_core(f, f"_plain_{kind}", f"@_plain.{kind}", f.results)
                for kind, f in pairs
            ),
            *page.cores_alone("_plain", "_plain"),
            *page.second_cores("_plain", "_plain"),
        )
