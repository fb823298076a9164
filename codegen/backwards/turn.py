"""The turn of a trace from forward to backward: outputs are known, upstreams arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from codegen.importing.asked import GIVEN
from codegen.importing.reader import Declared, Reader
from codegen.importing.values import Dims, TracedStatement, TreeValue
from derive.language.torch_ops import trees

BACKWARD = "backward_"  # prefix of names in the backward


@dataclass
class Turn:
    """A turn: ``made`` are the forward's statements, ``ahead`` these with the ones for the outputs
    ``ys``, which lie ``along``; the upstream gradients stand at ``places``, and are ``called`` by
    the backward's names.
    """

    reader: Reader
    places: Sequence[torch.fx.Node]
    ys: Sequence[torch.fx.Node]
    called: Sequence[str] = ()
    made: list[TracedStatement] = field(default_factory=list)
    ahead: list[TracedStatement] = field(default_factory=list)
    along: list[Dims] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)  # of upstream gradients, as called

    def arrive(self) -> None:
        reader = self.reader
        self.made = [*reader.statements]
        outputs = [reader.as_output(reader.values[y]) for y in self.ys]
        self.along = [output.dims for output in outputs]
        arriving = self._of_one(outputs[0]) if len(outputs) == 1 else self._of_several(outputs)
        self.ahead = [*reader.statements]
        reader.values |= dict(zip(self.places, arriving, strict=True))
        reader.statements, reader.prefix, reader.sizes.are_given = [], BACKWARD, True

    def _of_one(self, output: TreeValue) -> list[TreeValue]:
        self.reader.finish(output)
        name = f"d{self.reader.statements[-1].name}"
        self.reader.sizes.taken.add(name)
        (self.names[name],) = self.called_of(1)
        return [_arriving(name, output)]

    def called_of(self, count: int) -> list[str]:
        """The user's names of the upstream gradients."""
        named = [name for name in self.called if not name.startswith("*")]
        rest = next((name[1:] for name in self.called if name.startswith("*")), "grad_outputs")
        return [*named[:count], *(f"{rest}[{i}]" for i in range(count - len(named)))]

    def _of_several(self, outputs: Sequence[TreeValue]) -> list[TreeValue]:
        """One loss: the sum of all outputs, each times its upstream gradient."""
        called = self.called_of(len(outputs))
        names = [self.reader.free_name(name) for name in called]
        self.names = dict(zip(names, called, strict=True))
        pairs = [*zip(names, outputs, strict=True)]
        arriving = [_arriving(name, output) for name, output in pairs]
        self.reader.declared += [Declared(name, output.dims, GIVEN) for name, output in pairs]
        self.reader.finish(_total(outputs, arriving))
        return arriving


def give_sizes(reader: Reader, places: Sequence, ys: Sequence) -> None:
    """Give upstream gradients in the trace the sizes of the outputs."""
    for place, y in zip(places, ys, strict=True):
        for size, own in zip(place.meta["val"].shape, y.meta["val"].shape, strict=True):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                reader.sizes.symbols.setdefault(size.node.expr, reader.sizes.plain(own))


def _arriving(name: str, output: TreeValue) -> TreeValue:
    return TreeValue(trees.tensor(name, output.axes), output.dims)


def _total(outputs: Sequence[TreeValue], arriving: Sequence[TreeValue]) -> TreeValue:
    tree = trees.ZERO
    for output, up in zip(outputs, arriving, strict=True):
        term = trees.total(trees.product(up.tree, output.tree), output.axes)
        tree = trees.sum_of(tree, term)
    return TreeValue(tree)
