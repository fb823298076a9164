"""Liveness: the results of a function that need each of its steps; unused ones are not computed."""

from __future__ import annotations

from codegen.program import Function
from codegen.program.parts import values_in
from codegen.program.steps import Assign, NotZero, SplitLabel
from codegen.program.values import Load


def wanted_by(function: Function) -> tuple[frozenset[str], ...]:
    """For each step of ``function`` the results that need it: all, if it costs nothing, as another
    name of a result.
    """
    everything = frozenset(function.results)
    needed_for = {name: frozenset([name]) for name in function.results}
    found = []
    for step in reversed(function.steps):
        if isinstance(step, NotZero):
            found.append(everything)
            continue
        results = needed_for.get(step.name, frozenset())
        if isinstance(step, SplitLabel):
            results |= needed_for.get(step.kept, frozenset())
        if isinstance(step, Assign):  # its earlier value is another one
            needed_for.pop(step.name, None)
        for value in values_in(step):
            if isinstance(value, Load):
                needed_for[value.name] = needed_for.get(value.name, frozenset()) | results
        value = step.value if isinstance(step, Assign) else None
        is_name = isinstance(value, Load) and value.name in everything
        found.append(everything if is_name else results)
    return tuple(reversed(found))
