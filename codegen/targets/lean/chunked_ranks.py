"""The module that computes in chunks of one axis what is split over ranks along another: the public
function opens the ranks' block, in which everything else stands.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.chunking import Chunked
from codegen.program import NUMBERS, Parameter
from codegen.program.steps import Default
from codegen.sharding.lengths import Lengths
from codegen.targets.lean.chunked import ChunkedPage, PlainChunks
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.plain import FunctionText
from codegen.targets.torch.functions import layouts_in
from codegen.targets.torch.lines import STEP
from codegen.targets.torch.shard_printer import ShardPrinter
from codegen.targets.torch.wrapping import in_tuple, public, wrapped
from derive.language.errors import QuestionError
from derive.language.notation.layout import Layout
from derive.language.symbols import Axes


class ChunkedPageOfRanks(ChunkedPage):
    """The functions of one rank; ``axis`` is the one that is split."""

    def __init__(self, chunked: Chunked, pair: Pair, plain: PlainChunks | None = None):
        forward, axes = pair.program.forward, chunked.groups.of_ranks
        groups = replace(chunked.groups, axes=axes, of={axis: axis for axis in axes})
        self.lengths = Lengths(pair.program, forward, groups)
        self.late = [s for s in forward.checks if self.lengths.asks_for_all(s)]
        for step in (*self.late, *forward.steps):
            if isinstance(step, Default) and self.lengths.asks_for_all(step):
                raise QuestionError(
                    f"{chunked.program.name} cannot be computed in chunks of ranks: the default of"
                    f" {step.name} is of the length of all parts together",
                    "ask for --shard or --chunk alone",
                )
        own = tuple(s for s in forward.checks if s not in self.late)
        program = replace(pair.program, forward=replace(forward, checks=own))
        super().__init__(chunked, replace(pair, program=program), plain)
        self.axis, self.over = groups.axes[0], self.ranks[0]

    def entries(self) -> list[FunctionText]:
        return [self.public(), self.entry()]

    def public(self) -> FunctionText:
        """The function with a group, whose ranks are told of an error on one of them."""
        entry, tensors = super().entry(), self.program.forward.tensors
        arguments = [*public(self.program.forward.parameters), *self._further]
        shown = ", ".join(p.name for p in tensors)
        met = f"mesh, (group,), ({shown},), misplaced = _ranks.local_parts"
        places = [in_tuple([p.name, self._place(p.layout)]) for p in tensors]
        names = [argument.partition(":")[0] for argument in arguments]
        first = names.index("*") if "*" in names else len(names)  # of those by keyword
        passed = [self.over, *names[:first], *(f"{name}={name}" for name in names[first + 1 :])]
        (output,) = self.outputs
        found = [output, "mesh", f"({self._place(layouts_in(self.program.forward)[output])},)"]
        return FunctionText(
            wrapped(f"def {self.name}", [*arguments, "group=None"], f" -> {self._kind}:"),
            entry.doc,
            (
                wrapped(met, [f'"{self.name}"', "(group,)", *places], indent=len(STEP)),
                f'with _ranks.Ranks("{self.name}", group) as {self.over}:',
                f"{STEP}_ranks.in_place(misplaced)",
                STEP + wrapped(f"{output} = {self._entry_name}", passed, indent=len(STEP + STEP)),
                wrapped("return _ranks.distributed", [*found, self._met(output)], indent=len(STEP)),
            ),
        )

    @property
    def _entry_name(self) -> str:
        return f"{self.name}_of_rank"

    @property
    def _entry_first(self) -> list[str]:
        return [f"{self.over}"]

    def _met(self, output: str) -> str:
        """The ranks that an output is split over."""
        return f"({self.over},)"

    def _place(self, layout: Layout) -> str:
        """The dimension that is split, counted from the end after an axis of several dimensions."""
        split = self.chunked.groups.at_home(layout)
        if not any(split):
            return "None"
        place = next(i for i, group in enumerate(split) if group)
        behind = any(isinstance(dim.axis, Axes) for dim in layout[:place])
        return str(place - len(layout) if behind else place)

    def _options(self) -> list[str]:
        """The ranks compare what has to be alike, before anything optional is filled in."""
        tensors = self.program.forward.tensors
        split = [p for p in tensors if self._is_split(p) and p.default is None]
        first, inputs = split[0].name, ", ".join(p.name for p in self.inner if p.role == "input")
        named = [p.name for p in tensors if p.default is None]
        kinds = ", ".join(f"{name}.dtype" for name in named)
        left_out = {p.name: f"{p.name} is not None and " for p in tensors if p.default is not None}
        names = [p.name for p in self.inner if p.role == "input"]
        flags = ", ".join(f"{left_out.get(name, '')}{name}.requires_grad" for name in names)
        alike = [f"{self.own['chunk']}={self.own['chunk']}", f"dtypes=[{kinds}]"]
        alike += [f"requires_grad=[{flags}]"]
        alike += [self._alike(p) for p in self.program.forward.parameters]
        given = [first, f"{first}.shape[{self._place(split[0].layout)}]", *filter(None, alike)]
        begun = wrapped(f"{self.over}.begin", given, indent=len(STEP))
        printer = self.printer(self.program.forward)
        over = dict(zip(self.lengths.groups.axes, self.ranks, strict=True))
        printer = ShardPrinter(printer, over, self.lengths, over)
        late = [printer.step(self.lengths.with_all(step)) for step in self.late]
        late = [*self._begun(), *late]
        return [f"{self.over}.differentiated({inputs})", begun, *late, *super()._options()]

    def _begun(self) -> list[str]:
        """Lines behind the one in which the ranks meet."""
        return []

    def _is_split(self, p: Parameter) -> bool:
        """True for what lies along the axis of which each rank has a part."""
        return self.axis in self.chunked.groups.split(p.layout)

    def _alike(self, p: Parameter) -> str:
        if p.role in NUMBERS:
            return f"{p.name}={p.name}"
        if p.default is not None:
            return f"{p.name}={p.name} is not None"
        if self._place(p.layout) == "None":
            return f"{p.name}={p.name}"
        others = [f"*{p.name}.shape[:{self._place(p.layout)}]"]
        place = int(self._place(p.layout))
        others += [f"*{p.name}.shape[{place + 1}:]"] * (place != -1)
        return f"{p.name}={in_tuple(others)}"

    # -- labels ------------------------------------------------------------------------------

    def _whole_size(self, axis: str) -> str:
        sizes = dict(self.program.sizes)
        pairs = zip(self.lengths.groups.axes, self.ranks, strict=True)
        found = (f"{over}.size" for own, over in pairs if sizes[own] == sizes[axis])
        return next(found, super()._whole_size(axis))
