"""A module whose axes are split over ranks, as text for its template."""

from __future__ import annotations

import re
from collections.abc import Sequence

from codegen.program import NUMBERS, Function, Parameter
from codegen.sharding import FOUR, Sharded
from codegen.sharding.lengths import Lengths
from codegen.targets.torch.asking import Asking, AskingFunction, Core
from codegen.targets.torch.checks import restored, size_lines
from codegen.targets.torch.lines import LONGEST, STEP, broken
from codegen.targets.torch.shard_printer import ShardPrinter
from codegen.targets.torch.wrapping import (
    WITHIN,
    free,
    in_tuple,
    public,
    wrapped,
)
from derive.language.errors import QuestionError
from derive.language.notation.layout import Layout
from derive.language.symbols import Axes

PASSED = ("input", "given", "label", "adjoint")  # the roles of tensors that a user passes


class ShardedPage(Asking):
    """The functions of one rank as text."""

    def __init__(self, sharded: Sharded):
        super().__init__(sharded.program)
        self.sharded, self.groups = sharded, sharded.groups
        self.lengths = Lengths(self.program, self.program.forward, self.groups)
        taken = {*self.sizes.values(), *self.dims.values()}
        for function in self.functions:
            taken |= {p.name for p in function.parameters} | {step.name for step in function.steps}
        axes = self.groups.axes
        self.over = {axis: free(f"over_{axis.lower()}", taken) for axis in axes}
        one = len(axes) == 1
        self.group = {
            axis: free("group" if one else f"group_{axis.lower()}", taken) for axis in axes
        }
        self.whole = {self.sizes[axis]: f"{self.over[axis]}.size" for axis in axes}
        self.misplaced = free("misplaced", taken)

    def printer(self, function: Function) -> ShardPrinter:
        printer = ShardPrinter(super().printer(function), self.over, self.lengths, self.groups.of)
        given = {p.name for p in function.parameters}
        for axis, code in self.sizes.items():
            if axis not in self.groups.of and code in self.whole:  # met under another name
                printer.sizes[axis] = self.whole[code]
            made_of = self.lengths.of_parts(axis)
            if made_of:  # whole, of parts of which one is split
                product = [self.whole.get(self.sizes[part], self.sizes[part]) for part in made_of]
                printer.sizes[axis] = f"({' * '.join(product)})"
            group = self.groups.of.get(axis, axis)
            parts = self.lengths.flattened.get(group, [])
            if axis in parts and code in given:  # passed as it is on all ranks together
                others = [self.sizes[part] for part in parts if part != axis]
                printer.sizes[axis] = f"({' // '.join([self.length_of(function, group), *others])})"
        return printer

    # -- ranks --------------------------------------------------------------------

    def meets(self, function: Function, again: bool = False) -> dict[str, bool]:
        """True for each axis whose ranks communicate; ``again``: with the lengths of all parts
        known before.
        """
        kinds = {axis: set() for axis in self.groups.axes}
        for exchange in self.sharded.exchanges[self.kind_of(function)]:
            kinds[exchange.group].add(exchange.kind)
        return {
            axis: bool(found - ({"agreed"} if again else set())) for axis, found in kinds.items()
        }

    def places(self, layout: Layout) -> list[str]:
        """For each group the dimension of a tensor that is split over it, or None: counted from the
        end after an axis of several dimensions.
        """
        split = self.groups.split(layout)
        several = [i for i, dim in enumerate(layout) if isinstance(dim.axis, Axes)]
        found = []
        for axis in self.groups.axes:
            place = split.index(axis) if axis in split else None
            behind = place is not None and several and place > several[0]
            found.append(str(place - len(layout) if behind else place))
        return found

    def kind_of(self, function: Function) -> str:
        return next(kind for kind in FOUR if getattr(self.program, kind) is function)

    def meets_ever(self) -> dict[str, bool]:
        """True for each axis whose ranks communicate in the forward or backward: then they compare
        arguments in the forward even if it tells nothing, because a backward cannot be called off.
        """
        now = self.meets(self.program.forward)
        later = self.meets(self.program.backward, again=True)
        return {axis: now[axis] or later[axis] for axis in self.groups.axes}

    def as_met(self, function: Function) -> list[str]:
        """The axes whose group communicates last come first: a rank that raises leaves the blocks
        from the inside, and tells the groups in the order in which the others meet them.
        """
        exchanges = self.sharded.exchanges[self.kind_of(function)]
        met = [*dict.fromkeys(exchange.group for exchange in exchanges)]
        return [*(axis for axis in self.over if axis not in met), *met[::-1]]

    def within(
        self, function: Function, lines: Sequence[str], name: str = "", ever: bool = False
    ) -> list[str]:
        """``lines`` inside the blocks of the ranks; ``ever`` if a backward may follow."""
        name, meets = name or function.name, self.meets_ever() if ever else self.meets(function)
        withs = [
            f'_ranks.Ranks("{name}", {self.group[axis]}, {meets[axis]}) as {self.over[axis]}'
            for axis in self.as_met(function)
        ]
        inside = [
            line.replace("\n", f"\n{STEP}") if "\n" in line else broken(line, WITHIN)
            for line in lines
        ]
        groups = ", ".join(f"{group}={group}" for group in self.group.values())
        several = [f'_ranks.apart("{name}", {groups})'] * (len(withs) > 1)
        opened = f"with {', '.join(withs)}:"
        if len(STEP + opened) > LONGEST:
            opened = f"with (\n{WITHIN}" + f",\n{WITHIN}".join(withs) + f",\n{STEP}):"
        return [*several, f"\n{WITHIN}".join([opened, *inside])]

    def begun(self, function: Function) -> list[str]:
        """Lines that begin a call for each group: the length of the part, and shared values."""
        lines = []
        for axis, over in self.over.items():
            place = self.length_of(function, axis)
            if not place:
                raise QuestionError(
                    f"{function.name} cannot know the length of its part of {axis}: none of its"
                    " arguments has that axis",
                    "split another axis",
                )
            like = next(p.name for p in function.parameters if self.always_there(p))
            line = wrapped(
                f"{over}.begin", [like, place, *self.alike(function, axis)], indent=len(WITHIN)
            )
            lines.append(line.replace(f"\n{STEP}", "\n"))  # it comes to stand deeper
        return lines

    def wanting(self) -> list[str]:
        """Tell each group that communicates in the backward whether there will be one."""
        later = self.meets(self.program.backward, again=True)
        inputs = ", ".join(self.of_role("input"))
        return [f"{over}.differentiated({inputs})" for a, over in self.over.items() if later[a]]

    def alike(self, function: Function, axis: str) -> list[str]:
        """Values that must agree on all ranks of the group of an axis, by name: the dtype, the
        lengths of other axes, numbers, tensors that do not lie along it, and which are passed.
        Tensors that the forward saved for the backward are not compared.
        """
        flattened = self.lengths.flattened.get(axis, [])
        own, found = set(self.whole), {}  # names that differ from rank to rank
        if function is not self.program.backward:
            found[self.dtype] = self.dtype
        for other, code in self.sizes.items():
            split = self.groups.of.get(other) == axis
            put_together = bool(self.lengths.of_parts(other))
            if put_together or (split and other not in flattened):
                own.add(code)
            elif not split and code != self.sizes[axis]:
                found.setdefault(code, self.dims.get(other) or self.length_of(function, other))
        for p in function.parameters:
            if p.role in NUMBERS:
                found |= {} if p.name in own else {p.name: p.name}
            elif p.role in PASSED and axis not in self.groups.split(p.layout):
                found[p.name] = p.name
            elif p.default is not None:
                found[p.name] = f"{p.name} is not None"
        return [f"{name}={value}" for name, value in found.items() if value]

    def always_there(self, p: Parameter) -> bool:
        return p.role not in NUMBERS and p.default is None

    def length_of(self, function: Function, axis: str) -> str:
        """The text of an axis's length in a function; empty if it has none."""
        for p in filter(self.always_there, function.parameters):
            for place, dim in enumerate(p.layout):
                if dim.axis.name == axis and not dim.one:
                    return f"{p.name}.shape[{place}]"
        given = [p.name for p in function.parameters if p.name == self.sizes[axis]]
        return given[0] if given else ""

    # -- functions ------------------------------------------------------------------

    def arguments(self, function: Function) -> list[str]:
        groups = [f"{group}=None" for group in self.group.values()]
        return [*super().arguments(function), *groups]

    def forward(self) -> AskingFunction:
        return self.one(self.program.forward, [self.prepared], 1)

    def backward(self) -> AskingFunction:
        function = self.program.backward
        return self.one(function, self.asked(function), len(function.results))

    def atoms(self) -> AskingFunction:
        return self.one(self.program.atoms, [self.prepared])

    def chain(self) -> AskingFunction:
        function = self.program.chain
        begun = self.begun(self.program.forward)
        return self.one(function, [self.prepared, *begun, *self.asked(function)], begun=False)

    def one(
        self, function: Function, asked: Sequence[str], rounded: int = 0, begun: bool = True
    ) -> AskingFunction:
        """A function that checks its arguments, and the lines behind it."""
        name = function.name.removeprefix(self.program.name)
        arguments = [*self.over.values(), *(p.name for p in function.parameters)]
        called = wrapped(f"{self.result} = {name}", arguments, indent=4)
        lines = self.within(function, [*asked, *(self.begun(function) if begun else ()), called])
        returned = self.restored(function, f"{self.result}.", rounded=rounded)
        return self.function(function, lines, returned, self.one_core(function, name))

    def one_core(self, function: Function, name: str, returned: Sequence[str] = ()) -> Core:
        core = self.core(function, name, returned=returned)
        arguments = [*self.over.values(), *(p.name for p in function.parameters)]
        uncast = "@_runtime.uncast\n" * self.multiplies_matrices(function)
        kind = "tuple" if returned else function.result_class
        return Core(
            uncast + wrapped(f"def {name}", arguments, f" -> {kind}:"),
            core.lines,
            core.returned,
        )

    def lines(self, function: Function) -> list[str]:
        """As for any function, without guards; unused sizes are left out."""
        printer = self.printer(function)
        named = {name for name, _ in function.sizes}
        steps = [printer.step(step) for step in function.steps]
        sizes = [
            (name, line)
            for name, length in function.sizes
            for line in size_lines(printer, name, length)
        ]
        text, kept = "\n".join([*steps, *function.results]), []
        for name, line in reversed(sizes):
            if name not in named or re.search(rf"(?<![.\w]){name}\b", text):
                kept.append(line)
                text += f"\n{line}"
        return [*kept[::-1], *steps]

    def public(self) -> Core:
        """The differentiable function."""
        program, function = self.program, self.program.forward
        output, layout = function.results[0], program.backward.parameters[0].layout
        arguments = [f"{group}=None" for group in self.group.values()]
        given = ", ".join([in_tuple([*self.over.values()]), self.inputs])
        called = f"{output} = {program.title}Function.apply({given})"
        lines = [f'_inputs.without_gradient("{name}", {name})' for name in self.of_role("given")]
        lines = [f"_ranks.in_place({self.misplaced})", *lines, self.prepared, *self.wanting()]
        lines += [*self.begun(function), broken(called, WITHIN)]
        whole = f"{restored(self.printer(function), output, layout)}.to({self.dtype})"
        groups, overs = ([*of.values()] for of in (self.group, self.over))
        tensors = [p for p in function.parameters if p.role not in NUMBERS]
        places = [in_tuple([p.name, *self.places(p.layout)]) for p in tensors]
        names = ", ".join(p.name for p in tensors)
        met = f"mesh, {in_tuple(groups)}, ({names},), {self.misplaced}"
        given = [f'"{program.name}"', in_tuple(groups), *places]
        local = wrapped(f"{met} = _ranks.local_parts", given, indent=4)
        returned = [whole, "mesh", in_tuple(self.places(layout)), in_tuple(overs)]
        parameters = [*public(function.parameters), *arguments]
        return Core(
            wrapped(f"def {program.name}", parameters, " -> Tensor:"),
            (local, *self.within(function, lines, program.name, ever=True)),
            wrapped("return _ranks.distributed", returned, indent=4),
        )
