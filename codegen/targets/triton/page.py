"""The plain functions of a lean module on kernels in Triton, which take 16 bits as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from codegen.program import Function, Parameter
from codegen.targets.lean.pair import Pair
from codegen.targets.tables.lines import Loops
from codegen.targets.tables.page import KernelPage
from codegen.targets.torch.wrapping import wrapped
from codegen.targets.triton.kernels import Kernel, kernels_of


class TritonPage(KernelPage):
    """Tensors are made wider only beside lines of torch."""

    def __init__(self, pair: Pair, taken: frozenset[str]):
        super().__init__(pair, taken, kernels_of)

    @property
    def is_narrow(self) -> bool:
        """Whether kernels alone compute the function that is being written."""
        return len(self.current.kernels) == len(self.current.pieces)

    def _widened(self, tensors: Sequence[Parameter]) -> list[str]:
        given = [p for p in tensors if p.role == "given"]  # masks may be of any format
        return super()._widened(given if self.is_narrow else tensors)

    def returned(self, name: str) -> str:
        return name if self.is_narrow else super().returned(name)

    def memory_for(self, loops: Loops, piece: Kernel, name: str, shape: Sequence[str]) -> str:
        """In the dtype of the inputs, or of the argument that a gradient is of; what is passed on,
        or is a part of a loss, is not rounded.
        """
        function = loops.function
        like, dtype = self.printer(function).like, ""
        if name in piece.left:
            sizes = ", ".join(f"{size}={size}" for size in piece.sizes)
            shape = [f"{piece.name}.parts({sizes})", *shape]
        if self.is_narrow:
            like, dtype = self._format(loops, name, name in (*piece.exact, *piece.left))
        given = ", ".join(shape) or "()"
        return f"{like}.new_empty({given}{f', dtype={dtype}' if dtype else ''})"

    def _format(self, loops: Loops, name: str, exact: bool) -> tuple[str, str]:
        """A tensor of the format, or any and the format."""
        function, result = loops.function, self._result(loops, name)
        like = self.printer(function).like
        if loops is self.at_once and not exact:
            own = result.removeprefix("d")
            return (like, self.both) if result in self.outputs else (own, f"unscaled({own})")
        if exact or (self.outside.reductions and result in self.outputs):
            return like, self.wide
        if self._is_forward(loops):
            return (like, "") if len(self.floats) == 1 else (like, self.both)
        own = {p.name for p in function.parameters}
        if result.removeprefix("d") in own:
            return result.removeprefix("d"), ""
        upstream = self.program.upstreams[0]
        is_long = len(self._layout(result)) >= len(upstream.layout)
        return (upstream.name, "") if is_long else (like, self.wide)

    def _result(self, loops: Loops, name: str) -> str:
        return next((result for result, node in loops.flat.results if node == name), name)

    def _layout(self, result: str) -> Sequence[object]:
        inputs = {f"d{p.name}": p.layout for p in self.program.forward.parameters}
        return inputs.get(result, ())

    def launched(self, piece: Kernel, named: Callable[[str], str], margin: int) -> Iterator[str]:
        arrays = [*map(named, (*piece.reads, *piece.writes))]
        numbers = [f"{name}={name}" for name in (*piece.sizes, *piece.scalars)]
        numbers += [f"{number.name}={number.text}" for number in piece.computed]
        yield wrapped(piece.name, [*arrays, *numbers], indent=margin)

    def loss_at_once(self) -> str:
        return self.outputs[0] if self.is_narrow else super().loss_at_once()

    def multiplies_matrices(self, function: Function) -> bool:
        return not self.is_narrow and super().multiplies_matrices(function)
