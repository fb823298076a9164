"""What the template of a module prints: records of which every field is text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Core:
    """A function as its lines alone: its ``def``, what stands in it, what it returns."""

    signature: str
    lines: tuple[str, ...]
    returned: str


@dataclass(frozen=True)
class Behind:
    """What a `torch.autograd.Function` needs to know that stands behind another, as text."""

    kind: str
    said: str
    arguments: str
    inputs: str
    context: tuple[str, ...]
    computed: tuple[str, ...]
    returned: tuple[str, ...]


@dataclass(frozen=True)
class Transformed:
    """What the `torch.autograd.Function` for transforms needs to know, as text."""

    returned: str
    cotangents: str
    context: tuple[str, ...]


@dataclass(frozen=True)
class DifferentiatedByLine:
    """What stands where autograd takes second derivatives, line by line, as text."""

    upstream: str
    arguments: str
    output: str
    gradients: str
    decorated: str


@dataclass(frozen=True)
class Differentiable:
    """What the `torch.autograd.Function` needs to know of the pair behind it, as text; ``lines`` is
    the function that torch may differentiate line by line.
    """

    inputs: str
    output: str
    lines: str
    upstream: str
    plain: tuple[str, ...]
    saved: str
    numbers: str
    returned: tuple[str, ...]
    computed: tuple[str, ...]
    gradients: str
    decorators: tuple[str, ...]
    behind: tuple[Behind, ...]
    transformed: tuple[Transformed, ...]
    line_by_line: tuple[DifferentiatedByLine, ...]


@dataclass(frozen=True)
class PrintedFunction:
    """A function as the template prints it: every field is text, and ``core`` are the lines that
    it calls, without any check, where it is not these itself.
    """

    summary: str
    signature: str
    shapes: str
    lines: tuple[str, ...]
    result_class: str
    results: tuple[tuple[str, str, str], ...]
    returned: str
    core: tuple[Core, ...] = ()

    @property
    def classes(self) -> tuple[str, ...]:
        """The class of what it returns, if that is one of its own."""
        return (self.result_class,) if self.result_class else ()
