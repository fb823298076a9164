"""The plain functions of a lean module on Triton kernels, which take 16 bits as they are.

So do matrix products and convolutions, for which torch accumulates in float32: their operands have
the dtype of the arguments. Other lines of torch compute in float32 at least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from codegen.program import Parameter
from codegen.program.arrays import Contract, ContractAdd
from codegen.program.reads import Convolve
from codegen.schedule.nodes import LibraryNode
from codegen.targets.lean.pair import Pair
from codegen.targets.lean.plain import promoted
from codegen.targets.tables.page import FunctionOnKernels, KernelPage
from codegen.targets.torch.lines import broken
from codegen.targets.torch.wrapping import free, wrapped
from codegen.targets.triton.kernels import TritonKernel, kernels_of

PRODUCTS = (Contract, ContractAdd, Convolve)


class TritonPage(KernelPage):
    """Tensors are converted to float32 only beside lines of torch that are no products."""

    def __init__(self, pair: Pair, taken: frozenset[str]):
        super().__init__(pair, taken, kernels_of)
        self.own["operand"] = free("operand", taken)

    @property
    def operands(self) -> frozenset[str]:
        """Operands of products, if the function has no other line of torch."""
        wholes = [piece for piece in self.current.pieces if isinstance(piece, LibraryNode)]
        if not all(isinstance(piece.value, PRODUCTS) for piece in wholes):
            return frozenset()
        return frozenset().union(*(piece.reads for piece in wholes))

    def _widened(self, tensors: Sequence[Parameter]) -> list[str]:
        given = [p for p in tensors if p.role == "given"]  # masks may be of any format
        if self.is_narrow:  # which read 16 bits as they are
            pairs = [f"floating({p.name}, {self.wide})" for p in given]
            line = f"{', '.join(p.name for p in given)} = {', '.join(pairs)}"
            return [broken(line)] if given else []
        if not self.operands:
            wholes = [piece for piece in self.current.pieces if isinstance(piece, LibraryNode)]
            read = frozenset().union(*(piece.reads for piece in wholes))
            kept = [p for p in self.current.function.parameters if p.role == "statement"]
            more = [p for p in kept if p.name in read and p not in tensors]  # a forward's operand
            return super()._widened([*tensors, *more])
        kept = [p for p in self.current.function.parameters if p.role == "statement"]
        every = dict.fromkeys((*tensors, *kept))  # values saved by lines are in float32
        own = [p for p in every if p.name in self.operands and p.role not in self.indices]
        floats = [p for p in tensors if p.role in ("input", "adjoint")]
        deciding = [p.name for p in own if p in floats] or [p.name for p in floats]
        names = ", ".join(p.name for p in own)
        converted = ", ".join(f"{p.name}.to({self.own['operand']})" for p in own)
        lines = [broken(f"{self.own['operand']} = {promoted(deciding)}")]
        lines += [broken(f"{names} = {converted}")] if len(own) > 1 else []
        return [*lines, *super()._widened([p for p in given if p not in own])]

    def memory_for(
        self, loops: FunctionOnKernels, piece: TritonKernel, name: str, shape: Sequence[str]
    ) -> str:
        """The allocation of a result; partial results have their number before their sizes."""
        if name in piece.left:
            sizes = ", ".join(f"{size}={size}" for size in piece.sizes)
            shape = [f"{piece.name}.parts({sizes})", *shape]
        return super().memory_for(loops, piece, name, shape)

    def format_of(
        self, loops: FunctionOnKernels, piece: TritonKernel, name: str
    ) -> tuple[str, str]:
        if name in self.operands:
            return self.like, self.own["operand"]
        if self.operands:
            return self._format(loops, name, name in (*piece.exact, *piece.left))
        return super().format_of(loops, piece, name)

    def launched(
        self, piece: TritonKernel, named: Callable[[str], str], margin: int
    ) -> Iterator[str]:
        arrays = [*map(named, (*piece.reads, *piece.writes))]
        numbers = [f"{name}={name}" for name in (*piece.sizes, *piece.scalars)]
        numbers += [f"{number.name}={number.text}" for number in piece.computed]
        yield wrapped(piece.name, [*arrays, *numbers], indent=margin)
