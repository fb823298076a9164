"""State that a function changes while it runs: running statistics, counters, averages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from codegen.importing.examples import Example, drawn, run
from codegen.importing.subjects import Subject


def written_into(subject: Subject, example: Example) -> Iterator[str]:
    """Names of the state the function writes into: buffers, or tensors passed in."""
    tensors = drawn(example.arguments, example.sizes)
    passed = {a.name: t for a, t in zip(example.arguments, tensors, strict=True)}
    seen = [_clones(passed)]  # batch norm does not bump version counters

    def look(module, *_) -> None:
        seen.append(_clones(dict(module.named_buffers())))

    hooks = []
    if isinstance(subject.function, torch.nn.Module):
        hooks.append(subject.function.register_forward_pre_hook(look))
        hooks.append(subject.function.register_forward_hook(look))
    try:
        run(subject, example.arguments, tensors)
    finally:
        for hook in hooks:
            hook.remove()
    before, *of_module = seen
    pairs = [(before, passed), tuple(of_module)] if of_module else [(before, passed)]
    names = [n for then, now in pairs for n in then if n in now and not _same(then[n], now[n])]
    if not names:
        return
    written = ", ".join(dict.fromkeys(names))
    yield (
        f"{subject.name} also writes into {written}; the forward has no state, and leaves that out."
    )


def _clones(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: t.detach().clone() for name, t in tensors.items()}


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and torch.equal(one, other.to(one.dtype))
