"""How closely a forward that was read agrees with the function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Agreement:
    """At which sizes the two were compared, and how far apart they were at most."""

    sizes: tuple[Mapping[str, int], ...]
    values: float
    gradients: float
    scalars: tuple[str, ...] = ()
    tried: int = 1  # values of each

    @property
    def at(self) -> str:
        words = f"{len(self.sizes)} sets of sizes"
        named = ", ".join(self.scalars)
        return f"{words} and {self.tried} values of {named}" if named else words
